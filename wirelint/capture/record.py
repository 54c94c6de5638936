"""One recorded exchange, whatever file it came from: what went over the wire, and nothing that was made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wirelint.model import End, Json, Timing

Headers = tuple[tuple[str, str], ...]
"""Header fields in wire order, names as they came."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """An exchange as bytes. Bodies are without their content codings; `None` means that there was none, or it is lost.

    `chunks` are arrivals of the response body: (milliseconds after the request, bytes of the decoded body). `source` is
    the file as the user named it, `place` where in it (`line 3`, `flow 2`, `entry 7`). `annotations` are what a live
    run had written beside it (api, findings, …); nothing is judged from them.
    """

    id: str
    method: str
    url: str
    request_headers: Headers = ()
    request_body: bytes | None = None
    status: int | None = None
    response_headers: Headers = ()
    response_body: bytes | None = None
    chunks: tuple[tuple[float, int], ...] = ()
    timing: Timing = field(default_factory=Timing)
    end: End = "unknown"
    error: str | None = None
    source: str = ""
    place: str = ""
    annotations: Mapping[str, Json] = field(default_factory=dict)
