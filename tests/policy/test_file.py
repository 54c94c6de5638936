"""Policy files: keys and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.build import complaint
from tests.policy.test_judging import parse
from tests.tables import rows, tables
from wirelint.policy import load
from wirelint.tables import ConfigError

TABLES = tables(__file__)

HEAD = '[[policy]]\nname = "p"\n'
PATH = HEAD + 'arguments = "path"\n'
CHECKED = PATH + "absolute-path = true\n"


@rows(TABLES["wrong"])
def test_errors_are_one_line_with_file_key_and_cure(text: str, key: str, cure: str, tmp_path: Path) -> None:
    (tmp_path / "policies.toml").write_text(text)
    message = complaint(ConfigError, lambda: load(tmp_path / "policies.toml"))
    assert message.startswith(f"{tmp_path / 'policies.toml'}: ")
    assert key in message, message
    assert cure in message, message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'[[policy]]\nname = "\xe9"\n')
    with pytest.raises(ConfigError, match=r"not UTF-8 at byte"):
        load(tmp_path / "latin.toml")


def test_missing_keys_have_defaults() -> None:
    (policy,) = parse('[[policy]]\narguments = "path"\nabsolute-path = true\n').policies
    assert (policy.name, policy.tools, policy.action, policy.safety, policy.severity) == (
        "policy 1",
        ("*",),
        "report",
        "unsafe",
        "warning",
    )
    assert not policy.required


@rows(TABLES["tools"])
def test_tools_are_chosen_by_globs_and_match_with_the_prefix_of_a_server(tools: Any, name: str, covered: bool) -> None:
    (policy,) = parse(f"{CHECKED}tools = {json.dumps(tools)}\n").policies
    assert policy.covers(name) is covered
