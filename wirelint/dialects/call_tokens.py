"""Special tokens around a tool's name and its arguments: DeepSeek, PLaMo, Qwen-Agent, InternLM, Inkling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from wirelint.dialects import coercion, json_calls
from wirelint.dialects.json_calls import KEYS, Keys, read_arguments
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Found, NativeCall, Reading

# -- deepseek ----------------------------------------------------------------------------------------------------------

_DEEPSEEK = table(__name__, "deepseek")
_TYPES = frozenset({"function", "custom", "tool"})


@dataclass(slots=True)
class _DeepSeekCalls(Calls):
    """The calls in a run of tokens. `fenced`: whether the first body stood in a fence; None before it."""

    fenced: bool | None = None


def read_deepseek(reader: Reader, position: int) -> Reading:
    token = reader.match(_DEEPSEEK.token, position)
    if token is None or not _is_deepseek(reader, token):
        return None
    section = _DeepSeekCalls(token.start(), malformed=_token_kind(token) != "calls_begin")
    at = token.start()
    while here := reader.match(_DEEPSEEK.token, at):
        section.malformed |= not _is_canonical(reader, here)
        section.end = here.end()
        match _token_kind(here):
            case "calls_begin" | "calls":
                _read_deepseek_call(reader, here.end(), section, begun=False)
            case "call_begin":
                _read_deepseek_call(reader, here.end(), section, begun=True)
            case "calls_end":
                break
        at = reader.space(section.end)
    else:
        section.malformed = True
    dialect = "deepseek_v3" if section.fenced else "deepseek_v3_1"
    malformed = section.malformed or not section.calls
    return reader.block(dialect, position, section.end, section.calls, "sentinel", malformed)


def _is_deepseek(reader: Reader, token: Match) -> bool:
    """Return True unless the token is Kimi K2's (`<|tool_call_begin|>`) or Step 3's, which only the bytes around show."""
    if reader.match(_DEEPSEEK.step_after, token.start()):
        return False
    if _token_kind(token) not in ("call_begin", "call_end"):
        return True
    if _token_kind(token) == "call_begin":
        before = reader.open
        if leads := reader.match(_DEEPSEEK.leads_to, token.start()):
            return bool(leads["sep"] == "sep")
        if reader.open and not before:  # not decided yet: no other family should read a name from its beginning
            return True
    written = reader.value(token.start(), token.end())
    return not written.isascii() or "tool_" not in written


def _token_kind(token: Match) -> str:
    """Return `calls_begin`, `calls`, `call_begin`, `sep`, `call_end` or `calls_end`."""
    return "_".join(re.findall(r"[a-z]+", token[0])[1:])


def _is_canonical(reader: Reader, token: Match) -> bool:
    written = reader.value(token.start(), token.end())
    return written.startswith("<｜") and "▁" in written and "｜｜" not in written


def _read_deepseek_call(reader: Reader, start: int, section: _DeepSeekCalls, *, begun: bool) -> None:
    """Read `TYPE<sep>NAME` and a fence, or `NAME<sep>` and JSON."""
    at = reader.space(start)
    header = reader.match(_DEEPSEEK.header, at)
    edge = header.end() if header is not None else at
    first = header[0].strip() if header is not None else ""
    separator = reader.match(_DEEPSEEK.token, reader.space(edge))
    if separator is None or _token_kind(separator) != "sep":
        _read_unseparated(reader, edge, first if begun else "", section)
        return
    section.malformed |= not begun or not _is_canonical(reader, separator)
    section.end = separator.end()
    if first not in _TYPES:
        _read_deepseek_body(reader, separator.end(), first, section)
        return
    name = reader.match(_DEEPSEEK.name, separator.end())
    if reader.open:  # the name is still to come, or may go on
        return
    if name is not None and ("\n" in name["space"] or _ends_name(reader, name.end())):
        section.fenced = True if section.fenced is None else section.fenced
        _read_deepseek_body(reader, name.end(), name["name"], section)
    elif reader.char(reader.space(separator.end())) == "{":
        _read_deepseek_body(reader, separator.end(), first, section)
    else:
        section.malformed = True


def _ends_name(reader: Reader, at: int) -> bool:
    return reader.char(at) in ("", "{", "<") or reader.match(_DEEPSEEK.ticks, at) is not None


def _read_unseparated(reader: Reader, edge: int, name: str, section: _DeepSeekCalls) -> None:
    """Read a name that the body follows directly, or nothing."""
    if not name or " " in name or reader.open:  # it may be the beginning of a name, or a type
        return
    if reader.char(edge) in ("{", "`"):
        section.malformed = True
        _read_deepseek_body(reader, edge, name, section)
    else:
        section.calls.append(reader.call(name, None, complete=False))
        section.end = edge


def _read_deepseek_body(reader: Reader, start: int, name: str, section: _DeepSeekCalls) -> None:
    at = reader.space(start)
    fence = reader.match(_DEEPSEEK.fence, at)
    if fence is not None:
        at = reader.space(fence.end())
    section.fenced = fence is not None if section.fenced is None else section.fenced
    arguments = read_arguments(reader, at, _DEEPSEEK.token, starts='{["', to_stop=True)
    section.malformed |= not arguments.canonical
    section.end = arguments.end if fence is None else reader.after(_DEEPSEEK.fence_end, arguments.end)
    section.calls.append(reader.call(name, arguments.value, complete=arguments.complete))
    closer = reader.match(_DEEPSEEK.token, reader.space(section.end))
    if closer is not None and _token_kind(closer) == "call_end":
        section.malformed |= not _is_canonical(reader, closer)
        section.end = closer.end()
    else:
        section.malformed = True


# -- plamo -------------------------------------------------------------------------------------------------------------

_PLAMO = table(__name__, "plamo")
_REQUEST = ["begin_request", "begin_name", "end_name", "begin_arguments", "end_arguments", "end_request"]


@dataclass(slots=True)
class _PlamoCalls(Calls):
    """The calls in a run of tokens, the kinds of the tokens, and a name whose arguments have not come."""

    tokens: list[str] = field(default_factory=list)
    name: str | None = None


def read_plamo(reader: Reader, position: int) -> Reading:
    if reader.match(_PLAMO.token, position) is None:
        return None
    section = _PlamoCalls(position)
    at = position
    while here := reader.match(_PLAMO.token, at):
        words = re.findall(r"[a-z]+", here[0])
        kind = f"{words[1]}_{words[3]}"
        section.tokens.append(kind)
        section.malformed |= _PLAMO.canonical.fullmatch(reader.value(here.start(), here.end())) is None
        section.end = here.end()
        match kind:
            case "begin_name":
                _read_plamo_name(reader, section)
            case "begin_arguments":
                _read_plamo_arguments(reader, section)
            case "end_requests":
                break
        at = reader.space(section.end)
    if reader.over and reader.match(_PLAMO.cut_token, at):
        section.end = reader.size
    _end_plamo_name(reader, section)
    regular = section.tokens == ["begin_requests", *_REQUEST * len(section.calls), "end_requests"]
    malformed = section.malformed or not section.calls or not regular
    return reader.block("plamo3", position, section.end, section.calls, "sentinel", malformed)


def _end_plamo_name(reader: Reader, section: _PlamoCalls) -> None:
    """Add the call of a name without arguments."""
    if section.name is not None:
        section.calls.append(reader.call(section.name, None, complete=False))
        section.name = None


def _read_plamo_name(reader: Reader, section: _PlamoCalls) -> None:
    _end_plamo_name(reader, section)
    name = reader.match(_PLAMO.name, section.end)
    if name is None and reader.over:
        name = reader.match(_PLAMO.last_name, section.end)
    if name is None:
        section.malformed = True
        return
    section.name, section.end = name[1], name.end()


def _read_plamo_arguments(reader: Reader, section: _PlamoCalls) -> None:
    at = reader.space(section.end)
    constraint = reader.match(_PLAMO.constraint, at)
    if constraint is None:
        section.malformed = True
        constraint = reader.match(_PLAMO.bare_type, at)
    arguments = read_arguments(reader, constraint.end() if constraint is not None else at, _PLAMO.token)
    complete = arguments.complete and section.name is not None
    section.calls.append(reader.call(section.name or "", arguments.value, complete=complete))
    section.end = arguments.end
    section.malformed |= not arguments.canonical
    section.name = None


# -- qwen_agent --------------------------------------------------------------------------------------------------------

_QWEN_AGENT = table(__name__, "qwen_agent")


def read_qwen_agent(reader: Reader, position: int) -> Reading:
    section = Calls(position)
    at = position
    if at < reader.dead.get("qwen_agent_flower", 0):
        return None
    while function := reader.match(_QWEN_AGENT.last_function if reader.over else _QWEN_AGENT.function, at):
        section.end = function.end()
        section.malformed |= not function["flower"] or function["colon"] != ":"
        _read_flower_arguments(reader, function["name"], section)
        at = reader.space(section.end)
    # Undoing escapes breaks arguments that were encoded twice; the markers have nothing to escape.
    if not section.calls or (reader.view.decoded and not all(call.complete for call in section.calls)):
        return None
    known = any(call.complete or call.name in reader.tools for call in section.calls)
    if not known and not reader.ended(at):
        reader.dead["qwen_agent_flower"] = section.end
        return None
    if result := reader.match(_QWEN_AGENT.result, section.end):
        section.end = result.end()
    else:
        section.malformed = True
        if reader.over and reader.match(_QWEN_AGENT.cut, at):
            section.end = reader.size
    return reader.block("qwen_agent_flower", position, section.end, section.calls, "sentinel", section.malformed)


def _read_flower_arguments(reader: Reader, name: str, section: Calls) -> None:
    label = reader.match(_QWEN_AGENT.arguments, section.end)
    if label is None:
        section.calls.append(reader.call(name, None, complete=False))
        section.malformed = True
        return
    section.malformed |= label["word"] != "ARGS" or label["colon"] != ":"
    arguments = read_arguments(reader, reader.space(label.end()), _QWEN_AGENT.stop)
    section.end = arguments.end
    section.malformed |= not arguments.canonical
    section.calls.append(reader.call(name, arguments.value, complete=arguments.complete))


# -- internlm ----------------------------------------------------------------------------------------------------------

_INTERNLM = table(__name__, "internlm")


def read_internlm(reader: Reader, position: int) -> Reading:
    opener = reader.match(_INTERNLM.opener, position)
    if opener is None:
        return None
    written = reader.value(opener.start(), opener.end())
    named = opener["start"] and (opener["plugin"] or opener["code"])
    malformed = not named or not written.isascii() or _INTERNLM.loose.search(written) is not None
    return _read_code(reader, opener, malformed) if opener["code"] else _read_plugin(reader, opener, malformed)


def _read_plugin(reader: Reader, opener: Match, malformed: bool) -> Reading:
    at = reader.space(opener.end())
    if reader.char(at) == "`" and (fence := reader.match(_INTERNLM.fence, at)):
        at, malformed = reader.space(fence.end()), True
    keys = KEYS if reader.match(_INTERNLM.arguments, at) else Keys("name", "parameters")
    found = json_calls.read_calls(reader, at, _INTERNLM.closer, (_INTERNLM.starter,), keys)
    if found is None and not (opener["start"] and opener["plugin"]):
        return None
    closing = json_calls.close(reader, opener.end() if found is None else found.end, _INTERNLM.closer)
    if found is None:
        return Found("internlm2", opener.start(), closing.end, (), "sentinel", malformed=True)
    regular = found.canonical and found.values == 1 and not found.array and closing.closed and not closing.odd
    malformed |= not regular
    return reader.block("internlm2", opener.start(), closing.end, found.calls, "sentinel", malformed)


def _read_code(reader: Reader, opener: Match, malformed: bool) -> Reading:
    """Read code for the interpreter: all that stands before the end token, without its fence."""
    at = reader.space(opener.end())
    fence = reader.match(_INTERNLM.fence, at)
    start = fence.end() if fence is not None else at
    stop = reader.first((_INTERNLM.closer, _INTERNLM.starter), start)
    closed = stop is not None and stop.re is _INTERNLM.closer
    end = reader.stop(stop)
    code = reader.value(start, end)
    fence_end = _INTERNLM.fenced_end if stop is not None else _INTERNLM.fence_line
    fenced = fence_end.search(code) if fence is not None else None
    if stop is not None and closed:
        end = stop.end()
    elif fenced is not None:
        end = start + fenced.end()
    code = code[: fenced.start()] if fenced is not None else code.rstrip()
    tool = reader.tool("interpreter")
    declared = list(coercion.properties_of(tool.schema)) if tool is not None else []
    key = declared[0] if len(declared) == 1 else "code"
    # Without the end token a fence shows that nothing is missing.
    call = reader.call("interpreter", {key: code}, complete=closed or fenced is not None)
    return Found("internlm2", opener.start(), end, (call,), "sentinel", malformed or not closed or fenced is None)


# -- inkling -----------------------------------------------------------------------------------------------------------

_INKLING = table(__name__, "inkling")


def read_inkling(reader: Reader, position: int) -> Reading:
    start = reader.match(_INKLING.start, position)
    if start is None:
        return None
    calls, end, malformed = _read_inkling_calls(reader, start)
    malformed |= _INKLING.canonical.fullmatch(reader.value(start.start(), start.end())) is None
    at = reader.space(end)
    if closer := reader.match(_INKLING.closer, at):
        end = closer.end()
    else:
        malformed = True
        if reader.over and reader.match(_INKLING.cut_closer, at):
            end = reader.size
    return reader.block("inkling", position, end, calls, "sentinel", malformed or not calls)


def _read_inkling_calls(reader: Reader, start: Match) -> tuple[list[NativeCall], int, bool]:
    """Return the call (or several, which no template writes), its end, and whether it departs from the grammar."""
    at = reader.space(start.end())
    name = start["name"] or ""
    if start["form"] == "json" and reader.char(at) in ("{", "["):
        alone = reader.json(at) if name else None  # the arguments themselves, under a header with the name
        if alone is not None and not alone.failed and isinstance(alone.value, dict) and not _names_tool(alone.value):
            return [reader.call(name, alone.value, complete=True)], alone.end, True
        found = json_calls.read_calls(reader, at, _INKLING.stop, (_INKLING.start,), Keys("name", "args"))
        if found is not None:
            regular = found.canonical and len(found.calls) == 1 and not found.array
            return found.calls, found.end, not regular
    end = reader.stop(reader.next(_INKLING.stop, at))
    return ([reader.call(name, None, complete=False)] if name else []), end, True


def _names_tool(value: Mapping[str, object]) -> bool:
    return isinstance(value.get("name"), str) and ("args" in value or "arguments" in value or len(value) == 1)
