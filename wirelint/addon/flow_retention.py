"""How many flows a long run keeps. mitmweb and the console have no bound of their own; mitmdump lets go of every flow.

Only what passed in this run is counted and dropped, the oldest first. Flows that were opened from a file stay, and so does
whatever is still under way. What stands on disk is not touched.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from mitmproxy import ctx, flow

from wirelint.addon.failures import Failures
from wirelint.addon.live_preview import is_shown

_OPEN_AT_ONCE = 64
"""Flows that are still under way, and stay for now, that are passed over at a time."""


class Keeping:
    """`most` gives how many flows may stay, None for all of them; `dropped` is told the id of a flow that left."""

    def __init__(self, most: Callable[[], int | None], dropped: Callable[[str], None], failures: Failures) -> None:
        self._most, self._dropped, self._failures = most, dropped, failures
        self._passed: OrderedDict[str, None] = OrderedDict()

    def begins(self, flow: flow.Flow) -> None:
        """A flow begins, whatever it speaks."""
        if not flow.live or not is_shown():
            return
        self._passed[flow.id] = None
        most = self._most()
        if most is None or len(self._passed) <= most:
            return
        try:
            self._drop(len(self._passed) - most)
        except Exception as error:  # fail open: it stays
            self._failures.tell("dropping the oldest flows", error)

    def done(self) -> None:
        self._passed.clear()

    def _drop(self, count: int) -> None:
        view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
        for _ in range(count + _OPEN_AT_ONCE):
            if count <= 0:
                return
            name, _ = self._passed.popitem(last=False)
            found = view.get_by_id(name)
            if found is not None and found.live:
                self._passed[name] = None
                continue
            count -= 1
            if found is not None:  # else somebody removed it
                view.remove([found])
                self._dropped(name)
