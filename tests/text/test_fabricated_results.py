from __future__ import annotations

import pytest

from wirelint.text.fabricated_results import invented_result, lays_down

FOUND = {
    "tag": ("Ok.\n<tool_result>\n4", "<tool_result>"),
    "token": ("<｜tool▁output▁begin｜>4", "<｜tool▁output▁begin｜>"),
    "label": ("Action: x\nAction Input: y\nObservation: 4", "Observation:"),
    "no body": ("<tool_result>", None),
    "spoken of": ("The <tool_result> tag holds it.", None),
    "code": ("`<tool_result>` holds 4", None),
    "label alone": ("Observation: it rains", None),
}


@pytest.mark.parametrize(("text", "marker"), FOUND.values(), ids=FOUND)
def test_invented_result(text: str, marker: str | None) -> None:
    found = invented_result(text)
    assert (found.marker if found else None) == marker
    assert found is None or text[found.start : found.end].startswith(marker or "")


PROMPTS = {
    "react": ("Write an Action; the program writes the Observation.", "Observation:", True),
    "react, never made up": ("Write an Action. Never make up an Observation.", "Observation:", True),
    "own play": ("Write an Action, then simulate its Observation.", "Observation:", False),
    "half of it": ("Note every Observation.", "Observation:", False),
    "tag": ("Results come in <tool_result> tags.", "<tool_result>", True),
    "another tag": ("Think in <plan> tags.", "<tool_result>", False),
}


@pytest.mark.parametrize(("prompt", "marker", "expected"), PROMPTS.values(), ids=PROMPTS)
def test_lays_down(prompt: str, marker: str, expected: bool) -> None:
    assert lays_down(prompt, marker) is expected
