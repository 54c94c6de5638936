"""InternLM's action tokens, around a JSON object or around code.

Lineage: InternLM2 (Shanghai AI Lab, 2024) → InternLM3 and Intern-S1.

    <|action_start|><|plugin|>
    {"name": "lookup", "parameters": {"city": "Graz"}}<|action_end|>

    <|action_start|><|interpreter|>
    ```python
    print(3)
    ```<|action_end|>

Types come from the JSON. No ids; calls follow each other. Parsers accept `arguments` for `parameters`; one of them writes
a blank between the two tokens. In the wild: the end token eaten as a stop token, one of the first two missing.
"""

from __future__ import annotations

import re

from wirelint.dialects import coercion
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import KEYS, Keys, close, read_calls
from wirelint.dialects.marked_json import compiled, token
from wirelint.dialects.openers import full_pattern
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_DIALECT = "internlm2"
_START, _END, _PLUGIN = token("action", "start"), token("action", "end"), token("plugin")
_KEYS = Keys("name", "parameters")

_OPENER = re.compile(
    rf"(?P<start>{full_pattern((_START,))}\s{{0,4}})?(?:(?P<plugin>{full_pattern((_PLUGIN,))})"
    rf"|(?P<code>{full_pattern((token('interpreter'),))})|(?=\{{))"
)
_CLOSER = compiled(_END)
_STARTER = compiled(_START)
_ARGUMENTS = re.compile(r'\{\s{0,8}"name"\s{0,4}:\s{0,4}"[\w.:/-]{1,128}"\s{0,4},\s{0,8}"arguments"')
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,10}[ \t]{0,8}\r?\n?")
_FENCED_END = re.compile(r"\s*`{3,}\s*\Z")
_FENCE_LINE = re.compile(r"\n[ \t]{0,3}`{3,}[ \t]*(?:\n|\Z)")
_LOOSE = re.compile(r"\|\||<\s|\s>|\|\s|\w\s")
_INTERPRETER = "interpreter"


def _read(reader: Reader, position: int) -> Reading:
    opener = reader.match(_OPENER, position)
    if opener is None:
        return None
    malformed = _is_loose(reader, opener)
    return _read_code(reader, opener, malformed) if opener["code"] else _read_plugin(reader, opener, malformed)


def _is_loose(reader: Reader, opener: Match) -> bool:
    written = reader.value(opener.start(), opener.end())
    named = opener["start"] and (opener["plugin"] or opener["code"])
    return not named or not written.isascii() or _LOOSE.search(written) is not None


def _read_plugin(reader: Reader, opener: Match, malformed: bool) -> Reading:
    at = reader.space(opener.end())
    if reader.char(at) == "`" and (fence := reader.match(_FENCE, at)):
        at, malformed = reader.space(fence.end()), True
    keys = KEYS if reader.match(_ARGUMENTS, at) else _KEYS
    found = read_calls(reader, at, _CLOSER, (_STARTER,), keys)
    if found is None:
        if not (opener["start"] and opener["plugin"]):
            return None
        closing = close(reader, opener.end(), _CLOSER)
        return Found(_DIALECT, opener.start(), closing.end, (), "sentinel", malformed=True)
    closing = close(reader, found.end, _CLOSER)
    if reader.stand_ins(found.calls):
        return Skip(closing.end)
    regular = found.canonical and found.values == 1 and not found.array and closing.closed and not closing.odd
    return Found(
        _DIALECT, opener.start(), closing.end, tuple(found.calls), "sentinel", malformed=malformed or not regular
    )


def _read_code(reader: Reader, opener: Match, malformed: bool) -> Reading:
    """Code for the interpreter: all that stands before the end token, without its fence."""
    at = reader.space(opener.end())
    fence = reader.match(_FENCE, at)
    start = fence.end() if fence is not None else at
    stop = reader.first((_CLOSER, _STARTER), start)
    closed = stop is not None and stop.re is _CLOSER
    code = reader.value(start, stop.start() if stop is not None else reader.size)
    fenced = (_FENCED_END if stop is not None else _FENCE_LINE).search(code) if fence is not None else None
    end = stop.start() if stop is not None else reader.size
    if stop is not None and closed:
        end = stop.end()
    elif fenced is not None:
        end = start + fenced.end()
    code = code[: fenced.start()] if fenced is not None else code.rstrip()
    # Without the end token a fence tells that nothing is missing.
    call = _call_with(reader, code, complete=closed or fenced is not None)
    return Found(_DIALECT, opener.start(), end, (call,), "sentinel", malformed or not closed or fenced is None)


def _call_with(reader: Reader, code: str, *, complete: bool) -> NativeCall:
    tool = reader.tool(_INTERPRETER)
    declared = list(coercion.properties_of(tool.schema)) if tool is not None else []
    key = declared[0] if len(declared) == 1 else "code"
    return reader.call(_INTERPRETER, {key: code}, complete=complete)


FAMILY = Family(
    "internlm",
    rank=1,
    openers=(_START, _PLUGIN),
    read=_read,
    speakers={_DIALECT: frozenset({"internlm"})},
)
