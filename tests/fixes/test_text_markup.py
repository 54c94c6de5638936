"""Markup in text becomes calls, or stays, at every cut of the stream."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, FORMS, Call, Talk, User, schema, some
from tests.dialects.writers import JSON_WRITERS, TEXT_WRITERS
from tests.fixes.drive import Result, run, without_end
from tests.selection import in_batches, rotated, sampled
from tests.tables import tables
from wirelint.fix import MOST_HELD
from wirelint.fixes.promote_markup import PUT_BACK

VECTORS = Path(__file__).parents[1] / "dialects" / "vectors"
RULE = ("xml-leak",)
OPENAI, ANTHROPIC = APIS
TOOLS = {
    "find_ferry": schema(("harbour",), harbour="string", seats="integer", deck={"type": ["string", "null"]}),
    "ping": schema(),
}
WRITERS: dict[str, Any] = {**dict(JSON_WRITERS), **dict(TEXT_WRITERS)}
NAMES = ("hermes_json", "kimi_k2", "kimi_invoke_arg", "anthropic_xml", "qwen3_coder_xml", "deepseek_v3_1")
DIALECTS: dict[str, str] = {name: WRITERS[name]("find_ferry", {"harbour": "Bodø", "seats": 2}) for name in NAMES}
HERMES = DIALECTS["hermes_json"]
FERRY = ("find_ferry", {"harbour": "Bodø", "seats": 2})


@dataclass(frozen=True)
class Case:
    """What a reply says, and what a client has of it after the repair."""

    text: str
    left: str
    calls: Sequence[tuple[str, Any]] = ()
    talk: Talk = field(default_factory=lambda: Talk(tools=TOOLS))
    reason: str | None = None


def case_of(row: Mapping[str, Any], markup: str = "") -> Case:
    """A case from its row. `calls` is their number where each is that of the `markup`; without `left` all text is."""
    other = markup.replace("find_ferry", "book_cabin")
    text, left = (
        row.get(name, row["text"]).replace("%call%", markup).replace("%other%", other) for name in ("text", "left")
    )
    calls = [FERRY] * row.get("calls", 0) if markup else [(name, given_) for name, given_ in row.get("calls", ())]
    talk = Talk((User(row.get("user", "Please go on.")),), tools=TOOLS, tool_choice=row.get("tool_choice"))
    return Case(text, left, calls, talk, row.get("reason"))


TABLES = tables(__file__)
CASES = {
    **{f"{name} {how}": case_of(row, made) for name, made in DIALECTS.items() for how, row in TABLES["each"].items()},
    **{name: case_of(row) for name, row in TABLES["others"].items()},
}


def reason_of(case: Case, api: str) -> str:
    if case.reason is not None:
        return case.reason if api == OPENAI else "max_tokens"
    return "stop" if api == OPENAI else "end_turn"


def passes(case: Case, api: str, *, streamed: bool = True, first: int = 0, step: int = 1) -> Result:
    talk = replace(case.talk, text=case.text, finish=case.reason or "stop", first=first, step=step)
    return run(talk.record(api, streamed), RULE)


def expected(case: Case, api: str) -> tuple[object, ...]:
    called = "tool_calls" if api == OPENAI else "tool_use"
    return case.left, "", list(case.calls), called if case.calls else reason_of(case, api)


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
@in_batches("case", CASES.values(), ids=CASES)
def test_markup_in_a_whole_body_becomes_calls_or_stays(case: Case, api: str) -> None:
    passed = passes(case, api, streamed=False)
    assert passed.said == expected(case, api)
    assert passed.changed == bool(case.calls)


@in_batches("name", sampled(list(CASES), 28), size=6)
def test_markup_in_a_stream_becomes_calls_or_stays_at_every_cut(name: str) -> None:
    case = CASES[name]
    for api in rotated([OPENAI, ANTHROPIC], case.text):
        for first, step in two_pieces(case.text, 1):
            passed = passes(case, api, first=first, step=step)
            assert passed.said == expected(case, api), first
            assert passed.changed == bool(case.calls)


def two_pieces(text: str, some: int) -> list[tuple[int, int]]:
    """Characters of the first delta and of the others: a few at a time, and the text cut in two at some places."""
    steps = rotated([(0, 1), (0, 2), (0, 5)], text)
    return [*steps, *((place, len(text)) for place in sampled(range(1, len(text)), some))]


@in_batches("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem, size=10)
def test_every_vector_is_read_in_a_stream_as_in_a_body(path: Path) -> None:
    """Character by character, and cut in two at any place; the default run tries one of these for some vectors."""
    for line in sampled(path.read_text(encoding="utf-8").splitlines(), 2):
        vector = json.loads(line)
        tools = {tool["name"]: tool.get("schema") or schema() for tool in vector["tools"]}
        case = Case(vector["text"], "", talk=Talk(tools=tools))
        whole = passes(case, OPENAI, streamed=False)
        for first, step in rotated(two_pieces(case.text, 5), case.text):
            assert passes(case, OPENAI, first=first, step=step).said == whole.said, (vector["case"], first)


# --- what follows at the end of a candidate -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "left", "changed"),
    [
        ({"harbour": "Bodø", "seats": 2}, "Wait. ", True),
        ({"harbour": "Tromsø"}, f"Wait. {HERMES}", False),
    ],
    ids=["the same call", "another call"],
)
@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_structured_calls_beside_the_markup(made: Any, left: str, changed: bool, api: str, stream: bool) -> None:
    talk = Talk(text=f"Wait. {HERMES}", calls=[Call("find_ferry", made)], tools=TOOLS)
    done = run(talk.record(api, stream), RULE)
    choice = some(done.after.reply).choices[0]
    assert (choice.text, len(choice.calls), done.changed) == (left, 1, changed)
    assert [repair.title for repair in done.repairs] == (
        ["dropped the markup of a call of find_ferry"] if changed else []
    )


@pytest.mark.parametrize(("api", "stream"), FORMS)
@pytest.mark.parametrize(
    ("text", "reasoning", "calls"),
    [("", f"A ferry, then.\n{HERMES}", 1), ("There is none.", f"Maybe {HERMES}?", 0)],
    ids=["nothing follows", "the answer follows"],
)
def test_markup_in_reasoning_becomes_a_call_unless_an_answer_follows(
    text: str, reasoning: str, calls: int, api: str, stream: bool
) -> None:
    done = run(Talk(text=text, reasoning=reasoning, tools=TOOLS).record(api, stream), RULE)
    choice = some(done.after.reply).choices[0]
    assert (len(choice.calls), done.changed) == (calls, bool(calls))
    assert choice.reasoning == (reasoning if not calls else "A ferry, then.\n")


def test_a_stream_that_dies_in_the_markup_stays_unchanged() -> None:
    record = Talk(text=f"Hm. {HERMES[:50]}", tools=TOOLS, step=24).record(OPENAI, True)
    assert not run(without_end(record), RULE, complete=False).changed


# --- what is held back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "find_ferry", "arguments": {"harbour": "' + "x" * MOST_HELD * 2,
        "<function=find_ferry>\n<parameter=harbour>" + "a > b " * 20_000,
        "<tool_call>" * 9_000,
        '<invoke name="find_ferry"> ' * 3_000,
        "<|tool_call_begin|>" * 3_000,
        "```\n<tool_call>\n```\n" * 2_000,
    ],
    ids=["json never closed", "parameter never closed", "openers", "invokes", "tokens", "fences"],
)
def test_unfinished_markup_stays_unchanged(text: str) -> None:
    step = 23 if "```" in text else 97  # fences are parsed again and again, up to a limit
    assert not run(Talk(text=text, tools=TOOLS, step=step).record(OPENAI, True), RULE).changed


def test_a_run_over_the_limit_stays_with_a_note() -> None:
    long = HERMES.replace("Bodø", "B" * MOST_HELD)
    for streamed in (False, True):
        passed = run(Talk(text=long, tools=TOOLS, step=999).record(OPENAI, streamed), RULE)
        assert not passed.changed
    assert "released unchanged" in passed.notes[0]


WORDS = st.sampled_from(
    ["Well. ", "a < b ", "\n\n", "`x` ", "```\ny\n```\n", "<b>so</b> ", "read ", "functions", "é▁｜ "]
)


@given(
    st.lists(st.one_of(WORDS, st.sampled_from(sorted(DIALECTS.values()))), min_size=1, max_size=7),
    st.integers(0, 60),
    st.integers(1, 40),
    st.sampled_from([OPENAI, ANTHROPIC]),
)
def test_a_stream_is_repaired_as_a_body(parts: list[str], first: int, step: int, api: str) -> None:
    case = Case("".join(parts), "")
    whole, streamed = passes(case, api, streamed=False), passes(case, api, first=first, step=step)
    assert streamed.said == whole.said
    assert streamed.changed == bool(whole.choice.calls)


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
def test_markup_that_is_put_back_behind_later_text_is_noted(api: str) -> None:
    talk = Talk(text=f"Wait. {HERMES} It is there.", calls=[Call("find_ferry", {"harbour": "Tromsø"})], tools=TOOLS)
    done = run(talk.record(api, True), RULE)
    assert some(done.after.reply).choices[0].text == f"Wait. It is there.{HERMES} "
    assert done.notes == (PUT_BACK,)


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("ended", [True, False])
def test_markup_before_a_missing_finish_reason(api: str, ended: bool) -> None:
    """A terminator without a reason ends the reply all the same; a stream that breaks off gives back what it held."""
    record = Talk(text=f"Hm. {HERMES} so", tools=TOOLS, finish=None, step=4).record(api, True)
    passed = run(record if ended else without_end(record), RULE, complete=ended)
    if ended:
        assert passed.said == ("Hm. so", "", [FERRY], "tool_calls" if api == OPENAI else "tool_use")
    else:
        assert not passed.choice.calls
        assert passed.choice.text == f"Hm. so{HERMES} "
