"""Tests of the project's files for new users: addresses, navigation of the site, GitHub action, code on the pages."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.docs.test_shown import PAGES, ROOT
from tests.selection import in_batches
from wirelint import DOCUMENTATION, REPOSITORY, __version__
from wirelint.registry import page_url

_BLOCK = re.compile(r"^```(python|json|toml|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
READERS: dict[str, Any] = {
    "python": ast.parse,
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": YAML(typ="safe").load,
}


def load(name: str) -> Any:
    return YAML(typ="safe").load((ROOT / name).read_text(encoding="utf-8"))


def test_addresses_are_those_of_the_package() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    site = load("mkdocs.yml")
    assert (urls["Documentation"], urls["Repository"]) == (DOCUMENTATION, REPOSITORY)
    assert (site["site_url"], site["repo_url"]) == (DOCUMENTATION, REPOSITORY)
    pages = {path.stem: page_url(path.stem) for path in (ROOT / "docs" / "rules").glob("*-*.md")}
    assert pages == {name: f"{DOCUMENTATION}rules/{name}/" for name in pages}
    assert page_url("my-own-rule") == ""
    assert f"[{len(pages)} rules](docs/rules/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE)[:2] == ["Unreleased", __version__]


def test_every_page_is_in_the_navigation() -> None:
    def pages(item: Any) -> list[str]:
        match item:
            case str():
                return [item]
            case dict():
                return [page for part in item.values() for page in pages(part)]
            case _:
                return [page for part in item for page in pages(part)]

    assert all((ROOT / "docs" / name).is_file() for name in load("mkdocs.yml")["extra_css"])
    written = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert sorted(pages(load("mkdocs.yml")["nav"])) == sorted([*written, "rules/README.md"])


@in_batches("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_on_a_page_can_be_read(page: Path) -> None:
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        READERS[language](text)


def run_action(folder: Path, program: str, **given: str) -> tuple[int, str, dict[str, str]]:
    """Run the check step of the action with a shell script as `wirelint`; return its exit status, its output, and the
    outputs of the step."""
    (step,) = (step for step in load("action.yml")["runs"]["steps"] if step.get("id") == "check")
    file = folder / "wirelint" / "bin" / "wirelint"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
    file.chmod(0o755)
    outputs = folder / "outputs"
    outputs.write_text("", encoding="utf-8")
    places = {"RUNNER_TEMP": str(folder), "GITHUB_OUTPUT": str(outputs), "PYTHONPATH": str(ROOT)}
    inputs = {"PATHS": "captures/samples/faults.jsonl", "ARGS": "", "FAIL": "true", **given}
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=ROOT,
        env={**os.environ, **places, **inputs},
        capture_output=True,
        text=True,
    )
    pairs = (line.partition("=") for line in outputs.read_text(encoding="utf-8").splitlines())
    return ran.returncode, ran.stdout + ran.stderr, {name: value for name, _, value in pairs}


def test_the_action_annotates_and_writes_sarif(tmp_path: Path) -> None:
    status, output, made = run_action(tmp_path, f'exec "{sys.executable}" -m wirelint "$@"', ARGS="--select LK")
    assert (status, made["status"]) == (0, "1"), output
    assert "::error file=captures/samples/faults.jsonl" in output
    (run,) = json.loads(Path(made["sarif"]).read_text(encoding="utf-8"))["runs"]
    assert {result["ruleId"][:2] for result in run["results"]} == {"LK"}


@pytest.mark.parametrize(
    ("unread", "found", "fail", "expected"),
    [(0, 0, "true", (0, "0")), (0, 1, "false", (0, "0")), (0, 2, "false", (0, "2")), (2, 0, "false", (2, None))],
    ids=["clean", "findings that may be", "a check that fails", "nothing to read"],
)
def test_the_action_fails_by_the_status_of_check(
    tmp_path: Path, unread: int, found: int, fail: str, expected: tuple[int, str | None]
) -> None:
    """The step runs `check` twice, the first time with `--exit-zero`: what is not read still ends that with 2."""
    program = f'case "$*" in *--exit-zero*) exit {unread};; esac; exit {found}'
    status, _, made = run_action(tmp_path, program, FAIL=fail)
    assert (status, made.get("status")) == expected
