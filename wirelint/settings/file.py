"""`wirelint.toml`, or the table `[tool.wirelint]` of a `pyproject.toml`.

The nearest file counts, searched from the working directory upwards; in one folder `wirelint.toml` comes first. Paths in it
are relative to its folder. Errors are ConfigError: one line with file, key and cure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from wirelint.registry import Registry, RuleError
from wirelint.rule import Limits
from wirelint.settings.scopes import Layer, Route, Scopes
from wirelint.tables import ConfigError, Table, read_toml

__all__ = ["NO_CONFIG", "Config", "ConfigError", "find", "load"]

_OWN = "wirelint.toml"
_PROJECT = "pyproject.toml"
_LAYER = ("select", "extend-select", "ignore", "severity", "fix", "fixable", "unfixable", "clean-history")
_GLOBS = ("host", "path", "model", "provider")
_LIVE = ("captures", "redact", "max-body", "header", "hold")
_TIMES = tuple(one.name for one in fields(Limits))
_KEYS = (*_LAYER, "rules", "policy", "baseline", *_TIMES, *_LIVE, "route")
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class Config:
    """The contents of a file. `live`: values of the proxy's options by name. `source` is empty without a file."""

    source: str = ""
    layer: Layer = field(default_factory=Layer)
    routes: tuple[Route, ...] = ()
    rules: tuple[Path, ...] = ()
    policy: Path | None = None
    baseline: Path | None = None
    times: tuple[tuple[str, float], ...] = ()
    live: tuple[tuple[str, str], ...] = ()

    def check(self, registry: Registry) -> None:
        """Raise ConfigError if a selector matches no rule."""
        for prefix, layer in [
            ("", self.layer),
            *((f"route[{n}].", route.layer) for n, route in enumerate(self.routes, 1)),
        ]:
            try:
                layer.check(registry)
            except RuleError as error:
                table = "tool.wirelint." if self.source.endswith(_PROJECT) else ""
                raise ConfigError(f"{self.source}: {table}{prefix}{error}") from error

    def time(self, name: str, default: float) -> float:
        return dict(self.times).get(name, default)

    def scopes(self, registry: Registry, given: Layer, times: Mapping[str, float] | None = None) -> Scopes:
        """Return the rules in force. `given`, `times`: the layer and the limits of a run's options."""
        limits = Limits(**{**dict(self.times), **(times or {})})
        return Scopes(Registry(tuple(rule.within(limits) for rule in registry.rules)), self.layer, self.routes, given)


NO_CONFIG = Config()


def find(folder: Path) -> Config:
    """Return the configuration for a folder; `NO_CONFIG` if there is none. Raises ConfigError."""
    for place in (folder, *folder.parents):
        for path in (place / _OWN, place / _PROJECT):
            shown = path.name if place == Path.cwd() else str(path)
            if path.is_file() and (found := _read(path, shown)) is not None:
                return found
    return NO_CONFIG


def load(path: Path) -> Config:
    """Return the configuration in a file that the user named. Raises ConfigError."""
    found = _read(path, str(path))
    if found is None:
        raise ConfigError(f"{path}: no table [tool.wirelint] in it; write one, or name another file")
    return found


def _read(path: Path, shown: str) -> Config | None:
    document = read_toml(path, shown, "configuration")
    if path.name != _PROJECT:
        return _config(Table(document, shown), path, shown)
    tool = document.get("tool")
    if not isinstance(tool, dict) or "wirelint" not in tool:
        return None
    return _config(Table(tool["wirelint"], shown, "tool.wirelint"), path, shown)


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
    globs = {name: table.names(name) or () for name in _GLOBS}
    if not any(globs.values()):
        raise table.error("", f"it matches no exchange; add one of {', '.join(_GLOBS)}")
    lowered = {name: found if name == "path" else tuple(map(str.lower, found)) for name, found in globs.items()}
    return Route(_layer(table), **lowered)


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
    """Settings of the proxy, in the form of its options, which check them."""
    captures, size, hold = table.text("captures"), table.scalar("max-body"), table.number("hold", _LONGEST)
    if captures is not None:
        yield "captures", str(_under(folder, captures)) if captures else ""
    if size is not None:
        yield "max_body", str(size)
    if hold is not None:
        yield "hold", f"{hold:g}"
    for name in ("redact", "header"):
        if (value := table.switch(name)) is not None:
            yield name, "on" if value else "off"


def _under(folder: Path, name: str) -> Path:
    return folder / Path(name).expanduser()
