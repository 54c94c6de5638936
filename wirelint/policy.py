"""Argument policies: constraints on the arguments of tools, written by the operators of the tools.

A policy names tools and arguments, checks of the values, and an action for a value that fails a check. Policies are in
a TOML file with a table `[[policy]]` for each. Errors in it are ConfigError: one line with file, key and cure.

Policies apply in the order of their file; each gets the arguments as changed by the earlier ones. A value that is null
or absent only breaks `required`. A replacement that would break the same policy again is not made, and neither is one
for a value that cannot be checked. After the policies, invented values (`arguments.placeholders`) are reported at places
without a breach of a policy; among these only a word for "no value" has a fix: null if the schema allows it, else the
argument is dropped if it is optional.
"""

from __future__ import annotations

import copy
import os
import pathlib
import posixpath
import re
import stat
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias, get_args

from wirelint.arguments.argument_faults import GONE, Gone
from wirelint.arguments.placeholders import Invention, KnownText, inventions, sign
from wirelint.arguments.schemas import kind_of, tails
from wirelint.jsonvalues import Path, inside
from wirelint.model import Confidence, Json, Severity, Tool, ToolCall
from wirelint.tables import ConfigError, Table, read_toml, shown
from wirelint.text.escaping import excerpt

Action = Literal["report", "replace", "drop", "block"]
Safety = Literal["safe", "unsafe"]
Kind = Literal["file", "dir", "other", "missing", "unknown"]
"""What stands at a path in the file system. `unknown`: permission is missing, or there is no file system to look at."""
_MOST_PLACES = 1000
_LONGEST_MATCHED = 4096
"""Most characters of a value for a user's regular expression; with longer values a match could take too long."""


# --- checks of values -------------------------------------------------------------------------------------------------


Disk: TypeAlias = Callable[[str], Kind]
"""A port to a file system: it takes an absolute path and never raises."""


def no_disk(path: str) -> Kind:
    return "unknown"


def real_disk(path: str) -> Kind:
    """Look at the file system of this machine."""
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


_CHECKS = ("absolute-path", "below", "existing-dir", "existing-file", "max-length", "min-length", "not-one-of",
           "not-placeholder", "one-of", "range", "regex", "type")  # fmt: skip
_OF_TEXT = frozenset({"absolute-path", "below", "existing-dir", "existing-file", "regex"})
_KINDS = {"boolean": "a boolean", "number": "a number", "string": "text", "array": "a list", "object": "an object"}
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


@dataclass(frozen=True, slots=True)
class Check:
    """A check. `name` is its key in the file, `setting` the value of the key as `_setting` prepares it."""

    name: str
    setting: Any

    def judge(self, value: Json, argument: str, disk: Disk) -> str | None:
        """Return the fault of a value in words that complete "… is", or None. Raises UnjudgedError."""
        setting = self.setting
        if self.name in _OF_TEXT and not isinstance(value, str):
            return f"{_kind(value)}, not text"
        match self.name, value:
            case "absolute-path", str():
                return None if _is_absolute(value) else "not an absolute path"
            case "below", str():
                return None if _place(value, setting) is not None else f"outside of {setting}"
            case "existing-dir" | "existing-file", str():
                return _missing(self.name.removeprefix("existing-"), None if setting is True else setting, value, disk)
            case "max-length", str() | list() if len(value) > setting:
                return f"longer than {setting}: {len(value)}"
            case "min-length", str() | list() if len(value) < setting:
                return f"shorter than {setting}: {len(value)}"
            case "not-one-of", _:
                return "refused" if any(_same(value, one) for one in setting) else None
            case "one-of", _ if not any(_same(value, one) for one in setting):
                return f"none of {excerpt(', '.join(map(str, setting)))}"
            case "not-placeholder", str():
                # Words that may be real values of some parameters are placeholders where a policy names the parameter.
                found = sign(value, argument) or sign(value, "path")
                return found.why if found is not None else None
            case "range", int() | float() if not isinstance(value, bool):
                return None if setting[0] <= value <= setting[1] else f"not from {setting[0]} to {setting[1]}"
            case "range", _:
                return f"{_kind(value)}, not a number"
            case "regex", str():
                if len(value) > _LONGEST_MATCHED:
                    text = f"a text of more than {_LONGEST_MATCHED} characters is matched with no regular expression"
                    raise UnjudgedError(text)
                return None if setting.fullmatch(value) else f"not of the form {excerpt(setting.pattern)}"
            case "type", int() | float() if "integer" in setting and _is_number(value) and float(value).is_integer():
                return None
            case "type", _ if kind_of(value) not in setting:
                return f"{_kind(value)}, not {' or '.join(setting)}"
        return None


