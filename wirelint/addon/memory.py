"""Verdicts that are kept, so that nothing is read a second time when somebody looks at a flow. Bounded in count and bytes.

An exchange in memory takes about ten times what its bytes take, so only the latest are kept; of older flows everything
can be made again from their bodies and metadata.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from mitmproxy import http

from wirelint.capture.offline import Checked
from wirelint.model import Exchange

_MOST = 200
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """`request` and `response` are the flow's bodies when this was made: with other bodies it says nothing."""

    checked: Checked
    notes: tuple[str, ...]
    request: bytes | None
    response: bytes | None

    @property
    def size(self) -> int:
        record = self.checked.record
        return len(record.request_body or b"") + len(record.response_body or b"") + 4096

    def is_about(self, flow: http.HTTPFlow) -> bool:
        return self.request is flow.request.raw_content and self.response is _answer(flow)


class Memory:
    """By the id of the flow, the latest last."""

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, flow: http.HTTPFlow, checked: Checked, notes: tuple[str, ...] = (), name: str | None = None) -> Kept:
        """`name`: that of one exchange of several on a socket."""
        name = name or flow.id
        self.forget(name)
        kept = Kept(checked, notes, flow.request.raw_content, _answer(flow))
        self._kept[name] = kept
        self._size += kept.size
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._size > self._most_bytes):
            self.forget(next(iter(self._kept)))
        return kept

    def find(self, flow: http.HTTPFlow, name: str | None = None) -> Kept | None:
        name = name or flow.id
        kept = self._kept.get(name)
        if kept is None or not kept.is_about(flow):
            return None
        self._kept.move_to_end(name)
        return kept

    def forget(self, name: str) -> None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._size -= kept.size

    def clear(self) -> None:
        self._kept.clear()
        self._size = 0

    def result_of(self, call_id: str, exchange: Exchange) -> str | None:
        """What a call of this exchange gave, by a later request of its conversation that is kept."""
        for kept in reversed(self._kept.values()):
            other = kept.checked.exchange
            if other is None or other.request is None or other.conversation != exchange.conversation:
                continue
            if other.id == exchange.id:
                continue
            for message in other.request.messages:
                for result in message.results:
                    if result.call_id == call_id:
                        return result.text
        return None


def _answer(flow: http.HTTPFlow) -> bytes | None:
    return flow.response.raw_content if flow.response is not None else None
