"""ReAct: `Action:` and `Action Input:` as lines of plain text, or a JSON object in a fence."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.dialects import coercion, weak
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Found, Reading
from wirelint.model import Json, Tool

_REACT = table(__name__, "react")


@dataclass(slots=True)
class _Input:
    """The arguments; None if they are not whole. `plain`: written as text."""

    value: Json
    end: int
    malformed: bool = False
    plain: bool = False


def read_react(reader: Reader, position: int) -> Reading:
    if not reader.tools or _observed(reader, position):
        return None
    if blob := reader.match(_REACT.blob, position):
        return _read_blob(reader, blob)
    head = reader.match(weak.compiled(reader, _REACT.named["lines"]), position)
    if head is None:
        return None
    tool = reader.tool(head["name"])
    given = _read_input(reader, head.end(), tool) if tool is not None else None
    if given is None or not (reader.begins(head.start()) or not given.plain):
        return None
    return _found(reader, head, tool, given)


def _observed(reader: Reader, position: int) -> bool:
    """Return True if an observation precedes: after one that the model made up, the rest is made up too."""
    first = reader.dead.get("react")
    if first is None:
        found = _REACT.observation.search(reader.shadow)
        first = reader.dead["react"] = found.start() if found is not None else reader.size
        reader.work += first
    return first < position


def _found(reader: Reader, head: Match, tool: Tool | None, given: _Input) -> Reading:
    if tool is None:
        return None
    start = head.start()
    if given.value is None:
        call = reader.call(tool.name, None, complete=False)
        return Found("react", start, given.end, (call,), "weak", malformed=True)
    if not weak.fits(tool, given.value):
        return None
    follower = reader.match(_REACT.follower, given.end)
    if follower is None and not reader.ended(reader.space(given.end)):
        return None
    call = reader.call(tool.name, given.value, complete=True)
    return Found("react", start, given.end, (call,), "weak", given.malformed or follower is not None)


def _read_input(reader: Reader, at: int, tool: Tool | None) -> _Input | None:
    fence = reader.match(_REACT.fence, at)
    start = fence.end() if fence is not None else at
    if reader.char(start) in ("{", "'", '"') or fence is not None:
        given = _read_json(reader, start)
        if given is None or fence is None:
            return given
        if closer := reader.match(_REACT.fence_end, given.end):
            given.end = closer.end()
        given.malformed = True
        return given
    stop = reader.next(_REACT.stop, at)
    end = reader.stop(stop)
    text = reader.value(at, end).strip()
    if text.startswith(("[", "`")):
        return None
    value: Json = {} if not text or text == "None" else weak.bound(tool, text)
    return _Input(value, end, malformed=True, plain=True) if value is not None else None


def _read_json(reader: Reader, at: int) -> _Input | None:
    decoded = reader.json(at)
    if not decoded.failed:
        return _Input(decoded.value, decoded.end, malformed=not decoded.healthy)
    stop = reader.next(_REACT.stop, at)
    end = reader.stop(stop)
    repaired = reader.repair(at, end)
    if repaired is not None and not repaired.missing:
        return _Input(repaired.value, repaired.end, malformed=True)
    return _Input(None, end, malformed=True) if stop is None and decoded.end >= reader.size else None


def _read_blob(reader: Reader, blob: Match) -> Reading:
    at = blob.end()
    head = reader.match(weak.compiled(reader, _REACT.named["blob_name"]), at)
    if head is None:
        return None
    given = _read_json(reader, at)
    tool = reader.tool(head["name"])
    if given is None or tool is None:
        return None
    if isinstance(given.value, dict):
        inner = given.value.get("action_input", {})
        decoded = coercion.coerce(inner, None) if isinstance(inner, str) else inner
        given.value = weak.bound(tool, inner) if isinstance(inner, str) and not isinstance(decoded, dict) else decoded
        if given.value is None:
            return None
        if closer := reader.match(_REACT.fence_end, given.end):
            given.end = closer.end()
        else:
            given.malformed = True
    return _found(reader, blob, tool, given)
