"""The checks of argument policies. A check describes the fault of a value in words that complete "… is".

A check that cannot decide about a value raises UnjudgedError with the reason.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Literal, Protocol

from wirelint.arguments.placeholders import sign
from wirelint.arguments.schemas import kind_of
from wirelint.model import Json
from wirelint.text.escaping import excerpt

_LONGEST_MATCHED = 4096
"""Most characters of a value for a user's regular expression; with longer values a match could take too long."""

Kind = Literal["file", "dir", "other", "missing", "unknown"]
"""`unknown`: no permission, or no file system to ask."""


class Disk(Protocol):
    """A port to a file system. `kind` takes an absolute path and never raises."""

    def kind(self, path: str) -> Kind: ...


class NoDisk:
    """No file system: every path is unknown."""

    def kind(self, path: str) -> Kind:
        return "unknown"


class RealDisk:
    """The file system of this machine."""

    def kind(self, path: str) -> Kind:
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a zero byte in the name
            return "missing"
        except OSError:
            return "unknown"
        if stat.S_ISDIR(mode):
            return "dir"
        return "file" if stat.S_ISREG(mode) else "other"


class UnjudgedError(Exception):
    """A value cannot be checked on this machine; the text is the reason."""


class CheckError(ValueError):
    """A setting that cannot be used. The text names the valid settings."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check. `name` is its key in the file; `judge(value, argument, disk)` returns the fault as text, or None."""

    name: str
    judge: Callable[[Json, str, Disk], str | None]


def make(name: str, setting: Json) -> Check | None:
    """Return the check for a setting; None if it is switched off. Raises CheckError."""
    if setting is False:
        return None
    return Check(name, CHECKS[name](setting))


_Judge = Callable[[Json, str, Disk], "str | None"]


def _text_judge(judge: Callable[[str, Disk], str | None]) -> _Judge:
    def run(value: Json, argument: str, disk: Disk) -> str | None:
        return judge(value, disk) if isinstance(value, str) else f"{_kind(value)}, not text"

    return run


def is_absolute(path: str) -> bool:
    return path.startswith("/") or PureWindowsPath(path).is_absolute()


def _absolute_path(setting: Json) -> _Judge:
    _only_true(setting)
    return _text_judge(lambda value, disk: None if is_absolute(value) else "no absolute path")


def _below(setting: Json) -> _Judge:
    root = _root(setting)

    def judge(value: str, disk: Disk) -> str | None:
        return None if place(value, root) is not None else f"outside of {root}"

    return _text_judge(judge)


def _existing(wanted: str) -> Callable[[Json], _Judge]:
    words = {"dir": "directory", "file": "file"}[wanted]

    def make_judge(setting: Json) -> _Judge:
        root = None if setting is True else _root(setting)

        def judge(value: str, disk: Disk) -> str | None:
            if root is None:
                if not value.startswith("/"):
                    return "no absolute path" if not is_absolute(value) else _cannot(f"{value} is not of this machine")
                path: str | None = posixpath.normpath(value)
            else:
                if disk.kind(root) != "dir":
                    _cannot(f"{root} is not on this machine")
                path = place(value, root)
            if path is None:
                return f"outside of {root}"
            found = disk.kind(path)
            if found == "unknown":
                _cannot(f"{path} cannot be looked at from here")
            if found == wanted:
                return None
            return f"no {words}" if found != "missing" else f"no {words}{f' in {root}' if root else ' that exists'}"

        return _text_judge(judge)

    return make_judge


def place(value: str, root: str) -> str | None:
    """Return the path of a value below a root, by names only; None if it is outside."""
    if not value or "\0" in value:
        return None
    path = posixpath.normpath(posixpath.join(root, value))
    base = posixpath.normpath(root)
    return path if path == base or path.startswith(base.rstrip("/") + "/") else None


def _cannot(why: str) -> str:
    raise UnjudgedError(why)


def _one_of(setting: Json) -> _Judge:
    allowed = _values(setting)

    def judge(value: Json, argument: str, disk: Disk) -> str | None:
        if any(_same(value, one) for one in allowed):
            return None
        return f"none of {excerpt(', '.join(map(str, allowed)))}"

    return judge


def _not_one_of(setting: Json) -> _Judge:
    refused = _values(setting)
    return lambda value, argument, disk: "refused" if any(_same(value, one) for one in refused) else None


