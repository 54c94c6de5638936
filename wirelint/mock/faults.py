"""The faults by name. Add a fault as an entry of `faults.toml` and a function in the stage table of its module."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from wirelint.mock.fault import Fault
from wirelint.mock.markup import MARKUP
from wirelint.mock.reply_faults import REPLY_STAGES
from wirelint.mock.scenario import FAULT_OPTIONS, HEALTHY, Scenario, ScenarioError, near
from wirelint.mock.stream_faults import ANSWER_STAGES, EVENT_STAGES
from wirelint.mock.tools import MCP_STAGES


def _load() -> dict[str, Fault]:
    table: dict[str, dict[str, Any]] = tomllib.loads(
        resources.files(__package__).joinpath("faults.toml").read_text(encoding="utf-8")
    )
    return {
        name: Fault(
            doc=row["doc"],
            reply=REPLY_STAGES.get(name),
            events=EVENT_STAGES.get(name),
            answer=ANSWER_STAGES.get(name),
            tools=MCP_STAGES.get(name),
            modes=tuple(row.get("modes", ())),
            takes=frozenset(row.get("takes", ())),
            calls=row.get("calls", 0),
            stream=row.get("stream", False),
            needs=frozenset(row.get("needs", ())),
        )
        for name, row in table.items()
    }


FAULTS: dict[str, Fault] = _load()

_HISTORY = "the client writes the history of a request; send one that is wrong"
_PROMPT = "the client writes the prompt of a request; send one that is wrong"

NOT_PLAYED: dict[str, str] = {
    "mangled-id": _HISTORY,
    "orphan-result": _HISTORY,
    "missing-result": _HISTORY,
    "role-order": _HISTORY,
    "content-repr-leak": _PROMPT,
    "missing-generation-prompt": _PROMPT,
    "unexecuted-call": "the client has to invent a result and not call its MCP server",
    "altered-result": "the client has to change the answer of its MCP server",
    "mcp-error-swallowed": "the client or the model has to hide an error of the MCP server",
}
"""Rules that no reply of this server can break, and why."""


def resolve(scenario: Scenario) -> Fault | None:
    """Return the fault of a scenario, None for a healthy one. Raises ScenarioError for words that no fault knows."""
    options, name = scenario.options, scenario.fault or HEALTHY
    fault = FAULTS.get(name)
    if name in NOT_PLAYED:
        raise ScenarioError(f"{name} is not a fault of a model's reply: {NOT_PLAYED[name]}")
    if fault is None and name != HEALTHY:
        raise ScenarioError(f"unknown fault {name[:60]!a}{near(name, FAULTS)}")
    known = fault.takes | ({"mode"} if fault.modes else set()) if fault else set()
    for option in sorted((scenario.given & FAULT_OPTIONS) - known):
        raise ScenarioError(f"{name} has no option '{option}'")
    if fault and options.mode and options.mode not in fault.modes:
        modes = ", ".join(fault.modes)
        raise ScenarioError(f"{name} has no mode {options.mode[:60]!a}{near(options.mode, fault.modes)} ({modes})")
    if options.dialect not in MARKUP:
        dialects = ", ".join(MARKUP)
        raise ScenarioError(f"unknown dialect {options.dialect[:60]!a} ({dialects})")
    return fault
