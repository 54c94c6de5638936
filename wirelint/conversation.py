"""The ledger: which ids, calls and results have really passed on this wire, per conversation, bounded.

An exchange is judged against what passed before it and is recorded after it was judged, in the order in which exchanges
end. Captures are written in that order too, so reading them back gives every rule the same ledger.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wirelint.model import Exchange, Request, Text

_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "x-session-id",
    "session_id",
    "session-id",
    "x-conversation-id",
    "conversation_id",
)


@dataclass(frozen=True, slots=True)
class Issued:
    """A tool call that a reply carried, as it stood on the wire."""

    id: str
    name: str
    arguments: str
    exchange: str
    conversation: str | None


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool result that a request carried back."""

    call_id: str
    digest: str
    exchange: str


class Ledger:
    """What passed, by conversation; the least recently used conversations go first when a bound is reached."""

    def __init__(self, *, max_ids: int = 10_000) -> None:
        self._max_ids = max_ids
        self._size = 0
        self._calls: OrderedDict[str | None, dict[str, Issued]] = OrderedDict()
        self._results: dict[str | None, dict[str, Returned]] = {}
        self._by_key: dict[str, dict[str, Issued]] = {}

    def issued(self, id_: str, conversation: str | None = None) -> Issued | None:
        """The call that passed under exactly this id, in this conversation or, failing that, in any."""
        found = self._calls.get(conversation, {}).get(id_)
        return found or self._by_key.get(key(id_), {}).get(id_)

    def calls(self, conversation: str | None) -> tuple[Issued, ...]:
        """The calls of a conversation, in the order in which they passed."""
        return tuple(self._calls.get(conversation, {}).values())

    def similar(self, id_: str) -> tuple[Issued, ...]:
        """Calls of any conversation whose ids are the same when only letters and digits count, case aside."""
        return tuple(self._by_key.get(key(id_), {}).values())

    def all_calls(self) -> Iterator[Issued]:
        for calls in self._calls.values():
            yield from calls.values()

    def returned(self, call_id: str, conversation: str | None) -> Returned | None:
        return self._results.get(conversation, {}).get(call_id)

    def record(self, exchange: Exchange) -> None:
        """Takes in what an exchange carried. Call it after the exchange was judged."""
        conversation = exchange.conversation
        for issued in _issued(exchange):
            self._add(conversation, issued)
        if exchange.request is not None:
            self._add_results(exchange, exchange.request)
        if conversation in self._calls:
            self._calls.move_to_end(conversation)
        while self._size > self._max_ids and len(self._calls) > 1:
            self._forget(next(iter(self._calls)))

    def _add(self, conversation: str | None, issued: Issued) -> None:
        calls = self._calls.setdefault(conversation, {})
        if issued.id not in calls:
            self._size += 1
        calls[issued.id] = issued
        self._by_key.setdefault(key(issued.id), {})[issued.id] = issued
        if len(calls) > self._max_ids:
            self._drop(conversation, next(iter(calls)))

    def _add_results(self, exchange: Exchange, request: Request) -> None:
        results = self._results.setdefault(exchange.conversation, {})
        for message in request.turn:
            for result in message.results:
                if result.call_id and result.call_id not in results and len(results) < self._max_ids:
                    digest = hashlib.sha256(result.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
                    results[result.call_id] = Returned(result.call_id, digest, exchange.id)
        if not results:
            del self._results[exchange.conversation]
        elif exchange.conversation not in self._calls:
            self._calls[exchange.conversation] = {}

    def _forget(self, conversation: str | None) -> None:
        for id_ in tuple(self._calls[conversation]):
            self._drop(conversation, id_)
        del self._calls[conversation]
        self._results.pop(conversation, None)

    def _drop(self, conversation: str | None, id_: str) -> None:
        issued = self._calls[conversation].pop(id_)
        self._size -= 1
        same = self._by_key.get(key(id_), {})
        if same.get(id_) is issued:
            del same[id_]
        if not same:
            self._by_key.pop(key(id_), None)


def key(id_: str) -> str:
    """What survives every known way of mangling an id but cutting: its letters and digits, in one case."""
    return "".join(character for character in id_ if character.isalnum()).casefold()


def conversation_of(request: Request, headers: Mapping[str, str]) -> str | None:
    """A short name of the conversation that a request belongs to: the client's own session, else how it began."""
    session = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), None)
    session = session or _text(request.body.get("prompt_cache_key")) or _text(request.body.get("conversation"))
    if session:
        return _short(f"session {session}")
    first = next((message for message in request.messages if message.role == "user"), None)
    if first is None:
        return None
    words = "\n".join(part.text for part in first.parts if isinstance(part, Text))
    return _short(f"opening {words}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _issued(exchange: Exchange) -> Iterator[Issued]:
    if exchange.reply is None:
        return
    for choice in exchange.reply.choices:
        for call in choice.calls:
            if call.id:
                yield Issued(call.id, call.name or "", call.arguments.text, exchange.id, exchange.conversation)
