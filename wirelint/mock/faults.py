"""The faults, one entry a name; the names are those of the rules that find them.

Adding a fault is adding a function and an entry to the table of its kind.
"""

from __future__ import annotations

from wirelint.mock.call_faults import CALL_FAULTS
from wirelint.mock.fault import Fault
from wirelint.mock.markup import MARKUP
from wirelint.mock.scenario import FAULT_OPTIONS, HEALTHY, Scenario, ScenarioError, near
from wirelint.mock.stream_faults import STREAM_FAULTS
from wirelint.mock.text_faults import TEXT_FAULTS
from wirelint.mock.tools import TOOL_FAULTS

FAULTS: dict[str, Fault] = {**TEXT_FAULTS, **CALL_FAULTS, **STREAM_FAULTS, **TOOL_FAULTS}

_HISTORY = "the client writes the history of a request; send one that is wrong"
_PROMPT = "the client writes the prompt of a request; send one that is wrong"

NOT_PLAYED: dict[str, str] = {
    "mangled-id": _HISTORY,
    "orphan-result": _HISTORY,
    "missing-result": _HISTORY,
    "role-order": _HISTORY,
    "content-repr-leak": _PROMPT,
    "missing-generation-prompt": _PROMPT,
    "unexecuted-call": "the client has to invent a result and leave its server of tools alone",
    "altered-result": "the client has to change what its server of tools answered",
    "mcp-error-swallowed": "the client or the model has to hide the error that a server of tools gave",
}
"""Rules that no reply of this server can break, and why."""


def resolve(scenario: Scenario) -> Fault | None:
    """The fault of a scenario, None for a healthy one. Raises ScenarioError for words that no fault knows."""
    options = scenario.options
    if scenario.fault is None:
        fault = None
    elif scenario.fault in FAULTS:
        fault = FAULTS[scenario.fault]
    elif scenario.fault in NOT_PLAYED:
        raise ScenarioError(f"{scenario.fault} is no fault of a model's reply: {NOT_PLAYED[scenario.fault]}")
    else:
        raise ScenarioError(f"no fault is called {scenario.fault[:60]!a}{near(scenario.fault, FAULTS)}")
    name = scenario.fault or HEALTHY
    known = fault.takes | ({"mode"} if fault.modes else set()) if fault else set()
    for option in sorted((scenario.given & FAULT_OPTIONS) - known):
        raise ScenarioError(f"{name} has no option '{option}'")
    if fault and options.mode and options.mode not in fault.modes:
        modes = ", ".join(fault.modes)
        raise ScenarioError(f"{name} has no mode {options.mode[:60]!a}{near(options.mode, fault.modes)} ({modes})")
    if options.dialect not in MARKUP:
        dialects = ", ".join(MARKUP)
        raise ScenarioError(f"no dialect is called {options.dialect[:60]!a} ({dialects})")
    return fault
