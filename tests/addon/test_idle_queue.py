"""What waits is done in order, some time, and never more of it waits than may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.addon.build import result_of_record
from tests.build import REGISTRY, Call, Talk, as_record, schema, some
from tests.fixes.drive import UNSAFE, open_session
from wirelint.addon.idle_queue import LARGE, CurrentLedger, IdleQueue
from wirelint.model import Exchange
from wirelint.rewrite import ReplyStream
from wirelint.state.ledger import Ledger, Unnamed


def test_only_so_much_waits() -> None:
    done: list[str] = []

    async def run() -> None:
        waiting = IdleQueue[str](lambda item: lambda: done.append(item), lambda: False, most=10)
        for item in "ab":
            waiting.put(item, 5)
        assert (done, len(waiting)) == ([], 2)
        waiting.put("large", 100)
        assert (done, len(waiting)) == (["a", "b", "large"], 0)

    asyncio.run(run())


@pytest.mark.parametrize(("busy", "done_at_first"), [(True, ["a"]), (False, ["a", "b", "c"])])
def test_one_item_at_a_time_runs_during_traffic(
    busy: bool, done_at_first: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wirelint.addon.idle_queue._WAITS", 0.0)
    monkeypatch.setattr("wirelint.addon.idle_queue._LONGEST", 60.0)
    monkeypatch.setattr("wirelint.addon.idle_queue._SHORTEST", 60.0)
    done: list[str] = []

    async def run() -> None:
        waiting = IdleQueue[str](lambda item: lambda: done.append(item), lambda: busy)
        for item in "abc":
            waiting.put(item, 1)
        async with asyncio.timeout(10):
            while not done:
                await asyncio.sleep(0.001)

    asyncio.run(run())
    assert done == done_at_first


def test_who_needs_all_that_waits_waits_for_the_thread() -> None:
    done: list[tuple[str, bool]] = []
    here, gate = threading.get_ident(), threading.Event()

    def work(item: str) -> Callable[[], None]:
        assert gate.wait(20)
        done.append((f"read {item}", threading.get_ident() == here))
        return lambda: done.append((f"judged {item}", threading.get_ident() == here))

    async def run() -> None:
        waiting = IdleQueue(work, lambda: False, most=4 * LARGE)
        waiting.put("A", 9 * LARGE)  # above the bound, and by itself
        assert done == []
        gate.set()
        waiting.drain()

    asyncio.run(run())
    assert done == [("read A", False), ("judged A", True)]


EXCHANGE = some(
    result_of_record(Talk(calls=(Call("a", id="call_7"),), tools={"a": schema()}).record("openai.chat", True)).exchange
)


@pytest.mark.parametrize("placed", [True, False], ids=["placed", "not placed yet"])
def test_before_the_ledger_is_asked_what_waits_is_taken_in(placed: bool) -> None:
    ledger = Ledger()
    current = CurrentLedger(lambda: ledger, lambda: None if ledger.issued("call_7") else ledger.record(EXCHANGE))
    exchange: Exchange = EXCHANGE if placed else Unnamed.of(EXCHANGE, current)
    assert ledger.issued("call_7") is None
    assert [call.id for call in current.calls(exchange.conversation)] == ["call_7"]


@pytest.mark.parametrize(("request_", "asked"), [({}, False), ({"previous_response_id": "resp_1"}, True)])
def test_a_reply_waits_for_what_has_ended_only_if_its_request_names_something_on_the_server(
    request_: dict[str, str], asked: bool
) -> None:
    ledger, caught_up = Ledger(), list[int]()
    current = CurrentLedger(lambda: ledger, lambda: caught_up.append(1))
    talk = Talk(text="The **ferry** leaves at nine.", tools={"a": schema()}, request=request_)
    record = as_record(talk.record("openai.responses", True))
    stream = some(ReplyStream.begin(open_session(record), REGISTRY.rules, current, UNSAFE))
    assert b"".join([*stream.feed(some(record.response_body)), *stream.end()]) == record.response_body
    assert bool(caught_up) is asked
