"""OpenAI's Harmony, and functions addressed in plain text."""

from __future__ import annotations

from dataclasses import replace

from wirelint.dialects import declared, jsontext
from wirelint.dialects.json_blocks import Arguments, Keys, calls_of, whole_value
from wirelint.dialects.reader import Match, Reader, Reading, Tier
from wirelint.dialects.tables import table

_HARMONY = table(__name__, "harmony")
_FARTHEST = 1 << 15
_PEOPLE = frozenset({"user", "assistant", "all", "self", "system", "developer"})
_PARALLEL = "multi_tool_use.parallel"
_USES = Keys("recipient_name", "parameters")


def read_harmony(reader: Reader, position: int) -> Reading:
    if not (reader.over or _may_address(reader, position)):
        return None
    header = reader.match(_HARMONY.header, position) or reader.match(_HARMONY.plain_header, position)
    if header is None:
        return _read_stripped(reader, position)
    return None if _may_continue(reader, header) or header["xml"] else _read_message(reader, header)


def _may_address(reader: Reader, position: int) -> bool:
    """Return False for a `to=` that begins no call of a declared tool: `(to=https://…` is nothing to wait for."""
    recipient = _HARMONY.recipient.match(reader.shadow, position)
    if recipient is None or _glued(reader, position) is not None:
        return True
    name, known = recipient["name"], (*reader.tools, "functions.", _PARALLEL)
    return any(one.startswith(name) or name.startswith(one) for one in known)


def _glued(reader: Reader, position: int) -> Match | None:
    """Return the name of a channel before an offset, glued to the text before it."""
    return _HARMONY.glued.search(reader.shadow[max(reader.floor, position - 32) : position])


def _may_continue(reader: Reader, header: Match) -> bool:
    """Return True if more of a header may come: its name is not looked up before."""
    return reader.ended(header.end()) and not reader.over


def _read_message(reader: Reader, header: Match) -> Reading:
    groups = header.groupdict()
    recipient = groups.get("after") or groups["before"]
    if recipient in _PEOPLE:
        return None
    at = reader.space(header.end())
    if recipient is not None:
        if reader.match(_HARMONY.foreign, at):
            return None
        body = _read_body(reader, at, recipient, raw=groups["message"] is not None)
        return _found(reader, _start(reader, header), body, recipient)
    # Without a recipient the closer of calls, and a single tool that the arguments fit, decide.
    if not header["message"] or reader.char(at) != "{":
        return None
    decoded = reader.json(at)
    closer = reader.match(_HARMONY.closer, decoded.end) if not decoded.failed else None
    if closer is None or closer["token"] != "call" or not isinstance(decoded.value, dict):
        return None
    name = declared.infer(reader.tools.values(), decoded.value)
    if name is None:
        return None
    call = reader.call(name, decoded.value, complete=True)
    return reader.block("harmony", _start(reader, header), closer.end(), (call,))


def _without_type(reader: Reader, written: str) -> str:
    """Return the recipient without a glued channel or type (`to=functions.lookupjson`), if a declared tool is left."""
    whole = _HARMONY.last_type.sub("", written)
    known = reader.resolve(written) in reader.tools or reader.resolve(whole) not in reader.tools
    return written if known else whole


def _read_stripped(reader: Reader, position: int) -> Reading:
    """Read a message whose tokens the server has removed."""
    header = reader.match(_HARMONY.stripped, position)
    if header is None or _may_continue(reader, header):
        return None
    glued = _glued(reader, position) if header["channel"] is None else None
    if header["channel"] is None and glued is None:
        return None
    at = reader.space(header.end())
    if reader.char(at) != "{":
        return None
    recipient = _without_type(reader, header["before"])
    body = _read_body(reader, at, recipient, raw=False)
    if body.value is None and recipient != _PARALLEL and reader.tool(recipient) is None:
        return None
    whole = body.complete and (glued is None or glued["role"] is not None)
    return _found(reader, position, body._replace(complete=whole), recipient, "generic")


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


def _found(reader: Reader, start: int, body: Arguments, recipient: str, tier: Tier = "sentinel") -> Reading:
    if recipient == _PARALLEL:
        uses = body.value.get("tool_uses") if isinstance(body.value, dict) else None
        calls = calls_of(reader, uses, _USES)[0]
    else:
        calls = [reader.call(recipient, body.value, complete=body.complete)]
    return reader.block("harmony", start, body.end, calls, tier)


def _read_body(reader: Reader, at: int, recipient: str, *, raw: bool) -> Arguments:
    """Read arguments as JSON; or text between `<|message|>` and a closer, for a tool that takes text."""
    fence = reader.match(_HARMONY.fence, at)
    if fence is not None or reader.char(at) in ("{", '"'):
        value, end, complete = _read_json(reader, fence.end() if fence is not None else at)
        end = end if fence is None else reader.after(_HARMONY.fence_end, end)
    elif reader.ended(at) or not raw:
        return Arguments(None, at, complete=False)
    else:
        stop = reader.next(_HARMONY.stop, at)
        end = reader.stop(stop)
        text = reader.value(at, end)
        value = declared.bind(reader.tool(recipient), text) if text else {}
        complete = stop is not None and value is not None
    return Arguments(value, reader.after(_HARMONY.closer, end), complete)


