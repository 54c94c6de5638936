"""The results of a turn, each with what it says and what its call could do; and statements that contradict them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wirelint.claims.evidence import Outcome, Ran, failed_command, outcome
from wirelint.claims.toolkinds import Ability, ability
from wirelint.model import Confidence, Request, Severity, Tool, ToolResult
from wirelint.text.excerpts import excerpt


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A statement, where it stands, and what the result says instead."""

    start: int
    end: int
    against: str
    severity: Severity = "error"
    confidence: Confidence = "high"


@dataclass(frozen=True, slots=True)
class Fact:
    """A result of the turn with what it says and what its call could do."""

    result: ToolResult
    outcome: Outcome
    able: Ability
    arguments: str

    @property
    def shown(self) -> str:
        return f"{self.able.tool.name or 'the tool'} gave {excerpt(self.result.text, 70)!r}"


def facts(request: Request, ran: Sequence[Ran]) -> tuple[Fact, ...]:
    """The results of a turn, each with the ability of the tool that gave it."""
    made: list[Fact] = []
    for one in ran:
        if one.result is None:
            continue
        name = (one.call.name if one.call else None) or one.result.name or ""
        able = ability(request.tool(name) or Tool(name, one.result.pointer))
        arguments = one.call.arguments.text if one.call else ""
        says = outcome(one.result)
        if not says.error and (able.shell or "run" in able.kinds) and failed_command(one.result.text, arguments):
            says = Outcome(True, frozenset())
        made.append(Fact(one.result, says, able, arguments))
    return tuple(made)
