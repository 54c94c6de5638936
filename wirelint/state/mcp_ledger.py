"""MCP servers seen on the wire: their tools, calls and results.

A server is identified by host and path, without the last segment of either transport (`/sse`, `/mcp`). A JSON-RPC
request waits under server, session and id until its response arrives, in the reply to its `POST` or on a stream of the
session. Calls are kept in order and found by the letters and digits of the tool's name, because clients prefix server
names (`mcp__docs__search`, `docs-search`, `docs.search`). Prefix, parameters and description decide whether a tool
declared to a model is a server's; without such evidence it is another tool.

Exchanges are recorded when they end, live and offline alike; each response on a stream that stays open is its own
exchange. None means unknown."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import orjson

from wirelint.apis.mcp import SESSION
from wirelint.jsonvalues import mapping, mappings, text
from wirelint.model import Arguments, Exchange, Json, Opaque, Rpc, Tool, ToolCall, ToolResult
from wirelint.state import drop_oldest, prune

_ENDPOINTS = re.compile(r"/(?:sse|messages?|mcp)/?\Z")
_SESSION_PARAMETERS = ("session_id", "sessionId", "sessionid", "session")
_PLAIN = re.compile(r"[\W_]+")
_SHOWN = 400
"""Characters of a tool's description that are compared."""


@dataclass(slots=True, eq=False)
class Passed:
    """A `tools/call` seen on the wire, with `text` and `error` of its result once `answered`.

    `whole` is False if the result holds more than text; `error` is None if the result lacks the field.
    """

    number: int
    server: str
    name: str
    digest: str
    exchange: str
    text: str = ""
    error: bool | None = None
    answered: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Served:
    """Tool in a server's list. `parameters`: names of its arguments, None if unknown."""

    server: str
    name: str
    description: str
    parameters: frozenset[str] | None


@dataclass(slots=True)
class _Server:
    names: set[str] = field(default_factory=set)
    tools: dict[str, Served] = field(default_factory=dict)
    since: int = 0
    unread: bool = False


