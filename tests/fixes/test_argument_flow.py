"""What waits and what does not while arguments stream; calls in turns; limits; the work that it takes."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.build import REGISTRY, as_record
from tests.fixes.argument_streams import APIS, anthropic, block, openai, piece, request, streamed
from tests.fixes.drive import run
from tests.selection import is_complete
from wirelint.apis.openai_chat import read_request
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Start
from wirelint.fix import MOST_HELD, FixPolicy, RewriteContext, Rewriter
from wirelint.model import Exchange
from wirelint.state.ledger import Ledger

CODES = ("AR401", "AR402", "AR403")
MILK, RICE = '{"name":"milk"}', '{"name":"rice"}'


def context(api: str = "openai.chat") -> RewriteContext:
    exchange = Exchange(
        "x", api, "POST", "http://llm.test", {}, read_request(request("openai.chat", True)), 200, {}, None
    )
    return RewriteContext(exchange, Ledger(), FixPolicy("unsafe"), streamed=True)


def rewriter(code: str, given: RewriteContext | None = None) -> Rewriter:
    (rule,) = REGISTRY.select([code])
    made = rule.rewriter(given or context())
    assert made is not None
    return made


class Events:
    """Events of one stream, each with a frame of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def frame(self) -> Frame:
        return Frame(next(self._numbers), b"", None, None)

    def start(self, block: int = 0, choice: int = 0, **more: Any) -> Start:
        return Start(block, "tool_call", f"/c/{block}", choice, self.frame(), block, f"id_{block}", "shelf", **more)

    def delta(self, text: str, block: int = 0) -> Delta:
        return Delta(block, text, self.frame())

    def stop(self, choice: int = 0, reason: str = "tool_calls") -> Finish:
        return Finish(choice, reason, "/f", self.frame())


def pushed(made: Rewriter, events: Iterable[Event]) -> list[list[Event]]:
    return [list(made.push(event)) for event in events]


def texts(events: Iterable[Event], block: int = 0) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta) and event.block == block)


# pieces of a healthy call → how many pieces are held after each of them
HEALTHY: dict[str, tuple[str, list[str], list[int]]] = {
    "within an object": ("AR401", ['{"na', 'me":"', "mil", 'k","row"', ":2"], [0, 0, 0, 0, 0]),
    "the first bracket may begin nothing": ("AR401", ["{", '"na'], [1, 0]),
    "an empty object may come before another": ("AR401", ["{", "}"], [1, 2]),
    "members may follow the last bracket": ("AR401", ['{"name":', '"x"}'], [0, 1]),
    "white space after it": ("AR401", ['{"name":', '"x"}', "\n"], [0, 1, 2]),
    "inside, brackets are nothing": ("AR401", ['{"tags":[{', "}", ",{}", "]"], [0, 0, 0, 0]),
    "a comma may be the last": ("AR402", ['{"name":"x"', ",", " ", '"row":', "[1,", "2]"], [0, 1, 2, 0, 1, 0]),
    "a comma in a string": ("AR402", ['{"name":"x,', ",", 'y"'], [0, 0, 0]),
    "half an escape": ("AR402", ['{"name":"x\\', "n\\u00", "e9", '"}'], [0, 0, 0, 0]),
    "half a word": ("AR402", ['{"fresh":t', "ru", "e}"], [0, 0, 0]),
    "half a number": ("AR402", ['{"row":-', "1.", "5e", "+3}"], [0, 0, 0, 0]),
    "the right types": ("AR403", ['{"name":"x","row":', "1", ',"tags":["', '1"]}'], [0, 0, 0, 0]),
    "the wrong type": ("AR403", ['{"name":"x","row":', '"', '1"', ',"more":1}'], [0, 1, 2, 3]),
}


@pytest.mark.parametrize(("code", "pieces", "held"), HEALTHY.values(), ids=HEALTHY)
def test_what_waits(code: str, pieces: Sequence[str], held: Sequence[int]) -> None:
    events = Events()
    made = rewriter(code)
    assert list(made.push(events.start()))
    out = 0
    for sent, (text, expected) in enumerate(zip(pieces, held, strict=True), 1):
        out += len(list(made.push(events.delta(text))))
        assert sent - out == expected, text
        assert (made.held is None) == (expected == 0)
        if expected:
            assert made.held == sent - expected + 1  # the start was frame 0


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("text", [MILK, "{}", "", " {} ", '{"name":"x","tags":[1,{"a":[]},"\\u00e9"],"row":-0.5e-1}'])
def test_healthy_calls_keep_their_events(code: str, text: str) -> None:
    for step in (1, 2, 3, 7, 100):
        events = Events()
        given: list[Event] = []
        for block_ in range(3):
            given.append(events.start(block_))
            given += [events.delta(text[place : place + step], block_) for place in range(0, len(text), step)]
        given += [events.stop(), Done(events.frame())]
        made = rewriter(code)
        out = [event for some in pushed(made, given) for event in some]
        assert list(map(id, out)) == list(map(id, given))
        assert made.held is None


