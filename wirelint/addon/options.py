"""Options of the addon: declared as text, parsed and validated here.

mitmproxy leaves an addon out, silently, for a bad number or a repeated value, and accepts misspelt names. So every
option is text, is parsed in `configure`, and each error is one line with option, value and cure."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mitmproxy import ctx, exceptions, optmanager

from wirelint.addon.log import logger
from wirelint.engine import Session
from wirelint.fix import SAFETIES, FixPolicy
from wirelint.policy import NO_POLICIES
from wirelint.policy.checks import RealDisk
from wirelint.policy.file import load as load_policies
from wirelint.registry import Registry, RuleError
from wirelint.rule import Limits, Safety
from wirelint.settings.file import NO_CONFIG, Config, ConfigError
from wirelint.settings.file import find as find_config
from wirelint.settings.file import load as load_config
from wirelint.settings.scopes import Layer, Scope, Scopes


class Option(NamedTuple):
    """Option of mitmproxy. `many`: several values, comma-separated or repeated."""

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
    "on",
    "With unsafe fixes, remove leaked markup from earlier turns of the assistant: on or off.",
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

CONFIG = Option(
    "wirelint_config",
    "",
    "Configuration file; empty takes the nearest wirelint.toml or pyproject.toml, off takes none.",
)
MITM_COMPAT = Option(
    "wirelint_mitm_compat",
    "on",
    "Use internals of mitmproxy to send held text in time, when the upstream dies, and on WebSockets: on or off.",
)
KEEP_FLOWS = Option(
    "wirelint_keep_flows",
    "5000",
    "Flows that mitmweb and the console keep of those that pass; the oldest leave them: a number, or all.",
)

OPTIONS = (
    *(SELECT, IGNORE, RULES, CAPTURES, REDACT, MAX_BODY),
    *(FIX, FIXABLE, UNFIXABLE, CLEAN_HISTORY, POLICY, HEADER, HOLD),
    *(STALL, BURST, HANG, CONFIG, MITM_COMPAT, KEEP_FLOWS),
)

_NAMES = tuple(option.name for option in OPTIONS)
_SIZE = re.compile(r"(\d{1,12})\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SMALLEST = 1024
_SECONDS = re.compile(r"(\d{1,4}(?:\.\d{1,3})?) ?s?", re.IGNORECASE)
_LONGEST = 3600.0
_SWITCH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class SettingError(ValueError):
    """Unusable value. One line: option, value, cure."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Parsed options. `max_body` in bytes, `hold` in seconds; `captures` None: nothing is written; `keep_flows` None:
    all.

    `rules`: the rules and fixes of each exchange. `known`: all rules. `policies`: whether there are any.
    """

    rules: Scopes
    known: Registry
    captures: Path | None
    redact: bool
    max_body: int
    header: bool
    hold: float
    mitm_compat: bool
    keep_flows: int | None
    policies: bool = False
    """Of the replies that were repaired, or could have been, since this is in force: streams, and whole ones."""

    @property
    def permit(self) -> FixPolicy:
        """Return the fixes allowed where no route matches."""
        return self.rules.default.permit

    def scope_of(self, session: Session | None) -> Scope:
        """Return the scope of an exchange whose request has arrived. Raises parse errors."""
        return self.rules.of(session.head()) if session is not None else self.rules.default

    @property
    def repairs(self) -> bool:
        """Return True if any exchange may be fixed."""
        return self.rules.repair


def settle(deferred: dict[str, object]) -> str | None:
    """Convert deferred values to text; return an error for those that cannot be. `deferred`: mitmproxy's table
    (`--set`, config.yaml)."""
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


def refuse(complaint: str, *, running: bool) -> None:
    """Stop a start in one line; in a running proxy keep the old value and raise OptionsError."""
    if not running and ctx.master.addons.get("errorcheck") is not None:  # type: ignore[no-untyped-call]
        # An error that is logged while mitmproxy starts makes it stop with status 1. An exception would do so too, under
        # a traceback.
        logger.error("wirelint: %s", complaint)
        return
    raise exceptions.OptionsError(complaint)  # type: ignore[no-untyped-call]


def complaint_about(deferred: Mapping[str, object]) -> str | None:
    """Return what is wrong with our deferred options; None if nothing is."""
    copy = dict(deferred)
    if (complaint := settle(copy) or misspelt(copy)) is not None:
        return complaint
    named = {option.name for option in OPTIONS if option.name in copy}
    try:
        read({option.name: str(copy.get(option.name, option.default)) for option in OPTIONS}, named)
    except SettingError as error:
        return str(error)
    return None


def misspelt(deferred: Mapping[str, object]) -> str | None:
    """Return an error for a misspelt option."""
    for name in deferred:
        if name.startswith("wirelint_") and name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1, 0.0)
            return f"{name} is no option; did you mean {near[0]}?"
    return None


def read_from(table: object) -> Settings:
    """Parse mitmproxy's options. Raises SettingError."""
    return read({option.name: getattr(table, option.name) for option in OPTIONS}, given(table))


