"""The description of one API: `ApiSpec` with its name, recognition, reader and writers. Traits are in `traits.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from wirelint.apis.reading import ReplyReader
from wirelint.events import Event, Frame
from wirelint.model import Json, Request

Headers = Mapping[str, str]
Body = Mapping[str, Json]


class ReplyWriter(Protocol):
    """Writer of one reply: events to bytes. It numbers calls and content blocks, so it must see every frame, in order."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        """Return the bytes of a frame after its `events` were replaced by `out`: `frame.raw` itself if they are
        equal."""
        ...

    def close(self, out: Sequence[Event]) -> bytes:
        """Return the bytes of events after the last frame, or of removed frames."""
        ...


class RequestReader(Protocol):
    def __call__(self, body: Body, path: str = "") -> Request:
        """Return the request of a JSON body. `path` is that of its URL; some APIs put the model there."""
        ...


class ReaderFactory(Protocol):
    def __call__(self, *, streamed: bool) -> ReplyReader: ...


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
    claims_other: Callable[[str, str, Headers, Json], bool] = lambda _method, _path, _headers, _body: False
    """Return True if a request that is not a POST of an object belongs to this API: method, path, headers, body."""
    channel: Literal["model", "mcp"] = "model"
    """The other end: a model, or a tool server (MCP)."""

    def reply_writer(self, *, streamed: bool) -> ReplyWriter:
        return self.stream_writer() if streamed else self.whole_writer()