@pytest.mark.parametrize("code", CODES)
def test_other_parts_pass_at_once(code: str) -> None:
    events = Events()
    made = rewriter(code)
    text = Start(0, "text", "/t", 0, events.frame())
    custom = Start(1, "tool_call", "/c", 0, events.frame(), form="custom")
    for event in (text, Delta(0, "{}{}", events.frame()), custom, Delta(1, "{'a':1,}{}", events.frame())):
        assert list(made.push(event)) == [event]
        assert made.held is None


@pytest.mark.parametrize("code", CODES)
def test_a_release_gives_back_what_came(code: str) -> None:
    for pieces in (["{", "}", MILK], ["{", "'name':'x'"], ['{"name":', "5", ',"row":', '"2"', "}"], [MILK, RICE]):
        events = Events()
        given: list[Event] = [events.start(), *map(events.delta, pieces), events.delta("x", 1)]
        made = rewriter(code)
        out = [event for some in pushed(made, given) for event in some]
        out += made.release()
        assert list(map(id, out)) == list(map(id, given))
        assert made.held is None
        later: list[Event] = [events.delta('{"name":"x"}{}'), events.stop()]
        assert [event for some in pushed(made, later) for event in some][-1] is later[-1]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pieces", [["{}", MILK], ["{'name'", ":'x'}"], ['{"name":', "5}"]], ids=str)
def test_a_stream_that_dies_leaves_as_it_came(api: str, pieces: Sequence[str]) -> None:
    record = openai(piece("", first=True), *map(piece, pieces), finish=None, done=False)
    if api == "anthropic.messages":
        record = anthropic(*block({}, *pieces)[:-1], stop=None)
    result = run(record, CODES)
    assert result.delivered == as_record(record, 1).response_body
    assert [finding for finding in result.findings if finding.fix is not None] == []


# --- calls in turns ------------------------------------------------------------------------------------------------

TURNS: dict[str, tuple[str, list[str], list[list[str]]]] = {
    "healthy": ("AR401", [MILK, RICE, "{}"], [[MILK], [RICE], ["{}"]]),
    "each twice": ("AR401", [MILK * 2, RICE * 2], [[MILK], [RICE]]),
    "one of them twice": ("AR401", [MILK, RICE * 2, MILK], [[MILK], [RICE], [MILK]]),
    "two in one": ("AR401", [MILK, MILK + RICE, RICE], [[MILK], [MILK, RICE], [RICE]]),
    "quotes": ("AR402", ["{'name':'a'}", MILK, "{'name':'b'}"], [['{"name":"a"}'], [MILK], ['{"name":"b"}']]),
    "one is beyond repair": (
        "AR402",
        ["{'name':'a", '{"name":"b",}', MILK],
        [["{'name':'a"], ['{"name":"b"}'], [MILK]],
    ),
    "types": ("AR403", ['{"name":1}', '{"name":"b","row":"2"}'], [['{"name":"1"}'], ['{"name":"b","row":2}']]),
}


def _in_turns(parts: Sequence[str], step: int) -> list[dict[str, Any]]:
    """All calls begin, then each gets a piece in its turn."""
    pieces = [[text[place : place + step] for place in range(0, len(text), step)] for text in parts]
    documents = [piece("", index, first=True) for index in range(len(parts))]
    for row in itertools.zip_longest(*pieces):
        documents += [piece(text, index) for index, text in enumerate(row) if text is not None]
    return documents


@pytest.mark.parametrize(("code", "parts", "expected"), TURNS.values(), ids=TURNS)
def test_calls_in_turns(code: str, parts: list[str], expected: list[list[str]]) -> None:
    changed = [text for texts_ in expected for text in texts_]
    for step in (1, 2, 3, 5, 8, 1000):
        record = openai(*_in_turns(parts, step))
        result = run(record, [code])
        assert result.after.reply is not None
        calls = result.after.reply.choices[0].calls
        if len(changed) == len(parts):
            assert [call.arguments.text for call in calls] == changed
        else:
            assert sorted(call.arguments.text for call in calls) == sorted(changed)
        assert len({call.id for call in calls}) == len(calls)
        assert result.changed == (parts != changed)


