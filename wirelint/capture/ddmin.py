"""Delta debugging of JSON values, level by level (Zeller; Misherghi and Su): smaller values that still pass a test.

Sans-I/O and deterministic: the same value and the same test give the same result. The test is expensive, so a `Budget`
limits the number of tests; when it is used up, the smallest value so far is the result.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import operator
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from wirelint.capture.format import dump
from wirelint.capture.record import Record
from wirelint.capture.secrets import MARK
from wirelint.capture.streams import Body
from wirelint.engine import lower
from wirelint.jsonvalues import Path, decode_json, inside, strings
from wirelint.model import Json
from wirelint.timing import Timing
from wirelint.wire.aws_eventstream import content_of, with_content

# An exchange as one JSON value, from which a reproducer is reduced.
#
#     {"request": <the body>, "response": <the body>} or {"request": …, "response": [{"n": 0, "data": …, "at": …}, …]}
#
# A stream is a list of its frames, each with the number of its bytes. A frame that holds one JSON document has that
# document as `data`, and its bytes are rebuilt from the document in the frame's own form; any other frame has its
# unchanged `text`.

_TEXTS = frozenset({"content", "text", "delta", "thinking", "reasoning", "reasoning_content", "arguments", "partial_json",
                     "refusal"})  # fmt: skip
"""Members that hold pieces of text."""
_PADDING = frozenset({"obfuscation", "p"})
_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A record without its bodies, and the forms of the bodies. `pieces`: the bytes of a stream's frames. `messages`:
    the frames are AWS messages. `opaque`: the reply cannot be split into parts."""

    base: Record
    value: Json
    pieces: tuple[bytes, ...] | None
    messages: bool
    opaque: bool

    def record(self, value: Json) -> Record:
        """Return the record of a value."""
        assert isinstance(value, dict)
        asked, answer = value.get("request"), value.get("response")
        body = self.base.request_body if asked is None else dump(asked)
        if self.opaque:
            return dataclasses.replace(self.base, request_body=body)
        if self.pieces is None:
            reply = None if answer is None else dump(answer)
            return dataclasses.replace(self.base, request_body=body, response_body=reply, chunks=())
        frames = [(self._bytes(frame), _time(frame)) for frame in (answer if isinstance(answer, list) else [])]
        chunks = tuple((at, len(data)) for data, at in frames if at is not None)
        return dataclasses.replace(
            self.base,
            request_body=body,
            response_body=b"".join(data for data, _ in frames),
            chunks=chunks if len(chunks) == len(frames) else (),
        )

    def without_times(self) -> Draft:
        """Return the draft without times."""
        base = dataclasses.replace(self.base, chunks=(), timing=Timing())
        answer = self.value.get("response") if isinstance(self.value, dict) else None
        if self.pieces is None or not isinstance(answer, list) or not isinstance(self.value, dict):
            return dataclasses.replace(self, base=base)
        timeless: list[Json] = [{**frame, "at": None} for frame in answer if isinstance(frame, dict)]
        return dataclasses.replace(self, base=base, value={**self.value, "response": timeless})

    def _bytes(self, frame: Json) -> bytes:
        if not isinstance(frame, dict) or self.pieces is None or not isinstance(number := frame.get("n"), int):
            return b""
        if isinstance(text := frame.get("text"), str):
            return text.encode("utf-8", "surrogateescape")
        raw, data = self.pieces[number], frame.get("data")
        was = _content(raw, messages=self.messages)
        if data is None or decode_json(was) == data:
            return raw
        return with_content(raw, dump(data)) if self.messages else raw.replace(was, dump(data), 1)


