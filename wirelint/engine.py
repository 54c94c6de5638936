"""From bytes to findings. Live traffic and captures go through the same two classes.

`Session` reads one exchange as its bytes arrive and gives an `Exchange`; `Engine` runs the rules over it and keeps the
ledger. Neither uses a clock, a socket or a file: callers pass times in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from wirelint.apis import ApiSpec, ReplyReader, as_object, channel_of, recognise
from wirelint.apis.reading import Decoded
from wirelint.arguments import placeholders
from wirelint.events import Done, Event, Failure, Finish, Fold, Frame, Other, says_nothing
from wirelint.jsonvalues import MOST_VALUES, decode_json
from wirelint.model import End, Exchange, Json, Part, Reasoning, Refusal, Reply, Request, Text, Timing, Tool, ToolCall
from wirelint.rule import Finding, Rule
from wirelint.settings import Applicable, Kind, Scopes, checks_of
from wirelint.state.ledger import Ledger
from wirelint.state.linking import name_of
from wirelint.text import control_tokens, markup, prose
from wirelint.text.loops import note_on, plain_from, without_loops
from wirelint.text.pointers import document_order
from wirelint.text.quoting import MOST_LINES, is_unread
from wirelint.timing import ArrivalLog, Arrivals
from wirelint.wire import Framing, Sniffer
from wirelint.wire.websocket import is_socket

MOST_TEXT = 3 << 19
"""Most characters of a streamed reply that are read: three times the longest replies seen. A longer reply passes
unread, because checking it would block the proxy for seconds; the limit also bounds memory, more tightly than the limit
on bytes."""

INTERNAL = "IN000"
INTERNAL_NAME = "internal-error"


class FrameListener(Protocol):
    """Receiver of the frames of a streamed reply as a session reads them."""

    def add(self, frame: Frame, last: Decoded) -> None:
        """Receive a frame, and the last frame that held exactly one JSON document."""


class Session:
    """Reader of one exchange: `begin` with the request, `respond` with the reply's head, `feed` its body, `finish`."""

    def __init__(self, api: ApiSpec, *, id: str, method: str, url: str, headers: Mapping[str, str]) -> None:  # noqa: A002
        self.api = api
        self._request: Request | None = None
        self._asked: bytes | dict[str, Json] | None = None
        self._id, self._method, self.url, self._headers = id, method, url, headers
        self._started: float | None = None
        self._max_body: int | None = None
        self._head: Exchange | None = None
        self._status: int | None = None
        self.reply_headers: Mapping[str, str] = {}
        self._framer: Sniffer | None = None
        self.reader: ReplyReader | None = None
        """Reader of the frames, made when the first frame is read."""
        self._fold: Fold | None = None
        self.listener: FrameListener | None = None
        self._whole: Reply | None = None
        self._size = 0
        self._closed = self.unread = False
        """True if reading was given up."""
        self.unread_because: str | None = None
        """Reason why the reply could not be read (a missing optional dependency); None if there is none."""
        self._first_token: float | None = None
        self._log = ArrivalLog()

    @classmethod
    def begin(
        cls,
        *,
        id: str,  # noqa: A002
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        started: float | None = None,
        max_body: int | None = None,
        later: bool = False,
    ) -> Session | None:
        """Return a session for a request, or None if it belongs to no known API.

        The request is parsed at its first use. `later`: the first use is some time away, so the body is kept as bytes
        until then, since the decoded body takes ten times the memory.
        """
        document = decode_json(body)
        parts = urlsplit(url)
        asked = "POST" if is_socket(parts.scheme) else method
        api = recognise(asked, parts.path, headers, document, parts.netloc)
        if api is None:
            return None
        session = cls(api, id=id, method=method, url=url, headers=headers)
        session._asked = body if later else as_object(document)
        session._started, session._max_body = started, max_body
        return session

    @property
    def request(self) -> Request | None:
        """The request as parsed by its API's reader; None if its reader failed or the body is no JSON object."""
        return self.read_request()

    def read_request(self) -> Request | None:
        """Return the request, and parse it first if needed. Raises the errors of the API's reader once; after that the
        request is None.
        """
        if self._asked is not None:
            asked, self._asked = self._asked, None
            document = as_object(decode_json(asked)) if isinstance(asked, bytes) else asked
            self._request = self.api.read_request(document, urlsplit(self.url).path)
        return self._request

    def respond(self, status: int | None, headers: Mapping[str, str]) -> None:
        self._status, self.reply_headers = status, headers
        if self._head is not None:
            self._head = self._head.but(status=status, response_headers=headers)
        self._framer = Sniffer(headers)

    def feed(self, data: bytes, at: float | None = None) -> None:
        """Read bytes of the reply's body without its content codings, `at` milliseconds after the request."""
        for frame in self.frame(data, at):
            self.read(frame)

    def frame(self, data: bytes, at: float | None = None) -> list[Frame]:
        """Return the frames that these bytes complete. Each must be handed to `read`, in order.

        `feed` does both; a rewriter, which needs the events, calls the two.
        """
        if not data or self._framer is None:
            return []
        if at is not None:
            self._log.add(round(at, 3), data)
        self._size += len(data)
        if not self.unread and self._max_body is not None and self._size > self._max_body:
            self.abandon()
        if self.unread:
            return []
        frames = self._framer.feed(data)
        if (why := self._framer.unreadable) is not None:
            self.unread_because = why
            self.abandon()
            return []
        if frames:
            self._log.count(frames[-1].number + 1)
        return frames

    def read(self, frame: Frame) -> list[Event]:
        """Return the events of a frame and add them to the reply."""
        if self.unread:
            return []
        self._whole = None
        reader, fold = self.reader, self._fold
        if reader is None or fold is None:
            reader = self.reader = self.reader or self.api.reply_reader(streamed=self.streamed)
            fold = self._fold = Fold(streamed=self.streamed)
        events = reader.read(frame)
        if self.listener is not None and fold.streamed:
            self.listener.add(frame, reader.documents.last)
        for event in events:
            fold.push(event)
        if self._log.answer is None and (
            fold.first_token or [one for one in events if isinstance(one, (Failure, Finish, Done))]
        ):
            self._log.answer = frame.number
            self._first_token = self._log.now if fold.first_token else None
        if len(events) == 1 and type(events[0]) is Other and says_nothing(frame):
            self._log.idle.append(frame.number)
        if fold.size > MOST_TEXT and fold.streamed:
            self.abandon()
        return events

    def close(self) -> tuple[list[tuple[Frame, list[Event]]], list[Event]]:
        """Read the rest of the body. Return its frames with their events, and the violations that only the end shows.

        A second call does nothing.
        """
        frames = self._framer.close() if self._framer is not None and not self.unread else []
        if frames:
            self._log.count(frames[-1].number + 1)
        read = [(frame, self.read(frame)) for frame in frames]
        last: list[Event] = []
        if self.reader is not None and self._fold is not None and not self._closed:
            self._closed = True
            last = self.reader.close()
            for event in last:
                self._fold.push(event)
        return read, last

    @property
    def repairable(self) -> bool:
        """Return True if replies of this kind are repaired: a model's successful reply to a request that was read."""
        good = self._status is not None and 200 <= self._status < 300
        return good and self.request is not None and channel_of(self.api.name) == "model"

    @property
    def streamed(self) -> bool:
        return self._framer is not None and self._framer.streamed

    @property
    def framing(self) -> Framing:
        """Form of the reply's body; `whole` until its first bytes show another form."""
        return self._framer.framing if self._framer is not None else "whole"

    def abandon(self) -> None:
        """Stop reading the body, for example if its coding cannot be decoded. The reply is neither checked nor kept."""
        self.unread = True
        self.listener = None
        self.reader = self._fold = None
        if self._framer is not None:
            self._framer = Sniffer(self.reply_headers)

    @property
    def terminated(self) -> bool:
        """Return True if the terminator of the protocol was read. Clients stop reading there."""
        return self._fold is not None and self._fold.terminated

    def finish(self, end: End = "complete", *, error: str | None = None) -> Exchange:
        """Return the exchange after its last byte. `end` says how the body ended."""
        self.close()
        reply = self.reply()
        if self.unread:
            end, reply = "unread", None
        elif end == "client-left" and reply is not None and reply.terminated and (reply.streamed or not reply.faults):
            end = "complete"  # SDKs hang up at the terminator
        notes = [self.unread_because] if self.unread_because is not None else []
        if reply is not None:
            tools = self.request.tools if self.request is not None else ()
            notes += dict.fromkeys(note for part in reply.parts for note in _limit_notes(part, tools))
        return self.head().but(
            reply=reply,
            end=end,
            error=error,
            timing=Timing(self._started, self._log.first, self._first_token, None),
            chunks=self._log.chunks,
            arrivals=self.arrivals(),
            notes=tuple(notes),
        )

    def head(self) -> Exchange:
        """Return the exchange without its reply: the request, and the head of the response once it has arrived."""
        if self._head is None:
            request = self.request
            self._head = Exchange(
                id=self._id,
                api=self.api.name,
                method=self._method,
                url=self.url,
                request_headers=self._headers,
                request=request,
                status=self._status,
                response_headers=self.reply_headers,
                reply=None,
                end="unknown",
                timing=Timing(self._started),
                conversation=name_of(request, self._headers) if request is not None else None,
            )
        return self._head

    def look(self, now: float, arrivals: Arrivals) -> Exchange:
        """Return the exchange so far, `now` milliseconds after the request."""
        timing = Timing(self._started, self._log.first, self._first_token, now)
        return self.head().but(reply=self.reply(), timing=timing, arrivals=arrivals, open=True)

    def arrivals(self) -> Arrivals:
        """Return the times at which events arrived so far."""
        return self._log.arrivals(framed=self.streamed)

    def reply(self) -> Reply | None:
        """Return the reply so far, None if nothing of it was read. A whole reply is always the same object."""
        if self._fold is None:
            return None
        if not self._closed or self.streamed:
            return self._fold.reply()
        if self._whole is None:
            self._whole = self._fold.reply()
        return self._whole


