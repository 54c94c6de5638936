"""Fixes of ids, indexes and names of calls, and of finish reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from tests.build import Assistant, Call, Result, Talk, User, chunk, events_of, schema, some, sse
from tests.fixes.argument_streams import anthropic, block, openai
from tests.fixes.drive import UNSAFE, run
from tests.selection import in_batches
from wirelint.model import Choice, Reply

CHAT, CLAUDE = "openai.chat", "anthropic.messages"
ASK = (User("Feed the animals."),)
TOOLS = {"feed": schema(who="string"), "Brush": schema(who="string"), "mcp__barn__open_gate": schema()}
OWL, CAT = '{"who":"owl"}', '{"who":"cat"}'
NEW = "a new id"
"""Stands for an id that the repair has made."""


class Want(NamedTuple):
    """What a client has in the end: calls as (id, name, arguments), text, finish reason; and the rules that acted."""

    calls: Sequence[tuple[str | None, str, str]]
    text: str = ""
    reason: str | None = "tool_calls"
    rules: Sequence[str] = ()


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


def gone(name: str, *declared: str) -> str:
    offered = ", ".join(f"`{one}`" for one in declared or TOOLS)
    return f"wirelint took out a call of `{name}`, because this request declares no such tool; it declares {offered}."


NUMBERS = {
    "a call after them moves up": (
        stream(
            [entry(0, "a", "feed", OWL)],
            [entry(0, "b", "feed", CAT)],
            [entry(1, "c", "Brush", "")],
            [entry(1, text=OWL[:5])],
            [entry(1, text=OWL[5:])],
        ),
        Want([("a", "feed", OWL), ("b", "feed", CAT), ("c", "Brush", OWL)], rules=["ST606"]),
    ),
    "another id at the end and nothing after it": (
        stream([entry(0, "a", "feed", OWL)], [entry(0, "b", None, "")]),
        Want([("a", "feed", OWL)]),
    ),
    "no index, and said twice": (
        stream([entry(None, "a", "feed", OWL[:5])], [entry(None, "a", "feed", OWL[5:])]),
        Want([("a", "feed", OWL)], rules=["ST606"]),
    ),
    "another id and the arguments later": (
        stream(
            [entry(0, "a", "feed", OWL)], [entry(0, "b", "feed")], [entry(0, text=CAT[:3])], [entry(0, text=CAT[3:])]
        ),
        Want([("a", "feed", OWL), ("b", "feed", CAT)], rules=["ST606"]),
    ),
    "the second has no id": (
        stream([entry(0, "a", "feed", OWL)], [entry(0, None, "Brush", CAT)]),
        Want([("a", "feed", OWL), (NEW, "Brush", CAT)], rules=["ST606"]),
    ),
    "blocks under one index": (
        claude(*use(0, "a", "feed", OWL), *use(0, "b", "feed", CAT[:5], CAT[5:])),
        Want([("a", "feed", OWL), ("b", "feed", CAT)], reason="tool_use", rules=["ST606"]),
    ),
    "the first block is never stopped": (
        claude(*use(0, "a", "feed", OWL, stop=False), *use(0, "b", "feed", CAT)),
        Want([("a", "feed", OWL), ("b", "feed", CAT)], reason="tool_use", rules=["ST606"]),
    ),
    "the second block's input stands in its start": (
        claude(*use(0, "a", "feed", OWL), *use(0, "b", "feed", start={"who": "cat"})),
        Want([("a", "feed", OWL), ("b", "feed", CAT)], reason="tool_use", rules=["ST606"]),
    ),
}

IDS = {
    "a block announced again under another id": (
        claude(*use(0, "a", "feed", OWL[:4], stop=False), *use(0, "b", "feed", OWL[4:])),
        Want([("a", "feed", OWL)], reason="tool_use", rules=["ID306"]),
    ),
}

AGAIN = Talk(
    (*ASK, Assistant(calls=(Call("feed", {"who": "owl"}, "a"),)), Result("a", "done"), User("And the cat.")),
    calls=(Call("feed", {"who": "cat"}, "a"), Call("feed", {"who": "owl"}, "b")),
    tools=TOOLS,
)
SHORT = Talk(
    (*ASK, Assistant(calls=(Call("feed", {"who": "owl"}, "functions.feed:0"),)), Result("functions.feed:0", "done")),
    calls=(Call("feed", {"who": "cat"}, "feed:1"), Call("functions.Brush", {"who": "cat"}, "2")),
    tools=TOOLS,
    model="kimi-k2.5",
)

ALIKE = {
    "an id of the history": (AGAIN, Want([(NEW, "feed", CAT), ("b", "feed", OWL)], rules=["ID305"])),
    "Kimi's short form, after names": (
        SHORT,
        Want(
            [("functions.feed:1", "feed", CAT), ("functions.Brush:2", "Brush", CAT)],
            rules=["ID302", "ID302", "TC501"],
        ),
    ),
    "the only call is taken out, there are no tools": (
        Talk(ASK, calls=(Call("weed", {"who": "cat"}, "a"),)),
        Want([], gone("weed").partition("it declares")[0] + "it declares no tools at all.", "stop", ["TC501"]),
    ),
    "one of three is taken out": (
        Talk(
            ASK,
            calls=(Call("feed", {"who": "owl"}, "a"), Call("weed", {}, "b"), Call("Brush", {"who": "cat"}, "c")),
            tools=TOOLS,
        ),
        Want([("a", "feed", OWL), ("c", "Brush", CAT)], gone("weed"), "tool_calls", ["TC501"]),
    ),
    "one taken out, one put right, one right": (
        Talk(
            ASK,
            calls=(Call("weed", {}, "a"), Call("open_gate", {}, "b"), Call("feed", {"who": "cat"}, "c")),
            tools=TOOLS,
        ),
        Want([("b", "mcp__barn__open_gate", "{}"), ("c", "feed", CAT)], gone("weed"), rules=["TC501", "TC501"]),
    ),
}

NEXT = Talk(
    (*ASK, Assistant(calls=(Call("feed", {}, "functions.feed:0"),)), Result("functions.feed:0", "done")),
    calls=(Call("feed", {"who": "cat"}, "functions.feed:0"), Call("feed", {"who": "owl"}, "functions.feed:1")),
    tools=TOOLS,
    model="kimi-k2.5",
)

ODD = {
    "the new id is that of the next call": (
        NEXT.record(CHAT, True),
        Want([("functions.feed:1", "feed", CAT), ("functions.feed:2", "feed", OWL)], rules=["ID305", "ID305"]),
    ),
    "the name in pieces, with a prefix": (
        stream([entry(0, "a", "functions.", "")], [entry(0, None, "feed", "")], [entry(0, text=OWL)]),
        Want([("a", "feed", OWL)], rules=["TC501"]),
    ),
    "two wrong calls that take turns": (
        stream(
            [entry(0, "a", "FEED", ""), entry(1, "b", "weed", "")],
            [entry(0, text=OWL[:3]), entry(1, text="{")],
            [entry(0, text=OWL[3:]), entry(1, text="}")],
        ),
        Want([("a", "feed", OWL)], gone("weed"), rules=["TC501", "TC501"]),
    ),
    "a block with text between wrong ones": (
        claude(*use(0, "a", "weed", "{}"), *words(1, "Next."), *use(2, "b", "brush", CAT)),
        Want([("b", "Brush", CAT)], f"{gone('weed')}Next.", "tool_use", ["TC501", "TC501"]),
    ),
    "a wrong block whose input stands in its start": (
        claude(*use(0, "a", "weed", start={"who": "cat"})),
        Want([], gone("weed"), "end_turn", ["TC501"]),
    ),
}

RULES = ["ID302", "ID305", "ID306", "ST606", "TC501", "TC503"]
OTHER_WORDS = {"tool_calls": "tool_use", "stop": "end_turn"}


def _has(choices: Sequence[Choice]) -> Want:
    calls = [(call.id, call.name or "", _plain(call.arguments.text)) for choice in choices for call in choice.calls]
    return Want(calls, "".join(choice.text for choice in choices), choices[0].finish_reason)


def _plain(arguments: str) -> str:
    value = json.loads(arguments) if arguments else {}
    return json.dumps(value, separators=(",", ":"))


def _check(record: Mapping[str, Any], want: Want) -> None:
    done = run(record, RULES, UNSAFE)
    assert done.faults == ()
    assert sorted(repair.code for repair in done.repairs) == sorted(want.rules)
    assert done.changed is bool(want.rules)
    reply = some(done.after.reply)
    has = _has(reply.choices)
    before = {call.id for choice in done.before.reply.choices for call in choice.calls} if done.before.reply else set()
    made = [
        (NEW if wanted == NEW and id_ not in before else id_, *rest)
        for (id_, *rest), (wanted, *_) in zip(has.calls, want.calls, strict=True)
    ]
    assert [tuple(call) for call in made] == list(want.calls)
    assert (has.text, has.reason) == (want.text, want.reason)
    assert len({id_ for id_, *_ in has.calls}) == len(has.calls)
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


STREAMS: dict[str, tuple[dict[str, Any], Want]] = {**NUMBERS, **IDS, **ODD}


@in_batches(("record", "want"), STREAMS.values(), ids=STREAMS)
def test_faulty_streams_give_the_intended_calls(record: Mapping[str, Any], want: Want) -> None:
    _check(record, want)


@pytest.mark.parametrize("stream_", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("talk", "want"), ALIKE.values(), ids=ALIKE)
def test_faulty_replies_of_openai_give_the_intended_calls(talk: Talk, want: Want, stream_: bool) -> None:
    _check(talk.record(CHAT, stream_), want)


@pytest.mark.parametrize("stream_", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("talk", "want"), ALIKE.values(), ids=ALIKE)
def test_faulty_replies_of_anthropic_give_the_intended_calls(talk: Talk, want: Want, stream_: bool) -> None:
    text = want.text.replace("\n\nwirelint", "wirelint")  # a sentence is a block of its own here
    reason = OTHER_WORDS.get(want.reason or "", want.reason)
    _check(talk.record(CLAUDE, stream_), want._replace(text=text, reason=reason))


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
