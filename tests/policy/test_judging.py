"""Checks and actions of argument policies."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tests.tables import rows, tables
from wirelint.arguments.argument_faults import Gone
from wirelint.policy import Disk, Kind, Outcome, Policies, no_disk, read_policies, real_disk

TABLES = tables(__file__)


class Shelf:
    """A file system of a few names."""

    def __init__(self, **kinds: Kind) -> None:
        self.kinds: dict[str, Kind] = {f"/{name.replace('__', '/')}": kind for name, kind in kinds.items()}

    def __call__(self, path: str) -> Kind:
        return self.kinds.get(path, "missing")


SHELF = Shelf(srv="dir", srv__kb="dir", srv__kb__letters="dir", srv__kb__index="file", srv__kb__locked="unknown")


def parse(text: str, disk: Disk = no_disk) -> Policies:
    return read_policies(tomllib.loads(text), "p.toml", disk)


def policies(keys: str, arguments: str = '"a"', disk: Any = SHELF) -> Policies:
    return parse(f'[[policy]]\nname = "p"\narguments = {arguments}\n{keys}\n', disk)


def after(given: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Arguments with the changes of an outcome."""
    return {key: one for key, one in {**given, **(outcome.changes or {})}.items() if not isinstance(one, Gone)}


@rows(TABLES["checks"])
def test_a_check_passes_good_values_and_names_bad_ones(keys: str, good: list[Any], bad: list[tuple[Any, str]]) -> None:
    held = policies(keys)
    for value in good:
        assert held.judge("t", {"a": value}).faults == (), value
    for value, words in bad:
        (fault,) = held.judge("t", {"a": value}).faults
        assert words in fault.message, value
        assert fault.judged
        assert fault.message.startswith("policy p: a ")


@rows(TABLES["unjudged"])
def test_values_that_cannot_be_judged_are_reported_only(keys: Any, value: Any) -> None:
    outcome = policies(keys + '\naction = "drop"').judge("t", {"a": value})
    (fault,) = outcome.faults
    assert not fault.judged
    assert "cannot be judged" in fault.message
    assert outcome.changes is None


def test_absent_arguments_break_only_what_requires_them() -> None:
    assert policies("absolute-path = true").judge("t", {}).faults == ()
    (fault,) = policies("absolute-path = true\nrequired = true").judge("t", {"b": 1}).faults
    assert fault.message == "policy p: a is missing"


@rows(TABLES["places"])
def test_arguments_are_found_at_every_depth(arguments: str, given: dict[str, Any], found: list[str]) -> None:
    faults = policies("absolute-path = true", arguments).judge("t", given).faults
    assert [".".join(map(str, fault.path)) for fault in faults] == found


@rows(TABLES["actions"])
def test_an_action_makes_the_arguments_pass(keys: str, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    before = repr(given)
    outcome = policies(keys).judge("t", given)
    assert after(given, outcome) == wanted
    assert repr(given) == before, "the given arguments are not changed"
    assert (outcome.faults[0].safety is not None) is (given != wanted)
    assert policies(keys).judge("t", after(given, outcome)).changes is None, "a second time changes nothing"


def test_policies_follow_one_another() -> None:
    held = parse(
        """
        [[policy]]
        name = "first"
        arguments = "a"
        absolute-path = true
        action = "replace"
        template = "/srv/{value}"
        [[policy]]
        name = "second"
        arguments = "a"
        existing-dir = true
        action = "block"
        [[policy]]
        name = "third"
        arguments = "b"
        required = true
        """,
        SHELF,
    )
    passed, blocked = (held.judge("t", {"a": value}) for value in ("kb", "nowhere"))
    assert [fault.message.split(":")[0] for fault in passed.faults] == ["policy first", "policy third"]
    assert [fault.message.split(":")[0] for fault in blocked.faults] == ["policy first", "policy second"]
    assert blocked.blocked is not None


def test_the_real_file_system_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kinds = [real_disk(str(path)) for path in (tmp_path, tmp_path / "file", tmp_path / "none", tmp_path / "file" / "x")]
    assert kinds == ["dir", "file", "missing", "missing"]
    assert real_disk("a\0b") == "missing"
    assert real_disk("/" + "x" * 5000) in ("missing", "unknown")
    assert real_disk("/dev/null") == "other"
