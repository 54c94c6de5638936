"""The ledger: which ids, calls and results have really passed on this wire, per conversation, bounded.

An exchange is judged against what passed before it and is recorded after it was judged, in the order in which exchanges
end. Captures are written in that order too, so reading them back gives every rule the same ledger.

Theory of operation. A `_Memory` per conversation holds its calls and results by id. Two indexes lie across all of them:
by the letters and digits of an id (what is left of it when a client has mangled it), and by what was called with what
(what is left when a client has replaced it). Conversations are forgotten whole, the least recently used one first, when
there are too many ids or too much argument text; the only conversation there is loses its oldest ids instead.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson

from wirelint.knowledge.id_demands import Demand, complaint
from wirelint.knowledge.ids import key
from wirelint.model import Arguments, Exchange, Request, Text
from wirelint.toolwire import ToolWire

__all__ = ["Issued", "Ledger", "Returned", "conversation_of", "key"]

_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "x-session-id",
    "session_id",
    "session-id",
    "x-conversation-id",
    "conversation_id",
    "mcp-session-id",
)


_MOST_COMPLAINTS = 256


@dataclass(frozen=True, slots=True)
class Issued:
    """A tool call that a reply carried, as it stood on the wire."""

    id: str
    name: str
    arguments: str
    exchange: str
    conversation: str | None


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool result that a request carried back."""

    call_id: str
    digest: str
    exchange: str


@dataclass(slots=True)
class _Memory:
    """What passed in one conversation, in order. `content` keeps each call's place in the index by content."""

    calls: dict[str, Issued] = field(default_factory=dict)
    results: dict[str, Returned] = field(default_factory=dict)
    content: dict[str, str] = field(default_factory=dict)

    def __contains__(self, id_: str) -> bool:
        return id_ in self.calls or id_ in self.results


