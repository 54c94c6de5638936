"""An exchange as a conversation: turns, results beside their calls, thinking folded, findings at their place."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tests.build import REGISTRY, Talk, User, as_record, judged, schema
from tests.rules.case import read, read_talk
from tests.tables import rows, tables
from wirelint.capture.offline import Checked, Fixed, fix
from wirelint.registry import page_url
from wirelint.view.text import list_conversations, render_conversation

TOOLS = {"look_up": schema(city="string")}
MARKUP = '<tool_call>{"name": "look_up", "arguments": {"city": "Oslo"}}</tool_call>'

TALKS: dict[str, Any] = read(tables(__file__))["talks"]
"""The texts of messages, the rules that find something in them, and lines of the page that shows them."""


def checked(talk: Talk, rules: str) -> Checked:
    return judged(talk.record("openai.chat", False), rules)


def shown(found: Checked, width: int = 80, *, colour: bool = False, **how: bool) -> list[str]:
    out = io.StringIO()
    system: Any = "standard" if colour else None
    console = Console(file=out, width=width, color_system=system, force_terminal=colour, highlight=False)
    console.print(render_conversation(found, **how))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@rows(TALKS)
def test_a_conversation_is_shown_turn_by_turn(talk: dict[str, Any], rules: str, lines: list[str]) -> None:
    whole = shown(checked(read_talk(dict(talk)), rules))
    start = whole.index(lines[0])
    assert whole[start : start + len(lines)] == lines


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_conversation_fits_the_terminal(width: int) -> None:
    for talk, rules, _ in TALKS.values():
        assert max(map(len, shown(checked(read_talk(dict(talk)), rules), width))) <= width


def test_a_finding_leads_to_the_page_of_its_rule() -> None:
    found = checked(Talk(text=MARKUP, tools=TOOLS), "xml-leak")
    assert any(f";{page_url('xml-leak')}\x1b" in line for line in shown(found, colour=True))
    assert not any("http" in line for line in shown(found)[3:])


def test_evidence_far_into_a_long_text_is_shown() -> None:
    talk = Talk((User("Go."),), text="x" * 5_000 + " " + MARKUP + " " + "y" * 5_000, tools=TOOLS)
    text = "".join("".join(shown(checked(talk, "xml-leak"))).split())
    assert "<tool_call>" in text
    assert "(+4801characters)…" in text
    assert "xxxx" * 60 not in text


def test_both_sides_stand_one_after_the_other() -> None:
    record = as_record(Talk((User("Go."),), text=MARKUP, tools=TOOLS).record("openai.chat", False))
    (fixed,) = fix([record], REGISTRY.select(["xml-leak"]), REGISTRY.permit("unsafe"))
    assert isinstance(fixed, Fixed)
    lines = shown(judged(fixed.record, "xml-leak"))
    came = next(number for number, line in enumerate(lines) if line.startswith("LK101  reply"))
    sent = next(number for number, line in enumerate(lines) if line.startswith("    ✎  delivered"))
    assert came < sent
    assert '→ look_up {"city":"Oslo"}' in lines[sent]
    assert any("fixed (unsafe)" in line for line in lines[came:sent])


def test_the_list_fits_and_names_the_worst_first() -> None:
    talks = [Talk(text=MARKUP, tools=TOOLS), Talk((User("Hi."),), text="Hi.")]
    for width in (80, 160):
        found = [checked(talk, "ALL") for talk in talks]
        lines = [line.plain for line in list_conversations(found, width)]
        assert lines[1].startswith("  ● test:1")
        assert "xml-leak" in "".join(lines)
        assert lines[-1].startswith("  ✓ test:1")
        assert max(map(len, lines)) <= width
