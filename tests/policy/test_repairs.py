"""Policies on replies: report, replace, drop and block, in every API, whole and streamed, at every cut."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import CALLING, FORMS, REGISTRY, Call, Talk, User, as_record, forms, schema, some
from tests.cuts import cuts, events_of
from tests.fixes.drive import SAFE, UNSAFE, Result, run
from tests.policy.test_judging import SHELF, parse
from tests.selection import in_batches, sampled
from tests.tables import rows, tables
from wirelint.engine import Session
from wirelint.fix import FixPolicy
from wirelint.rewrite import ReplyStream
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

ALL = forms(*CALLING)
WORKSPACE = """
[[policy]]
name = "the workspace"
tools = "lookup"
arguments = "workspace"
required = true
existing-dir = true
action = "replace"
with = "/srv/kb"
safety = "safe"
"""
BELOW = """
[[policy]]
name = "a shelf"
tools = "lookup"
arguments = "shelf"
existing-dir = "/srv/kb"
action = "{action}"
{more}
"""
POLICIES = {
    "workspace": WORKSPACE,
    "null": BELOW.format(action="replace", more="null = true"),
    "drop": BELOW.format(action="drop", more=""),
    "block": BELOW.format(action="block", more=""),
}
TOOLS = {
    "lookup": schema(("query",), query="string", workspace="string", shelf={"type": ["string", "null"]}),
    "note": schema(text="string"),
}


def rule(text: str) -> Rule:
    return REGISTRY.get("AR404").under(parse(text, SHELF))


def talk(*calls: Call, text: str = "") -> Talk:
    return Talk(history=(User("What do the letters say of the harbour?"),), tools=TOOLS, calls=calls, text=text)


def lookup(id_: str = "call_a1b2c3d4e5f6", **arguments: Any) -> Call:
    return Call("lookup", {"query": "letters", **arguments}, id_)


def repaired(text: str, said: Talk, form: tuple[str, bool], permit: FixPolicy = UNSAFE) -> Result:
    record = said.record(*form)
    result = run(record, [rule(text)], permit)
    assert result.faults == ()
    assert result.left == tuple(
        one for one in result.left if one.fix is None or not permit.allows("AR404", one.fix.safety)
    )
    body = record["response"]["body"]
    for places in list(cuts(len(body if isinstance(body, bytes) else body.encode())))[-6:]:
        assert run(record, [rule(text)], permit, cuts=places).delivered == result.delivered
    again = run({**record, "response": {**record["response"], "body": result.delivered}}, [rule(text)], permit)
    assert again.delivered == result.delivered
    return result


def calls(result: Result) -> list[tuple[str | None, Any]]:
    return [(call.name, call.arguments.value) for call in some(result.after.reply).choices[0].calls]


def ids(form: tuple[str, bool]) -> str:
    return f"{form[0]}{' streamed' if form[1] else ''}"


@pytest.mark.parametrize("form", sampled(ALL), ids=ids)
@rows(tables(__file__)["changes"])
def test_arguments_are_changed(
    names: list[str], given: dict[str, Any], wanted: dict[str, Any], titles: list[str], form: tuple[str, bool]
) -> None:
    result = repaired("".join(POLICIES[name] for name in names), talk(lookup(**given)), form)
    assert calls(result) == [("lookup", {"query": "letters", **wanted})]
    assert [repair.title for repair in result.repairs] == [f"lookup: {title}" for title in titles]
    assert [finding.fix.title for finding in result.findings if finding.fix] != []


@in_batches("form", ALL, ids=ids)
def test_a_blocked_call_says_so_in_text(form: tuple[str, bool]) -> None:
    result = repaired(POLICIES["block"], talk(lookup(shelf="Harbour"), text="One moment."), form)
    assert calls(result) == []
    choice = some(result.after.reply).choices[0]
    assert choice.text.startswith("One moment.")
    assert 'wirelint blocked a call of `lookup`: policy a shelf: shelf "Harbour" is no directory' in choice.text
    plain = Talk(history=(User("x"),), text="One moment.").record(*form)
    assert choice.finish_reason == run(plain, [rule(WORKSPACE)], UNSAFE).after.reply.choices[0].finish_reason  # type: ignore[union-attr]
    assert [(repair.safety, repair.title) for repair in result.repairs] == [("unsafe", "lookup: blocked the call")]


@in_batches("form", ALL, ids=ids)
def test_arguments_within_all_policies_stay_unchanged(form: tuple[str, bool]) -> None:
    said = talk(lookup(workspace="/srv/kb", shelf="letters"), Call("note", {"text": "default"}, "call_f6e5d4c3b2a1"))
    text = WORKSPACE + POLICIES["block"]
    record = said.record(*form)
    result = repaired(text, said, form)
    body = record["response"]["body"]
    assert result.delivered == (body.encode() if isinstance(body, str) else body)
    assert (result.repairs, result.findings) == ((), ())


@pytest.mark.parametrize("form", FORMS, ids=ids)
def test_a_permit_is_a_limit(form: tuple[str, bool]) -> None:
    said = talk(lookup(workspace="default", shelf="Harbour"))
    text = WORKSPACE + POLICIES["drop"]
    result = repaired(text, said, form, SAFE)
    assert calls(result) == [("lookup", {"query": "letters", "workspace": "/srv/kb", "shelf": "Harbour"})]
    assert [repair.safety for repair in result.repairs] == ["safe"]
    assert [finding.fix.safety for finding in result.findings if finding.fix] == ["safe", "unsafe"]


@pytest.mark.parametrize("form", FORMS, ids=ids)
def test_a_report_changes_nothing(form: tuple[str, bool]) -> None:
    text = BELOW.format(action="report", more='severity = "error"\nmessage = "there are only letters"')
    result = repaired(text, talk(lookup(shelf="Harbour")), form)
    assert not result.changed
    assert [(finding.severity, finding.message, finding.fix) for finding in result.findings] == [
        ("error", "lookup: policy a shelf: there are only letters", None)
    ]


def _waits(said: Talk) -> list[int]:
    """How many events of a stream are held back after each of them."""
    record = as_record(said.record("openai.chat", True))
    session = some(Session.begin(id="x", method="POST", url=record.url, headers={}, body=record.request_body or b""))
    session.respond(200, {"content-type": "text/event-stream"})
    rewriting = some(ReplyStream.begin(session, [rule(WORKSPACE)], Ledger(), UNSAFE))
    events = events_of(record.response_body or b"")
    out = [b"".join(rewriting.feed(event)) for event in events]
    return [n + 1 - b"".join(out[: n + 1]).count(b"\n\n") for n in range(len(events))]


def test_calls_without_a_policy_are_not_held() -> None:
    assert set(_waits(talk(Call("note", {"text": "a long note " * 20}), text="Well."))) == {0}


def test_a_call_under_a_policy_is_held_until_it_is_over() -> None:
    waits = _waits(talk(lookup(workspace="/srv/kb"), text="Well."))
    assert waits[:2] == waits[-2:] == [0, 0], "the role and the text before, the finish reason and the end after"
    assert waits[2:-2] == list(range(1, len(waits) - 3))


def test_a_broken_stream_releases_held_events() -> None:
    record = talk(lookup(workspace="default")).record("openai.chat", True)
    body = record["response"]["body"]
    cut = body[: body.index('finish_reason": "tool_calls') - 200]
    result = run({**record, "response": {**record["response"], "body": cut}}, [rule(WORKSPACE)], UNSAFE, complete=False)
    assert result.delivered.decode() == cut
    assert result.repairs == ()


LEAKED = (
    'I will look.\n<invoke name="lookup">\n<arg name="query">letters</arg>\n'
    '<arg name="workspace">default</arg>\n<arg name="shelf">Harbour</arg>\n</invoke>'
)
BROKEN: dict[str, Talk] = {
    "printed as text": Talk((User("What of the harbour?"),), text=LEAKED, tools=TOOLS),
    "said twice": talk(Call("lookup", '{"query":"letters","workspace":"default"}' * 2)),
    "a comma too many": talk(Call("lookup", '{"query":"letters","workspace":"default","shelf":"Harbour",}')),
    "under another name": talk(Call("functions.lookup", {"query": "letters", "workspace": "default"})),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", BROKEN)
def test_policies_apply_to_the_results_of_other_fixes(name: str, streamed: bool) -> None:
    rules = [one if one.code != "AR404" else rule(WORKSPACE + POLICIES["drop"]) for one in REGISTRY.rules]
    result = run(BROKEN[name].record("openai.chat", streamed), rules, UNSAFE)
    assert result.faults == ()
    assert calls(result) == [("lookup", {"query": "letters", "workspace": "/srv/kb"})]
    assert "replaced workspace by /srv/kb" in " ".join(repair.title for repair in result.repairs)


@in_batches("form", ALL, ids=ids)
def test_of_two_calls_one_is_blocked(form: tuple[str, bool]) -> None:
    said = talk(lookup(shelf="Harbour"), Call("note", {"text": "see Harbour"}, "call_f6e5d4c3b2a1"))
    result = repaired(POLICIES["block"], said, form)
    assert calls(result) == [("note", {"text": "see Harbour"})]
    assert some(result.after.reply).choices[0].finish_reason == some(result.before.reply).choices[0].finish_reason
