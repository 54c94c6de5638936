from __future__ import annotations

import json
from collections.abc import Iterator

from wirelint.model import Exchange, Part, Reply, Rpc, ToolCall, ToolResult
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger

_POLLING = "2025-11-25"
"""From this revision of the protocol on, a server may end a stream early and have the client ask for the rest."""


class McpUnknownId(Rule):
    """An MCP server answers a request that nobody made, or leaves one without an answer.

    ## What it does
    Compares the ids of the answers in the reply to a post with those of the requests in it. Reports an answer whose
    id is that of no request, also when it differs in type alone (`1` for `"1"`), a result without any id, a second
    answer to one request, and a request that a complete reply does not answer.

    ## Why is this bad?
    Clients match answers by id, and strictly. An answer with another id is thrown away; the call then hangs until its
    timeout, and nothing in a log says why.

    ## Example
    The request `{"jsonrpc": "2.0", "id": "1", "method": "tools/list"}` is answered with
    `{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}`.

    ## False positives
    Silent on requests and notifications of the server in the same stream, on errors without an id (the request could
    not be read), on answers that come for other requests of the session, on replies that were cut, on statuses other
    than 200, and on streams that revision 2025-11-25 lets a server end early.

    ## Fix safety
    Reported only.

    ## References
    - JSON-RPC 2.0, 5: Response object
    - Model Context Protocol, Base protocol: responses; Transports
    """

    code = "MC802"
    name = "mcp-unknown-id"
    severity = "error"
    layer = "tool"
    channels = frozenset({"mcp"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        """A post that was settled without a single message in answer."""
        reply, status = exchange.reply, exchange.status
        if (
            exchange.method.upper() != "POST"
            or exchange.end not in ("complete", "unknown")
            or (reply and reply.choices)
        ):
            return
        taken = (
            status == 202 and "mcp-protocol-version" in exchange.request_headers
        )  # the older transport answers elsewhere
        if not taken and not (status == 200 and (reply is None or reply.events == 0)):
            return
        for id_, method in _requests(exchange).items():
            told = "taken with status 202" if taken else "settled with an empty body"
            yield self.finding(
                "response", f"{method} {id_} was {told}, and not answered", severity="warning", confidence="medium"
            )

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or exchange.status != 200:
            return
        if exchange.method.upper() == "GET":
            yield from self._on_a_stream(exchange, reply, ledger)
            return
        asked = _requests(exchange)
        if not asked:
            return  # what is said in answer to notifications is another rule's
        parts = [part for choice in reply.choices for part in choice.parts]
        answers = [part for part in parts if isinstance(part, (ToolResult, Rpc)) and _answers(part)]
        open_ = dict(asked)
        strange: list[ToolResult | Rpc] = []
        for part in answers:
            id_ = _id(part)
            if id_ is None and _is_nobodys(part):
                strange.append(part)
                continue
            if id_ is None or _take(open_, id_):
                continue
            if id_ in asked or ledger.tools.waits(exchange, id_) is None:
                strange.append(part)
        for part in strange:
            yield self._stray(part, open_, asked)
        if not strange and open_ and not any(_id(part) is None for part in answers):
            yield from self._unanswered(exchange, open_)

    def _on_a_stream(self, exchange: Exchange, reply: Reply, ledger: Ledger) -> Iterator[Finding]:
        """Answers on a stream of the session, to which requests were posted apart."""
        if "last-event-id" in exchange.request_headers or not ledger.tools.knows_session(exchange):
            return  # what was sent before is sent again; or the session began elsewhere
        strange: list[tuple[ToolResult | Rpc, str]] = []
        for part in (part for choice in reply.choices for part in choice.parts):
            if not isinstance(part, (ToolResult, Rpc)) or not _answers(part) or (id_ := _id(part)) is None:
                continue
            if ledger.tools.waits(exchange, id_) is None:
                strange.append((part, id_))
                continue
            # Only what an expected answer follows is judged: the posts of the last ones may still be under way.
            for stray, other in strange:
                told = f"the stream carries an answer with the id {other}, for which no request of the session waits"
                yield self.finding("response", told, stray.pointer, event=stray.event, confidence="medium")
            strange.clear()

    def _stray(self, part: ToolResult | Rpc, open_: dict[str, str], asked: dict[str, str]) -> Finding:
        id_ = _id(part)
        if id_ is None:
            waiting = ", ".join(f"{method} {other}" for other, method in (open_ or asked).items())
            told = f"the answer has no id, so no client takes it for the answer; asked was {waiting}"
            return self.finding("response", told, part.pointer, event=part.event)
        if id_ in asked:
            return self.finding("response", f"{asked[id_]} {id_} is answered twice", part.pointer, event=part.event)
        twin = next((other for other in asked if _spelled(other) == _spelled(id_)), None)
        if twin is not None:
            told = f"the request has the id {twin} and the answer {id_}: another type, so no client takes it for the answer"
        else:
            waiting = ", ".join(f"{method} {other}" for other, method in (open_ or asked).items())
            told = f"the answer has the id {id_}, which no request has; asked was {waiting}"
        return self.finding("response", told, part.pointer, event=part.event)

    def _unanswered(self, exchange: Exchange, open_: dict[str, str]) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or exchange.end not in ("complete", "unknown") or reply.faults:
            return
        revision = exchange.request_headers.get("mcp-protocol-version", "")
        if reply.streamed and (revision >= _POLLING or reply.events == 0):
            return
        if not reply.streamed and not reply.choices:
            return  # no message at all: not this protocol's words
        for id_, method in open_.items():
            yield self.finding(
                "response",
                f"the reply is complete and does not answer {method} {id_}",
                severity="warning" if reply.streamed else None,
                confidence="medium",
            )


def _requests(exchange: Exchange) -> dict[str, str]:
    """The requests that were posted: what they ask for, by id."""
    messages = exchange.request.messages if exchange.request is not None else ()
    asked = (_asked(part) for message in messages for part in message.parts)
    return dict(one for one in asked if one is not None)


def _asked(part: Part) -> tuple[str, str] | None:
    match part:
        case ToolCall(id_, name) if id_ is not None:
            return id_, f"the call of {name}"
        case Rpc("request", id_, method) if id_ is not None:
            return id_, method
        case _:
            return None


def _answers(part: ToolResult | Rpc) -> bool:
    return isinstance(part, ToolResult) or part.form in ("result", "error")


def _is_nobodys(part: ToolResult | Rpc) -> bool:
    """Whether an answer without an id is a result: only errors may come without (the request could not be read)."""
    return isinstance(part, ToolResult) or part.form == "result"


def _id(part: ToolResult | Rpc) -> str | None:
    return part.call_id if isinstance(part, ToolResult) else part.id


def _take(open_: dict[str, str], id_: str) -> bool:
    """Whether a request of this id was open, which is answered now. `1` and `1.0` are one number."""
    for other in open_:
        if other == id_ or (other[:1] != '"' and id_[:1] != '"' and json.loads(other) == json.loads(id_)):
            del open_[other]
            return True
    return False


def _spelled(id_: str) -> str:
    return id_.strip('"')
