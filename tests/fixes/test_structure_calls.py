"""Fixes of ids, indexes and names of calls, and of finish reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.build import Call, Talk, User, chunk, events_of, schema, some, sse, turns_of
from tests.fixes.argument_streams import anthropic, block, openai
from tests.fixes.drive import UNSAFE, run
from tests.selection import in_batches
from tests.tables import tables
from wirelint.model import Reply

CHAT, CLAUDE = "openai.chat", "anthropic.messages"
TABLES = tables(__file__)

ASK = (User("Feed the animals."),)
TOOLS = {"feed": schema(who="string"), "Brush": schema(who="string"), "mcp__barn__open_gate": schema()}
OWL, CAT = '{"who":"owl"}', '{"who":"cat"}'
NEW = "a new id"
"""Stands for an id that the repair has made."""


def entry(
    index: int | None, id_: str | None = None, name: str | None = None, text: str | None = None
) -> dict[str, Any]:
    """An entry of `tool_calls`; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", text)) if value is not None}
    made: dict[str, Any] = {"function": function}
    return made | ({} if index is None else {"index": index}) | ({} if id_ is None else {"id": id_})


def stream(*deltas: Any, reason: str | None = "tool_calls", done: bool = True) -> dict[str, Any]:
    """A stream of deltas: lists are entries of `tool_calls`, texts are content."""
    told = ({"tool_calls": delta} if isinstance(delta, list) else {"content": delta} for delta in deltas)
    return openai(*map(chunk, told), finish=reason, done=done, tools=TOOLS)


def claude(*events: dict[str, Any]) -> dict[str, Any]:
    return anthropic(*events, tools=TOOLS)


def use(index: int, id_: str, name: str, *pieces: str, start: Any = None, stop: bool = True) -> list[dict[str, Any]]:
    """A block with a call, its input in pieces."""
    return block(start or {}, *pieces, index=index, name=name, id_=id_, stop=stop)


def words(index: int, text: str) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": index},
    ]


