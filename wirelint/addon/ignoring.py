"""The header `x-wirelint-ignore` on requests that pass: taken off before they are forwarded, and kept on the flow.

It is taken off as soon as the head of a request has come, whatever traffic it is and whatever else is done: a body that is
streamed is on its way right after that. The flow keeps it among its metadata, so that files which mitmproxy saves are
judged like the captures.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from mitmproxy import http

from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import headers_of
from wirelint.addon.log import say
from wirelint.capture.record import Headers
from wirelint.registry import Registry
from wirelint.settings.scopes import HEADER, unknown

_MOST_TOLD = 100


class Ignoring:
    """A part of the inspector. `known` gives the rules there are, once that is settled."""

    def __init__(self, known: Callable[[], Registry | None], failures: Failures) -> None:
        self._known, self._failures = known, failures
        self._told: set[str] = set()

    def begins(self, flow: http.HTTPFlow) -> None:
        try:
            self._take_off(flow)
        except Exception as error:  # fail open
            self._failures.tell(f"taking off {HEADER}", error)

    def _take_off(self, flow: http.HTTPFlow) -> None:
        """Takes the header off a request that is to be forwarded. In a flow from a file everything stays as it is."""
        headers, known = flow.request.headers, self._known()
        if HEADER not in headers or not (flow.live or flow.is_replay):
            return
        value = ",".join(headers.get_all(HEADER))
        del headers[HEADER]
        flow.metadata[HEADER] = value
        for line in unknown(value, known) if known is not None else ():
            if line not in self._told and len(self._told) < _MOST_TOLD:
                self._told.add(line)
                say(f"wirelint: {line}", logging.WARNING)


def asked_headers(flow: http.HTTPFlow) -> Headers:
    """The headers of a request as the client sent them."""
    headers, value = headers_of(flow.request), flow.metadata.get(HEADER)
    if isinstance(value, str) and HEADER not in flow.request.headers:
        return (*headers, (HEADER, value))
    return headers
