"""The ledger: ids, calls and results seen on the wire, per conversation, bounded.

An exchange is placed in its conversation, checked against earlier exchanges, then recorded, in the order in which
exchanges end. Captures keep that order, so reading them back gives every rule an equal ledger. `Lineage` finds the
conversation. A branch stores its own calls; lookups continue in its trunk up to the branching point.

A `_Memory` per conversation holds calls and results by id. Two indexes span all conversations: by the letters and
digits of an id (unchanged when a client mangles it), and by name and arguments of a call (unchanged when a client
replaces the id). Above the limits the least recently used conversation is dropped; a single conversation loses its
oldest ids instead."""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wirelint.history.id_demands import Demand, complaint
from wirelint.history.ids import key
from wirelint.history.turns import content_of
from wirelint.model import Exchange, Request, Text
from wirelint.state import keep, prune
from wirelint.state.issues import Issues
from wirelint.state.linking import Lineage, Place, Trunk
from wirelint.state.mcp_ledger import McpLedger
from wirelint.state.server_state import ServerState, ids_of, state_after
from wirelint.text.thinking import begins_inside

if TYPE_CHECKING:
    from wirelint.rule import Finding

_MOST_COMPLAINTS = 256
_MOST_INSIDE = 256
_MOST_BEGUN = 1024
"""Most branches without an ended exchange that are kept."""
_MOST_STATES = 1024
"""Most replies for which a difference between the server's and the client's version is kept."""
_MOST_KEPT = 32 << 20
"""Most bytes of conversations that are kept to be sent again."""


@dataclass(frozen=True, slots=True)
class Issued:
    """Tool call of a reply as it was on the wire. `number` counts exchanges."""

    id: str
    name: str
    arguments: str
    exchange: str
    conversation: str | None
    number: int = 0
    api: str = ""


@dataclass(slots=True)
class _Memory:
    """Calls of one conversation, in order, and the exchanges in which their results came back, by number."""

    calls: dict[str, Issued] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)

    def __contains__(self, id_: str) -> bool:
        return id_ in self.calls or id_ in self.results


_NONE = _Memory()


