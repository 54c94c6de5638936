"""Fabricated results are cut with the text after them; other text stays."""

from __future__ import annotations

import dataclasses

import pytest

from tests.build import FORMS, Talk, schema, some
from tests.fixes.drive import SAFE, run
from tests.selection import in_batches

TOOLS = {"get_tide": ("The tide at a harbour.", schema(harbour="string"))}
BASE = Talk(tools=TOOLS)

CALL = '<tool_call>\n{"name": "get_tide", "arguments": {"harbour": "Bodø"}}\n</tool_call>'
CUT = {
    "tag": ("Let me see.\n<tool_response>\n{\"metres\": 2}\n</tool_response>\nHigh tide is at two.", "Let me see."),
    "tag at the beginning": ("<tool_result>2 m</tool_result> Two metres.", ""),
    "token": ("One moment.\n[TOOL_RESULTS] [{\"metres\": 2}] It is two metres.", "One moment."),
    "observation": ("Thought: look\nAction: get_tide\nAction Input: {}\nObservation: 2 m\nFinal Answer: 2 m", ""),
    "call and result": (
        f"{CALL}\n<tool_response>\n2 m\n</tool_response>\nTwo.",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("api", "stream"), FORMS)
@in_batches(("text", "left"), CUT.values(), ids=CUT)
def test_fabricated_results_are_cut(text: str, left: str | None, api: str, stream: bool) -> None:
    record = dataclasses.replace(BASE, text=text).record(api, stream)
    result = run(record, ["fabricated-result", "xml-leak", "finish-reason-mismatch"])
    reply = some(result.after.reply)
    said = reply.choices[0].text.strip()
    assert said == (text[: text.index("Observation")].strip() if left is None else left)
    assert [repair.safety for repair in result.repairs if repair.name == "fabricated-result"] == ["unsafe"]
    assert [finding for finding in result.left if finding.name == "fabricated-result"] == []
    if text.startswith("<tool_call>"):
        assert [(call.name, call.arguments.value) for call in reply.choices[0].calls] == [
            ("get_tide", {"harbour": "Bodø"})
        ]
    assert run(record, ["fabricated-result"], SAFE).delivered == record["response"]["body"].encode()


def test_many_markers_are_read_a_few_times_only() -> None:
    text = "The tag `<tool_response>` is a tag. " * 4000
    record = dataclasses.replace(BASE, text=text, step=40).record("openai.chat", True)
    assert run(record, ["fabricated-result"]).delivered == record["response"]["body"].encode()
