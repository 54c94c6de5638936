"""Bodies as lines: the raw exchange event by event, fixes as unified diffs, and the evidence of a finding: the stretch of
wire text it points at, printed on one line with carets below it.

    text │ …k that up.↵↵<function_calls>↵<invoke name="search_notes">↵<parameter na…
         │              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
       9 │ …"delta":{"type":"text_delta","text":"<function_calls>"}}
         │                                       ^^^^^^^^^^^^^^^^

Theory of operation. A finding has a JSON Pointer into the body or the folded reply, an event number, and offsets in the
text at the pointer, each if known. In a whole body the value at the pointer is located in the raw text, in a stream in the
data of the event. The text between the offsets is then located in the JSON strings there, which spell it with escapes.
Without offsets the evidence is the text that the message quotes, else the value itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TextIO

import orjson
from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text as Styled

from wirelint.capture.offline import Checked, Fixed
from wirelint.capture.record import Headers, Record
from wirelint.engine import lower
from wirelint.events import Frame
from wirelint.model import Part, Reasoning, Reply, Request, Side, Text, ToolCall, ToolResult
from wirelint.rule import Finding
from wirelint.text.escaping import printable
from wirelint.text.pointers import escaped, locate, matching, spelled
from wirelint.view.findings import MARKS, STYLES, visible
from wirelint.view.screen import Screen
from wirelint.wire import Sniffer

_CONTEXT_LINES = 3
_MOST_COMPARED = 20_000_000
"""Most pairs of lines for which the smallest difference is computed."""
_STYLES = {"#": "cyan", "---": "bold", "+++": "bold", "@@": "magenta", "-": "red", "+": "green"}
_MOST = 1 << 20
"""Characters of a body that are searched for a quotation."""
_QUOTED = re.compile(r"`([^`]+)`|(?<!\w)'([^']+)'(?!\w)|(?<![\w{\[:,])\"([^\"]+)\"")
_NAMED = re.compile(r"[\w.<>|/-]*[\d_|][\w.<>|/-]*")
_MEMBER = re.compile(r"\S+: ([\w-]+)(?:[.\[]\S*)?(?:: | [\"'])")
_INPUTS = ("input", "args", "arguments", "function/arguments", "toolUse/input", "functionCall/args")
"""Members that hold the arguments of a call, below the call, in APIs that send them as JSON."""
_WHOLE = 400
"""Characters up to which a value without other evidence is its own evidence."""
_GUTTER = 4
_CONTROLS = str.maketrans({"\n": "↵", "\r": "␍", "\t": "⇥"})
_LEAST = 24
"""Columns of source that are shown even on a narrower terminal."""
_CONTEXT = 2000
"""Characters considered before and after the evidence; no terminal is wider."""


def frames_of(headers: Headers, body: bytes) -> list[Frame] | None:
    """Return the events of a streamed body; None for a whole body."""
    sniffer = Sniffer(lower(headers))
    frames = [*sniffer.feed(body), *sniffer.close()]
    return frames if sniffer.streamed else None


def render_wire(checked: Checked) -> RenderableType:
    """Render request and reply in raw form; control characters are escaped."""
    record = checked.record
    status = f"{record.status if record.status is not None else 'no status'}"
    request = Styled(visible(f"{record.method} {record.url}"), "bold"), *_headers(record.request_headers), Styled("")
    response = Styled(status, "bold"), *_headers(record.response_headers), Styled(""), *_response(checked)
    return Group(*request, _raw(record.request_body), Styled(""), *response)


def _headers(headers: Headers) -> Iterator[Styled]:
    return (Styled.assemble((visible(f"{name}: "), "dim"), visible(value), overflow="fold") for name, value in headers)


def _response(checked: Checked) -> Iterator[Styled]:
    body, findings = checked.record.response_body, checked.findings
    frames = frames_of(checked.record.response_headers, body) if body is not None else None
    if frames is None:
        yield _raw(body)
        yield from _notes(findings if body is not None else ())
        return
    for frame in frames:
        yield Styled(f"{frame.number:>5}  ", "dim").append(_decoded(frame.raw), "")
        yield from _notes(finding for finding in findings if finding.event == frame.number)
    yield from _notes(finding for finding in findings if finding.event is None)


def _notes(findings: Iterable[Finding]) -> Iterator[Styled]:
    for finding in findings:
        text = f"       {MARKS[finding.severity]} {finding.code} {finding.name}: {finding.message}"
        yield Styled(text, STYLES[finding.severity])


def _raw(body: bytes | None) -> Styled:
    return Styled("(no body)", "dim") if body is None else Styled(_decoded(body), overflow="fold")


def _decoded(raw: bytes) -> str:
    """Decode bytes for a terminal: a line feed ends a line, a carriage return becomes ␍, other controls are escaped."""
    shown = visible(raw.decode("utf-8", "backslashreplace").replace("\r", "␍"))
    return shown.rstrip("\n").replace("\n", "\n       ")


# --- fixes as diffs ---------------------------------------------------------------------------------------------------


def write_patch(fixed: Fixed, out: TextIO) -> None:
    """Write the patch of an exchange, coloured on a terminal; nothing if nothing was fixed."""
    lines = list(patch(fixed.record))
    console = Screen(out, soft_wrap=True)
    if not console.is_terminal:
        out.writelines(f"{line}\n" for line in lines)
        return
    for line in lines:
        console.print(Styled(line, next((style for sign, style in _STYLES.items() if line.startswith(sign)), "")))


def patch(record: Record) -> Iterator[str]:
    """Yield the lines of a patch, with control characters escaped."""
    if record.forwarded is None and record.delivered is None:
        return
    changed = (
        ("request", record.request_headers, record.request_body, "forwarded", record.forwarded),
        ("response", record.response_headers, record.response_body, "delivered", record.delivered),
    )
    name = printable(f"{record.source}:{record.id}")
    yield printable(f"# {record.source}: {record.id}")
    for fix in record.fixes:
        yield printable(f"# {fix.code} {fix.name} ({fix.safety}): {fix.title}")
    for before, headers, body, after, sent in changed:
        if sent is not None:
            yield f"--- {name}/{before}"
            yield f"+++ {name}/{after}"
            yield from _hunks(body_lines(headers, body), body_lines(sent.headers, sent.body))
    yield ""


def body_lines(headers: Headers, body: bytes | None) -> list[str]:
    """Return a body as lines: the text of a stream's events, indented JSON, or the text itself."""
    if not body:
        return []
    text = body.decode("utf-8", "backslashreplace")
    if frames_of(headers, body) is None:
        with contextlib.suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):  # JSON lines, or no JSON at all
            text = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    return [printable(line.replace("\r", "␍"), "\t") for line in text.removesuffix("\n").split("\n")]


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the hunks of a unified diff. Equal lines at both ends, except for the context, need no comparison."""
    most = min(len(before), len(after))
    start = next((n for n in range(most) if before[n] != after[n]), most)
    end = next((n for n in range(most - start) if before[-1 - n] != after[-1 - n]), most - start)
    start, end = max(start - _CONTEXT_LINES, 0), max(end - _CONTEXT_LINES, 0)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if len(old) * len(new) > _MOST_COMPARED:
        yield f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)
        return
    for line in islice(unified_diff(old, new, n=_CONTEXT_LINES, lineterm=""), 2, None):
        is_head = line.startswith("@@")
        yield re.sub(r"(?<=[-+])\d+", lambda number: f"{int(number[0]) + start}", line) if is_head else line


# --- evidence -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evidence:
    """Wire text with evidence from `start` to `end`; equal if no part of the text is singled out.

    `event`: the number of the event whose data `text` is; None in a whole body. `joined`: `text` is folded from several
    events.
    """

    text: str
    start: int
    end: int
    event: int | None = None
    joined: bool = False


class Source:
    """The bodies of an exchange, split once for all of its findings."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        record = checked.record
        bodies: dict[Side, bytes | None] = {"request": record.request_body, "response": record.response_body}
        self._texts = {side: (body or b"").decode("utf-8", "replace") for side, body in bodies.items()}

    def evidence(self, finding: Finding) -> list[Evidence]:
        """Return the evidence of a finding; empty if it points at no text (a silence, for example).

        For text of several events: the folded text, then the data of the first of these events.
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
        text = self._texts[finding.side]
        if finding.pointer is None or not text:
            return []
        start, end, _ = locate(text, finding.pointer)
        return [Evidence(text, *_stretch(finding, part, text, start, end))]

    @cached_property
    def _frames(self) -> dict[int, Frame] | None:
        """The events of the reply by number; None for a whole body."""
        record = self._checked.record
        if not record.response_body:
            return None
        frames = frames_of(record.response_headers, record.response_body)
        return {frame.number: frame for frame in frames} if frames is not None else None

    @cached_property
    def _parts(self) -> dict[tuple[Side, str], Part]:
        parts: dict[tuple[Side, str], Part] = {}
        sides: tuple[tuple[Side, Request | Reply | None], ...] = (
            ("request", self._checked.request),
            ("response", self._checked.reply),
        )
        for side, one in sides:
            for part in one.parts if one is not None else ():
                parts.setdefault((side, part.pointer), part)
        return parts

    def _part(self, side: Side, pointer: str | None) -> Part | None:
        while pointer:
            if (side, pointer) in self._parts:
                return self._parts[side, pointer]
            pointer = pointer.rpartition("/")[0]
        return None

    def _event(self, finding: Finding) -> int | None:
        """Return the event of a finding that names none: that of the finish reason, if it points there."""
        reply = self._checked.reply
        if self._frames is None or reply is None or finding.side == "request":
            return None
        return next((one.finish_event for one in reply.choices if one.finish_pointer == finding.pointer), None)

    def _in_event(self, finding: Finding, part: Part | None, event: int) -> Iterator[Evidence]:
        frame = (self._frames or {}).get(event)
        if frame is None:
            return
        if finding.pointer is None or frame.data is None:
            raw = frame.raw.decode("utf-8", "replace").strip()
            yield Evidence(raw, *(_quoted(finding, raw, 0, len(raw)) or (0, 0)), event)
            return
        text = frame.data
        start, end, found = locate(text, finding.pointer)
        if not found:
            start, end = 0, len(text)
        is_quoted = finding.span is None and _quoted(finding, text, start, end) is not None
        fragment = None if is_quoted else _fragment(part, event, finding.span)
        place = spelled(text, start, end, *fragment) if fragment is not None else None
        yield Evidence(text, *(place or _stretch(finding, part, text, start, end, exact=found)), event)


def _text_of(part: Part | None) -> str:
    match part:
        case Text() | Reasoning() | ToolResult():
            return part.text
        case ToolCall():
            return part.arguments.text
        case _:
            return ""


def _joined(finding: Finding, part: Part | None) -> Iterator[Evidence]:
    """Yield the folded text of a part, if its evidence is spread over events."""
    if finding.span is None or not isinstance(part, Text | Reasoning | ToolCall):
        return
    start, end = finding.span
    if part.event_at(start) != part.event_at(max(end - 1, start)):
        yield Evidence(_text_of(part), start, end, joined=True)


def _fragment(part: Part | None, event: int, span: tuple[int, int] | None) -> tuple[str, tuple[int, int]] | None:
    """Return the piece of a part's text that an event carried, and the evidence in it; None if unknown."""
    if not isinstance(part, Text | Reasoning | ToolCall):
        return None
    text, pairs = _text_of(part), list(part.events)
    for number, (start, at) in enumerate(pairs):
        if at == event:
            end = next((other for other, _ in pairs[number + 1 :] if other > start), len(text))
            first, last = span or (start, end)
            if end > start and first < end and last > start:
                return text[start:end], (max(first - start, 0), min(last, end) - start)
    return None


