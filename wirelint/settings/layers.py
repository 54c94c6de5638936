"""What a user wants, layer over layer: the file, those of its routes that match, the options of this run.

A later layer has the last word on the rules that it speaks of. `select` in it says all; `extend_select` and `ignore` add
and take away. Within a layer the longer selector wins, and leaving out on a tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from wirelint.fix import NO_FIXES, FixPolicy
from wirelint.registry import Registry, RuleError, rank
from wirelint.rule import Rule, Safety, Severity

Grade = Severity | Literal["off"]
Fixing = Safety | Literal["off"]


@dataclass(frozen=True, slots=True)
class Layer:
    """What is None, or empty where there is no None, leaves everything as the layers before it have it."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: tuple[tuple[str, Grade], ...] = ()
    fix: Fixing | None = None
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] | None = None
    clean_history: bool | None = None

    def check(self, registry: Registry) -> None:
        """Raises RuleError, which begins with the key, when a selector means no rule."""
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name in _SELECTING}
        named["severity"] = tuple(selector for selector, _ in self.severity)
        for name, selectors in named.items():
            for selector in selectors or ():
                try:
                    registry.find(selector)
                except RuleError as error:
                    raise RuleError(f"{name.replace('_', '-')}: {error}") from error

    def decides(self, rule: Rule, before: bool) -> bool:
        """Whether a rule is in force after this layer."""
        if self.grade(rule) == "off":
            return False
        ignored = rank(rule, self.ignore)
        if self.select is not None:
            return rank(rule, (*self.select, *self.extend_select)) > ignored
        selected = rank(rule, self.extend_select)
        return before if selected == ignored == 0 else selected > ignored

    def grade(self, rule: Rule) -> Grade | None:
        """The severity that this layer gives to a rule."""
        ranked = [(rank(rule, (selector,)), grade) for selector, grade in self.severity]
        best = max((place for place, _ in ranked), default=0)
        return next((grade for place, grade in ranked if place == best), None) if best else None


_SELECTING = ("select", "extend_select", "ignore", "fixable", "unfixable")


def rules_of(layers: Sequence[Layer], known: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules that are in force under layers, each as severe as they say."""
    return tuple(_graded(rule, layers) for rule in known if _is_in_force(rule, layers))


def permit_of(layers: Sequence[Layer], known: Registry) -> FixPolicy:
    """The fixes that may be made under layers."""
    fix = next((layer.fix for layer in reversed(layers) if layer.fix is not None), None)
    if fix is None or fix == "off":
        return NO_FIXES
    fixable = next((layer.fixable for layer in reversed(layers) if layer.fixable is not None), ())
    unfixable = next((layer.unfixable for layer in reversed(layers) if layer.unfixable is not None), ())
    clean = next((layer.clean_history for layer in reversed(layers) if layer.clean_history is not None), False)
    return known.permit(fix, fixable, unfixable, clean)


def _is_in_force(rule: Rule, layers: Sequence[Layer]) -> bool:
    inside = True
    for layer in layers:
        inside = layer.decides(rule, inside)
    return inside


def _graded(rule: Rule, layers: Sequence[Layer]) -> Rule:
    grades = [grade for layer in layers if (grade := layer.grade(rule)) is not None and grade != "off"]
    return rule.as_severe_as(grades[-1]) if grades else rule