def given(options: object) -> set[str]:
    """Return the names of our options that were set."""
    table: Mapping[str, object] = getattr(options, "_options", {})
    found = ((option.name, table.get(option.name)) for option in OPTIONS)
    return {name for name, entry in found if getattr(entry, "value", optmanager.unset) is not optmanager.unset}


def read(options: Mapping[str, str | None], given: Collection[str] | None = None) -> Settings:
    """Parse values by option name. `given`: those set by the user, which win over the configuration; None: all. Raises
    SettingError."""
    values = {option.name: (options.get(option.name) or "").strip() for option in OPTIONS}
    given = _NAMES if given is None else given
    config = _config(values[CONFIG.name])
    selection = _selection(values, given)
    if config.policy is not None and POLICY.name not in given:
        values[POLICY.name] = str(config.policy)
    values |= {name: value for key, value in config.live if (name := f"wirelint_{key}") not in given}
    known = _registry(values, config, given, _limits(values, config, given))
    _check(selection, known, values)
    try:
        config.check(known)
        return _settings(values, known, Scopes(known, config.layer, config.routes, selection))
    except ConfigError as error:
        raise SettingError(str(error)) from error
    except SettingError as error:
        raise _blamed(error, config) from error


def _settings(values: Mapping[str, str], known: Registry, scopes: Scopes) -> Settings:
    return Settings(
        rules=scopes,
        known=known,
        captures=_captures(values[CAPTURES.name]),
        redact=_switch(values, REDACT, "; write on, or off to keep credentials in captures"),
        max_body=_size(values[MAX_BODY.name]),
        header=_switch(values, HEADER),
        hold=_seconds(values, HOLD),
        mitm_compat=_switch(values, MITM_COMPAT),
        keep_flows=_count(values[KEEP_FLOWS.name]),
        policies=bool(values[POLICY.name]),
    )


def _config(value: str) -> Config:
    """Return the configuration: the named file, none for `off`, else the nearest."""
    try:
        if value.lower() in ("off", "none"):
            return NO_CONFIG
        return load_config(Path(value).expanduser()) if value else find_config(Path.cwd())
    except ConfigError as error:
        raise SettingError(f"{CONFIG.name}={value}: {error}" if value else str(error)) from error


def _selection(values: Mapping[str, str], given: Collection[str]) -> Layer:
    """Return the rule selection of the options; defaults leave it to the configuration."""

    def items(option: Option) -> tuple[str, ...]:
        return tuple(_items(values[option.name]))

    fix, clean = _safety(values[FIX.name]), _switch(values, CLEAN_HISTORY)
    return Layer(
        select=items(SELECT) or None,
        ignore=items(IGNORE),
        fix=(fix or "off") if FIX.name in given else None,
        fixable=items(FIXABLE) or None,
        unfixable=items(UNFIXABLE) or None,
        clean_history=clean if CLEAN_HISTORY.name in given else None,
    )


def _limits(values: Mapping[str, str], config: Config, given: Collection[str]) -> Limits:
    times = (
        (_seconds(values, option), key, option.name)
        for key, option in (("stall", STALL), ("burst", BURST), ("hang", HANG))
    )
    return Limits(*(time if name in given else config.time(key, time) for time, key, name in times))


def _blamed(error: SettingError, config: Config) -> SettingError:
    """Return the error with the configuration file named, if the value is from it."""
    for key, value in config.live:
        said = f"wirelint_{key}={value}: "
        if str(error).startswith(said):
            return SettingError(f"{config.source}: {key.replace('_', '-')}: {str(error)[len(said) :]}")
    return error


def _check(selection: Layer, known: Registry, values: Mapping[str, str]) -> None:
    """Raise SettingError for a selector that matches no rule."""
    try:
        selection.check(known)
    except RuleError as error:
        key, _, said = str(error).partition(": ")
        name = f"wirelint_{key.replace('-', '_')}"
        raise SettingError(f"{name}={values[name]}: {said}") from error


def _registry(values: Mapping[str, str], config: Config, given: Collection[str], limits: Limits) -> Registry:
    """Return all rules."""
    folders = [Path(item).expanduser() for item in _items(values[RULES.name], os.pathsep)]
    value = values[POLICY.name]
    try:
        policies = load_policies(Path(value).expanduser(), RealDisk()) if value else NO_POLICIES
        registry = Registry.load([*config.rules, *folders]).under(policies)
    except RuleError as error:
        raise SettingError(f"{RULES.name}={values[RULES.name]}: {error}") from error
    except ConfigError as error:
        source = f"{POLICY.name}={value}" if POLICY.name in given else f"{config.source}: policy"
        raise SettingError(f"{source}: {error}") from error
    return Registry(tuple(rule.within(limits) for rule in registry.rules))


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
