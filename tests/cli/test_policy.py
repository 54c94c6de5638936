"""`--policy FILE`: what check, fix and show make of it; a file that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.build import Call, Talk, User, schema
from tests.command import Wirelint, read_lines
from wirelint.rule import excerpt

EXAMPLE = Path(__file__).resolve().parents[2] / "addons" / "policies.toml"
TOOLS = {"search_notes": schema(("query",), query="string", workspace="string", subWorkspace="string")}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A workspace with two directories in it, and the example policies for it."""
    workspace = tmp_path / "notes"
    for name in ("letters", "plans"):
        (workspace / name).mkdir(parents=True)
    (tmp_path / "policies.toml").write_text(EXAMPLE.read_text().replace("/srv/notes", str(workspace)))
    return workspace


def capture(path: Path, **arguments: Any) -> Path:
    call = Call("search_notes", {"query": "harbour dues", **arguments})
    said = Talk((User("What do the notes say of harbour dues?"),), calls=(call,), tools=TOOLS)
    path.write_text("".join(json.dumps(said.record("openai.chat", streamed)) + "\n" for streamed in (False, True)))
    return path


def test_the_example_is_carried_out(wirelint: Wirelint, tmp_path: Path, notes: Path) -> None:
    source = capture(tmp_path / "in.jsonl", workspace="default", subWorkspace="harbour")
    policy = ("--policy", tmp_path / "policies.toml", "--select", "AR404")
    found = wirelint("check", source, *policy, "--output-format", "jsonl")
    assert found.status == 1
    messages = [json.loads(line)["message"] for line in found.out.splitlines()]
    assert (
        messages
        == [
            'search_notes: policy known workspace: workspace "default" is not an absolute path',
            f'search_notes: policy existing directory: subWorkspace "harbour" is no directory in {notes}',
        ]
        * 2
    )
    fixed = wirelint("fix", source, "-o", tmp_path / "out.jsonl", *policy)
    assert (fixed.status, fixed.err.splitlines()[0]) == (
        0,
        "Fixed 4 problems (4 safe) in 2 of 2 exchanges; nothing remains",
    )
    records = read_lines(tmp_path / "out.jsonl")
    assert [[repair["title"] for repair in record["fixes"]] for record in records] == [
        [f"search_notes: replaced workspace by {excerpt(str(notes))}", "search_notes: replaced subWorkspace by null"]
    ] * 2
    whole = json.loads(records[0]["delivered"]["body"])
    call = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    assert json.loads(call["arguments"]) == {"query": "harbour dues", "workspace": str(notes), "subWorkspace": None}


@pytest.mark.parametrize("command", [["check"], ["fix", "--diff"], ["show"]], ids=" ".join)
def test_a_wrong_file_is_refused_in_one_line(wirelint: Wirelint, tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "policies.toml"
    path.write_text('[[policy]]\nname = "p"\narguments = "a"\nexisting_dir = true\n')
    ran = wirelint(*command, capture(tmp_path / "in.jsonl"), "--policy", path)
    ran.refuses("did you mean existing-dir?", f"wirelint: {path}: ")


def test_without_policies_the_guess_is_a_suspicion(wirelint: Wirelint, tmp_path: Path) -> None:
    source = capture(tmp_path / "in.jsonl", workspace="/srv/notes", subWorkspace="harbour")
    ran = wirelint("check", source, "--select", "AR404")
    assert ran.status == 0
    assert "is a word of the query" in " ".join(ran.out.split())
