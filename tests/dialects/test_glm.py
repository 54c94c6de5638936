"""GLM's calls without their start, and turns with a role token.

Vectors cannot hold these: a name glued to prose has been sent before the markup after it is seen, and a role token belongs
to no call.
"""

from __future__ import annotations

import pytest

from wirelint.dialects import find, look
from wirelint.model import Json, Tool

LIST = Tool(
    "list_folder", "/tools/0", schema={"properties": {"path": {"type": "string"}, "depth": {"type": "integer"}}}
)
LS = Tool("ls", "/tools/1", schema={"properties": {"path": {"type": "string"}}})
PATH = "<arg_key>path</arg_key>\n<arg_value>.</arg_value>\n"

HEADLESS: dict[str, tuple[str, str, str | None]] = {
    "after-full-stop": (f"First the folder.list_folder\n{PATH}</tool_call>", "First the folder.", "list_folder"),
    "after-colon": (f"Now:list_folder\n{PATH}</tool_call>", "Now:", "list_folder"),
    "after-a-letter": (f"Let me list the folderlist_folder\n{PATH}", "Let me list the folder", "list_folder"),
    "after-cjk": (f"先看目录list_folder\n{PATH}</tool_call>", "先看目录", "list_folder"),
    "as-a-word": (f"I use list_folder\n{PATH}</tool_call>", "I use", "list_folder"),
    "behind-thinking": (f"</think>list_folder\n{PATH}</tool_call>", "</think>", "list_folder"),
    "short-name-in-a-word": (f"in all details\n{PATH}</tool_call>", "", None),
    "short-name-after-a-mark": (f"Now:ls\n{PATH}</tool_call>", "Now:", "ls"),
    "no-name": (f"Now the folder.\n{PATH}</tool_call>", "", None),
    "keys-of-no-tool": ("list_folder\n<arg_key>colour</arg_key>\n<arg_value>.</arg_value>\n</tool_call>", "", None),
}


@pytest.mark.parametrize(("text", "rest", "name"), HEADLESS.values(), ids=HEADLESS.keys())
def test_a_name_before_arguments_is_that_of_a_declared_tool(text: str, rest: str, name: str | None) -> None:
    blocks = [block for block in find(text, (LIST, LS)) if block.calls]
    if name is None:
        assert not blocks
        return
    (block,) = blocks
    assert [(call.name, call.arguments) for call in block.calls] == [(name, {"path": "."})]
    assert block.complete
    assert (text[: block.start] + text[block.end :]).strip() == rest


TURNS: dict[str, tuple[str, dict[str, Json] | None, bool]] = {
    "json": ('I look.<|assistant|>list_folder\n{"path": "."}', {"path": "."}, True),
    "json-on-its-own-line": ('I look.\n<|assistant|>\nlist_folder\n{"depth": 2}\n', {"depth": 2}, True),
    "python": ("So.<|assistant|>list_folder\n```python\ntool_call(path='.')\n```<|observation|>", {"path": "."}, True),
    "trailing-comma": ('<|assistant|>list_folder\n{"path": ".",}', {"path": "."}, True),
    "cut": ('I look.<|assistant|>list_folder\n{"path": "', None, False),
}


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


OTHER_TURNS = {
    "undeclared": '<|assistant|>summary\n{"path": "."}',
    "keys-of-no-tool": '<|assistant|>list_folder\n{"colour": 1}',
    "prose-after": '<|assistant|>list_folder\n{"path": "."} lists the folder',
    "other-code": "<|assistant|>list_folder\n```python\nprint('x')\n```",
}


@pytest.mark.parametrize("text", OTHER_TURNS.values(), ids=OTHER_TURNS.keys())
def test_other_lines_behind_a_role_token_are_none(text: str) -> None:
    assert find(text, (LIST,)) == ()
