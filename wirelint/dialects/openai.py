"""OpenAI's Harmony, and functions addressed in plain text."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.dialects import jsontext, weak
from wirelint.dialects.json_calls import Keys, calls_of
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Found, NativeCall, Reading, Tier
from wirelint.model import Json

_HARMONY = table(__name__, "harmony")
_FARTHEST = 1 << 15
_PEOPLE = frozenset({"user", "assistant", "all", "self", "system", "developer"})
_PARALLEL = "multi_tool_use.parallel"
_USES = Keys("recipient_name", "parameters")


@dataclass(slots=True)
class _Body:
    """The arguments of a message, and whether they are whole."""

    end: int
    arguments: Json = None
    complete: bool = False
    malformed: bool = False


def read_harmony(reader: Reader, position: int) -> Reading:
    header = reader.match(_HARMONY.header, position) or reader.match(_HARMONY.plain_header, position)
    if header is not None and _goes_on(reader, header):
        return None
    if header is not None:
        return None if header["xml"] else _read_message(reader, header)
    return _read_stripped(reader, position)


def _goes_on(reader: Reader, header: Match) -> bool:
    """Return True if more of a header may come: its name is not looked up before."""
    return reader.ended(header.end()) and not reader.over


def _read_message(reader: Reader, header: Match) -> Reading:
    groups = header.groupdict()
    recipient = groups.get("after") or groups["before"]
    if recipient is None:
        return _read_unaddressed(reader, header)
    if recipient in _PEOPLE:
        return None
    at = reader.space(header.end())
    if reader.match(_HARMONY.foreign, at):
        return None
    body = _read_body(reader, at, recipient, raw=groups["message"] is not None)
    odd = not groups["message"] or bool(groups.get("again")) or not recipient.startswith("functions.")
    return _found(reader, _start(reader, header), body, recipient, odd=odd)


def _read_unaddressed(reader: Reader, header: Match) -> Reading:
    """Read arguments without a recipient: the closer of calls, and a single tool that they fit, decide."""
    at = reader.space(header.end())
    if not header["message"] or reader.char(at) != "{":
        return None
    decoded = reader.json(at)
    closer = reader.match(_HARMONY.closer, decoded.end) if not decoded.failed else None
    if closer is None or closer["token"] != "call" or not isinstance(decoded.value, dict):
        return None
    name = weak.infer(reader, decoded.value)
    if name is None:
        return None
    call = reader.call(name, decoded.value, complete=True)
    return reader.block("harmony", _start(reader, header), closer.end(), (call,), "sentinel", malformed=True)


def _without_type(reader: Reader, written: str) -> str:
    """Return the recipient without a type glued to it (`to=functions.lookupjson`), if that makes it a declared tool."""
    whole = _HARMONY.last_type.sub("", written)
    known = reader.resolve(written) in reader.tools or reader.resolve(whole) not in reader.tools
    return written if known else whole


def _read_stripped(reader: Reader, position: int) -> Reading:
    """Read what is left if the server has taken the tokens out."""
    header = reader.match(_HARMONY.stripped, position)
    if header is None or _goes_on(reader, header):
        return None
    glued = header["channel"] is None
    before = reader.shadow[max(reader.floor, position - 32) : position]
    if glued and _HARMONY.glued.search(before) is None:
        return None
    at = reader.space(header.end())
    if reader.char(at) != "{":
        return None
    recipient = _without_type(reader, header["before"])
    body = _read_body(reader, at, recipient, raw=False)
    if body.arguments is None and recipient != _PARALLEL and reader.tool(recipient) is None:
        return None
    body.complete = body.complete and not glued
    found = _found(reader, position, body, recipient, odd=True)
    return found._replace(tier="generic") if isinstance(found, Found) else found


def _start(reader: Reader, header: Match) -> int:
    """Return the start of the message. `<|start|>assistant` after thinking belongs to the end of the thinking."""
    start = header.start()
    before = reader.shadow[max(reader.floor, start - _FARTHEST) : start].rstrip()
    if not header[0].startswith("<|start|>") or not before.endswith("<|end|>"):
        return start
    message = before.rfind("<|message|>")
    channel = reader.shadow.find("<|channel|>", start, header.end())
    thought = message >= 0 and _HARMONY.analysis.search(before, max(message - 32, 0), message) is not None
    return channel if thought and channel >= 0 and header.groupdict()["before"] is None else start


def _found(reader: Reader, start: int, body: _Body, recipient: str, *, odd: bool) -> Reading:
    if recipient == _PARALLEL:
        uses = body.arguments.get("tool_uses") if isinstance(body.arguments, dict) else None
        calls = tuple(calls_of(reader, uses, _USES)[0])
        odd = True
    else:
        calls = (reader.call(recipient, body.arguments, complete=body.complete),)
    return reader.block("harmony", start, body.end, calls, "sentinel", odd or body.malformed)


def _read_body(reader: Reader, at: int, recipient: str, *, raw: bool) -> _Body:
    """Read arguments as JSON; or text between `<|message|>` and a closer, for a tool that takes text."""
    body = _Body(at, malformed=True)
    fence = reader.match(_HARMONY.fence, at)
    if fence is not None or reader.char(at) in ("{", '"'):
        _read_json(reader, fence.end() if fence is not None else at, body)
        if fence is not None:
            fence_end = reader.match(_HARMONY.fence_end, body.end)
            body.end, body.malformed = fence_end.end() if fence_end is not None else body.end, True
    elif reader.ended(at):
        return body
    elif raw:
        stop = reader.next(_HARMONY.stop, at)
        body.end = stop.start() if stop is not None else reader.size
        text = reader.value(at, body.end)
        body.arguments = weak.bound(reader.tool(recipient), text) if text else {}
        body.complete = stop is not None and body.arguments is not None
        body.malformed = not text or body.arguments is None
    else:
        return body
    if closer := reader.match(_HARMONY.closer, body.end):
        body.end = closer.end()
        body.malformed |= closer["token"] == "return" or bool(closer["surplus"].strip())
    else:
        body.malformed = True
    return body


def _read_json(reader: Reader, at: int, body: _Body) -> None:
    decoded = reader.json(at)
    if not decoded.failed:
        body.end, body.complete = decoded.end, True
        body.malformed = not (decoded.healthy and isinstance(decoded.value, dict))
        body.arguments = weak.read_object(decoded.value) if isinstance(decoded.value, str) else decoded.value
        return
    stop = reader.next(_HARMONY.stop, at)
    body.end = stop.start() if stop is not None else reader.size
    if stop is None:
        if at < reader.dead.get("harmony", 0):
            return
        reader.dead["harmony"] = reader.size
    repaired = reader.repair(at, body.end)
    if repaired is not None and (stop is not None or not repaired.missing) and jsontext.writable(repaired.value):
        body.arguments, body.complete = repaired.value, True
        body.end = repaired.end


# -- functions_leak ----------------------------------------------------------------------------------------------------

_FUNCTIONS = table(__name__, "functions_leak")


@dataclass(slots=True)
class _Payload:
    """A JSON value, or as much as there is of it. `cut`: the text ends in it."""

    value: Json
    end: int
    healthy: bool
    cut: bool = False


def read_functions_leak(reader: Reader, position: int) -> Reading:
    if header := reader.match(_FUNCTIONS.header, position):
        return _read_addressed(reader, header)
    if parallel := reader.match(_FUNCTIONS.parallel, position):
        return _read_parallel(reader, parallel)
    if plugin := reader.match(_FUNCTIONS.plugin, position):
        return _read_plugin(reader, plugin)
    return _read_payload(reader, position)


def _read_addressed(reader: Reader, header: Match) -> Reading:
    if reader.ended(header.end()) and not reader.over:
        return None  # the name may go on
    name = header["name"]
    known = name is None or reader.tool(name) is not None
    gap = reader.match(_FUNCTIONS.junk if known else _FUNCTIONS.gap, header.end())
    start, at = header.start(), gap.end() if gap is not None else header.end()
    junk = gap is not None and bool(gap["junk"].strip())
    if reader.char(at) != "{":
        if junk or not (known and header["role"] and header["words"] and reader.ended(at)):
            return None
        calls = (reader.call(name, None, complete=False),) if name is not None else ()
        return reader.block(
            "openai_functions_leak" if name else "multi_tool_use", start, at, calls, "generic", malformed=True
        )
    payload = _read_payload_json(reader, at)
    if payload is None or (payload.cut and not known):
        return None
    if junk and payload.cut:
        return None
    clean = not junk and _opens_line(reader, start)
    malformed = not (clean and payload.healthy and header["role"] == "assistant " and not header["colon"])
    if name is None:
        return _read_uses(reader, start, payload, complete=clean, canonical=False)
    call = reader.call(name, payload.value, complete=clean and not payload.cut)
    return reader.block("openai_functions_leak", start, payload.end, (call,), "generic", malformed or payload.cut)


def _read_parallel(reader: Reader, parallel: Match) -> Reading:
    at = parallel.end()
    if reader.char(at) not in ("{", "[") or (reader.char(at) == "[") != (parallel["key"] is not None):
        return None
    payload = _read_payload_json(reader, at)
    if payload is None:
        return None
    canonical = parallel["paren"] is not None and not parallel["key"] and not parallel["words"]
    if parallel["paren"]:
        if paren := reader.match(_FUNCTIONS.paren, payload.end):
            payload.end = paren.end()
        else:
            canonical = False
    return _read_uses(reader, parallel.start(), payload, complete=True, canonical=canonical)


def _read_payload(reader: Reader, position: int) -> Reading:
    """Read `{"tool_uses": […]}` as the whole message."""
    start = reader.space(position)
    if not reader.tools or not reader.begins(start) or reader.match(_FUNCTIONS.payload, start) is None:
        return None
    payload = _read_payload_json(reader, start)
    if payload is None or not (payload.cut or weak.is_whole(reader, start, payload.end)):
        return None
    found = _read_uses(reader, position, payload, complete=True, canonical=False, tier="weak")
    if not isinstance(found, Found) or any(call.name not in reader.tools for call in found.calls):
        return None
    fitting = payload.cut or all(weak.fits(reader.tools[call.name], call.arguments) for call in found.calls)
    return found if fitting else None


def _read_uses(
    reader: Reader, start: int, payload: _Payload, *, complete: bool, canonical: bool, tier: Tier = "generic"
) -> Reading:
    uses = payload.value.get("tool_uses") if isinstance(payload.value, dict) else payload.value
    calls, proper = calls_of(reader, uses, _USES)
    if payload.cut and not calls:
        return reader.block("multi_tool_use", start, payload.end, (), tier, malformed=True)
    if not calls or not isinstance(uses, list) or len(calls) != len(uses):
        return None
    if not complete or payload.cut:
        calls = [NativeCall(call.name, call.arguments, call.id, complete=False) for call in calls]
    return reader.block(
        "multi_tool_use", start, payload.end, calls, tier, not (canonical and proper and payload.healthy)
    )


def _read_plugin(reader: Reader, plugin: Match) -> Reading:
    tool = reader.tool(plugin["name"])
    if tool is None or reader.char(plugin.end()) != "{" or not _opens_line(reader, plugin.start()):
        return None
    payload = _read_payload_json(reader, plugin.end())
    if payload is None or not (payload.cut or weak.fits(tool, payload.value)):
        return None
    start = plugin.start()
    if payload.cut:
        call = reader.call(tool.name, None, complete=False)
        return reader.block("openai_functions_leak", start, payload.end, (call,), "generic", malformed=True)
    paren = reader.match(_FUNCTIONS.paren, payload.end)
    if paren is None:
        return None
    rest = reader.match(_FUNCTIONS.line_rest, paren.end())
    if rest is None or not (rest["end"] or reader.ended(rest.end())):
        return None
    call = reader.call(tool.name, payload.value, complete=True)
    return reader.block("openai_functions_leak", start, paren.end(), (call,), "generic", malformed=True)


def _read_payload_json(reader: Reader, at: int) -> _Payload | None:
    if reader.match(_FUNCTIONS.starts, at) is None and not reader.ended(reader.space(at + 1)):
        return None
    decoded = reader.json(at)
    if not decoded.failed:
        return _Payload(decoded.value, decoded.end, decoded.healthy)
    if at < reader.dead.get("openai_functions_leak", 0):
        return None
    reader.dead["openai_functions_leak"] = reader.size
    repaired = reader.repair(at, reader.size)
    if repaired is not None and not repaired.missing:
        return _Payload(repaired.value, repaired.end, healthy=False)
    return _Payload(None, reader.size, healthy=False, cut=True) if decoded.end >= reader.size else None


def _opens_line(reader: Reader, position: int) -> bool:
    return _FUNCTIONS.line_before.search(reader.shadow[max(position - 16, 0) : position]) is not None or position == 0
