"""The APIs that are understood, one file each. Adding one is a file and a line in `APIS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

from wirelint.apis import (
    anthropic,
    bedrock,
    cohere,
    deepinfra,
    gemini,
    mcp,
    mistral,
    ollama,
    openai_chat,
    openai_completions,
    openai_responses,
)
from wirelint.apis.declared import repeated
from wirelint.apis.reading import Documents, document_of
from wirelint.events import Event, Frame
from wirelint.model import Json, Request

__all__ = [
    "APIS",
    "Api",
    "ReplyReader",
    "ReplyWriter",
    "as_object",
    "by_name",
    "channel_of",
    "document_of",
    "read_request",
    "recognise",
    "recognise_reply",
    "repeated",
    "rereading",
]


@runtime_checkable
class Routed(Protocol):
    """An API in whose paths stands what others have in the body: the model, whether the reply is to be streamed."""

    def read_request_at(self, body: Mapping[str, Json], path: str) -> Request: ...


@runtime_checkable
class Rereading(Protocol):
    """An API that reads a request again by what is new in it: what both bodies share they share as the same objects."""

    def read_request_again(self, body: Mapping[str, Json], before: Request) -> Request: ...


@runtime_checkable
class Channelled(Protocol):
    """An API that is not spoken with a model."""

    channel: str


@runtime_checkable
class Unbound(Protocol):
    """An API that has requests which are no posted objects: arrays, streams that are opened, sessions that end."""

    def claims_other(self, method: str, path: str, headers: Mapping[str, str], body: Json) -> bool: ...


@runtime_checkable
class Placed(Protocol):
    """An API that has paths of its own."""

    def serves(self, path: str) -> bool: ...


class ReplyReader(Protocol):
    """Frames of one reply in, events out. `close` gives the offences that only the end can show.

    `documents` decodes the frames.
    """

    documents: Documents

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
        """Return True if a request is of this API: by path and header first, then by the shape of the body."""
        ...

    def claims_reply(self, document: Mapping[str, Json]) -> bool:
        """Return True if a JSON document is a reply, or an event of a streamed reply, of this API."""
        ...

    def read_request(self, body: Mapping[str, Json]) -> Request: ...

    def reply_reader(self, *, streamed: bool) -> ReplyReader: ...

    def reply_writer(self, *, streamed: bool) -> ReplyWriter: ...


APIS: tuple[Api, ...] = (
    anthropic,
    bedrock,
    openai_completions,
    deepinfra,
    openai_responses,
    ollama.CHAT,
    ollama.GENERATE,
    cohere,
    gemini,
    mistral,
    openai_chat,
    mcp,
)

_ROUTED = {api.NAME: api for api in APIS if isinstance(api, Routed)}
_REREADING = {api.NAME: api for api in APIS if isinstance(api, Rereading)}
_CHANNELS = {api.NAME: api.channel for api in APIS if isinstance(api, Channelled)}


def by_name(name: str) -> Api | None:
    return next((api for api in APIS if name == api.NAME), None)


def rereading(name: str) -> Rereading | None:
    return _REREADING.get(name)


def channel_of(name: str) -> str:
    """What is at the other end of an API: `model`, or `mcp` for servers of tools."""
    return _CHANNELS.get(name, "model")


def as_object(document: Json) -> dict[str, Json]:
    """A request's body as an object: the elements of an array by their numbers, so that pointers into both are the same."""
    if isinstance(document, list):
        return {str(number): item for number, item in enumerate(document)}
    return document if isinstance(document, dict) else {}


def read_request(api: Api, body: Mapping[str, Json], path: str) -> Request:
    """A request as its API understands it. `path` is that of its URL."""
    routed = _ROUTED.get(api.NAME)
    return routed.read_request_at(body, path) if routed is not None else api.read_request(body)


def recognise(method: str, path: str, headers: Mapping[str, str], body: Json, host: str = "") -> Api | None:
    """The API of a request, or None for traffic that is none of ours. `path` is without the query.

    `host` is that of the URL: HTTP/2 has no such header, and recordings leave it out.
    """
    path, method = path.rstrip("/"), method.upper()
    if method != "POST" or not isinstance(body, dict):
        return next(
            (api for api in APIS if isinstance(api, Unbound) and api.claims_other(method, path, headers, body)), None
        )
    if host and "host" not in headers:
        headers = {**headers, "host": host}
    for api in _may_serve(path):
        if api.claims(path, headers, body):
            return api
    return None


@lru_cache(maxsize=256)
def _may_serve(path: str) -> tuple[Api, ...]:
    """The APIs whose requests may come at a path: an agent asks at one place."""
    return tuple([api for api in APIS if not isinstance(api, Placed) or api.serves(path)])


def recognise_reply(document: Json) -> Api | None:
    """The API of a reply whose request is lost."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return None
    return next((api for api in APIS if api.claims_reply(document)), None)