def _setting(name: str, given: Json) -> Any:
    """Return the prepared setting of a check. Raises ValueError with the valid settings."""
    match name, given:
        case "absolute-path" | "not-placeholder", _:
            return _valid(given, given is True, "must be true or false")
        case "existing-dir" | "existing-file", True:
            return True
        case "below" | "existing-dir" | "existing-file", _:
            is_path = isinstance(given, str) and given.startswith("/")
            return posixpath.normpath(_valid(given, is_path, 'must be an absolute path in quotes, as in "/srv/files"'))
        case "max-length" | "min-length", _:
            return _valid(given, _is_number(given) and isinstance(given, int) and given >= 0, "must be a whole number")
        case "one-of" | "not-one-of", _:
            return _valid(given, bool(given) and isinstance(given, list), 'must be a list of values, as in ["a", "b"]')
        case "range", [low, high] if _is_number(low) and _is_number(high):
            return _valid(given, low <= high, "must begin with the smaller number")  # type: ignore[operator]
        case "range", _:
            raise ValueError("must be two numbers, as in [1, 100]")
        case "regex", str():
            try:
                return re.compile(given)
            except re.error as error:
                raise ValueError(f"is not a regular expression: {error}") from error
        case "regex", _:
            raise ValueError("must be a regular expression in quotes")
    names = [given] if isinstance(given, str) else given
    is_list = isinstance(names, list) and bool(names) and all(one in _TYPES for one in names)
    return _valid(names, is_list, f"must be one of {', '.join(_TYPES)}, or a list of them")


def _valid(setting: Any, is_valid: bool, rule: str) -> Any:
    if not is_valid:
        raise ValueError(rule)
    return setting


def _missing(wanted: str, root: str | None, value: str, disk: Disk) -> str | None:
    """Return the fault of a path that must lead to a file or folder. Raises UnjudgedError."""
    words = {"dir": "directory", "file": "file"}[wanted]
    if root is not None and disk(root) != "dir":
        raise UnjudgedError(f"{root} is not on this machine")
    if root is None and not value.startswith("/"):
        if _is_absolute(value):
            raise UnjudgedError(f"{value} is not of this machine")
        return "not an absolute path"
    path = posixpath.normpath(value) if root is None else _place(value, root)
    if path is None:
        return f"outside of {root}"
    found = disk(path)
    if found == "unknown":
        raise UnjudgedError(f"{path} cannot be looked at from here")
    if found == wanted:
        return None
    return f"no {words}" if found != "missing" else f"no {words}{f' in {root}' if root else ' that exists'}"


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or pathlib.PureWindowsPath(path).is_absolute()


def _place(value: str, root: str) -> str | None:
    """Return the path of a value below a root, by names only; None if it is outside."""
    if not value or "\0" in value:
        return None
    path = posixpath.normpath(posixpath.join(root, value))
    return path if path == root or path.startswith(root.rstrip("/") + "/") else None


def _is_number(value: Json) -> bool:
    return kind_of(value) == "number"


def _same(value: Json, other: Json) -> bool:
    return value == other and isinstance(value, bool) is isinstance(other, bool)


def _kind(value: Json) -> str:
    return _KINDS.get(kind_of(value), "null")


# --- policies and their breaches --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Template:
    """A replacement text with `{value}`, `{basename}`, `{argument}` or `{tool}` in it."""

    text: str


