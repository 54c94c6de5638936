"""A fix tried on a flow that passed: a copy of it, as both ends would have had it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from mitmproxy import http

from wirelint.addon.annotate import annotate, annotation
from wirelint.addon.verdict import CheckResult
from wirelint.capture.fixing import Fixed, fix, true_headers
from wirelint.capture.readers.flows import record_of
from wirelint.capture.record import Headers, Sent
from wirelint.fix import FixPolicy
from wirelint.model import Side
from wirelint.rule import Rule

_TRIED = "fix tried"


class Tried(NamedTuple):
    """`copy` is None when there was nothing to repair."""

    fixed: Fixed
    copy: http.HTTPFlow | None


def try_fix(
    flow: http.HTTPFlow, earlier: Sequence[http.HTTPFlow], rules: Sequence[Rule], permit: FixPolicy
) -> Tried | None:
    """What a repair makes of a flow, in the light of `earlier` ones. None: it is of no API that is understood."""
    records = [dataclasses.replace(record_of(one), source="flows") for one in (*earlier, flow)]
    *_, fixed = fix(records, rules, permit)
    if not isinstance(fixed, Fixed) or fixed.exchange is None:
        return None
    if not fixed.record.fixes:
        return Tried(fixed, None)
    return Tried(fixed, _copy(flow, fixed))


def _copy(flow: http.HTTPFlow, fixed: Fixed) -> http.HTTPFlow:
    copy: http.HTTPFlow = flow.copy()  # type: ignore[no-untyped-call, unused-ignore]
    came = fixed.record
    _put(copy.request, came.forwarded, came.request_headers, came.request_body, flow, "request")
    if copy.response is not None:
        _put(copy.response, came.delivered, came.response_headers, came.response_body, flow, "response")
    record = dataclasses.replace(came, id=copy.id, source="")
    exchange = dataclasses.replace(fixed.exchange, id=copy.id) if fixed.exchange is not None else None
    notes = came.annotations.get("notes")
    verdict = CheckResult(
        record,
        exchange,
        fixed.findings,
        exchange.api if exchange is not None else "",
        exchange.model if exchange is not None else "",
        tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else (),
    )
    made = annotation(verdict)
    copy.comment = copy.marked = ""
    annotate(copy, dataclasses.replace(made, comment=f"{_TRIED} · {made.comment}"), record)
    return copy


def _put(
    message: http.Message, sent: Sent | None, headers: Headers, body: bytes | None, flow: http.HTTPFlow, side: Side
) -> None:
    """Gives a message what was sent on; what came in, where that is not what the flow shows; else nothing new."""
    if sent is None:
        received = flow.metadata.get("wirelint.received")
        if not isinstance(received, dict) or side not in received or body is None:
            return
        sent = Sent(true_headers(headers, body), body)
    message.headers = http.Headers([_field(name, value) for name, value in sent.headers])
    message.raw_content = sent.body


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")