class Ledger:
    """Ledger of all conversations. `max_ids` limits distinct ids, `max_text` the characters of their arguments."""

    def __init__(self, *, max_ids: int = 10_000, max_text: int = 16 << 20) -> None:
        self._max_ids, self._max_text = max_ids, max_text
        self._ids = self._text = 0
        self._memories: OrderedDict[str | None, _Memory] = OrderedDict()
        self._by_key: dict[str, dict[str, dict[str | None, Issued]]] = {}
        self._by_content: dict[str, dict[str | None, dict[str, Issued]]] = {}
        self._complaints: OrderedDict[tuple[str, str], Demand] = OrderedDict()
        self._inside: OrderedDict[tuple[str, str] | str, bool] = OrderedDict()
        """True if the last text began inside a thought, by conversation and by target."""
        self._lineage = Lineage()
        self._placed: tuple[Exchange | None, Place | None] = (None, None)
        self._begun: OrderedDict[str | None, Trunk] = OrderedDict()
        self.tools = McpLedger()
        """The ledger of MCP servers."""
        self._states: OrderedDict[tuple[str, str], ServerState] = OrderedDict()
        self._issues = Issues()

    def place(self, exchange: Exchange) -> Exchange:
        """Return the exchange with its conversation and predecessor, without recording it."""
        if exchange.api == "mcp" or self._placed[0] is exchange:
            return exchange
        if exchange.request is not None and exchange.request.previous is not None:
            exchange = exchange.but(request=self.completed(exchange.request, exchange.url))
        place = self._lineage.place(exchange)
        if place is not None:
            exchange = exchange.but(conversation=place.conversation, link=place.link, root=place.root)
            if place.trunk:
                keep(self._begun, place.conversation, place.trunk, _MOST_BEGUN)
        self._placed = (exchange, place)
        return exchange

    def lineage(self, conversation: str | None) -> tuple[str | None, ...]:
        """Return a conversation and its trunks, the nearest first."""
        return tuple(name for name, _ in self._reach(conversation))

    def issued(self, id_: str, conversation: str | None = None) -> Issued | None:
        """Return the call with this exact id, preferably in this conversation."""
        found = self._by_key.get(key(id_), {}).get(id_)
        return self._nearest(found, conversation) if found else None

    def named(self, id_: str, conversation: str | None = None) -> Issued | None:
        """Return the call with this id in this conversation, else the only call with this id."""
        found = self._by_key.get(key(id_), {}).get(id_, {})
        here = [name for name, last in self._reach(conversation) if name in found and found[name].number <= last]
        return found[here[0]] if here else next(iter(found.values())) if len(found) == 1 else None

    def calls(self, conversation: str | None) -> tuple[Issued, ...]:
        return tuple(
            call
            for name, last in reversed(self._reach(conversation))
            for call in self._memories.get(name, _NONE).calls.values()
            if call.number <= last
        )

    def similar(self, id_: str, conversation: str | None = None) -> tuple[Issued, ...]:
        """Return calls with ids of the same letters and digits; one per id, preferably in this conversation."""
        return tuple(self._nearest(found, conversation) for found in self._by_key.get(key(id_), {}).values())

    def alike(self, name: str, arguments: str, conversation: str | None) -> tuple[Issued, ...]:
        """Return calls with equal name and arguments: of this conversation, then of replies without a request."""
        found = self._by_content.get(content_of(name, arguments), {})
        places = dict([*self._reach(conversation), (None, math.inf)]) if found else {}
        return tuple(
            call for place, last in places.items() for call in found.get(place, {}).values() if call.number <= last
        )

    def is_returned(self, call_id: str, conversation: str | None) -> bool:
        """Return True if the result of a call has come back in this conversation."""
        found = ((self._memories.get(name, _NONE).results, last) for name, last in self._reach(conversation))
        return any(call_id in results and results[call_id] <= last for results, last in found)

    def complaint(self, exchange: Exchange) -> Demand | None:
        """Return the id format that the target demanded when it last rejected ids."""
        return self._complaints.get(_target(exchange))

    def server_state(self, request: Request, url: str) -> ServerState | None:
        """Return the state under the reply that a request continues; None if the client holds it too."""
        return self._states.get((urlsplit(url).netloc, request.previous or request.stored or ""))

    def completed(self, request: Request, url: str) -> Request:
        """Return the request with the tools that the server keeps for it, if the declaring request was seen."""
        state = self.server_state(request, url)
        return state.completed(request) if state is not None else request

    @property
    def knows_thoughts(self) -> bool:
        return bool(self._inside)

    def begins_inside(self, exchange: Exchange) -> bool:
        """Return True if the last text of the conversation, else of its host and model, began inside a thought."""
        for name, _ in self._reach(exchange.conversation):
            if name is not None and name in self._inside:
                return self._inside[name]
        return self._inside.get(_target(exchange), False)

    def recognise(self, exchange: Exchange, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the findings of a placed exchange with their issues: new, or known from an earlier exchange."""
        reach = self._reach(exchange.conversation) if exchange.api != "mcp" else ()
        return self._issues.recognise(exchange, findings, reach)

    def record(self, exchange: Exchange, findings: Sequence[Finding] = ()) -> None:
        """Record an exchange and its recognised findings. Call it after the check."""
        self.tools.record(exchange)
        if exchange.api == "mcp":
            return
        conversation = exchange.conversation
        placed, place = self._placed
        self._lineage.record(exchange, place if placed is exchange else self._lineage.place(exchange))
        self._placed = (None, None)
        self._begun.pop(conversation, None)
        if (demand := complaint(exchange)) is not None:
            keep(self._complaints, _target(exchange), demand, _MOST_COMPLAINTS)
        self._note_thought(exchange)
        self._issues.record(exchange, findings, self._lineage.number)
        # A call counts under every id that it had: from the upstream, and to the client.
        for reply in (exchange.reply, exchange.delivered):
            for call in reply.calls if reply is not None else ():
                name, text = call.name or "", call.arguments.text
                for id_ in ids_of(call, exchange.api):
                    self._add(Issued(id_, name, text, exchange.id, conversation, self._lineage.number, exchange.api))
        self._keep_state(exchange)
        turn = exchange.request.turn if exchange.request is not None and exchange.request.has_history else ()
        for id_ in [result.call_id for message in turn for result in message.results if result.call_id]:
            memory = self._memories.setdefault(conversation, _Memory())
            if id_ not in memory.results:
                self._ids += id_ not in memory
                memory.results[id_] = self._lineage.number
        if conversation in self._memories:
            self._memories.move_to_end(conversation)
        while self._ids > self._max_ids or self._text > self._max_text:
            oldest, memory = next(iter(self._memories.items()))
            if len(self._memories) > 1:
                for id_ in {**memory.calls, **memory.results}:
                    self._drop(oldest, id_)
                del self._memories[oldest]
            else:
                self._drop(oldest, next(iter(memory.calls or memory.results)))

    def _keep_state(self, exchange: Exchange) -> None:
        request, reply, host = exchange.request, exchange.reply, urlsplit(exchange.url).netloc
        if request is not None and request.previous and exchange.status == 404 and exchange.api == "anthropic.messages":
            self._states.pop((host, request.previous), None)  # the thread is gone
        if request is None or reply is None or not exchange.ok or reply.error is not None:
            return
        state = state_after(exchange, self.server_state(request, exchange.url))
        for name in {reply.id, request.stored}:
            if name and state is not None:
                keep(self._states, (host, name), state, _MOST_STATES)
            elif name:
                self._states.pop((host, name), None)
        size = sum(state.size for state in self._states.values())
        while size > _MOST_KEPT:
            size -= self._states.popitem(last=False)[1].size

    def _note_thought(self, exchange: Exchange) -> None:
        """Record whether the texts of a reply began inside a thought; a reply without text changes nothing."""
        parts = exchange.reply.parts if exchange.reply else []
        texts = [part.text for part in parts if isinstance(part, Text) and part.text.strip()]
        inside = any(map(begins_inside, texts))
        if not texts or not (inside or self._inside) or exchange.reply is None or not exchange.reply.finished:
            return
        for place in (_target(exchange), exchange.conversation):
            if place is not None and (inside or place in self._inside):
                keep(self._inside, place, inside, _MOST_INSIDE)

    def _reach(self, conversation: str | None) -> tuple[tuple[str | None, float], ...]:
        """Return the conversations to search, the nearest first, each with its last exchange that counts."""
        return ((conversation, math.inf), *(self._begun.get(conversation) or self._lineage.trunk(conversation)))

    def _nearest(self, places: dict[str | None, Issued], conversation: str | None) -> Issued:
        for name, last in self._reach(conversation):
            if (found := places.get(name)) is not None and found.number <= last:
                return found
        return next(reversed(places.values()))

    def _add(self, issued: Issued) -> None:
        conversation = issued.conversation
        memory = self._memories.setdefault(conversation, _Memory())
        if (before := memory.calls.get(issued.id)) is not None:
            if (before.name, before.arguments) == (issued.name, issued.arguments):
                issued = dataclasses.replace(issued, number=before.number)  # branches since then know it
            self._unlist(conversation, memory, issued.id)
        elif issued.id not in memory:
            self._ids += 1
        self._text += len(issued.arguments) + len(issued.id)
        memory.calls[issued.id] = issued
        places = self._by_key.setdefault(key(issued.id), {}).setdefault(issued.id, {})
        places.pop(conversation, None)
        places[conversation] = issued
        alike = self._by_content.setdefault(content_of(issued.name, issued.arguments), {})
        alike.setdefault(conversation, {})[issued.id] = issued

    def _drop(self, conversation: str | None, id_: str) -> None:
        memory = self._memories[conversation]
        if id_ in memory.calls:
            self._unlist(conversation, memory, id_)
        memory.results.pop(id_, None)
        self._ids -= 1

    def _unlist(self, conversation: str | None, memory: _Memory, id_: str) -> None:
        """Remove a call from its memory and both indexes."""
        issued = memory.calls.pop(id_)
        self._text -= len(issued.arguments) + len(id_)
        prune(self._by_key, key(id_), id_, conversation)
        prune(self._by_content, content_of(issued.name, issued.arguments), conversation, id_)


def _target(exchange: Exchange) -> tuple[str, str]:
    return urlsplit(exchange.url).netloc, exchange.model


class Unnamed(Exchange):
    """Exchange that is not recorded yet; the ledger finds its conversation on first use."""

    @classmethod
    def of(cls, exchange: Exchange, ledger: Ledger) -> Unnamed:
        """Return the exchange without a conversation. It is placed once, whatever becomes of the request in copies."""
        made = object.__new__(cls)
        made.__dict__.update(exchange.__dict__)
        del made.__dict__["conversation"]
        made.__dict__["_find"] = cache(lambda: ledger.place(exchange).conversation)
        return made

    @cached_property
    def conversation(self) -> str | None:
        find: Callable[[], str | None] = self.__dict__["_find"]
        return find()
