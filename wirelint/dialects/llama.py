"""Llama 3's bare JSON, its python tag, and its custom tag for each function."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from wirelint.dialects import coercion, python_calls, weak
from wirelint.dialects.json_calls import Keys, calls_of
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Found, NativeCall, Reading
from wirelint.model import Json

_LLAMA = table(__name__, "llama")
_KEYS = Keys(arguments="parameters")
_INTERPRETERS = ("code_interpreter", "python", "ipython")
_CODE_KEYS = ("code", "script", "source", "input", "query")
_ARGUMENT_KEYS = frozenset({"parameters", "arguments", "args", "input"})
_LONGEST_CODE = 100_000


@dataclass(slots=True)
class _Objects(Calls):
    """JSON calls joined by semicolons. `cut`: the text ends in the last call."""

    cut: bool = False


def read_llama(reader: Reader, position: int) -> Reading:
    if tag := reader.match(_LLAMA.tag, position):
        return _read_tag(reader, tag)
    if function := reader.match(_LLAMA.function, position):
        return _read_function(reader, function)
    return _read_message(reader, position)


# -- the whole message -------------------------------------------------------------------------------------------------


def _read_message(reader: Reader, position: int) -> Reading:
    if not reader.tools or not reader.begins(position) or position < reader.dead.get("llama3_json", 0):
        return None
    at = reader.space(position)
    if reader.match(weak.compiled(reader, _LLAMA.named["head"]), at) is None:
        return None
    read = _read_objects(reader, at)
    reader.dead["llama3_json"] = read.end
    whole = read.calls[:-1] if read.cut else read.calls
    if not (read.calls and all(python_calls.fits(reader, call) and call.complete for call in whole)):
        return None
    if not reader.concludes(read.end):
        return None
    return reader.block("llama3_json", position, read.end, read.calls, "weak", read.malformed)


def _read_objects(reader: Reader, position: int) -> _Objects:
    read = _Objects(position)
    at = position
    while reader.char(at) == "{":
        decoded = reader.json(at)
        if decoded.failed:
            _read_damaged(reader, at, read)
            break
        calls, canonical = calls_of(reader, decoded.value, _KEYS)
        if not calls or not _gives_arguments(reader, decoded.value, calls):
            break
        read.calls += calls
        read.malformed |= not (canonical and decoded.healthy)
        read.end = decoded.end
        joint = reader.match(_LLAMA.joint, reader.space(decoded.end))
        if joint is None:
            break
        read.malformed |= not joint[0].startswith(";")
        at = joint.end()
    return read


def _read_damaged(reader: Reader, at: int, read: _Objects) -> None:
    """Read the rest of the message if only brackets are missing after the arguments; else a call that is cut off."""
    end = reader.stop(reader.next(_LLAMA.turn_end, at))
    repaired = reader.repair(at, end)
    calls = calls_of(reader, repaired.value, _KEYS)[0] if repaired is not None and repaired.missing <= 1 else []
    read.malformed = True
    if repaired is not None and calls and _gives_arguments(reader, repaired.value, calls):
        read.calls += calls
        read.end = repaired.end
        return
    head = reader.match(_LLAMA.written_head, at)
    if head is not None:
        read.calls.append(reader.call(head["name"], None, complete=False))
        read.end, read.cut = end, True


def _gives_arguments(reader: Reader, value: Json, calls: list[NativeCall]) -> bool:
    """Return True if the object has arguments, or its tool takes none: a name alone is no call."""
    tools = [reader.tools.get(call.name) for call in calls]
    return (isinstance(value, dict) and not value.keys().isdisjoint(_ARGUMENT_KEYS)) or not any(
        tool is None or coercion.properties_of(tool.schema) for tool in tools
    )


# -- after the python tag ----------------------------------------------------------------------------------------------


def _read_tag(reader: Reader, tag: Match) -> Reading:
    at = reader.space(tag.end())
    odd = "||" in tag[0]
    if reader.char(at) == "{":
        read = _read_objects(reader, at)
        if read.calls:
            odd |= read.malformed
            return reader.block("llama3_python_tag_json", tag.start(), read.end, read.calls, "sentinel", odd)
    if reader.match(_LLAMA.method, at):
        return _read_methods(reader, tag, at, malformed=odd)
    return _read_code(reader, tag, at)


def _read_methods(reader: Reader, tag: Match, at: int, *, malformed: bool) -> Reading:
    """Read calls of built-in tools, written as methods: `brave_search.call(query="tides")`."""
    calls: list[NativeCall] = []
    end = at
    while method := reader.match(_LLAMA.method, at):
        call = python_calls.read_call(reader, at)
        if call is None:
            break
        calls.append(call.native(reader, method["name"]))
        malformed |= call.malformed
        end = call.end
        joint = reader.match(_LLAMA.method_joint, end) if call.closed else None
        if joint is None:
            break
        malformed |= ";" not in joint[0]
        at = joint.end()
    return reader.block("llama3_python_tag_builtin", tag.start(), end, calls, "sentinel", malformed or not calls)


def _read_code(reader: Reader, tag: Match, at: int) -> Reading:
    """Read a call of a declared tool, or code; the tag alone if it is neither, as in a text about it."""
    nothing = Found("llama3_python_tag_builtin", tag.start(), tag.end(), (), "sentinel", malformed=True)
    if reader.tools and reader.match(weak.compiled(reader, _LLAMA.named["call"]), at):
        bracket = reader.char(at) == "["
        read = python_calls.read_calls(reader, at + bracket)
        calls = [call.native(reader) for call in read]
        end = read[-1].end + (bracket and reader.char(read[-1].end) == "]")
        return reader.block("llama3_python_tag_builtin", tag.start(), end, calls, "sentinel", True)
    name = next((name for name in _INTERPRETERS if name in reader.tools), None)
    if name is None or reader.ended(at):
        return nothing
    end = reader.stop(reader.next(_LLAMA.turn_end, at))
    code = reader.value(at, end).rstrip()
    if not is_code(code):
        return nothing
    call = reader.call(name, code_arguments(reader, name, code), complete=True)
    return reader.block("llama3_python_tag_builtin", tag.start(), at + len(code), [call], "sentinel", False)


def is_code(text: str) -> bool:
    """Return True if a text is a Python program that does more than name something."""
    if len(text) > _LONGEST_CODE:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of stray backslashes
            tree = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return any(
        not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Name | ast.Constant) for node in tree.body
    )


def code_arguments(reader: Reader, name: str, code: str) -> dict[str, Json]:
    """Return the code under the interpreter's parameter for it."""
    tool = reader.tools.get(name)
    keys = tuple(coercion.properties_of(tool.schema)) if tool is not None else ()
    key = next((key for key in _CODE_KEYS if key in keys), keys[0] if len(keys) == 1 else "code")
    return {key: code}


# -- the custom tag ----------------------------------------------------------------------------------------------------


def _read_function(reader: Reader, opener: Match) -> Reading:
    if opener.start() < reader.dead.get("functionary_v3_1", 0):
        return None
    malformed = not opener[0].startswith(f"<function={opener['name']}>")
    decoded = reader.json(opener.end())
    arguments, complete, end = decoded.value, not decoded.failed, decoded.end
    if decoded.failed:
        stop = reader.first((_LLAMA.function_end, _LLAMA.function), opener.end())
        end = stop.start() if stop is not None else reader.size
        repaired = reader.repair(opener.end(), end)
        complete = repaired is not None and not (repaired.missing and stop is None)
        arguments = repaired.value if repaired is not None and complete else None
        malformed = True
    call = reader.call(opener["name"], arguments, complete=complete)
    closer = reader.match(_LLAMA.function_end, reader.space(end))
    if closer is None and call.name not in reader.tools:
        reader.dead["functionary_v3_1"] = end
        return None
    end = closer.end() if closer is not None else end
    malformed |= closer is None or not decoded.healthy
    return reader.block("functionary_v3_1", opener.start(), end, (call,), "generic", malformed)
