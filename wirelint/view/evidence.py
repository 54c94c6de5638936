"""What a finding points at, as it stood on the wire: a stretch of the body or of an event, and the evidence in it.

Theory of operation. A finding has a pointer into the body that a reply amounts to, an event number, and offsets in the
text at the pointer, each where it is known. Of a whole body the value at the pointer is found in the raw text; of a
stream, the data of the event. The text between the offsets is then looked for in the JSON strings there, in which it is
spelled with escapes. Without offsets, what the message quotes is the evidence, else the value itself.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from wirelint.capture.offline import Checked
from wirelint.engine import lower
from wirelint.events import Frame
from wirelint.model import Part, Reasoning, Reply, Request, Side, Text, ToolCall, ToolResult
from wirelint.rule import Finding
from wirelint.text.json_places import locate, matching, spelled, within
from wirelint.text.pointers import escaped
from wirelint.wire import Sniffer

_MOST = 1 << 20
"""Characters of a body in which a quotation is looked for."""
_QUOTED = re.compile(r"`([^`]+)`|(?<!\w)'([^']+)'(?!\w)|(?<![\w{\[:,])\"([^\"]+)\"")
_NAMED = re.compile(r"[\w.<>|/-]*[\d_|][\w.<>|/-]*")
_MEMBER = re.compile(r"\S+: ([\w-]+)(?:[.\[]\S*)?(?:: | [\"'])")
_INPUTS = ("input", "args", "arguments", "function/arguments", "toolUse/input", "functionCall/args")
"""Where APIs have the arguments of a call, if they have them as JSON."""
_WHOLE = 400
"""Characters up to which a value is its own evidence."""

_Written: TypeAlias = Text | Reasoning | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Evidence:
    """A stretch of what stood on the wire. `start`, `end`: the evidence in it, equal when nothing in it stands out.

    `event`: the number of the event that `text` is the data of; None in a whole body. `joined`: `text` is what the events
    of a stream amount to, of which the evidence is more than one.
    """

    text: str
    start: int
    end: int
    event: int | None = None
    joined: bool = False


class Source:
    """The bodies of an exchange, taken apart once for all of its findings."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def evidence(self, finding: Finding) -> list[Evidence]:
        """What a finding points at, empty where it points at nothing that was written (at a silence, say).

        Of text that came in several events: the text, then the data of the event that it begins with.
        """
        part = self._part(finding.side, finding.pointer)
        event = finding.event if finding.event is not None else self._event(finding)
        if finding.span is None and (span := _in_arguments(finding, part)) is not None:
            finding = dataclasses.replace(finding, span=span)
            event = part.event_at(span[0]) if isinstance(part, ToolCall) and event is not None else event
        if event is not None and finding.side == "response":
            return [*_joined(finding, part), *self._in_event(finding, part, event)]
        if finding.side == "response" and self._frames is not None:
            return []
        text = self._request if finding.side == "request" else self._response
        if finding.pointer is None or not text:
            return []
        start, end, _ = locate(text, finding.pointer)
        return [Evidence(text, *_stretch(finding, part, text, start, end))]

    # --- the record ----------------------------------------------------------------------------------------------------

    @cached_property
    def _request(self) -> str:
        return (self._checked.record.request_body or b"").decode("utf-8", "replace")

    @cached_property
    def _response(self) -> str:
        return (self._checked.record.response_body or b"").decode("utf-8", "replace")

    @cached_property
    def _frames(self) -> dict[int, Frame] | None:
        """The events of the reply by number; None when it is a whole body."""
        record = self._checked.record
        if not record.response_body:
            return None
        sniffer = Sniffer(lower(record.response_headers))
        frames = [*sniffer.feed(record.response_body), *sniffer.close()]
        return {frame.number: frame for frame in frames} if sniffer.streamed else None

    @cached_property
    def _parts(self) -> dict[tuple[Side, str], Part]:
        exchange = self._checked.exchange
        if exchange is None:
            return {}
        parts: dict[tuple[Side, str], Part] = {}
        for side, value in (("request", exchange.request), ("response", exchange.reply)):
            for part in _parts_of(value):
                parts.setdefault((side, part.pointer), part)  # type: ignore[arg-type]
        return parts

    def _part(self, side: Side, pointer: str | None) -> Part | None:
        """The part at a pointer, or the one that the pointer leads into."""
        while pointer:
            if (side, pointer) in self._parts:
                return self._parts[side, pointer]
            pointer = pointer.rpartition("/")[0]
        return None

    def _event(self, finding: Finding) -> int | None:
        """The event of a finding that names none."""
        exchange = self._checked.exchange
        if self._frames is None or exchange is None or exchange.reply is None or finding.side == "request":
            return None
        choices = exchange.reply.choices
        return next((one.finish_event for one in choices if one.finish_pointer == finding.pointer), None)

    def _in_event(self, finding: Finding, part: Part | None, event: int) -> Iterator[Evidence]:
        frame = (self._frames or {}).get(event)
        if frame is None:
            return
        if finding.pointer is None or frame.data is None:
            raw = frame.raw.decode("utf-8", "replace").strip()
            yield Evidence(raw, *_quoted(finding, raw, 0, len(raw)), event)
            return
        text = frame.data
        start, end, found = locate(text, finding.pointer)
        if not found:
            start, end = 0, len(text)
        quoted = _quoted(finding, text, start, end) if finding.span is None else (start, start)
        fragment = _fragment(part, event, finding.span) if quoted[0] == quoted[1] else None
        if fragment is not None:
            whole, first, last = fragment
            place = spelled(text, start, end, whole, whole=True)
            if place is not None:
                yield Evidence(text, *within(text[slice(*place)], place[0], first, last), event)
                return
        yield Evidence(text, *_stretch(finding, part, text, start, end, exact=found), event)


