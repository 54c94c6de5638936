"""Settings: which rules are in force for an exchange, how severe they are, and which fixes are allowed; and their file.

Theory of operation. Settings are layers: the file, then those of its routes that match the exchange, then the options of
the run. A later layer decides on the rules that it names: `select` replaces the selection, `extend_select` and `ignore`
add to it and remove from it. Within a layer the longer selector wins, and `ignore` on a tie. The result is computed
once per set of routes. Then the request header `x-wirelint-ignore: xml-leak,ST604` (or `ALL`) silences rules for its
exchange; a proxy removes the header before it forwards the request, captures keep it. All of this depends on the
request only, so fixes, which run before the reply is complete, and checks use the same rules.

Most exchanges hold no content that most rules need: no call, no history of calls. The requirements of rules
(`Rule.requires_in_…`) are tested once for all rules (`Kind`), and only `Applicable` rules run. Running all checks costs
60 to 160 µs more for a plain exchange.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, overload
from urllib.parse import urlsplit

from wirelint.fix import NO_FIXES, FixPolicy
from wirelint.model import Exchange
from wirelint.registry import Registry, RuleError, rank
from wirelint.rule import Finding, Holding, Limits, MissingInfo, Rule, Safety, Severity, one_line
from wirelint.tables import ConfigError, Table, read_toml
from wirelint.text.families import providers_of

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

Check: TypeAlias = "Callable[[Exchange, Ledger], Iterable[Finding]]"
Grade = Severity | Literal["off"]
Fixing = Safety | Literal["off"]

HEADER = "x-wirelint-ignore"
_MOST_NAMES = 64
"""Most names that are read from the header."""
_MOST_KEPT = 256
_SELECTING = ("select", "extend_select", "ignore", "fixable", "unfixable")


# --- layers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of one origin. None and empty values leave the setting of earlier layers in force."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: tuple[tuple[str, Grade], ...] = ()
    fix: Fixing | None = None
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] | None = None
    clean_history: bool | None = None

    def check(self, registry: Registry) -> None:
        """Raise RuleError, beginning with the key, if a selector matches no rule."""
        named = {name: getattr(self, name) for name in _SELECTING}
        named["severity"] = tuple(selector for selector, _ in self.severity)
        for name, selectors in named.items():
            for selector in selectors or ():
                try:
                    registry.find(selector)
                except RuleError as error:
                    raise RuleError(f"{name.replace('_', '-')}: {error}") from error

    def selects(self, rule: Rule, before: bool) -> bool:
        """Return True if a rule is in force after this layer. `before`: whether it was before."""
        if self.grade(rule) == "off":
            return False
        ignored = rank(rule, self.ignore)
        if self.select is not None:
            return rank(rule, (*self.select, *self.extend_select)) > ignored
        selected = rank(rule, self.extend_select)
        return before if selected == ignored == 0 else selected > ignored

    def grade(self, rule: Rule) -> Grade | None:
        """Return the severity that this layer gives to a rule: that of the longest selector."""
        selector, grade = max(self.severity, key=lambda one: rank(rule, one[:1]), default=("", None))
        return grade if rank(rule, (selector,)) else None


def _rules_of(layers: Sequence[Layer], known: Iterable[Rule]) -> Iterator[Rule]:
    for rule in known:
        selected, severity = True, None
        for layer in layers:
            selected = layer.selects(rule, selected)
            if (grade := layer.grade(rule)) is not None and grade != "off":
                severity = grade
        if selected:
            yield rule.as_severe_as(severity) if severity is not None else rule


def _fixes_of(layers: Sequence[Layer], known: Registry) -> FixPolicy:
    def last(name: str) -> object:
        values = (getattr(layer, name) for layer in reversed(layers))
        return next((value for value in values if value is not None), None)

    fix = last("fix")
    if fix is None or fix == "off":
        return NO_FIXES
    fixable, unfixable, clean = last("fixable") or (), last("unfixable") or (), last("clean_history") is not False
    return known.permit(fix, fixable, unfixable, clean)  # type: ignore[arg-type]


# --- the request header -----------------------------------------------------------------------------------------------


def unknown(value: str, known: Registry) -> list[str]:
    """Return one line for each name in the header that matches no rule."""
    lines = []
    for name in _names_in(value):
        try:
            known.find(name)
        except RuleError as error:
            lines.append(one_line(f"{HEADER}: {error}"))
    return lines


def _names_in(value: str) -> tuple[str, ...]:
    names = (name.strip() for name in value.split(",", _MOST_NAMES)[:_MOST_NAMES])
    return tuple(dict.fromkeys("ALL" if name.upper() == "ALL" else name for name in names if name))


# --- applicable rules -------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """The properties of an exchange that decide which checks can have findings."""

    open: bool
    missing: frozenset[MissingInfo]
    request: bool
    reply: bool
    holds: frozenset[Holding]

    @classmethod
    def of(cls, exchange: Exchange) -> Kind:
        request, reply = exchange.request, exchange.reply
        holds: list[Holding] = []
        if request is not None:
            holds += ["history"] if request.has_history else []
            holds += ["tools"] if request.tools else []
        if reply is not None:
            holds += ["calls"] if any(choice.calls for choice in reply.choices) else []
            holds += ["stream"] if reply.streamed else []
            holds += [] if reply.is_plain else ["more"]
        read = request is not None and "request" not in exchange.missing
        return cls(exchange.open, exchange.missing, read, reply is not None, frozenset(holds))


Applicable: TypeAlias = tuple[Rule, tuple[Check, ...]]
"""A rule and those of its checks that may find a fault in an exchange."""


def checks_of(rule: Rule, kind: Kind) -> tuple[Check, ...]:
    """Return the checks of a rule that can have findings; for an open exchange only `check_course`."""
    if rule.needs & kind.missing:
        return ()
    checks: list[Check] = [rule.check_course] if rule.is_timed else []
    if kind.open:
        return tuple(checks)
    if kind.request and rule.requires_in_request <= kind.holds and type(rule).check_request is not Rule.check_request:
        checks.append(rule.check_request)
    if kind.reply and rule.requires_in_reply <= kind.holds and type(rule).check_reply is not Rule.check_reply:
        checks.append(rule.check_reply)
    return tuple(checks)


# --- scopes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """The rules and the fixes in force for an exchange."""

    rules: tuple[Rule, ...]
    permit: FixPolicy = NO_FIXES
    _applicable: dict[tuple[str, Kind], tuple[Applicable, ...]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    @property
    def repairs(self) -> bool:
        return bool(self.permit and self.rules)

    def applicable(self, channel: str, exchange: Exchange) -> tuple[Applicable, ...]:
        """Return the rules that can have findings in an exchange of a channel, in order."""
        key = channel, Kind.of(exchange)
        if key not in self._applicable:
            checks = ((rule, checks_of(rule, key[1])) for rule in self.rules if channel in rule.channels)
            self._applicable[key] = tuple((rule, some) for rule, some in checks if some)
        return self._applicable[key]


@dataclass(frozen=True, slots=True)
class Route:
    """A layer for exchanges that match globs in lower case: one of each kind that has some."""

    layer: Layer
    host: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()

    def matches(self, exchange: Exchange) -> bool:
        try:
            parts = urlsplit(exchange.url)
            host, port = (parts.hostname or "").lower(), parts.port
        except ValueError:
            return False
        request = exchange.request
        model = exchange.model if request is None else request.model
        return (
            _match(self.host, (host, f"{host}:{port}"))
            and _match(self.path, (parts.path,))
            and _match(self.model, (model.lower(),))
            and _match(self.provider, providers_of(exchange.url, request.body if request is not None else None))
        )


def _match(globs: tuple[str, ...], values: tuple[str, ...]) -> bool:
    return not globs or any(fnmatchcase(value, glob) for glob in globs for value in values)


@dataclass(frozen=True)
class Scopes(Sequence[Rule]):
    """The scopes of all exchanges. As a sequence: the rules in force where no route matches.

    `file` and `given` are the layers below and above those of `routes`; `known` are all rules.
    """

    known: Registry
    file: Layer = Layer()
    routes: tuple[Route, ...] = ()
    given: Layer = Layer()

    @classmethod
    def over(cls, rules: Sequence[Rule]) -> Scopes:
        """Return scopes with these rules for every exchange; scopes are returned unchanged."""
        return rules if isinstance(rules, Scopes) else cls(Registry(tuple(rules)))

    @cached_property
    def default(self) -> Scope:
        return self._scope((), "")

    @cached_property
    def timed(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.everywhere if rule.is_timed)

    @property
    def everywhere(self) -> tuple[Rule, ...]:
        """Return the rules in force for any exchange, one per code."""
        found = {rule.code: rule for scope in reversed(self._scopes()) for rule in scope.rules}
        return tuple(sorted(found.values(), key=lambda rule: rule.code)) if self.routes else self.default.rules

    @cached_property
    def repair(self) -> bool:
        """Return True if fixes are allowed for any exchange."""
        return any(scope.repairs for scope in self._scopes())

    def of(self, exchange: Exchange) -> Scope:
        """Return the scope of an exchange, with or without its reply."""
        silent = ",".join(_names_in(exchange.request_headers.get(HEADER, "")))
        if not self.routes and not silent:
            return self.default
        return self._scope(tuple(number for number, route in enumerate(self.routes) if route.matches(exchange)), silent)

    def _scopes(self) -> list[Scope]:
        return [self.default, *(self._scope((number,), "") for number in range(len(self.routes)))]

    @cached_property
    def _scope(self) -> Callable[[tuple[int, ...], str], Scope]:
        return lru_cache(_MOST_KEPT)(self._make)

    def _make(self, numbers: tuple[int, ...], silent: str) -> Scope:
        if silent:
            scope, names = self._scope(numbers, ""), _names_in(silent)
            return Scope(tuple(rule for rule in scope.rules if not rank(rule, names)), scope.permit)
        layers = (self.file, *(self.routes[number].layer for number in numbers), self.given)
        return Scope(tuple(_rules_of(layers, self.known.rules)), _fixes_of(layers, self.known))

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Rule]: ...
    def __getitem__(self, index: int | slice) -> Rule | Sequence[Rule]:
        return self.default.rules[index]

    def __len__(self) -> int:
        return len(self.default.rules)


# The file: `wirelint.toml`, or the table `[tool.wirelint]` of a `pyproject.toml`.
#
# The nearest file counts, searched from the working directory upwards; in one folder `wirelint.toml` comes first. Paths in
# it are relative to its folder. Errors are ConfigError: one line with file, key and cure.

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
    layer: Layer = Layer()
    routes: tuple[Route, ...] = ()
    rules: tuple[Path, ...] = ()
    policy: Path | None = None
    baseline: Path | None = None
    times: tuple[tuple[str, float], ...] = ()
    live: tuple[tuple[str, str], ...] = ()

    def check(self, registry: Registry) -> None:
        """Raise ConfigError if a selector matches no rule."""
        routes = ((f"route[{n}].", route.layer) for n, route in enumerate(self.routes, 1))
        for prefix, layer in [("", self.layer), *routes]:
            try:
                layer.check(registry)
            except RuleError as error:
                table = "tool.wirelint." if self.source.endswith(_PROJECT) else ""
                raise ConfigError(f"{self.source}: {table}{prefix}{error}") from error

    def scopes(self, registry: Registry, given: Layer, times: Mapping[str, float] | None = None) -> Scopes:
        """Return the rules in force. `given`, `times`: the layer and the limits of a run's options."""
        limits = Limits(**{**dict(self.times), **(times or {})})
        return Scopes(Registry(tuple(rule.within(limits) for rule in registry.rules)), self.layer, self.routes, given)


