"""Options of the addon, declared as text, parsed and validated here; and settings that follow their files.

For a bad number or a repeated value mitmproxy silently leaves the addon out, and it accepts misspelt names. So every
option is text and is parsed in `configure`; each error is one line with option, value and cure.

While the proxy runs, a task compares sizes and times of the files (the configuration, the argument policies, the user's
own rules) once per second. After a change it waits until two looks are equal, because an editor may write a file in
several steps, and reads the settings again. Files are looked at and read in a thread, so that a slow disk delays no
traffic. With an unusable file the earlier settings stay in force; one line of the log has file, place and cure, and the
next change is read again. mitmproxy itself watches only the script of the addon, and begins with a new addon when that
changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from mitmproxy import ctx, exceptions, optmanager

from wirelint.addon.idle_queue import running_loop
from wirelint.addon.log import Failures, logger, say
from wirelint.capture.storage import StorageError, check_target, is_url, place_of
from wirelint.fix import SAFETIES
from wirelint.registry import Registry, RuleError
from wirelint.rule import Safety
from wirelint.settings import NO_CONFIG, Config, Layer, Scopes, candidates, file_states, load_rules, split
from wirelint.settings import find as find_config
from wirelint.settings import load as load_config
from wirelint.tables import ConfigError, hint
from wirelint.text.escaping import listed


class Option(NamedTuple):
    """Option of mitmproxy. `many`: several values, comma-separated or repeated."""

    name: str
    default: str
    help: str
    many: bool = False


_PREFIX = "wirelint_"
OPTIONS = tuple(
    Option(f"{_PREFIX}{key}", **row)
    for key, row in tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8")).items()
)
_NAMES = tuple(option.name for option in OPTIONS)
_DEFAULTS = {option.name.removeprefix(_PREFIX): option.default for option in OPTIONS}
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
    """Parsed options. `max_body` in bytes, `hold` and `ship_every` in seconds; `captures` None: nothing is written; `ship`
    empty: nothing is uploaded; `keep_flows` None: all. `dashboard` is a port, 0 for a free one; None: no dashboard. `otlp`
    is the base URL of a collector, without a slash at its end; empty: no telemetry.

    `rules`: the rules and fixes of each exchange. `known`: all rules. `policies`: True if there are argument policies.
    """

    rules: Scopes
    known: Registry
    captures: Path | None
    ship: str
    ship_every: float
    redact: bool
    max_body: int
    header: bool
    hold: float
    mitm_compat: bool
    keep_flows: int | None
    dashboard: int | None = None
    otlp: str = ""
    otlp_content: bool = False
    policies: bool = False


def settle(deferred: dict[str, object]) -> str | None:
    """Convert wirelint's values in mitmproxy's table of deferred options to text; return an error in them."""
    complaint: str | None = None
    for option in OPTIONS:
        if option.name not in deferred:
            continue
        value = deferred[option.name]
        given = getattr(value, "val", value)
        items = [_text(item) for item in (given if isinstance(given, (list, tuple)) else [given])]
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
    for name in deferred:
        if name.startswith("wirelint_") and name not in _NAMES:
            return f"unknown option {name}; {hint(name, _NAMES, cutoff=0.0)}"
    return None


def values_in(table: object) -> tuple[dict[str, str | None], set[str]]:
    """Return the values of wirelint's options in mitmproxy's, by name, and the names of those that were set."""
    entries: Mapping[str, object] = getattr(table, "_options", {})
    given = {name for name in _NAMES if getattr(entries.get(name), "value", optmanager.unset) is not optmanager.unset}
    return {name: getattr(table, name) for name in _NAMES}, given


def read(options: Mapping[str, str | None], given: Collection[str] | None = None) -> Settings:
    """Parse values by option name. `given`: those set by the user, which win over the configuration; None: all. Raises
    SettingError."""
    values = {key: (options.get(_PREFIX + key) or "").strip() for key in _DEFAULTS}
    given = {name.removeprefix(_PREFIX) for name in (_NAMES if given is None else given)}
    config = _config(values["config"])
    fix, clean = _safety(values["fix"]), _switch(values, "clean_history")
    selection = Layer(  # defaults leave it to the configuration
        select=split([values["select"]]) or None,
        ignore=split([values["ignore"]]),
        fix=(fix or "off") if "fix" in given else None,
        fixable=split([values["fixable"]]) or None,
        unfixable=split([values["unfixable"]]) or None,
        clean_history=clean if "clean_history" in given else None,
    )
    if config.policy is not None and "policy" not in given:
        values["policy"] = str(config.policy)
    values |= {key: value for key, value in config.live if key not in given}
    times: dict[str, float] = {key: _seconds(values, key) for key in ("stall", "burst", "hang") if key in given}
    known = _registry(values, config, given)
    try:
        selection.check(known)
    except RuleError as error:
        key, _, said = str(error).partition(": ")
        key = key.replace("-", "_")
        raise SettingError(f"wirelint_{key}={values[key]}: {said}") from error
    try:
        config.check(known)
        scopes = config.scopes(known, selection, times)
    except ConfigError as error:
        raise SettingError(str(error)) from error
    try:
        return _settings(values, known, scopes)
    except SettingError as error:
        for key, value in config.live:
            said = f"wirelint_{key}={value}: "
            if str(error).startswith(said):
                where = f"{config.source}: {key.replace('_', '-')}"
                raise SettingError(f"{where}: {str(error)[len(said) :]}") from error
        raise


def _settings(values: Mapping[str, str], known: Registry, scopes: Scopes) -> Settings:
    return Settings(
        rules=scopes,
        known=known,
        captures=_captures(values["captures"]),
        ship=_storage(values["ship"], values["captures"]),
        ship_every=_seconds(values, "ship_every"),
        redact=_switch(values, "redact", "; write on, or off to keep credentials in captures"),
        max_body=_size(values["max_body"]),
        header=_switch(values, "header"),
        hold=_seconds(values, "hold"),
        mitm_compat=_switch(values, "mitm_compat"),
        keep_flows=_count(values["keep_flows"]),
        dashboard=_port(values["dashboard"]),
        otlp=_collector(values["otlp"]),
        otlp_content=_switch(values, "otlp_content"),
        policies=bool(values["policy"]),
    )


def _sources(options: Mapping[str, str | None], given: Collection[str]) -> tuple[list[Path], list[Path]]:
    """Return the files that `read` reads for these values, which need not exist, and the folders of rules. An unusable
    configuration names no further files."""
    value, policy = ((options.get(_PREFIX + key) or "").strip() for key in ("config", "policy"))
    config = NO_CONFIG
    with contextlib.suppress(SettingError):
        config = _config(value)
    files = [Path(value).expanduser()] if value else [*candidates(Path.cwd())]
    if policy:
        files.append(Path(policy).expanduser())
    elif config.policy is not None and f"{_PREFIX}policy" not in given:
        files.append(config.policy)
    return files, [*config.rules, *_folders(options.get(f"{_PREFIX}rules") or "")]


def _folders(value: str) -> list[Path]:
    return [Path(item).expanduser() for item in split([value], os.pathsep)]


def _config(value: str) -> Config:
    """Return the configuration: the named file, none for `off`, else the nearest."""
    try:
        if value.lower() in ("off", "none"):
            return NO_CONFIG
        return load_config(Path(value).expanduser()) if value else find_config(Path.cwd())
    except ConfigError as error:
        raise SettingError(f"wirelint_config={value}: {error}" if value else str(error)) from error


def _registry(values: Mapping[str, str], config: Config, given: Collection[str]) -> Registry:
    value = values["policy"]
    try:
        return load_rules([*config.rules, *_folders(values["rules"])], Path(value).expanduser() if value else None)
    except RuleError as error:
        raise SettingError(f"wirelint_rules={values['rules']}: {error}" if values["rules"] else str(error)) from error
    except ConfigError as error:
        source = f"wirelint_policy={value}" if "policy" in given else f"{config.source}: policy"
        raise SettingError(f"{source}: {error}") from error


def _safety(value: str) -> Safety | None:
    safety = next((safety for safety in SAFETIES if value.lower() == safety), None)
    if safety is None and value.lower() not in ("off", "false", "no"):
        raise SettingError(f"wirelint_fix={value}: unknown level; write off, safe or unsafe")
    return safety


def _captures(value: str) -> Path | None:
    if not value:
        return None
    folder = Path(value).expanduser().absolute()
    existing = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), None)
    if existing is not None and not existing.is_dir():
        raise SettingError(
            f"wirelint_captures={value}: {existing} is not a folder; name another, or leave it empty to write no captures"
        )
    # The default folder must not prevent a start in a folder of someone else; the store reports it.
    if value != _DEFAULTS["captures"] and existing is not None and not os.access(existing, os.W_OK | os.X_OK):
        raise SettingError(f"wirelint_captures={value}: {existing} cannot be written to; name another, or nothing")
    return folder


def _storage(value: str, captures: str) -> str:
    """Return the URL for captures, without its credentials where it is shown; empty for none."""
    if not value:
        return ""
    url = place_of(value)
    if not is_url(value):
        raise SettingError(f"wirelint_ship={value}: not a URL; write one such as s3://bucket/captures")
    if not captures:
        raise SettingError(f"wirelint_ship={url}: no captures are written; set wirelint_captures to a folder")
    try:
        check_target(url)
    except StorageError as error:
        raise SettingError(f"wirelint_ship={url}: {error.message}; {error.cure}") from error
    return url


def _switch(values: Mapping[str, str], key: str, cure: str = "; write one of them") -> bool:
    value = values[key]
    if value.lower() not in _SWITCH:
        raise SettingError(f"wirelint_{key}={value}: neither on nor off{cure}")
    return _SWITCH[value.lower()]


def _seconds(values: Mapping[str, str], key: str) -> float:
    value = values[key]
    match = _SECONDS.fullmatch(value)
    seconds = float(match[1]) if match is not None else 0.0
    if not 0 < seconds <= _LONGEST:
        raise SettingError(
            f"wirelint_{key}={value}: not a time up to {_LONGEST:.0f} seconds; write one such as 5 or 30"
        )
    return seconds


def _size(value: str) -> int:
    match = _SIZE.fullmatch(value)
    size = int(match[1]) * _UNITS[match[2].lower()] if match is not None else 0
    if size < _SMALLEST:
        raise SettingError(f"wirelint_max_body={value}: not a size of 1k or more; write one such as 512k, 32m or 1g")
    return size


def _count(value: str) -> int | None:
    if value.lower() == "all":
        return None
    return _number("keep_flows", value, 10**9 - 1, "a number of flows; write one such as 1000, or all")


def _port(value: str) -> int | None:
    if (switch := _SWITCH.get(value.lower() or "off")) is not None:
        return 0 if switch else None
    return _number("dashboard", value, 65535, "a port; write one from 1 to 65535, on or off")


def _number(key: str, value: str, most: int, wanted: str) -> int:
    digits = len(str(most))
    if not (value.isascii() and value.isdigit() and len(value) <= digits and 0 < int(value) <= most):
        raise SettingError(f"wirelint_{key}={value}: not {wanted}")
    return int(value)


def _collector(value: str) -> str:
    """Return the base URL of a collector; empty for none."""
    if not value:
        return ""
    base = value.rstrip("/").removesuffix("/v1/traces").removesuffix("/v1/metrics")
    try:
        parts = urlsplit(base)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or not base.isprintable() or any(mark in base for mark in " ?#@"):
        shown = re.sub(r"//[^/]*@", "//…@", value)
        raise SettingError(
            f"wirelint_otlp={shown}: not the base URL of a collector; write one such as http://127.0.0.1:4318, and "
            "credentials into OTEL_EXPORTER_OTLP_HEADERS"
        )
    return base


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


# --- changes of the files --------------------------------------------------------------------------------------------

_PAUSE = 1.0
"""Seconds between two looks: the interval of mitmproxy for its scripts."""
_REST = 0.2
"""Seconds without a further change after which a file counts as written."""
_MOST_NAMED = 3
_States = Mapping[str, tuple[int, int, int]]


class Reload:
    """Reader of the settings, at the start and after each change of a file. `apply` gets those of a change, and
    returns False if they are in force already.

    `complaint`: the error in the last change of the files; empty if that change is in force.
    """

    def __init__(self, apply: Callable[[Settings], bool], failures: Failures) -> None:
        self._apply, self._failures = apply, failures
        self._task: asyncio.Task[None] | None = None
        self._files: list[Path] = []
        self._folders: list[Path] = []
        self._seen: _States = {}
        self.complaint = ""

    def read(self) -> Settings:
        """Read the settings, and note the state of their files before. Raises SettingError."""
        values, given = values_in(ctx.options)
        self._files, self._folders = _sources(values, given)
        self._seen = self._states()
        return read(values, given)

    def _states(self) -> _States:
        rules = (file for folder in self._folders for end in ("py", "json") for file in folder.glob(f"*.{end}"))
        return file_states((*self._files, *rules))

    def start(self) -> None:
        """Watch the files from now on. Without an event loop, nothing is watched."""
        loop = running_loop()
        self._task = loop.create_task(self._watch()) if loop is not None else None

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            with self._failures.caught("watching the files of the settings"):
                before, now = self._seen, await self._look()
                if now != before:
                    while (later := await self._look(_REST)) != now:
                        now = later
                    await self._read_again(before, now)

    async def _look(self, pause: float = 0.0) -> _States:
        await asyncio.sleep(pause)
        return await asyncio.to_thread(self._states)

    async def _read_again(self, before: _States, now: _States) -> None:
        asked, here = values_in(ctx.options), Path.cwd()
        files = [Path(name) for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        shown = [str(file.relative_to(here) if file.is_relative_to(here) else file) for file in files]
        try:
            settings = await asyncio.to_thread(self.read)
        except SettingError as error:
            self.complaint = f"{error}; the settings from before this change stay in force"
            say(f"wirelint: {self.complaint}", logging.WARNING)
            return
        if values_in(ctx.options) != asked:  # options were set meanwhile, and read with the files
            return
        was_broken, self.complaint = bool(self.complaint), ""
        if self._apply(settings) or was_broken:
            say(f"wirelint: {listed(shown, _MOST_NAMED)} changed; exchanges that begin now follow the change")
