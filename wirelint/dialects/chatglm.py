"""The lines of GLM 4 and older: a tool's name, and its arguments on the next.

Lineage: ChatGLM3, with a call of `tool_call` in a Python fence → GLM-4-0414 and GLM-Z1, with JSON → GLM 4.5, whose tags are
another family. The turn ends with a token of GLM's; between calls stands that of the assistant.

    lookup
    {"city": "Graz"}<|assistant|>ping
    {}<|observation|>

    lookup
    ```python
    tool_call(city='Graz')
    ```

Types come from the JSON or from Python's literals. No ids. The shape is weak: it takes a declared tool, parameters of its
own, and a message that is nothing else, other than text up to an assistant's token. Without any of GLM's tokens the first
form is Functionary's too, which reads it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.openers import NAME, SPACES, TEXT_START, Opener, Run, either
from wirelint.dialects.pythoncalls import around_names, fits, read_call
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_DIALECT = "glm4_0414"
_ASSISTANT = re.compile(r"\s{0,4}<\|assistant\|>\s{0,4}")
_TOKEN = re.compile(r"\s{0,4}<\|(?:observation|user|system)\|>")
_BEFORE_JSON = r"[ \t]{0,4}\r?\n\s{0,8}(?=\{)"
_BEFORE_CODE = r"[ \t]{0,4}\r?\n\s{0,8}`{3}(?:python)?[ \t]{0,4}\r?\n\s{0,8}(?=tool_call\()"
_FENCE_END = re.compile(r"\s{0,8}`{3}")


@dataclass(slots=True)
class _Turn:
    """The calls of a message, as far as they have been read. `told`: something in it is GLM's alone."""

    end: int
    told: bool
    malformed: bool = False
    calls: list[NativeCall] = field(default_factory=list)


def _read(reader: Reader, position: int) -> Reading:
    token = reader.match(_ASSISTANT, position) if reader.tools else None
    if not reader.tools or (token is None and not reader.begins(position)) or position < reader.dead.get(_DIALECT, 0):
        return None
    start = token.end() if token is not None else position
    turn = _Turn(start, told=token is not None)
    names = tuple(sorted(reader.tools))
    at = start if token is not None else reader.space(position)
    while header := _header(reader, at, names):
        if not _read_line(reader, header, turn):
            break
        token = reader.match(_ASSISTANT, turn.end)
        if token is None:
            break
        at = token.end()
    if not turn.calls or not _ends(reader, turn):
        reader.dead[_DIALECT] = turn.end
        return None
    return Found(_DIALECT, start, turn.end, tuple(turn.calls), "weak", turn.malformed)


def _header(reader: Reader, at: int, names: tuple[str, ...]) -> Match | None:
    return reader.match(around_names(names, "", _BEFORE_JSON), at) or reader.match(
        around_names(names, "", _BEFORE_CODE), at
    )


def _read_line(reader: Reader, header: Match, turn: _Turn) -> bool:
    """One call; False when it is none, or cut off."""
    if reader.char(header.end()) != "{":
        return _read_code(reader, header, turn)
    decoded = reader.json(header.end())
    if decoded.failed:
        repaired = reader.repair(header.end(), reader.size)
        if repaired is None or repaired.missing:
            if turn.told:
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


def _read_code(reader: Reader, header: Match, turn: _Turn) -> bool:
    read = read_call(reader, header.end())
    if read is None:
        return False
    call = read.native(reader, header["name"])
    turn.end = read.end
    fence = reader.match(_FENCE_END, read.end)
    if call.complete and (fence is None or not fits(reader, call)):
        return False
    turn.end = fence.end() if fence is not None else turn.end
    turn.told = True
    turn.malformed |= read.malformed or not call.complete
    turn.calls.append(call)
    return call.complete


def _ends(reader: Reader, turn: _Turn) -> bool:
    """Whether the message ends here: with the text, or with a token after which others speak."""
    if reader.match(_TOKEN, turn.end):
        return True
    if reader.match(_ASSISTANT, turn.end):
        turn.told = True
    return reader.concludes(turn.end) and turn.told


_NAME = Run("A-Za-z0-9_.:/-", 0, 64)
_LINE_END = either("\n", "\r\n")
_CODE: Opener = ("```", either("python", ()), _LINE_END, SPACES, "tool_call(")

FAMILY = Family(
    "chatglm",
    rank=4,
    openers=(
        (TEXT_START, SPACES, NAME, _LINE_END, SPACES, either("{", _CODE)),
        ("<|assistant|>", SPACES, _NAME, _LINE_END, SPACES, either("{", _CODE)),
    ),
    read=_read,
    speakers={_DIALECT: frozenset({"glm"})},
)