@dataclass(frozen=True, slots=True)
class Policy:
    """One table of a policy file. `arguments` are globs of places, steps separated by dots (`filter.path`, `paths.*`)."""

    name: str
    tools: tuple[str, ...]
    arguments: tuple[str, ...]
    checks: tuple[Check, ...]
    required: bool = False
    action: Action = "report"
    instead: Json | Template = None
    safety: Safety = "unsafe"
    severity: Severity = "warning"
    message: str = ""

    def covers(self, tool: str) -> bool:
        """Return True if the policy applies to a tool, by its name with or without the prefix of its server."""
        return any(fnmatchcase(name, glob) for name in tails(tool) for glob in self.tools)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in the arguments of a call. `path` is its place, `safety` that of its fix, None without a fix.

    `title` and `done` describe the fix in the imperative and in the past tense: `drop path`, `dropped path`. `instead`
    replaces the value, GONE removes it. `blocks`: the fix removes the call. `judged` is False if the value could not be
    checked.
    """

    message: str
    severity: Severity
    confidence: Confidence
    path: Path
    safety: Safety | None = None
    title: str = ""
    done: str = ""
    instead: Json | Gone = GONE
    blocks: bool = False
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """The faults of a call, those fixed (`made`), the changed top-level arguments; `blocked`: the call is removed."""

    faults: tuple[Fault, ...]
    made: tuple[Fault, ...] = ()
    changes: Mapping[str, Json | Gone] | None = None
    blocked: Fault | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a file in its order, with the file system for path checks."""

    policies: tuple[Policy, ...] = ()
    disk: Disk = no_disk
    source: str = ""

    def __bool__(self) -> bool:
        return bool(self.policies)

    def of(self, tool: str) -> tuple[Policy, ...]:
        return tuple(policy for policy in self.policies if policy.covers(tool))

    def judge(
        self, tool: str, arguments: dict[str, Json], allowed: Callable[[Safety], bool] = lambda _: True
    ) -> Outcome:
        """Apply the policies of a tool to the arguments of a call. Fixes that are not `allowed` are only reported."""
        faults: list[Fault] = []
        made: list[Fault] = []
        now = arguments
        for policy in self.of(tool):
            for path in _places(policy, now):
                fault = self._fault(policy, tool, path, _get(now, path))
                if fault is None:
                    continue
                faults.append(fault)
                if fault.safety is None or not allowed(fault.safety):
                    continue
                made.append(fault)
                if fault.blocks:
                    return Outcome(tuple(faults), tuple(made), None, fault)
                now = copy.deepcopy(arguments) if now is arguments else now
                _put(now, path, fault.instead)
        return Outcome(tuple(faults), tuple(made), _changes(arguments, now))

    def _fault(self, policy: Policy, tool: str, path: Path, value: Json | Gone) -> Fault | None:
        try:
            why = self._why(policy, path, value)
        except UnjudgedError as error:
            message = f"policy {policy.name}: {_where(path)} {_quoted(value)} cannot be judged: {error}"
            return Fault(message, "info", "low", path, judged=False)
        if why is None:
            return None
        where, missing = _where(path), isinstance(value, Gone)
        text = policy.message or (f"{where} is missing" if missing else f"{where} {_quoted(value)} is {why}")
        fault = Fault(f"policy {policy.name}: {text}", policy.severity, "high", path)
        safety = policy.safety
        match policy.action:
            case "replace":
                instead = _instead(policy, tool, path, value)
                if self._breaks(policy, path, instead):
                    return fault
                shown, verb = "null" if instead is None else excerpt(str(instead)), "set" if missing else "replace"
                title, done = f"{verb} {where} by {shown}", f"{'set' if missing else 'replaced'} {where} by {shown}"
                return replace(fault, safety=safety, title=title, done=done, instead=instead)
            case "drop" if not (policy.required or missing or isinstance(path[-1], int)):
                return replace(fault, safety=safety, title=f"drop {where}", done=f"dropped {where}")
            case "block":
                return replace(fault, safety=safety, title="block the call", done="blocked the call", blocks=True)
            case _:
                return fault

    def _why(self, policy: Policy, path: Path, value: Json | Gone) -> str | None:
        if isinstance(value, Gone) or value is None:
            missing = "missing" if isinstance(value, Gone) else "null"
            return missing if policy.required else None
        name = _name_of(path)
        return next((why for check in policy.checks if (why := check.judge(value, name, self.disk))), None)

    def _breaks(self, policy: Policy, path: Path, value: Json) -> bool:
        try:
            return self._why(policy, path, value) is not None
        except UnjudgedError:
            return False


NO_POLICIES: Final = Policies()


def judge_arguments(
    call: ToolCall,
    arguments: dict[str, Json],
    tool: Tool | None,
    policies: Policies,
    said: KnownText | None,
    allowed: Callable[[Safety], bool],
) -> Outcome:
    """Check the arguments of a call. Without the conversation (`said`) only policies apply. `allowed`: fixes to make."""
    outcome = policies.judge(call.name or "", arguments, allowed) if policies else Outcome(())
    if outcome.blocked is not None or tool is None or said is None:
        return outcome
    faults, made, changes = list(outcome.faults), list(outcome.made), dict(outcome.changes or {})
    reported = {fault.path for fault in faults if fault.judged}
    for invention in inventions(arguments, tool, said):
        if invention.leaf.path not in reported:
            faults.append(fault := _of_invention(invention))
            if fault.safety is not None and allowed(fault.safety):
                made.append(fault)
                changes[str(fault.path[0])] = fault.instead
    return Outcome(tuple(faults), tuple(made), changes or None)


