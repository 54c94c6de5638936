"""The stream callable: every byte goes on as it came, and a copy is read.

What mitmproxy asks of it: bytes that are not empty are sent on as a chunk of their own; an empty one would end a chunked
reply in the middle, so nothing to send is an empty list. `b""` in the call means that there may be no more, once or more
than once. An exception would lose the chunk and hang the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wirelint.addon.recorder import ExchangeRecorder

Stream = Callable[[bytes], bytes | Iterable[bytes]]


class Tee:
    """`inner` is the callable that another addon had set before: it gets what came from upstream, as without us."""

    def __init__(
        self,
        visit: ExchangeRecorder,
        fail: Callable[[ExchangeRecorder, str, Exception], None],
        inner: Stream | None = None,
    ) -> None:
        self._visit = visit
        self._fail = fail
        self._inner = inner

    def __call__(self, data: bytes) -> bytes | Iterable[bytes]:
        visit = self._visit
        try:
            if data:
                visit.note(data)
                if visit.heard_by is not None:
                    visit.heard_by()
        except Exception as error:  # fail open: the bytes go on, whatever reading them did
            self._fail(visit, "reading the reply", error)
        if self._inner is not None:
            return self._inner(data)
        return data or []