class Ledger:
    """What passed, by conversation. `max_ids` counts different ids, `max_text` the characters of their arguments."""

    def __init__(self, *, max_ids: int = 10_000, max_text: int = 16 << 20) -> None:
        self._max_ids, self._max_text = max_ids, max_text
        self._ids = self._text = 0
        self._memories: OrderedDict[str | None, _Memory] = OrderedDict()
        self._by_key: dict[str, dict[str, dict[str | None, Issued]]] = {}
        self._by_content: dict[str, dict[str | None, dict[str, Issued]]] = {}
        self._complaints: OrderedDict[tuple[str, str], Demand] = OrderedDict()
        self._tools = ToolWire()

    @property
    def tools(self) -> ToolWire:
        """What servers of tools have said on this wire."""
        return self._tools

    def issued(self, id_: str, conversation: str | None = None) -> Issued | None:
        """The call that passed under exactly this id, in this conversation or, failing that, in any."""
        found = self._by_key.get(key(id_), {}).get(id_)
        return _nearest(found, conversation) if found else None

    def calls(self, conversation: str | None) -> tuple[Issued, ...]:
        """The calls of a conversation, in the order in which they passed."""
        memory = self._memories.get(conversation)
        return tuple(memory.calls.values()) if memory is not None else ()

    def similar(self, id_: str, conversation: str | None = None) -> tuple[Issued, ...]:
        """Calls of any conversation whose ids are the same when only letters and digits count, case aside.

        One per id: that of the given conversation, else the last one.
        """
        return tuple(_nearest(found, conversation) for found in self._by_key.get(key(id_), {}).values())

    def alike(self, name: str, arguments: str, conversation: str | None) -> tuple[Issued, ...]:
        """Calls of the same function with the same arguments: of this conversation, then of replies without a request."""
        found = self._by_content.get(content_of(name, arguments), {})
        return tuple(call for place in dict.fromkeys((conversation, None)) for call in found.get(place, {}).values())

    def all_calls(self) -> Iterator[Issued]:
        for memory in self._memories.values():
            yield from memory.calls.values()

    def returned(self, call_id: str, conversation: str | None) -> Returned | None:
        memory = self._memories.get(conversation)
        return memory.results.get(call_id) if memory is not None else None

    def complaint(self, exchange: Exchange) -> Demand | None:
        """What the target of an exchange demanded of ids when it last refused some."""
        return self._complaints.get(_target(exchange))

    def record(self, exchange: Exchange) -> None:
        """Takes in what an exchange carried. Call it after the exchange was judged."""
        self._tools.record(exchange)
        if exchange.api == "mcp":
            return
        conversation = exchange.conversation
        if (demand := complaint(exchange)) is not None:
            self._complaints[_target(exchange)] = demand
            if len(self._complaints) > _MOST_COMPLAINTS:
                self._complaints.popitem(last=False)
        for issued in _issued(exchange):
            self._add(conversation, issued)
        if exchange.request is not None:
            self._add_results(exchange, exchange.request)
        if conversation in self._memories:
            self._memories.move_to_end(conversation)
        while self._ids > self._max_ids or self._text > self._max_text:
            oldest, memory = next(iter(self._memories.items()))
            if len(self._memories) > 1:
                self._forget(oldest)
            else:
                self._drop(oldest, next(iter(memory.calls or memory.results)))

    def _add(self, conversation: str | None, issued: Issued) -> None:
        memory = self._memories.setdefault(conversation, _Memory())
        if issued.id in memory.calls:
            self._unlist(conversation, memory, issued.id)
        elif issued.id not in memory:
            self._ids += 1
        self._text += len(issued.arguments) + len(issued.id)
        content = content_of(issued.name, issued.arguments)
        memory.calls[issued.id] = issued
        memory.content[issued.id] = content
        places = self._by_key.setdefault(key(issued.id), {}).setdefault(issued.id, {})
        places.pop(conversation, None)
        places[conversation] = issued
        self._by_content.setdefault(content, {}).setdefault(conversation, {})[issued.id] = issued

    def _add_results(self, exchange: Exchange, request: Request) -> None:
        given = [result for message in request.turn for result in message.results if result.call_id]
        if not given:
            return
        memory = self._memories.setdefault(exchange.conversation, _Memory())
        for result in given:
            id_ = result.call_id or ""
            if id_ not in memory.results:
                self._ids += id_ not in memory
                digest = hashlib.sha256(result.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
                memory.results[id_] = Returned(id_, digest, exchange.id)

    def _forget(self, conversation: str | None) -> None:
        memory = self._memories[conversation]
        for id_ in {**memory.calls, **memory.results}:
            self._drop(conversation, id_)
        del self._memories[conversation]

    def _drop(self, conversation: str | None, id_: str) -> None:
        memory = self._memories[conversation]
        if id_ in memory.calls:
            self._unlist(conversation, memory, id_)
        memory.results.pop(id_, None)
        self._ids -= 1

    def _unlist(self, conversation: str | None, memory: _Memory, id_: str) -> None:
        """Takes a call out of its memory and both indexes; nothing empty stays behind."""
        issued = memory.calls.pop(id_)
        self._text -= len(issued.arguments) + len(id_)
        content = memory.content.pop(id_)
        by_id = self._by_key[key(id_)]
        del by_id[id_][conversation]
        if not by_id[id_]:
            del by_id[id_]
        if not by_id:
            del self._by_key[key(id_)]
        places = self._by_content[content]
        del places[conversation][id_]
        if not places[conversation]:
            del places[conversation]
        if not places:
            del self._by_content[content]


def _target(exchange: Exchange) -> tuple[str, str]:
    return urlsplit(exchange.url).netloc, exchange.model


def _nearest(places: dict[str | None, Issued], conversation: str | None) -> Issued:
    return places.get(conversation) or next(reversed(places.values()))


def content_of(name: str, arguments: str) -> str:
    """A digest of what is called with what: equal for arguments that are equal as JSON."""
    plain = arguments.strip()
    if (value := Arguments(arguments).value) is not None:
        with contextlib.suppress(orjson.JSONEncodeError):  # lone surrogates, numbers beyond 64 bits: the text will do
            plain = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return hashlib.sha256(f"{name}\0{plain}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def conversation_of(request: Request, headers: Mapping[str, str]) -> str | None:
    """A short name of the conversation that a request belongs to: the client's own session, else how it began."""
    session = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), None)
    session = session or _text(request.body.get("prompt_cache_key")) or _text(request.body.get("conversation"))
    if session:
        return _short(f"session {session}")
    first = next((message for message in request.messages if message.role == "user"), None)
    if first is None:
        return None
    words = "\n".join(part.text for part in first.parts if isinstance(part, Text))
    return _short(f"opening {words}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _issued(exchange: Exchange) -> Iterator[Issued]:
    """The calls that passed: as the upstream made them, and as the client got them."""
    for reply in (exchange.reply, exchange.delivered):
        for choice in reply.choices if reply is not None else ():
            for call in choice.calls:
                if call.id:
                    yield Issued(call.id, call.name or "", call.arguments.text, exchange.id, exchange.conversation)
