"""Requests of bytes, and their repair by all rules."""

from __future__ import annotations

from tests.build import REGISTRY, some
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.fix import FixPolicy
from wirelint.model import Exchange
from wirelint.rewrite.request import Mended, mend_request
from wirelint.state.ledger import Ledger

UNSAFE, SAFE = FixPolicy("unsafe"), FixPolicy("safe")


def head(body: bytes, api: str, url: str = "https://llm.test") -> Exchange:
    path = "/v1/messages" if api == "anthropic.messages" else "/v1/chat/completions"
    return some(replay(Record("r1", "POST", url + path, (("anthropic-version", "2023-06-01"),), body)))


def mend(
    body: bytes, api: str, permit: FixPolicy = UNSAFE, url: str = "https://llm.test", ledger: Ledger | None = None
) -> Mended:
    return mend_request(head(body, api, url), body, REGISTRY.rules, ledger or Ledger(), permit)