@pytest.mark.parametrize(("code", "parts", "expected"), TURNS.values(), ids=TURNS)
@pytest.mark.parametrize("api", APIS)
def test_calls_one_after_the_other(api: str, code: str, parts: list[str], expected: list[list[str]]) -> None:
    for step in (1, 3, 1000):
        if api == "openai.chat":
            documents = []
            for index, text in enumerate(parts):
                documents += [piece("", index, first=True)]
                documents += [piece(text[place : place + step], index) for place in range(0, len(text), step)]
            record = openai(*documents)
        else:
            events = []
            for index, text in enumerate(parts):
                pieces = [text[place : place + step] for place in range(0, len(text), step)]
                events += block({}, *pieces, index=index)
            record = anthropic(*events)
        result = run(record, [code])
        assert result.after.reply is not None
        calls = result.after.reply.choices[0].calls
        assert [call.arguments.text for call in calls] == [text for texts_ in expected for text in texts_]
        assert len({call.id for call in calls}) == len(calls)
        assert not [finding for finding in result.left if finding.fix is not None]


def test_a_call_is_settled_when_the_next_begins() -> None:
    events = Events()
    made = rewriter("AR401")
    pushed(made, [events.start(), events.delta("{}"), events.delta(MILK)])
    assert made.held == 1
    following = events.start(1)
    out = list(made.push(following))
    assert texts(out) == MILK
    assert out[-1] is following
    assert made.held is None


def test_candidates_do_not_wait_for_each_other() -> None:
    events = Events()
    made = rewriter("AR402")
    pushed(made, [events.start(0, 0), events.start(1, 1), events.delta("{'name'", 0)])
    other = events.delta('{"name":"x"', 1)
    assert list(made.push(other)) == [other]
    assert made.held == 2
    out = [*made.push(events.stop(1)), *made.push(events.delta(":'y'}", 0)), *made.push(events.stop(0))]
    assert texts(out) == '{"name":"y"}'
    assert made.held is None


# --- calls that were glued -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
def test_separated_calls_come_behind_the_first(api: str) -> None:
    result = run(streamed(api, MILK, RICE, '{"name":"tea"}'), ["AR401"])
    assert result.after.reply is not None
    (choice,) = result.after.reply.choices
    assert [call.arguments.mapping for call in choice.calls] == [{"name": name} for name in ("milk", "rice", "tea")]
    assert [call.name for call in choice.calls] == ["shelf"] * 3
    assert choice.calls[0].id == ("call_0" if api == "openai.chat" else "toolu_0")
    assert len({call.id for call in choice.calls}) == 3
    assert choice.finish_reason == ("tool_calls" if api == "openai.chat" else "tool_use")
    assert result.after.reply.faults == ()


def test_separated_blocks_come_after_the_close() -> None:
    events = Events()
    given = context("anthropic.messages")
    made = rewriter("AR401", given)
    begun = events.start(0, input={})
    close = Close(0, events.frame())
    out = [event for some in pushed(made, [begun, events.delta(MILK + RICE), close, events.stop()]) for event in some]
    kinds = [type(event).__name__ for event in out]
    assert kinds == ["Start", "Delta", "Close", "Start", "Delta", "Close", "Finish"]
    assert out[2] is close
    assert (texts(out), texts(out, out[3].block)) == (MILK, RICE)  # type: ignore[union-attr]


def test_ids_that_the_wire_gave_are_kept() -> None:
    """Several calls under one index: each piece announces itself, and only the repair of glued values is asked for."""
    events = Events()
    made = rewriter("AR401")
    given: list[Event] = [
        events.start(),
        events.delta(MILK),
        CallUpdate(0, 0, "id_b", "shelf", events.frame()),
        events.delta(RICE),
        CallUpdate(0, 0, "id_c", "nap", events.frame()),
        events.delta('{"much":true}'),
        events.stop(),
    ]
    out = [event for some in pushed(made, given) for event in some]
    starts = [event for event in out if isinstance(event, Start)]
    assert [(start.id, start.name) for start in starts] == [("id_0", "shelf"), ("id_b", "shelf"), ("id_c", "nap")]
    assert [texts(out, start.block) for start in starts] == [MILK, RICE, '{"much":true}']
    assert not any(isinstance(event, CallUpdate) for event in out)


@pytest.mark.parametrize("api", APIS)
def test_a_client_that_wants_one_call_gets_one(api: str) -> None:
    more: dict[str, Any] = {"parallel_tool_calls": False}
    if api == "openai.chat":
        record = openai(piece(MILK + RICE, first=True))
    else:
        more = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
        record = anthropic(*block({}, MILK + RICE))
    record["request"]["body"] = json.dumps(json.loads(record["request"]["body"]) | more)
    result = run(record, ["AR401"])
    assert not result.changed
    assert [finding.fix for finding in result.findings] == [None]