def _parts_of(value: Request | Reply | None) -> Iterator[Part]:
    for holder in () if value is None else value.messages if isinstance(value, Request) else value.choices:
        yield from holder.parts


def _text_of(part: Part | None) -> str:
    match part:
        case Text(text) | Reasoning(text):
            return text
        case ToolResult():
            return part.text
        case ToolCall():
            return part.arguments.text
        case _:
            return ""


def _joined(finding: Finding, part: Part | None) -> Iterator[Evidence]:
    """The text of a part, where the evidence in it came in more than one event."""
    if finding.span is None or not isinstance(part, Text | Reasoning | ToolCall):
        return
    start, end = finding.span
    if part.event_at(start) != part.event_at(max(end - 1, start)):
        yield Evidence(_text_of(part), start, end, joined=True)


def _fragment(part: Part | None, event: int, span: tuple[int, int] | None) -> tuple[str, int, int] | None:
    """What an event gave of a part's text, and the evidence in it; None where that is not known."""
    if not isinstance(part, Text | Reasoning | ToolCall):
        return None
    text = _text_of(part)
    pairs = list(part.events)
    for number, (start, at) in enumerate(pairs):
        if at == event:
            end = next((other for other, _ in pairs[number + 1 :] if other > start), len(text))
            first, last = span or (start, end)
            if end > start and first < end and last > start:
                return text[start:end], max(first - start, 0), min(last, end) - start
    return None


def _stretch(
    finding: Finding, part: Part | None, text: str, start: int, end: int, *, exact: bool = True
) -> tuple[int, int]:
    """The evidence in a stretch of JSON. `exact`: the stretch is the value itself."""
    if finding.span is not None and (whole := _text_of(part)):
        wanted = whole[slice(*finding.span)]
        place = spelled(text, start, end, whole, whole=True)
        found: tuple[int, int] | None
        if place is not None:
            found = within(text[slice(*place)], place[0], *finding.span)
        else:
            found = spelled(text, start, end, wanted)
        if found is not None:
            return found
    start, end = _argument(finding, part, text) or (start, end)
    found = _quoted(finding, text, start, end)
    if found[0] != found[1]:
        return found
    for wanted in _hints(finding, part):
        at = spelled(text, start, end, wanted)
        if at is not None:
            return at
    return (start, end) if exact and end - start <= _WHOLE else (start, start)


def _in_arguments(finding: Finding, part: Part | None) -> tuple[int, int] | None:
    """The evidence in arguments that came in pieces, of a message about them (`TOOL: …`); None when it is elsewhere."""
    if not isinstance(part, ToolCall) or not finding.message.startswith(f"{part.name}: "):
        return None
    text, ends = part.arguments.text, part.arguments.ends
    if len(ends) > 1:
        return ends[0], len(text)
    member = _MEMBER.match(finding.message)
    if member is not None:
        start, end, found = locate(text, f"/{escaped(member[1])}")
        if found:
            return start, end
    for pattern in _patterns(finding):
        at = re.search(pattern, text)
        if at is not None:
            return at.span("at" if "at" in at.re.groupindex else 0)
    return None


def _argument(finding: Finding, part: Part | None, text: str) -> tuple[int, int] | None:
    """Where the argument stands that a message begins with (`TOOL: ARGUMENT: …`), in arguments that are JSON."""
    member = _MEMBER.match(finding.message)
    if member is None or not isinstance(part, ToolCall):
        return None
    for place in _INPUTS:
        start, end, found = locate(text, f"{part.pointer}/{place}/{escaped(member[1])}")
        if found:
            return start, end
    return None


def _quoted(finding: Finding, text: str, start: int, end: int) -> tuple[int, int]:
    """Where something that the message quotes stands; an empty place at `start` when nothing does."""
    end = min(end, start + _MOST)
    for pattern in _patterns(finding):
        if (place := matching(text, start, end, re.compile(pattern))) is not None:
            return place
    return start, start


def _patterns(finding: Finding) -> Iterator[str]:
    """What a message quotes, as it may be spelled: it has white space folded and its middle left out."""
    member = _MEMBER.match(finding.message)
    for found in _QUOTED.finditer(finding.message):
        said = next(group for group in found.groups() if group is not None)
        words = said.split("…")[0].split()
        if len("".join(words)) < 2:
            continue
        pattern = r"\s+".join(map(re.escape, words))
        if member is not None:
            yield f'"{re.escape(member[1])}"\\s*:\\s*"?(?P<at>{pattern})'
        yield pattern


def _hints(finding: Finding, part: Part | None) -> Iterator[str]:
    """What is likely to be the evidence, by what kind of part it is in."""
    if isinstance(part, ToolCall):
        member = _MEMBER.match(finding.message)
        if member is not None:
            yield f'"{member[1]}"'
            yield member[1]
        elif not finding.message.startswith(f"{part.name}: "):
            yield from (word for word in _NAMED.findall(finding.message) if len(word) > 3)
    if not isinstance(part, ToolResult):
        yield _text_of(part)
    if isinstance(part, ToolCall) and part.name:
        yield part.name
