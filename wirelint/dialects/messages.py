"""Calls that are a whole message in a shape that people write too: plain JSON, a line that names the tool, ReAct.

Theory of operation. Such a shape is a call only by the tool that it names, so the names of the declared tools are in the
patterns themselves (`Table.named`), and the arguments must fit. Llama's python tag and custom tag are here as well, as its
families write both.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from wirelint.dialects import declared, python_calls
from wirelint.dialects.json_blocks import JsonCalls, calls_of, read_calls
from wirelint.dialects.reader import Calls, Match, Reader, Reading
from wirelint.dialects.tables import tables
from wirelint.model import Json, Tool

_BARE, _LLAMA, _FUNCTIONARY, _CHATGLM, _REACT = tables(
    __name__, "bare_json", "llama", "functionary", "chatglm", "react"
)
_LAST_QUOTED = re.compile(r"[\"']([^\"']{1,160})[\"']\Z")

_TYPES = frozenset({"function", "function_call", "tool_call", "tool_use"})
_BESIDE = frozenset({"role", "thought", "thoughts", "reasoning", "id", "type", "index"})
_DEEPEST = 6


@dataclass(slots=True)
class _Values(Calls):
    enveloped: bool = False


def read_bare_json(reader: Reader, position: int) -> Reading:
    if not reader.tools:
        return None
    fence = reader.match(_BARE.fence, position)
    start = fence.end() if fence is not None else reader.space(position)
    if fence is None and (reader.char(start) not in ("{", "[") or not reader.begins(start)):
        return None
    head = _BARE.named(reader, "head", start)
    if head is None or (fence is None and _BARE.llama.match(head[0])):
        return None
    found = _read_values(reader, head, fenced=fence is not None)
    if found is None:
        return None
    if fence is not None:
        end = reader.after(_BARE.fence_end, found.end)
        closed = end > found.end or reader.ended(reader.space(end))
        return reader.block("fenced_json_call", position, end, found.calls, "weak") if closed else None
    surplus = reader.match(_BARE.surplus, found.end)
    end = surplus.end() if surplus is not None and surplus[0].strip() else found.end
    plain = reader.char(start) == "[" and not found.enveloped
    dialect = "bare_json_array" if plain else "generic_json_envelope"
    return reader.block(dialect, position, end, found.calls, "weak") if reader.is_whole(start, end) else None


def _read_values(reader: Reader, head: Match, *, fenced: bool) -> _Values | None:
    """Read the values from a position on; None unless each is a call, or the beginning of one."""
    found = _Values(head.start())
    at = head.start()
    while reader.char(at) in ("{", "["):
        decoded = reader.json(at)
        if decoded.failed:
            return _read_damaged_value(reader, at, head, found, fenced=fenced)
        if not _add(reader, decoded.value, found):
            return None
        found.end = decoded.end
        at = reader.after(_BARE.between, decoded.end)
    return found


def _read_damaged_value(reader: Reader, at: int, head: Match, found: _Values, *, fenced: bool) -> _Values | None:
    if not fenced and at < reader.dead["bare_json_array"]:
        return None
    stop = reader.next(at, _BARE.ticks) if fenced else None
    end = reader.stop(stop)
    if not fenced:
        reader.dead["bare_json_array"] = end
    repaired = reader.repair(at, end)
    if repaired is not None:
        depths = [depth for _, depth in _leaves(repaired.value)]
        whole = stop is not None or repaired.missing <= (depths[-1] if depths else 0)
        if whole and _add(reader, repaired.value, found):
            found.end = repaired.end
            return found
    if stop is not None or at != head.start() or reader.json(at).end < reader.size:
        return None
    quoted = _LAST_QUOTED.search(head[0])
    if quoted is None or reader.tool(quoted[1]) is None:
        return None
    found.add(reader.call(quoted[1], None, complete=False), reader.size)
    return found


def _add(reader: Reader, value: Json, found: _Values) -> bool:
    leaves = list(_leaves(value))
    for leaf, _ in leaves:
        calls, _ = calls_of(reader, leaf)
        if len(calls) != 1 or not declared.fits(reader.tools.get(calls[0].name), calls[0].arguments):
            return False
        found.calls += calls
        found.enveloped |= isinstance(leaf, dict) and (
            leaf.get("type") in _TYPES or isinstance(leaf.get("function"), dict)
        )
    found.enveloped |= any(depth > 2 for _, depth in leaves)
    return bool(leaves)


def _leaves(value: Json, depth: int = 0) -> Iterator[tuple[Json, int]]:
    """Yield the objects that should be calls, and the number of brackets open inside each."""
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth + 1)
        return
    wrapper = next((key for key in _BARE.data["wrappers"] if key in value), None) if isinstance(value, dict) else None
    beside = [item for key, item in value.items() if key not in {wrapper, *_BESIDE}] if isinstance(value, dict) else []
    if isinstance(value, dict) and wrapper is not None and depth < _DEEPEST and not any(beside):
        yield from _leaves(value[wrapper], depth + 1)
    else:
        inner = isinstance(value, dict) and isinstance(value.get("function"), dict)
        yield value, depth + 1 + inner


_INTERPRETERS = ("code_interpreter", "python", "ipython")
_LONGEST_CODE = 100_000


def read_llama(reader: Reader, position: int) -> Reading:
    if tag := reader.match(_LLAMA.tag, position):
        return _read_tag(reader, tag)
    if function := reader.match(_LLAMA.function, position):
        return _read_function(reader, function)
    if not reader.tools or not reader.begins(position) or position < reader.dead["llama3_json"]:
        return None
    at = reader.space(position)
    if _LLAMA.named(reader, "head", at) is None:
        return None
    read = _read_objects(reader, at)
    if read is None:
        return None
    reader.dead["llama3_json"] = read.end
    whole = read.calls[:-1] if read.cut else read.calls
    if not all(reader.fits(call) and call.complete for call in whole) or not reader.concludes(read.end):
        return None
    return reader.block("llama3_json", position, read.end, read.calls, "weak")


def _read_objects(reader: Reader, at: int) -> JsonCalls | None:
    """Read JSON calls joined by semicolons. A name alone is no call, unless its tool takes no arguments."""
    read = read_calls(reader, at, _LLAMA.turn_end) if reader.char(at) == "{" else None
    if read is None or _LLAMA.argument_key.search(reader.shadow, at, read.end):
        return read
    tools = [reader.tools.get(call.name) for call in read.calls if call.arguments is not None]
    return None if any(tool is None or declared.properties_of(tool.schema) for tool in tools) else read


def _read_tag(reader: Reader, tag: Match) -> Reading:
    at = reader.space(tag.end())
    if read := _read_objects(reader, at):
        return reader.block("llama3_python_tag_json", tag.start(), read.end, read.calls)
    run = Calls(at)
    # Calls of built-in tools, written as methods: `brave_search.call(query="tides")`.
    while (method := reader.match(_LLAMA.method, at)) and (call := python_calls.read_call(reader, at)):
        run.add(call.native(reader, method["name"]), call.end)
        joint = reader.match(_LLAMA.method_joint, run.end) if call.closed else None
        if joint is None:
            break
        at = joint.end()
    # The tag alone if no call follows, as in a text about it.
    code = run if run.calls else _read_code(reader, at) or Calls(tag.end())
    return reader.block("llama3_python_tag_builtin", tag.start(), code.end, code.calls)


def _read_code(reader: Reader, at: int) -> Calls | None:
    """Read a call of a declared tool, or code for the interpreter."""
    if reader.tools and _LLAMA.named(reader, "call", at):
        bracket = reader.char(at) == "["
        read = python_calls.read_calls(reader, at + bracket)
        assert read is not None
        read.end += bracket and reader.char(read.end) == "]"
        return read
    name = next((name for name in _INTERPRETERS if name in reader.tools), None)
    if name is None or reader.ended(at):
        return None
    end = reader.stop(reader.next(at, _LLAMA.turn_end))
    code = reader.value(at, end).rstrip()
    if not _is_code(code):
        return None
    return Calls(
        at + len(code), [reader.call(name, declared.code_arguments(reader.tools.get(name), code), complete=True)]
    )


def _is_code(text: str) -> bool:
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


def _read_function(reader: Reader, opener: Match) -> Reading:
    if opener.start() < reader.dead["functionary_v3_1"]:
        return None
    at, stops = opener.end(), (_LLAMA.function_end, _LLAMA.function)
    value, end, complete = reader.read_json(at, *stops)
    if reader.json(at).failed:
        end = reader.stop(reader.next(at, *stops))
    call = reader.call(opener["name"], value, complete=complete)
    closed = reader.past(end, _LLAMA.function_end)
    return reader.generic_block("functionary_v3_1", opener.start(), closed, (call,), sure=closed > end)


def read_functionary(reader: Reader, position: int) -> Reading:
    if header := reader.match(_FUNCTIONARY.header, position):
        at, name = reader.space(header.end()), header["name"]
        if name == "all" or (header["content"] is None and reader.char(at) != "{"):
            return reader.block("functionary_v2", header.start(), header.end())
        decoded = reader.json(at)
        arguments, end, complete = decoded.value, decoded.end, True
        if decoded.failed:
            stop = reader.next(at, _FUNCTIONARY.next_header)
            end = reader.stop(stop)
            if reader.resolve(name) == "python" and _is_code(code := reader.value(at, end).strip()):
                arguments, complete = declared.code_arguments(reader.tools.get(name), code), stop is not None
            else:
                arguments, _, complete = reader.rescue(at, _FUNCTIONARY.next_header)
        call = reader.call(name, arguments, complete=complete)
        return reader.block("functionary_v2", header.start(), reader.past(end, _FUNCTIONARY.stop), (call,))
    if token := reader.match(_FUNCTIONARY.token, position):
        return reader.block("functionary_v2", position, token.end())
    return _read_recipient(reader, position) if reader.tools else None


def _read_recipient(reader: Reader, position: int) -> Reading:
    """Read a recipient of Functionary v3.2 and its call, at the start of the message or after `>>>`."""
    first = reader.begins(position)
    at = reader.space(position) if first else position
    if first and (to_all := reader.match(_FUNCTIONARY.to_all, at)):
        # The recipient of the text before the calls; an ordinary word if no call comes.
        if reader.next(at, _FUNCTIONARY.pattern_for(reader, "recipient")) is None:
            return None
        return reader.block("functionary_v3_2", position, to_all.end(), (), "weak")
    header = _FUNCTIONARY.named(reader, "first" if first else "recipient", at)
    if header is None:
        return None
    at = reader.space(header.end())
    if reader.char(at) == "{":
        return _read_recipient_call(reader, position, header["name"], at)
    if header["name"] != "python" or reader.ended(at) or position < reader.dead["python"]:
        return None
    reader.dead["python"] = reader.size
    reader.ended(reader.size)
    code = reader.value(at, reader.size).rstrip()
    call = reader.call("python", declared.code_arguments(reader.tools["python"], code), complete=True)
    if not _is_code(code) or not reader.fits(call):
        return None
    return reader.block("functionary_v3_2", position, reader.size, (call,), "weak")


def _read_recipient_call(reader: Reader, position: int, name: str, at: int) -> Reading:
    if position < reader.dead["functionary_v3_2"]:
        return None
    decoded = reader.read_json(at)
    reader.dead["functionary_v3_2"] = decoded.end
    if not decoded.complete:
        if reader.match(_FUNCTIONARY.cut_body, at) is None:
            return None
        call = reader.call(name, None, complete=False)
        return reader.block("functionary_v3_2", position, reader.size, (call,), "weak")
    call = reader.call(name, decoded.value, complete=True)
    if not (call.complete and reader.fits(call)):
        return None
    # Another recipient follows, or nothing. GLM-4 has such lines too, with its own tokens after them.
    if not _FUNCTIONARY.named(reader, "further", decoded.end) and (
        reader.match(_FUNCTIONARY.token_of_glm, decoded.end) is not None or not reader.concludes(decoded.end)
    ):
        return None
    return reader.block("functionary_v3_2", position, decoded.end, (call,), "weak")


@dataclass(slots=True)
class _Turn(Calls):
    """The calls of a message. `certain`: something in it is GLM's alone."""

    certain: bool = False


