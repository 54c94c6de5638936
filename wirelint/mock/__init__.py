"""A fault-injecting LLM server, for the tests of agents: `with wirelint.mock.serve("xml-leak") as vendor:`."""

from wirelint.mock.faults import FAULTS, NOT_PLAYED
from wirelint.mock.scenario import ScenarioError
from wirelint.mock.server import Exchange, MockServer

serve = MockServer

__all__ = ["FAULTS", "NOT_PLAYED", "Exchange", "MockServer", "ScenarioError", "serve"]
