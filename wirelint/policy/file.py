"""Policy files: TOML with a table `[[policy]]` per policy. Errors are ConfigError: one line with file, key and cure."""

from __future__ import annotations

import string
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from wirelint.model import Json, Severity
from wirelint.policy import Action, Policies, Policy, Safety, Template
from wirelint.policy.checks import CHECKS, Check, CheckError, Disk, NoDisk, RealDisk, make
from wirelint.tables import ConfigError, Table, parse_toml, read_toml, shown

_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_ACTIONS: tuple[Action, ...] = get_args(Action)
_SAFETIES: tuple[Safety, ...] = get_args(Safety)
_INSTEAD = ("with", "template", "null")
_OWN = ("name", "tools", "arguments", "required", "action", *_INSTEAD, "safety", "severity", "message")
_KEYS = (*_OWN, *CHECKS)
_FIELDS = ("value", "basename", "argument", "tool")


def load(path: Path) -> Policies:
    """Return the policies of a file. Raises ConfigError."""
    return _policies(read_toml(path, str(path), "policy file"), str(path), RealDisk())


def parse(text: str, source: str, disk: Disk | None = None) -> Policies:
    """Return the policies in the text of a file. `source`: its name in errors. `disk`: the file system for path checks.
    Raises ConfigError."""
    return _policies(parse_toml(text, source), source, disk)


def _policies(document: dict[str, object], source: str, disk: Disk | None) -> Policies:
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
    return Policies(found, disk or NoDisk(), source)


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
        instead=_instead(table, action),
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


def _checks(table: Table) -> Iterable[Check]:
    for key, value in table.values.items():
        if key in CHECKS:
            try:
                check = make(key, _json(table, key, value))
            except CheckError as error:
                raise table.error(key, f"{shown(value)} {error}") from error
            if check is not None:
                yield check


def _check(table: Table, policy: Policy) -> None:
    """Raise ConfigError if keys contradict each other."""
    if not policy.checks and not policy.required:
        raise table.error("", f"nothing is checked; add one of {', '.join(CHECKS)}, or required = true")
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
        if not check.name.startswith("existing-") and (why := check.judge(policy.instead, "", NoDisk())) is not None:
            text = f"{policy.instead!r} breaks {check.name} itself ({why}); give a value that does not"
            raise table.error("with", text)


def _instead(table: Table, action: Action) -> Json | Template:
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
    for field, form, conversion in pieces:
        if field not in _FIELDS or form or conversion:
            listed = ", ".join(f"{{{name}}}" for name in _FIELDS)
            raise table.error("template", f"{{{field}}} is unknown; there are {listed}")
    return Template(value)


def _json(table: Table, key: str, value: object) -> Json:
    """Return a TOML value as JSON, which has no dates."""
    match value:
        case bool() | int() | float() | str():
            return value
        case list():
            return [_json(table, key, one) for one in value]
        case dict():
            return {str(name): _json(table, key, one) for name, one in value.items()}
        case _:
            raise table.error(key, f"{value} is no value of JSON; put dates in quotes")