def _stretch(
    finding: Finding, part: Part | None, text: str, start: int, end: int, *, exact: bool = True
) -> tuple[int, int]:
    """Return the offsets of the evidence in a stretch of JSON. `exact`: the stretch is the value itself."""
    if finding.span is not None and (whole := _text_of(part)):
        place = spelled(text, start, end, whole, finding.span)
        place = place or spelled(text, start, end, whole[slice(*finding.span)])
        if place is not None:
            return place
    start, end = _argument(finding, part, text) or (start, end)
    if (found := _quoted(finding, text, start, end)) is not None:
        return found
    for wanted in _hints(finding, part):
        if (at := spelled(text, start, end, wanted)) is not None:
            return at
    return (start, end) if exact and end - start <= _WHOLE else (start, start)


def _in_arguments(finding: Finding, part: Part | None) -> tuple[int, int] | None:
    """Return the evidence in streamed arguments, for a message about them (`TOOL: …`); None if it is elsewhere."""
    if not isinstance(part, ToolCall) or not finding.message.startswith(f"{part.name}: "):
        return None
    text, ends = part.arguments.text, part.arguments.ends
    if len(ends) > 1:
        return ends[0], len(text)
    if (member := _MEMBER.match(finding.message)) is not None:
        start, end, found = locate(text, f"/{escaped(member[1])}")
        if found:
            return start, end
    for pattern in _patterns(finding):
        if (at := re.search(pattern, text)) is not None:
            return at.span("at")
    return None