def read_chatglm(reader: Reader, position: int) -> Reading:
    token = reader.match(_CHATGLM.assistant, position) if reader.tools else None
    begins = reader.tools and (token is not None or reader.begins(position))
    if not begins or position < reader.dead["glm4_0414"]:
        return None
    start = token.end() if token is not None else position
    turn = _Turn(start, certain=token is not None)
    at = start if token is not None else reader.space(position)
    while header := _CHATGLM.named(reader, "json", at) or _CHATGLM.named(reader, "code", at):
        read = _read_glm_line if reader.char(header.end()) == "{" else _read_glm_code
        if not read(reader, header, turn):
            break
        token = reader.match(_CHATGLM.assistant, turn.end)
        if token is None:
            break
        at = token.end()
    # The message must end here: with the text, or with a token after which others speak.
    ended = bool(turn.calls) and reader.match(_CHATGLM.token, turn.end) is not None
    if turn.calls and not ended:
        certain = reader.match(_CHATGLM.assistant, turn.end) is not None or turn.certain
        ended = reader.concludes(turn.end) and certain
    if not ended:
        reader.dead["glm4_0414"] = turn.end
    return reader.block("glm4_0414", start, turn.end, turn.calls, "weak") if ended else None


def _read_glm_line(reader: Reader, header: Match, turn: _Turn) -> bool:
    decoded = reader.read_json(header.end())
    turn.end = decoded.end
    if not decoded.complete:
        return turn.certain and turn.add(reader.call(header["name"], None, complete=False), reader.size)
    call = reader.call(header["name"], decoded.value, complete=True)
    if not reader.fits(call):
        turn.calls.clear()
        return False
    turn.calls.append(call)
    return True


