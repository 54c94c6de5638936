"""The options of the addon: declared as text, read and checked here.

mitmproxy checks little by itself. A bad number or a value given twice makes it leave the addon out and run on without it,
without a word; a misspelt name is taken silently. So every option is text, is read in `configure`, and whatever is wrong
becomes one line that names the option, the value and the cure.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from wirelint.policy import NO_POLICIES, Policies
from wirelint.policy.disk import RealDisk
from wirelint.policy.file import PolicyError
from wirelint.policy.file import load as load_policies
from wirelint.registry import Registry, RuleError
from wirelint.repair import SAFETIES, Permit
from wirelint.rule import Limits, Rule, Safety


class Option(NamedTuple):
    """`many`: several values may be given, parted by commas or in options of their own."""

    name: str
    default: str
    help: str
    many: bool = False


SELECT = Option("wirelint_select", "", "Run only these rules: names, codes, code prefixes or ALL, with commas.", True)
IGNORE = Option("wirelint_ignore", "", "Leave out these rules: names, codes or code prefixes, with commas.", True)
RULES = Option("wirelint_rules", "", "Folders with rules of your own, besides the shipped ones, with commas.", True)
CAPTURES = Option(
    "wirelint_captures", "captures", "Folder for captures, a new one in it per run; empty writes nothing."
)
REDACT = Option("wirelint_redact", "on", "Take credentials out of captures, findings and logs: on or off.")
MAX_BODY = Option("wirelint_max_body", "32m", "Bodies above this size pass unread: bytes, or a number with k, m or g.")
FIX = Option(
    "wirelint_fix", "off", "Repair traffic while it passes: off, safe, or unsafe for all that can be repaired."
)
FIXABLE = Option(
    "wirelint_fixable", "", "Repair only what these rules find: names, codes, code prefixes or ALL, with commas.", True
)
UNFIXABLE = Option(
    "wirelint_unfixable", "", "Leave what these rules find as it is: names, codes or code prefixes, with commas.", True
)
CLEAN_HISTORY = Option(
    "wirelint_clean_history",
    "off",
    "Repair earlier turns of the assistant too, which costs the prompt cache: on or off.",
)
POLICY = Option("wirelint_policy", "", "File with argument policies (TOML); empty holds calls to none.")
HEADER = Option("wirelint_header", "on", "Say in the header x-wirelint that a reply was repaired: on or off.")
HOLD = Option("wirelint_hold", "30", "Seconds for which text of a stream may be held back for its repair.")

STALL = Option(
    "wirelint_stall", "30", "Seconds without an event after which an open stream is reported (stream-stall)."
)
BURST = Option(
    "wirelint_burst", "8", "Seconds of silence after which a stream must not come all at once (stream-burst)."
)
HANG = Option("wirelint_hang", "60", "Seconds without an answer after which a request is reported (silent-hang).")

KEEP_FLOWS = Option(
    "wirelint_keep_flows",
    "5000",
    "Flows that mitmweb and the console keep of those that pass; the oldest leave them: a number, or all.",
)

OPTIONS = (
    *(SELECT, IGNORE, RULES, CAPTURES, REDACT, MAX_BODY),
    *(FIX, FIXABLE, UNFIXABLE, CLEAN_HISTORY, POLICY, HEADER, HOLD),
    *(STALL, BURST, HANG, KEEP_FLOWS),
)

_NAMES = tuple(option.name for option in OPTIONS)
_SIZE = re.compile(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SMALLEST = 1024
_SECONDS = re.compile(r"(\d{1,4}(?:\.\d{1,3})?) ?s?", re.IGNORECASE)
_LONGEST = 3600.0
_SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class SettingError(ValueError):
    """A value that cannot be used. The text is one line: option, value, cure."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options as they are meant. `max_body` in bytes, `hold` in seconds; `captures` None: nothing is written.

    `keep_flows` None: all of them. `policies`: whether there are any.
    """

    rules: tuple[Rule, ...]
    permit: Permit
    captures: Path | None
    redact: bool
    max_body: int
    header: bool
    hold: float
    keep_flows: int | None
    policies: bool = False


def settle(deferred: dict[str, object]) -> str | None:
    """Makes text of values that wait for the addon to be loaded; a complaint about what cannot be one.

    `deferred` is mitmproxy's own table: strings of `--set` in an object with `val`, or values of config.yaml.
    """
    complaint: str | None = None
    for option in OPTIONS:
        if option.name not in deferred:
            continue
        value = deferred[option.name]
        given = getattr(value, "val", value)
        items = [_text(item) for item in given] if isinstance(given, (list, tuple)) else [_text(given)]
        if len(items) > 1 and not option.many:
            complaint = complaint or f"{option.name} is given {len(items)} times ({', '.join(items)}); give it once"
            items = items[-1:]
        deferred[option.name] = ",".join(items)
    return complaint


def misspelt(deferred: Mapping[str, object]) -> str | None:
    """A complaint about an option that only looks like one of ours."""
    for name in deferred:
        if name.startswith("wirelint_") and name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1, 0.0)
            return f"{name} is no option; did you mean {near[0]}?"
    return None


def read(options: Mapping[str, str | None]) -> Settings:
    """The settings that values by option name amount to. Raises SettingError."""
    values = {option.name: (options.get(option.name) or "").strip() for option in OPTIONS}
    registry = _registry(values)
    limits = Limits(_seconds(values, STALL), _seconds(values, BURST), _seconds(values, HANG))
    selected = registry.select(_items(values[SELECT.name]), _items(values[IGNORE.name]))
    return Settings(
        rules=tuple(rule.within(limits) for rule in selected),
        permit=registry.permit(
            _safety(values[FIX.name]),
            _items(values[FIXABLE.name]),
            _items(values[UNFIXABLE.name]),
            _switch(values, CLEAN_HISTORY),
        ),
        captures=_captures(values[CAPTURES.name]),
        redact=_switch(values, REDACT, "; write on, or off to keep credentials in captures"),
        max_body=_size(values[MAX_BODY.name]),
        header=_switch(values, HEADER),
        hold=_seconds(values, HOLD),
        keep_flows=_count(values[KEEP_FLOWS.name]),
        policies=bool(values[POLICY.name]),
    )


def _registry(values: Mapping[str, str]) -> Registry:
    """The rules there are, once all selectors are known to mean some of them."""
    folders = [Path(item).expanduser() for item in _items(values[RULES.name], os.pathsep)]
    policies = _policies(values[POLICY.name])
    try:
        registry = Registry.load(folders).under(policies)
    except RuleError as error:
        raise SettingError(f"{RULES.name}={values[RULES.name]}: {error}") from error
    for option in (SELECT, IGNORE, FIXABLE, UNFIXABLE):
        try:
            registry.select(_items(values[option.name]))
        except RuleError as error:
            raise SettingError(f"{option.name}={values[option.name]}: {error}") from error
    return registry


def _policies(value: str) -> Policies:
    if not value:
        return NO_POLICIES
    try:
        return load_policies(Path(value).expanduser(), RealDisk())
    except PolicyError as error:
        raise SettingError(f"{POLICY.name}={value}: {error}") from error


def _safety(value: str) -> Safety | None:
    if value.lower() in ("off", "false", "no"):
        return None
    for safety in SAFETIES:
        if value.lower() == safety:
            return safety
    raise SettingError(f"{FIX.name}={value}: not a way to repair; write off, safe or unsafe")


def _captures(value: str) -> Path | None:
    if not value:
        return None
    folder = Path(value).expanduser().absolute()
    existing = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), None)
    if existing is not None and not existing.is_dir():
        raise SettingError(f"{CAPTURES.name}={value}: {existing} is no folder; name another, or nothing to write none")
    # The default must not keep anybody from starting in a folder that is not theirs; the store tells about it.
    if value != CAPTURES.default and existing is not None and not os.access(existing, os.W_OK | os.X_OK):
        raise SettingError(f"{CAPTURES.name}={value}: {existing} cannot be written to; name another, or nothing")
    return folder


def _switch(values: Mapping[str, str], option: Option, cure: str = "; write one of them") -> bool:
    value = values[option.name]
    if value.lower() not in _SWITCH:
        raise SettingError(f"{option.name}={value}: neither on nor off{cure}")
    return _SWITCH[value.lower()]


def _seconds(values: Mapping[str, str], option: Option) -> float:
    value = values[option.name]
    match = _SECONDS.fullmatch(value)
    seconds = float(match[1]) if match is not None else 0.0
    if not 0 < seconds <= _LONGEST:
        raise SettingError(f"{option.name}={value}: not a time up to {_LONGEST:.0f} seconds; write one such as 5 or 30")
    return seconds


def _size(value: str) -> int:
    match = _SIZE.fullmatch(value)
    size = int(match[1]) * _UNITS[match[2].lower()] if match is not None else 0
    if size < _SMALLEST:
        raise SettingError(f"{MAX_BODY.name}={value}: not a size of 1k or more; write one such as 512k, 32m or 1g")
    return size


def _count(value: str) -> int | None:
    if value.lower() == "all":
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and int(value) > 0):
        raise SettingError(f"{KEEP_FLOWS.name}={value}: not a number of flows; write one such as 1000, or all")
    return int(value)


def _items(value: str, *separators: str) -> list[str]:
    for separator in separators:
        value = value.replace(separator, ",")
    return [item.strip() for item in value.split(",") if item.strip()]


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case list() | tuple():
            return ",".join(_text(item) for item in value)
        case _:
            return str(value)
