"""A reply that may be repaired, on its way to the client: what a stream over HTTP and one over a WebSocket have in common.

Bytes of the upstream go in, what the client gets comes out, and it is known of both what they were: from where the one
begins to differ from the other its bytes are kept; before that, the visit's copy is both. Nothing in here raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

from wirelint.addon.failures import Failures
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.record import Headers, Sent
from wirelint.rewrite import ReplyStream


class Held(Protocol):
    """Holds back a part of a reply. No method raises."""

    def due(self) -> float | None:
        """Return the seconds until what is held has to leave; None when nothing is held."""

    def overdue(self) -> Iterable[bytes]:
        """Return what has to leave now because its time is over."""

    def remains(self) -> Iterable[bytes]:
        """Return everything that is held, because nothing more will come."""


class HeldMessages(Held, Protocol):
    """Holds back messages of a WebSocket."""

    def ready(self) -> Iterable[bytes]:
        """Return the messages that leave before the one that is sent now."""


class Passage(ABC):
    """`over` says when it is over, to people."""

    over: ClassVar[str]

    def __init__(self, visit: ExchangeRecorder, rewriting: ReplyStream, failures: Failures) -> None:
        self._visit, self._failures = visit, failures
        self._rewriting: ReplyStream | None = rewriting
        self._owed: list[bytes] = []  # what is to leave with what leaves next
        self._same = 0
        self._other: bytearray | None = None
        self._settled = False

    @abstractmethod
    def headers(self) -> Headers:
        """Those that the client got."""

    def catch_up(self) -> None:
        """Has what has come by read, as far as it was put off."""
        if self._rewriting is not None:
            self._rewriting.catch_up()

    def due(self) -> float | None:
        """Seconds until what is held has to leave; None when nothing is held."""
        if self._owed:
            return 0.0
        rewriting = self._rewriting
        if rewriting is None or rewriting.holding is None:
            return None
        try:
            left = rewriting.due(self._visit.now())
        except Exception as error:  # fail open: it leaves with what comes next
            self._failures.add(self._visit, "repairing the reply", error)
            return None
        return left / 1000 if left is not None else None

    def overdue(self) -> list[bytes]:
        """What has to leave while the upstream is silent."""
        return self._let_go(lambda rewriting: rewriting.tick(self._visit.now()))

    def remains(self) -> list[bytes]:
        """What is held when the upstream is gone."""
        return self._let_go(lambda rewriting: rewriting.flush(self._visit.now()))

    def _let_go(self, ask: Callable[[ReplyStream], list[bytes]]) -> list[bytes]:
        rewriting = self._rewriting
        if self._settled:
            return []
        if rewriting is None:
            return self._note([])
        try:
            return self._note(ask(rewriting))
        except Exception as error:  # fail open
            return self._rescue(b"", error)

    def _feed(self, data: bytes) -> list[bytes]:
        """What goes to the client now that these bytes have come; it is taken down. Raises what the repair raises."""
        visit, rewriting = self._visit, self._rewriting
        try:
            visit.store(data)
        except Exception as error:  # fail open: the repair needs no copy
            self._failures.fail(visit, "reading the reply", error)
        if rewriting is None:
            return self._note([data])
        at = (visit.clock() - visit.began) * 1000
        out = rewriting.feed(data, at)
        visit.mind_the_text()
        if len(out) == 1 and out[0] is data and not (self._owed or rewriting.changed) and self._other is None:
            self._same += len(data)
            return out
        return self._note(out)

    def _note(self, out: list[bytes]) -> list[bytes]:
        """Takes down what is handed out, with what was to leave before it."""
        if self._owed:
            out, self._owed = [*self._owed, *out], []
        try:
            self._take_down(out)
        except Exception as error:  # fail open: it is on its way whatever is known of it
            self._failures.fail(self._visit, "repairing the reply", error)
        return out

    def _take_down(self, out: list[bytes]) -> None:
        rewriting = self._rewriting
        if self._other is None and rewriting is not None and rewriting.changed:
            self._other = bytearray()
        if self._other is None:
            for piece in out:
                self._same += len(piece)
        elif not self._visit.overflown:
            for piece in out:
                self._other += piece

    def _rescue(self, data: bytes, error: Exception) -> list[bytes]:
        """Something in here failed: what is held and what came go out as they are, and so does the rest."""
        self._owed = self._unrepaired(data, error)
        return self._note([])

    def _unrepaired(self, data: bytes, error: Exception) -> list[bytes]:
        """What is held and what came, as it came; the rest passes unrepaired."""
        rewriting, self._rewriting = self._rewriting, None
        visit = self._visit
        came = visit.raw_body() if visit.readable and self._other is None else None
        self._failures.fail(visit, "repairing the reply", error)
        if came is not None:
            return [came[self._same :]] if len(came) > self._same else []
        return [*self._owed, *(rewriting.flush() if rewriting is not None else ()), *([data] if data else [])]

    def settle(self) -> None:
        """The exchange is over: the visit hears what became of its reply."""
        rewriting, visit = self._rewriting, self._visit
        if self._settled:
            return
        self._settled = True
        if rewriting is not None:
            rewriting.catch_up()
            visit.faults += rewriting.faults
            visit.reread = visit.reread or bool(rewriting.faults)
            if not visit.unread:
                visit.notes += rewriting.notes
            if rewriting.changed:
                visit.note_fixes(rewriting.repairs)
        self._rewriting = None  # a flow that is kept keeps what streams it
        came = visit.raw_body()
        if self._other is not None:
            body = came[: self._same] + bytes(self._other) if came is not None else None
        elif came is not None and self._same < len(came):
            body = came[: self._same]
            visit.notes.append(f"{len(came) - self._same} bytes were held back when {self.over}; nobody got them")
        else:
            return
        visit.delivered = Sent(self.headers(), body)