def _argument(finding: Finding, part: Part | None, text: str) -> tuple[int, int] | None:
    """Return the place of the argument that a message names (`TOOL: ARGUMENT: …`), in arguments that are JSON."""
    member = _MEMBER.match(finding.message)
    if member is None or not isinstance(part, ToolCall):
        return None
    for place in _INPUTS:
        start, end, found = locate(text, f"{part.pointer}/{place}/{escaped(member[1])}")
        if found:
            return start, end
    return None


def _quoted(finding: Finding, text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the place of a quotation of the message; None if there is none."""
    end = min(end, start + _MOST)
    for pattern in _patterns(finding):
        if (place := matching(text, start, end, re.compile(pattern))) is not None:
            return place
    return None


def _patterns(finding: Finding) -> Iterator[str]:
    """Yield patterns of the quotations (group `at`) in a message. Their white space is folded, their middle left out."""
    member = _MEMBER.match(finding.message)
    for found in _QUOTED.finditer(finding.message):
        quoted = next(group for group in found.groups() if group is not None)
        words = quoted.split("…")[0].split()
        if len("".join(words)) < 2:
            continue
        pattern = "(?P<at>" + r"\s+".join(map(re.escape, words)) + ")"
        if member is not None:
            yield f'"{re.escape(member[1])}"\\s*:\\s*"?{pattern}'
        yield pattern


def _hints(finding: Finding, part: Part | None) -> Iterator[str]:
    if isinstance(part, ToolCall):
        if (member := _MEMBER.match(finding.message)) is not None:
            yield from (f'"{member[1]}"', member[1])
        elif not finding.message.startswith(f"{part.name}: "):
            yield from (word for word in _NAMED.findall(finding.message) if len(word) > 3)
    if not isinstance(part, ToolResult):
        yield _text_of(part)
    if isinstance(part, ToolCall) and part.name:
        yield part.name


class Window(NamedTuple):
    """One line of source. `start` and `size` of the carets are in terminal cells; size 0 means no carets."""

    text: str
    start: int
    size: int


def excerpt_lines(found: Sequence[Evidence], width: int, style: str) -> Iterator[Styled]:
    """Yield the lines of evidence in `width` columns, after an empty line with the gutter."""
    if not found:
        return
    labels = ["text" if one.joined else "" if one.event is None else str(one.event) for one in found]
    gutter = max(_GUTTER, *map(len, labels))
    room = max(width - gutter - 3, _LEAST)
    yield _bar("", gutter)
    for label, evidence in zip(labels, found, strict=True):
        window = windowed(evidence, room)
        yield _bar(label, gutter).append(f" {window.text}")
        if window.size:
            yield _bar("", gutter).append(" " * (window.start + 1)).append("^" * window.size, f"bold {style}")


def windowed(evidence: Evidence, room: int) -> Window:
    """Return the part of a text that fits `room` columns: the beginning of the evidence and the text around it."""
    text, start, end = evidence.text, evidence.start, evidence.end
    before = _shown(text[max(start - _CONTEXT, 0) : start])
    marked = _shown(text[start : min(end, start + _CONTEXT)])
    after = _shown(text[end : end + _CONTEXT]) if end - start < _CONTEXT else ""
    cut_after = end + _CONTEXT < len(text)
    size = min(cell_len(marked), room - min(cell_len(before), room // 5))
    fits = size == cell_len(marked)
    right = min(cell_len(after), max((room - size) // 2, room - size - cell_len(before))) if fits else 0
    left = _last(before, room - size - right, cut=start > _CONTEXT)
    place = cell_len(left)
    line = left + _first(marked, room - place)
    line += _first(after, room - place - size, cut=cut_after) if fits else ""
    return Window(line, place, min(cell_len(marked), room - place))


def _shown(text: str) -> str:
    return visible(text.translate(_CONTROLS))


def _first(text: str, room: int, *, cut: bool = False) -> str:
    """Return the beginning of a text that fits; an ellipsis marks a cut."""
    if room <= 0:
        return ""
    if cell_len(text) <= room and not cut:
        return text
    return set_cell_size(text, room - 1).rstrip() + "…" if cell_len(text) > room - 1 else f"{text}…"


def _last(text: str, room: int, *, cut: bool) -> str:
    if room <= 0:
        return ""
    if cell_len(text) <= room and not cut:
        return text
    kept = text[-(room - 1) :] if room > 1 else ""
    while cell_len(kept) > room - 1:
        kept = kept[1:]
    return f"…{kept}"


def _bar(label: str, gutter: int) -> Styled:
    return Styled.assemble((f"{label:>{gutter}} │", "dim"))
