"""The ledger as a repair has to see it: with all that ended before, judged or not yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wirelint.history.id_demands import Demand
from wirelint.model import Exchange
from wirelint.rule import Finding
from wirelint.state.ledger import Issued, Ledger, Returned
from wirelint.state.mcp_ledger import ToolWire
from wirelint.state.server_state import ServerState


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

    def named(self, id_: str, conversation: str | None = None) -> Issued | None:
        return self._now().named(id_, conversation)

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

    def state_under(self, host: str, name: str) -> ServerState | None:
        return self._now().state_under(host, name)

    @property
    def knows_thoughts(self) -> bool:
        return self._find().knows_thoughts  # every reply asks, and what is not judged yet can wait

    def begins_inside(self, exchange: Exchange) -> bool:
        return self._now().begins_inside(exchange)

    def recognise(self, exchange: Exchange, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        return self._now().recognise(exchange, findings)

    def record(self, exchange: Exchange, findings: Sequence[Finding] = ()) -> None:
        self._now().record(exchange, findings)
