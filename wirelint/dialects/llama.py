"""Llama 3's three ways to call: bare JSON, the python tag, a custom tag for each function.

Lineage: Meta's prompt formats for Llama 3.1 (also 3.2, 3.3 and their fine-tunes). The custom tag is Functionary v3.1's too
and begot Qwen3-Coder's; nothing tells the first two apart.

    {"name": "lookup", "parameters": {"city": "Graz"}}
    <|python_tag|>{"name": "lookup", "parameters": {"city": "Graz"}}
    <|python_tag|>brave_search.call(query="tides")
    <function=lookup>{"city": "Graz"}</function>

Several calls are joined by `; `. After the python tag anything else is code for the interpreter. Types come from the
literals. No ids. Bare JSON counts as the whole message, for a declared tool and parameters of its own: any other JSON is an
answer. Seen in the wild: `arguments` for `parameters`, single quotes, the last brace missing, the closing tag missing.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field

from wirelint.dialects import coercion, pythoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import Keys, calls_of
from wirelint.dialects.openers import SPACES, TEXT_START, Run, either
from wirelint.dialects.pythoncalls import around_names
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_JSON, _TAG_JSON, _BUILTIN, _CUSTOM = (
    "llama3_json", "llama3_python_tag_json", "llama3_python_tag_builtin", "functionary_v3_1",
)  # fmt: skip
_KEYS = Keys(arguments="parameters")
_GAP = Run(r"\s", 0, 3)
_S = r"\s{0,8}"

# Up to the key after the name: the first characters that do not fit let go of a JSON answer.
_BEFORE_NAME = (
    rf"\{{{_S}(?:[\"'](?:type|id)[\"']{_S}:{_S}[\"'][\w-]{{1,64}}[\"']{_S},{_S}){{0,2}}"
    rf"[\"'](?:name|function)[\"']{_S}:{_S}[\"']{pythoncalls.PREFIXES}"
)
_AFTER_NAME = rf"[\"']{_S}(?:\}}|,{_S}[\"'](?:parameters|arguments|args|input|type|id)[\"']{_S}:)"
_JOINT = re.compile(r"[;,]?\s{0,8}(?=\{)")
_TAG = re.compile(r"<\|{1,2}python_tag\|{1,2}>")
_TURN_END = re.compile(r"<\|(?:eom_id|eot_id|eom|eot|end_of_text)\|>|</s>")
_METHOD = re.compile(r"(?P<name>[A-Za-z_][\w-]{0,127})\.call\s{0,3}\(")
_METHOD_JOINT = re.compile(r"\s{0,8}[;,\n]\s{0,8}(?=[A-Za-z_][\w-]{0,127}\.call\s{0,3}\()")
_INTERPRETERS = ("code_interpreter", "python", "ipython")
_CODE_KEYS = ("code", "script", "source", "input", "query")
_LONGEST_CODE = 100_000

_FUNCTION = re.compile(
    rf"<\s{{0,3}}function\s{{0,3}}=\s{{0,3}}(?P<quote>[\"']?)(?P<name>[\w.:/-]{{1,128}})(?P=quote)\s{{0,3}}>{_S}(?=\{{)"
)
_FUNCTION_END = re.compile(r"<\s{0,3}/\s{0,3}function\s{0,3}>")


@dataclass(slots=True)
class _Objects:
    """JSON calls joined by semicolons. `cut`: the text ended in the last one."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    malformed: bool = False
    cut: bool = False


def _read(reader: Reader, position: int) -> Reading:
    if tag := reader.match(_TAG, position):
        return _read_tag(reader, tag)
    if function := reader.match(_FUNCTION, position):
        return _read_function(reader, function)
    return _read_message(reader, position)


# -- the whole message -------------------------------------------------------------------------------------------------


def _read_message(reader: Reader, position: int) -> Reading:
    if not reader.tools or not reader.begins(position) or position < reader.dead.get(_JSON, 0):
        return None
    at = reader.space(position)
    head = around_names(tuple(sorted(reader.tools)), _BEFORE_NAME, _AFTER_NAME)
    if reader.match(head, at) is None:
        return None
    read = _read_objects(reader, at)
    reader.dead[_JSON] = read.end
    whole = read.calls[:-1] if read.cut else read.calls
    if not (read.calls and all(pythoncalls.fits(reader, call) and call.complete for call in whole)):
        return None
    if not reader.concludes(read.end):
        return None
    return Found(_JSON, position, read.end, tuple(read.calls), "weak", read.malformed)


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
        joint = reader.match(_JOINT, reader.space(decoded.end))
        if joint is None:
            break
        read.malformed |= not joint[0].startswith(";")
        at = joint.end()
    return read


def _read_damaged(reader: Reader, at: int, read: _Objects) -> None:
    """The rest of the message, when only brackets are missing after the arguments; else a call that is cut off."""
    stop = reader.next(_TURN_END, at)
    end = stop.start() if stop is not None else reader.size
    repaired = reader.repair(at, end)
    calls = calls_of(reader, repaired.value, _KEYS)[0] if repaired is not None and repaired.missing <= 1 else []
    read.malformed = True
    if repaired is not None and calls and _gives_arguments(reader, repaired.value, calls):
        read.calls += calls
        read.end = repaired.end
        return
    head = reader.match(_WRITTEN_HEAD, at)
    if head is not None:
        read.calls.append(reader.call(head["name"], None, complete=False))
        read.end, read.cut = end, True


