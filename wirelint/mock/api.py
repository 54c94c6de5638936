"""What the mock server needs to know of one wire API. Adding an API is one file with one such object, and a line in
`service.APIS`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import orjson

from wirelint.mock.answer import Event, Headers
from wirelint.mock.plan import Ask, Reply
from wirelint.mock.scenario import Options
from wirelint.model import Json

Ability = Literal["numbers", "text", "reasons", "chat", "calls", "ids", "counts", "ends", "rpc"]
"""What an API can say, and some cannot: in a stream, the id and index of the call that a piece belongs to; arguments that
are no JSON; that a reply ends because of its calls; text that is a turn of its own, and not what follows a prompt; calls;
their ids; at the end of a stream, how many tokens it cost; why a reply ends. `rpc` is of servers of tools."""


class RequestError(ValueError):
    """A request that the vendor would answer with status 400; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is the same in every event of one answer, besides the words. `number` counts the server's requests from 1."""

    model: str
    number: int
    options: Options
    rng: random.Random

    @property
    def created(self) -> int:
        """Unix time of the answer: made up, one second a request, so that equal seeds give equal bytes."""
        return 1_760_000_000 + self.number


class Api(Protocol):
    name: str
    path: str
    """A pattern of paths; its group `model` is the model, where a path has it."""
    abilities: frozenset[Ability]
    busy_status: int
    """How this vendor says that it is overloaded."""
    ping: bytes
    """A keep-alive event that is not a comment; for APIs without one, a comment."""

    def serves(self, headers: Mapping[str, str]) -> bool:
        """Return True if a request at the path is of this API; the first one that says so gets it."""
        ...

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """`target` is the path with its query. Raises RequestError."""
        ...

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str: ...
    def make_headers(self, envelope: Envelope) -> Headers: ...
    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json: ...
    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]: ...
    def make_error(self, status: int, message: str) -> Json: ...
    def make_error_events(self, status: int, message: str) -> list[Event]:
        """How an error is told inside a stream that has begun with status 200."""
        ...


def text_of(content: Json) -> str:
    """The text of a message's content: a string, or a list of parts of which those with text count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") or part.get("content") for part in content if isinstance(part, dict)]
    return "\n".join(text if isinstance(text, str) else text_of(text) for text in texts if text)


def objects_in(value: Json) -> list[dict[str, Json]]:
    """The objects of a list; empty for anything that is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def messages_of(body: dict[str, Json]) -> list[dict[str, Json]]:
    messages = objects_in(body.get("messages"))
    if not messages:
        raise RequestError("messages: a list with one message at least is required")
    return messages


def string_of(value: Json, otherwise: str = "") -> str:
    return value if isinstance(value, str) else otherwise


def object_of(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def count_of(*values: Json) -> int | None:
    """The first value that is a whole number above zero."""
    return next((one for one in values if isinstance(one, int) and not isinstance(one, bool) and one > 0), None)


def decode_object(text: str) -> Json:
    """What an API whose arguments are a JSON value makes of argument text; a string where it is not JSON."""
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value
