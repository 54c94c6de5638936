"""A record read back through the engine, as if its bytes came now."""

from __future__ import annotations

from urllib.parse import urlsplit

from wirelint.capture.record import Record
from wirelint.engine import Session, lower, reply_api
from wirelint.model import Exchange


def replay(record: Record) -> Exchange | None:
    """The exchange of a record, or None when it is not of an API that is understood.

    A record that lost its request is read by the shape of its reply; rules that need the request then skip.
    """
    headers = lower(record.request_headers)
    session = None
    if record.request_body is not None:
        session = Session.begin(
            id=record.id,
            method=record.method or "POST",
            url=record.url,
            headers=headers,
            body=record.request_body,
            started=record.timing.started,
        )
    if session is None:
        if record.request_body and urlsplit(record.url).path:
            return None
        api = reply_api(record.response_body)
        if api is None:
            return None
        session = Session(api, None, id=record.id, method=record.method, url=record.url, headers=headers)
    session.respond(record.status, lower(record.response_headers))
    if record.response_body is None and record.end == "unread":
        session.abandon()
    session.feed(record.response_body or b"")
    return session.finish(record.end, error=record.error, timing=record.timing, chunks=record.chunks)
