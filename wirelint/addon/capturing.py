"""An exchange handed to the writer of captures, in both of its forms."""

from __future__ import annotations

import functools
from collections.abc import Callable

from mitmproxy import http

from wirelint.addon.annotate import Annotation
from wirelint.addon.flowfile import flow_bytes
from wirelint.addon.verdict import CheckResult
from wirelint.capture.format import encode
from wirelint.capture.store import Piece, Store


def capture(
    store: Store, flow: http.HTTPFlow, verdict: CheckResult, annotation: Callable[[CheckResult], Annotation]
) -> None:
    record, annotations = verdict.record, verdict.annotations()
    size = len(record.request_body or b"") + len(record.response_body or b"") + 4096
    pieces = [Piece("exchanges.jsonl", functools.partial(encode, record, annotations))]
    try:
        pieces.append(Piece("flows.mitm", flow_bytes(flow, record, annotation(verdict))))
    finally:  # a flow that cannot be copied costs its own file alone
        store.put_all(*pieces, size=size)
