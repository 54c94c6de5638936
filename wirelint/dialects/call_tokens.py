"""Special tokens around a tool's name and its arguments, and functions that OpenAI's models address in plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from wirelint.dialects import declared, jsontext
from wirelint.dialects.json_blocks import Keys, calls_of, read_arguments, read_calls, read_enclosed
from wirelint.dialects.reader import Arguments, Calls, Match, NativeCall, Reader, Reading, Tier
from wirelint.dialects.tables import tables
from wirelint.model import Json

_DEEPSEEK, _PLAMO, _QWEN_AGENT, _INTERNLM = tables(__name__, "deepseek", "plamo", "qwen_agent", "internlm")
_INKLING, _K2, _K3 = tables(__name__, "inkling", "kimi", "kimi_k3")
_HARMONY, _FUNCTIONS = tables(__name__, "harmony", "functions_leak")
_WORD = re.compile(r"[a-z]+")

_TYPES = frozenset({"function", "custom", "tool"})


@dataclass(slots=True)
class _DeepSeekCalls(Calls):
    """The calls in a run of tokens. `fenced`: whether the first body was in a fence; None before it."""

    fenced: bool | None = None


def read_deepseek(reader: Reader, position: int) -> Reading:
    token = reader.match(_DEEPSEEK.token, position)
    if token is None or not _is_deepseek(reader, token):
        return None
    section = _DeepSeekCalls(position)
    while here := reader.follow(_DEEPSEEK.token, section.end):
        section.end = here.end()
        match _token_kind(here):
            case "calls_begin" | "calls":
                _read_deepseek_call(reader, section, begun=False)
            case "call_begin":
                _read_deepseek_call(reader, section, begun=True)
            case "calls_end":
                break
    return reader.block("deepseek_v3" if section.fenced else "deepseek_v3_1", position, section.end, section.calls)


def _is_deepseek(reader: Reader, token: Match) -> bool:
    """Return True unless the token is Kimi K2's (`<|tool_call_begin|>`) or Step 3's, which only the bytes around show."""
    if reader.match(_DEEPSEEK.step_after, token.start()):
        return False
    kind = _token_kind(token)
    if kind not in ("call_begin", "call_end"):
        return True
    if kind == "call_begin":
        before = reader.open
        if leads := reader.match(_DEEPSEEK.leads_to, token.start()):
            return bool(leads["sep"] == "sep")
        if reader.open and not before:  # not decided yet: no other family should read a name from its beginning
            return True
    written = reader.value(token.start(), token.end())
    return not written.isascii() or "tool_" not in written


def _token_kind(token: Match) -> str:
    """Return `calls_begin`, `calls`, `call_begin`, `sep`, `call_end` or `calls_end`."""
    return "_".join(_WORD.findall(token[0])[1:])


def _read_deepseek_call(reader: Reader, section: _DeepSeekCalls, *, begun: bool) -> None:
    """Read `TYPE<sep>NAME` and a fence, or `NAME<sep>` and JSON; after a begin token the separator may be missing."""
    at = reader.space(section.end)
    edge = reader.after(_DEEPSEEK.header, at)
    first = reader.shadow[at:edge].strip()
    separator = reader.follow(_DEEPSEEK.token, edge)
    if separator is None or _token_kind(separator) != "sep":
        if not begun or not first or " " in first or reader.open:  # it may be the beginning of a name, or a type
            return
        section.end = edge
        if reader.char(edge) in ("{", "`"):
            _read_deepseek_body(reader, first, section)
        else:
            section.add(reader.call(first, None, complete=False), edge)
        return
    section.end = separator.end()
    name = reader.match(_DEEPSEEK.name, section.end) if first in _TYPES else None
    if first not in _TYPES:
        _read_deepseek_body(reader, first, section)
    elif reader.open:  # the name is still to come, or may go on
        return
    elif name is not None and (
        "\n" in name["space"]
        or reader.char(name.end()) in ("", "{", "<")
        or reader.match(_DEEPSEEK.ticks, name.end()) is not None
    ):
        section.fenced = True if section.fenced is None else section.fenced
        section.end = name.end()
        _read_deepseek_body(reader, name["name"], section)
    elif reader.char(reader.space(section.end)) == "{":
        _read_deepseek_body(reader, first, section)


def _read_deepseek_body(reader: Reader, name: str, section: _DeepSeekCalls) -> None:
    at = reader.space(section.end)
    fence = reader.match(_DEEPSEEK.fence, at)
    at = reader.space(fence.end()) if fence is not None else at
    section.fenced = fence is not None if section.fenced is None else section.fenced
    arguments = read_arguments(reader, at, _DEEPSEEK.token, starts='{["', to_stop=True)
    end = arguments.end if fence is None else reader.after(_DEEPSEEK.fence_end, arguments.end)
    section.add(reader.call(name, arguments.value, complete=arguments.complete), end)


def read_plamo(reader: Reader, position: int) -> Reading:
    run = Calls(position)
    name: str | None = None
    while here := reader.follow(_PLAMO.token, run.end):
        run.end = here.end()
        _, kind, _, part, *_ = _WORD.findall(here[0])
        if kind == "begin" and part == "name":
            if name is not None:  # no arguments came
                run.calls.append(reader.call(name, None, complete=False))
            written = reader.match(_PLAMO.name, run.end) or (reader.over and reader.match(_PLAMO.last_name, run.end))
            name = written[1] if written else None
            run.end = written.end() if written else run.end
        elif kind == "begin" and part == "arguments":
            at = reader.past(reader.space(run.end), _PLAMO.constraint, _PLAMO.bare_type)
            arguments = read_arguments(reader, at, _PLAMO.token)
            complete = arguments.complete and name is not None
            run.add(reader.call(name or "", arguments.value, complete=complete), arguments.end)
            name = None
        elif kind == "end" and part == "requests":
            break
    else:
        run.end = reader.past(run.end, _PLAMO.cut_token)
    if name is not None:
        run.calls.append(reader.call(name, None, complete=False))
    return reader.block("plamo3", position, run.end, run.calls)


def read_qwen_agent(reader: Reader, position: int) -> Reading:
    run = Calls(position)
    at = position
    if at < reader.dead["qwen_agent_flower"]:
        return None
    while function := reader.match(_QWEN_AGENT.last_function if reader.over else _QWEN_AGENT.function, at):
        value: Json = None
        end, complete = function.end(), False
        if label := reader.match(_QWEN_AGENT.arguments, end):
            value, end, complete = read_arguments(reader, reader.space(label.end()), _QWEN_AGENT.stop)
        run.add(reader.call(function["name"], value, complete=complete), end)
        at = reader.space(end)
    # Undoing escapes breaks arguments that were encoded twice; the markers have nothing to escape.
    if not run.calls or (reader.view.decoded and not all(call.complete for call in run.calls)):
        return None
    known = any(call.complete or call.name in reader.tools for call in run.calls)
    if not known and not reader.ended(at):
        reader.dead["qwen_agent_flower"] = run.end
        return None
    end = reader.past(run.end, _QWEN_AGENT.result, _QWEN_AGENT.cut)
    return reader.block("qwen_agent_flower", position, end, run.calls)


def read_internlm(reader: Reader, position: int) -> Reading:
    opener = reader.match(_INTERNLM.opener, position)
    if opener is None:
        return None
    if opener["code"]:
        at = reader.space(opener.end())
        fence = reader.match(_INTERNLM.fence, at)
        start = fence.end() if fence is not None else at
        stop = reader.next(start, _INTERNLM.closer, _INTERNLM.starter)
        closed = stop is not None and stop.re == _INTERNLM.closer
        end = reader.stop(stop)
        code = reader.value(start, end)  # for the interpreter: the text before the end token, without its fence
        fence_end = _INTERNLM.fenced_end if stop is not None else _INTERNLM.fence_line
        fenced = fence_end.search(code) if fence is not None else None
        if stop is not None and closed:
            end = stop.end()
        elif fenced is not None:
            end = start + fenced.end()
        code = code[: fenced.start()] if fenced is not None else code.rstrip()
        arguments = declared.code_arguments(reader.tool("interpreter"), code)
        # Without the end token a fence shows that nothing is missing.
        call = reader.call("interpreter", arguments, complete=closed or fenced is not None)
        return reader.block("internlm2", opener.start(), end, (call,))
    found = read_enclosed(reader, reader.past(opener.end(), _INTERNLM.fence), _INTERNLM.closer, (_INTERNLM.starter,))
    if found is not None:
        return reader.block("internlm2", position, found.end, found.calls)
    marked = opener["start"] and opener["plugin"]
    return reader.block("internlm2", position, reader.past(opener.end(), _INTERNLM.closer)) if marked else None


def read_inkling(reader: Reader, position: int) -> Reading:
    start = reader.match(_INKLING.start, position)
    if start is None:
        return None
    at = reader.space(start.end())
    name = start["name"] or ""
    run: Calls | None = None
    if start["form"] == "json" and reader.char(at) in ("{", "["):
        alone = reader.json(at)
        if name and isinstance(alone.value, dict) and not _names_tool(alone.value):  # the arguments themselves
            run = Calls(alone.end, [reader.call(name, alone.value, complete=True)])
        else:  # the call, or several calls, which no template writes
            run = read_calls(reader, at, _INKLING.stop, (_INKLING.start,))
    if run is None:
        run = Calls(reader.stop(reader.next(at, _INKLING.stop)))
        run.calls += [reader.call(name, None, complete=False)] if name else []
    cut = reader.is_cut(_INKLING.closer, reader.space(run.end))
    end = reader.size if cut else reader.past(run.end, _INKLING.closer)
    return reader.block("inkling", position, end, run.calls)


def _names_tool(value: Mapping[str, Json]) -> bool:
    return isinstance(value.get("name"), str) and ("args" in value or "arguments" in value or len(value) == 1)


_HEADER_LIMIT = 160


@dataclass(slots=True)
class _Section(Calls):
    """The calls in a run of tokens from `start` on. `barred`: the tokens are not rendered as plain tags."""

    start: int = 0
    barred: bool = False


def read_kimi(reader: Reader, position: int) -> Reading:
    if token := reader.match(_K2.token, position):
        if _kind(token) in ("begin", "end") and _is_foreign(reader, token):
            return None
        section = _Section(token.end(), start=token.start(), barred="|" in token[0])
        if not section.barred and token.start() < reader.dead["kimi_k2"]:
            return None
        section.end = token.start()
        while here := reader.follow(_K2.token, section.end):
            section.end = here.end()
            match _kind(here):
                case "begin":
                    _read_call(reader, section)
                case "arg":
                    _read_headless(reader, here, section)
                case "section_begin":
                    _read_call(reader, section, only_with_header=True)
                case "section_end":
                    break
        return _finish(reader, section)
    stripped = reader.match(_K2.stripped, position)
    return _read_stripped(reader, stripped) if stripped is not None else None


def _kind(token: Match) -> str:
    """Return `section_begin`, `begin`, `arg`, `arg_end`, `end` or `section_end`."""
    words = _WORD.findall(token[0])
    closing = "/" in token[0]
    if "section" in words:
        return "section_end" if closing else f"section_{words[-1]}"
    if any(word.startswith("arg") for word in words):
        return "arg_end" if closing else "arg"
    return "end" if closing else words[-1]


def _is_foreign(reader: Reader, token: Match) -> bool:
    """Return True for a token of LFM2, Pangu (both close with `<|tool_call_end|>`), DeepSeek or Step 3 (other bars)."""
    lfm2 = reader.seek(_K2.lfm2_start, reader.floor) if _kind(token) == "end" else None
    if lfm2 is not None and lfm2.end() <= token.start():
        return True
    if reader.value(token.start(), token.end()).isascii():
        return False
    follower = reader.match(_K2.token, reader.after(_K2.follower, token.end()))
    return follower is None or _kind(follower) != "arg"


def _finish(reader: Reader, section: _Section) -> Reading:
    if section.barred:
        return reader.block("kimi_k2", section.start, section.end, section.calls)
    sure = any(call.complete for call in section.calls)
    return reader.generic_block("kimi_k2", section.start, section.end, section.calls, sure=sure)


def _read_call(reader: Reader, section: _Section, *, only_with_header: bool = False) -> None:
    """Read a header and its body after a begin token, or after a section token if the begin token is missing."""
    at = reader.space(section.end)
    stop = reader.after(_K2.header, at)
    header = reader.view.text[at:stop].strip()
    if not header and not only_with_header and reader.char(stop) == "{":
        found = read_calls(reader, stop, _K2.token)  # an object that holds the name too
        if found is not None:
            section.calls += found.calls
            section.end = found.end
            _close_call(reader, section)
        return
    if not header or "\n" in header:  # two begin tokens in a row: the first opened nothing
        return
    token = reader.match(_K2.token, stop)
    kind = _kind(token) if token is not None else None
    if kind != "arg" and (token is not None or reader.char(stop) not in ("{", "[", '"', "<")):
        if kind == "begin":
            section.end = stop
        elif not only_with_header and not reader.open and _K2.header_shape.fullmatch(header):
            section.add(reader.call(header, None, complete=False, native_id=header), stop)
        return
    _read_arguments(reader, token.end() if token is not None else stop, header, section)


def _read_headless(reader: Reader, token: Match, section: _Section) -> None:
    """Read an argument token whose begin token is missing; its header may be before the section."""
    header = ""
    if not section.calls and token.start() == section.start:
        floor = max(reader.floor, token.start() - _HEADER_LIMIT)
        before = _K2.header_before.search(reader.view.text[floor : token.start()])
        header = before["id"] if before is not None else ""
        if before is not None and reader.tool(header) is not None:
            section.start = floor + before.start("id")
    _read_arguments(reader, token.end(), header, section)


def _read_stripped(reader: Reader, stripped: Match) -> Reading:
    """Read `functions.lookup:0{…}`, which is left if all tokens are stripped."""
    section = _Section(stripped.end(), start=stripped.start())
    token = reader.match(_K2.token, stripped.end())
    at = stripped.end()
    if token is not None:
        if _kind(token) != "arg":
            return None
        at, section.barred = token.end(), "|" in token[0]
    elif reader.char(at) != "{" or (reader.tool(stripped["id"]) is None and reader.json(at).failed):
        return None
    _read_arguments(reader, at, stripped["id"], section)
    while after := reader.follow(_K2.token, section.end):
        if not _kind(after).endswith("end"):
            break
        section.end = after.end()
    return _finish(reader, section)


def _read_arguments(reader: Reader, start: int, header: str, section: _Section) -> None:
    at = reader.space(start)
    read = Arguments({}, start, complete=True)
    if reader.match(_K2.token, at) is None:  # a token: no arguments at all
        read = read_arguments(reader, reader.after(_K2.fence, at), _K2.token, starts='{["', to_stop=True)
    value, section.end, complete = read
    name = header
    nameless = not header or header.isdecimal() or (_K2.foreign_id.fullmatch(header) and header not in reader.tools)
    if nameless and isinstance(value, dict):
        name = declared.infer(reader.tools.values(), value, empty=True) or header
    if nameless and value is None:  # no name has been read that could be a stranger's
        section.calls.append(NativeCall(header, None, header or None, complete=False))
    else:
        section.calls.append(reader.call(name, value, complete=complete, native_id=header or None))
    _close_call(reader, section)


def _close_call(reader: Reader, section: _Section) -> None:
    closer = reader.match(_K2.token, reader.after(_K2.surplus, reader.space(section.end)))
    if closer is not None and _kind(closer) == "end":
        section.end = closer.end()


def read_kimi_k3(reader: Reader, position: int) -> Reading:
    channel = Calls(reader.after(_K3.tools, position))
    opened = channel.end > position
    while (call := reader.follow(_K3.call, channel.end)) and _read_tagged_call(reader, call, channel):
        pass
    if not opened and not channel.calls:
        return None
    end = reader.past(reader.past(channel.end, _K3.tools_end), _K3.message_end)
    return reader.block("kimi_k3_xtml", position, end, channel.calls)


def _read_tagged_call(reader: Reader, call: Match, channel: Calls) -> bool:
    attributes = _attributes(call)
    name = attributes.get("tool") or attributes.get("name") or ""
    arguments: dict[str, Json] = {}
    whole = bool(name)
    channel.end = call.end()
    while whole and (argument := reader.follow(_K3.argument, channel.end)):
        stop = reader.next(argument.end(), _K3.argument_end, _K3.tag)
        if stop is None:
            channel.end, whole = reader.size, False
            break
        described = _attributes(argument)
        text = reader.value(argument.end(), stop.start())
        kind = described.get("type", "string")
        arguments[described.get("key") or described.get("name") or ""] = declared.coerce(text, {"type": kind})
        channel.end = reader.after(_K3.argument_end, stop.start())
    if whole and not arguments:  # one object in place of the tags
        at = reader.space(channel.end)
        decoded = reader.json(at) if reader.char(at) == "{" else None
        if decoded is not None and isinstance(decoded.value, dict):
            channel.end, arguments = decoded.end, decoded.value
    if whole and (closer := reader.follow(_K3.call_end, channel.end)):
        channel.end = closer.end()
    else:
        whole = whole and _is_whole(reader, channel, arguments)
    return channel.add(reader.call(name, arguments, complete=whole and "" not in arguments), channel.end)


def _is_whole(reader: Reader, channel: Calls, arguments: dict[str, Json]) -> bool:
    """Return True if a call without a closer is whole: its arguments are closed, or the next tag follows."""
    at = reader.space(channel.end)
    if reader.ended(at):
        return bool(arguments)
    after = (_K3.call, _K3.tools_end, _K3.message_end)
    return any(reader.match(pattern, at) for pattern in after) or (bool(arguments) and not reader.match(_K3.tag, at))


def _attributes(tag: Match) -> dict[str, str]:
    found = _K3.attribute.finditer(tag["attributes"])
    return {one["key"]: one["value"].replace("&quot;", '"').replace("&amp;", "&") for one in found}


_FARTHEST = 1 << 15
_PEOPLE = frozenset({"user", "assistant", "all", "self", "system", "developer"})
_PARALLEL = "multi_tool_use.parallel"
_USES = Keys("recipient_name", "parameters")


def read_harmony(reader: Reader, position: int) -> Reading:
    if not (reader.over or _may_address(reader, position)):
        return None
    header = reader.match(_HARMONY.header, position) or reader.match(_HARMONY.plain_header, position)
    if header is None:
        header = reader.match(_HARMONY.stripped, position)  # the server has removed the tokens
        if header is None or _may_continue(reader, header):
            return None
        glued = _glued(reader, position) if header["channel"] is None else None
        if header["channel"] is None and glued is None:
            return None
        at = reader.space(header.end())
        if reader.char(at) != "{":
            return None
        recipient = _without_type(reader, header["before"])
        body = _read_harmony_body(reader, at, recipient, raw=False)
        if body.value is None and recipient != _PARALLEL and reader.tool(recipient) is None:
            return None
        whole = body.complete and (glued is None or glued["role"] is not None)
        return _found(reader, position, body._replace(complete=whole), recipient, "generic")
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
        body = _read_harmony_body(reader, at, recipient, raw=groups["message"] is not None)
        return _found(reader, _start(reader, header), body, recipient)
    # Without a recipient the closer of calls, and a single tool that the arguments fit, decide.
    if not header["message"] or reader.char(at) != "{":
        return None
    decoded = reader.json(at)
    closer = reader.match(_HARMONY.closer, decoded.end)
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


def _read_harmony_body(reader: Reader, at: int, recipient: str, *, raw: bool) -> Arguments:
    """Read arguments as JSON; or text between `<|message|>` and a closer, for a tool that takes text."""
    fence = reader.match(_HARMONY.fence, at)
    if fence is not None or reader.char(at) in ("{", '"'):
        value, end, complete = _read_harmony_json(reader, fence.end() if fence is not None else at)
        end = end if fence is None else reader.after(_HARMONY.fence_end, end)
    elif reader.ended(at) or not raw:
        return Arguments(None, at, complete=False)
    else:
        stop = reader.next(at, _HARMONY.stop)
        end = reader.stop(stop)
        text = reader.value(at, end)
        value = declared.bind(reader.tool(recipient), text) if text else {}
        complete = stop is not None and value is not None
    return Arguments(value, reader.after(_HARMONY.closer, end), complete)


def _read_harmony_json(reader: Reader, at: int) -> Arguments:
    decoded = reader.json(at)
    if not decoded.failed:
        value = jsontext.whole_value(decoded.value) if isinstance(decoded.value, str) else decoded.value
        is_text = isinstance(decoded.value, str) and not isinstance(value, dict)
        return Arguments(None if is_text else value, decoded.end, complete=True)
    if reader.next(at, _HARMONY.stop) is None:
        if at < reader.dead["harmony"]:
            return Arguments(None, reader.size, complete=False)
        reader.dead["harmony"] = reader.size
    return reader.rescue(at, _HARMONY.stop)


def read_functions_leak(reader: Reader, position: int) -> Reading:
    if header := reader.match(_FUNCTIONS.header, position):
        return _read_addressed(reader, header)
    if plugin := reader.match(_FUNCTIONS.plugin, position):
        tool = reader.tool(plugin["name"])
        if tool is None or reader.char(plugin.end()) != "{" or not _opens_line(reader, plugin.start()):
            return None
        payload = _read_payload_json(reader, plugin.end())
        if payload is None:
            return None
        call, end = reader.call(tool.name, payload.value, complete=payload.complete), payload.end
        if payload.complete:
            closed = reader.match(_FUNCTIONS.plugin_end, end)
            if closed is None or not reader.fits(call) or not (closed["line_end"] or reader.ended(closed.end())):
                return None
            end = closed.end("paren")
        return reader.block("openai_functions_leak", plugin.start(), end, (call,), "generic")
    parallel = reader.match(_FUNCTIONS.parallel, position)
    if parallel is None:
        return _read_bare_payload(reader, position)
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


def _read_bare_payload(reader: Reader, position: int) -> Reading:
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
    if at < reader.dead["openai_functions_leak"]:
        return None
    reader.dead["openai_functions_leak"] = reader.size
    read = reader.rescue(at)
    return read if read.complete or decoded.end >= reader.size else None


def _opens_line(reader: Reader, position: int) -> bool:
    return _FUNCTIONS.line_before.search(reader.shadow[max(position - 16, 0) : position]) is not None or position == 0
