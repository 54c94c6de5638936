"""Which rules are in force for an exchange, and what may be repaired in it.

Theory of operation. Settings are layers (`layers`): the file, then those of its routes that an exchange matches, then the
options of this run. What they come to is worked out once for each set of routes, and kept. A request's own header takes
rules away after that (`silence`). An exchange's request decides it alone, so a repair, which is made before the reply has
come, and the verdict go by the same rules.

`Scopes` is a sequence of the rules that are in force where no route matches, and can be handed on wherever rules are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import overload
from urllib.parse import urlsplit

from wirelint.fix import NO_FIXES, FixPolicy
from wirelint.model import Exchange
from wirelint.registry import Registry
from wirelint.rule import Rule
from wirelint.settings.layers import Layer, permit_of, rules_of
from wirelint.settings.roster import Asked, Kind, asked, lasted, least_of
from wirelint.settings.silence import silenced, without
from wirelint.text.families import providers_of

_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class Scope:
    """What is in force for an exchange. `rosters` keeps which rules are asked, by channel and kind of exchange.

    Of the rules, `answerers` can answer a request, `menders` repair one, and `rewriters` repair a reply.
    """

    rules: tuple[Rule, ...]
    permit: FixPolicy = NO_FIXES
    rosters: dict[tuple[str, Kind, bool], tuple[Asked, ...]] = field(default_factory=dict, compare=False, repr=False)
    answerers: tuple[Rule, ...] = field(init=False, compare=False, repr=False)
    menders: tuple[Rule, ...] = field(init=False, compare=False, repr=False)
    rewriters: tuple[Rule, ...] = field(init=False, compare=False, repr=False)
    _least: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        kinds = [(rule, type(rule)) for rule in self.rules]
        object.__setattr__(self, "answerers", tuple(rule for rule, kind in kinds if kind.answer is not Rule.answer))
        object.__setattr__(self, "menders", tuple(rule for rule, kind in kinds if kind.mend is not Rule.mend))
        object.__setattr__(self, "rewriters", tuple(rule for rule, kind in kinds if kind.rewriter is not Rule.rewriter))

        object.__setattr__(self, "_least", least_of(self.rules))

    @property
    def repairs(self) -> bool:
        return bool(self.permit and self.rules)

    def asked(self, channel: str, exchange: Exchange) -> tuple[Asked, ...]:
        """The rules that may find something in an exchange of a channel, in their order."""
        key = channel, Kind.of(exchange), lasted(exchange) < self._least
        found = self.rosters.get(key)
        if found is None:
            of_channel = (rule for rule in self.rules if channel in rule.channels)
            found = self.rosters[key] = asked(of_channel, key[1], brief=key[2])
        return found


@dataclass(frozen=True, slots=True)
class Route:
    """Exchanges by globs, in lower case, of all of which one must match; an empty tuple matches anything."""

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


class Scopes(Sequence[Rule]):
    """`file` and `given` are the layers below and above those of `routes`; `known` are all rules there are."""

    def __init__(
        self, known: Registry, file: Layer, routes: tuple[Route, ...] = (), given: Layer | None = None
    ) -> None:
        self._known, self._file, self._routes, self._given = known, file, routes, given or Layer()
        self._made: OrderedDict[tuple[tuple[int, ...], str], Scope] = OrderedDict()
        self.default = self._scope(())

    @classmethod
    def over(cls, rules: Sequence[Rule]) -> Scopes:
        """The same rules for every exchange; scopes as they are."""
        return rules if isinstance(rules, Scopes) else cls(Registry(tuple(rules)), Layer())

    @property
    def everywhere(self) -> tuple[Rule, ...]:
        """The rules that are in force anywhere, one for each code."""
        found = {rule.code: rule for scope in reversed(self._scopes()) for rule in scope.rules}
        return tuple(sorted(found.values(), key=lambda rule: rule.code)) if self._routes else self.default.rules

    @cached_property
    def repair(self) -> bool:
        """Whether anything may be repaired in any exchange."""
        return any(scope.repairs for scope in self._scopes())

    def of(self, exchange: Exchange) -> Scope:
        """What is in force for an exchange, whether its reply has come or not."""
        silent = silenced(exchange.request_headers)
        if not self._routes and not silent:
            return self.default
        numbers = tuple(number for number, route in enumerate(self._routes) if route.matches(exchange))
        return self._scope(numbers, silent)

    def _scopes(self) -> list[Scope]:
        return [self.default, *(self._scope((number,)) for number in range(len(self._routes)))]

    def _scope(self, numbers: tuple[int, ...], silent: str = "") -> Scope:
        key = numbers, silent
        if key not in self._made:
            self._made[key] = self._make(numbers, silent)
            if len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
        return self._made[key]

    def _make(self, numbers: tuple[int, ...], silent: str) -> Scope:
        if silent:
            scope = self._scope(numbers)
            return Scope(without(scope.rules, silent), scope.permit)
        layers = (self._file, *(self._routes[number].layer for number in numbers), self._given)
        return Scope(rules_of(layers, self._known.rules), permit_of(layers, self._known))

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Rule]: ...
    def __getitem__(self, index: int | slice) -> Rule | Sequence[Rule]:
        return self.default.rules[index]

    def __len__(self) -> int:
        return len(self.default.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.default.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scopes) and self._says() == other._says()

    def __hash__(self) -> int:
        return hash(self.default.rules)

    def _says(self) -> tuple[object, ...]:
        return self._known, self._file, self._routes, self._given
