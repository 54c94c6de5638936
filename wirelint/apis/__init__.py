"""The APIs that are understood, one file each. Adding one is a file and a line in `APIS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from wirelint.apis import anthropic, openai_chat
from wirelint.events import Event, Frame
from wirelint.model import Json, Request

__all__ = ["APIS", "Api", "ReplyReader", "ReplyWriter", "by_name", "recognise", "recognise_reply"]


class ReplyReader(Protocol):
    """Frames of one reply in, events out. `close` gives the offences that only the end can show."""

    def read(self, frame: Frame) -> list[Event]: ...

    def close(self) -> list[Event]: ...


class ReplyWriter(Protocol):
    """Events of one reply back to bytes; it numbers calls and content blocks, so it must see every frame, in order."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        """The bytes of a frame whose `events` became `out`: `frame.raw` itself when that is the same."""
        ...

    def close(self, out: Sequence[Event]) -> bytes:
        """The bytes of events that come after the last frame, or belong to frames that are gone."""
        ...


class Api(Protocol):
    """What a file in this package offers, as a module."""

    NAME: str

    def claims(self, path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
        """Whether a request is of this API: by path and header first, then by the shape of the body."""
        ...

    def claims_reply(self, document: Mapping[str, Json]) -> bool:
        """Whether a JSON document is a reply, or an event of a streamed reply, of this API."""
        ...

    def read_request(self, body: Mapping[str, Json]) -> Request: ...

    def reply_reader(self, *, streamed: bool) -> ReplyReader: ...

    def reply_writer(self, *, streamed: bool) -> ReplyWriter: ...


APIS: tuple[Api, ...] = (anthropic, openai_chat)


def by_name(name: str) -> Api | None:
    return next((api for api in APIS if name == api.NAME), None)


def recognise(method: str, path: str, headers: Mapping[str, str], body: Json) -> Api | None:
    """The API of a request, or None for traffic that is none of ours. `path` is without the query."""
    if method.upper() != "POST" or not isinstance(body, dict):
        return None
    path = path.rstrip("/")
    return next((api for api in APIS if api.claims(path, headers, body)), None)


def recognise_reply(document: Json) -> Api | None:
    """The API of a reply whose request is lost."""
    if not isinstance(document, dict):
        return None
    return next((api for api in APIS if api.claims_reply(document)), None)