def _read_glm_code(reader: Reader, header: Match, turn: _Turn) -> bool:
    read = python_calls.read_call(reader, header.end())
    if read is None:
        return False
    call = read.native(reader, header["name"])
    turn.end = read.end
    fence = reader.match(_CHATGLM.fence_end, read.end)
    if call.complete and (fence is None or not reader.fits(call)):
        return False
    turn.certain = True
    return turn.add(call, fence.end() if fence is not None else read.end)


def read_react(reader: Reader, position: int) -> Reading:
    if not reader.tools or _follows_observation(reader, position):
        return None
    blob = reader.match(_REACT.blob, position)
    head = _REACT.named(reader, "lines", position) if blob is None else _REACT.named(reader, "blob_name", blob.end())
    tool = reader.tool(head["name"]) if head is not None else None
    if head is None or tool is None:
        return None
    given = _read_blob(reader, blob.end(), tool) if blob is not None else _read_input(reader, head, tool)
    if given is None:
        return None
    value, end = given  # no value: the text ends in it
    if value is not None and not (
        declared.fits(tool, value) and (reader.match(_REACT.follower, end) or reader.concludes(end))
    ):
        return None
    call = reader.call(tool.name, value, complete=True)
    return reader.block("react", position, end, (call,), "weak")


def _follows_observation(reader: Reader, position: int) -> bool:
    """Return True if an observation precedes: after one that the model made up, the rest is made up too."""
    first = reader.dead.get("react")
    if first is None:
        found = _REACT.observation.search(reader.shadow)
        first = reader.dead["react"] = found.start() if found is not None else reader.size
    return first < position


