"""Small readers of decoded JSON that every API uses. Wrong types read as absent: a linter must not trip over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from wirelint.events import Event, Frame, Other, StreamViolation
from wirelint.model import Json

DONE = "[DONE]"


def document_of(body: bytes) -> Json:
    """What a body says as JSON; None for one that says nothing."""
    try:
        document: Json = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document


def text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def stated_reason(value: Json) -> str | None:
    """Return a finish reason; None for null, an empty text, and the word `"null"` that some servers write for null."""
    return value if isinstance(value, str) and value.lower() not in ("", "null", "none") else None


def number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def mappings(value: Json) -> Sequence[tuple[int, dict[str, Json]]]:
    """The objects of an array with their positions."""
    if not isinstance(value, list):
        return ()
    return [(position, item) for position, item in enumerate(value) if isinstance(item, dict)]


def schema(value: Json) -> dict[str, Json] | None:
    """A JSON Schema that says something; an empty or missing one is none."""
    return value if isinstance(value, dict) and value else None


def is_conversation(body: Mapping[str, Json]) -> bool:
    """Return True if a body has the shape that all chat APIs share: a list of messages, each with a role."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return False
    return bool(messages)


MISSHAPEN = "content as "
_SHAPES: dict[type, str] = {
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
}


def misshapen(value: Json) -> str:
    """The kind of an opaque part for content of a JSON type that the API does not have there.

    >>> misshapen({"type": "text", "text": "Hi"})
    'content as an object with type, text'
    """
    if isinstance(value, dict):
        return f"{MISSHAPEN}an object with {', '.join(value)}"
    return MISSHAPEN + _SHAPES.get(type(value), "null")


def is_misshapen(value: Json) -> bool:
    """Return True if a value is an object or an array with members where the API has text."""
    return bool(value) and isinstance(value, (dict, list))


class Reading(NamedTuple):
    """What a frame completed: its documents, whether `[DONE]` stood in it, and its offences.

    Each document comes with a frame whose data it is: the frame itself, or where documents and frames do not coincide, one
    of the same number that stands for the document alone.
    """

    documents: list[tuple[dict[str, Json], Frame]]
    done: bool
    offences: list[Event]


def told(frame: Frame, events: list[Event]) -> list[Event]:
    """The events of a frame, or `Other` for one that tells nothing, or only that a document before it is broken."""
    last = events[-1] if events else None
    if last is None or (type(last) is StreamViolation and last.kind == "broken-json" and last.frame is not frame):
        events.append(Other(frame))
    return events


class Decoded(NamedTuple):
    """The last frame whose data was exactly one JSON object, and that object; None for `[DONE]`."""

    frame: Frame | None
    document: dict[str, Json] | None


