"""Messages that begin with a line that names the tool: Functionary's recipients, GLM 4 and older."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.dialects import weak
from wirelint.dialects.json_calls import decode_or_repair
from wirelint.dialects.llama import code_arguments, is_code
from wirelint.dialects.python_calls import fits, read_call
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Found, NativeCall, Reading

_FUNCTIONARY = table(__name__, "functionary")


def read_functionary(reader: Reader, position: int) -> Reading:
    if header := reader.match(_FUNCTIONARY.header, position):
        return _read_section(reader, header)
    if token := reader.match(_FUNCTIONARY.token, position):
        return reader.block("functionary_v2", position, token.end(), (), "sentinel", malformed=True)
    return _read_line(reader, position) if reader.tools else None


# -- v2 ----------------------------------------------------------------------------------------------------------------


def _read_section(reader: Reader, header: Match) -> Reading:
    at = reader.space(header.end())
    if header["name"] == "all":
        return reader.block("functionary_v2", header.start(), header.end(), (), "sentinel", malformed=False)
    if header["content"] is None and reader.char(at) != "{":
        return reader.block("functionary_v2", header.start(), header.end(), (), "sentinel", malformed=True)
    call, end, malformed = _read_body(reader, header["name"], at)
    stop = reader.match(_FUNCTIONARY.stop, reader.space(end))
    end = stop.end() if stop is not None else end
    malformed |= stop is None or header["content"] is None
    return reader.block("functionary_v2", header.start(), end, (call,), "sentinel", malformed)


def _read_body(reader: Reader, name: str, at: int) -> tuple[NativeCall, int, bool]:
    """Return the call of a section, the end of its body, and whether it is damaged."""
    decoded = reader.json(at)
    if not decoded.failed:
        return reader.call(name, decoded.value, complete=True), decoded.end, not decoded.healthy
    stop = reader.next(_FUNCTIONARY.next_header, at)
    end = stop.start() if stop is not None else reader.size
    if reader.resolve(name) == "python" and is_code(code := reader.value(at, end).strip()):
        return reader.call(name, code_arguments(reader, name, code), complete=stop is not None), end, False
    repaired = reader.repair(at, end)
    if repaired is None or (repaired.missing and stop is None):
        return reader.call(name, None, complete=False), end, True
    return reader.call(name, repaired.value, complete=True), end, True


# -- v3.2 --------------------------------------------------------------------------------------------------------------


def _read_line(reader: Reader, position: int) -> Reading:
    """Read a recipient and its call, at the start of the message or after `>>>`."""
    first = reader.begins(position)
    at = reader.space(position) if first else position
    if first and (to_all := reader.match(_FUNCTIONARY.to_all, at)):
        # The recipient of the text before the calls; an ordinary word if no call comes.
        if reader.next(weak.compiled(reader, _FUNCTIONARY.named["recipient"]), at) is None:
            return None
        return Found("functionary_v3_2", position, to_all.end(), (), "weak", malformed=False)
    if header := reader.match(weak.compiled(reader, _FUNCTIONARY.named["first" if first else "call"]), at):
        return _read_call(reader, position, header)
    python = _FUNCTIONARY.first_python if first else _FUNCTIONARY.python
    if "python" in reader.tools and (header := reader.match(python, at)):
        return _read_code(reader, position, header)
    return None


def _read_call(reader: Reader, position: int, header: Match) -> Reading:
    if position < reader.dead.get("functionary_v3_2", 0):
        return None
    decoded = decode_or_repair(reader, header.end())
    reader.dead["functionary_v3_2"] = decoded.end if decoded is not None else reader.size
    if decoded is None:
        if reader.match(_FUNCTIONARY.cut_body, header.end()) is None:
            return None
        call = reader.call(header["name"], None, complete=False)
        return Found("functionary_v3_2", position, reader.size, (call,), "weak", malformed=True)
    call = reader.call(header["name"], decoded.value, complete=True)
    if not (call.complete and fits(reader, call) and _ends_stretch(reader, decoded.end)):
        return None
    return reader.block("functionary_v3_2", position, decoded.end, (call,), "weak", not decoded.healthy)


def _ends_stretch(reader: Reader, end: int) -> bool:
    """Return True if another recipient follows, or nothing. GLM-4 has the same lines, with its own tokens after them."""
    if reader.match(weak.compiled(reader, _FUNCTIONARY.named["further"]), end):
        return True
    return reader.match(_FUNCTIONARY.token_of_glm, end) is None and reader.concludes(end)


def _read_code(reader: Reader, position: int, header: Match) -> Reading:
    """Read the rest of the message as code."""
    at = reader.space(header.end())
    if reader.ended(at) or position < reader.dead.get("python", 0):
        return None
    reader.dead["python"] = reader.size
    reader.ended(reader.size)
    code = reader.value(at, reader.size).rstrip()
    call = reader.call("python", code_arguments(reader, "python", code), complete=True)
    if not is_code(code) or not fits(reader, call):
        return None
    return reader.block("functionary_v3_2", position, reader.size, (call,), "weak", malformed=False)


# -- chatglm -----------------------------------------------------------------------------------------------------------

_CHATGLM = table(__name__, "chatglm")


@dataclass(slots=True)
class _Turn(Calls):
    """The calls of a message. `certain`: something in it is GLM's alone."""

    certain: bool = False


