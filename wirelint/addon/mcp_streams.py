"""Streams of servers of tools that stay open: what has been answered on them is judged and known while they go on.

Theory of operation. In the older transport of MCP all answers come on one stream, which is open as long as its session; in
the newer one a server may keep the stream of a reply open when it has answered. Results that are known only when such a
stream ends are known too late: the model has been told of them long before. So what such a stream has brought is an
exchange of its own as soon as it holds an answer that somebody waits for (`Visit.split`), and is judged, written down and
taken into the ledger in the order in which that happened. A reader of the captures finds these parts in the same order, so
it says the same.

An answer may come before the post that asked for it has been settled; that post is over then, for nothing more will come of
it. The reply to a post is left to its server for a moment after the answer, since most of them end it then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Generic, Protocol, TypeVar

from mitmproxy import http

from wirelint.addon.blocking import SessionStreams
from wirelint.addon.end_reason import Ended
from wirelint.addon.failures import Failures
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import channel_of
from wirelint.model import Exchange, Reply, Request, Rpc, ToolCall, ToolResult
from wirelint.state.ledger import Ledger
from wirelint.state.mcp_ledger import place_of

# Which requests of JSON-RPC an exchange asks, and which it answers, by their ids.


def asked_ids(request: Request | None) -> set[str]:
    """The ids of what a post wants to have answered."""
    parts = [part for message in request.messages for part in message.parts] if request is not None else []
    asked = [
        part.id for part in parts if isinstance(part, ToolCall) or (isinstance(part, Rpc) and part.form == "request")
    ]
    return {id_ for id_ in asked if id_ is not None}


def answered_ids(reply: Reply | None) -> set[str]:
    """The ids that the answers in a reply have."""
    found: set[str] = set()
    for part in (part for choice in reply.choices for part in choice.parts) if reply is not None else ():
        if isinstance(part, ToolResult) and part.call_id is not None:
            found.add(part.call_id)
        elif isinstance(part, Rpc) and part.form in ("result", "error") and part.id is not None:
            found.add(part.id)
    return found


_LINGERS = 1.0
"""Seconds for which the stream of a reply may stay open behind its answer."""


class Open(Protocol):
    @property
    def visit(self) -> ExchangeRecorder: ...
    @property
    def flow(self) -> http.HTTPFlow: ...


T = TypeVar("T", bound=Open)


class Lingering(Generic[T]):
    """`found` are the exchanges under way by the ids of their flows, `settle` takes over one that is done with.

    Nothing in here raises.
    """

    def __init__(
        self,
        found: MutableMapping[str, T],
        settle: Callable[[Ended], None],
        ledger: Ledger,
        failures: Failures,
    ) -> None:
        self._found, self._settle = found, settle
        self._ledger, self._failures = ledger, failures
        self._due: dict[str, None] = {}
        self.streams = SessionStreams()

    def mind(self, flow: http.HTTPFlow, visit: ExchangeRecorder, *, streamed: bool, blocks: bool) -> None:
        """The head of a reply has come. `blocks`: there may be calls that are answered here."""
        if not (streamed and visit.live and visit.session is not None and channel_of(visit.session.api.name) == "mcp"):
            return
        if "text/event-stream" in dict(visit.response_headers).get("content-type", "text/event-stream"):
            visit.heard_by = partial(self._heard, flow, visit)
            if blocks:
                self._mind_stream(flow, visit)

    def _mind_stream(self, flow: http.HTTPFlow, visit: ExchangeRecorder) -> None:
        try:
            self.streams.mind(flow, visit)
        except Exception as error:  # fail open: nothing is put on it
            self._failures.add(visit, "reaching the client", error)

    def _heard(self, flow: http.HTTPFlow, visit: ExchangeRecorder) -> None:
        visit.catch_up()
        if visit.session is None or visit.unread or not visit.session.terminated:
            return
        if visit.method == "GET":
            self._part(flow, visit)
        elif flow.id not in self._due and _is_answered(visit):
            self._due[flow.id] = None
            asyncio.get_running_loop().call_later(_LINGERS, self._let_go, flow)

    def _part(self, flow: http.HTTPFlow, visit: ExchangeRecorder) -> None:
        """Has what came on a stream be an exchange of its own, if somebody waits for it."""
        try:
            if visit.session is None:
                return
            exchange = visit.session.look(visit.now(), visit.arrivals())
            answered = answered_ids(exchange.reply)
            for one, post in self._posts():
                asked = asked_ids(post.request)
                if asked and asked <= answered and place_of(post) == place_of(exchange):
                    self._end(one)
            if not any(self._ledger.tools.waits(exchange, id_) is not None for id_ in answered):
                return
            part = visit.split()
            if part is not None:
                self._settle(Ended(part, flow, "complete", None, part.now()))
        except Exception as error:  # fail open: it is judged when the stream has ended
            self._failures.add(visit, "parting a stream", error)

    def _posts(self) -> list[tuple[T, Exchange]]:
        """The posts under way whose answers may come on a stream: those that stream no answer themselves."""
        return [
            (one, one.visit.session.head())
            for one in self._found.values()
            if one.visit.method == "POST"
            and one.visit.session is not None
            and one.visit.session.api.name == "mcp"
            and one.visit.status in (None, 202)
        ]

    def _let_go(self, flow: http.HTTPFlow) -> None:
        """The stream of a reply is open although it has answered."""
        self._due.pop(flow.id, None)
        one = self._found.get(flow.id)
        if one is None:
            return
        one.visit.notes.append("the stream stayed open behind its answer; what follows is not read")
        if flow.response is not None and flow.response.raw_content is None:
            flow.response.raw_content = one.visit.raw_body()
        self._end(one)

    def _end(self, one: T) -> None:
        """An exchange is over although its reply has not ended."""
        self._found.pop(one.flow.id, None)
        self._settle(Ended(one.visit, one.flow, "complete", None, one.visit.now()))


def _is_answered(visit: ExchangeRecorder) -> bool:
    """Return True if all that was posted is answered."""
    session = visit.session
    if session is None:
        return False
    asked = asked_ids(session.request)
    return bool(asked) and asked <= answered_ids(session.reply())
