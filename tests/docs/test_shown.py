"""What the documentation shows: links lead somewhere, commands run, options exist.

Commands that read captures are run, each in a folder with the files that the pages speak of. Of those that start a proxy or
a server only the words are read here; `tests/live/test_shown.py` starts them.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tests.build import Call, Talk, User, schema
from tests.command import Wirelint, few_samples
from tests.selection import in_batches
from wirelint.addon.options import OPTIONS
from wirelint.cli import cli, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
WRITTEN = [page for page in PAGES if page.parent.name != "rules"]
"""Those of the rules are made by one function: their commands are of one kind."""

LASTING = {"proxy", "mock", "demo", "run", "doctor", "replay"}
"""Commands that start processes, need a server, or look at the machine."""
OURS = {"docs", "new-rule"}
"""Commands for a checkout, which have tests of their own."""

FINDING = {"check", "fix", "compare"}
"""Commands whose status tells of findings."""

FIXTURES = {"wirelint_proxy", "wirelint_proxy_factory", "wirelint_upstream"}
"""Of the pytest plugin."""

_FENCE = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)


class Shown(NamedTuple):
    page: str
    words: list[str]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def _lines(page: Path) -> Iterator[str]:
    """The commands of a page, without comments."""
    for block in _FENCE.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            yield re.sub(r"(^|\s)#\s.*", "", line).strip()


def commands(page: Path, programs: Collection[str] = ("wirelint",)) -> Iterator[Shown]:
    """The commands of a page that call one of some programs."""
    name = page.relative_to(ROOT).as_posix()
    for line in _lines(page):
        for part in re.split(r"\s(?:\||&&|;)\s", line):
            try:
                words = shlex.split(part)
            except ValueError:  # a string over several lines
                continue
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if words[:3] == [".venv/bin/python", "-m", "wirelint"]:
                words = ["wirelint", *words[3:]]
            if words and words[0] in programs and len(words) > 1:
                yield Shown(name, [word for word in words if word not in ("&", "<", ">")])


ALL = [shown for page in WRITTEN for shown in commands(page)]
CLUSTER = "--ray"
"""The option for a cluster, which `tests/cli/test_fleet.py` starts."""
RUN = list(
    {
        tuple(shown.words): shown
        for shown in ALL
        if shown.words[1] not in LASTING | OURS and CLUSTER not in shown.words
    }.values()
)


def test_there_are_commands() -> None:
    assert len(RUN) > 20
    assert {shown.words[1] for shown in ALL} & LASTING


@in_batches("shown", ALL, ids=str)
def test_a_command_takes_what_is_shown(shown: Shown) -> None:
    context = cli.make_context("wirelint", shown.words[1:], help_option_names=["-h", "--help"])
    command = cli.get_command(context, shown.words[1])
    assert command is not None, f"{shown}: there is no such command"
    try:
        command.make_context(shown.words[1], shown.words[2:], parent=context)
    except click.exceptions.Exit:
        pass
    except click.ClickException as error:
        pytest.fail(f"{shown}: {error.format_message()}")


WRITING = (
    ["wirelint", "export", "captures", "--format", "parquet", "-o", "tables"],
    ["wirelint", "fix", "captures/", "-o", "fixed/", "--unsafe-fixes"],
    ["wirelint", "new-rule", "XX901", "my-rule", "--folder", "my-rules"],
    ["wirelint", "case", "captures/samples/faults.jsonl", "xml-leak-openai-stream", "-o", "case.jsonl"],
)
FILES = Path(__file__).with_name("files")
"""Captures of other programs, by the names that the pages give them."""


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all the files of which the pages speak, those that other commands write among them."""
    here = tmp_path_factory.mktemp("shown")
    tools = {"tide": schema(port="string")}
    leaked = '<invoke name="tide"><arg name="port">Hove</arg></invoke>'
    leak = Talk((User("Tide?"),), tools=tools, text=leaked).record("openai.chat", False)
    call = Talk((User("Tide?"),), tools=tools, calls=(Call("tide", {"port": "Hove"}),)).record("openai.chat", True)
    records = [{**leak, "id": "3f2a9c11-0000"}, call]
    run = "".join(json.dumps(record) + "\n" for record in records)
    (here / "stdin").write_text(run, encoding="utf-8")
    for name in ("captures", "recordings", "reference", "openrouter", "vllm"):
        (here / name).mkdir()
        (here / name / "run.jsonl").write_text(run, encoding="utf-8")
    few_samples(here / "captures" / "samples")
    for name in ("run", "vendor", "mine", "reference", "candidate", "before", "after"):
        (here / f"{name}.jsonl").write_text(run, encoding="utf-8")
    shutil.copytree(FILES, here, dirs_exist_ok=True)
    (here / "wirelint-baseline.json").write_text(
        '{"format": "wirelint-baseline", "version": 1, "findings": []}', encoding="utf-8"
    )
    (here / "other.toml").write_text('ignore = ["ST"]\n', encoding="utf-8")
    (here / "addons").symlink_to(ROOT / "addons")
    shutil.copy(ROOT / "addons" / "policies.toml", here / "policies.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for words in WRITING:
            patch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code in (0, 1), words
    return here


@pytest.mark.parametrize("shown", RUN, ids=str)
def test_a_command_runs(
    shown: Shown, pattern: Path, tmp_path: Path, wirelint: Wirelint, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(pattern, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    for made in (folder / words[1] for words in itertools.pairwise(shown.words) if words[0] == "-o"):
        if made.is_dir():
            shutil.rmtree(made)
        made.unlink(missing_ok=True)
    ran = wirelint(*map(os.path.expanduser, shown.words[1:]), stdin=(folder / "stdin").read_bytes())
    assert ran.status in ((0, 1) if shown.words[1] in FINDING else (0,)), f"{shown}\n{ran.err}"
    assert "Traceback" not in ran.err


@in_batches("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "", text)
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in _anchors(target), f"there is no heading {link}"


def _anchors(page: Path) -> set[str]:
    """The anchors that a renderer of Markdown gives the headings."""
    titles = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_options_exist(page: Path) -> None:
    known = {option.name for option in OPTIONS}
    named = set(re.findall(r"\bwirelint_[a-z_]+\b", page.read_text(encoding="utf-8")))
    assert named - known - FIXTURES == set()
