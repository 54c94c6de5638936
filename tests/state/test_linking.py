"""Which exchange goes on from which: against the truth, for clients' habits, and that it is all forgotten in the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import CALLING, Assistant, Call, Result, Talk, Turn, User, read, some
from tests.selection import in_batches
from wirelint.engine import Engine
from wirelint.model import Arguments, Choice, Exchange, Link, Message, Part, Reply, Request, Text, ToolCall, ToolResult
from wirelint.state.ledger import Ledger
from wirelint.state.linking import Lineage

# --- against the truth ---------------------------------------------------------------------------------------------

Said = tuple[str, str]
"""What one side says in the model of these tests: words, or the id of a call and of its result."""


@dataclass(frozen=True)
class Passed:
    """An exchange as it was made up: its history, its answer, and what it went on from."""

    id: str
    history: tuple[Said, ...]
    answer: Said

    @property
    def path(self) -> tuple[Said, ...]:
        return (*self.history, self.answer)


@dataclass
class World:
    """Clients that talk at the same time: new conversations, conversations that go on, and branches of old ones."""

    draw: random.Random
    calls: bool
    passed: list[Passed] = field(default_factory=list)

    def step(self) -> Passed:
        history: tuple[Said, ...] = ()
        if self.passed and self.draw.random() < 0.8:
            before = self.draw.choice(self.passed[-4:] if self.draw.random() < 0.7 else self.passed)
            history = before.history if self.draw.random() < 0.15 else before.path
        if not history or history[-1][0] != "user":
            pending = history[-1] if history and history[-1][0] == "call" else None
            history = (
                *history,
                ("result", pending[1]) if pending else ("user", self.draw.choice(["aye", "no", "why"])),
            )
        if self.calls and self.draw.random() < 0.4:
            answer = ("call", f"call_{self.draw.getrandbits(80):020x}x1")
        else:
            answer = ("assistant", self.draw.choice(["well", "so", "hm"]))
        self.passed.append(Passed(f"e{len(self.passed)}", history, answer))
        return self.passed[-1]


def exchange_of(passed: Passed) -> Exchange:
    messages = tuple(Message(_role(said), (_part(said),), "") for said in passed.history)
    request = Request("m", (Message("system", (Text(passed.id, ""),), ""), *messages), (), {}, api="openai.chat")
    reply = Reply(None, None, (Choice(0, (_part(passed.answer),), "stop", ""),))
    return Exchange(passed.id, "openai.chat", "POST", "http://llm.test/", {}, request, 200, {}, reply)


def _role(said: Said) -> Any:
    return {"user": "user", "assistant": "assistant", "call": "assistant", "result": "tool"}[said[0]]


def _part(said: Said) -> Part:
    kind, what = said
    match kind:
        case "call":
            return ToolCall(what, "look", Arguments("{}"), "")
        case "result":
            return ToolResult(what, "dust", "")
    return Text(what, "")


def linked(passed: Sequence[Passed]) -> list[Exchange]:
    ledger = Ledger()
    placed = []
    for one in passed:
        placed.append(ledger.place(exchange_of(one)))
        ledger.record(placed[-1])
    return placed


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40), calls=st.booleans())
def test_links_are_those_of_a_simulated_world(seed: int, steps: int, calls: bool) -> None:
    world = World(random.Random(seed), calls)
    passed = [world.step() for _ in range(steps)]
    placed = linked(passed)
    by_id = {one.id: one for one in passed}
    conversations: dict[str | None, list[Passed]] = {}
    for number, (one, exchange) in enumerate(zip(passed, placed, strict=True)):
        before = one.history[:-1]
        origins = [other for other in passed[:number] if other.path == before]
        if not before or len(origins) > 1:  # of several that said the very same, none is the one
            assert exchange.link is None
        elif origins:
            assert exchange.link is not None
            assert by_id[exchange.link.exchange] is origins[0]
        # A conversation is one path: nobody in it says anything that the others have not said, or go on from.
        path = conversations.setdefault(exchange.conversation, [])
        assert all(_on_one_path(one, other) for other in path), (one, path)
        path.append(one)
    for number, (one, exchange) in enumerate(zip(passed, placed, strict=True)):
        # What nobody else has gone on from goes on in the same conversation.
        if exchange.link is None or exchange.link.how != "turn":
            continue
        origin = next(each for each in placed if each.id == exchange.link.exchange)
        assert origin.conversation == exchange.conversation
        assert not [
            other
            for other, its in zip(passed[:number], placed, strict=False)
            if its.link is not None
            and its.link.exchange == origin.id
            and its.conversation == exchange.conversation
            and other.path != one.path
        ]


def _on_one_path(one: Passed, other: Passed) -> bool:
    shorter, longer = sorted((one.path, other.path), key=len)
    return longer[: len(shorter)] == shorter


# --- habits of clients ---------------------------------------------------------------------------------------------

IDS = ("call_Zk2mQ7xR41vbN8sTdL0p", "call_p0LdTs8Nbv14Rx7Qm2kZ")
ASK = User("What is in the attic, and what is in the cellar of the old house?")
LONG = "In the attic there is a trunk full of letters, and next to it a lamp that nobody has lit for years."

Shape = Callable[[list[Turn]], list[Turn]]


def first(number: int = 0, *, ask: User = ASK) -> Talk:
    calls = (Call("look", {"where": "attic", "deep": [1, 2]}, IDS[number]),)
    return Talk((ask,), text="I will look. ", calls=calls, reasoning="Where to begin?", system="It is Monday.")


def then(talk: Talk, *turns: Turn, shape: Shape | None = None, **changes: Any) -> Talk:
    """The next exchange of a conversation, its history in the shape that a client gives it."""
    history = [*talk.history, Assistant(talk.text, tuple(talk.calls), talk.reasoning), *turns]
    reply = Talk(text=LONG)
    said: dict[str, Any] = {"text": reply.text, "calls": (), "reasoning": "", **changes}
    return replace(talk, history=tuple(shape(history) if shape is not None else history), **said)


def _calls(change: Callable[[Call], Call]) -> Shape:
    def shape(history: list[Turn]) -> list[Turn]:
        return [
            replace(turn, calls=tuple(map(change, turn.calls))) if isinstance(turn, Assistant) else turn
            for turn in history
        ]

    return shape


def _said(change: Callable[[Assistant], Turn]) -> Shape:
    return lambda history: [change(turn) if isinstance(turn, Assistant) else turn for turn in history]


def _mangled(history: list[Turn]) -> list[Turn]:
    def mangled(id_: str | None) -> str:
        return "x" + (id_ or "")[5:12]

    made = _calls(lambda call: replace(call, id=mangled(call.id)))(history)
    return [replace(turn, call_id=mangled(turn.call_id)) if isinstance(turn, Result) else turn for turn in made]


HABITS: dict[str, Shape] = {
    "nothing is changed": lambda history: history,
    "thinking is dropped": _said(lambda turn: replace(turn, reasoning="")),
    "words are trimmed": _said(lambda turn: replace(turn, text=turn.text.strip())),
    "words beside a call are dropped": _said(lambda turn: replace(turn, text="", reasoning="")),
    "the question is spaced otherwise": lambda history: [User(f"\n{ASK.text}  "), *history[1:]],
    "arguments are sorted": _calls(lambda call: replace(call, arguments={"deep": [1, 2], "where": "attic"})),
    "a reminder is put before the question": lambda history: [
        User("<system-reminder>Be brief.</system-reminder>"),
        *history,
    ],
    "ids are mangled": _mangled,
}


def placed(talks: Sequence[tuple[Talk, str, bool]], headers: Sequence[dict[str, str]] = ()) -> list[Exchange]:
    engine = Engine(())
    made = []
    for number, (talk, api, stream) in enumerate(talks):
        record = talk.record(api, stream)
        if number < len(headers):
            record["request"]["headers"].update(headers[number])
        exchange = engine.ledger.place(read({**record, "id": f"e{number}"}))
        engine.check(exchange)
        made.append(exchange)
    return made


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", CALLING)
@in_batches("habit", HABITS)
def test_a_conversation_survives_what_clients_do(habit: str, api: str, stream: bool) -> None:
    one = first()
    two = then(one, Result(IDS[0], "A trunk."), shape=HABITS[habit], system="It is Tuesday.")
    three = then(two, User("Open it."), text="It is locked.")
    made = placed([(talk, api, stream) for talk in (one, two, three)])
    assert [exchange.link for exchange in made] == [None, Link("e0"), Link("e1")]
    assert len({exchange.conversation for exchange in made}) == 1


ONE = Talk((ASK,), text="A trunk.")
OPENED, FORKED = then(ONE, User("Open it.")), then(ONE, User("Leave it."), text="As you wish.")
CALLED = [first(0), first(1)]
ANSWERED = [
    then(one, Result(id_, "A trunk."), text=text) for one, id_, text in zip(CALLED, IDS, (LONG, "Dust."), strict=True)
]
CELLAR = replace(CALLED[1], calls=(Call("look", {"where": "cellar"}, IDS[1]),))
STAMPED = Talk((User("[10:31] Hello."),), text="Hi.")
STAMPED_TWICE = then(STAMPED, User("[10:32] And now?"), text="Yes.")
STAMPED_THRICE = then(STAMPED_TWICE, User("[10:33] Still?"), text="No.")
ADA, BO = (Talk((ASK,), text=f"{LONG} The letters are from {year}.") for year in (1871, 1913))
SAID, BELIEVED = Talk((ASK,), text=LONG), Talk((ASK,), text="A trunk, I believe.")
SURE = then(BELIEVED, User("Are you sure?"), text=LONG)
THINKING, THOUGHT = (
    Talk((ASK,), text=f"{opener}They want to know. So I look.</think>\n\nA trunk.") for opener in ("<think>", "")
)
SUMMARY = "\n".join((
    "The user wanted to know what is in the attic of the old house, and in its cellar.",
    "We looked into the attic and found a trunk with letters from the year 1871.",
    "The cellar is still to be looked at; the key hangs beside the kitchen door.",
))  # fmt: skip
SUMMED = then(ANSWERED[0], User("Summarise what we have done."), text=f"<summary>\n{SUMMARY}\n</summary>")
ANEW = Talk((User(f"This goes on from an earlier talk. So far:\n\n{SUMMARY}\n\nGo on."),), text="To the cellar.")


def unstamped(history: list[Turn]) -> list[Turn]:
    return [User(turn.text[8:]) if n == 2 and isinstance(turn, User) else turn for n, turn in enumerate(history)]


def cleared() -> list[Talk]:
    """A long conversation whose client clears the old results."""
    talks = [first()]
    for number in range(4):
        call = Call("look", {"where": f"box {number}"}, f"call_7Gh{number}kLm2PqRs9TuVwX")
        talks.append(then(talks[-1], Result(talks[-1].calls[0].id, "dust " * 40), text="", calls=(call,)))

    def shape(history: list[Turn]) -> list[Turn]:
        old = [replace(turn, text="[cleared]") if isinstance(turn, Result) else turn for turn in history[:-1]]
        return [*old, history[-1]]

    return [*talks, then(talks[-1], Result(talks[-1].calls[0].id, "dust"), shape=shape)]


def edited(talk: Talk, said: str) -> list[Talk]:
    """Two exchanges after one whose answer the client edits."""
    after = then(replace(talk, text=said), User("Open it."), text="It is locked.")
    return [after, then(after, User("Break it."), text="Gladly.")]


EDITS = {"cut": LONG[:60], "with more behind it": LONG + " (I looked twice.)", "with more before it": "Well. " + LONG}
TALES: dict[str, tuple[list[Talk], str, str]] = {
    # exchanges, what each goes on from, the conversation of each
    "two open alike and differ": (
        [CALLED[0], CELLAR, ANSWERED[0], then(CELLAR, Result(IDS[1], "Wine."), text="So.")], "- - e0 e1", "abab"
    ),
    "an earlier place": ([ONE, OPENED, FORKED, then(FORKED, User("Thanks."), text="Welcome.")], "- e0 e0:fork e2", "aabb"),
    "the same answer to the same question": ([ONE, ONE, OPENED], "- - -", "aaa"),
    "a failure that is sent again": ([ONE, replace(OPENED, status=529), OPENED], "- e0 e0", "aaa"),
    "an answer from elsewhere after a failure": ([replace(ONE, status=503), OPENED], "- e0", "aa"),
    "old results are cleared": (cleared(), "- e0 e1 e2 e3 e4", "aaaaaa"),
    "the beginning is cut off": (
        [CALLED[0], ANSWERED[0], then(ANSWERED[0], User("Open it."), shape=lambda history: history[3:])], "- e0 e1", "aaa"
    ),
    "words before each question": (
        [STAMPED, STAMPED_TWICE, STAMPED_THRICE, then(STAMPED_THRICE, User("[10:34] Why?"), text="So.", shape=unstamped)],
        "- e0 e1 e2", "aaaa",
    ),
    "another question with the same short answer": (
        [Talk((User("Dry?"),), text="Yes."), Talk((User("Wet?"), Assistant("Yes."), User("How?")))], "- -", "ab"
    ),
    **{f"an answer is edited, {how}": ([SAID, *edited(SAID, said)], "- e0 e1", "aaa") for how, said in EDITS.items()},
    **{
        f"a later answer is edited, {how}": ([BELIEVED, SURE, *edited(SURE, said)], "- e0 e1 e2", "aaaa")
        for how, said in EDITS.items()
    },
    "candidates begin alike": (
        [ADA, BO, then(ADA, User("Read one."), text="Dear Ada."), then(BO, User("Read one."), text="Dear Bo.")],
        "- - e0 e1", "abab",
    ),
    "thinking is taken out of the text": ([THINKING, OPENED], "- e0", "aa"),
    "thinking without its opener is taken out": ([THOUGHT, OPENED], "- e0", "aa"),
    "an answer without words": ([Talk((ASK,)), then(Talk((ASK,)), User("Hello?"))], "- e0", "aa"),
}  # fmt: skip
SOME = CALLING[:4]
TOLD_BY_CALLS: dict[str, tuple[list[Talk], str, str]] = {
    "a history is replaced by its summary": ([CALLED[0], ANSWERED[0], SUMMED, ANEW], "- e0 e1 e2:compaction", "aaab"),
    "only the ids of calls differ": ([*CALLED, *ANSWERED], "- - e0 e1", "abab"),
}


@in_batches(
    ("name", "api"),
    [*((name, "openai.chat") for name in TALES), ("two open alike and differ", "anthropic.messages")]
    + [(name, api) for name in TOLD_BY_CALLS for api in SOME if "ids" not in name or api != SOME[3]],
)
def test_an_exchange_goes_on_from_the_right_one(name: str, api: str) -> None:
    talks, links, parts = {**TALES, **TOLD_BY_CALLS}[name]
    made = placed([(talk, api, False) for talk in talks])
    assert " ".join(_shown(one.link) for one in made) == links
    letters = dict(zip(dict.fromkeys(one.conversation for one in made), "abc", strict=False))
    assert "".join(letters[one.conversation] for one in made) == parts


def _shown(link: Link | None) -> str:
    if link is None:
        return "-"
    return link.exchange if link.how == "turn" else f"{link.exchange}:{link.how}"


def test_what_was_delivered_is_gone_on_from() -> None:
    ledger = Ledger()
    leaked = Talk((ASK,), text="<tool_call>look</tool_call>")
    repaired = first()
    came, got = (
        read({**talk.record("openai.chat", False), "id": "e0"})
        for talk in (replace(repaired, text=leaked.text, calls=()), repaired)
    )
    ledger.record(ledger.place(replace(came, delivered=got.reply)))
    after = then(repaired, Result(IDS[0], "A trunk."))
    assert ledger.place(read({**after.record("openai.chat", False), "id": "e1"})).link == Link("e0")


def test_what_the_assistant_had_begun_to_say_is_part_of_its_answer() -> None:
    one = Talk((ASK, Assistant("In the attic")), text=" there is a trunk.")
    two = Talk((ASK, Assistant("In the attic there is a trunk."), User("Open it.")), text="It is locked.")
    made = placed([(talk, "anthropic.messages", False) for talk in (one, two)])
    assert made[1].link == Link("e0")


def test_a_branch_knows_the_calls_of_its_trunk_and_no_others() -> None:
    one = Talk((ASK,), calls=(Call("look", {"n": 1}, "call_1"),))
    two = then(one, Result("call_1", "dust"), text="", calls=(Call("look", {"n": 2}, "call_2"),))
    again = then(one, Result("call_1", "gold"), text="", calls=(Call("look", {"n": 3}, "call_3"),))
    ledger = Ledger()
    for number, talk in enumerate((one, two, again)):
        record = {**talk.record("openai.chat", False), "id": f"e{number}"}
        exchange = ledger.place(read(record))
        ledger.record(exchange)
    assert [call.id for call in ledger.calls(exchange.conversation)] == ["call_1", "call_3"]
    assert [call.id for call in ledger.alike("look", '{"n": 1}', exchange.conversation)] == ["call_1"]
    assert ledger.alike("look", '{"n": 2}', exchange.conversation) == ()
    assert ledger.is_returned("call_1", exchange.conversation)


def test_a_response_is_gone_on_from_by_its_id() -> None:
    two = Talk((User("Open it."),), text="It is locked.", request={"previous_response_id": "resp_01"})
    made = placed([(talk, "openai.responses", True) for talk in (ONE, two)])
    assert made[1].link == Link("e0")
    assert made[1].conversation == made[0].conversation


def test_what_a_client_says_about_its_sessions_decides() -> None:
    headers = [{"x-session-id": "s1"}, {"x-session-id": "s2"}]
    made = placed([(ONE, "openai.chat", False), (OPENED, "openai.chat", False)], headers)
    assert made[0].conversation != made[1].conversation
    assert made[1].link == Link("e0")


def recorded(lineage: Lineage, passed: Passed) -> str | None:
    """The conversation of an exchange that is recorded."""
    exchange = exchange_of(passed)
    place = some(lineage.place(exchange))
    lineage.record(replace(exchange, conversation=place.conversation), place)
    return place.conversation


def test_one_long_conversation_loses_its_oldest_exchanges_and_goes_on() -> None:
    lineage = Lineage(most=30)
    history: tuple[Said, ...] = ()
    seen = set()
    for number in range(60):
        one = Passed(f"e{number}", (*history, ("user", f"more {number}")), ("assistant", f"well {number}"))
        history = one.path
        seen.add(recorded(lineage, one))
    assert len(seen) == 1


def test_nothing_stays_behind_when_all_is_forgotten() -> None:
    lineage, world = Lineage(most=40), World(random.Random(7), calls=True)
    for _ in range(400):
        recorded(lineage, world.step())
    kept = [len(value) for value in vars(lineage).values() if not isinstance(value, int)]
    assert max(kept) <= 40, kept