def streamed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The stream of a row: `deltas` of OpenAI with the entries of each, or `blocks` of Anthropic, or what is `said`."""
    if "said" in row:
        return talk_of(row).record(CHAT, True)
    if "deltas" in row:
        return stream(*([entry(*each) for each in delta] for delta in row["deltas"]))
    blocks = (
        words(*one["words"]) if "words" in one else use(*one["use"], start=one.get("start"), stop=one.get("stop", True))
        for one in row["blocks"]
    )
    return claude(*(event for events in blocks for event in events))


def talk_of(row: Mapping[str, Any]) -> Talk:
    """The reply of a row to what was said `before`."""
    history, calls = (*ASK, *turns_of(row.get("before", ()), {})), [Call(*call) for call in row["said"]]
    return Talk(history, calls=calls, tools=row.get("tools", TOOLS), model=row.get("model", "acme-1"))


RULES = ["ID302", "ID305", "ID306", "ST606", "TC501", "TC503"]
OTHER_WORDS = {"tool_calls": "tool_use", "stop": "end_turn"}


def _plain(arguments: str) -> str:
    value = json.loads(arguments) if arguments else {}
    return json.dumps(value, separators=(",", ":"))


def _check(record: Mapping[str, Any], row: Mapping[str, Any], reason: str | None = None) -> None:
    """Checks what a client has in the end: the `calls` (id, name, arguments), `text` and `reason` of a row."""
    done = run(record, RULES, UNSAFE)
    assert done.faults == ()
    assert sorted(repair.code for repair in done.repairs) == sorted(row["rules"].split())
    assert done.changed is bool(row["rules"])
    reply = some(done.after.reply)
    before = {call.id for choice in done.before.reply.choices for call in choice.calls} if done.before.reply else set()
    calls = [call for choice in reply.choices for call in choice.calls]
    made = [
        NEW if wanted[0] == NEW and call.id not in before else call.id
        for call, wanted in zip(calls, row["calls"], strict=True)
    ]
    assert [[id_, call.name, _plain(call.arguments.text)] for id_, call in zip(made, calls, strict=True)] == row[
        "calls"
    ]
    assert "".join(choice.text for choice in reply.choices) == row.get("text", "")
    assert reply.choices[0].finish_reason == (reason or row.get("reason", "tool_calls"))
    assert len({call.id for call in calls}) == len(calls)
    _is_numbered(reply)
    assert [finding for finding in done.left if finding.fix is not None and finding.side == "response"] == []


def _is_numbered(reply: Reply) -> None:
    """Calls are numbered without gaps, and nothing is wrong with the events."""
    assert reply.faults == ()
    if not reply.streamed:
        return
    for choice in reply.choices:
        indexes = [call.pieces[0].index for call in choice.calls]
        pointers = [int(call.pointer.rpartition("/")[2]) for call in choice.calls]
        assert indexes == pointers


@in_batches("row", TABLES["streams"].values(), ids=TABLES["streams"])
def test_faulty_streams_give_the_intended_calls(row: Mapping[str, Any]) -> None:
    _check(streamed(row), row)


@pytest.mark.parametrize("stream_", [False, True], ids=["whole", "streamed"])
@in_batches("row", TABLES["replies"].values(), ids=TABLES["replies"])
def test_faulty_replies_give_the_intended_calls(row: Mapping[str, Any], stream_: bool) -> None:
    talk, reason = talk_of(row), row.get("reason", "tool_calls")
    _check(talk.record(CHAT, stream_), row)
    _check(talk.record(CLAUDE, stream_), row, OTHER_WORDS[reason])


def test_a_call_with_an_incomplete_name_is_released_unchanged() -> None:
    record = stream([entry(0, "a", "weed", "")], reason=None, done=False)
    assert run(record, RULES, UNSAFE, complete=False).delivered == record["response"]["body"].encode()


def test_only_the_frame_of_a_held_call_waits() -> None:
    """The first event leaves at once; the start of the call waits for its arguments, no longer."""
    record = stream("Now.", [entry(0, "a", "weed", "")], [entry(0, text=OWL)], "Later.")
    data = record["response"]["body"].encode()
    edges = [place + 2 for place in range(len(data)) if data.startswith(b"\n\n", place)]
    done = run(record, ["TC501"], UNSAFE, cuts=edges[:-1])
    assert b"Now." in done.pieces[1]
    assert b"weed" in done.pieces[2]
    assert b"wirelint" in done.pieces[2]


def test_a_second_terminator_adds_no_finish_reason() -> None:
    record = stream([entry(0, "a", "feed", OWL)], reason=None)
    record["response"]["body"] += "data: [DONE]\n\n"
    done = run(record, RULES, UNSAFE)
    assert [repair.code for repair in done.repairs] == ["TC503"]
    assert done.delivered.count(b'"finish_reason":"tool_calls"') == 1


def test_a_call_that_began_under_the_number_of_another_is_stopped() -> None:
    """The first is closed and the second is not: it is the second that is to be closed, under its own number."""
    record = claude(*use(0, "a", "feed", OWL), *use(0, "b", "feed", CAT, stop=False))
    done = run(record, [*RULES, "ST601"], UNSAFE)
    assert [repair.code for repair in done.repairs] == ["ST606", "ST601"]
    record["response"]["body"] = done.delivered.decode()
    again = run(record, [*RULES, "ST601"], UNSAFE)
    assert again.repairs == ()
    assert [call.id for call in some(again.after.reply).choices[0].calls] == ["a", "b"]


def test_text_behind_the_end_stands_in_a_block_that_is_closed() -> None:
    """The text before it became a call, so that what is left of it begins anew."""
    opened, said, _ = words(0, '<invoke name="feed">\n<parameter name="who">owl</parameter>\n</invoke>')
    late = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ">"}}
    record = anthropic(opened, said, stop="end_turn", tools=TOOLS)
    stop = sse({"type": "message_stop"}, named=True)
    record["response"]["body"] = record["response"]["body"].removesuffix(stop) + sse(late, named=True) + stop
    done = run(record, [], UNSAFE)
    assert "LK101" in [repair.code for repair in done.repairs]
    record["response"]["body"] = done.delivered.decode()
    assert run(record, [], UNSAFE).repairs == ()


def test_ids_are_kept_behind_a_broken_event() -> None:
    """An event that only shows that the one before it is broken says its id as well. Nothing is put into it."""
    parts = [chunk({"content": "Good"}, id="one"), chunk({"content": "night"}, id="two")]
    broken, bare = 'data: {"id": "two", "choices": [\n\n', {"id": "two", "object": "chat.completion.chunk"}
    record = stream()
    record["response"]["body"] = sse(*parts, done=False) + broken + sse(bare)
    sent = run(record, ["ID306"], UNSAFE).delivered.decode().removesuffix("data: [DONE]\n\n").rpartition("data: ")[2]
    assert json.loads(sent) == {**bare, "id": "one"}


def test_an_event_without_content_gets_the_reply_id_when_its_framing_is_fixed() -> None:
    parts = [chunk({"role": "assistant"}, id=name) for name in ("one", "two", "two")]
    record = stream()
    record["response"]["body"] = f"{sse(*parts[:2], done=False)} {sse(parts[2], done=False)}"
    sent = run(record, ["ID306", "ST601"], UNSAFE).delivered.decode()
    assert [json.loads(data)["id"] for _, data in events_of(sent)] == ["one"] * 3
