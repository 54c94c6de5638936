"""Issues: a fault that is found again on a later turn is known there; a new one is not, however alike it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, lint, read, schema
from tests.build import Turn as Said
from tests.tables import tables
from wirelint.engine import Engine, in_order
from wirelint.model import Exchange, Text
from wirelint.rule import Finding, Rule, Severity
from wirelint.state.issues import Issues
from wirelint.state.ledger import Ledger


class Shouting(Rule):
    """Text with an exclamation mark."""

    code, name, severity, layer = "XX901", "shouting", "warning", "model"

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for message in exchange.request.messages if exchange.request is not None else ():
            for part in message.parts:
                if isinstance(part, Text) and "!" in part.text:
                    worse: Severity | None = "error" if exchange.status == 400 else None
                    yield self.finding("request", "this is too loud", part.pointer, severity=worse)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for choice in exchange.reply.choices if exchange.reply is not None else ():
            for part in choice.parts:
                if isinstance(part, Text) and "!" in part.text:
                    yield self.finding("response", "this is too loud", part.pointer)


RULES = (Shouting(),)
LOUD, CALM = User("Read the notes, now!"), User("And what else is there?")


def turns(*talks: Talk, api: str = "openai.chat", stream: bool = False) -> list[tuple[Finding, ...]]:
    """Findings on each of some exchanges that pass one after the other."""
    engine = Engine(RULES)
    return [engine.check(read(talk.record(api, stream), number)) for number, talk in enumerate(talks, 1)]


def told(findings: Sequence[Finding]) -> list[tuple[str, bool]]:
    """The first exchange of each finding's issue, and whether the finding is known."""
    return [(finding.issue.first, finding.issue.known) for finding in findings if finding.issue is not None]


def talk(*said: Said, text: str, status: int = 200) -> Talk:
    return Talk(said, text=text, status=status)


ONE = (LOUD, Assistant("There are three of them."))
TWO = (*ONE, CALM, Assistant("Only a map of the coast."))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
def test_a_fault_in_the_history_is_one_issue(api: str, stream: bool) -> None:
    found = turns(
        talk(LOUD, text="There are three of them."),
        talk(*ONE, CALM, text="Only a map of the coast."),
        talk(*TWO, User("Thank you."), text="You are welcome."),
        api=api, stream=stream,
    )  # fmt: skip
    assert [told(findings) for findings in found] == [[("test:1", False)], [("test:1", True)], [("test:1", True)]]
    issues = [finding.issue for findings in found for finding in findings if finding.issue is not None]
    assert len({issue.id for issue in issues}) == 1
    assert [(issue.count, issue.last) for issue in issues] == [(1, "test:1"), (2, "test:2"), (3, "test:3")]


def test_the_place_is_told_by_what_stands_there_and_not_by_its_number() -> None:
    first, later = turns(
        talk(User("Hello."), Assistant("Good day."), *ONE, CALM, text="Only a map of the coast."),
        talk(*TWO, User("Thank you."), text="You are welcome."),  # the client has cut the beginning
    )
    assert (first[0].pointer, later[0].pointer) == ("/messages/2/content", "/messages/0/content")
    assert told(later) == [("test:1", True)]


