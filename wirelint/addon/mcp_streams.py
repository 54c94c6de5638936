"""MCP SSE streams that outlive a response, and policies' answers to blocked calls on them.

In the older HTTP+SSE transport all responses arrive on one `GET` stream that is open as long as its session; in
Streamable HTTP a server may keep the stream of a reply open after its response. A result known only at the end of the
stream is known too late: the model has already seen it. So each JSON-RPC response that a request waits for becomes its
own exchange as soon as it arrives (`ExchangeRecorder.split`): checked, captured and recorded in the ledger in that
order. Captures keep the order, so offline checks agree.

A response may arrive before the `POST` that requested it has been finished; that `POST` ends then. The stream of a
`POST` gets one second after its response, since most servers close it then.

Blocked calls: the other messages of a batch are forwarded, and wirelint's answers are added to the reply, in its array
or as the first SSE event. In the older transport `POST` gets 202, and the answer goes onto the session's stream between
two events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping
from functools import partial

import orjson
from mitmproxy import http

from wirelint.addon.mitm_compat import attach
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.streamed_reply import HttpReply, body_of, is_json, make_open_ended, replace_body
from wirelint.apis import channel_of
from wirelint.apis.writing import framed
from wirelint.capture.readers.flows import headers_of
from wirelint.capture.record import Sent
from wirelint.engine import lower
from wirelint.jsonvalues import decode_json
from wirelint.model import End, Exchange, Json, Reply, Request, Rpc, ToolCall, ToolResult
from wirelint.state.ledger import Ledger
from wirelint.state.mcp_ledger import place_of
from wirelint.wire.content_coding import TooLargeError

_LOOKS = 0.1
"""Seconds between two polls of a stream."""


class BatchAnswers:
    """wirelint's answers to blocked members of a batch, added to the reply to the others."""

    def __init__(self, recorder: ExchangeRecorder, answers: list[Json]) -> None:
        self._recorder, self._answers = recorder, answers
        self._first: bytes | None = None
        self.done = False

    def begin(self, request: http.Request, response: http.Response) -> None:
        reply = response.stream
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = False
            return
        if response.headers.get("content-encoding", "identity") != "identity" or not isinstance(reply, HttpReply):
            self._recorder.notes.append("the blocked call was not answered: the reply is compressed")
            return
        make_open_ended(request, response)
        self._first = b"".join(framed(answer, "message") for answer in self._answers)
        first = [self._first]

        def stream(data: bytes) -> Iterable[bytes]:
            made, begun = reply(data), first[:]
            first.clear()
            return [*begun, made] if isinstance(made, bytes) else [*begun, *made]

        response.stream = stream

    def response(self, response: http.Response) -> None:
        recorder = self._recorder
        if self._first is not None:
            received = recorder.raw_body()
            recorder.delivered = Sent(headers_of(response), self._first + received if received is not None else None)
            response.raw_content = recorder.delivered.body
            self.done = True
            return
        if response.raw_content is None or self.done:
            return
        try:
            replied = decode_json(body_of(response, recorder.limit) or b"") if is_json(response) else None
        except TooLargeError:
            recorder.notes.append("the blocked call was not answered: the reply is too large")
            return
        if not (200 <= response.status_code < 300):
            return
        others = replied if isinstance(replied, list) else [] if replied is None else [replied]
        body = orjson.dumps([*others, *self._answers])
        response.status_code = 200
        response.headers["content-type"] = "application/json"
        replace_body(response, body)
        recorder.delivered = Sent(headers_of(response), body)
        self.done = True


class _Stream:
    """Session stream that is polled ten times a second and sends queued answers between two events."""

    def __init__(self, recorder: ExchangeRecorder) -> None:
        self._recorder = recorder
        self.queue: list[bytes] = []

    def is_of(self, post: Exchange) -> bool:
        exchange = self._recorder.look()
        return exchange is not None and exchange.reply is not None and place_of(exchange) == place_of(post)

    def due(self) -> float | None:
        return _LOOKS

    def release(self) -> Iterable[bytes]:
        raw, made = self._recorder.raw_body(), self.queue
        if not made or raw is None or not raw.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            return []
        self.queue = []
        self._recorder.notes.append(f"{len(made)} results from wirelint were added to this stream")
        return made

    def flush(self) -> Iterable[bytes]:
        return self.queue


