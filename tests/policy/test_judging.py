"""Checks and actions of argument policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wirelint.arguments.argument_markup import Gone
from wirelint.policy import Outcome, Policies
from wirelint.policy.checks import Kind, RealDisk
from wirelint.policy.file import parse


class Shelf:
    """A file system of a few names."""

    def __init__(self, **kinds: Kind) -> None:
        self.kinds: dict[str, Kind] = {f"/{name.replace('__', '/')}": kind for name, kind in kinds.items()}

    def kind(self, path: str) -> Kind:
        return self.kinds.get(path, "missing")


SHELF = Shelf(srv="dir", srv__kb="dir", srv__kb__letters="dir", srv__kb__index="file", srv__kb__locked="unknown")


def policies(keys: str, arguments: str = '"a"', disk: Any = SHELF) -> Policies:
    return parse(f'[[policy]]\nname = "p"\narguments = {arguments}\n{keys}\n', "p.toml", disk)


def after(given: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Arguments with the changes of an outcome."""
    return {key: one for key, one in {**given, **(outcome.changes or {})}.items() if not isinstance(one, Gone)}


CHECKS: dict[str, tuple[str, list[Any], list[tuple[Any, str]]]] = {
    # check: (keys, values that pass, values that do not with what is said)
    "absolute path": (
        "absolute-path = true",
        ["/", "/srv/a", "C:\\a", "\\\\host\\a", None],
        [
            ("a", "no absolute path"),
            ("./a", "no absolute path"),
            ("~/a", "no"),
            ("", "no absolute path"),
            (3, "a number"),
        ],
    ),
    "below": (
        'below = "/srv/kb"',
        ["/srv/kb", "/srv/kb/x", "x/../y", "/srv/kb/x/../y"],
        [("/etc/passwd", "outside of /srv/kb"), ("../x", "outside"), ("/srv/kbx", "outside"), ("a\0b", "outside")],
    ),
    "an existing directory below a root": (
        'existing-dir = "/srv/kb"',
        ["letters", "letters/", ".", "/srv/kb/letters", None],
        [
            ("Harbour", "no directory in /srv/kb"),
            ("index", "no directory"),
            ("..", "outside"),
            ("", "outside"),
            ([], "a list"),
        ],
    ),
    "an existing directory": (
        "existing-dir = true",
        ["/srv", "/srv/kb/letters"],
        [("/srv/x", "no directory that exists"), ("letters", "no absolute path"), ("/srv/kb/index", "no directory")],
    ),
    "an existing file": (
        'existing-file = "/srv/kb"',
        ["index", "./index"],
        [("letters", "no file"), ("index2", "no file in /srv/kb"), ("../kb/../x", "outside")],
    ),
    "one of": ("one-of = [1, 'b']", [1, "b", 1.0], [("1", "none of 1, b"), (True, "none of"), ("B", "none of")]),
    "not one of": ("not-one-of = ['/', '.']", ["/a", 0], [("/", "refused"), (".", "refused")]),
    "a form": (
        "regex = '[a-z]+-\\d{3}'",
        ["ab-123"],
        [("ab-1234", "not of the form"), ("x ab-123", "not"), (12, "a number")],
    ),
    "a type": ("type = 'integer'", [3, 3.0], [("3", "text, not integer"), (True, "a boolean"), (3.5, "a number")]),
    "types": ("type = ['string', 'array']", ["a", []], [({}, "an object, not string or array")]),
    "a placeholder": (
        "not-placeholder = true",
        ["/srv/a", "main", 3],
        [("default", "no path but"), ("none", "nothing"), ("YOUR_PATH_HERE", "blank"), ("/path/to/a", "documentation")],
    ),
    "too long": ("max-length = 3", ["abc", [1, 2, 3], 99999], [("abcd", "longer than 3"), ([1, 2, 3, 4], "longer")]),
    "too short": ("min-length = 2", ["ab", 1], [("a", "shorter than 2"), ("", "shorter")]),
    "a range": (
        "range = [1, 10]",
        [1, 10, 5.5],
        [(0, "not from 1 to 10"), (11, "not from"), ("5", "text"), (True, "a bool")],
    ),
    "required": ("required = true", ["", "x", 0, False], [(None, "null")]),
    "several": (
        "absolute-path = true\nmax-length = 5",
        ["/a"],
        [("a", "no absolute path"), ("/abcdef", "longer than 5")],
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_passes_good_values_and_names_bad_ones(name: str) -> None:
    keys, good, bad = CHECKS[name]
    held = policies(keys)
    for value in good:
        assert held.judge("t", {"a": value}).faults == (), value
    for value, words in bad:
        (fault,) = held.judge("t", {"a": value}).faults
        assert words in fault.message, value
        assert fault.judged
        assert fault.message.startswith("policy p: a ")


UNJUDGED = {
    "a root of another machine": ('existing-dir = "/mnt/far"', "x"),
    "a root that is a file": ('existing-dir = "/srv/kb/index"', "x"),
    "a place that cannot be looked at": ('existing-file = "/srv/kb"', "locked"),
    "a path of another system": ("existing-dir = true", "D:\\notes"),
    "too long to be matched": ("regex = '(a+)+b'", "a" * 5000),
}


@pytest.mark.parametrize("name", UNJUDGED)
def test_values_that_cannot_be_judged_are_reported_only(name: str) -> None:
    keys, value = UNJUDGED[name]
    outcome = policies(keys + '\naction = "drop"').judge("t", {"a": value})
    (fault,) = outcome.faults
    assert not fault.judged
    assert "cannot be judged" in fault.message
    assert outcome.changes is None


def test_absent_arguments_break_only_what_requires_them() -> None:
    assert policies("absolute-path = true").judge("t", {}).faults == ()
    (fault,) = policies("absolute-path = true\nrequired = true").judge("t", {"b": 1}).faults
    assert fault.message == "policy p: a is missing"


PLACES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "one": ('"a"', {"a": "x", "b": "x"}, ["a"]),
    "a glob": ('"*_path"', {"in_path": "x", "out_path": "x", "path": "x"}, ["in_path", "out_path"]),
    "several": ('["a", "b"]', {"a": "x", "b": "x"}, ["a", "b"]),
    "once": ('["a", "*"]', {"a": "x"}, ["a"]),
    "inside": ('"filter.path"', {"filter": {"path": "x", "name": "x"}}, ["filter.path"]),
    "in a list": ('"paths.*"', {"paths": ["x", "/y", "z"]}, ["paths.0", "paths.2"]),
    "in objects of a list": ('"edits.*.path"', {"edits": [{"path": "x"}, {"path": "/y"}, {}]}, ["edits.0.path"]),
    "nowhere": ('"c.d"', {"c": "x"}, []),
}


@pytest.mark.parametrize("name", PLACES)
def test_arguments_are_found_at_every_depth(name: str) -> None:
    arguments, given, found = PLACES[name]
    faults = policies("absolute-path = true", arguments).judge("t", given).faults
    assert [".".join(map(str, fault.path)) for fault in faults] == found


ACTIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "report": ("absolute-path = true", {"a": "x"}, {"a": "x"}),
    "replace": ('absolute-path = true\naction = "replace"\nwith = "/srv"', {"a": "x", "b": 1}, {"a": "/srv", "b": 1}),
    "replace by a list": ("type = 'array'\naction = 'replace'\nwith = ['x']", {"a": "x"}, {"a": ["x"]}),
    "replace by null": ('absolute-path = true\naction = "replace"\nnull = true', {"a": "x"}, {"a": None}),
    "add what is missing": ('required = true\naction = "replace"\nwith = "/srv"', {"b": 1}, {"b": 1, "a": "/srv"}),
    "a template": (
        'absolute-path = true\naction = "replace"\ntemplate = "/srv/{basename}"',
        {"a": "x/y/z.md"},
        {"a": "/srv/z.md"},
    ),
    "a template of the value": (
        'absolute-path = true\naction = "replace"\ntemplate = "/{tool}/{argument}/{value}/{{}}"',
        {"a": "x"},
        {"a": "/t/a/x/{}"},
    ),
    "a template that helps nothing": (
        'absolute-path = true\naction = "replace"\ntemplate = "{value}"',
        {"a": "x"},
        {"a": "x"},
    ),
    "drop": ('absolute-path = true\naction = "drop"', {"a": "x", "b": 1}, {"b": 1}),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_makes_the_arguments_pass(name: str) -> None:
    keys, given, wanted = ACTIONS[name]
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
        "p.toml",
        SHELF,
    )
    passed, blocked = (held.judge("t", {"a": value}) for value in ("kb", "nowhere"))
    assert [fault.message.split(":")[0] for fault in passed.faults] == ["policy first", "policy third"]
    assert [fault.message.split(":")[0] for fault in blocked.faults] == ["policy first", "policy second"]
    assert blocked.blocked is not None


def test_the_real_file_system_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    disk = RealDisk()
    kinds = [disk.kind(str(path)) for path in (tmp_path, tmp_path / "file", tmp_path / "none", tmp_path / "file" / "x")]
    assert kinds == ["dir", "file", "missing", "missing"]
    assert disk.kind("a\0b") == "missing"
    assert disk.kind("/" + "x" * 5000) in ("missing", "unknown")
    assert disk.kind("/dev/null") == "other"