def test_the_same_words_said_again_are_another_issue() -> None:
    found = turns(
        talk(LOUD, text="There are three of them."),
        talk(*ONE, LOUD, text="I have read them to you."),
        talk(*ONE, LOUD, Assistant("I have read them to you."), CALM, text="Nothing."),
    )
    assert [told(findings) for findings in found] == [
        [("test:1", False)],
        [("test:1", True), ("test:2", False)],
        [("test:1", True), ("test:2", True)],
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_leak_is_one_issue_in_the_reply_and_in_the_history(stream: bool) -> None:
    """The rule has other words for it there, and grades it lower."""
    leak = 'Let me look.\n<tool_call>\n{"name": "read_notes", "arguments": {"page": 3}}\n</tool_call>'
    tools = {"read_notes": schema(page="integer")}
    engine = Engine(REGISTRY.select(["xml-leak"]))
    said = (
        Talk((CALM,), text=leak, tools=tools),
        Talk((CALM, Assistant(leak), User("Well?")), text="So.", tools=tools),
    )
    again = Talk((CALM, Assistant(leak), User("Well?"), Assistant("So."), User("Go on.")), text=leak, tools=tools)
    found = [engine.check(read(one.record("openai.chat", stream), n)) for n, one in enumerate((*said, again), 1)]
    assert [finding.side for finding in found[1]] == ["request"]
    assert [told(findings) for findings in found] == [
        [("test:1", False)],
        [("test:1", True)],
        [("test:1", True), ("test:3", False)],
    ]


def test_what_gets_worse_is_told_again() -> None:
    found = turns(
        talk(LOUD, text="There are three of them."),
        talk(*ONE, CALM, text="", status=400),
        talk(*ONE, CALM, text="Only a map of the coast."),
    )
    assert [told(findings) for findings in found] == [[("test:1", False)], [("test:2", False)], [("test:1", True)]]


def test_a_branch_knows_what_its_trunk_had_before_it_left() -> None:
    found = turns(
        talk(LOUD, text="There are three of them."),
        talk(*ONE, CALM, text="Only a map of the coast."),
        talk(*ONE, User("Go back!"), text="Here we are."),  # leaves the trunk after the first exchange
        talk(*TWO, User("Go back!"), text="Where to?"),  # the trunk goes on
    )
    assert told(found[2]) == [("test:1", True), ("test:3", False)]
    assert told(found[3]) == [("test:1", True), ("test:4", False)]


def test_memory_is_bounded_and_the_oldest_conversation_goes_first() -> None:
    issues = Issues(most=6)
    plain = read(talk(CALM, text="Fine.").record("openai.chat", False))

    def pass_by(name: str, *messages: str) -> list[bool]:
        exchange = dataclasses.replace(plain, conversation=name, id=f"{name} {messages}")
        found = [Finding("XX901", "x", "info", "high", "model", "request", message) for message in messages]
        made = issues.recognise(exchange, found, ((name, 99.0),))
        issues.record(exchange, made, 1)
        return [finding.is_known for finding in made]

    assert pass_by("one", "a", "b", "c") == [False] * 3
    assert pass_by("two", "a", "b", "c") == [False] * 3
    assert pass_by("one", "a", "d") == [True, False], "and `two` had to go"
    assert len(issues) == 4
    assert pass_by("two", "a") == [False]
    assert pass_by("one", *(str(number) for number in range(20))) == [False] * 20
    assert len(issues) == 6, "of the only conversation there is the oldest issues go"


# --- how it is counted ------------------------------------------------------------------------------------------------


def mangled(count: int) -> list[dict[str, Any]]:
    """A session whose client strips the ids of all its calls."""
    records, history = [], list[Said]()
    for number in range(count):
        call = Call("read_notes", {"page": number}, f"functions.read_notes:{number}")
        asked = (User("Read me the notes."), *history)
        made = Talk(asked, calls=(call,), tools={"read_notes": schema(page="integer")}, model="kimi-k2")
        records.append({**made.record("openai.chat", False), "id": f"e{number}"})
        bad = f"functionsread_notes{number}"
        history += [Assistant(calls=(dataclasses.replace(call, id=bad),)), Result(bad, f"Page {number}.")]
    return records


# --- order ------------------------------------------------------------------------------------------------------------


def test_findings_are_in_the_order_of_the_document() -> None:
    ids = [finding.pointer for finding in lint(mangled(12), ["mangled-id"])]
    assert ids == [f"/messages/{2 * number + 1}/tool_calls/0" for number in range(11)]


@pytest.mark.parametrize("stream", [False, True])
def test_the_request_comes_before_the_reply_and_events_by_number(stream: bool) -> None:
    exchange = read(Talk((User("a"), CALM), text="Good.", tools={"b": schema()}).record("openai.chat", stream))
    places = tables(__file__)["places"]
    made = [Finding("XX901", "x", "info", "high", "model", side, "so", *place) for side, *place in places]
    for shuffled in (made[::-1], made[5:] + made[:5]):
        assert [[one.side, one.pointer, one.event] for one in in_order(shuffled, exchange)] == places