def _read_input(reader: Reader, head: Match, tool: Tool) -> tuple[Json, int] | None:
    fence = reader.match(_REACT.fence, head.end())
    start = fence.end() if fence is not None else head.end()
    if reader.char(start) in ("{", "'", '"') or fence is not None:
        given = _read_json(reader, start)
        return given if given is None or fence is None else (given[0], reader.after(_REACT.fence_end, given[1]))
    end = reader.stop(reader.next(start, _REACT.stop))
    text = reader.value(start, end).strip()
    if text.startswith(("[", "`")):
        return None
    value: Json = {} if not text or text == "None" else declared.bind(tool, text)
    return (value, end) if value is not None and reader.begins(head.start()) else None


def _read_json(reader: Reader, at: int) -> tuple[Json, int] | None:
    decoded = reader.json(at)
    if not decoded.failed:
        return decoded.value, decoded.end
    stop = reader.next(at, _REACT.stop)
    end = reader.stop(stop)
    repaired = reader.repair(at, end)
    if repaired is not None and not repaired.missing:
        return repaired.value, repaired.end
    return (None, end) if stop is None and decoded.end >= reader.size else None


def _read_blob(reader: Reader, at: int, tool: Tool) -> tuple[Json, int] | None:
    given = _read_json(reader, at)
    if given is None or not isinstance(given[0], dict):
        return given
    inner = given[0].get("action_input", {})
    value = declared.coerce(inner, None) if isinstance(inner, str) else inner
    if isinstance(inner, str) and not isinstance(value, dict):
        value = declared.bind(tool, inner)
    return (value, reader.after(_REACT.fence_end, given[1])) if value is not None else None