def request_ids(request: Request | None) -> set[str]:
    parts = request.parts if request is not None else ()
    asked = [part for part in parts if isinstance(part, ToolCall) or (isinstance(part, Rpc) and part.form == "request")]
    return {part.id for part in asked if part.id is not None}


def response_ids(reply: Reply | None) -> set[str]:
    parts = reply.parts if reply is not None else ()
    results = {part.call_id for part in parts if isinstance(part, ToolResult)}
    answers = {part.id for part in parts if isinstance(part, Rpc) and part.form in ("result", "error")}
    return {id_ for id_ in results | answers if id_ is not None}


_OPEN_AFTER_ANSWER = 1.0
"""Seconds for which a reply may stay open after its response."""


class McpStreams:
    """Tracks MCP streams. No method raises.

    `found`: exchanges in progress by flow id. `settle` takes an exchange that has ended, with its end and error.
    """

    def __init__(
        self,
        found: MutableMapping[str, ExchangeRecorder],
        settle: Callable[[ExchangeRecorder, End, str | None], None],
        ledger: Ledger,
    ) -> None:
        self._found, self._settle, self._ledger = found, settle, ledger
        self._due: set[str] = set()
        self._sessions: dict[str, _Stream] = {}
        """Open session streams of the older transport; tracked only if there are policies."""

    def mind(self, recorder: ExchangeRecorder, *, streamed: bool, blocks: bool) -> None:
        """Track a reply whose head has arrived. `blocks`: calls may be answered by policies."""
        if not (streamed and recorder.session is not None and channel_of(recorder.session.api.name) == "mcp"):
            return
        fields = lower(recorder.response_headers)
        if "text/event-stream" not in fields.get("content-type", "text/event-stream"):
            return
        recorder.on_data = partial(self._heard, recorder)
        if blocks and recorder.method == "GET" and fields.get("content-encoding", "identity") == "identity":
            stream = _Stream(recorder)
            with recorder.caught("reaching the client", readable=True):
                if attach(recorder.flow, stream):
                    self._sessions = {name: one for name, one in self._sessions.items() if name in self._found}
                    self._sessions[recorder.flow.id] = stream

    def answer(self, post: Exchange, document: Json) -> bool:
        """Queue an answer on the session stream of a `POST`. Return False if the stream is unknown."""
        for name, stream in self._sessions.items():
            if name in self._found and stream.is_of(post):
                stream.queue.append(framed(document, "message"))
                return True
        return False

    def _heard(self, recorder: ExchangeRecorder) -> None:
        recorder.catch_up()
        if recorder.session is None or recorder.is_unread or not recorder.session.terminated:
            return
        if recorder.method == "GET":
            self._part(recorder)
        elif recorder.flow.id not in self._due:
            requested = request_ids(recorder.session.request)
            if requested and requested <= response_ids(recorder.session.reply()):
                self._due.add(recorder.flow.id)
                asyncio.get_running_loop().call_later(_OPEN_AFTER_ANSWER, self._release, recorder.flow)

    def _part(self, recorder: ExchangeRecorder) -> None:
        """Make an exchange of the received part of a stream if a request waits for it."""
        # After a failure the stream is checked when it has ended.
        with recorder.caught("parting a stream", readable=True):
            if (exchange := recorder.look()) is None:
                return
            answered = response_ids(exchange.reply)
            for one in tuple(self._found.values()):
                session = one.session
                if one.method != "POST" or session is None or session.api.name != "mcp":
                    continue
                requested = request_ids(session.head().request) if one.status in (None, 202) else set()
                if requested and requested <= answered and place_of(session.head()) == place_of(exchange):
                    self._end(one)  # its response arrives on this stream
            if not any(self._ledger.tools.waits(exchange, id_) is not None for id_ in answered):
                return
            part = recorder.split()
            if part is not None:
                self._settle(part, "complete", None)

    def _release(self, flow: http.HTTPFlow) -> None:
        """Finish a `POST` whose stream stays open after its response."""
        self._due.discard(flow.id)
        one = self._found.get(flow.id)
        if one is None:
            return
        one.notes.append("the stream stayed open after its answer; later messages are not read")
        if flow.response is not None and flow.response.raw_content is None:
            flow.response.raw_content = one.raw_body()
        self._end(one)

    def _end(self, one: ExchangeRecorder) -> None:
        self._found.pop(one.flow.id, None)
        self._settle(one, "complete", None)