NO_CONFIG = Config()


def candidates(folder: Path) -> tuple[Path, ...]:
    """Return the paths at which the configuration for a folder may be; the first that has one counts."""
    return tuple(place / name for place in (folder, *folder.parents) for name in (_OWN, _PROJECT))


def find(folder: Path) -> Config:
    """Return the configuration for a folder; `NO_CONFIG` if there is none. Raises ConfigError."""
    for path in candidates(folder):
        shown = path.name if path.parent == Path.cwd() else str(path)
        if path.is_file() and (found := _read(path, shown)) is not None:
            return found
    return NO_CONFIG


def load(path: Path) -> Config:
    """Return the configuration in a file that the user named. Raises ConfigError."""
    found = _read(path, str(path))
    if found is None:
        raise ConfigError(f"{path}: no table [tool.wirelint] in it; write one, or name another file")
    return found


def load_rules(folders: Sequence[Path] = (), policy: Path | None = None, *, outlines: bool = False) -> Registry:
    """Return the registry, with the argument policies of a file in force. Raises RuleError and ConfigError.

    `outlines`: see `Registry.load`.
    """
    registry = Registry.load(folders, outlines=outlines)
    if policy is None:
        return registry
    from wirelint.policy import load as load_policies  # 0.05 s, which few runs need

    return registry.under(load_policies(policy))


def file_states(files: Iterable[str | Path]) -> dict[str, tuple[int, int, int]]:
    """Return size, time of change and inode of each file that exists, to notice changes."""
    found = {}
    for file in files:
        with contextlib.suppress(OSError):
            state = os.stat(file)
            found[str(file)] = state.st_size, state.st_mtime_ns, state.st_ino
    return found


def split(texts: Iterable[str], separator: str = ",") -> tuple[str, ...]:
    """Return the items of texts, each of which may hold several."""
    return tuple(item.strip() for text in texts for item in text.replace(separator, ",").split(",") if item.strip())


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
    """Yield settings of the proxy as option names and texts. The proxy's options check the texts."""
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