def _of_invention(invention: Invention) -> Fault:
    leaf, found = invention.leaf, invention.sign
    title, done, instead = {
        "": ("", "", GONE),
        "null": (f"replace {leaf.where} by null", f"replaced {leaf.where} by null", None),
        "nothing": (f"drop {leaf.where}", f"dropped {leaf.where}", GONE),
    }[invention.instead]
    severity: Severity = "info" if found.confidence == "low" else "warning"
    message, safety = f"{leaf.where} {_quoted(leaf.value)} is {found.why}", "unsafe" if title else None
    return Fault(message, severity, found.confidence, leaf.path, safety, title, done, instead)  # type: ignore[arg-type]


# --- places in arguments ----------------------------------------------------------------------------------------------


def _places(policy: Policy, arguments: dict[str, Json]) -> Iterator[Path]:
    """Yield the places that a policy applies to; if it is `required`, also those that are absent."""
    seen: set[Path] = set()
    for argument in policy.arguments:
        for path in _walk(arguments, tuple(argument.split(".")), required=policy.required):
            if path not in seen and len(seen) < _MOST_PLACES:
                seen.add(path)
                yield path


def _walk(value: Json, steps: Sequence[str], *, required: bool, path: Path = ()) -> Iterator[Path]:
    if not steps:
        yield path
        return
    glob, rest = steps[0], steps[1:]
    found = [(key, inner) for key, inner in inside(value) if fnmatchcase(str(key), glob)]
    for key, inner in found:
        yield from _walk(inner, rest, required=required, path=(*path, key))
    is_glob = any(mark in glob for mark in "*?[")
    if required and not found and not rest and isinstance(value, dict) and not is_glob:
        yield (*path, glob)


def _get(arguments: Json, path: Path) -> Json | Gone:
    value = arguments
    for step in path:
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return GONE
    return value


def _put(arguments: Json, path: Path, value: Json | Gone) -> None:
    match _get(arguments, path[:-1]), path[-1]:
        case dict() as around, str(key) if isinstance(value, Gone):
            around.pop(key, None)
        case dict() as around, str(key) if not isinstance(value, Gone):
            around[key] = value
        case list() as around, int(number) if not isinstance(value, Gone):
            around[number] = value


def _instead(policy: Policy, tool: str, path: Path, value: Json | Gone) -> Json:
    instead = policy.instead
    if not isinstance(instead, Template):
        return copy.deepcopy(instead)
    text = value if isinstance(value, str) else "" if isinstance(value, Gone) or value is None else str(value)
    basename = posixpath.basename(text.replace("\\", "/").rstrip("/"))
    return instead.text.format_map({"value": text, "basename": basename, "argument": _name_of(path), "tool": tool})


def _name_of(path: Path) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _where(path: Path) -> str:
    return ".".join(map(str, path))


def _quoted(value: Json | Gone) -> str:
    return f'"{excerpt(value)}"' if isinstance(value, str) else excerpt(str(value))


def _changes(arguments: dict[str, Json], now: dict[str, Json]) -> dict[str, Json | Gone] | None:
    pairs = {key: (now.get(key, GONE), arguments.get(key, GONE)) for key in {**arguments, **now}}
    return {key: one for key, (one, other) in pairs.items() if type(one) is not type(other) or one != other} or None


# --- the file ---------------------------------------------------------------------------------------------------------

_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_ACTIONS: tuple[Action, ...] = get_args(Action)
_SAFETIES: tuple[Safety, ...] = get_args(Safety)
_INSTEAD = ("with", "template", "null")
_OWN = ("name", "tools", "arguments", "required", "action", *_INSTEAD, "safety", "severity", "message")
_KEYS = (*_OWN, *_CHECKS)
_FIELDS = ("value", "basename", "argument", "tool")


def load(path: pathlib.Path) -> Policies:
    """Return the policies of a file. Raises ConfigError."""
    return read_policies(read_toml(path, str(path), "policy file"), str(path), real_disk)


