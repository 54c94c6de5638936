"""What a flow from a file says about itself beyond what mitmproxy shows of it: both sides, where it was changed."""

from __future__ import annotations

from mitmproxy import http

from wirelint.addon.http_headers import body_of, headers_of
from wirelint.addon.ignoring import asked_headers
from wirelint.capture.flow_metadata import NAMES, restore
from wirelint.capture.record import Record
from wirelint.wire.content_coding import MOST_PLAIN, TooLargeError


def recorded(flow: http.HTTPFlow) -> Record | None:
    """The exchange of a flow that was changed when it passed, as it came in and as it was sent on; else None."""
    beside = {name: flow.metadata[key] for name in NAMES if (key := f"wirelint.{name}") in flow.metadata}
    if not beside:
        return None
    request, response = flow.request, flow.response
    body = _body(request)
    shown = Record(
        id=flow.id,
        method=request.method,
        url=request.pretty_url,
        request_headers=asked_headers(flow),
        request_body=body or None,
        status=response.status_code if response is not None else None,
        response_headers=headers_of(response) if response is not None else (),
        response_body=_body(response) if response is not None else None,
    )
    return restore(shown, beside)


def _body(message: http.Message) -> bytes | None:
    try:
        return body_of(message, MOST_PLAIN)
    except TooLargeError:
        return None
