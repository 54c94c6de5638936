"""Calls held to policies: what they break, and what their arguments are to be instead.

Policies follow one another as they stand in their file; each sees the arguments as those before it leave them. A value
that is null or absent is held to nothing but `required`. A replacement that would break the same policy again is not made,
and neither is one for a value that cannot be judged.
"""

from __future__ import annotations

import copy
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from wirelint.arguments.argument_members import GONE, Gone
from wirelint.arguments.tool_names import tails
from wirelint.model import Json, Severity
from wirelint.policy.checks import Check, UnjudgedError
from wirelint.policy.disk import Disk, NoDisk
from wirelint.text.excerpts import excerpt

Action = Literal["report", "replace", "drop", "block"]
Safety = Literal["safe", "unsafe"]
Path: TypeAlias = tuple["str | int", ...]
_MOST_PLACES = 1000


@dataclass(frozen=True, slots=True)
class Template:
    """A text with `{value}`, `{basename}`, `{argument}` or `{tool}` in it."""

    text: str


@dataclass(frozen=True, slots=True)
class Policy:
    """One table of a policy file. `arguments` are globs of places, steps parted by dots (`filter.path`, `paths.*`)."""

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
        """Whether a tool is meant, by its name or what is left of it without the prefix of its server."""
        return any(fnmatchcase(name, glob) for name in tails(tool) for glob in self.tools)


@dataclass(frozen=True, slots=True)
class Breach:
    """A value that a policy does not allow. `why` is one line; `instead` what is put in its place.

    `act`: what the policy does about it, `report` where it does nothing or nothing that would help. `unjudged`: whether
    it is allowed could not be told.
    """

    policy: Policy
    path: Path
    before: Json | Gone
    why: str
    act: Action = "report"
    instead: Json | Gone = GONE
    unjudged: bool = False

    @property
    def where(self) -> str:
        return ".".join(map(str, self.path))

    @property
    def order(self) -> str:
        """What is to be done, in words."""
        match self.act:
            case "replace":
                return f"{'set' if isinstance(self.before, Gone) else 'replace'} {self.where} by {_shown(self.instead)}"
            case "drop":
                return f"drop {self.where}"
            case "block":
                return "block the call"
            case "report":
                return ""

    @property
    def done(self) -> str:
        match self.act:
            case "replace":
                verb = "set" if isinstance(self.before, Gone) else "replaced"
                return f"{verb} {self.where} by {_shown(self.instead)}"
            case "drop":
                return f"dropped {self.where}"
            case "block":
                return "blocked the call"
            case "report":
                return ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the arguments of a call break. `arguments` is what they are after repair, `blocked` why there is no call."""

    breaches: tuple[Breach, ...]
    arguments: dict[str, Json]
    blocked: Breach | None = None


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of a file, in its order, with the file system that they ask. Equal when they say the same."""

    policies: tuple[Policy, ...] = ()
    disk: Disk = field(default_factory=NoDisk)
    source: str = ""

    def __bool__(self) -> bool:
        return bool(self.policies)

    def of(self, tool: str) -> tuple[Policy, ...]:
        return tuple(policy for policy in self.policies if policy.covers(tool))

    def judge(
        self, tool: str, arguments: dict[str, Json], allowed: Callable[[Safety], bool] = lambda _: True
    ) -> Judgement:
        """Holds a call to the policies of its tool. `allowed`: which repairs are made; others are told of only."""
        policies = self.of(tool)
        breaches: list[Breach] = []
        now = arguments
        for policy in policies:
            for path in _places(policy, now):
                breach = self._hold(policy, tool, path, now)
                if breach is None:
                    continue
                breaches.append(breach)
                if breach.act == "report" or not allowed(policy.safety):
                    continue
                if breach.act == "block":
                    return Judgement(tuple(breaches), now, breach)
                now = copy.deepcopy(arguments) if now is arguments else now
                _put(now, path, breach.instead)
        return Judgement(tuple(breaches), now)

    def _hold(self, policy: Policy, tool: str, path: Path, arguments: dict[str, Json]) -> Breach | None:
        value = _get(arguments, path)
        try:
            why = self._why(policy, path, value)
        except UnjudgedError as cannot:
            return Breach(policy, path, value, f"cannot be judged: {cannot}", unjudged=True)
        if why is None:
            return None
        breach = Breach(policy, path, value, why)
        match policy.action:
            case "replace":
                instead = _instead(policy, tool, path, value)
                helps = not self._breaks(policy, path, instead)
                return replace(breach, act="replace", instead=instead) if helps else breach
            case "drop":
                if isinstance(value, Gone) or isinstance(path[-1], int):
                    return breach
                return replace(breach, act="drop") if not policy.required else breach
            case "block":
                return replace(breach, act="block")
            case "report":
                return breach

    def _why(self, policy: Policy, path: Path, value: Json | Gone) -> str | None:
        if isinstance(value, Gone) or value is None:
            missing = "missing" if isinstance(value, Gone) else "null"
            return missing if policy.required else None
        name = next((step for step in reversed(path) if isinstance(step, str)), "")
        return next((why for check in policy.checks if (why := check.judge(value, name, self.disk))), None)

    def _breaks(self, policy: Policy, path: Path, value: Json) -> bool:
        try:
            return self._why(policy, path, value) is not None
        except UnjudgedError:
            return False


NO_POLICIES: Final = Policies()


def _places(policy: Policy, arguments: dict[str, Json]) -> Iterator[Path]:
    """The places in arguments that a policy is about; for a required one also those that are not there."""
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
    keys: list[str | int] = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    found = [key for key in keys if fnmatchcase(str(key), glob)]
    for key in found:
        inner = value[key]  # type: ignore[index]
        yield from _walk(inner, rest, required=required, path=(*path, key))
    if required and not found and not rest and isinstance(value, dict) and not _is_glob(glob):
        yield (*path, glob)


def _is_glob(text: str) -> bool:
    return any(mark in text for mark in "*?[")


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
    around = _get(arguments, path[:-1])
    last = path[-1]
    if isinstance(around, dict) and isinstance(last, str):
        if isinstance(value, Gone):
            around.pop(last, None)
        else:
            around[last] = value
    elif isinstance(around, list) and isinstance(last, int) and not isinstance(value, Gone):
        around[last] = value


def _instead(policy: Policy, tool: str, path: Path, value: Json | Gone) -> Json:
    instead = policy.instead
    if not isinstance(instead, Template):
        return copy.deepcopy(instead)
    text = value if isinstance(value, str) else "" if isinstance(value, Gone) or value is None else str(value)
    values: Mapping[str, str] = {
        "value": text,
        "basename": posixpath.basename(text.replace("\\", "/").rstrip("/")),
        "argument": next((str(step) for step in reversed(path) if isinstance(step, str)), ""),
        "tool": tool,
    }
    return instead.text.format_map(values)


def _shown(value: Json | Gone) -> str:
    return "nothing" if isinstance(value, Gone) else "null" if value is None else excerpt(str(value))


def describe(breach: Breach) -> str:
    """One line: which policy, which argument, its value, what is wrong."""
    policy = breach.policy
    if policy.message and not breach.unjudged:
        said = policy.message
    elif isinstance(breach.before, Gone):
        said = f"{breach.where} is missing"
    else:
        said = f"{breach.where} {_quoted(breach.before)} {'' if breach.unjudged else 'is '}{breach.why}"
    return f"policy {policy.name}: {said}"


def _quoted(value: Json) -> str:
    return f'"{excerpt(value)}"' if isinstance(value, str) else excerpt(str(value))
