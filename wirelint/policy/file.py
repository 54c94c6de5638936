"""Policy files: TOML, a table `[[policy]]` each. What is wrong with one is told in a line that names file, key and cure."""

from __future__ import annotations

import difflib
import string
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from wirelint.model import Json, Severity
from wirelint.policy.checks import CHECKS, Check, CheckError, make
from wirelint.policy.disk import Disk, NoDisk
from wirelint.policy.judging import Action, Policies, Policy, Safety, Template

_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_ACTIONS: tuple[Action, ...] = get_args(Action)
_SAFETIES: tuple[Safety, ...] = get_args(Safety)
_INSTEAD = ("with", "template", "null")
_OWN = ("name", "tools", "arguments", "required", "action", *_INSTEAD, "safety", "severity", "message")
_KEYS = (*_OWN, *CHECKS)
_FIELDS = ("value", "basename", "argument", "tool")


class PolicyError(ValueError):
    """A policy file that cannot be used. The text is one line: file, key, what is wrong, the cure."""


def load(path: Path, disk: Disk | None = None) -> Policies:
    """The policies of a file. `disk`: the file system that they ask. Raises PolicyError."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise PolicyError(f"{path}: {error.strerror or error}; name a policy file that can be read") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    return parse(text, str(path), disk)


def parse(text: str, source: str, disk: Disk | None = None) -> Policies:
    """The policies in the text of a file. `source` is its name, for complaints. Raises PolicyError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{source}: not TOML: {error}; mend that line") from error
    for key in document:
        if key != "policy":
            raise PolicyError(f"{source}: {key}: no such key; policies are tables that begin with [[policy]]")
    tables = document.get("policy", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise PolicyError(f"{source}: policy: a single table; write [[policy]], in two brackets")
    if not tables:
        raise PolicyError(f"{source}: no policy in it; begin one with [[policy]]")
    found = tuple(_Table(table, source, number).read() for number, table in enumerate(tables, 1))
    names = [policy.name for policy in found]
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            raise PolicyError(f"{source}: policy[{number}].name: {name!r} is taken; give each policy a name of its own")
    return Policies(found, disk or NoDisk(), source)


class _Table:
    """One `[[policy]]`."""

    def __init__(self, table: dict[str, object], source: str, number: int) -> None:
        self._table, self._source, self._number = table, source, number

    def read(self) -> Policy:
        self._know_all_keys()
        action = self._choice("action", _ACTIONS, "report")
        policy = Policy(
            name=self._text("name") or f"policy {self._number}",
            tools=self._globs("tools", default=("*",)),
            arguments=self._globs("arguments"),
            checks=tuple(self._checks()),
            required=self._switch("required"),
            action=action,
            instead=self._instead(action),
            safety=self._choice("safety", _SAFETIES, "unsafe"),
            severity=self._choice("severity", _SEVERITIES, "warning"),
            message=self._text("message"),
        )
        self._check(policy)
        return policy

    def _check(self, policy: Policy) -> None:
        if not policy.checks and not policy.required:
            raise self._error("", f"nothing is checked; add one of {', '.join(CHECKS)}, or required = true")
        if policy.action == "block" and policy.safety == "safe":
            raise self._error("safety", "blocking a call is never safe; take the key out")
        if policy.action == "drop" and policy.required:
            raise self._error("action", "a required argument cannot be dropped; replace it, or block the call")
        if policy.action == "replace" and policy.instead is None and policy.required:
            raise self._error("null", "the argument is required; give it a value")
        if policy.action == "replace":
            self._check_constant(policy)

    def _check_constant(self, policy: Policy) -> None:
        """A constant that its own policy does not allow would be replaced for ever. File systems are not asked here."""
        if policy.instead is None or isinstance(policy.instead, Template):
            return
        for check in policy.checks:
            if check.name.startswith("existing-"):
                continue
            why = check.judge(policy.instead, "", NoDisk())
            if why is not None:
                raise self._error(
                    "with", f"{policy.instead!r} breaks {check.name} itself ({why}); give a value that does not"
                )

    def _know_all_keys(self) -> None:
        for key in self._table:
            if key in _KEYS:
                continue
            near = difflib.get_close_matches(key.replace("_", "-"), _KEYS, 1, 0.6)
            hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(_KEYS)}"
            raise self._error(key, f"no such key; {hint}")

    def _checks(self) -> Iterable[Check]:
        for key, value in self._table.items():
            if key not in CHECKS:
                continue
            try:
                check = make(key, self._json(key, value))
            except CheckError as error:
                raise self._error(key, f"{_shown(value)} {error}") from error
            if check is not None:
                yield check

    def _instead(self, action: Action) -> Json | Template:
        given = [key for key in _INSTEAD if key in self._table]
        if action != "replace":
            if given:
                raise self._error(given[0], f'only of use with action = "replace"; here it is "{action}"')
            return None
        if len(given) != 1:
            raise self._error("action", "replacing takes one of with = VALUE, template = TEXT, null = true")
        value = self._table[given[0]]
        match given[0]:
            case "with":
                return self._json("with", value)
            case "template":
                return self._template(value)
            case _ if value is not True:
                raise self._error("null", f"{_shown(value)} must be true")
            case _:
                return None

    def _template(self, value: object) -> Template:
        if not isinstance(value, str):
            raise self._error("template", f"{_shown(value)} must be text in quotes")
        try:
            fields = [field for _, field, form, conversion in string.Formatter().parse(value) if field is not None]
            plain = all(not form and not conversion for _, _, form, conversion in string.Formatter().parse(value))
        except ValueError as error:
            raise self._error("template", f"{_shown(value)}: {error}; write {{{{ and }}}} for brackets") from error
        for field in fields:
            if field not in _FIELDS or not plain:
                listed = ", ".join(f"{{{name}}}" for name in _FIELDS)
                raise self._error("template", f"{{{field}}} is unknown; there are {listed}")
        return Template(value)

    def _globs(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._table.get(key, list(default))
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not items or not all(isinstance(item, str) and item for item in items):
            raise self._error(key, f'must be a name or a list of names, as in {key} = ["path", "*_dir"]')
        return tuple(str(item) for item in items)

    def _text(self, key: str) -> str:
        value = self._table.get(key, "")
        if not isinstance(value, str):
            raise self._error(key, f"{_shown(value)} must be text in quotes")
        return " ".join(value.split())

    def _switch(self, key: str) -> bool:
        value = self._table.get(key, False)
        if not isinstance(value, bool):
            raise self._error(key, f"{_shown(value)} must be true or false")
        return value

    def _choice(self, key: str, words: tuple[str, ...], default: str):  # type: ignore[no-untyped-def]
        value = self._table.get(key, default)
        if value not in words:
            near = difflib.get_close_matches(str(value), words, 1, 0.6)
            hint = f"did you mean {near[0]}?" if near else f"write one of {', '.join(words)}"
            raise self._error(key, f"{_shown(value)} is none of its words; {hint}")
        return value

    def _json(self, key: str, value: object) -> Json:
        """A TOML value that JSON has too: no dates."""
        match value:
            case bool() | int() | float() | str():
                return value
            case list():
                return [self._json(key, one) for one in value]
            case dict():
                return {str(name): self._json(key, one) for name, one in value.items()}
            case _:
                raise self._error(key, f"{value} is no value of JSON; put dates in quotes")

    def _error(self, key: str, said: str) -> PolicyError:
        name = self._table.get("name")
        which = f"policy[{self._number}]{f' {name}' if isinstance(name, str) and name else ''}"
        return PolicyError(f"{self._source}: {which}{f': {key}' if key else ''}: {said}")


def _shown(value: object) -> str:
    return "true" if value is True else "false" if value is False else repr(value)
