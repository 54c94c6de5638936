"""Findings as compilers print them: the source around the evidence, carets beneath."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.cells import cell_len

from tests.build import REGISTRY, Call, Talk, User, as_record, chunk, exchange, judged, schema, sse
from tests.tables import rows
from wirelint.capture.offline import Checked, check
from wirelint.view.bodies import Evidence, Source, excerpt_lines, windowed

NOTES = {"search_notes": schema(query="string")}
ASK = (User("Search my notes."),)
MARKUP = 'Let me look. <tool_call>{"name": "search_notes", "arguments": {"query": "launch"}}</tool_call>'


def shown(found: Checked, width: int = 60) -> list[str]:
    evidence = Source(found).evidence(found.findings[0])
    return [line.plain.rstrip() for line in excerpt_lines(evidence, width, "red")]


def openai(*deltas: dict[str, Any]) -> dict[str, Any]:
    body = json.loads(Talk(ASK, tools=NOTES).record("openai.chat", True)["request"]["body"])
    return exchange(
        "/v1/chat/completions", body, sse(*map(chunk, deltas), done=False), content_type="text/event-stream"
    )


CASES: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "text of a whole body, with escapes": (
        Talk(ASK, text=MARKUP, tools=NOTES).record("openai.chat", False),
        "xml-leak",
        [
            "     │",
            '     │ …me look. <tool_call>{\\"name\\": \\"search_notes\\", \\"…',
            "     │           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        ],
    ),
    "text in pieces: joined, and the event that it begins with": (
        Talk(ASK, text=MARKUP, tools=NOTES, step=9).record("anthropic.messages", True),
        "xml-leak",
        [
            "     │",
            'text │ …me look. <tool_call>{"name": "search_notes", "argum…',
            "     │           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            '   4 │ …delta": {"type": "text_delta", "text": "ok. <tool"}}',
            "     │                                              ^^^^^",
        ],
    ),
    "a name": (
        Talk(ASK, calls=(Call("open_browser"),), tools=NOTES).record("openai.chat", False),
        "undeclared-tool",
        [
            "     │",
            '     │ …unction": {"name": "open_browser", "arguments": "{}…',
            "     │                      ^^^^^^^^^^^^",
        ],
    ),
    "an event": (
        openai({"content": "Mercury, Ve"}),
        "truncated-stream",
        [
            "     │",
            '   0 │ …elta": {"content": "Mercury, Ve"}, "finish_reason":…',
            "     │                      ^^^^^^^^^^^",
        ],
    ),
}


@rows(CASES)
def test_what_a_finding_shows(record: dict[str, Any], rule: str, lines: list[str]) -> None:
    assert shown(judged(record, rule)) == lines


@pytest.mark.parametrize("width", [30, 44, 80, 160])
@pytest.mark.parametrize("name", CASES)
def test_it_fits_and_the_carets_stand_under_the_evidence(name: str, width: int) -> None:
    record, rule, _ = CASES[name]
    found = judged(record, rule)
    lines = shown(found, width)
    assert max(map(len, lines)) <= max(width, 32)
    for evidence in Source(found).evidence(found.findings[0]):
        window = windowed(evidence, width)
        under = window.text[window.start : window.start + window.size]
        assert evidence.text[evidence.start : evidence.end].startswith(under.rstrip("…").replace("↵", "\n"))


WINDOWS = {
    "everything fits": (("abcdef", 2, 4), 20, ("abcdef", 2, 2)),
    "nothing stands out": (("abcdefghij", 0, 0), 5, ("abcd…", 0, 0)),
    "far to the right": (("x" * 500 + "HERE" + "y" * 500, 500, 504), 14, ("…xxxxHEREyyyy…", 5, 4)),
    "evidence that is too long": (("x" * 50 + "E" * 90, 50, 140), 10, ("…xEEEEEEE…", 2, 8)),
    "orders to a terminal": (("a\x1b[2J\x07b", 1, 6), 40, ("a\\u001b[2J\\u0007b", 1, 15)),
    "line ends": (("a\r\nb\tc", 3, 4), 20, ("a␍↵b⇥c", 3, 1)),
    "wide characters": (("很好吃的HERE", 4, 8), 20, ("很好吃的HERE", 8, 4)),
    "marks that turn the direction": (("a\u202eb", 2, 3), 20, ("a\\u202eb", 7, 1)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_is_cut_around_the_evidence(name: str) -> None:
    (text, start, end), room, window = WINDOWS[name]
    made = windowed(Evidence(text, start, end), room)
    assert tuple(made) == window
    assert cell_len(made.text) <= room


def test_every_finding_of_the_examples_can_be_shown() -> None:
    """Of every rule, whatever its example is: nothing raises, and nothing is wider than the terminal."""
    for rule in REGISTRY.rules:
        prior = rule.example.fires.get("prior", ())
        records = [as_record(dict(one)) for one in (*prior, rule.example.fires)]  # type: ignore[misc]
        for item in check(records, [rule]):
            assert isinstance(item, Checked)
            source = Source(item)
            for finding in item.findings:
                for line in excerpt_lines(source.evidence(finding), 60, "red"):
                    assert cell_len(line.plain) <= 60, (rule.name, line.plain)
