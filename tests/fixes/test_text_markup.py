"""Markup in text becomes calls, or stays, at every cut of the stream."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import FORMS, Call, Talk, User, schema, some
from tests.dialects.writers import JSON_WRITERS, TEXT_WRITERS
from tests.fixes.drive import run
from tests.fixes.passing import ANTHROPIC, OPENAI, Passed, send
from tests.selection import rotated, sampled
from wirelint.events import Delta
from wirelint.fix import MOST_HELD
from wirelint.fixes.promote_markup import PUT_BACK
from wirelint.model import Kind

VECTORS = Path(__file__).parents[1] / "dialects" / "vectors"
RULE = ("xml-leak",)
TOOLS = {
    "find_ferry": schema(("harbour",), harbour="string", seats="integer", deck={"type": ["string", "null"]}),
    "ping": schema(),
}
WRITERS: dict[str, Any] = {**dict(JSON_WRITERS), **dict(TEXT_WRITERS)}
NAMES = ("hermes_json", "kimi_k2", "kimi_invoke_arg", "anthropic_xml", "qwen3_coder_xml", "deepseek_v3_1")
DIALECTS: dict[str, str] = {name: WRITERS[name]("find_ferry", {"harbour": "Bodø", "seats": 2}) for name in NAMES}
HERMES, KIMI = DIALECTS["hermes_json"], DIALECTS["kimi_k2"]
FERRY = ("find_ferry", {"harbour": "Bodø", "seats": 2})


@dataclass(frozen=True)
class Case:
    """What a reply says, and what a client has of it after the repair."""

    text: str
    left: str
    calls: Sequence[tuple[str, Any]] = ()
    talk: Talk = field(default_factory=lambda: Talk(tools=TOOLS))
    reason: str | None = None


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, markup in DIALECTS.items():
        found[f"{name} alone"] = Case(markup, "", [FERRY])
        found[f"{name} after prose"] = Case(f"Let me see.\n\n{markup}", "Let me see.\n\n", [FERRY])
        found[f"{name} between prose"] = Case(
            f"Let me see.\n{markup}\n\nOne moment.", "Let me see.\nOne moment.", [FERRY]
        )
        found[f"{name} twice"] = Case(f"{markup}\n{markup}", "", [FERRY, FERRY])
        found[f"{name} twice with prose between"] = Case(f"{markup} and {markup} done", "and done", [FERRY, FERRY])
        found[f"{name} after white space"] = Case(f"\n \n{markup}\n", "", [FERRY])
        found[f"{name} in a fence"] = Case(
            f"It is written so:\n```\n{markup}\n```\nThat is all.",
            f"It is written so:\n```\n{markup}\n```\nThat is all.",
        )
        other = markup.replace("find_ferry", "book_cabin")
        found[f"{name} of no declared tool"] = Case(f"So: {other} there.", f"So: {other} there.")
        found[f"{name} that may not call"] = Case(markup, markup, talk=Talk(tools=TOOLS, tool_choice="none"))
    null = '<invoke name="find_ferry"><arg name="harbour">Bodø</arg><arg name="deck">null</arg></invoke>'
    found["the word null"] = Case(null, "", [("find_ferry", {"harbour": "Bodø", "deck": None})])
    found["no arguments"] = Case('<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>', "", [("ping", {})])
    for word in ("assistantcommentary", "commentary"):
        glued = f'Let me see.{word} to=functions.find_ferry json{{"harbour": "Bodø", "seats": 2}}'
        found[f"{word} glued to a sentence"] = Case(glued, "Let me see.", [FERRY])
    cut = HERMES[: HERMES.index("Bod") + 2]
    found["cut off"] = Case(cut, cut, reason="length")
    found["a tag in inline code"] = Case("Write `<tool_call>` and then JSON.", "Write `<tool_call>` and then JSON.")
    inline = 'So `<invoke name="find_ferry"><arg name="harbour">Oslo</arg></invoke>` is how.'
    found["a call in inline code"] = Case(inline, inline)
    found["a tag in prose"] = Case("The <tool_call> tag wraps calls.", "The <tool_call> tag wraps calls.")
    found["code full of brackets"] = Case(
        "if (a<b && c>d) { List<Tool> t = x<y; }\n<div>&lt;p&gt;</div>",
        "if (a<b && c>d) { List<Tool> t = x<y; }\n<div>&lt;p&gt;</div>",
    )
    half = f"{HERMES}\n{HERMES.replace('find_ferry', 'book_cabin')}"
    found["a run with one undeclared"] = Case(half, half)
    two = f"{HERMES}, then {HERMES.replace('find_ferry', 'book_cabin')}."
    found["two runs, one undeclared"] = Case(two, two.replace(HERMES, "", 1), [FERRY])
    lone = "Done.</parameter></function></tool_call>"
    found["closers alone"] = Case(lone, lone)
    asked = Talk((User(f"What does this say: {HERMES}"),), tools=TOOLS)
    found["what the user showed"] = Case(f"It says {HERMES}.", f"It says {HERMES}.", talk=asked)
    value = '<parameter name="harbour">a <invoke name="ping"> b</parameter>'
    found["markup inside a value"] = Case(
        f'<invoke name="find_ferry">{value}</invoke>', "", [("find_ferry", {"harbour": 'a <invoke name="ping"> b'})]
    )
    tokens = "<|tool_call_end|><|tool_calls_section_end|>"
    within = KIMI.replace("Bodø", f"{tokens} and on")
    found["closers inside a value"] = Case(within, "", [("find_ferry", {"harbour": f"{tokens} and on", "seats": 2})])
    return found


CASES = cases()


def reason_of(case: Case, api: str) -> str:
    if case.reason is not None:
        return case.reason if api == OPENAI else "max_tokens"
    return "stop" if api == OPENAI else "end_turn"


def passes(case: Case, pieces: Sequence[str], api: str, *, streamed: bool = True, kind: Kind = "text") -> Passed:
    return send(case.talk, [(kind, pieces)], RULE, api=api, streamed=streamed, reason=reason_of(case, api))


def expected(case: Case, api: str) -> tuple[object, ...]:
    called = "tool_calls" if api == OPENAI else "tool_use"
    return case.left, "", list(case.calls), called if case.calls else reason_of(case, api)


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_markup_in_a_whole_body_becomes_calls_or_stays(case: Case, api: str) -> None:
    passed = passes(case, [case.text], api, streamed=False)
    assert passed.said == expected(case, api)
    assert passed.untouched == (not case.calls)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_markup_in_a_stream_becomes_calls_or_stays_at_every_cut(case: Case) -> None:
    cuts = [[case.text[:place], case.text[place:]] for place in sampled(range(1, len(case.text)), 2)]
    for api in rotated([OPENAI, ANTHROPIC], case.text):
        for pieces in (list(case.text), *cuts):
            passed = passes(case, pieces, api)
            assert passed.said == expected(case, api), pieces
            assert passed.untouched == (not case.calls)


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_vector_is_read_in_a_stream_as_in_a_body(path: Path) -> None:
    """Character by character, and cut in two at any place; the default run tries one of these for some vectors."""
    for line in sampled(path.read_text(encoding="utf-8").splitlines(), 4):
        vector = json.loads(line)
        tools = {tool["name"]: tool.get("schema") or schema() for tool in vector["tools"]}
        case = Case(vector["text"], "", talk=Talk(tools=tools))
        whole = passes(case, [case.text], OPENAI, streamed=False)
        cuts = [[case.text[:at], case.text[at:]] for at in sampled(range(1, len(case.text)), 5)]
        for pieces in rotated([list(case.text), *cuts], case.text):
            assert passes(case, pieces, OPENAI).said == whole.said, (vector["case"], pieces)


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
    pieces = ["Hm. ", HERMES[:20], HERMES[20:50]]
    passed = send(Talk(tools=TOOLS), [("text", pieces)], RULE, reason=None, ended=False)
    assert passed.untouched


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
    passed = send(Talk(tools=TOOLS), [("text", [text[at : at + 23] for at in range(0, len(text), 23)])], RULE)
    assert passed.untouched


def test_a_run_over_the_limit_stays_with_a_note() -> None:
    long = HERMES.replace("Bodø", "B" * MOST_HELD)
    for streamed in (False, True):
        passed = send(
            Talk(tools=TOOLS),
            [("text", [long[at : at + 999] for at in range(0, len(long), 999)])],
            RULE,
            streamed=streamed,
        )
        assert passed.untouched
    assert "released unchanged" in passed.context.notes[0]


WORDS = st.sampled_from(
    ["Well. ", "a < b ", "\n\n", "`x` ", "```\ny\n```\n", "<b>so</b> ", "read ", "functions", "é▁｜ "]
)


@given(
    st.lists(st.one_of(WORDS, st.sampled_from(sorted(DIALECTS.values()))), min_size=1, max_size=7),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.sampled_from([OPENAI, ANTHROPIC]),
)
def test_a_stream_is_repaired_as_a_body(parts: list[str], steps: list[int], api: str) -> None:
    text, pieces, at = "".join(parts), [], 0
    for step in itertools.cycle(steps):
        if at >= len(text):
            break
        pieces.append(text[at : at + step])
        at += step
    case = Case(text, "")
    whole, streamed = passes(case, [text], api, streamed=False), passes(case, pieces, api)
    assert streamed.said == whole.said
    assert streamed.untouched == (not whole.choice.calls)
    assert all(not isinstance(event, Delta) or event.text for event in streamed.out)


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
    passed = send(Talk(tools=TOOLS), [("text", ["Hm. ", HERMES, " so"])], RULE, api=api, reason=None, ended=ended)
    if ended:
        assert passed.said == ("Hm. so", "", [FERRY], "tool_calls" if api == OPENAI else "tool_use")
    else:
        assert not passed.choice.calls
        assert passed.choice.text == f"Hm. so{HERMES} "
