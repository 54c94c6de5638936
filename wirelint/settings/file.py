"""`wirelint.toml`, or the table `[tool.wirelint]` of a `pyproject.toml`: found, read, and complained about in one line.

The nearest file counts, searched from the working directory upwards; where both are in one folder, `wirelint.toml`. Paths
in it are meant from its own folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from wirelint.registry import Registry, RuleError
from wirelint.rule import Limits
from wirelint.settings.layers import Layer
from wirelint.settings.scopes import Route, Scopes
from wirelint.settings.tables import ConfigError, Table

__all__ = ["NO_CONFIG", "Config", "ConfigError", "find", "load"]

_OWN = "wirelint.toml"
_PROJECT = "pyproject.toml"
_LAYER = ("select", "extend-select", "ignore", "severity", "fix", "fixable", "unfixable", "clean-history")
_GLOBS = ("host", "path", "model", "provider")
_LIVE = ("captures", "redact", "max-body", "header", "hold")
_TIMES = ("stall", "burst", "hang")
_KEYS = (*_LAYER, "rules", "policy", "baseline", *_TIMES, *_LIVE, "route")
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class Config:
    """What a file says. `live`: by name, as the values of options of the proxy. `source` is empty when there is no file."""

    source: str = ""
    layer: Layer = field(default_factory=Layer)
    routes: tuple[Route, ...] = ()
    rules: tuple[Path, ...] = ()
    policy: Path | None = None
    baseline: Path | None = None
    times: tuple[tuple[str, float], ...] = ()
    live: tuple[tuple[str, str], ...] = ()

    def check(self, registry: Registry) -> None:
        """Raises ConfigError when a rule is named that there is not."""
        named = [("", self.layer), *((f"route[{n}].", route.layer) for n, route in enumerate(self.routes, 1))]
        for prefix, layer in named:
            try:
                layer.check(registry)
            except RuleError as error:
                table = "tool.wirelint." if self.source.endswith(_PROJECT) else ""
                raise ConfigError(f"{self.source}: {table}{prefix}{error}") from error

    def time(self, name: str, usual: float) -> float:
        return dict(self.times).get(name, usual)

    def scopes(self, registry: Registry, given: Layer, times: Mapping[str, float] | None = None) -> Scopes:
        """The rules in force. `given`, `times`: the layer and the limits of a run's options."""
        own = {field.name: self.time(field.name, getattr(Limits(), field.name)) for field in fields(Limits)}
        limits = Limits(**{**own, **(times or {})})
        return Scopes(Registry(tuple(rule.within(limits) for rule in registry.rules)), self.layer, self.routes, given)


NO_CONFIG = Config()


def find(folder: Path) -> Config:
    """The configuration that holds in a folder; `NO_CONFIG` where there is none. Raises ConfigError."""
    for place in (folder, *folder.parents):
        for path in (place / _OWN, place / _PROJECT):
            shown = path.name if place == Path.cwd() else str(path)
            if path.is_file() and (found := _read(path, shown)) is not None:
                return found
    return NO_CONFIG


def load(path: Path) -> Config:
    """The configuration of a file that the user named. Raises ConfigError."""
    found = _read(path, str(path))
    if found is None:
        raise ConfigError(f"{path}: no table [tool.wirelint] in it; write one, or name another file")
    return found


def _read(path: Path, shown: str) -> Config | None:
    document = _document(path, shown)
    if path.name != _PROJECT:
        return _config(Table(document, shown), path, shown)
    tool = document.get("tool")
    if not isinstance(tool, dict) or "wirelint" not in tool:
        return None
    return _config(Table(tool["wirelint"], shown, "tool.wirelint"), path, shown)


def _document(path: Path, shown: str) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{shown}: {error.strerror or error}; name a configuration that can be read") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{shown}: not TOML: {error}; mend that line") from error


def _config(table: Table, path: Path, shown: str) -> Config:
    table.know(_KEYS)
    folder = path.absolute().parent
    policy, baseline = table.text("policy"), table.text("baseline")
    return Config(
        source=shown,
        layer=_layer(table),
        routes=tuple(_route(one) for one in table.tables("route")),
        rules=tuple(_under(folder, name) for name in table.names("rules") or ()),
        policy=_under(folder, policy) if policy else None,
        baseline=_under(folder, baseline) if baseline else None,
        times=tuple((name, time) for name in _TIMES if (time := table.number(name, _LONGEST)) is not None),
        live=tuple(_live(table, folder)),
    )


def _route(table: Table) -> Route:
    table.know((*_GLOBS, *_LAYER))
    host, path, model, provider = (table.names(name) or () for name in _GLOBS)
    if not (host or path or model or provider):
        raise table.error("", f"it says of no exchange; add one of {', '.join(_GLOBS)}")
    lowered = (tuple(glob.lower() for glob in globs) for globs in (host, model, provider))
    host, model, provider = lowered
    return Route(_layer(table), host, path, model, provider)


def _layer(table: Table) -> Layer:
    return Layer(
        select=table.names("select"),
        extend_select=table.names("extend-select") or (),
        ignore=table.names("ignore") or (),
        severity=table.choices("severity", ("error", "warning", "info", "off")),
        fix=table.choice("fix", ("off", "safe", "unsafe")),
        fixable=table.names("fixable"),
        unfixable=table.names("unfixable"),
        clean_history=table.switch("clean-history"),
    )


def _live(table: Table, folder: Path) -> Iterator[tuple[str, str]]:
    """What only a proxy uses, in the words of its options, which read and check them."""
    captures, size, hold = table.text("captures"), table.scalar("max-body"), table.number("hold", _LONGEST)
    if captures is not None:
        yield "captures", str(_under(folder, captures)) if captures else ""
    if size is not None:
        yield "max_body", str(size)
    if hold is not None:
        yield "hold", f"{hold:g}"
    for name in ("redact", "header"):
        value = table.switch(name)
        if value is not None:
            yield name, "on" if value else "off"


def _under(folder: Path, name: str) -> Path:
    return folder / Path(name).expanduser()
