from __future__ import annotations

import pytest

from wirelint.knowledge.invented import invented_result

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
