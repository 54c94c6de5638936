"""Argument policies: constraints on the arguments of tools, written by the operators of the tools.

A policy names tools and arguments, a check of the values, and an action for a value that fails the check. It is read
from a file (`policy.file`) and checks values (`policy.checks`). `policy.checks.Disk` looks up whether a path exists.

Policies apply in the order of their file; each gets the arguments as changed by the earlier ones. A value that is null
or absent only breaks `required`. A replacement that would break the same policy again is not made, and neither is one
for a value that cannot be checked. After the policies, invented values (`arguments.invented`) are reported at places
without a breach of a policy; among these only a word for "no value" has a fix: null if the schema allows it, else the
argument is dropped if it is optional.
"""

from __future__ import annotations

import copy
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, Literal

from wirelint.arguments.argument_markup import GONE, Gone
from wirelint.arguments.placeholders import Invention, KnownText, inventions
from wirelint.arguments.schemas import tails
from wirelint.jsonvalues import Path, inside
from wirelint.model import Confidence, Json, Severity, Tool
from wirelint.policy.checks import Check, Disk, NoDisk, UnjudgedError
from wirelint.text.escaping import excerpt

Action = Literal["report", "replace", "drop", "block"]
Safety = Literal["safe", "unsafe"]
_MOST_PLACES = 1000


def any_safety(safety: Safety) -> bool:
    return True


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
    disk: Disk = field(default_factory=NoDisk)
    source: str = ""

    def __bool__(self) -> bool:
        return bool(self.policies)

    def of(self, tool: str) -> tuple[Policy, ...]:
        return tuple(policy for policy in self.policies if policy.covers(tool))

    def judge(self, tool: str, arguments: dict[str, Json], allowed: Callable[[Safety], bool] = any_safety) -> Outcome:
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
    name: str,
    arguments: dict[str, Json],
    tool: Tool | None,
    policies: Policies = NO_POLICIES,
    said: KnownText | None = None,
    allowed: Callable[[Safety], bool] = any_safety,
) -> Outcome:
    """Check the arguments of a call. `said`: the conversation; without it only policies apply. `allowed`: fixes to
    make."""
    outcome = policies.judge(name, arguments, allowed) if policies else Outcome(())
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
    """Return the name of the argument at a place: the innermost step that is not an index."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _where(path: Path) -> str:
    return ".".join(map(str, path))


def _quoted(value: Json | Gone) -> str:
    return f'"{excerpt(value)}"' if isinstance(value, str) else excerpt(str(value))


def _changes(arguments: dict[str, Json], now: dict[str, Json]) -> dict[str, Json | Gone] | None:
    """Return the top-level arguments that differ."""
    pairs = {key: (now.get(key, GONE), arguments.get(key, GONE)) for key in {**arguments, **now}}
    return {key: one for key, (one, other) in pairs.items() if type(one) is not type(other) or one != other} or None
