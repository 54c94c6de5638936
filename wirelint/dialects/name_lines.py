"""Messages that begin with a line that names the tool: Functionary's recipients, GLM 4 and older."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.dialects.llama import code_arguments, is_code
from wirelint.dialects.python_calls import around_names, fits, read_call
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, NativeCall, Reading

_FUNCTIONARY = table(__name__, "functionary")


_NEXT = r"(?<!>)>>>[ \t]{0,4}"
_AFTER_NAME = r"[ \t]{0,4}\r?\n\s{0,8}(?=\{)"
_AFTER_PYTHON = r"[ \t]{0,4}\r?\n"
_PYTHON = ("python",)


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
    if reader.resolve(name) in _PYTHON and is_code(code := reader.value(at, end).strip()):
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
    before = f"(?:{_NEXT})?" if first else _NEXT
    names = tuple(sorted(reader.tools))
    if first and reader.match(_FUNCTIONARY.to_all, at):
        return _read_all(reader, position, at, names)
    if header := reader.match(around_names(names, before, _AFTER_NAME), at):
        return _read_call(reader, position, header, names)
    if "python" in reader.tools and (header := reader.match(around_names(_PYTHON, before, _AFTER_PYTHON), at)):
        return _read_code(reader, position, header)
    return None


def _read_all(reader: Reader, position: int, at: int, names: tuple[str, ...]) -> Reading:
    """Read the recipient of the text before the calls; an ordinary word if no call comes."""
    if reader.next(around_names(names, _NEXT, _AFTER_PYTHON), at) is None:
        return None
    to_all = reader.match(_FUNCTIONARY.to_all, at)
    end = to_all.end() if to_all is not None else at
    return reader.block("functionary_v3_2", position, end, (), "weak", malformed=False)


def _read_call(reader: Reader, position: int, header: Match, names: tuple[str, ...]) -> Reading:
    if position < reader.dead.get("functionary_v3_2", 0):
        return None
    decoded = reader.json(header.end())
    if decoded.failed:
        repaired = reader.repair(header.end(), reader.size)
        reader.dead["functionary_v3_2"] = reader.size
        if repaired is None or repaired.missing:
            return _read_cut(reader, position, header)
        decoded = repaired
    call = reader.call(header["name"], decoded.value, complete=True)
    reader.dead["functionary_v3_2"] = decoded.end
    if not (call.complete and fits(reader, call) and _ends_stretch(reader, decoded.end, names)):
        return None
    return reader.block("functionary_v3_2", position, decoded.end, (call,), "weak", not decoded.healthy)


def _ends_stretch(reader: Reader, end: int, names: tuple[str, ...]) -> bool:
    """Return True if another recipient follows, or nothing. GLM-4 has the same lines, with its own tokens after them."""
    if reader.match(around_names(names, rf"\s{{0,4}}{_NEXT}", _AFTER_PYTHON), end):
        return True
    return reader.match(_FUNCTIONARY.token_of_glm, end) is None and reader.concludes(end)


def _read_cut(reader: Reader, position: int, header: Match) -> Reading:
    """Read a call if the text ends in its JSON."""
    if reader.match(_FUNCTIONARY.cut_body, header.end()) is None:
        return None
    call = reader.call(header["name"], None, complete=False)
    return reader.block("functionary_v3_2", position, reader.size, (call,), "weak", malformed=True)


def _read_code(reader: Reader, position: int, header: Match) -> Reading:
    """Read the rest of the message as code."""
    at = reader.space(header.end())
    if reader.ended(at) or position < reader.dead.get(_PYTHON, 0):
        return None
    reader.dead[_PYTHON] = reader.size
    reader.ended(reader.size)
    code = reader.value(at, reader.size).rstrip()
    call = reader.call("python", code_arguments(reader, "python", code), complete=True)
    if not is_code(code) or not fits(reader, call):
        return None
    return reader.block("functionary_v3_2", position, reader.size, (call,), "weak", malformed=False)


# -- chatglm -----------------------------------------------------------------------------------------------------------

_CHATGLM = table(__name__, "chatglm")


_BEFORE_JSON = r"[ \t]{0,4}\r?\n\s{0,8}(?=\{)"
_BEFORE_CODE = r"[ \t]{0,4}\r?\n\s{0,8}`{3}(?:python)?[ \t]{0,4}\r?\n\s{0,8}(?=tool_call\()"


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
    names = tuple(sorted(reader.tools))
    at = start if token is not None else reader.space(position)
    while header := _header(reader, at, names):
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


def _header(reader: Reader, at: int, names: tuple[str, ...]) -> Match | None:
    return reader.match(around_names(names, "", _BEFORE_JSON), at) or reader.match(
        around_names(names, "", _BEFORE_CODE), at
    )


def _read_glm_line(reader: Reader, header: Match, turn: _Turn) -> bool:
    """Read one call; False if it is none, or cut off."""
    if reader.char(header.end()) != "{":
        return _read_glm_code(reader, header, turn)
    decoded = reader.json(header.end())
    if decoded.failed:
        repaired = reader.repair(header.end(), reader.size)
        if repaired is None or repaired.missing:
            if turn.certain:
                turn.calls.append(reader.call(header["name"], None, complete=False))
            turn.end, turn.malformed = reader.size, True
            return False
        decoded = repaired
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
