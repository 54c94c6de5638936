"""OpenAI's Harmony: messages on channels, a call being one that is addressed to a function.

Lineage: ChatGPT's internal format → gpt-oss (2025), and LLM-jp 4.1, which puts a blank after every token. Beam shares
the tokens with an XML body, Muse with tags of its own; both are other families.

    <|start|>assistant<|channel|>commentary to=functions.lookup <|constrain|>json<|message|>{"city": "Graz"}<|call|>

The recipient stands before or after the channel, `<|constrain|>` may be missing, and so is `<|start|>assistant` in
the first message of a reply. `<|end|>` closes a call that another follows. Types come from the JSON; no ids. `python`
and `browser.search` are built in, and `python` takes raw code. In the wild: no `<|message|>`, no closer, the
recipient without `functions.` or missing altogether, the channel twice, several calls in one for
`multi_tool_use.parallel`; or all tokens taken out by the server, so that `commentary to=functions.lookup json{…}` is
left. Where that is glued to thinking (`…assistantcommentary to=`) nothing tells any more where a message began, and
the call is never taken for complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects import jsontext, weak
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import Keys, calls_of
from wirelint.dialects.openers import LINE_START, WORD_START, Run, either, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.model import Json

_DIALECT = "harmony"
_S = r"\s{0,4}"
_TO = r"to=(?P<{}>[\w.:/-]{{1,160}})"
_TYPE = rf"(?:(?:<\|constrain\|>){_S}(?:json|code|text|python|(?P<xml>xml))?|json|code)?"
_MESSAGE = rf"{_S}(?P<message><\|message\|>)?"
_CHANNEL = rf"<\|channel\|>{_S}(?:commentary|analysis){_S}"
_HEADER = re.compile(
    rf"(?:<\|start\|>{_S})?(?:assistant{_S})?(?:{_TO.format('before')}{_S})?{_CHANNEL}(?:{_TO.format('after')}{_S})?"
    rf"(?P<again>{_CHANNEL})?{_TYPE}{_MESSAGE}"
)
_PLAIN_HEADER = re.compile(
    rf"<\|start\|>{_S}assistant{_S}{_TO.format('before')}{_S}{_TYPE}{_S}(?P<message><\|message\|>)"
)
_STRIPPED = re.compile(
    rf"(?P<channel>(?:assistant)?(?:commentary|analysis)[ \t]{{1,2}})?{_TO.format('before')}[ \t]{{0,2}}(?:json|code)?{_S}"
)
_LAST_TYPE = re.compile(r"(?:json|code)\Z")
_GLUED = re.compile(r"(?:assistant)?(?:commentary|analysis)[ \t]{1,2}\Z")
_FENCE = re.compile(r"`{3,8}[a-zA-Z]{0,16}\s{0,8}")
_FENCE_END = re.compile(r"\s{0,8}`{3,}")
_CLOSER = re.compile(r"(?P<surplus>[\s}]*)<\|(?P<token>call|end|return)\|>")
_STOP = re.compile(r"<\|(?:call|end|return|start|channel)\|>")
_FOREIGN = re.compile(r"<[a-zA-Z/]")
_ANALYSIS = re.compile(rf"<\|channel\|>{_S}analysis{_S}\Z")
_FARTHEST = 1 << 15
_PEOPLE = frozenset({"user", "assistant", "all", "self", "system", "developer"})
_PARALLEL = "multi_tool_use.parallel"
_USES = Keys("recipient_name", "parameters")


@dataclass(slots=True)
class _Body:
    """What a message says: the arguments, or the calls that they stand for, and whether they are whole."""

    end: int
    arguments: Json = None
    complete: bool = False
    malformed: bool = False


def _read(reader: Reader, position: int) -> Reading:
    header = reader.match(_HEADER, position) or reader.match(_PLAIN_HEADER, position)
    if header is not None and _goes_on(reader, header):
        return None
    if header is not None:
        return None if header["xml"] else _read_message(reader, header)
    return _read_stripped(reader, position)


def _goes_on(reader: Reader, header: Match) -> bool:
    """Whether more of a header may come: its name is not looked up before."""
    return reader.ended(header.end()) and not reader.over


def _read_message(reader: Reader, header: Match) -> Reading:
    groups = header.groupdict()
    recipient = groups.get("after") or groups["before"]
    if recipient is None:
        return _read_unaddressed(reader, header)
    if recipient in _PEOPLE:
        return None
    at = reader.space(header.end())
    if reader.match(_FOREIGN, at):
        return None
    body = _read_body(reader, at, recipient, raw=groups["message"] is not None)
    odd = not groups["message"] or bool(groups.get("again")) or not recipient.startswith("functions.")
    return _found(reader, _start(reader, header), body, recipient, odd=odd)


def _read_unaddressed(reader: Reader, header: Match) -> Reading:
    """Arguments that were sent to nobody: the closer of calls, and one tool alone that they fit, tell whose they are."""
    at = reader.space(header.end())
    if not header["message"] or reader.char(at) != "{":
        return None
    decoded = reader.json(at)
    closer = reader.match(_CLOSER, decoded.end) if not decoded.failed else None
    if closer is None or closer["token"] != "call" or not isinstance(decoded.value, dict):
        return None
    name = weak.infer(reader, decoded.value)
    if name is None:
        return None
    call = reader.call(name, decoded.value, complete=True)
    return Found(_DIALECT, _start(reader, header), closer.end(), (call,), "sentinel", malformed=True)


def _without_type(reader: Reader, written: str) -> str:
    """The recipient of a header whose type may stand right behind it (`to=functions.lookupjson`): a declared tool tells."""
    whole = _LAST_TYPE.sub("", written)
    known = reader.resolve(written) in reader.tools or reader.resolve(whole) not in reader.tools
    return written if known else whole


def _read_stripped(reader: Reader, position: int) -> Reading:
    """What is left when the server has taken the tokens out."""
    header = reader.match(_STRIPPED, position)
    if header is None or _goes_on(reader, header):
        return None
    glued = header["channel"] is None
    before = reader.shadow[max(reader.floor, position - 32) : position]
    if glued and _GLUED.search(before) is None:
        return None
    at = reader.space(header.end())
    if reader.char(at) != "{":
        return None
    recipient = _without_type(reader, header["before"])
    body = _read_body(reader, at, recipient, raw=False)
    if body.arguments is None and recipient != _PARALLEL and reader.tool(recipient) is None:
        return None
    body.complete = body.complete and not glued
    found = _found(reader, position, body, recipient, odd=True)
    return found._replace(tier="generic") if isinstance(found, Found) else found


def _start(reader: Reader, header: Match) -> int:
    """Where the message begins. `<|start|>assistant` after thinking is read as the end of the thinking."""
    start = header.start()
    before = reader.shadow[max(reader.floor, start - _FARTHEST) : start].rstrip()
    if not header[0].startswith("<|start|>") or not before.endswith("<|end|>"):
        return start
    message = before.rfind("<|message|>")
    channel = reader.shadow.find("<|channel|>", start, header.end())
    thought = message >= 0 and _ANALYSIS.search(before, max(message - 32, 0), message) is not None
    return channel if thought and channel >= 0 and header.groupdict()["before"] is None else start


def _found(reader: Reader, start: int, body: _Body, recipient: str, *, odd: bool) -> Reading:
    if recipient == _PARALLEL:
        uses = body.arguments.get("tool_uses") if isinstance(body.arguments, dict) else None
        calls = tuple(calls_of(reader, uses, _USES)[0])
        odd = True
    else:
        calls = (reader.call(recipient, body.arguments, complete=body.complete),)
    if reader.stand_ins(calls):
        return Skip(body.end)
    return Found(_DIALECT, start, body.end, calls, "sentinel", odd or body.malformed)


def _read_body(reader: Reader, at: int, recipient: str, *, raw: bool) -> _Body:
    """Arguments as JSON; text for what takes text, between `<|message|>` and a closer; or as much as there is of it."""
    body = _Body(at, malformed=True)
    fence = reader.match(_FENCE, at)
    if fence is not None or reader.char(at) in ("{", '"'):
        _read_json(reader, fence.end() if fence is not None else at, body)
        if fence is not None:
            fence_end = reader.match(_FENCE_END, body.end)
            body.end, body.malformed = fence_end.end() if fence_end is not None else body.end, True
    elif reader.ended(at):
        return body
    elif raw:
        stop = reader.next(_STOP, at)
        body.end = stop.start() if stop is not None else reader.size
        text = reader.value(at, body.end)
        body.arguments = weak.bound(reader.tool(recipient), text) if text else {}
        body.complete = stop is not None and body.arguments is not None
        body.malformed = not text or body.arguments is None
    else:
        return body
    if closer := reader.match(_CLOSER, body.end):
        body.end = closer.end()
        body.malformed |= closer["token"] == "return" or bool(closer["surplus"].strip())
    else:
        body.malformed = True
    return body


def _read_json(reader: Reader, at: int, body: _Body) -> None:
    decoded = reader.json(at)
    if not decoded.failed:
        body.end, body.complete = decoded.end, True
        body.malformed = not (decoded.healthy and isinstance(decoded.value, dict))
        body.arguments = weak.read_object(decoded.value) if isinstance(decoded.value, str) else decoded.value
        return
    stop = reader.next(_STOP, at)
    body.end = stop.start() if stop is not None else reader.size
    if stop is None:
        if at < reader.dead.get(_DIALECT, 0):
            return
        reader.dead[_DIALECT] = reader.size
    repaired = reader.repair(at, body.end)
    if repaired is not None and (stop is not None or not repaired.missing) and jsontext.writable(repaired.value):
        body.arguments, body.complete = repaired.value, True
        body.end = repaired.end


_BLANKS = Run(r"\s", 0, 4)

FAMILY = Family(
    "harmony",
    openers=(
        ("<|channel|>", _BLANKS, either("commentary", "analysis")),
        ("<|start|>", _BLANKS, "assistant"),
        (LINE_START, maybe("assistant"), either("commentary", "analysis"), Run(r" \t", 1, 2), "to="),
        (LINE_START, "assistant", Run(r" \t", 1, 2), "to="),
        (WORD_START, either("to=functions.", f"to={_PARALLEL}")),
    ),
    read=_read,
    speakers={_DIALECT: frozenset({"gpt-oss", "llm-jp"})},
)
