"""`wirelint fix`: what is written, printed and refused; the real rules on the samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.build import REGISTRY, Talk, User, lint
from tests.capture.shouts import record, write, write_rule
from tests.command import Wirelint, read_lines
from tests.rules.case import expand, fires
from tests.selection import rotated, sampled
from tests.tables import rows, tables
from wirelint.registry import safeties
from wirelint.rule import Rule

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "captures" / "samples"
CLEAN = ROOT / "captures" / "clean"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str, str]:
    """Options that select the tests' own rule alone."""
    return "--rules", str(write_rule(tmp_path_factory.mktemp("own") / "rules")), "--select", "XX901"


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_file_is_fixed_into_another(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    source, out = write(tmp_path / "in.jsonl", record("LOUD", "LOUD SCREAM"), record()), tmp_path / "out.jsonl"
    before = source.read_bytes()
    ran = wirelint("fix", source, "-o", out, *rules)
    assert ran.status == 1
    assert ran.err.splitlines() == [
        "Fixed 2 problems (2 safe) in 1 of 2 exchanges; 1 remains (1 fixable with --unsafe-fixes)",
        f"wrote {out}",
    ]
    assert "says SCREAM" in ran.out
    assert "says LOUD" not in ran.out
    assert source.read_bytes() == before
    first, second = read_lines(out)
    assert "calm SCREAM" in first["delivered"]["body"]
    assert second == record()
    ran = wirelint("fix", source, "-o", out, "--unsafe-fixes", "--force", *rules)
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith("Fixed 3 problems (2 safe, 1 unsafe) in 1 of 2 exchanges; nothing remains\n")
    assert "calm word" in read_lines(out)[0]["delivered"]["body"]


def test_a_folder_is_fixed_into_another(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    run = tmp_path / "run"
    write(run / "a" / "exchanges.jsonl", record(answer="LOUD"))
    write(run / "a" / "flows.mitm", record(answer="LOUD"))  # a copy of what stands beside it: repaired, and not told of
    write(run / "b.jsonl", record(answer="LOUD"))
    (run / "notes.md").write_text("# notes")
    (run / "package.json").write_text('{"name": "x"}')
    out = tmp_path / "new" / "out"
    ran = wirelint("fix", run, "-o", out, *rules)
    assert ran.status == 0
    assert "Fixed 2 problems (2 safe) in 2 of 2 exchanges" in ran.err
    assert f"wrote {out}: 3 captures; 2 other files left out" in ran.err
    found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert found == ["a/exchanges.jsonl", "a/flows.mitm", "b.jsonl"]
    assert all("calm" in (out / name).read_text() for name in found)
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_pipe_is_fixed(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    data = (json.dumps(record(answer="LOUD SCREAM")) + "\n").encode()
    ran = wirelint("fix", "-", "-o", "-", *rules, stdin=data)
    assert ran.status == 1
    assert "calm SCREAM" in json.loads(ran.out)["delivered"]["body"]
    ran = wirelint("fix", "-", "-o", tmp_path / "out.jsonl", *rules, stdin=data)
    assert "calm SCREAM" in (tmp_path / "out.jsonl").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_only_selected_fixes_are_made(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    source = write(tmp_path / "in.jsonl", record(answer="LOUD"))
    for option, named, fixed in (
        ("--fixable", "shout", 1), ("--unfixable", "XX", 0), ("--fixable", "LK", 0), ("--fixable", "LK,XX9", 1)
    ):  # fmt: skip
        ran = wirelint("fix", source, "-o", tmp_path / "out", "--force", option, named, *rules)
        assert ran.err.startswith(f"Fixed {fixed} problem"), (option, named)
        assert ran.status == (not fixed)


# --- what is shown ----------------------------------------------------------------------------------------------------


DIFF = Path(__file__).with_name("fix.diff").read_text(encoding="utf-8")


def test_a_diff_is_shown_and_nothing_written(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    source = write(tmp_path / "in.jsonl", {**record("LOUD", "SCREAM", stream=False), "id": "one"}, record())
    for columns in (40, 160):
        ran = wirelint("fix", source, "--diff", "--unsafe-fixes", *rules, columns=columns)
        assert ran.out.rstrip("\n") == _golden(source)
        assert ran.status == 0
        assert ran.err == "Would fix 2 problems (1 safe, 1 unsafe) in 1 of 2 exchanges; nothing remains\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def _golden(path: Path) -> str:
    return DIFF.format(path=path).rstrip("\n")


def test_check_tells_what_could_be_fixed(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    for number, (answer, hint) in enumerate(
        (
            ("LOUD SCREAM", "1 fixable with wirelint fix (1 more with --unsafe-fixes)"),
            ("LOUD", "1 fixable with wirelint fix"),
            ("SCREAM", "1 fixable with wirelint fix --unsafe-fixes"),
        )
    ):
        source = write(tmp_path / f"{number}.jsonl", record(answer=answer))
        for form in ("full", "concise"):
            assert wirelint("check", source, "--output-format", form, *rules).err.splitlines()[1:] == [hint]
        assert len(wirelint("check", source, "--output-format", "jsonl", *rules).err.splitlines()) == 1
    fixed = tmp_path / "fixed.jsonl"
    wirelint("fix", tmp_path / "0.jsonl", "-o", fixed, "--unsafe-fixes", *rules)
    ran = wirelint("check", fixed, *rules)
    assert len(ran.err.splitlines()) == 1
    assert "fixed (safe): said calm" in ran.out
    assert wirelint("check", fixed, "--output-format", "json", *rules).out == wirelint(
        "check", tmp_path / "0.jsonl", "--output-format", "json", *rules
    ).out.replace("0.jsonl", "fixed.jsonl")


# --- what is refused --------------------------------------------------------------------------------------------------


@rows(tables(__file__)["refused"])
def test_refused_in_one_line(args: list[str], says: str, wirelint: Wirelint, tmp_path: Path) -> None:
    write(tmp_path / "IN" / "in.jsonl", record())
    write(tmp_path / "FOLDER" / "x.jsonl", record())
    write(tmp_path / "OTHER" / "in.jsonl", record())
    (tmp_path / "OTHER" / "none").mkdir()
    (tmp_path / "THERE").write_text("there")
    before = sorted(tmp_path.rglob("*"))
    places = {"IN": "IN/in.jsonl"}
    absolute = [
        str(tmp_path / places.get(arg, arg)) if arg.split("/")[0] in ("IN", "OUT", "FOLDER", "OTHER", "THERE") else arg
        for arg in args
    ]
    ran = wirelint("fix", *absolute)
    assert ran.status == 2
    complaints = [line for line in ran.err.splitlines() if line.startswith("wirelint: ")]
    assert len(complaints) == 1, ran.err
    assert says in complaints[0]
    assert "Traceback" not in ran.err
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "THERE").read_text() == "there"


TORN = json.dumps(record(answer="LOUD")).encode() + b'\n{"request": {"ur'
HAR = json.dumps({"log": {"entries": [{"request": {"method": "GET", "url": "h"}}, 5]}})[:-2].encode()
BROKEN: dict[str, tuple[bytes, str, bool]] = {
    "text": (b"not a capture\n", "not a capture", False),
    "torn last": (TORN, "line 2", True),
    "flows": (b"12:garbage", "corrupt", False),
    "HAR": (HAR, "cut off", False),
}


@pytest.mark.parametrize(("content", "says", "written"), BROKEN.values(), ids=BROKEN)
def test_bad_input_is_one_line_and_2(
    wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...], content: bytes, says: str, written: bool
) -> None:
    source, out = tmp_path / "bad", tmp_path / "out"
    source.write_bytes(content)
    ran = wirelint("fix", source, "-o", out, *rules)
    assert ran.status == 2
    assert says in next(line for line in ran.err.splitlines() if line.startswith("wirelint: "))
    assert "Traceback" not in ran.err
    assert out.exists() is written
    assert ("nothing was written" in ran.err) is not written
    assert {path.name for path in tmp_path.iterdir()} <= {"bad", "out"}


# --- the shipped rules ------------------------------------------------------------------------------------------------


def test_healthy_traffic_stays_as_it_is(wirelint: Wirelint, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = wirelint("fix", CLEAN, "-o", out, "--unsafe-fixes", "--clean-history")
    assert ran.status == 0
    assert ran.err.startswith("Fixed 0 problems in 0 of")
    for path in sorted(CLEAN.iterdir()):
        assert (out / path.name).read_bytes() == path.read_bytes()


def test_the_samples_are_fixed(wirelint: Wirelint, tmp_path: Path) -> None:
    out = tmp_path / "out"
    before, after = (
        len(json.loads(wirelint("fix", SAMPLES, "-o", out / name, *options, "--output-format", "json").out))
        for name, options in (("safe", ()), ("unsafe", ("--unsafe-fixes",)))
    )
    assert after < before
    ran = wirelint("fix", SAMPLES, "--diff", "--unsafe-fixes", columns=80)
    assert ran.status == 1  # what is made up cannot be repaired
    assert "(unsafe): " in ran.out


@pytest.mark.parametrize("rule", REGISTRY.rules, ids=lambda rule: rule.name)
def test_the_table_of_rules_tells_how_safe_fixes_are(rule: Rule) -> None:
    """What the manual says of a rule's fixes is what its cases show."""
    every = [*fires([rule])]
    fixed = [one for one in every if one[2].fix not in (None, "none")]
    chosen = [*sampled(fixed), *sampled(every)]
    cases = [(id_, list(expand(case.case, case.forms))) for id_, _, case in chosen]
    runs = [records for id_, forms in cases for _, records in rotated(forms, id_)]
    offered = {finding.fix.safety for records in runs for finding in lint(records, [rule.name]) if finding.fix}
    assert offered == set(safeties(rule))


def test_a_record_shows_both_sides(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    source = write(tmp_path / "in.jsonl", {**record("So LOUD", "Why LOUD?"), "id": "one"})
    out = tmp_path / "out.jsonl"
    wirelint("fix", source, "-o", out, *rules)
    shown = wirelint("show", out, *rules).out
    sides = ("So LOUD", "So calm", "Why LOUD?", "Why calm?", "- LOUD", "+ calm")
    for words in (*sides, "forwarded", "delivered", "fixes applied", "XX901 shout"):
        assert words in shown
    for option, there, gone in (("--upstream", "LOUD", "calm"), ("--delivered", "calm", "LOUD")):
        for wire in ((), ("--wire",)):
            view = wirelint("show", out, option, *wire, *rules).out
            assert there in view
            assert gone not in view.replace("fix (safe): say calm", "")
    assert "✎" in wirelint("show", write(tmp_path / "two.jsonl", *read_lines(out), record()), *rules).out
    raw = wirelint("show", out, "--wire", *rules)
    assert "LOUD" in raw.out
    assert "--delivered shows what was sent on" in raw.err
    assert wirelint("show", source, "--wire", *rules).err == ""
    assert wirelint("show", out, "--upstream", "--delivered", *rules).status == 2


def test_statistics(wirelint: Wirelint, tmp_path: Path, rules: tuple[str, ...]) -> None:
    source = write(tmp_path / "in.jsonl", record("LOUD", "LOUD SCREAM"), record(answer="SCREAM"))
    out = wirelint("fix", source, "-o", tmp_path / "out", "--statistics", *rules).out.splitlines()
    assert out[0].split() == ["safe", "unsafe", "exchanges", "remaining", "code", "name"]
    assert out[1].split() == ["2", "0", "1", "2", "XX901", "shout"]


def test_a_part_that_was_taken_out_is_shown(wirelint: Wirelint, tmp_path: Path) -> None:
    talk = Talk((User("How warm?"),), text="Twelve.").record("openai.chat", False)
    body = json.loads(talk["request"]["body"])
    body["messages"].insert(0, {"role": "tool", "tool_call_id": "call_x", "content": "12 degrees"})
    orphan = {**talk, "id": "one", "request": {**talk["request"], "body": json.dumps(body)}}
    forwarded = {"headers": {}, "body": talk["request"]["body"]}
    source = write(tmp_path / "in.jsonl", {**orphan, "forwarded": forwarded})
    shown = wirelint("show", source).out
    assert "(left out)" in shown
    assert shown.count("How warm?") == 1
