"""Imported by the process that tools are forked from (`tests.live.forked`), so that each of them has what this prepares."""

import mitmproxy.tools.main  # noqa: F401

from tests.build import REGISTRY
from wirelint.addon import addon  # noqa: F401
from wirelint.addon.annotate import warm_up
from wirelint.capture import store

warm_up(REGISTRY.rules)

store._GATHER = 0.02  # a test waits for each of its captures
