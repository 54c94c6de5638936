"""Kimi K2's call tokens, and the tags of Kimi K3."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.dialects import jsontext, weak
from wirelint.dialects.json_calls import read_arguments, read_calls
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, NativeCall, Reading, Tier
from wirelint.model import Json

_K2 = table(__name__, "kimi")
_HEADER_LIMIT = 160
_CANONICAL = frozenset(
    f"<|tool_{token}|>"
    for token in ("calls_section_begin", "call_begin", "call_argument_begin", "call_end", "calls_section_end")
)


@dataclass(slots=True)
class _Section(Calls):
    """The calls in a run of tokens from `start` on. `barred`: the tokens are not rendered as plain tags."""

    start: int = 0
    barred: bool = False


def read_kimi(reader: Reader, position: int) -> Reading:
    if token := reader.match(_K2.token, position):
        return _read_section(reader, token)
    stripped = reader.match(_K2.stripped, position)
    return _read_stripped(reader, stripped) if stripped is not None else None


def _kind(token: Match) -> str:
    """Return `section_begin`, `begin`, `arg`, `arg_end`, `end` or `section_end`."""
    words = [word for word in _K2.letters.split(token[0]) if word]
    closing = "/" in token[0]
    if "section" in words:
        return "section_end" if closing else f"section_{words[-1]}"
    if any(word.startswith("arg") for word in words):
        return "arg_end" if closing else "arg"
    return "end" if closing else words[-1]


def _read_section(reader: Reader, token: Match) -> Reading:
    kind = _kind(token)
    if kind in ("begin", "end") and _is_foreign(reader, token, kind):
        return None
    section = _Section(token.end(), start=token.start(), barred="|" in token[0])
    if not section.barred and token.start() < reader.dead.get("kimi_k2", 0):
        return None
    section.malformed = kind != "section_begin"
    at = token.start()
    while here := reader.match(_K2.token, at):
        kind = _kind(here)
        reader.work += len(here[0])
        section.malformed |= reader.value(here.start(), here.end()) not in _CANONICAL
        section.end = here.end()
        match kind:
            case "begin":
                _read_call(reader, here.end(), section)
            case "arg":
                _read_headless(reader, here, section)
            case "section_begin":
                _read_call(reader, here.end(), section, only_with_header=True)
            case "section_end":
                break
        at = reader.space(section.end)
    else:
        section.malformed = True
    return _finish(reader, section)


def _is_foreign(reader: Reader, token: Match, kind: str) -> bool:
    """Return True for a token of LFM2, Pangu (both close with `<|tool_call_end|>`), DeepSeek or Step 3 (other bars)."""
    if kind == "end" and reader.between(_K2.lfm2_start, reader.floor, token.start()):
        return True
    if reader.value(token.start(), token.end()).isascii():
        return False
    follower = reader.match(_K2.follower, token.end())
    follower = reader.match(_K2.token, follower.end()) if follower is not None else None
    return follower is None or _kind(follower) != "arg"


def _finish(reader: Reader, section: _Section) -> Reading:
    tier: Tier = "sentinel" if section.barred else "generic"
    if tier == "generic" and not any(call.complete or call.name in reader.tools for call in section.calls):
        reader.dead["kimi_k2"] = section.end
        return None
    malformed = section.malformed or not section.calls
    return reader.block("kimi_k2", section.start, section.end, section.calls, tier, malformed)


def _read_call(reader: Reader, start: int, section: _Section, *, only_with_header: bool = False) -> None:
    """Read a header and its body after a begin token, or after a section token if the begin token is missing."""
    at = reader.space(start)
    stop = reader.after(_K2.header, at)
    header = reader.view.text[at:stop].strip()
    if not header and not only_with_header and reader.char(stop) == "{":
        _read_named(reader, stop, section)
        return
    if not header or "\n" in header:
        # Two begin tokens in a row: the first opened nothing.
        section.malformed |= not only_with_header
        return
    token = reader.match(_K2.token, stop)
    kind = _kind(token) if token is not None else None
    if kind != "arg" and (token is not None or reader.char(stop) not in ("{", "[", '"', "<")):
        if kind == "begin":
            section.malformed, section.end = True, stop
        elif not only_with_header and not reader.open and _K2.header_shape.fullmatch(header):
            section.calls.append(reader.call(header, None, complete=False, native_id=header))
            section.malformed, section.end = True, stop
        return
    section.malformed |= token is None or only_with_header or not header.startswith("functions.")
    _read_arguments(reader, token.end() if token is not None else stop, header, section)


def _read_named(reader: Reader, at: int, section: _Section) -> None:
    """Read an object that contains the name, in place of a header and its arguments."""
    found = read_calls(reader, at, _K2.token)
    section.malformed = True
    if found is not None:
        section.calls += found.calls
        section.end = found.end
        _close_call(reader, section)


def _read_headless(reader: Reader, token: Match, section: _Section) -> None:
    """Read an argument token whose begin token is missing; its header may stand before the section."""
    section.malformed = True
    header = ""
    if not section.calls and token.start() == section.start:
        floor = max(reader.floor, token.start() - _HEADER_LIMIT)
        before = _K2.header_before.search(reader.view.text[floor : token.start()])
        if before is not None:
            header = before["id"]
            if reader.tool(header) is not None:
                section.start = floor + before.start("id")
    _read_arguments(reader, token.end(), header, section)


def _read_stripped(reader: Reader, stripped: Match) -> Reading:
    """Read `functions.lookup:0{…}`, which is left if all tokens are stripped."""
    section = _Section(stripped.end(), start=stripped.start(), malformed=True)
    token = reader.match(_K2.token, stripped.end())
    at = stripped.end()
    if token is not None:
        if _kind(token) != "arg":
            return None
        at, section.barred = token.end(), "|" in token[0]
    elif reader.char(at) != "{" or (reader.tool(stripped["id"]) is None and reader.json(at).failed):
        return None
    _read_arguments(reader, at, stripped["id"], section)
    while after := reader.match(_K2.token, reader.space(section.end)):
        if not _kind(after).endswith("end"):
            break
        section.end = after.end()
    return _finish(reader, section)


def _read_arguments(reader: Reader, start: int, header: str, section: _Section) -> None:
    at = reader.space(start)
    section.end = start
    value: Json = {}
    complete = True
    if reader.match(_K2.token, at):  # no arguments at all
        section.malformed = True
    else:
        if reader.char(at) == "`" and (fence := reader.match(_K2.fence, at)):
            at, section.malformed = fence.end(), True
        value, section.end, complete, canonical = read_arguments(reader, at, _K2.token, starts='{["', to_stop=True)
        section.malformed |= not canonical
    nameless = not header or header.isdecimal() or (_K2.foreign_id.fullmatch(header) and header not in reader.tools)
    if nameless and value is None:  # no name has been read that could be a stranger's
        section.calls.append(NativeCall(header, None, header or None, complete=False))
    else:
        name = weak.infer(reader, value, empty=True) if nameless and isinstance(value, dict) else None
        section.calls.append(reader.call(name or header, value, complete=complete, native_id=header or None))
    _close_call(reader, section)


def _close_call(reader: Reader, section: _Section) -> None:
    at = reader.space(section.end)
    if surplus := reader.match(_K2.surplus, at):
        at, section.malformed = surplus.end(), True
    closer = reader.match(_K2.token, at)
    if closer is not None and _kind(closer) == "end":
        section.end = closer.end()
    else:
        section.malformed = True


# -- kimi_k3 -----------------------------------------------------------------------------------------------------------

_K3 = table(__name__, "kimi_k3")


@dataclass(slots=True)
class _Channel(Calls):
    """The calls of a `tools` channel."""

    def advance(self, reader: Reader, tag: Match) -> None:
        """Go on after a tag."""
        self.end = tag.end()
        self.malformed |= _K3.canonical.fullmatch(reader.value(tag.start(), tag.end())) is None


def read_kimi_k3(reader: Reader, position: int) -> Reading:
    tools = reader.match(_K3.tools, position)
    channel = _Channel(position, malformed=tools is None)
    if tools is not None:
        channel.advance(reader, tools)
    while call := reader.match(_K3.call, reader.space(channel.end)):
        channel.advance(reader, call)
        _read_tagged_call(reader, call, channel)
        if not channel.calls[-1].complete:
            break
    if tools is None and not channel.calls:
        return None
    for closer in (_K3.tools_end, _K3.message_end):
        if end := reader.match(closer, reader.space(channel.end)):
            channel.advance(reader, end)
        else:
            channel.malformed |= closer is _K3.tools_end
    malformed = channel.malformed or not channel.calls
    return reader.block("kimi_k3_xtml", position, channel.end, channel.calls, "sentinel", malformed)


def _read_tagged_call(reader: Reader, call: Match, channel: _Channel) -> None:
    attributes = _attributes(call)
    name = attributes.get("tool") or attributes.get("name") or ""
    arguments: dict[str, Json] = {}
    whole = bool(name)
    while whole and (argument := reader.match(_K3.argument, reader.space(channel.end))):
        channel.advance(reader, argument)
        stop = reader.first((_K3.argument_end, _K3.tag), argument.end())
        if stop is None:
            channel.end, whole = reader.size, False
            break
        described = _attributes(argument)
        text = reader.value(argument.end(), stop.start())
        arguments[described.get("key") or described.get("name") or ""] = _typed(text, described.get("type"))
        channel.end = stop.start()
        if end := reader.match(_K3.argument_end, stop.start()):
            channel.advance(reader, end)
        else:
            channel.malformed = True
    if whole and not arguments:
        arguments = _read_object(reader, channel)
    closer = reader.match(_K3.call_end, reader.space(channel.end)) if whole else None
    if closer is not None:
        channel.advance(reader, closer)
    else:
        channel.malformed = True
        whole = whole and _goes_on(reader, channel, arguments)
    channel.calls.append(reader.call(name, arguments, complete=whole and "" not in arguments))


def _read_object(reader: Reader, channel: _Channel) -> dict[str, Json]:
    """Read the arguments as one object in place of the tags."""
    at = reader.space(channel.end)
    decoded = reader.json(at) if reader.char(at) == "{" else None
    if decoded is None or not isinstance(decoded.value, dict):
        return {}
    channel.end, channel.malformed = decoded.end, True
    return decoded.value


def _goes_on(reader: Reader, channel: _Channel, arguments: dict[str, Json]) -> bool:
    """Return True if a call without a closer is whole all the same: its arguments are closed, or the next tag follows."""
    at = reader.space(channel.end)
    if reader.ended(at):
        return bool(arguments)
    after = (_K3.call, _K3.tools_end, _K3.message_end)
    return any(reader.match(pattern, at) for pattern in after) or (bool(arguments) and not reader.match(_K3.tag, at))


def _attributes(tag: Match) -> dict[str, str]:
    found = _K3.attribute.finditer(tag["attributes"])
    return {one["key"]: one["value"].replace("&quot;", '"').replace("&amp;", "&") for one in found}


def _typed(text: str, kind: str | None) -> Json:
    """Return a value by the type in its tag; text that is no JSON stays text."""
    if kind is None or kind == "string":
        return text
    try:
        return jsontext.loads(text.strip())
    except ValueError:
        repaired = jsontext.repair(text.strip()) if kind in ("object", "array") else None
        whole = repaired is not None and not repaired.missing and repaired.end == len(text.strip())
        return repaired.value if repaired is not None and whole else text