class Engine:
    """Runner of the rules over exchanges, with a ledger. `report(rule name, error)` is called once per failing rule."""

    def __init__(
        self,
        rules: Sequence[Rule],
        ledger: Ledger | None = None,
        report: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self.rules = Scopes.over(rules)
        self.ledger = ledger or Ledger()
        self._report = report
        self._failed: set[str] = set()

    def check(self, exchange: Exchange, *, rules: Scopes | None = None) -> tuple[Finding, ...]:
        """Return the findings on an exchange, in the order of the document, and record the exchange in the ledger.

        `rules`: those to run instead of the engine's.
        """
        findings = self.judge(exchange := self.ledger.place(exchange), rules=rules)
        self.ledger.record(exchange, findings)
        return findings

    def judge(self, exchange: Exchange, *, rules: Scopes | None = None) -> tuple[Finding, ...]:
        """Return the findings on an exchange without recording it in the ledger, for example on its repaired form."""
        exchange = within_limits(exchange)
        asked = (self.rules if rules is None else rules).of(exchange).applicable(channel_of(exchange.api), exchange)
        return self.ledger.recognise(exchange, in_order(self._ask(asked, exchange), exchange))

    def run(self, rule: Rule, exchange: Exchange) -> list[Finding]:
        """Return the findings of one rule, for an exchange that is still open."""
        exchange = within_limits(exchange)
        return self._ask([(rule, checks_of(rule, Kind.of(exchange)))], exchange)

    def _ask(self, asked: Iterable[Applicable], exchange: Exchange) -> list[Finding]:
        findings: list[Finding] = []
        ledger = self.ledger
        for rule, checks in asked:
            try:
                for check in checks:
                    findings += check(exchange, ledger)
            except Exception as error:  # fail open: report the failure on the exchange, run the other rules
                findings.append(internal(f"rule {rule.name}", error))
                if self._report is not None and rule.name not in self._failed:
                    self._report(rule.name, error)
                self._failed.add(rule.name)
        return findings


def _limit_notes(part: Part, tools: Sequence[Tool]) -> Iterator[str]:
    """Yield a note for each limit that a part of a reply exceeds: without findings it may still have faults.

    Each limit bounds how long one reply can delay the other clients of the proxy. The repairs note their own limits.
    """
    match part:
        case Text(text) | Reasoning(text) | Refusal(text):
            end = plain_from(text, frozenset([tool.name for tool in tools]))
            if end is not None:
                yield note_on(end)
            if markup.are_too_many(text[:end], tools):
                most = markup.MOST_MASKED
                yield f"more than {most} calls with code fences in a text of the reply; the others may not be judged"
            if control_tokens.are_too_many(text[:end]):
                most = control_tokens.MOST_TOKENS
                yield f"more than {most:,} control tokens in a text of the reply; they were not checked"
            if is_unread(text, len(text[:end])):
                yield f"the lines after the first {MOST_LINES:,} in a text of the reply count as quoted"
            unread = prose.unread(text[:end]) if isinstance(part, Text) else ()
            yield from (f"the {some} in a text of the reply were not read for claims" for some in unread)
        case ToolCall(name=name, arguments=arguments):
            if len(arguments.text) > MOST_VALUES and len(arguments.values) == MOST_VALUES and arguments.rest:
                yield f"the arguments of {name} are more than {MOST_VALUES} JSON values; the others were not checked"
            mapping = arguments.mapping
            if mapping and len(arguments.text) > placeholders.MOST_VALUES and placeholders.are_too_many(mapping):
                most = placeholders.MOST_VALUES
                yield f"the arguments of {name} hold more than {most} values; the others were not checked for invented ones"


def within_limits(exchange: Exchange) -> Exchange:
    """Return the exchange as the rules see it. A reply that repeats tags in an endless loop is cut to its beginning."""
    reply = exchange.reply
    if reply is None:
        return exchange
    request = exchange.request
    tool_names = frozenset([tool.name for tool in request.tools]) if request is not None else frozenset[str]()
    judged = without_loops(reply, tool_names)
    return exchange if judged is reply else exchange.but(reply=judged)


def internal(culprit: str, error: BaseException) -> Finding:
    """Return the finding that reports a failure of wirelint on an exchange."""
    message = " ".join(f"{culprit} failed: {type(error).__name__}: {error}".split())
    return Finding(INTERNAL, INTERNAL_NAME, "warning", "high", "wirelint", "response", message)


def lower(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return header fields as a mapping of lower-cased names; repeated fields are joined by a comma (RFC 9110, 5.3)."""
    joined: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def in_order(findings: Iterable[Finding], exchange: Exchange) -> list[Finding]:
    """Return findings in the order of the document: the request before the reply, then by event and place.

    Places of a request are compared by their position in its body, those of a reply by its parts, since a streamed
    reply has no body. Places outside of the parts come last.
    """
    body: object = exchange.request.body if exchange.request is not None else None
    parts = [place for one in exchange.choices for place in (*[part.pointer for part in one.parts], one.finish_pointer)]
    numbers = {place: number for number, place in reversed(list(enumerate(parts)))}

    def order(finding: Finding) -> tuple[object, ...]:
        pointer = finding.pointer or ""
        if finding.side == "request":
            return False, -1, -1, document_order(body, pointer), finding.code
        event = finding.event if finding.event is not None else -1
        return True, event, _nearest(pointer, numbers, len(parts)), document_order(None, pointer), finding.code

    return sorted(findings, key=order)


def _nearest(pointer: str, numbers: Mapping[str, int], outside: int) -> int:
    """Return the number of the part that contains a place; `outside` if no part does, -1 for the whole reply."""
    if not pointer:
        return -1
    while pointer and pointer not in numbers:
        pointer = pointer.rpartition("/")[0]
    return numbers.get(pointer, outside)