# --- limits and work -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("code", "before", "after"), [
    ("AR401", "{}", MILK),
    ("AR402", "{'name':'", "'}"),
    ("AR403", '{"row":"1","name":"', '"}'),
])  # fmt: skip
def test_what_is_too_long_leaves_as_it_came(api: str, code: str, before: str, after: str) -> None:
    filling = ["x" * 1000] * (MOST_HELD // 1000 + 2)
    text = '{"name":"' if code == "AR401" else ""
    record = streamed(api, before, text, *filling, after if code != "AR401" else '"}')
    result = run(record, [code])
    assert result.delivered == as_record(record, 1).response_body
    assert any("too long" in note for note in result.notes)
    short = run(streamed(api, before, text, *filling[:3], after if code != "AR401" else '"}'), [code])
    assert short.changed
    assert short.notes == ()


def test_not_too_much_waits_behind_a_call() -> None:
    """A damaged call that may yet go on keeps the others of its candidate waiting, but not for ever."""
    events = Events()
    kept = context()
    made = rewriter("AR402", kept)
    given: list[Event] = [events.start(0), events.delta("{'name':'x"), events.start(1), events.delta('{"name":"', 1)]
    given += [events.delta("y" * 1000, 1) for _ in range(17 * MOST_HELD // 1000)]
    out = [event for some in pushed(made, given) for event in some]
    assert list(map(id, out)) == list(map(id, given))
    assert made.held is None
    assert len(kept.notes) == 1


def test_long_arguments_are_repaired_at_their_end() -> None:
    """What has left need not be held: a fault at the end of a megabyte costs what comes after it."""
    body = ["x" * 1000] * 1000
    result = run(streamed("openai.chat", '{"name":"', *body, '",', "}"), ["AR402"])
    assert len(result.repairs) == 1
    assert result.after.reply is not None
    assert result.after.reply.choices[0].calls[0].arguments.text == '{"name":"' + "".join(body) + '"}'


def _work(task: Callable[[], object]) -> int:
    """How many calls of functions a task makes."""
    count = 0

    def tell(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tell)
    try:
        task()
    finally:
        sys.setprofile(None)
    return count


def _calls_of(count: int, parts: Sequence[str]) -> list[Event]:
    events = Events()
    given: list[Event] = []
    for number in range(count):
        given += [events.start(number), *(events.delta(part, number) for part in parts)]
    return [*given, events.stop()]


PARTS = [
    [MILK], ["{}" + MILK], [MILK * 2], [MILK + RICE], ["{'name':'x'}"], ['{"name":1}'], ["{'name"], ['{"a":'], ["{}"],
    [MILK + ',"row":2}'],
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_the_work_grows_with_the_number_of_calls(code: str, parts: list[str]) -> None:
    small, large = _calls_of(100, parts), _calls_of(800, parts)
    few = _work(lambda: pushed(rewriter(code), small))
    many = _work(lambda: pushed(rewriter(code), large))
    assert many < 9 * few


def test_thousands_of_calls() -> None:
    count = 10_000 if is_complete() else 1_000
    given = _calls_of(count, ["{}", '{"name":7}'])
    kept = context()
    for code in CODES:
        made = rewriter(code, kept)
        given = [event for some in pushed(made, given) for event in some]
    assert len(kept.repairs) == 2 * count
    assert len(given) == 2 * count + 1
    assert {event.text for event in given if isinstance(event, Delta)} == {'{"name":"7"}'}


def _long(size: int, unit: str) -> list[Event]:
    text = '{"name":"x","tags":["' + unit * (size // len(unit))
    events = Events()
    deltas = [events.delta(text[place : place + 500]) for place in range(0, len(text), 500)]
    return [events.start(), *deltas, events.stop()]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("unit", ["x", '",', '"a":"b",', "[", "{}", "'", "\\\\", '{"a":1}', "1", "\n", '",-1,"'])
def test_the_work_grows_with_the_text(code: str, unit: str) -> None:
    small, large = _long(1 << 13, unit), _long(1 << 16, unit)
    few = _work(lambda: pushed(rewriter(code), small))
    many = _work(lambda: pushed(rewriter(code), large))
    assert many < 9 * few


@pytest.mark.parametrize("code", CODES)
def test_a_megabyte_passes(code: str) -> None:
    given = _long(1 << 20, 'a\\"b')
    out = [event for some in pushed(rewriter(code), given) for event in some]
    assert list(map(id, out)) == list(map(id, given))