def draft(record: Record) -> Draft:
    """Return the draft of a record. Bodies that are no JSON stay in the base."""
    asked, body = decode_json(record.request_body or b""), record.response_body
    cut = Body(body or b"", lower(record.response_headers))
    if cut.framing == "whole" or not body:
        whole = decode_json(body or b"")
        return Draft(record, {"request": asked, "response": whole}, None, False, opaque=whole is None and bool(body))
    messages = cut.framing == "messages"
    pieces = tuple(frame.raw for frame in cut.frames)
    frames: list[Json] = []
    for number, at in enumerate(_times(pieces, record.chunks)):
        made: dict[str, Json] = {"n": number, "at": at}
        faults, raw = cut.frames[number].faults, pieces[number]
        data = decode_json(_content(raw, messages=messages)) if not faults else None
        if isinstance(data, dict):
            made["data"] = data
        elif not messages:
            made["text"] = raw.decode("utf-8", "surrogateescape")
        frames.append(made)
    return Draft(record, {"request": asked, "response": frames}, pieces, messages, False)


def joined(value: Json) -> Json:
    """Return the value with neighbouring frames merged that differ only in a piece of text.

    A text in one piece is easier to read, and loses less when it is shortened.
    """
    answer = value.get("response") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(answer, list):
        return value
    frames: list[Json] = []
    for frame in answer:
        made = _join(frames[-1], frame) if frames else None
        if made is None:
            frames.append(frame)
        else:
            frames[-1] = made
    return {**value, "response": frames}


def _join(one: Json, other: Json) -> Json:
    if not isinstance(one, dict) or not isinstance(other, dict) or "data" not in one or "data" not in other:
        return None
    before, after = one["data"], other["data"]
    here, there = dict(strings(before)), dict(strings(after))
    differing = [path for path in here if path[-1] not in _PADDING and here[path] != there.get(path)]
    if len(differing) != 1 or here.keys() != there.keys():
        return None
    (path,) = differing
    if path[-1] not in _TEXTS:
        return None
    made = put(before, path, here[path] + there[path])
    # Everything except the text and the padding has to be equal.
    plain = [put(item, path, "") for item in (before, after)]
    for padding in (path for path in here if path[-1] in _PADDING):
        plain = [put(item, padding, "") for item in plain]
    return {**one, "data": made, "at": other.get("at")} if plain[0] == plain[1] else None


def _times(pieces: Sequence[bytes], chunks: tuple[tuple[float, int], ...]) -> Iterator[float | None]:
    """Yield the arrival time of the last byte of each piece."""
    known = sum(size for _, size in chunks) == sum(map(len, pieces))
    ends = iter(chunks if known else ())
    at: float | None = None
    came = end = 0
    for piece in pieces:
        end += len(piece)
        while came < end and (chunk := next(ends, None)) is not None:
            at = chunk[0]
            came += chunk[1]
        yield at


def _content(raw: bytes, *, messages: bool) -> bytes:
    """Return the document in a frame's bytes; empty if there is none."""
    if messages:
        return content_of(raw)
    found = _DATA.findall(raw)
    if len(found) == 1:
        return bytes(found[0]).rstrip(b"\r")
    return raw.strip() if not found else b""


def _time(frame: Json) -> float | None:
    at = frame.get("at") if isinstance(frame, dict) else None
    return float(at) if isinstance(at, (int, float)) else None


T = TypeVar("T")

_WORD = re.compile(r"\S+\s*|\s+")
_PART = re.compile(r"\s+|\w+|[^\w\s]")


class Budget:
    """Limits of a reduction: the number of tests, and seconds."""

    def __init__(self, steps: int = 2500, seconds: float = 30.0) -> None:
        self.steps = 0
        self._most = steps
        self._until = time.monotonic() + seconds

    @property
    def spent(self) -> bool:
        return self.steps >= self._most or time.monotonic() >= self._until

    def take(self) -> bool:
        """Count one test. Return False if the budget is spent."""
        if self.spent:
            return False
        self.steps += 1
        return True