def _regex(setting: Json) -> _Judge:
    if not isinstance(setting, str):
        raise CheckError("must be a regular expression in quotes")
    try:
        pattern = re.compile(setting)
    except re.error as error:
        raise CheckError(f"is no regular expression: {error}") from error

    def judge(value: str, disk: Disk) -> str | None:
        if len(value) > _LONGEST_MATCHED:
            _cannot(f"a text of more than {_LONGEST_MATCHED} characters is matched with no regular expression")
        return None if pattern.fullmatch(value) else f"not of the form {excerpt(setting)}"

    return _text_judge(judge)


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and float(value) == int(value),  # type: ignore[arg-type]
    "number": lambda value: _is_number(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _type(setting: Json) -> _Judge:
    names = [setting] if isinstance(setting, str) else setting
    known = ", ".join(_TYPES)
    if not isinstance(names, list) or not names or not all(name in _TYPES for name in names):
        raise CheckError(f"must be one of {known}, or a list of them")
    chosen = [str(name) for name in names]

    def judge(value: Json, argument: str, disk: Disk) -> str | None:
        return None if any(_TYPES[name](value) for name in chosen) else f"{_kind(value)}, not {' or '.join(chosen)}"

    return judge


def _not_placeholder(setting: Json) -> _Judge:
    _only_true(setting)

    def judge(value: Json, argument: str, disk: Disk) -> str | None:
        if not isinstance(value, str):
            return None
        # Words that may be real values of some parameters are placeholders where a policy names the parameter.
        found = sign(value, argument) or sign(value, "path")
        return found.why if found is not None else None

    return judge


def _max_length(setting: Json) -> _Judge:
    most = _count(setting)

    def judge(value: Json, argument: str, disk: Disk) -> str | None:
        size = len(value) if isinstance(value, (str, list)) else 0
        return f"longer than {most}: {size}" if size > most else None

    return judge


def _min_length(setting: Json) -> _Judge:
    least = _count(setting)

    def judge(value: Json, argument: str, disk: Disk) -> str | None:
        if not isinstance(value, (str, list)):
            return None
        return f"shorter than {least}: {len(value)}" if len(value) < least else None

    return judge


def _range(setting: Json) -> _Judge:
    if not isinstance(setting, list) or len(setting) != 2 or not all(map(_is_number, setting)):
        raise CheckError("must be two numbers, as in [1, 100]")
    low, high = (float(one) for one in setting)  # type: ignore[arg-type]
    if low > high:
        raise CheckError("must begin with the smaller number")

    def judge(value: Json, argument: str, disk: Disk) -> str | None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return f"{_kind(value)}, not a number"
        return None if low <= value <= high else f"not from {setting[0]} to {setting[1]}"

    return judge


CHECKS: Mapping[str, Callable[[Json], _Judge]] = {
    "absolute-path": _absolute_path,
    "below": _below,
    "existing-dir": _existing("dir"),
    "existing-file": _existing("file"),
    "max-length": _max_length,
    "min-length": _min_length,
    "not-one-of": _not_one_of,
    "not-placeholder": _not_placeholder,
    "one-of": _one_of,
    "range": _range,
    "regex": _regex,
    "type": _type,
}
"""Functions by key that make the check function for a setting, or raise CheckError."""


def _only_true(setting: Json) -> None:
    if setting is not True:
        raise CheckError("must be true or false")


def _root(setting: Json) -> str:
    if not isinstance(setting, str) or not setting.startswith("/"):
        raise CheckError('must be an absolute path in quotes, as in "/srv/files"')
    return posixpath.normpath(setting)


def _values(setting: Json) -> Sequence[Json]:
    if not isinstance(setting, list) or not setting:
        raise CheckError('must be a list of values, as in ["a", "b"]')
    return setting


def _count(setting: Json) -> int:
    if not isinstance(setting, int) or isinstance(setting, bool) or setting < 0:
        raise CheckError("must be a whole number")
    return setting


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _same(value: Json, other: Json) -> bool:
    return value == other and isinstance(value, bool) is isinstance(other, bool)


_KINDS = {"boolean": "a boolean", "number": "a number", "string": "text", "array": "a list", "object": "an object"}


def _kind(value: Json) -> str:
    return _KINDS.get(kind_of(value), "null")
