"""Streams with broken framing, read strictly by the standard after the fix."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.build import chunk, events_of, exchange, sse
from tests.fixes.drive import SAFE, UNSAFE, run
from tests.tables import rows, tables

TABLES = tables(__file__)

ASKED = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Two words, please."}]}
GOOD, NIGHT, END = chunk({"content": "Good"}), chunk({"content": " night"}), chunk({}, "stop")
HEAD = {"type": "message_start", "message": {"id": "msg_1", "type": "message", "content": []}}
OPEN = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
HELLO = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
CLOSE = {"type": "content_block_stop", "index": 0}
REASON = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn", "stop_sequence": None},
    "usage": {"output_tokens": 3},
}
STOP = {"type": "message_stop"}
DONE = "[DONE]"
SPLIT = json.dumps(NIGHT)

Told = tuple[str | None, Any]
"""An event: its name and its document, the text of its data where that is none, or a comment."""


def line(document: Any, name: str = "data: ") -> str:
    return name + (document if isinstance(document, str) else json.dumps(document))


def one(document: Any) -> str:
    """An event without a name."""
    return line(document) + "\n\n"


def named(*documents: Any) -> str:
    return sse(*documents, named=True)


def strictly(stream: str) -> Iterator[Told]:
    """The events of a stream by the letter of the standard, documents decoded, and its comments."""
    for name, data in events_of(stream, comments=True):
        yield name, data if data == DONE or data.startswith(":") else json.loads(data)


def record(path: str, reply: str) -> Mapping[str, Any]:
    asked = ASKED if path.endswith("completions") else {**ASKED, "max_tokens": 64}
    return exchange(path, asked, reply, content_type="text/event-stream")


def events(told: list[Any], *, names: bool) -> list[Told]:
    return [(each["type"] if names and isinstance(each, dict) else None, each) for each in told]


CHAT_PATH, MESSAGES_PATH = "/v1/chat/completions", "/v1/messages"


# path, the stream that came, the events that leave
@rows(TABLES["fixed"])
def test_a_stream_becomes_well_formed(path: str, came: str, expected: list[Any]) -> None:
    done = run(record(path, came), ["ST601"], SAFE)
    assert list(strictly(done.delivered.decode())) == events(expected, names=path == MESSAGES_PATH)
    assert {repair.safety for repair in done.repairs} == {"safe"}
    assert done.left == ()


@rows(TABLES["unchanged"])
def test_damage_beyond_repair_leaves_unchanged(path: str, came: str) -> None:
    for complete in (True, False):
        done = run(record(path, came), ["ST601"], SAFE, complete=complete)
        assert done.delivered == came.encode()
        assert done.repairs == ()


def test_a_block_that_starts_twice_is_stopped_once() -> None:
    done = run(record(MESSAGES_PATH, named(HEAD, OPEN, HELLO, OPEN, HELLO, REASON, STOP)), ["ST601"], SAFE)
    wanted = [HEAD, OPEN, HELLO, OPEN, HELLO, CLOSE, REASON, STOP]
    assert list(strictly(done.delivered.decode())) == events(wanted, names=True)


DIED = {
    "the terminator": one(GOOD) + one(END),
    "the last blank line": one(GOOD) + line(END),
    "the rest of a document": one(GOOD) + one(END) + one(SPLIT[:30]),
}


@pytest.mark.parametrize("came", DIED.values(), ids=DIED)
def test_a_dead_stream_is_not_completed(came: str) -> None:
    done = run(record(CHAT_PATH, came), ["ST601"], SAFE, complete=False)
    assert done.delivered == came.encode()
    assert done.repairs == ()


def test_a_broken_event_is_written_once() -> None:
    """An offence that is known with the next event is nothing that this event says."""
    broken = line('{"a": "\\a"}') + "\n"
    came = f"{broken}{line(GOOD)}\n{line(NIGHT)}\n\n{one(END)}{one(DONE)}"
    done = run(record(CHAT_PATH, came), ["ST601"], SAFE)
    assert done.delivered.decode() == broken + "".join(map(one, (GOOD, NIGHT, END, DONE)))


def test_the_pieces_of_a_huge_document_do_not_wait() -> None:
    text = json.dumps(chunk({"content": "x" * 100_000}))
    pieces = [text[start : start + 9_000] for start in range(0, len(text), 9_000)]
    came = one(GOOD) + "".join(map(one, pieces)) + one(END) + one(DONE)
    done = run(record(CHAT_PATH, came), ["ST601"], SAFE)
    assert done.delivered == came.encode()
    assert done.notes == ("a document over several events is too long to be joined",)
    # Later ones are joined again.
    again = came.removesuffix(one(END) + one(DONE)) + one(SPLIT[:30]) + one(SPLIT[30:]) + one(END) + one(DONE)
    done = run(record(CHAT_PATH, again), ["ST601"], SAFE)
    assert done.delivered.decode().startswith(came.removesuffix(one(END) + one(DONE)))
    assert [told for _, told in strictly(done.delivered.decode().removeprefix(came[: -len(one(END) + one(DONE))]))] == [
        NIGHT,
        END,
        DONE,
    ]


def test_events_leave_with_their_last_byte() -> None:
    """Every event leaves with its last byte, a stop reason after open blocks excepted."""
    came = named(HEAD, OPEN, HELLO, REASON, CLOSE, STOP).encode()
    edges = [place + 2 for place in range(len(came)) if came.startswith(b"\n\n", place)]
    done = run(record(MESSAGES_PATH, came.decode()), ["ST601"], SAFE, cuts=edges[:-1])
    assert [piece.count(b"data:") for piece in done.pieces] == [1, 1, 1, 1, 1, 1]
    for end in range(1, len(edges)):
        part = came[: edges[end - 1]]
        left = run(record(MESSAGES_PATH, part.decode()), ["ST601"], SAFE, complete=False)
        assert left.delivered == part


@pytest.mark.parametrize("between", ["\n\n", "\n"], ids=["before a blank line", "with the first piece"])
def test_a_document_over_two_events_has_the_name_of_the_first(between: str) -> None:
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "!"}
    text = json.dumps(delta)
    came = f"event: response.output_text.delta{between}{one(text[:60])}{one(text[60:])}"
    asked = {"model": "acme-1", "stream": True, "input": "Two words, please."}
    done = run(exchange("/v1/responses", asked, came, content_type="text/event-stream"), ["ST601"], SAFE)
    assert ("response.output_text.delta", delta) in list(strictly(done.delivered.decode()))


def test_an_item_of_a_response_that_is_never_done_is_left() -> None:
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": []}
    answer = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "output": [{"id": "s", "type": "reasoning"}, item],
    }
    came = named(
        {"type": "response.output_item.added", "output_index": 1, "item": item},
        {"type": "response.completed", "response": answer},
    )
    asked = {"model": "acme-1", "stream": True, "input": "Two words, please."}
    done = run(exchange("/v1/responses", asked, came, content_type="text/event-stream"), ["ST601"], SAFE)
    assert done.delivered.decode() == came
    assert done.repairs == ()
    assert [finding.fix for finding in done.findings] == [None]


@pytest.mark.parametrize("came", [json.dumps(END) + "\n", json.dumps(END, indent=1)], ids=["one line", "written out"])
@pytest.mark.parametrize("path", [CHAT_PATH, "/v1/messages"])
def test_lines_are_left_where_the_api_streams_events(path: str, came: str) -> None:
    """A whole reply is often declared as lines by mistake. Neither events nor a terminator of events are put into it."""
    case = dict(record(path, came))
    case["response"] = {**case["response"], "headers": {"content-type": "application/x-ndjson"}}
    done = run(case, [], UNSAFE)
    assert done.delivered.decode() == came
    assert done.repairs == ()
