"""GLM's calls without their start, and turns with a role token.

Vectors cannot hold these: a name glued to prose has been sent before the markup after it is seen, and a role token belongs
to no call.
"""

from __future__ import annotations

import pytest

from tests.tables import rows, tables
from wirelint.dialects.scan import find, look
from wirelint.model import Json, Tool

TABLES = tables(__file__)

LIST = Tool(
    "list_folder", "/tools/0", schema={"properties": {"path": {"type": "string"}, "depth": {"type": "integer"}}}
)
LS = Tool("ls", "/tools/1", schema={"properties": {"path": {"type": "string"}}})


@rows(TABLES["headless"])
def test_a_name_before_arguments_is_that_of_a_declared_tool(text: str, rest: str, name: str | None) -> None:
    blocks = [block for block in find(text, (LIST, LS)) if block.calls]
    if name is None:
        assert not blocks
        return
    (block,) = blocks
    assert [(call.name, call.arguments) for call in block.calls] == [(name, {"path": "."})]
    assert block.complete
    assert (text[: block.start] + text[block.end :]).strip() == rest


TURNS: dict[str, tuple[str, dict[str, Json] | None, bool]] = TABLES["turns"]


@pytest.mark.parametrize(("text", "arguments", "complete"), TURNS.values(), ids=TURNS.keys())
def test_a_turn_behind_a_role_token_is_a_call(text: str, arguments: dict[str, Json] | None, complete: bool) -> None:
    (block,) = find(text, (LIST,))
    assert (block.dialect, block.complete) == ("glm4_0414", complete)
    assert [(call.name, call.arguments) for call in block.calls] == [("list_folder", arguments)]
    assert text[: block.start].rstrip().endswith("<|assistant|>")


@pytest.mark.parametrize("text", [text for text, _, _ in TURNS.values()], ids=TURNS.keys())
def test_a_turn_is_not_settled_before_it_is_over(text: str) -> None:
    (whole,) = find(text, (LIST,))
    for cut in range(len(text)):
        looked = look(text[:cut], (LIST,))
        assert looked.blocks in ((), (whole,))
        opened = text.find("{") if "{" in text else text.find("tool_call(") + len("tool_call(")
        if cut > opened and not looked.blocks:
            assert looked.open is not None


@rows(TABLES["other_turns"])
def test_other_lines_behind_a_role_token_are_none(text: str) -> None:
    assert find(text, (LIST,)) == ()
