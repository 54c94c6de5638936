"""JSON values: their decoding, the strings inside them, and the argument text of a tool call."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import orjson

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A decoded JSON value."""

Path: TypeAlias = tuple[str | int, ...]
"""Place of a value inside another one: names of members, numbers of elements."""

_JSON_SPACE = " \t\r\n"
MOST_VALUES = 256
"""Most values that are read from one text. `0000…` is a hundred thousand values, and every argument rule would look at
each."""


def write(value: Json) -> str:
    """Return a value as JSON text without white space; escaped to ASCII if it holds lone surrogates."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # lone surrogates, integers of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape of a JSON text. The group is half of a surrogate pair without its other half."""


def decode_json(text: str | bytes) -> Json:
    """Return the value of a JSON text; None if it is not JSON.

    Half of a surrogate pair (`"\\ud83d"`, from a client that cuts its texts in the middle of a character) becomes U+FFFD.
    """
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if b"\\ud" not in data.lower():
            return None
        whole = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)
        return decode_json(whole) if whole != data else None
    return value


def decode_object(text: str | bytes) -> dict[str, Json]:
    """Return the object of a JSON text; an empty one if it is no object."""
    return mapping(decode_json(text))


class _Decoded(NamedTuple):
    values: tuple[Json, ...]
    ends: tuple[int, ...]
    rest: str


class Arguments:
    """The argument text of a tool call, decoded once, on demand.

    `values` are the top-level JSON values in order (one, for healthy arguments), at most `MOST_VALUES`. `rest` is the text
    after the last readable value, without white space around it; it is empty if the text is a sequence of JSON values.
    `ends` are the offsets after each value. JSON is that of RFC 8259: `NaN` is not JSON, while numbers may have any size
    and escaped surrogates may be lone.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def of(cls, value: Json) -> Arguments:
        """Return arguments that the wire carries as a JSON value, not as text (Anthropic's `input`)."""
        made = cls(orjson.dumps(value).decode())
        made._decoded = _Decoded((value,), (len(made.text),), "")
        return made

    @property
    def values(self) -> tuple[Json, ...]:
        return self._decoded.values

    @property
    def ends(self) -> tuple[int, ...]:
        return self._decoded.ends

    @property
    def rest(self) -> str:
        return self._decoded.rest

    @property
    def value(self) -> Json:
        """The value, if the text is exactly one JSON value; else None."""
        return self.values[0] if len(self.values) == 1 and not self.rest else None

    @property
    def mapping(self) -> dict[str, Json] | None:
        """The arguments, if the text is exactly one JSON object, as it should be; else None."""
        value = self.value
        return value if isinstance(value, dict) else None

    @cached_property
    def _decoded(self) -> _Decoded:
        try:
            return _Decoded((orjson.loads(self.text),), (len(self.text.rstrip(_JSON_SPACE)),), "")
        except orjson.JSONDecodeError:
            found = tuple(itertools.islice(_scan_values(self.text), MOST_VALUES))
            ends = tuple(end for _, end in found)
            rest = self.text[ends[-1] if ends else 0 :].strip(_JSON_SPACE)
            return _Decoded(tuple(value for value, _ in found), ends, rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arguments) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Arguments({self.text!r})"


def _scan_values(text: str) -> Iterator[tuple[Json, int]]:
    """Yield the top-level JSON values of a text with the offset after each, up to the first character of none."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    position, size = 0, len(text)
    while position < size:
        if text[position] in _JSON_SPACE:
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        yield value, position


def _refuse(constant: str) -> Json:
    raise ValueError(constant)


def inside(value: Json) -> Iterable[tuple[str | int, Json]]:
    """Return the members of an object or the elements of an array; nothing for other values."""
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def strings(value: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield all strings that are values inside a value, with their places."""
    if isinstance(value, str):
        yield path, value
    for key, item in inside(value):
        yield from strings(item, (*path, key))


def with_strings(value: Json, made: Callable[[str], Json], name: Callable[[str], str] = str) -> Json:
    """Return a copy of a value with what `made` and `name` return for its strings and for the names of its members."""
    match value:
        case str():
            return made(value)
        case dict():
            return {name(key): with_strings(item, made, name) for key, item in value.items()}
        case list():
            return [with_strings(item, made, name) for item in value]
        case _:
            return value


def common_length(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


# --- narrowing ---------------------------------------------------------------------------------------------------------


def text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def mappings(value: Json) -> Sequence[tuple[int, dict[str, Json]]]:
    """Return the objects of an array with their positions."""
    if not isinstance(value, list):
        return ()
    return [(position, item) for position, item in enumerate(value) if isinstance(item, dict)]