def read_chatglm(reader: Reader, position: int) -> Reading:
    token = reader.match(_CHATGLM.assistant, position) if reader.tools else None
    if (
        not reader.tools
        or (token is None and not reader.begins(position))
        or position < reader.dead.get("glm4_0414", 0)
    ):
        return None
    start = token.end() if token is not None else position
    turn = _Turn(start, certain=token is not None)
    json, code = (weak.compiled(reader, _CHATGLM.named[key]) for key in ("json", "code"))
    at = start if token is not None else reader.space(position)
    while header := reader.match(json, at) or reader.match(code, at):
        if not _read_glm_line(reader, header, turn):
            break
        token = reader.match(_CHATGLM.assistant, turn.end)
        if token is None:
            break
        at = token.end()
    if not turn.calls or not _ends(reader, turn):
        reader.dead["glm4_0414"] = turn.end
        return None
    return reader.block("glm4_0414", start, turn.end, turn.calls, "weak", turn.malformed)


def _read_glm_line(reader: Reader, header: Match, turn: _Turn) -> bool:
    """Read one call; False if it is none, or cut off."""
    if reader.char(header.end()) != "{":
        return _read_glm_code(reader, header, turn)
    decoded = decode_or_repair(reader, header.end())
    if decoded is None:
        if turn.certain:
            turn.calls.append(reader.call(header["name"], None, complete=False))
        turn.end, turn.malformed = reader.size, True
        return False
    call = reader.call(header["name"], decoded.value, complete=True)
    if not fits(reader, call):
        turn.end = decoded.end
        turn.calls.clear()
        return False
    turn.calls.append(call)
    turn.end = decoded.end
    turn.malformed |= not decoded.healthy
    return True


def _read_glm_code(reader: Reader, header: Match, turn: _Turn) -> bool:
    read = read_call(reader, header.end())
    if read is None:
        return False
    call = read.native(reader, header["name"])
    turn.end = read.end
    fence = reader.match(_CHATGLM.fence_end, read.end)
    if call.complete and (fence is None or not fits(reader, call)):
        return False
    turn.end = fence.end() if fence is not None else turn.end
    turn.certain = True
    turn.malformed |= read.malformed or not call.complete
    turn.calls.append(call)
    return call.complete


def _ends(reader: Reader, turn: _Turn) -> bool:
    """Return True if the message ends here: with the text, or with a token after which others speak."""
    if reader.match(_CHATGLM.token, turn.end):
        return True
    if reader.match(_CHATGLM.assistant, turn.end):
        turn.certain = True
    return reader.concludes(turn.end) and turn.certain
