"""Calls of tools that a policy does not let pass, where their answer has to find its place among those of the server.

Of a batch the other messages are sent on, and what was not sent is answered in the reply to them: in the array, or as the
first event of a stream. In the older transport of MCP answers come on the stream of the session: the post is taken, and the
answer is put in there, between two events, by a look at the stream a few times a second. Such streams are kept in mind only
where there are policies.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson
from mitmproxy import http

from wirelint.addon.http_headers import body_of, headers_of, make_open_ended, replace_body
from wirelint.addon.mitm_compat import attach
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.tee import Tee, is_json
from wirelint.apis import document_of
from wirelint.apis.mcp import is_stream
from wirelint.capture.record import Sent
from wirelint.model import Exchange, Json
from wirelint.state.mcp_ledger import place_of
from wirelint.wire.content_coding import TooLargeError

_LOOKS = 0.1
"""Seconds between two looks at a stream."""
_MOST_STREAMS = 1024


def as_event(document: Json) -> bytes:
    return b"event: message\ndata: %s\n\n" % orjson.dumps(document)


class AddedAnswers:
    """Answers of ours to members of a batch, put into the reply to the others."""

    def __init__(self, visit: ExchangeRecorder, answers: list[Json]) -> None:
        self._visit, self._answers = visit, answers
        self._first: bytes | None = None
        self.done = False

    def begin(self, request: http.Request, response: http.Response) -> None:
        """The head of the reply has come."""
        tee = response.stream
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream"):
            response.stream = False
            return
        if response.headers.get("content-encoding", "identity") != "identity" or not isinstance(tee, Tee):
            self._visit.notes.append("the blocked call was not answered: the reply comes in a coding")
            return
        make_open_ended(request, response)
        self._first = b"".join(map(as_event, self._answers))
        first = [self._first]

        def stream(data: bytes) -> Iterable[bytes]:
            made = tee(data)
            pieces = [made] if isinstance(made, bytes) else list(made)
            return [first.pop(), *pieces] if first else pieces

        response.stream = stream

    def response(self, response: http.Response) -> None:
        """The reply is whole."""
        visit = self._visit
        if self._first is not None:
            came = visit.raw_body()
            visit.delivered = Sent(headers_of(response), self._first + came if came is not None else None)
            response.raw_content = visit.delivered.body
            self.done = True
            return
        raw = response.raw_content
        if raw is None or self.done:
            return
        if raw:
            visit.take_whole(raw)
        try:
            told = document_of(body_of(response, visit.limit) or b"") if is_json(response) else None
        except TooLargeError:
            visit.notes.append("the blocked call was not answered: the reply is too large")
            return
        answers: list[Json] = [*(told if isinstance(told, list) else [] if told is None else [told]), *self._answers]
        if not (200 <= response.status_code < 300):
            return
        response.status_code = 200
        response.headers["content-type"] = "application/json"
        replace_body(response, orjson.dumps(answers))
        visit.delivered = Sent(headers_of(response), orjson.dumps(answers))
        self.done = True


class SessionStreams:
    """The streams of sessions of the older transport that are open."""

    def __init__(self) -> None:
        self._open: dict[str, _Stream] = {}

    def mind(self, flow: http.HTTPFlow, visit: ExchangeRecorder) -> None:
        """The head of a reply has come that may be such a stream."""
        response = flow.response
        if visit.method != "GET" or response is None or not is_stream(response.headers.get("content-type", "")):
            return
        if response.headers.get("content-encoding", "identity") != "identity":
            return
        stream = _Stream(visit)
        if attach(flow, stream):
            self._open = {name: one for name, one in self._open.items() if one.is_open}
            self._open[flow.id] = stream
            while len(self._open) > _MOST_STREAMS:
                del self._open[next(iter(self._open))]

    def answer(self, asked: Exchange, document: Json) -> bool:
        """Puts an answer on the stream of the session of a post; False where that is not known."""
        for stream in self._open.values():
            if stream.is_of(asked):
                stream.queue.append(as_event(document))
                return True
        return False


class _Stream:
    """Asks to be looked at all the time, and hands out what waits where one event has ended."""

    def __init__(self, visit: ExchangeRecorder) -> None:
        self._visit = visit
        self.queue: list[bytes] = []

    @property
    def is_open(self) -> bool:
        return self._visit.session is not None

    def is_of(self, asked: Exchange) -> bool:
        session = self._visit.session
        if session is None:
            return False
        self._visit.catch_up()
        exchange = session.look(self._visit.now(), self._visit.arrivals())
        return exchange.reply is not None and place_of(exchange) == place_of(asked)

    def due(self) -> float | None:
        return _LOOKS

    def overdue(self) -> Iterable[bytes]:
        raw = self._visit.raw_body()
        if not self.queue or raw is None or not raw.endswith((b"\n\n", b"\r\n\r\n", b"\r\r")):
            return []
        made, self.queue = self.queue, []
        self._visit.notes.append(f"{len(made)} answers of wirelint's own were put on this stream")
        return made

    def remains(self) -> Iterable[bytes]:
        return self.queue