class Documents:
    """The JSON documents of a stream's frames, read as lenient clients read them, with what is wrong about them.

    Two faults of gateways are undone here: several documents in one event, a line each (the blank lines were lost), and
    one document over several events (cut where a chunk ended). The pieces of the latter are held until they make a
    document, or until an event that is one by itself shows that they never will.
    """

    _LONGEST_SPLIT = 1 << 20

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._first: Frame | None = None
        self.last = Decoded(None, None)

    def read(self, frame: Frame) -> Reading:
        data = frame.data
        if data == DONE and self._first is None and not frame.faults:
            self.last = Decoded(frame, None)
            return Reading([], True, [])
        document = _decode(data) if data is not None else None
        if document is not None and self._first is None and not frame.faults:  # nearly all of them
            self.last = Decoded(frame, document)
            return Reading([(document, frame)], False, [])
        offences: list[Event] = [StreamViolation(kind, detail, frame) for kind, detail in frame.faults]
        if data is None:
            return Reading([], False, offences)
        if document is not None:
            return Reading([(document, frame)], False, offences + self.close())
        if data.strip() == DONE:
            return Reading([], True, offences + self.close())
        lines = [line.strip().removeprefix("data:").lstrip() for line in data.split("\n") if line.strip()]
        bare = [line for line in lines if line != DONE]
        whole = [(document, _part_of(frame, line)) for line in bare if (document := _decode(line)) is not None]
        if len(lines) > 1 and len(whole) == len(bare):
            offences.append(StreamViolation("missing-blank-line", f"{len(lines)} documents in one event", frame))
            return Reading(whole, len(bare) < len(lines), offences)
        if len(lines) == 1 and lines[0] != data.strip() and (whole or lines[0] == DONE):
            # `data: data: {…}`: two proxies that both frame. Strict clients take the second name for a part of the JSON.
            return Reading(whole, not whole, [*offences, StreamViolation("doubled-field", data[:60], frame)])
        if not data.strip():
            return Reading([], False, offences)
        return self._join(frame, data, offences)

    def close(self) -> list[Event]:
        """Gives up on pieces that never made a document."""
        if self._first is None:
            return []
        offence = StreamViolation("broken-json", self._pieces[0][:60], self._first)
        self._drop()
        return [offence]

    def _join(self, frame: Frame, data: str, offences: list[Event]) -> Reading:
        if self._first is None and not data.lstrip().startswith("{"):
            return Reading([], False, [*offences, StreamViolation("broken-json", data[:60], frame)])
        self._first = self._first or frame
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._LONGEST_SPLIT:
            return Reading([], False, offences + self.close())
        joined = "".join(self._pieces)
        document = _decode(joined) if len(self._pieces) > 1 else None
        if document is None:
            return Reading([], False, offences)
        offences.append(StreamViolation("split-json", f"one document over {len(self._pieces)} events", self._first))
        named = frame if frame.event is not None else frame._replace(event=self._first.event)
        self._drop()
        return Reading([(document, _part_of(named, joined))], False, offences)

    def _drop(self) -> None:
        self._pieces.clear()
        self._size = 0
        self._first = None


def _part_of(frame: Frame, data: str) -> Frame:
    """A frame in the place of `frame` for one document that is not all there is in it, or more."""
    return Frame(frame.number, b"", frame.event, data)


def _decode(data: str) -> dict[str, Json] | None:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


_SAID = ("message", "msg", "detail", "error_message", "error_msg", "errorMessage", "errMsg", "status_msg")
_CODES = ("code", "statusCode", "status_code", "error_code", "errorCode", "errcode")
_FINE = frozenset({"", "0", "200", "ok", "success", "succeeded"})
_FAILED = frozenset({"error", "fail", "failed", "failure"})


def refusal_of(document: Mapping[str, Json]) -> Json:
    """What stands in the place of a reply where a service says in words of its own that there is none; None elsewhere.

    Some say it as the envelope of all that they answer: `{"code": 1113, "msg": …, "success": false}`; MiniMax beside the
    members of a reply that are null then: `"base_resp": {"status_code": 1004, "status_msg": …}`. For documents without any
    member that a reply of the API has.
    """
    beside = mapping(document.get("base_resp"))
    told = beside or document
    if not any(text(told.get(name)) for name in _SAID) and not document.get("detail") and not document.get("errors"):
        return None
    status = told.get("status")
    codes = [str(told[name]).lower() for name in _CODES if isinstance(told.get(name), str | int)]
    failed = any(code not in _FINE for code in codes) or told.get("success") is False or told.get("ok") is False
    failed = failed or (status in _FAILED if isinstance(status, str) else (number(status) or 0) >= 400)
    return dict(told) if failed or document.keys() == {"detail"} else None


def error_of(document: Mapping[str, Json]) -> Json:
    """The error object of a document; None when there is none (a string counts: some gateways send one).

    Mistral and older vLLM have no `error` member: the document itself is the error, `{"object": "error", "message": …}`.
    """
    if document.get("object") == "error":
        return dict(document)
    error = document.get("error")
    if error is None:
        return None
    if error is True:  # what it was stands beside it
        return dict(document)
    return error if error not in ({}, "", False) else None
