"""The record of one exchange: its bytes and times, from a file of any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from wirelint.fix import AppliedFix
from wirelint.model import Copied, End, Json, MissingInfo, Timing

Form = Literal["wirelint", "mitmproxy", "har", "vcr", "lhar", "claude-code", "k2vv"]

Headers = tuple[tuple[str, str], ...]
"""Header fields in wire order, with names as on the wire."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that was sent instead of the received one: headers, and the body without content codings."""

    headers: Headers
    body: bytes | None


@dataclass(frozen=True, eq=False)
class Record(Copied):
    """An exchange as bytes. Bodies are without their content codings; `None` means that there was none, or it is lost.

    `chunks` are arrivals of the response body: (milliseconds after the request, bytes of the decoded body). `source` is
    the file as the user named it, `place` where in it (`line 3`, `flow 2`, `entry 7`). `annotations` are the results
    that a live run wrote beside it (api, findings, notes, …); checks do not use them. `form` is the format of the file,
    and `missing` lists the facts that the format lacks.

    Request and response are always the received messages. `forwarded` is the request that the upstream got and
    `delivered` the response that the client got, each None if it equals the received one; `fixes` are the changes.
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
    forwarded: Sent | None = None
    delivered: Sent | None = None
    fixes: tuple[AppliedFix, ...] = ()
    source: str = ""
    place: str = ""
    annotations: Mapping[str, Json] = field(default_factory=dict)
    form: Form = "wirelint"
    missing: frozenset[MissingInfo] = frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of a live run or of a reader, for users."""
        notes = self.annotations.get("notes")
        return tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else ()
