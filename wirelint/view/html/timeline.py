"""The chunks of a reply on a time axis, few enough to be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wirelint.model import Json, Timing
from wirelint.timing import NO_ARRIVALS, Arrivals

_MOST = 600
_SHORTEST_GAP = 1000.0
_SHARE = 0.1
_MOST_GAPS = 12


def strip(
    chunks: Sequence[tuple[float, int]], timing: Timing, arrivals: Arrivals = NO_ARRIVALS
) -> dict[str, Json] | None:
    """`ticks` are [milliseconds after the request, bytes], `gaps` [start, end] of silences; None when no time is known.

    A silence is a time without an event that says something, where `arrivals` tell, else one without a chunk. It is told
    when it lasts a second and a tenth of the whole; of many the longest. The time before the first is no silence: there
    the model reads.
    """
    times = [at for at, _ in chunks]
    end = max([*times, timing.duration or 0.0])
    if not (0 < end < math.inf and all(map(math.isfinite, times))):
        return None
    return {
        "end": _ms(end),
        "first": _ms(times[0]) if times else None if timing.first_byte is None else _ms(timing.first_byte),
        "chunks": len(chunks),
        "bytes": sum(size for _, size in chunks),
        "ticks": [[_ms(at), size] for at, size in _joined(chunks, end)],
        "gaps": _gaps(times, end, arrivals),
    }


def _joined(chunks: Sequence[tuple[float, int]], end: float) -> list[tuple[float, int]]:
    """Chunks that come at one place of the axis as one, when there are too many to draw."""
    if len(chunks) <= _MOST:
        return list(chunks)
    made: dict[int, tuple[float, int]] = {}
    for at, size in chunks:
        spot = int(at / end * _MOST)
        first, sum_ = made.get(spot, (at, 0))
        made[spot] = first, sum_ + size
    return list(made.values())


def _gaps(times: Sequence[float], end: float, arrivals: Arrivals) -> list[Json]:
    least = max(_SHORTEST_GAP, end * _SHARE)
    if arrivals and arrivals.framed:
        found = [(gap.start, gap.end) for gap in (*arrivals.gaps(least), arrivals.rest(end)) if gap.before is not None]
    else:
        found = list(zip(times, [*times[1:], end], strict=False))
    told = sorted((gap for gap in found if gap[1] - gap[0] >= least), key=lambda gap: gap[0] - gap[1])
    return [[_ms(start), _ms(stop)] for start, stop in sorted(told[:_MOST_GAPS])]


def _ms(value: float) -> float:
    return round(value, 1)
