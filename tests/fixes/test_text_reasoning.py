"""Fixes of reasoning and tokens in visible text, whole and at every cut. Cases: `reasoning_cases.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.build import APIS as SHAPED
from tests.build import Talk, User, as_record, schema, some
from tests.fixes.drive import Result, run
from tests.selection import in_batches, rotated, sampled
from wirelint.apis import APIS, channel_of
from wirelint.apis.traits import is_raw
from wirelint.fix import FixPolicy

OPENAI, ANTHROPIC = SHAPED
TOOLS = {"find_ferry": schema(harbour="string")}


CASES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("reasoning_cases.toml").read_text(encoding="utf-8")
)


@in_batches("case", CASES.values(), ids=CASES)
def test_reasoning_and_tokens_leave_the_text_at_every_cut(case: Mapping[str, Any]) -> None:
    """`live = false`: a stream has left before the fix is certain."""
    text = case["text"]
    more: dict[str, Any] = {name: case[name] for name in ("model", "request") if name in case}
    if "user" in case:
        more["history"] = (User(case["user"]),)
    more["tools"] = TOOLS if case.get("tools", True) else {}
    permit = FixPolicy(case.get("most", "unsafe"))
    wanted = case.get("left", text).strip(), case.get("thought", "")
    cuts = [(0, 1), *((at, len(text)) for at in sampled(range(1, len(text)), 2))]
    rules = case.get("rules", ["think-leak"])
    pieces = (None, 0), *(cuts if case.get("live", True) else ())
    for api, (first, step) in product(rotated(SHAPED, f"{text} {rules}"), pieces):
        talk = Talk(text=text, first=first or 0, step=step, **more)
        passed = run(talk.record(api, first is not None), rules, permit)
        assert (passed.choice.text.strip(), passed.choice.reasoning) == wanted, (api, first)
        assert passed.changed == bool(passed.repairs) == ("left" in case)


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_comes_before_text_and_no_block_is_empty(stream: bool) -> None:
    talk = Talk(text="<think>Hm, hm.</think>\n\nHello!", step=3)
    done = run(talk.record(ANTHROPIC, stream), ["think-leak"])
    assert [type(part).__name__ for part in some(done.after.reply).choices[0].parts] == ["Reasoning", "Text"]
    assert done.delivered.count(b'"type": "text"') + done.delivered.count(b'"type":"text"') == 1


@pytest.mark.parametrize(
    "text", ["It is 4.</think>", "It is 4.\n</think>\n\n", "It\nis 4. [/THINK]", "<think>Hm.</think>4</think>"]
)
@pytest.mark.parametrize("step", [3, 400])
@in_batches("stream", [False, True])
def test_an_answer_with_a_lone_closing_tag_behind_it_stays(text: str, step: int, stream: bool) -> None:
    for api in APIS:
        if channel_of(api.name) == "model":
            done = run(Talk(text=text, step=step).record(api.name, stream))
            assert "4" in some(done.after.reply).choices[0].text, api.name


SENTENCE = "They greet me, so I greet."
LONE = f"{SENTENCE}\n</think>\n\nHello, friend!"
STREAMS = [api.name for api in APIS if channel_of(api.name) == "model" and not is_raw(api.name, None)]


@pytest.mark.parametrize("text", [LONE, LONE.replace("</think>", "assistantfinal")], ids=["tag", "channel"])
@in_batches(("api", "step"), [(api, step) for api in STREAMS for step in rotated([1, 3, 7], api)])
def test_a_lone_closer_is_removed_and_the_next_reply_waits_for_one(api: str, step: int, text: str) -> None:
    first, plain = (Talk(text=said, step=step).record(api, True) for said in (text, "Hello!"))
    alone = run(first, ["think-leak"])
    assert _said(alone) == (f"{SENTENCE}\n\n\nHello, friend!", "")
    assert [finding.fix is not None for finding in alone.findings] == [True]
    known = run([first, first], ["think-leak"])
    assert _said(known) == ("Hello, friend!", SENTENCE)
    assert [finding.fix is not None for finding in known.findings] == [True]
    assert (alone.left, known.left) == ((), ())
    after = run([first, plain], ["think-leak"])
    assert (after.delivered, after.findings) == (as_record(plain, 1).response_body, ())
    assert _said(run([first, plain, first], ["think-leak"]))[1] == ""
    bare = text.replace("Hello, friend!", '{"name": "find_ferry", "arguments": {"harbour": "Oban"}}')
    called = run(Talk(text=bare, step=step, tools=TOOLS).record(api, True), ["think-leak", "xml-leak"])
    assert len(some(called.after.reply).choices[0].calls) == (api != "ollama.generate")


@pytest.mark.parametrize(
    "text",
    [
        "The tags are <think> and </think>, as you know.",
        "Write `</think>` at the end.",
        "In HTML </b> ends what <b> begins.",
        "```\nHm.\n</think>\nHello!\n```\n",
    ],
)
@pytest.mark.parametrize("step", [1, 5])
def test_a_mentioned_closing_tag_stays(text: str, step: int) -> None:
    first, spoken = (Talk(text=said, step=step).record(OPENAI, True) for said in (LONE, text))
    for records in ([spoken], [first, spoken]):
        assert run(records, ["think-leak"]).delivered == as_record(spoken, 1).response_body


def test_a_thought_that_takes_too_long_leaves_as_text_without_its_tag() -> None:
    record = Talk(text=LONE, step=3).record(OPENAI, True)
    body = as_record(record, 1).response_body or b""
    done = run([record, record], ["think-leak"], cuts=range(40, len(body), 40), step=100.0, longest_hold=2_500.0)
    assert _said(done) == (f"{SENTENCE}\n\n\nHello, friend!", "")


def _said(done: Result) -> tuple[str, str]:
    choice = some(done.after.reply).choices[0]
    return choice.text, choice.reasoning.strip()
