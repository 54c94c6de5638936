"""The ledger as a repair has to see it: with all that ended before, judged or not yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wirelint.conversation import Issued, Ledger, Returned
from wirelint.knowledge.id_demands import Demand
from wirelint.model import Exchange
from wirelint.toolwire import ToolWire


class CurrentLedger(Ledger):
    """Answers for the ledger that `find` gives, after `catch_up` has brought it up to date. Most repairs never ask."""

    def __init__(self, find: Callable[[], Ledger], catch_up: Callable[[], None]) -> None:
        super().__init__()
        self._find, self._catch_up = find, catch_up

    def _now(self) -> Ledger:
        self._catch_up()
        return self._find()

    @property
    def tools(self) -> ToolWire:
        return self._now().tools

    def place(self, exchange: Exchange) -> Exchange:
        return self._now().place(exchange)

    def lineage(self, conversation: str | None) -> tuple[str | None, ...]:
        return self._now().lineage(conversation)

    def issued(self, id_: str, conversation: str | None = None) -> Issued | None:
        return self._now().issued(id_, conversation)

    def calls(self, conversation: str | None) -> tuple[Issued, ...]:
        return self._now().calls(conversation)

    def similar(self, id_: str, conversation: str | None = None) -> tuple[Issued, ...]:
        return self._now().similar(id_, conversation)

    def alike(self, name: str, arguments: str, conversation: str | None) -> tuple[Issued, ...]:
        return self._now().alike(name, arguments, conversation)

    def all_calls(self) -> Iterator[Issued]:
        return self._now().all_calls()

    def returned(self, call_id: str, conversation: str | None) -> Returned | None:
        return self._now().returned(call_id, conversation)

    def complaint(self, exchange: Exchange) -> Demand | None:
        return self._now().complaint(exchange)

    def record(self, exchange: Exchange) -> None:
        self._now().record(exchange)