def read_policies(document: dict[str, object], source: str, disk: Disk = no_disk) -> Policies:
    """Return the policies in a file named `source`. `disk`: the file system for path checks. Raises ConfigError."""
    for key in document:
        if key != "policy":
            raise ConfigError(f"{source}: {key}: no such key; policies are tables that begin with [[policy]]")
    tables = document.get("policy", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{source}: policy: a single table; write [[policy]], in two brackets")
    if not tables:
        raise ConfigError(f"{source}: no policy in it; begin one with [[policy]]")
    found = tuple(_policy(table, source, number) for number, table in enumerate(tables, 1))
    names = [policy.name for policy in found]
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            raise ConfigError(f"{source}: policy[{number}].name: {name!r} is taken; give each policy a name of its own")
    return Policies(found, disk, source)


def _policy(values: dict[str, object], source: str, number: int) -> Policy:
    name = values.get("name")
    title = f"policy[{number}]{f' {name}' if isinstance(name, str) and name else ''}"
    table = Table(values, source, "policy", title)
    table.know(_KEYS)
    action = table.choice("action", _ACTIONS) or "report"
    policy = Policy(
        name=_line(table, "name") or f"policy {number}",
        tools=_globs(table, "tools") if "tools" in values else ("*",),
        arguments=_globs(table, "arguments"),
        checks=tuple(_checks(table)),
        required=table.switch("required") or False,
        action=action,
        instead=_replacement(table, action),
        safety=table.choice("safety", _SAFETIES) or "unsafe",
        severity=table.choice("severity", _SEVERITIES) or "warning",
        message=_line(table, "message"),
    )
    _check(table, policy)
    return policy


def _line(table: Table, key: str) -> str:
    return " ".join((table.text(key) or "").split())


def _globs(table: Table, key: str) -> tuple[str, ...]:
    example = '"path", "*_dir"'
    found = table.names(key, example)
    if not found:
        raise table.error(key, f"must be a name or a list of names, as in {key} = [{example}]")
    return found


def _checks(table: Table) -> Iterator[Check]:
    for key, value in table.values.items():
        if key in _CHECKS and value is not False:
            try:
                yield Check(key, _setting(key, _json(table, key, value)))
            except ValueError as error:
                raise table.error(key, f"{shown(value)} {error}") from error


def _check(table: Table, policy: Policy) -> None:
    """Raise ConfigError if keys contradict each other."""
    if not policy.checks and not policy.required:
        raise table.error("", f"nothing is checked; add one of {', '.join(_CHECKS)}, or required = true")
    if policy.action == "block" and policy.safety == "safe":
        raise table.error("safety", "blocking a call is never safe; remove the key")
    if policy.action == "drop" and policy.required:
        raise table.error("action", "a required argument cannot be dropped; replace it, or block the call")
    if policy.action != "replace":
        return
    if policy.instead is None and policy.required:
        raise table.error("null", "the argument is required; give it a value")
    if policy.instead is None or isinstance(policy.instead, Template):
        return
    for check in policy.checks:  # a constant that breaks its own policy would be replaced for ever
        if not check.name.startswith("existing-") and (why := check.judge(policy.instead, "", no_disk)) is not None:
            text = f"{policy.instead!r} breaks {check.name} itself ({why}); give a value that does not"
            raise table.error("with", text)


def _replacement(table: Table, action: Action) -> Json | Template:
    given = [key for key in _INSTEAD if key in table.values]
    if action != "replace":
        if given:
            raise table.error(given[0], f'only of use with action = "replace"; here it is "{action}"')
        return None
    if len(given) != 1:
        raise table.error("action", "replacing takes one of with = VALUE, template = TEXT, null = true")
    value = table.values[given[0]]
    if given[0] == "with":
        return _json(table, "with", value)
    if given[0] == "template":
        return _template(table, value)
    if value is not True:
        raise table.error("null", f"{shown(value)} must be true")
    return None


def _template(table: Table, value: object) -> Template:
    if not isinstance(value, str):
        raise table.error("template", f"{shown(value)} must be text in quotes")
    try:
        pieces = [piece[1:] for piece in string.Formatter().parse(value) if piece[1] is not None]
    except ValueError as error:
        raise table.error("template", f"{shown(value)}: {error}; write {{{{ and }}}} for brackets") from error
    for name, form, conversion in pieces:
        if name not in _FIELDS or form or conversion:
            listed = ", ".join(f"{{{one}}}" for one in _FIELDS)
            raise table.error("template", f"{{{name}}} is unknown; there are {listed}")
    return Template(value)


def _json(table: Table, key: str, value: object) -> Json:
    match value:
        case bool() | int() | float() | str():
            return value
        case list():
            return [_json(table, key, one) for one in value]
        case dict():
            return {str(name): _json(table, key, one) for name, one in value.items()}
        case _:
            raise table.error(key, f"{value} is not a JSON value; put dates in quotes")
