from __future__ import annotations

import json
from collections.abc import Iterator

from wirelint.model import Exchange, Reply, Rpc, ToolCall, ToolResult
from wirelint.rule import Finding, Rule, Severity
from wirelint.state.ledger import Ledger

_POLLING = "2025-11-25"
"""First revision of the protocol that lets a server end a stream early for the client to resume."""


class McpUnknownId(Rule):
    """An MCP server answers an unknown request id, or leaves a request without an answer.

    ## What it does
    Compares the ids of the answers to a POST with those of its requests. Reports an answer with an unknown id, also if
    only its type differs (`1` for `"1"`), without an id, or to an answered request, and requests left unanswered.

    ## Why is this bad?
    Clients discard an answer with another id; the call then hangs until its timeout, and no log says why.

    ## Example
    The request `{"jsonrpc": "2.0", "id": "1", "method": "tools/list"}` is answered with
    `{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}`.

    ## False positives
    Silent on requests and notifications of the server in the stream, on errors without an id (the request was
    unreadable), on answers to other requests of the session, on replies that were cut off, on statuses other than 200,
    and on streams that revision 2025-11-25 lets a server end early.

    ## Fix safety
    Reported only.

    ## References
    - JSON-RPC 2.0, 5: Response object
    - Model Context Protocol, Base protocol: responses; Transports
    """

    severity = "error"
    layer = "tool"
    channels = frozenset({"mcp"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        """Yield findings on a POST that ended without any message."""
        reply, status = exchange.reply, exchange.status
        if exchange.method.upper() != "POST" or exchange.end not in ("complete", "unknown"):
            return
        if reply and reply.choices:
            return
        # The older transport answers on another stream.
        taken = status == 202 and "mcp-protocol-version" in exchange.request_headers
        if not taken and not (status == 200 and (reply is None or reply.events == 0)):
            return
        how = "accepted with status 202" if taken else "closed with an empty body"
        for id_, method in _requests(exchange).items():
            message = f"{method} {id_} was {how}, and not answered"
            yield self.finding("response", message, severity="warning", confidence="medium")

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or exchange.status != 200:
            return
        if exchange.method.upper() == "GET":
            yield from self._on_a_stream(exchange, reply, ledger)
            return
        requests = _requests(exchange)
        if not requests:
            return  # mcp-lifecycle reports answers to notifications
        open_, answers = dict(requests), reply.answers
        strange: list[ToolResult | Rpc] = []
        for part in answers:
            id_ = _id(part)
            if id_ is None:  # only an error may lack its id, if the request was unreadable
                strange += [part] if isinstance(part, ToolResult) or part.form == "result" else []
            elif not _close_request(open_, id_) and (id_ in requests or ledger.tools.waits(exchange, id_) is None):
                strange.append(part)
        for part in strange:
            yield self.finding("response", _describe(_id(part), open_, requests), part)
        if not strange and not any(_id(part) is None for part in answers) and _should_answer(exchange, reply):
            for id_, method in open_.items():
                message = f"the reply is complete and does not answer {method} {id_}"
                severity: Severity | None = "warning" if reply.streamed else None
                yield self.finding("response", message, severity=severity, confidence="medium")

    def _on_a_stream(self, exchange: Exchange, reply: Reply, ledger: Ledger) -> Iterator[Finding]:
        """Yield findings on answers in a stream of the session, whose requests were posted separately."""
        if "last-event-id" in exchange.request_headers or not ledger.tools.knows_session(exchange):
            return  # a replay, or a session that began elsewhere
        answers = [(part, id_) for part in reply.answers if (id_ := _id(part)) is not None]
        expected = [ledger.tools.waits(exchange, id_) is not None for _, id_ in answers]
        # Report an answer only if an expected answer follows it: later requests may still be on their way.
        last = max((place for place, is_expected in enumerate(expected) if is_expected), default=0)
        for (part, id_), is_expected in zip(answers[:last], expected, strict=False):
            if not is_expected:
                message = f"the stream carries an answer with the id {id_}, for which no request of the session waits"
                yield self.finding("response", message, part, confidence="medium")


def _describe(id_: str | None, open_: dict[str, str], requests: dict[str, str]) -> str:
    """Return the message on an answer that no request expects."""
    waiting = ", ".join(f"{method} {other}" for other, method in (open_ or requests).items())
    if id_ is None:
        return f"the answer has no id, so clients discard it; requested: {waiting}"
    if id_ in requests:
        return f"{requests[id_]} {id_} is answered twice"
    if (twin := next((other for other in requests if other.strip('"') == id_.strip('"')), None)) is not None:
        return f"the request has the id {twin} and the answer {id_}: another type, so clients discard it"
    return f"the answer has the id {id_}, which no request has; requested: {waiting}"


def _should_answer(exchange: Exchange, reply: Reply) -> bool:
    """Return True if a reply is complete, and no other stream may bring the missing answers."""
    if exchange.end not in ("complete", "unknown") or reply.faults:
        return False
    if reply.streamed:
        return reply.events > 0 and exchange.request_headers.get("mcp-protocol-version", "") < _POLLING
    return bool(reply.choices)  # else it holds no JSON-RPC message


def _requests(exchange: Exchange) -> dict[str, str]:
    """Return the methods of the posted requests by id."""
    found: dict[str, str] = {}
    for part in exchange.asked:
        match part:
            case ToolCall(str(id_), name):
                found[id_] = f"the call of {name}"
            case Rpc("request", str(id_), method):
                found[id_] = method
    return found


def _id(part: ToolResult | Rpc) -> str | None:
    return part.call_id if isinstance(part, ToolResult) else part.id


def _close_request(open_: dict[str, str], id_: str) -> bool:
    """Return True if a request of this id was open, and close it. `1` and `1.0` are one number."""
    for other in open_:
        if other == id_ or (other[:1] != '"' and id_[:1] != '"' and json.loads(other) == json.loads(id_)):
            del open_[other]
            return True
    return False
