"""Policy files: keys and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirelint.policy.file import load, parse
from wirelint.tables import ConfigError

HEAD = '[[policy]]\nname = "p"\n'
PATH = HEAD + 'arguments = "path"\n'
CHECKED = PATH + "absolute-path = true\n"

WRONG: dict[str, tuple[str, str, str]] = {
    # what is wrong: (the file, the key that is named, a word of the cure)
    "no TOML": ("[[policy]\n", "line 1", "correct that line"),
    "empty": ("", "no policy", "[[policy]]"),
    "one bracket": ('[policy]\nname = "p"\n', "policy", "two brackets"),
    "no arguments": (HEAD + "absolute-path = true\n", "arguments", "must be a name"),
    "nothing is checked": (PATH, "policy[1] p", "add one of"),
    "a misspelt check": (PATH + "absolut-path = true\n", "absolut-path", "did you mean absolute-path?"),
    "tool, not tools": (CHECKED + 'tool = "a"\n', "tool", "did you mean tools?"),
    "another table": ('[rules]\nselect = "LK"\n', "rules", "[[policy]]"),
    "null that is not true": (CHECKED + 'action = "replace"\nnull = false\n', "null", "must be true"),
    "a switch that is none": (PATH + "absolute-path = 1\n", "absolute-path", "true or false"),
    "an empty list": (PATH + "one-of = []\n", "one-of", "list of values"),
    "no length": (PATH + 'max-length = "3"\n', "max-length", "whole number"),
    "a range backwards": (PATH + "range = [5, 1]\n", "range", "smaller number"),
    "no such action": (CHECKED + 'action = "replce"\n', "action", "did you mean replace?"),
    "no such safety": (CHECKED + 'safety = "sure"\n', "safety", "safe"),
    "nothing to replace by": (CHECKED + 'action = "replace"\n', "action", "with = VALUE"),
    "a value without replacing": (CHECKED + 'with = "/a"\n', "with", 'action = "replace"'),
    "a constant that breaks the check": (CHECKED + 'action = "replace"\nwith = "a"\n', "with", "breaks absolute-path"),
    "null for what is required": (
        PATH + 'required = true\naction = "replace"\nnull = true\n',
        "null",
        "give it a value",
    ),
    "a required argument that is dropped": (PATH + 'required = true\naction = "drop"\n', "action", "replace it"),
    "safe blocking": (CHECKED + 'action = "block"\nsafety = "safe"\n', "safety", "never safe"),
    "an unknown placeholder": (CHECKED + 'action = "replace"\ntemplate = "/a/{home}"\n', "template", "{basename}"),
    "a broken template": (CHECKED + 'action = "replace"\ntemplate = "/a/{"\n', "template", "for brackets"),
    "a relative root": (PATH + 'existing-dir = "srv"\n', "existing-dir", "absolute path"),
    "no expression": (PATH + 'regex = "("\n', "regex", "no regular expression"),
    "no type": (PATH + 'type = "text"\n', "type", "string"),
    "a range of one": (PATH + "range = [1]\n", "range", "[1, 100]"),
    "a date": (PATH + "one-of = [2026-01-01]\n", "one-of", "in quotes"),
    "a name twice": (CHECKED + CHECKED, "policy[2].name", "name of its own"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_one_line_with_file_key_and_cure(name: str) -> None:
    text, key, cure = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        parse(text, "policies.toml")
    message = str(caught.value)
    assert message.startswith("policies.toml: ")
    assert key in message, message
    assert cure in message, message
    assert "\n" not in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'[[policy]]\nname = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"not UTF-8 at byte"):
        load(tmp_path / "latin.toml")


def test_missing_keys_have_defaults() -> None:
    (policy,) = parse('[[policy]]\narguments = "path"\nabsolute-path = true\n', "p.toml").policies
    assert (policy.name, policy.tools, policy.action, policy.safety, policy.severity) == (
        "policy 1",
        ("*",),
        "report",
        "unsafe",
        "warning",
    )
    assert not policy.required


NAMES = {
    "search": True,
    "mcp__notes__search": True,
    "notes__search": True,
    "functions.search": True,
    "functions.search:3": True,
    "notes.search": True,
    "search_all": False,
    "research": False,
}


@pytest.mark.parametrize(("name", "covered"), NAMES.items())
def test_tool_names_match_with_the_prefix_of_a_server(name: str, covered: bool) -> None:
    (policy,) = parse(CHECKED + 'tools = "search"\n', "p.toml").policies
    assert policy.covers(name) is covered


def test_globs_choose_tools() -> None:
    (policy,) = parse(CHECKED + 'tools = ["mcp__notes__*", "read_?"]\n', "p.toml").policies
    assert [policy.covers(name) for name in ("mcp__notes__x", "mcp__mail__x", "read_a", "read_ab")] == [
        True,
        False,
        True,
        False,
    ]
