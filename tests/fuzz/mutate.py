"""Damage to a message: of its bytes, of the events of a stream, of the JSON documents in it, of the texts in those."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import re
from collections.abc import Callable
from typing import Any

from tests.tables import tables
from wirelint.capture.record import Record

TABLES = tables(__file__)
MARKUP: list[str] = TABLES["markup"]
PIECES = (*MARKUP, "<think>", "</think>", "\ud800", "\ufeff")
"""Strings at which something may begin or end, or that a careless reader trips over."""
_VALUES: list[Any] = TABLES["values"]
_EVENT = re.compile(rb"(?:\r\n\r\n|\n\n|\r\r|(?<=\})\n)")

Change = Callable[[random.Random, bytes], bytes]


def mutated(record: Record, chance: random.Random) -> tuple[Record, str]:
    """The exchange with one to three kinds of damage, mostly in the reply; and what was done."""
    done: list[str] = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        name = chance.choice(tuple(_CHANGES))
        side = "request" if chance.random() < 0.2 else "response"
        body = (record.request_body if side == "request" else record.response_body) or b""
        made = _CHANGES[name](chance, body)[:60_000]
        done.append(f"{side} {name}")
        record = (
            dataclasses.replace(record, request_body=made)
            if side == "request"
            else dataclasses.replace(record, response_body=made, chunks=())
        )
    if chance.random() < 0.05:
        headers = {**dict(record.response_headers), "content-type": chance.choice(_TYPES)}
        record = dataclasses.replace(record, response_headers=tuple(headers.items()))
        done.append("content-type")
    return record, ", ".join(done)


_TYPES = ("", "text/event-stream", "application/json", "application/x-ndjson", "text/plain; charset=utf-16")


def _places(chance: random.Random, size: int) -> tuple[int, int]:
    start = chance.randint(0, size)
    return start, min(size, start + chance.choice((0, 1, 1, 2, 5, 20, 100, 1000)))


def _flip(chance: random.Random, body: bytes) -> bytes:
    made = bytearray(body)
    for _ in range(chance.randint(1, 8) if body else 0):
        made[chance.randrange(len(made))] = chance.choice((chance.randrange(256), *b'"{}[]\\:,\n\r<>| '))
    return bytes(made)


def _delete(chance: random.Random, body: bytes) -> bytes:
    start, end = _places(chance, len(body))
    return body[:start] + body[end:]


def _double(chance: random.Random, body: bytes) -> bytes:
    start, end = _places(chance, len(body))
    return body[:end] + body[start:end] * chance.choice((1, 1, 2, 10)) + body[end:]


def _truncate(chance: random.Random, body: bytes) -> bytes:
    return body[: chance.randint(0, len(body))]


def _insert(chance: random.Random, body: bytes) -> bytes:
    start, _ = _places(chance, len(body))
    piece = chance.choice(PIECES).encode("utf-8", "surrogatepass")
    return body[:start] + piece * chance.choice((1, 1, 1, 2, 50)) + body[start:]


def _recode(chance: random.Random, body: bytes) -> bytes:
    text = body.decode("utf-8", "replace")
    kind = chance.choice(("utf-16", "utf-8-sig", "latin-1", "cp1252", "utf-8"))
    made = text.encode(kind, "replace")
    return made if kind != "utf-8" else body.decode("latin-1").encode("utf-8")


def events_of(body: bytes) -> list[bytes]:
    edges = [0, *(match.end() for match in _EVENT.finditer(body)), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(edges) if a < b]


def _swap_events(chance: random.Random, body: bytes) -> bytes:
    events = events_of(body)
    if len(events) > 1:
        one, other = chance.randrange(len(events)), chance.randrange(len(events))
        events[one], events[other] = events[other], events[one]
    return b"".join(events)


def _drop_event(chance: random.Random, body: bytes) -> bytes:
    events = events_of(body)
    if events:
        events.pop(chance.randrange(len(events)))
    return b"".join(events)


def _repeat_event(chance: random.Random, body: bytes) -> bytes:
    events = events_of(body)
    if events:
        place = chance.randrange(len(events))
        events[place:place] = [events[place]] * chance.choice((1, 1, 3, 30))
    return b"".join(events)


def _line_ends(chance: random.Random, body: bytes) -> bytes:
    return body.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\n:\n", b"")))


def _document(change: Callable[[random.Random, list[tuple[Any, Any]]], None]) -> Change:
    """Damage of one JSON document: `change` gets all containers with a key of each."""

    def run(chance: random.Random, body: bytes) -> bytes:
        events = events_of(body) or [body]
        place = chance.randrange(len(events))
        event = events[place]
        start, end = event.find(b"{"), event.rfind(b"}") + 1
        try:
            document = json.loads(event[start:end])
        except ValueError:
            return _flip(chance, body)
        holder = [document]
        change(chance, list(_nodes(holder)))
        made = json.dumps(holder[0], ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
        events[place] = event[:start] + made + event[end:]
        return b"".join(events)

    return run


def _nodes(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _nodes(inner)


@_document
def _replace(chance: random.Random, nodes: list[tuple[Any, Any]]) -> None:
    holder, key = chance.choice(nodes)
    holder[key] = chance.choice(_VALUES)


@_document
def _remove(chance: random.Random, nodes: list[tuple[Any, Any]]) -> None:
    holder, key = chance.choice(nodes)
    if isinstance(holder, dict):
        del holder[key]


@_document
def _copy(chance: random.Random, nodes: list[tuple[Any, Any]]) -> None:
    holder, key = chance.choice(nodes)
    other, place = chance.choice(nodes)
    holder[key] = json.loads(json.dumps(other[place]))


@_document
def _text(chance: random.Random, nodes: list[tuple[Any, Any]]) -> None:
    texts = [(holder, key) for holder, key in nodes if isinstance(holder[key], str)]
    if texts:
        holder, key = chance.choice(texts)
        at = chance.randint(0, len(holder[key]))
        holder[key] = holder[key][:at] + chance.choice(PIECES) * chance.choice((1, 1, 1, 2, 40)) + holder[key][at:]


_CHANGES: dict[str, Change] = {
    "bytes flipped": _flip,
    "bytes deleted": _delete,
    "bytes doubled": _double,
    "cut off": _truncate,
    "piece inserted": _insert,
    "recoded": _recode,
    "events swapped": _swap_events,
    "event dropped": _drop_event,
    "event repeated": _repeat_event,
    "other line ends": _line_ends,
    "value replaced": _replace,
    "member removed": _remove,
    "value copied": _copy,
    "text changed": _text,
    "text changed again": _text,
}
