"""Calls as plain JSON without markup: an array, an envelope such as `{"tool_calls": […]}`, a fence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirelint.dialects import weak
from wirelint.dialects.json_calls import calls_of
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Found, Reading
from wirelint.model import Json

_BARE = table(__name__, "bare_json")
_TYPES = frozenset({"function", "function_call", "tool_call", "tool_use"})
_BESIDE = frozenset({"role", "thought", "thoughts", "reasoning", "id", "type", "index"})
_DEEPEST = 6


@dataclass(slots=True)
class _Values(Calls):
    """The calls in values side by side."""

    canonical: bool = True
    enveloped: bool = False


def read_bare_json(reader: Reader, position: int) -> Reading:
    if not reader.tools:
        return None
    if fence := reader.match(_BARE.fence, position):
        return _read_fenced(reader, fence)
    start = reader.space(position)
    if reader.char(start) not in ("{", "[") or not reader.begins(start):
        return None
    head = reader.match(weak.compiled(reader, _BARE.named["head"]), start)
    if head is None or _BARE.llama.match(head[0]):
        return None
    found = _read_values(reader, head)
    if found is None:
        return None
    surplus = reader.match(_BARE.surplus, found.end)
    end = surplus.end() if surplus is not None and surplus[0].strip() else found.end
    if not weak.is_whole(reader, start, end):
        return None
    plain = reader.char(start) == "[" and not found.enveloped
    malformed = not found.canonical or end > found.end
    dialect = "bare_json_array" if plain else "generic_json_envelope"
    return Found(dialect, position, end, tuple(found.calls), "weak", malformed)


def _read_fenced(reader: Reader, fence: Match) -> Reading:
    head = reader.match(weak.compiled(reader, _BARE.named["head"]), fence.end())
    if head is None:
        return None
    found = _read_values(reader, head, fenced=True)
    if found is None:
        return None
    end = found.end
    if closer := reader.match(_BARE.fence_end, end):
        end = closer.end()
    elif not reader.ended(reader.space(end)):
        return None
    malformed = not found.canonical or closer is None or "json" not in fence[0]
    return Found("fenced_json_call", fence.start(), end, tuple(found.calls), "weak", malformed)


def _read_values(reader: Reader, head: Match, *, fenced: bool = False) -> _Values | None:
    """Read the values from a position on; None unless each is a call, or the beginning of one."""
    found = _Values(head.start())
    at = head.start()
    while reader.char(at) in ("{", "["):
        decoded = reader.json(at)
        if decoded.failed:
            return _read_damaged(reader, at, head, found, fenced=fenced)
        if not _add(reader, decoded.value, found):
            return None
        found.canonical &= decoded.healthy and at == head.start()
        found.end = decoded.end
        at = reader.after(_BARE.between, decoded.end)
    return found


def _read_damaged(reader: Reader, at: int, head: Match, found: _Values, *, fenced: bool) -> _Values | None:
    if not fenced and at < reader.dead.get("bare_json_array", 0):
        return None
    stop = reader.next(_BARE.ticks, at) if fenced else None
    end = reader.stop(stop)
    if not fenced:
        reader.dead["bare_json_array"] = end
    repaired = reader.repair(at, end)
    found.canonical = False
    if repaired is not None:
        depths = [depth for _, depth in _leaves(repaired.value)]
        whole = stop is not None or repaired.missing <= (depths[-1] if depths else 0)
        if whole and _add(reader, repaired.value, found):
            found.end = repaired.end
            return found
    if stop is not None or at != head.start() or reader.json(at).end < reader.size:
        return None
    name = weak.called(reader, head[0])
    if name is None:
        return None
    found.calls.append(reader.call(name, None, complete=False))
    found.end = reader.size
    return found


def _add(reader: Reader, value: Json, found: _Values) -> bool:
    leaves = list(_leaves(value))
    for leaf, _ in leaves:
        calls, canonical = calls_of(reader, leaf)
        if len(calls) != 1 or not weak.fits(reader.tools.get(calls[0].name), calls[0].arguments):
            return False
        found.calls += calls
        found.canonical &= canonical
        found.enveloped |= isinstance(leaf, dict) and (
            leaf.get("type") in _TYPES or isinstance(leaf.get("function"), dict)
        )
    found.enveloped |= any(depth > 2 for _, depth in leaves)
    return bool(leaves)


def _leaves(value: Json, depth: int = 0) -> Iterator[tuple[Json, int]]:
    """Yield the objects that should be calls, and the number of brackets open inside each."""
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth + 1)
        return
    wrapper = next((key for key in _BARE.data["wrappers"] if key in value), None) if isinstance(value, dict) else None
    if isinstance(value, dict) and wrapper is not None and depth < _DEEPEST and _says_nothing_else(value, wrapper):
        yield from _leaves(value[wrapper], depth + 1)
    else:
        inner = isinstance(value, dict) and isinstance(value.get("function"), dict)
        yield value, depth + 1 + inner


def _says_nothing_else(value: dict[str, Json], wrapper: str) -> bool:
    """Return True if no text for a reader stands beside the calls."""
    return not any(item for key, item in value.items() if key != wrapper and key not in _BESIDE)