def _gives_arguments(reader: Reader, value: Json, calls: list[NativeCall]) -> bool:
    """Whether the object has arguments, or is of a tool that takes none: a name alone is no call."""
    tools = [reader.tools.get(call.name) for call in calls]
    return (isinstance(value, dict) and not value.keys().isdisjoint(_ARGUMENT_KEYS)) or not any(
        tool is None or coercion.properties_of(tool.schema) for tool in tools
    )


_ARGUMENT_KEYS = frozenset({"parameters", "arguments", "args", "input"})
_WRITTEN_HEAD = re.compile(_BEFORE_NAME + r"(?P<name>[\w.:/-]{1,128})[\"']")

# -- after the python tag ----------------------------------------------------------------------------------------------


def _read_tag(reader: Reader, tag: Match) -> Reading:
    at = reader.space(tag.end())
    odd = "||" in tag[0]
    if reader.char(at) == "{":
        read = _read_objects(reader, at)
        if read.calls:
            return _found(reader, _TAG_JSON, tag.start(), read.end, read.calls, malformed=read.malformed or odd)
    if reader.match(_METHOD, at):
        return _read_methods(reader, tag, at, malformed=odd)
    return _read_code(reader, tag, at)


def _read_methods(reader: Reader, tag: Match, at: int, *, malformed: bool) -> Reading:
    """Calls of built-in tools, as methods of them."""
    calls: list[NativeCall] = []
    end = at
    while method := reader.match(_METHOD, at):
        call = pythoncalls.read_call(reader, at)
        if call is None:
            break
        calls.append(call.native(reader, method["name"]))
        malformed |= call.malformed
        end = call.end
        joint = reader.match(_METHOD_JOINT, end) if call.closed else None
        if joint is None:
            break
        malformed |= ";" not in joint[0]
        at = joint.end()
    return _found(reader, _BUILTIN, tag.start(), end, calls, malformed=malformed or not calls)


def _read_code(reader: Reader, tag: Match, at: int) -> Reading:
    """A call of a declared tool, or code; the tag alone where it is neither, as in a text about it."""
    nothing = Found(_BUILTIN, tag.start(), tag.end(), (), "sentinel", malformed=True)
    names = tuple(sorted(reader.tools))
    if names and reader.match(around_names(names, rf"\[?{_S}{pythoncalls.PREFIXES}", r"\s{0,3}\("), at):
        bracket = reader.char(at) == "["
        read = pythoncalls.read_calls(reader, at + bracket)
        calls = [call.native(reader) for call in read]
        end = read[-1].end + (bracket and reader.char(read[-1].end) == "]")
        return _found(reader, _BUILTIN, tag.start(), end, calls, malformed=True)
    name = next((name for name in _INTERPRETERS if name in reader.tools), None)
    if name is None or reader.ended(at):
        return nothing
    stop = reader.next(_TURN_END, at)
    end = stop.start() if stop is not None else reader.size
    code = reader.value(at, end).rstrip()
    if not is_code(code):
        return nothing
    call = reader.call(name, code_arguments(reader, name, code), complete=True)
    return _found(reader, _BUILTIN, tag.start(), at + len(code), [call], malformed=False)


def is_code(text: str) -> bool:
    """Whether a text is a Python program that does something, other than a word that stands there."""
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
    """The code as the parameter of an interpreter that takes it."""
    tool = reader.tools.get(name)
    keys = tuple(coercion.properties_of(tool.schema)) if tool is not None else ()
    key = next((key for key in _CODE_KEYS if key in keys), keys[0] if len(keys) == 1 else "code")
    return {key: code}


def _found(reader: Reader, dialect: str, start: int, end: int, calls: list[NativeCall], *, malformed: bool) -> Reading:
    if reader.stand_ins(calls):
        return Skip(end)
    return Found(dialect, start, end, tuple(calls), "sentinel", malformed)


# -- the custom tag ----------------------------------------------------------------------------------------------------


def _read_function(reader: Reader, opener: Match) -> Reading:
    if opener.start() < reader.dead.get(_CUSTOM, 0):
        return None
    malformed = not opener[0].startswith(f"<function={opener['name']}>")
    decoded = reader.json(opener.end())
    arguments, complete, end = decoded.value, not decoded.failed, decoded.end
    if decoded.failed:
        stop = reader.first((_FUNCTION_END, _FUNCTION), opener.end())
        end = stop.start() if stop is not None else reader.size
        repaired = reader.repair(opener.end(), end)
        complete = repaired is not None and not (repaired.missing and stop is None)
        arguments = repaired.value if repaired is not None and complete else None
        malformed = True
    call = reader.call(opener["name"], arguments, complete=complete)
    closer = reader.match(_FUNCTION_END, reader.space(end))
    if closer is None and call.name not in reader.tools:
        reader.dead[_CUSTOM] = end
        return None
    end = closer.end() if closer is not None else end
    if reader.stand_ins([call]):
        return Skip(end)
    malformed |= closer is None or not decoded.healthy
    return Found(_CUSTOM, opener.start(), end, (call,), "generic", malformed)


FAMILY = Family(
    "llama",
    rank=2,
    openers=(
        ("<|python_tag|>",),
        ("<||python_tag||>",),
        ("<", _GAP, "function", _GAP, "="),
        (TEXT_START, SPACES, "{", SPACES, either('"', "'"), either("name", "type", "function", "id"), either('"', "'")),
    ),
    read=_read,
    speakers={
        _JSON: frozenset({"llama"}),
        _TAG_JSON: frozenset({"llama"}),
        _BUILTIN: frozenset({"llama"}),
        _CUSTOM: frozenset({"llama", "functionary"}),
    },
)
