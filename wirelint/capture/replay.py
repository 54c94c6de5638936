"""Replay of a record through a session, as if its bytes arrived now."""

from __future__ import annotations

from urllib.parse import urlsplit

from wirelint.apis import recognise_reply
from wirelint.capture.record import Record, Sent
from wirelint.engine import FrameListener, Session, lower
from wirelint.jsonvalues import decode_json
from wirelint.model import Exchange, Reply
from wirelint.rewrite.stream import arrived
from wirelint.wire import Sniffer


def replay(record: Record, listener: FrameListener | None = None) -> Exchange | None:
    """Return the exchange of a record, or None for an unrecognised API. `listener` gets the frames of the reply.

    A record that lost its request is read by the shape of its reply; rules that need the request then skip.
    """
    session = begin(record)
    if session is None:
        return None
    session.listener = listener
    respond(session, record)
    for data, at in arrived(record.response_body or b"", record.chunks):
        session.feed(data, at)
    return finish(session, record, delivered_reply(record))


def begin(record: Record) -> Session | None:
    """Return a session that has read the request of a record; None for an unrecognised API."""
    headers = lower(record.request_headers)
    if record.request_body is not None or record.method.upper() in ("GET", "DELETE"):
        session = Session.begin(
            id=record.id,
            method=record.method or "POST",
            url=record.url,
            headers=headers,
            body=record.request_body or b"",
            started=record.timing.started,
        )
        if session is not None:
            return session
    if record.request_body and urlsplit(record.url).path:
        return None
    body = record.response_body
    if not body:
        return None
    # The request is lost: the first document of the reply shows the API.
    sniffer = Sniffer({})
    frames = [*sniffer.feed(body), *sniffer.close()]
    documents = (decode_json(frame.data) for frame in frames if frame.data is not None)
    api = recognise_reply(next((document for document in documents if document is not None), None))
    if api is None:
        return None
    return Session(api, id=record.id, method=record.method, url=record.url, headers=headers)


def respond(session: Session, record: Record) -> None:
    """Give the session the head of the record's reply. The body follows."""
    session.respond(record.status, lower(record.response_headers))
    if record.response_body is None and record.end == "unread":
        session.abandon()


def finish(session: Session, record: Record, delivered: Reply | None = None) -> Exchange:
    """Return the exchange after the session has read the body. `delivered`: a changed reply that the client got."""
    exchange = session.finish(record.end, error=record.error)
    why = record.notes if record.end == "unread" else ()
    return exchange.but(
        timing=record.timing,
        chunks=record.chunks,
        notes=tuple(dict.fromkeys((*why, *exchange.notes))),
        missing=record.missing,
        delivered=delivered,
    )


def delivered_reply(record: Record, listener: FrameListener | None = None) -> Reply | None:
    """Return the changed reply that the client got; None if it got the upstream's. `listener` gets its frames."""
    if record.delivered is None:
        return None
    exchange = replay(mended(record), listener)
    return exchange.reply if exchange is not None else None


def mended(record: Record) -> Record:
    """Return the record with the sent messages in place of the received ones. A changed body has no arrivals."""
    request = record.forwarded or Sent(record.request_headers, record.request_body)
    response = record.delivered or Sent(record.response_headers, record.response_body)
    return record.but(
        request_headers=request.headers,
        request_body=request.body,
        response_headers=response.headers,
        response_body=response.body,
        chunks=record.chunks if record.delivered is None else (),
        forwarded=None,
        delivered=None,
        fixes=(),
    )