class Shrinker:
    """Reduces a value that passes a test. `value` is the smallest one so far."""

    def __init__(self, value: Json, test: Callable[[Json], bool], budget: Budget) -> None:
        self.value = value
        self.budget = budget
        self._test = test

    def offer(self, value: Json) -> bool:
        """Accept a value if it passes the test."""
        if value == self.value:
            return True
        if not self.budget.take() or not self._test(value):
            return False
        self.value = value
        return True

    def drop(self, path: Path = (), kept: frozenset[str] = frozenset()) -> None:
        """Remove members and elements that the test does not need, from the top down. `kept`: names of members that
        stay, and whose lists do not become empty."""
        if self.budget.spent:
            return
        whole, node = self.value, at(self.value, path)
        keys = [key for key, _ in inside(node) if key not in kept]
        may_be_empty = isinstance(node, dict) or not path or path[-1] not in kept

        def without(left: Sequence[str | int]) -> bool:
            if self.budget.spent or not (left or may_be_empty):
                return False
            return self.offer(put(whole, path, _without(node, set(keys) - set(left))))

        if keys:
            minimise(keys, without)
        for key, _ in inside(at(self.value, path)):
            self.drop((*path, key), kept)

    def plain(self, kept: Callable[[Path, str], bool]) -> Sequence[Path]:
        """Replace texts by neutral ones of the same shape. Return the places of texts that the test needs."""
        places = [path for path, text in strings(self.value) if not kept(path, text) and neutral(text) != text]
        return self._replace(places, neutral)

    def clip(self, longest: int = 48) -> None:
        """Shorten long neutral texts."""
        places = [path for path, text in strings(self.value) if len(text) > longest and neutral(text) == text]
        self._replace(places, lambda text: text[:longest].rsplit(" ", 1)[0])

    def _replace(self, places: Sequence[Path], make: Callable[[str], str]) -> Sequence[Path]:
        """Replace texts by what `make` returns for them. Return the places of texts that the test needs."""
        whole = self.value

        def real(left: Sequence[Path]) -> bool:
            if self.budget.spent:
                return False
            made = whole
            for path in set(places) - set(left):
                made = put(made, path, make(str(at(whole, path))))
            return self.offer(made)

        return minimise(places, real) if places else ()

    def shorten(self, path: Path) -> None:
        """Shorten a text, and replace the parts that the test does not need by neutral ones."""
        words = _split(str(at(self.value, path)), _WORD)

        def shorter(left: Sequence[int]) -> bool:
            return self.offer(put(self.value, path, "".join(words[number] for number in left)))

        minimise(range(len(words)), shorter)
        words = _split(str(at(self.value, path)), _PART)

        def real(left: Sequence[int]) -> bool:
            told = set(left)
            made = (word if number in told else neutral(word) for number, word in enumerate(words))
            return self.offer(put(self.value, path, "".join(made)))

        minimise([number for number, word in enumerate(words) if neutral(word) != word], real)


def minimise(items: Sequence[T], test: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return the fewest items that pass the test; one-minimal if the budget lasts. All items together pass."""
    if test([]):
        return []
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            left = [*items[:start], *items[start + size :]]
            if left and test(left):
                items, parts = left, max(parts - 1, 2)
                break
        else:
            if parts >= len(items):
                break
            parts = min(parts * 2, len(items))
    return items


def neutral(text: str) -> str:
    """Return the neutral text of the same shape: letters become x, digits 0. Redaction marks stay."""
    pieces = itertools.zip_longest(MARK.split(text), MARK.findall(text), fillvalue="")
    return "".join(_plain(between) + mark for between, mark in pieces)


def _plain(text: str) -> str:
    return "".join(("X" if one.isupper() else "x") if one.isalpha() else "0" if one.isdigit() else one for one in text)


def _split(text: str, form: re.Pattern[str]) -> list[str]:
    """Return the pieces of a text. A redaction mark is one piece."""
    words: list[str] = []
    for between, mark in itertools.zip_longest(MARK.split(text), MARK.findall(text), fillvalue=""):
        words += form.findall(between)
        if mark:
            words.append(mark)
    return words


def at(value: Any, path: Path) -> Json:
    found: Json = functools.reduce(operator.getitem, path, value)
    return found


def put(value: Any, path: Path, new: Json) -> Any:
    """Return a copy of the value with a new value at a path."""
    if not path:
        return new
    made = copy.copy(value)
    made[path[0]] = put(value[path[0]], path[1:], new)
    return made


def _without(value: Json, keys: set[str | int]) -> Json:
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if name not in keys}
    return [item for number, item in enumerate(value) if number not in keys] if isinstance(value, list) else value
