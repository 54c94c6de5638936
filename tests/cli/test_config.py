"""The configuration on the command line: the same file for every command, and options that win over it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.build import Talk, User
from tests.cli.test_check import CUT, write
from tests.command import Wirelint

LEAK = Talk((User("Hello"),), text="Hello to you.<|im_end|>").record("openai.chat", False)

STREAM = Talk((User("Hello"),), text="Hello to you, and to all of your friends.").record("openai.chat", True)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two faulty exchanges, below one with a configuration that leaves out the first of them."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    write(tmp_path / "below" / "both.jsonl", CUT, LEAK)
    (tmp_path / "wirelint.toml").write_text('ignore = ["ST604"]\n', encoding="utf-8")
    return tmp_path


def codes(wirelint: Wirelint, *options: object) -> list[str]:
    ran = wirelint("check", "--output-format=jsonl", *options, "both.jsonl")
    assert ran.status in (0, 1), ran.err
    return [json.loads(line)["code"] for line in ran.out.splitlines()]


def test_the_nearest_file_holds(wirelint: Wirelint, here: Path) -> None:
    assert codes(wirelint) == ["LK102"]
    assert codes(wirelint, "--isolated") == ["ST604", "LK102"]
    (here / "other.toml").write_text('select = ["ST604"]\nseverity = { ST = "info" }\n', encoding="utf-8")
    assert codes(wirelint, "--config", here / "other.toml") == ["ST604"]
    assert wirelint("check", "--config", here / "other.toml", "both.jsonl").status == 0, "an info is no failure"


def test_options_win_over_the_configuration(wirelint: Wirelint, here: Path) -> None:
    assert codes(wirelint, "--select", "ST,LK") == ["ST604", "LK102"]
    assert codes(wirelint, "--extend-select", "truncated-stream") == ["ST604", "LK102"]
    assert codes(wirelint, "--ignore", "LK") == []


def test_show_and_rules_read_it_too(wirelint: Wirelint, here: Path) -> None:
    assert "truncated-stream" not in wirelint("show", "both.jsonl").out
    assert "ST604" not in wirelint("rules").out
    assert "ST604" in wirelint("rules", "--isolated").out


def test_the_baseline_and_the_limits_of_the_file(wirelint: Wirelint, here: Path) -> None:
    (here / "wirelint.toml").write_text('baseline = "known.json"\n', encoding="utf-8")
    assert "no such file; --write-baseline" in wirelint("check", "both.jsonl").err
    assert wirelint("check", "--write-baseline", "both.jsonl").status == 0
    assert codes(wirelint) == []
    assert (here / "known.json").exists()
    (here / "wirelint.toml").write_text("stall = 0.5\n", encoding="utf-8")
    body = str(STREAM["response"]["body"])
    first = body.index("data:", body.index("Hel"))
    chunks = [[10, first], [900, len(body) - first]]
    write(here / "below" / "both.jsonl", {**STREAM, "response": {**STREAM["response"], "chunks": chunks}})
    assert "ST602" in codes(wirelint)
    assert "ST602" not in codes(wirelint, "--stall", "20")


def test_the_header_of_a_request(wirelint: Wirelint, here: Path) -> None:
    silent = {**LEAK, "request": {**LEAK["request"], "headers": {"X-Wirelint-Ignore": "LK102"}}}
    write(here / "below" / "both.jsonl", silent, LEAK)
    assert codes(wirelint) == ["LK102"]
    assert wirelint("fix", "--diff", "both.jsonl").out.count("LK102") == 1


def test_a_wrong_file_is_one_line_and_2(wirelint: Wirelint, here: Path) -> None:
    (here / "wirelint.toml").write_text('selct = ["ST604"]\n', encoding="utf-8")
    for command in (["check"], ["fix", "--diff"], ["show"]):
        message = f"{here / 'wirelint.toml'}: selct: no such key; did you mean select?\n"
        wirelint(*command, "both.jsonl").refuses(message)
    assert wirelint("check", "--isolated", "both.jsonl").status == 1
