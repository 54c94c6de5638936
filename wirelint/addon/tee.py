"""The stream callable: every byte goes on as it came, and a copy is read.

What mitmproxy asks of it: bytes that are not empty are sent on as a chunk of their own; an empty one would end a chunked
reply in the middle, so nothing to send is an empty list. `b""` in the call means that there may be no more, once or more
than once. An exception would lose the chunk and hang the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mitmproxy import ctx, http

from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import field_of
from wirelint.addon.mitm_compat import attach_whole
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


# Replies that mitmproxy collects, as it does by default, instead of streaming them past us.
#
# A JSON document is of no use to anybody before its end. Where it is short and its length is told, nothing is gained by
# passing it on in several pieces, and to stream it costs the proxy more than to collect it. Should it break off all
# the same,
# what has come of it is passed on and read like that of a reply that streams.

_SHORT = 1 << 18
"""Bytes of a document that is collected though nobody has to see all of it."""


def is_json(response: http.Response) -> bool:
    kind = (field_of(response, b"content-type") or "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def length_of(response: http.Response) -> str | None:
    """What a reply says of how long it is."""
    return field_of(response, b"content-length")


def is_within(response: http.Response, limit: int) -> bool:
    """Return True if a reply says how long it is, and that is no more than `limit` bytes."""
    length = length_of(response) or ""
    return length.isascii() and length.isdigit() and int(length) <= limit


def may_be_collected(response: http.Response) -> bool:
    """Return True if a reply arrives as quickly in one piece."""
    streamed = getattr(ctx.options, "stream_large_bodies", None)  # it may be shorter than ours
    return is_json(response) and is_within(response, _SHORT) and not streamed


def collect(flow: http.HTTPFlow, visit: ExchangeRecorder, failures: Failures) -> bool:
    """Sees to what mitmproxy loses of a reply that breaks off while it is collected. False: that cannot be done."""

    def cut(raw: bytes) -> None:
        try:
            visit.take_whole(raw)
        except Exception as error:  # fail open
            failures.fail(visit, "reading the reply", error)

    def heard(raw: bytes) -> None:
        try:
            visit.record_arrival(raw)
        except Exception as error:  # fail open: it has no time then
            failures.add(visit, "reading the reply", error)

    visit.collected = attach_whole(flow, heard, cut)
    return visit.collected


def is_collected(flow: http.HTTPFlow, response: http.Response, visit: ExchangeRecorder, failures: Failures) -> bool:
    """Return True if a reply is left to mitmproxy until it is whole. Then that is seen to."""
    try:
        return may_be_collected(response) and collect(flow, visit, failures)
    except Exception as error:  # fail open: it is streamed
        failures.add(visit, "reaching the client", error)
        return False
