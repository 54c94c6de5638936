"""Whatever is asked of the ledger, what waits is taken in first."""

from __future__ import annotations

import pytest

from tests.addon.build import result_of_record
from tests.build import Call, Talk, schema, some
from wirelint.addon.idle_queue import CurrentLedger
from wirelint.model import Exchange
from wirelint.state.ledger import Ledger, Unnamed

EXCHANGE = some(
    result_of_record(Talk(calls=(Call("a", id="call_7"),), tools={"a": schema()}).record("openai.chat", True)).exchange
)


@pytest.mark.parametrize("placed", [True, False], ids=["placed", "not placed yet"])
def test_what_waits_comes_first(placed: bool) -> None:
    ledger = Ledger()
    current = CurrentLedger(lambda: ledger, lambda: None if ledger.issued("call_7") else ledger.record(EXCHANGE))
    exchange: Exchange = EXCHANGE if placed else Unnamed.of(EXCHANGE, current)
    assert ledger.issued("call_7") is None
    assert [call.id for call in current.calls(exchange.conversation)] == ["call_7"]
