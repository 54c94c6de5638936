"""Classification of mitmproxy's live flows: requests of known APIs, their recorders, and the end of their exchanges.

The header `x-wirelint-ignore` is removed in `requestheaders`, for all traffic, because mitmproxy sends a streamed
request right after that hook. The flow keeps the value in its metadata, so that flow files give the same findings as
captures."""

from __future__ import annotations

import logging
import time
from typing import NamedTuple
from urllib.parse import urlsplit

from mitmproxy import http
from mitmproxy.optmanager import OptManager

from wirelint.addon.log import say
from wirelint.addon.options import Settings
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import recognise
from wirelint.apis.unknown import is_text, unknown_because
from wirelint.capture.readers.flows import asked_headers, url_of
from wirelint.engine import Session, lower
from wirelint.model import End, Json
from wirelint.registry import Registry
from wirelint.settings import HEADER, unknown

_MOST_TOLD = 100


def take_ignore_header(flow: http.HTTPFlow, known: Registry | None, logged: set[str]) -> None:
    """Remove the header from a request that will be forwarded; a flow from a file is not changed.

    `known`: all rules, once they are loaded. `logged`: warnings about unknown names that the log has."""
    headers = flow.request.headers
    if HEADER not in headers or not (flow.live or flow.is_replay):
        return
    value = ",".join(headers.get_all(HEADER))
    del headers[HEADER]
    flow.metadata[HEADER] = value
    for line in unknown(value, known) if known is not None else ():
        if line not in logged and len(logged) < _MOST_TOLD:
            logged.add(line)
            say(f"wirelint: {line}", logging.WARNING)


# A body without content: an API claims it only if path and headers alone identify the request.
_LEAST_BODY: Json = {"messages": [{"role": "user"}]}


def may_be_ours(request: http.Request) -> bool:
    """Return True if the body could show that the request is of a known API."""
    match request.method.upper():
        case "POST":
            return True
        case "GET":
            return "text/event-stream" in request.headers.get("accept", "")
        case "DELETE":
            return "mcp-session-id" in request.headers
        case _:
            return False


def open_recorder(flow: http.HTTPFlow, body: bytes | None, settings: Settings) -> ExchangeRecorder:
    """Create the recorder of a request. `body` is decoded."""
    started = flow.request.timestamp_end or flow.request.timestamp_start
    return new_recorder(flow, flow.id, url_of(flow.request), body, started, settings)


def new_recorder(
    flow: http.HTTPFlow, name: str, url: str, body: bytes | None, started: float, settings: Settings
) -> ExchangeRecorder:
    """Create the recorder of an exchange that a request or a message of a flow begins. `name`: its id."""
    return ExchangeRecorder(
        id=name,
        client=flow.client_conn.id,
        method=flow.request.method,
        url=url,
        request_headers=asked_headers(flow),
        request_body=body or None,
        session=None,
        started=started,
        rules=settings.rules,
        limit=settings.max_body,
        clock=time.perf_counter,
        clock_start=time.perf_counter(),
    )


def pass_unread(recorder: ExchangeRecorder, method: str, example: Json, why: str) -> bool:
    """Mark an exchange unread if its API is recognised without its body. `example`: a body without content."""
    headers, parts = lower(recorder.request_headers), urlsplit(recorder.url)
    api = recognise(method, parts.path, headers, example, parts.netloc)
    if api is None:
        return False
    recorder.session = Session(api, id=recorder.id, method=recorder.method, url=recorder.url, headers=headers)
    recorder.mark_unread(f"the request {why}; the exchange passed unread")
    return True


def open_unread(flow: http.HTTPFlow, settings: Settings, *, large: bool) -> ExchangeRecorder | None:
    """Create the recorder of a request recognised by path alone; None for other traffic. `large`: above the limit, else
    streamed."""
    recorder = open_recorder(flow, None, settings)
    why = too_large(settings.max_body) if large else "was streamed by another addon"
    return recorder if pass_unread(recorder, recorder.method, _LEAST_BODY, why) else None


def too_large(limit: int) -> str:
    return f"is larger than wirelint_max_body ({limit} bytes)"


def note_unknown(recorder: ExchangeRecorder) -> bool:
    """Return True if an exchange of an unknown API is to be recorded; the recorder gets the reason."""
    body = recorder.request_body or b""
    recorder.unknown_reason = unknown_because(recorder.method, recorder.url, lower(recorder.request_headers), body)
    if not recorder.unknown_reason:
        return False
    recorder.notes.append(f"not checked: {recorder.unknown_reason}")
    if not is_text(body):
        recorder.request_body = None
        recorder.notes.append("the body of the request is not text; it was not stored")
    return True


_READ_AT_ONCE = ("save_stream_file", "hardump", "dumper_filter")
"""Options of mitmproxy that read flows and annotations as soon as the last hook returns."""


def are_flows_read_at_once(options: OptManager) -> bool:
    """Return True if options of mitmproxy read flows as soon as their last hook returns."""
    return any(getattr(options, name, None) for name in _READ_AT_ONCE)


class EndedExchange(NamedTuple):
    """Exchange that has ended and is not checked yet. `duration` in milliseconds."""

    recorder: ExchangeRecorder
    flow: http.HTTPFlow
    end: End
    error: str | None
    duration: float
