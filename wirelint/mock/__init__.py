"""The fault-injecting LLM server of the demo and the tests."""

from wirelint.mock.faults import FAULTS
from wirelint.mock.scenario import ScenarioError
from wirelint.mock.server import Exchange, MockServer

__all__ = ["FAULTS", "Exchange", "MockServer", "ScenarioError"]