class McpLedger:
    """Ledger that drops its oldest calls, servers and requests first. `max_text` limits the characters of results."""

    def __init__(self, *, max_calls: int = 4_000, max_text: int = 16 << 20, max_servers: int = 256) -> None:
        self._max_calls, self._max_text, self._max_servers = max_calls, max_text, max_servers
        self._servers: OrderedDict[str, _Server] = OrderedDict()
        self._calls: OrderedDict[int, Passed] = OrderedDict()
        self._by_name: dict[str, dict[int, Passed]] = {}
        self._waiting: OrderedDict[tuple[str, str, str], Passed | str] = OrderedDict()
        """Requests by server, session and id: the call, or the method of another request."""
        self._made: OrderedDict[str, int] = OrderedDict()
        self._begun: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._forgotten = False
        self._clock = self._text = 0

    def __bool__(self) -> bool:
        """Return True if traffic of at least one server has been recorded."""
        return bool(self._servers)

    # --- questions ----------------------------------------------------------------------------------------------------

    def passed(self, name: str, declared: Tool | None, digest: str | None = None) -> tuple[Passed, ...]:
        """Return the calls of the tool that a model knows by this name: all, or those with equal arguments."""
        calls = [call for short in _endings(name) for call in self._by_name.get(short, {}).values()]
        same = {place for place in {(call.server, call.name) for call in calls} if self._is(name, declared, *place)}
        return tuple(call for call in calls if (call.server, call.name) in same and digest in (None, call.digest))

    def serving(self, name: str, declared: Tool | None) -> tuple[Served, ...]:
        """Return the servers' tools that match the declared tool."""
        short = frozenset(_endings(name))
        return tuple(
            tool
            for server in self._servers.values()
            for tool in server.tools.values()
            if plain(tool.name) in short and self._is(name, declared, tool.server, tool.name)
        )

    def is_read(self, served: Served) -> bool:
        """Return True if all traffic of the server could be read."""
        return served.server in self._servers and not self._servers[served.server].unread

    def was_listed_before(self, served: Served, call_id: str | None) -> bool:
        """Return True if a server had listed its tools before the model made this call."""
        return served.server in self._servers and self._servers[served.server].since < self.earlier(call_id)

    def earlier(self, call_id: str | None) -> int:
        """Return the number of the last call before the model made this call; 0 if unknown."""
        return self._made.get(call_id or "", 0)

    def knows_session(self, exchange: Exchange) -> bool:
        """Return True if the session was seen from `initialize` on and nothing was dropped."""
        return not self._forgotten and place_of(exchange) in self._begun

    def waits(self, exchange: Exchange, id_: str) -> str | None:
        """Return the method of the unanswered request with this id in the session."""
        found = self._waiting.get((*place_of(exchange), id_))
        return "tools/call" if isinstance(found, Passed) else found

    def called(self, exchange: Exchange, id_: str | None) -> str | None:
        """Return the tool called by the unanswered request with this id in the session."""
        found = self._waiting.get((*place_of(exchange), id_ or ""))
        return found.name if isinstance(found, Passed) else None

    def answers(self, exchange: Exchange, name: str) -> Iterator[str]:
        """Yield the earlier results of a server's tool, without errors."""
        place = place_of(exchange)[0], name
        calls = (call for call in self._by_name.get(plain(name), {}).values() if (call.server, call.name) == place)
        return (call.text for call in calls if call.answered and not call.error)

    def _is(self, name: str, declared: Tool | None, server: str, tool: str) -> bool:
        written, short = plain(name), plain(tool)
        known = self._servers.get(server, _Server())
        served, schema = known.tools.get(tool), declared.schema if declared is not None else None
        parameters = served.parameters if served is not None else None
        if schema is not None and parameters is not None and (_parameters(schema) or frozenset()) != parameters:
            return False
        prefix = written[: -len(short) - 1]
        if written == short or prefix.split("_")[0] == "mcp" or prefix in known.names:
            return True
        if declared is None or served is None or schema is None or parameters is None:
            return False
        one, other = (" ".join(words[:_SHOWN].split()) for words in (declared.description, served.description))
        return bool(one and other) and (one in other or other in one or one[:60] == other[:60])

    # --- taking in ----------------------------------------------------------------------------------------------------

    def record(self, exchange: Exchange) -> None:
        """Record an exchange of either channel. Call it after the check."""
        self._clock += 1
        if exchange.api != "mcp":
            for reply in (exchange.reply, exchange.delivered) if self._servers else ():
                self._made.update({call.id: self._clock for call in (reply.calls if reply else ()) if call.id})
            drop_oldest(self._made, self._max_calls)
            return
        server, session = place_of(exchange)
        self._server(server).unread |= exchange.request is None or exchange.end == "unread"
        for part in exchange.request.parts if exchange.request is not None else ():
            match part:
                case ToolCall(id_, name, arguments) if id_ is not None and name is not None:
                    self._clock += 1  # there may be several in a batch
                    call = Passed(self._clock, server, name, digest_of(arguments), exchange.id)
                    self._calls[call.number] = call
                    self._by_name.setdefault(plain(name), {})[call.number] = call
                    self._waiting[server, session, id_] = call
                case Rpc("request", id_, method) if id_ is not None:
                    self._waiting[server, session, id_] = method
                    if method == "initialize":
                        self._begun[server, session] = None
        for choice in exchange.reply.choices if exchange.reply is not None else ():
            whole = not any(isinstance(part, Opaque) for part in choice.parts)
            for part in choice.parts:
                self._answer(part, server, session, whole)
        while self._calls and (len(self._calls) > self._max_calls or self._text > self._max_text):
            _, oldest = self._calls.popitem(last=False)
            self._text -= len(oldest.text)
            prune(self._by_name, plain(oldest.name), oldest.number)
        self._forgotten = drop_oldest(self._waiting, self._max_calls) or self._forgotten
        drop_oldest(self._begun, self._max_calls)
        drop_oldest(self._servers, self._max_servers)

    def _server(self, key: str) -> _Server:
        if key not in self._servers:
            # Clients may name a server after parts of its host and path.
            host, _, path = key.partition("/")
            pieces = (*host.partition(":")[0].split("."), *path.split("/"))
            self._servers[key] = _Server(names={plain(piece) for piece in pieces if len(piece) > 2})
        self._servers.move_to_end(key)
        return self._servers[key]

    def _answer(self, part: object, server: str, session: str, whole: bool) -> None:
        """Record a response: of a call its result, of another request what it says about the server."""
        error: bool | None = None
        match part:
            case ToolResult(id_, said, _, _, error):
                pass
            case Rpc("error", id_, _, value):
                message = value.get("message") if isinstance(value, dict) else value
                said, error, whole = text(message) or "", True, True
            case Rpc("result", id_, _, dict() as value):
                self._waiting.pop((server, session, id_ or ""), None)
                self._learn(server, value)
                return
            case _:
                return
        call = self._waiting.pop((server, session, id_ or ""), None)
        if isinstance(call, Passed):
            call.text, call.error, call.whole, call.answered = said, error, whole, True
            self._text += len(said)

    def _learn(self, key: str, result: Mapping[str, Json]) -> None:
        server, info, tools = self._server(key), mapping(result.get("serverInfo")), result.get("tools")
        server.names |= {plain(own) for own in (text(info.get("name")), text(info.get("title"))) if own}
        for _, tool in mappings(tools):
            if isinstance(name := tool.get("name"), str):
                server.since = server.since or self._clock
                shown = (text(tool.get("description")) or "")[:_SHOWN]
                server.tools[name] = Served(key, name, shown, _parameters(tool.get("inputSchema")))


def digest_of(arguments: Arguments) -> str:
    """Return a digest that is equal for arguments equal as JSON; null members count as absent."""
    value = arguments.value
    if isinstance(value, dict):
        value = {name: inner for name, inner in value.items() if inner is not None}
    try:
        data = orjson.dumps(value if value is not None else arguments.text.strip() or {}, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # lone surrogates, numbers beyond 64 bits
        data = arguments.text.strip().encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def plain(name: str) -> str:
    """Return a name in lower case, with each run of other characters than letters and digits as `_`."""
    return _PLAIN.sub("_", name).strip("_").casefold()


def _endings(name: str) -> Iterator[str]:
    """Yield the names that a server may use for a tool: the name, and the name without its prefixes."""
    rest = plain(name)
    while rest:
        yield rest
        rest = rest.partition("_")[2]


def place_of(exchange: Exchange) -> tuple[str, str]:
    """Return the server and session of an exchange."""
    url = urlsplit(exchange.url)
    session = exchange.request_headers.get(SESSION) or exchange.response_headers.get(SESSION)
    if session is None:
        query = url.query
        first = next(iter(exchange.reply.parts), None) if exchange.reply is not None else None
        if exchange.method == "GET" and isinstance(first, Rpc) and first.method == "endpoint":  # of the older transport
            query = (urlsplit(first.value.strip()).query if isinstance(first.value, str) else "") or query
        asked = parse_qs(query)
        session = next((asked[name][0] for name in _SESSION_PARAMETERS if name in asked), "")
    return url.netloc + _ENDPOINTS.sub("", url.path), session


def _parameters(schema: Json) -> frozenset[str] | None:
    properties = mapping(schema).get("properties")
    return frozenset(properties) if isinstance(properties, dict) else None
