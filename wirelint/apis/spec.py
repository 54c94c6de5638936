"""The description of one API: `ApiSpec` with its name, recognition, reader, writer, traits and history layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wirelint.apis.reading import Documents
from wirelint.events import Event, Frame
from wirelint.model import Json, Request

Headers = Mapping[str, str]
Body = Mapping[str, Json]


class ReplyReader(Protocol):
    """Reader of one reply: frames to events. `close` returns violations that only the end of the stream can show."""

    documents: Documents
    """Decoder of the frames."""

    def read(self, frame: Frame) -> list[Event]: ...

    def close(self) -> list[Event]: ...


class ReplyWriter(Protocol):
    """Writer of one reply: events to bytes. It numbers calls and content blocks, so it must see every frame, in order."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        """Return the bytes of a frame whose `events` became `out`: `frame.raw` itself if nothing changed."""
        ...

    def close(self, out: Sequence[Event]) -> bytes:
        """Return the bytes of events that come after the last frame, or belong to removed frames."""
        ...


class RequestReader(Protocol):
    def __call__(self, body: Body, path: str = "") -> Request:
        """Return the request of a JSON body. `path` is that of its URL; some APIs put the model there."""
        ...


class ReaderFactory(Protocol):
    def __call__(self, *, streamed: bool) -> ReplyReader: ...


@dataclass(frozen=True, slots=True)
class Traits:
    """Peculiarities of an API, beside the shape of its bodies.

    Places are JSON Pointers in a whole body, with `{}` for the candidate's number. None: the API has no such place.
    """

    ended: str
    """Finish reason of a complete reply."""
    calls: str
    """Finish reason of a reply with calls; equal to `ended` where calls end like anything else."""
    finish_at: str
    text_at: str
    reasoning_at: str | None
    reasoning: str
    """The vendor's word for reasoning, for titles of fixes."""
    calls_at: str | None

    finish_reasons: frozenset[str] | None = None
    """The documented finish reasons. None: not documented as a closed list."""
    arguments: Literal["text", "object", "block"] = "text"
    """Form of arguments on the wire: JSON in a string; an object; or `block`, an object in a whole body that a stream sends
    as text after a start with an empty object."""
    text_only: bool = False
    """True if an object in the place of text is a fault, since clients of the API accept a string and nothing else."""
    call_ids: bool = True
    """True if every call has an id. Otherwise calls are known by their order, and an id is an extra."""
    call_index: bool = True
    """True if the calls of a stream are numbered, so that a number can be missing or used twice."""
    ends_repeat: bool = False
    """True if the end of a call repeats the whole call. Then an id alone starts no other call, and two calls that share a
    number cannot be separated."""
    id_model: str | None = "call_" + "A" * 24
    """A call id in the vendor's format. None: the vendor sends no ids."""
    strict_ids: bool = False
    """True if ids consist of letters, digits, `_` and `-` only, so that `functions.NAME:N` may be refused."""
    blocks: bool = False
    """True if a reply is a sequence of content blocks that start and stop one after the other."""
    head_everywhere: bool = False
    """True if each event of a stream repeats the id of the reply."""
    finishes: bool = True
    """True if a complete reply always has a finish reason."""
    raw: bool = False
    """True if the prompt is the output of a chat template, so that the reply contains the model's own markup."""
    framings: frozenset[str] = frozenset({"events"})
    """The stream framings that the writer supports. A stream in another framing passes unchanged."""
    choosing_ends: bool = False
    """True if a reply to a forced function ends like any other (documented by OpenAI)."""
    always_reports_usage: bool = False
    """True if streams end with token counts even if the request does not ask for them."""

    @property
    def opens(self) -> bool:
        """Return True if streams of the API begin with events that carry no content yet."""
        return self.blocks or self.ends_repeat

    @property
    def tells_calls(self) -> bool:
        """Return True if the finish reason distinguishes a reply with calls from one without."""
        return self.calls != self.ended

    def start_holds_arguments(self, *, streamed: bool) -> bool:
        """Return True if the start of a call carries its arguments as a value, and no text follows."""
        return self.arguments == "object" or (self.arguments == "block" and not streamed)


@dataclass(frozen=True, slots=True)
class History:
    """Layout of the messages in an API's requests: where calls and results are, and their ids. Default: OpenAI's chat.

    With OpenAI's chat a result is a message of its own. With Anthropic, Converse and Gemini it is a block of a message that
    may also hold a user's text. With Responses calls, results and texts are items of one array.
    """

    place: str = "/messages"
    """Pointer of the array of messages or items."""
    content: str | None = "content"
    """The member of a message that lists its blocks, results and calls among them. None: an item is one thing."""
    call_id: str = "id"
    """Place of a call's id, below the call's pointer."""
    result_id: str = "tool_call_id"
    arguments: str = "function/arguments"
    """Place of a call's arguments, below the call's pointer."""
    blocks: bool = False
    """True if calls and results are blocks of messages, and a message must not be empty."""
    next_message: bool = False
    """True if results must be in the message right after their calls."""
    counted: bool = False
    """True if the API refuses a history with more results than calls, with or without ids."""


def _any_path(path: str) -> bool:
    return True


def _no_other(method: str, path: str, headers: Headers, body: Json) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSpec:
    """One API. To add one, write a module with an `ApiSpec` and list it in `wirelint.apis.APIS`."""

    name: str
    claims: Callable[[str, Headers, Body], bool]
    """Return True if a POST of a JSON object (path, headers, body) belongs to this API."""
    claims_reply: Callable[[Body], bool]
    """Return True if a JSON document is a reply, or an event of a streamed reply, of this API."""
    read_request: RequestReader
    reply_reader: ReaderFactory
    stream_writer: Callable[[], ReplyWriter]
    whole_writer: Callable[[], ReplyWriter]
    traits: Traits
    history: History = field(default=History())
    serves: Callable[[str], bool] = _any_path
    """Return True if requests of this API may come at a path. Checked before `claims`, and cached."""
    claims_other: Callable[[str, str, Headers, Json], bool] = _no_other
    """Return True if a request that is not a POST of an object belongs to this API: method, path, headers, body."""
    channel: Literal["model", "mcp"] = "model"
    """The other end: a model, or a server of tools."""

    def reply_writer(self, *, streamed: bool) -> ReplyWriter:
        return self.stream_writer() if streamed else self.whole_writer()
