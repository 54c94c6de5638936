"""One side of an exchange as lines of text with styles: what a content view of mitmproxy shows. No mitmproxy in here.

Theory of operation. The page is plain text first, because one of mitmproxy's generations shows nothing else: who speaks
stands in a column of its own, findings under the part that they point at, after a mark; of what was rewritten the part that
came in stands after `-` and the one that was sent on after `+`. Styles only repeat what the text says. Lines are broken
here, because mitmweb breaks none, and the console knows nothing of columns.

All text of the wire goes through `visible`: nothing in it can steer a terminal, and no line of it looks like one of ours,
since every line of it begins with the column's width of blanks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal, NamedTuple

from wirelint.apis import channel_of
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.replay import mended, replay
from wirelint.model import Exchange, Reply, Severity, Side
from wirelint.rule import SEVERITIES, AppliedFix, Finding
from wirelint.view.turns import Later, Look, Turn, answered, asked, context, pointed_messages
from wirelint.view.writer import known_note, place, recurrence, repair_of, visible

Style = Look | Literal["head", "speaker", "minus", "plus", "error", "warning", "info"]


class Span(NamedTuple):
    """`lead`: the text of the line begins behind it, and so do the lines that it is broken into."""

    style: Style
    text: str
    lead: bool = False


Line = tuple[Span, ...]

_MARKS = {"error": "‼", "warning": "⚠", "info": "·"}
WIDTH = 80
_NARROWEST = 40
_COLUMN = 11
_SENT = "sent on"
_ARROWS = ("→", "←", "⇢", "⇠")
_MOST_PATCHED = 40


@dataclass(frozen=True, slots=True)
class Shown:
    """An exchange as it is known when it is looked at.

    `open`: it is still under way; then `checked.findings` is what was found so far. `later` knows what calls gave, as far
    as that passed in requests after this exchange.
    """

    checked: Checked
    open: bool = False
    notes: tuple[str, ...] = ()
    later: Later | None = None


def lines(shown: Shown, side: Side, width: int = WIDTH) -> list[Line]:
    """What is shown of one side, in lines of at most `width` characters."""
    return [part for line in _page(shown, side) for part in _broken(line, max(width, _NARROWEST))]


def _page(shown: Shown, side: Side) -> list[Line]:
    checked = shown.checked
    exchange = checked.exchange
    if exchange is None:
        return [(Span("head", "of no API that wirelint understands"),), *_notes(shown.notes)]
    turns, sent = _turns(shown, exchange, side)
    here = [finding for finding in checked.findings if finding.side == side]
    placed = _placed(here, turns)
    loose = [finding for finding in here if not any(finding in found for found in placed)]
    page = [*_head(shown, exchange), *_notes(shown.notes), *_loose(checked, loose), *_elsewhere(checked, side)]
    if side == "response" and (before := context(exchange)):
        page += [(), *_column(before, [()] * len(before), checked)]
    page += [(), *_body(checked, turns, placed, sent), *_ending(shown, exchange, side)]
    return [*page, *_repairs(checked.record, side)]


def plain(page: Iterable[Line]) -> str:
    """The lines as text. None is empty: mitmweb leaves out those that are."""
    return "\n".join("".join(span.text for span in line).rstrip() or " " for line in page)


def failure(why: str) -> Line:
    """The one line above a raw body, where there is no more to show."""
    return (Span("error", f"wirelint: {visible(' '.join(why.split()))}; this is the body as it is"),)


# --- lines ------------------------------------------------------------------------------------------------------------


def _broken(line: Line, width: int) -> Iterator[Line]:
    """A line in pieces that fit, at blanks where there are any; the later ones begin below the text of the first."""
    if sum(len(span.text) for span in line) <= width:
        yield line
        return
    indent = sum(len(span.text) for span in takewhile(lambda span: span.lead, line))
    row: list[Span] = []
    room = width
    for style, text, _ in line:
        while len(text) > room:
            cut = _cut(text, room, width - indent)
            if text[:cut].strip():
                row.append(Span(style, text[:cut].rstrip()))
            yield tuple(row)
            row, room, text = [Span("text", " " * indent)], width - indent, text[cut:].lstrip(" ")
        row.append(Span(style, text))
        room -= len(text)
    yield tuple(row)


def _cut(text: str, room: int, whole: int) -> int:
    """Where to break a text of which `room` characters fit, and `whole` would on a line of their own."""
    blank = text.rfind(" ", 0, room + 1)
    end = text.find(" ", blank + 1)
    word = (end if end >= 0 else len(text)) - blank - 1
    if word > whole:  # nothing is won by a line of its own
        return room
    return max(blank, 0) if blank > 0 or room < whole else room


# --- head and foot ----------------------------------------------------------------------------------------------------


def _head(shown: Shown, exchange: Exchange) -> Iterator[Line]:
    record, findings = shown.checked.record, shown.checked.findings
    facts = [exchange.api, exchange.model, *_answer(exchange), *_times(exchange)]
    yield (Span("head", visible(" · ".join(fact for fact in facts if fact))),)
    if shown.open:
        yield (Span("warning", _progress(exchange)),)
    verdict, again = tally(findings), known_note(len(shown.checked.known))
    if shown.open and verdict:
        verdict += " so far"
    elif not findings and not again and not shown.open:
        verdict = "nothing to complain about" if _is_judged(exchange) else "not judged"
    parts = [verdict, again, f"{len(record.fixes)} repaired" if record.fixes else ""]
    if exchange.end not in ("complete", "unknown"):
        parts.append(f"ended: {exchange.end}")
    worst = next((severity for severity in SEVERITIES if any(f.severity == severity for f in findings)), None)
    name = Span("remark", visible(f"  [{record.id[:8]}]"))
    yield Span(worst or "remark", " · ".join(part for part in parts if part) or "nothing found so far"), name
    if exchange.error:
        yield (Span("remark", visible(exchange.error)),)


def _is_judged(exchange: Exchange) -> bool:
    return exchange.ok or (exchange.end != "unread" and channel_of(exchange.api) == "mcp")


def _answer(exchange: Exchange) -> Iterator[str]:
    if exchange.status is not None:
        streamed = exchange.reply is not None and exchange.reply.streamed
        yield f"{exchange.status} stream" if streamed else f"{exchange.status}"


def _times(exchange: Exchange) -> Iterator[str]:
    timing = exchange.timing
    if timing.duration is not None:
        yield f"{timing.duration / 1000:.2f} s"
    if timing.first_token is not None and exchange.reply is not None and exchange.reply.streamed:
        yield f"first token {timing.first_token / 1000:.2f} s"


def _progress(exchange: Exchange) -> str:
    reply = exchange.reply
    if reply is None:
        return "still under way: nothing of the reply has come yet"
    said = sum(len(turn.full or turn.text) for turn in answered(exchange))
    events = "1 event" if reply.events == 1 else f"{reply.events:,} events"
    return f"still under way: {said:,} characters have come so far, in {events}"


def tally(findings: Sequence[Finding]) -> str:
    """`1 error, 2 warnings`; empty where there are none."""
    counts = ((severity, sum(finding.severity == severity for finding in findings)) for severity in SEVERITIES)
    return ", ".join(f"{count} {name}{'s' if count > 1 and name != 'info' else ''}" for name, count in counts if count)


def _notes(notes: Iterable[str]) -> Iterator[Line]:
    for note in notes:
        yield (Span("remark", f"note: {visible(' '.join(note.split()))}"),)


def _elsewhere(checked: Checked, side: Side) -> Iterator[Line]:
    """What there is to see on the other side."""
    other: Side = "request" if side == "response" else "response"
    names = dict.fromkeys(finding.name for finding in checked.findings if finding.side == other)
    if names:
        yield (Span("remark", f"see the {other} as well: {', '.join(names)}"),)


def _ending(shown: Shown, exchange: Exchange, side: Side) -> Iterator[Line]:
    """What the reply says beside its turns."""
    reply = exchange.reply
    if side == "request":
        return
    if reply is None:
        if not shown.open and exchange.end != "unread":
            yield _row("", Span("remark", "(no reply)"))
        return
    if reply.error is not None:
        yield _row("error", Span("error", visible(f"{reply.error}")))
    if not any(choice.parts for choice in reply.choices) and not shown.open and reply.error is None:
        yield _row("reply", Span("remark", "(empty)"))
    if shown.open:
        yield _row("", Span("warning", "… more may come"))
    if counts := _usage(reply):
        yield _row("", Span("remark", counts))


def _usage(reply: Reply) -> str:
    counts = (f"{name} {count:,}" for name, count in (reply.usage or {}).items() if isinstance(count, int))
    return visible(", ".join(counts))


# --- the conversation -------------------------------------------------------------------------------------------------


def _turns(shown: Shown, exchange: Exchange, side: Side) -> tuple[list[Turn], list[Turn] | None]:
    """The turns that came in, and those that were sent on where they are others."""
    record = shown.checked.record
    changed = (record.forwarded if side == "request" else record.delivered) is not None
    pointers = [finding.pointer for finding in shown.checked.findings if finding.side == side and finding.pointer]
    pointers += [fix.pointer for fix in record.fixes if fix.side == side and fix.pointer]
    pointed = pointed_messages(exchange.request, pointers)
    came = asked(exchange, pointed) if side == "request" else answered(exchange, shown.later)
    if not changed:
        return came, None
    after = replay(mended(record))
    if after is None:
        return came, None
    return came, asked(after, pointed) if side == "request" else answered(after, shown.later)


def _placed(findings: Sequence[Finding], turns: Sequence[Turn]) -> list[tuple[Finding, ...]]:
    """For each turn the findings that belong to it: at its own place, or else at the nearest one above or below."""
    placed: list[list[Finding]] = [[] for _ in turns]
    for finding in findings:
        number = _position(finding.pointer, turns) if finding.pointer else None
        if number is not None:
            placed[number].append(finding)
    return [tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))) for found in placed]


def _position(pointer: str, turns: Sequence[Turn]) -> int | None:
    places = [turn.pointer for turn in turns]
    if pointer in places:
        return places.index(pointer)
    near = [
        (len(_common(pointer, place)), -number)
        for number, place in enumerate(places)
        if place and (pointer.startswith(f"{place}/") or place.startswith(f"{pointer}/"))
    ]
    return -max(near)[1] if near else None


def _common(one: str, other: str) -> str:
    return min(one, other, key=len)


def _body(
    checked: Checked, turns: list[Turn], placed: list[tuple[Finding, ...]], sent: list[Turn] | None
) -> Iterator[Line]:
    if sent is None:
        yield from _column(turns, placed, checked)
        return
    matcher = SequenceMatcher(None, [turn.key for turn in turns], [turn.key for turn in sent], autojunk=False)
    for kind, start, end, sent_start, sent_end in matcher.get_opcodes():
        if kind == "equal":
            yield from _column(turns[start:end], placed[start:end], checked)
            continue
        before = turns[start - 1].speaker if start else ""
        yield from _column(turns[start:end], placed[start:end], checked, "minus", before)
        instead = [replace(turn, speaker=_SENT) for turn in sent[sent_start:sent_end]]
        if not instead:
            yield _row(_SENT, Span("plus", "+ (left out)"))
        yield from _column(instead, [()] * len(instead), checked, "plus")


def _column(
    turns: Sequence[Turn],
    placed: Sequence[Sequence[Finding]],
    checked: Checked,
    changed: Literal["minus", "plus"] | None = None,
    before: str = "",
) -> Iterator[Line]:
    for turn, findings in zip(turns, placed, strict=True):
        speaker = "" if turn.inner or turn.speaker == before else turn.speaker
        if speaker:
            if before and changed is None:
                yield ()
            before = turn.speaker
        yield from _turn(turn, speaker, changed)
        for finding in findings:
            yield from _finding(checked, finding)


def _turn(turn: Turn, speaker: str, changed: Literal["minus", "plus"] | None) -> Iterator[Line]:
    style: Style = changed or turn.look
    sign = Span(style, {"minus": "- ", "plus": "+ ", None: ""}[changed] + ("  " if turn.inner else ""), lead=True)
    label = visible(turn.label)
    arrow = Span(style, f"{label[:1]} " if label[:1] in _ARROWS else "", lead=True)
    said = " ".join(part for part in (label[len(arrow.text) :], visible(turn.text.rstrip())) if part)
    first, *rest = said.split("\n")
    tail = Span("remark", f"  {visible(turn.tail)}" if turn.tail else "")
    below = Span("text", " " * len(arrow.text), lead=True)
    yield _row(speaker, sign, arrow, Span(style, first), *(() if rest else (tail,)))
    for line in rest:
        yield _row("", sign, below, Span(style, line), *((tail,) if line is rest[-1] else ()))


def _row(speaker: str, *spans: Span) -> Line:
    column = Span("speaker", visible(speaker)[: _COLUMN - 1].ljust(_COLUMN), lead=True)
    return column, *(span for span in spans if span.text)


# --- findings and repairs ---------------------------------------------------------------------------------------------


def _loose(checked: Checked, findings: Iterable[Finding]) -> Iterator[Line]:
    """Findings on no part that is shown."""
    for finding in findings:
        yield from _finding(checked, finding, "")


def _finding(checked: Checked, finding: Finding, indent: str = " " * _COLUMN) -> Iterator[Line]:
    style: Severity = finding.severity
    head = f"{finding.severity} {finding.name} ({finding.layer}): {finding.message}"
    where = Span("remark", visible(f"  [{place(finding)}]"))
    yield Span(style, f"{indent}{_MARKS[style]} ", lead=True), Span(style, visible(head)), where
    made, below = repair_of(checked, finding), Span("text", f"{indent}  ", lead=True)
    if again := recurrence(finding.issue, checked.record.id):
        yield below, Span("remark", again)
    if made is not None:
        yield below, Span("plus", visible(f"✎ repaired ({made.safety}): {made.title}"))
    elif finding.fix is not None:
        yield below, Span("remark", visible(f"can be repaired ({finding.fix.safety}): {finding.fix.title}"))


def _repairs(record: Record, side: Side) -> Iterator[Line]:
    """What was repaired, before and after."""
    fixes = [fix for fix in record.fixes if fix.side == side]
    if fixes:
        yield ()
        yield (Span("head", "repaired: - is what came in, + what was sent on"),)
    for fix in fixes:
        said = f"{fix.code} {fix.name} ({fix.safety}) {fix.title}"
        yield Span("plus", "✎ ", lead=True), Span("plus", visible(said)), _where(fix)
        patch = visible(fix.patch).split("\n") if fix.patch else []
        for line in patch[:_MOST_PATCHED]:
            style: Style = "minus" if line.startswith("-") else "plus"
            yield Span(style, f"  {line[:2]}", lead=True), Span(style, line[2:])
        if len(patch) > _MOST_PATCHED:
            yield (Span("remark", f"  … {len(patch) - _MOST_PATCHED} more lines"),)


def _where(fix: AppliedFix) -> Span:
    where = f"  [{fix.side}{f' {fix.pointer}' if fix.pointer else ''}"
    return Span("remark", visible(where + (f", event {fix.event}]" if fix.event is not None else "]")))
