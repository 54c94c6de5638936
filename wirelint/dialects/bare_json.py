"""Calls as plain JSON, without any markup of their own: an array, an envelope, a fence.

Lineage: prompts that ask for JSON (Gorilla's function calling leaderboard) → xLAM, Hammer, Arctic, which were trained
on it; llama.cpp's generic handler (`{"tool_call": …}`); and models that imitate what they saw on the wire: OpenAI's
`tool_calls`, Anthropic's `tool_use`, Gemini's `functionCall`. Mistral's array is the same once its marker is lost.

    [{"name": "lookup", "arguments": {"city": "Graz"}}]

    {"tool_calls": [{"name": "lookup", "arguments": {"city": "Graz"}}]}

    ```json
    {"name": "lookup", "arguments": {"city": "Graz"}}
    ```

Types come from the JSON. All of it is weak (`weak`): every object must call a declared tool with arguments that fit.
What is not fenced must be the whole message; a fenced call stands anywhere, and whoever asks decides whether it is
quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from wirelint.dialects import weak
from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.jsoncalls import calls_of
from wirelint.dialects.openers import SPACES, TEXT_START, Opener, Run, either
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_ARRAY, _ENVELOPE, _FENCED = "bare_json_array", "generic_json_envelope", "fenced_json_call"
_LANGUAGES = (
    "json",
    "JSON",
    "jsonc",
    "json5",
    "tool_calls",
    "tool_call",
    "tool_use",
    "tool",
    "function_call",
    "function",
)
_FENCE = re.compile(rf"`{{3,8}}[ \t]{{0,2}}(?:{'|'.join(_LANGUAGES)})?\s{{0,8}}")
_FENCE_END = re.compile(r"\s*`{3,}")
_TICKS = re.compile(r"`{3,}")
_BETWEEN = re.compile(r"\s*[,;]?\s*")
_SURPLUS = re.compile(r"[\s\]}]*")

# Llama's own shape, a bare object that begins with the name.
_LLAMA = re.compile(
    r"""\{\s*(?:["'](?:type["']\s*:\s*["']function|id["']\s*:\s*["'][^"']*)["']\s*,\s*)*["'](?:name|function)["']\s*:\s*["']"""
)

_S = r"\s{0,64}"
_STRING = r"[\"'](?:[^\"\\]|\\.)*[\"']"
_BEFORE_CALLS = (
    rf"[\"']role[\"']{_S}:{_S}[\"'](?:assistant|model)[\"']|[\"']content[\"']{_S}:{_S}(?:null|None|\"\"|'')"
    rf"|[\"']thought[\"']{_S}:{_S}{_STRING}"
)
_WRAPPED = (
    rf"\{{{_S}(?:(?:{_BEFORE_CALLS}){_S},{_S}){{0,3}}"
    rf"[\"'](?:tool_?[cC]alls?|function_?[cC]alls?|tool_use|parts|calls)[\"']{_S}:{_S}"
    rf"(?:\[{_S})?(?:\{{{_S}[\"']function_?[cC]all[\"']{_S}:{_S})?HEAD"
)
_PLAIN_HEAD = rf"(?:\[{_S})?(?:HEAD|{_WRAPPED})"
_WRAPPERS = (
    "tool_calls", "tool_call", "toolCalls", "toolCall", "function_calls", "function_call", "functionCalls", "functionCall",
    "tool_use", "parts", "calls",
)  # fmt: skip
_TYPES = frozenset({"function", "function_call", "tool_call", "tool_use"})
_BESIDE = frozenset({"role", "thought", "thoughts", "reasoning", "id", "type", "index"})
_DEEPEST = 6


@dataclass(slots=True)
class _Values:
    """What has been read of the values side by side."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    canonical: bool = True
    enveloped: bool = False


def _read(reader: Reader, position: int) -> Reading:
    if not reader.tools:
        return None
    if fence := reader.match(_FENCE, position):
        return _read_fenced(reader, fence)
    start = reader.space(position)
    if reader.char(start) not in ("{", "[") or not reader.begins(start):
        return None
    head = reader.match(weak.compiled(reader, _PLAIN_HEAD), start)
    if head is None or _LLAMA.match(head[0]):
        return None
    found = _read_values(reader, head)
    if found is None:
        return None
    surplus = reader.match(_SURPLUS, found.end)
    end = surplus.end() if surplus is not None and surplus[0].strip() else found.end
    if not weak.is_whole(reader, start, end):
        return None
    plain = reader.char(start) == "[" and not found.enveloped
    malformed = not found.canonical or end > found.end
    return Found(_ARRAY if plain else _ENVELOPE, position, end, tuple(found.calls), "weak", malformed)


def _read_fenced(reader: Reader, fence: Match) -> Reading:
    head = reader.match(weak.compiled(reader, _PLAIN_HEAD), fence.end())
    if head is None:
        return None
    found = _read_values(reader, head, fenced=True)
    if found is None:
        return None
    end = found.end
    if closer := reader.match(_FENCE_END, end):
        end = closer.end()
    elif not reader.ended(reader.space(end)):
        return None
    malformed = not found.canonical or closer is None or "json" not in fence[0]
    return Found(_FENCED, fence.start(), end, tuple(found.calls), "weak", malformed)


def _read_values(reader: Reader, head: Match, *, fenced: bool = False) -> _Values | None:
    """The values from a position on; None unless each of them is a call, or as much as there is of one."""
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
        gap = reader.match(_BETWEEN, decoded.end)
        at = gap.end() if gap is not None else decoded.end
    return found


def _read_damaged(reader: Reader, at: int, head: Match, found: _Values, *, fenced: bool) -> _Values | None:
    if not fenced and at < reader.dead.get(_ARRAY, 0):
        return None
    stop = reader.next(_TICKS, at) if fenced else None
    end = stop.start() if stop is not None else reader.size
    if not fenced:
        reader.dead[_ARRAY] = end
    repaired = reader.repair(at, end)
    found.canonical = False
    if repaired is not None:
        depths = [depth for _, depth in _leaves(repaired.value)]
        whole = stop is not None or repaired.missing <= (depths[-1] if depths else 0)
        if whole and _add(reader, repaired.value, found):
            found.end = repaired.end
            return found
    if stop is not None or at != head.start() or _is_broken(reader, at):
        return None
    name = weak.called(reader, head[0])
    if name is None:
        return None
    found.calls.append(reader.call(name, None, complete=False))
    found.end = reader.size
    return found


def _is_broken(reader: Reader, at: int) -> bool:
    """Whether a value cannot be read for another reason than that the text ends in it."""
    return reader.json(at).end < reader.size


def _add(reader: Reader, value: Json, found: _Values) -> bool:
    leaves = list(_leaves(value))
    for leaf, _ in leaves:
        calls, canonical = calls_of(reader, leaf)
        if len(calls) != 1 or not _counts(reader, calls[0]):
            return False
        found.calls += calls
        found.canonical &= canonical
        found.enveloped |= isinstance(leaf, dict) and (
            leaf.get("type") in _TYPES or isinstance(leaf.get("function"), dict)
        )
    found.enveloped |= any(depth > 2 for _, depth in leaves)
    return bool(leaves)


def _counts(reader: Reader, call: NativeCall) -> bool:
    return weak.fits(reader.tools.get(call.name), call.arguments)


def _leaves(value: Json, depth: int = 0) -> Iterator[tuple[Json, int]]:
    """The objects that should be calls, and how many brackets are open inside each."""
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth + 1)
        return
    wrapper = next((key for key in _WRAPPERS if key in value), None) if isinstance(value, dict) else None
    if isinstance(value, dict) and wrapper is not None and depth < _DEEPEST and _says_nothing_else(value, wrapper):
        yield from _leaves(value[wrapper], depth + 1)
    else:
        inner = isinstance(value, dict) and isinstance(value.get("function"), dict)
        yield value, depth + 1 + inner


def _says_nothing_else(value: dict[str, Json], wrapper: str) -> bool:
    """Whether nothing that was meant for a reader stands beside the calls."""
    return not any(item for key, item in value.items() if key != wrapper and key not in _BESIDE)


_FENCE_OPENER: Opener = ("```", Run("`", 0, 5), Run(r" \t", 0, 2), either(*_LANGUAGES, ()), SPACES, either("{", "["))

FAMILY = Family(
    "bare_json",
    openers=(
        (TEXT_START, SPACES, "[", SPACES, "{"),
        (TEXT_START, SPACES, "{", SPACES, either('"', "'")),
        _FENCE_OPENER,
    ),
    read=_read,
    speakers={_ARRAY: frozenset({"xlam", "hammer", "arctic"}), _ENVELOPE: frozenset(), _FENCED: frozenset()},
)