def _read_json(reader: Reader, at: int) -> Arguments:
    decoded = reader.json(at)
    if not decoded.failed:
        value = whole_value(decoded.value) if isinstance(decoded.value, str) else decoded.value
        is_text = isinstance(decoded.value, str) and not isinstance(value, dict)
        return Arguments(None if is_text else value, decoded.end, complete=True)
    stop = reader.next(_HARMONY.stop, at)
    end = reader.stop(stop)
    unread = Arguments(None, end, complete=False)
    if stop is None:
        if at < reader.dead.get("harmony", 0):
            return unread
        reader.dead["harmony"] = reader.size
    repaired = reader.repair(at, end)
    if repaired is None or (stop is None and repaired.missing) or not jsontext.writable(repaired.value):
        return unread
    return Arguments(repaired.value, repaired.end, complete=True)


_FUNCTIONS = table(__name__, "functions_leak")


def read_functions_leak(reader: Reader, position: int) -> Reading:
    if header := reader.match(_FUNCTIONS.header, position):
        return _read_addressed(reader, header)
    if plugin := reader.match(_FUNCTIONS.plugin, position):
        tool = reader.tool(plugin["name"])
        if tool is None or reader.char(plugin.end()) != "{" or not _opens_line(reader, plugin.start()):
            return None
        payload = _read_payload_json(reader, plugin.end())
        if payload is None or (payload.complete and not declared.fits(tool, payload.value)):
            return None
        call = reader.call(tool.name, payload.value, complete=payload.complete)
        end = reader.after(_FUNCTIONS.paren, payload.end) if payload.complete else payload.end
        if payload.complete:
            rest = reader.match(_FUNCTIONS.line_rest, end) if end > payload.end else None
            if rest is None or not (rest["end"] or reader.ended(rest.end())):
                return None
        return reader.block("openai_functions_leak", plugin.start(), end, (call,), "generic")
    parallel = reader.match(_FUNCTIONS.parallel, position)
    if parallel is None:
        return _read_payload(reader, position)
    at = parallel.end()
    if reader.char(at) not in ("{", "[") or (reader.char(at) == "[") != (parallel["key"] is not None):
        return None
    payload = _read_payload_json(reader, at)
    if payload is None:
        return None
    if parallel["paren"]:
        payload = payload._replace(end=reader.after(_FUNCTIONS.paren, payload.end))
    return _read_uses(reader, position, payload)


def _read_addressed(reader: Reader, header: Match) -> Reading:
    if reader.ended(header.end()) and not reader.over:
        return None  # the name may go on
    name = header["name"] and _without_type(reader, header["name"])
    known = name is None or reader.tool(name) is not None
    gap = reader.match(_FUNCTIONS.junk if known else _FUNCTIONS.gap, header.end())
    start, at = header.start(), gap.end() if gap is not None else header.end()
    junk = gap is not None and bool(gap["junk"].strip())
    if reader.char(at) != "{":
        if junk or not (known and header["role"] and header["words"] and reader.ended(at)):
            return None
        calls = (reader.call(name, None, complete=False),) if name is not None else ()
        return reader.block("openai_functions_leak" if name else "multi_tool_use", start, at, calls, "generic")
    payload = _read_payload_json(reader, at)
    if payload is None or (not payload.complete and (not known or junk)):
        return None
    clean = not junk and (header["role"] is not None or _opens_line(reader, start))
    if name is None:
        return _read_uses(reader, start, payload, complete=clean)
    call = reader.call(name, payload.value, complete=clean and payload.complete)
    return reader.block("openai_functions_leak", start, payload.end, (call,), "generic")


def _read_payload(reader: Reader, position: int) -> Reading:
    """Read `{"tool_uses": […]}` as the whole message."""
    start = reader.space(position)
    if not reader.tools or not reader.begins(start) or reader.match(_FUNCTIONS.payload, start) is None:
        return None
    payload = _read_payload_json(reader, start)
    if payload is None or not (not payload.complete or reader.is_whole(start, payload.end)):
        return None
    found = _read_uses(reader, position, payload, tier="weak")
    if found is None or not found.dialect or any(call.name not in reader.tools for call in found.calls):
        return None
    return found if not payload.complete or all(map(reader.fits, found.calls)) else None


def _read_uses(
    reader: Reader, start: int, payload: Arguments, *, complete: bool = True, tier: Tier = "generic"
) -> Reading:
    uses = payload.value.get("tool_uses") if isinstance(payload.value, dict) else payload.value
    calls, _ = calls_of(reader, uses, _USES)
    if not payload.complete and not calls:
        return reader.block("multi_tool_use", start, payload.end, (), tier)
    if not calls or not isinstance(uses, list) or len(calls) != len(uses):
        return None
    if not complete or not payload.complete:
        calls = [replace(call, complete=False) for call in calls]
    return reader.block("multi_tool_use", start, payload.end, calls, tier)


def _read_payload_json(reader: Reader, at: int) -> Arguments | None:
    if reader.match(_FUNCTIONS.starts, at) is None and not reader.ended(reader.space(at + 1)):
        return None
    decoded = reader.json(at)
    if not decoded.failed:
        return Arguments(decoded.value, decoded.end, complete=True)
    if at < reader.dead.get("openai_functions_leak", 0):
        return None
    reader.dead["openai_functions_leak"] = reader.size
    repaired = reader.repair(at, reader.size)
    if repaired is not None and not repaired.missing:
        return Arguments(repaired.value, repaired.end, complete=True)
    return Arguments(None, reader.size, complete=False) if decoded.end >= reader.size else None


def _opens_line(reader: Reader, position: int) -> bool:
    return _FUNCTIONS.line_before.search(reader.shadow[max(position - 16, 0) : position]) is not None or position == 0
