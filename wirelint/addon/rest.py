"""The end of a reply: its body and its record, where the tee did not see to both."""

from __future__ import annotations

from mitmproxy import http

from wirelint.addon.exchange_fix import ExchangeFixer
from wirelint.addon.failures import Failures
from wirelint.addon.http_headers import headers_of
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.tee import Tee


def finish_body(
    flow: http.HTTPFlow, visit: ExchangeRecorder, mending: ExchangeFixer | None, failures: Failures
) -> None:
    """Gives the visit what it lacks of the flow's reply, and the flow the body that passed. Raises nothing."""
    response = flow.response
    if response is None:
        return
    try:
        if visit.status is None:
            visit.respond(response.status_code, headers_of(response))
        if response.raw_content is None and not visit.live:
            visit.give_up("the reply was not recorded")
        elif mending is not None and mending.end(response):
            return
        elif response.raw_content is None and visit.empty and not (visit.collected or type(response.stream) is Tee):
            visit.give_up("another addon took the stream over; the reply passed unread")
        elif response.raw_content is None:
            # What came by is what the client got; without this mitmproxy has no body to show, filter or save.
            response.raw_content = visit.raw_body()
        elif visit.empty:
            visit.take_whole(visit.known_body() or response.raw_content)
    except Exception as error:  # fail open
        failures.fail(visit, "reading the reply", error)
