"""One side of an exchange as lines of styled text, for mitmproxy's content view. Nothing here imports mitmproxy.

Theory of operation. Speakers are in a separate column, findings below the part they point at. Of a rewritten side the
part received follows `-` and the part sent on follows `+`. Styles only repeat the text, because mitmproxy 12 shows
plain text. Lines are broken here, because mitmweb breaks none.

Wire text goes through `visible`, so it cannot steer a terminal, and every line of it begins with the blanks of the column,
so it cannot imitate a line of wirelint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple

from rich.text import Text

from wirelint.apis import channel_of
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.model import Exchange, Side
from wirelint.rule import Finding
from wirelint.text.escaping import counted
from wirelint.view.conversation import ConversationView, Later, Look, Row, Turn, context_turns, response_turns
from wirelint.view.findings import fix_of, known_note, place, recurrence, tally, visible, worst
from wirelint.view.screen import wrapped

Style = Look | Literal["head", "speaker", "minus", "plus", "error", "warning", "info"]


class Span(NamedTuple):
    """A piece of a line. Leading spans (`lead`) are the indent of the lines that a long line is broken into."""

    style: Style
    text: str
    lead: bool = False


Line = tuple[Span, ...]

WIDTH = 80
_MARKS = {"error": "‼", "warning": "⚠", "info": "·"}
_NARROWEST = 40
_COLUMN = 11
_ARROWS = ("→", "←", "⇢", "⇠")
_MOST_PATCHED = 40
_LIMITS = {"system": 300, "tool": 600, "reply": 20_000, "server": 20_000, "tools": 600, "context": 300}
_LIMIT, _RESULT, _THINKING = 2000, 600, 160
"""Characters shown of a text or of arguments, of a result, of thinking."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An exchange at the time of its display.

    `open`: in progress; `checked.findings` are those so far. `later`: results that requests after this one carried.
    """

    checked: Checked
    open: bool = False
    later: Later | None = None


def lines(shown: Shown, side: Side, width: int = WIDTH) -> list[Line]:
    """Return one side of an exchange in lines of at most `width` characters."""
    return [part for line in _page(shown, side) for part in _broken(line, max(width, _NARROWEST))]


def plain(page: Iterable[Line]) -> str:
    """Return the lines as text. No line is empty: mitmweb drops empty lines."""
    return "\n".join("".join(span.text for span in line).rstrip() or " " for line in page)


def failure(why: str) -> Line:
    """Return the line above a raw body that has no other view."""
    return (Span("error", f"wirelint: {visible(' '.join(why.split()))}; raw body shown"),)


def _page(shown: Shown, side: Side) -> list[Line]:
    checked = shown.checked
    exchange = checked.exchange
    if exchange is None:
        return [(Span("head", "unrecognised API"),), *_notes(checked.record.notes)]
    rows, loose = ConversationView(checked, exchange, later=shown.later).side(side)
    page = [*_head(shown, exchange), *_notes(checked.record.notes)]
    page += [line for finding in loose for line in _finding(checked, finding, "")]
    other: Side = "request" if side == "response" else "response"
    if names := dict.fromkeys(finding.name for finding in checked.findings if finding.side == other):
        page.append((Span("remark", f"see also the {other}: {', '.join(names)}"),))
    if side == "response" and (before := [Row("=", turn) for turn in context_turns(exchange)]):
        page += [(), *_column(before, checked)]
    return [*page, (), *_column(rows, checked), *_ending(shown, exchange, side), *_fixes(checked.record, side)]


def _broken(line: Line, width: int) -> Iterator[Line]:
    """Yield the pieces of a line, broken at blanks where possible; later pieces begin below the text of the first."""
    lead = tuple(takewhile(lambda span: span.lead, line))
    indent = sum(len(span.text) for span in lead)
    text = Text.assemble(*((span.text, span.style) for span in line[len(lead) :]))
    for piece in wrapped(text, width - indent):
        piece.rstrip()
        yield *lead, *(Span(span.style, piece.plain[span.start : span.end]) for span in piece.spans)  # type: ignore[arg-type]
        lead = (Span("text", " " * indent),)


def _row(speaker: str, *spans: Span) -> Line:
    column = Span("speaker", visible(speaker)[: _COLUMN - 1].ljust(_COLUMN), lead=True)
    return column, *(span for span in spans if span.text)


def _head(shown: Shown, exchange: Exchange) -> Iterator[Line]:
    record, findings, reply = shown.checked.record, shown.checked.findings, exchange.reply
    timing, streamed = exchange.timing, reply is not None and reply.streamed
    facts = [exchange.api, exchange.model]
    if exchange.status is not None:
        facts.append(f"{exchange.status} stream" if streamed else f"{exchange.status}")
    facts += [f"{timing.duration / 1000:.2f} s"] if timing.duration is not None else []
    if timing.first_token is not None and streamed:
        facts.append(f"first token {timing.first_token / 1000:.2f} s")
    yield (Span("head", visible(" · ".join(filter(None, facts)))),)
    verdict, again = tally(findings), known_note(len(shown.checked.known))
    if shown.open:
        size = sum(len(turn.text) for turn in response_turns(exchange))
        received = f"{size:,} characters received in {counted(reply.events, 'event')}" if reply is not None else ""
        yield (Span("warning", f"in progress: {received or 'no response bytes yet'}"),)
        verdict = f"{verdict or 'no findings'} so far" if verdict or not again else ""
    elif not verdict and not again:
        is_checked = exchange.ok or (exchange.end != "unread" and channel_of(exchange.api) == "mcp")
        verdict = "no findings" if is_checked else "not checked"
    parts = [verdict, again, f"{len(record.fixes)} fixed" if record.fixes else ""]
    parts.append(f"ended: {exchange.end}" if exchange.end not in ("complete", "unknown") else "")
    name = Span("remark", visible(f"  [{record.id[:8]}]"))
    yield Span(worst(findings) or "remark", " · ".join(filter(None, parts))), name
    if exchange.error and exchange.end != "complete":  # a client may leave after the last event
        yield (Span("remark", visible(exchange.error)),)


def _notes(notes: Iterable[str]) -> Iterator[Line]:
    for note in notes:
        yield (Span("remark", f"note: {visible(' '.join(note.split()))}"),)


def _ending(shown: Shown, exchange: Exchange, side: Side) -> Iterator[Line]:
    reply = exchange.reply
    if side == "request":
        return
    if reply is None:
        if not shown.open and exchange.end != "unread":
            yield _row("", Span("remark", "(no reply)"))
        return
    if reply.error is not None:
        yield _row("error", Span("error", visible(f"{reply.error}")))
    elif not any(choice.parts for choice in reply.choices) and not shown.open:
        yield _row("reply", Span("remark", "(empty)"))
    if shown.open:
        yield _row("", Span("warning", "… more may come"))
    if counts := [f"{name} {count:,}" for name, count in (reply.usage or {}).items() if isinstance(count, int)]:
        yield _row("", Span("remark", visible(", ".join(counts))))


# --- the conversation -------------------------------------------------------------------------------------------------


def _column(rows: Iterable[Row], checked: Checked) -> Iterator[Line]:
    before, sign = "", "="
    for row in rows:
        turn = row.turn
        if row.sign == "+":
            word = "forwarded" if turn.side == "request" else "delivered"
            speaker = word if sign != "+" else ""
        else:
            before = "" if row.sign == "=" != sign else before
            speaker = "" if turn.is_paired or turn.speaker == before else turn.speaker
            if speaker and before and row.sign == "=":
                yield ()
            before = speaker or before
        sign = row.sign
        style: Style = "minus" if row.sign == "-" else "plus" if row.sign == "+" else turn.look
        lead = Span(style, ("" if row.sign == "=" else f"{row.sign} ") + ("  " if turn.is_paired else ""), lead=True)
        label, text = map(visible, _shortened(turn))
        arrow = Span(style, f"{label[:1]} " if label[:1] in _ARROWS else "", lead=True)
        words = " ".join(part for part in (label[len(arrow.text) :], text.rstrip()) if part)
        first, *rest = words.split("\n")
        has_tail = turn.tail and not (turn.is_paired and turn.side == "request")
        tail = Span("remark", f"  {visible(turn.tail)}" if has_tail else "")
        below = Span("text", " " * len(arrow.text), lead=True)
        yield _row(speaker, lead, arrow, Span(style, first), *(() if rest else (tail,)))
        for number, line in enumerate(rest, 1):
            yield _row("", lead, below, Span(style, line), *((tail,) if number == len(rest) else ()))
        for finding in row.findings:
            yield from _finding(checked, finding)


def _shortened(turn: Turn) -> tuple[str, str]:
    text = turn.text
    if turn.look == "thinking" and text:
        if len(text) <= _THINKING:
            return "thinking:", " ".join(text.split())
        first = " ".join(text[: 2 * _THINKING].split())[:_THINKING]
        return f"thinking, {len(text):,} characters:", f"{first}…"
    limit = _LIMITS.get(turn.speaker.partition(" ")[0], _LIMIT)
    if turn.speaker != "context":
        limit = _RESULT if turn.look in ("result", "failed") else _LIMIT if turn.look == "call" else limit
    return turn.label, text if len(text) <= limit else f"{text[:limit]}… (+{len(text) - limit:,} characters)"


def _finding(checked: Checked, finding: Finding, indent: str = " " * _COLUMN) -> Iterator[Line]:
    style, head = finding.severity, f"{finding.severity} {finding.name} ({finding.layer}): {finding.message}"
    where = Span("remark", visible(f"  [{place(finding)}]"))
    yield Span(style, f"{indent}{_MARKS[style]} ", lead=True), Span(style, visible(head)), where
    made, below = fix_of(checked, finding), Span("text", f"{indent}  ", lead=True)
    if again := recurrence(finding.issue, checked.record.id):
        yield below, Span("remark", again)
    if made is not None:
        yield below, Span("plus", visible(f"✎ fixed ({made.safety}): {made.title}"))
    elif finding.fix is not None:
        yield below, Span("remark", visible(f"fix ({finding.fix.safety}): {finding.fix.title}"))


def _fixes(record: Record, side: Side) -> Iterator[Line]:
    if fixes := [fix for fix in record.fixes if fix.side == side]:
        yield from ((), (Span("head", "fixes applied (- received, + sent on)"),))
    for fix in fixes:
        head = f"{fix.code} {fix.name} ({fix.safety}) {fix.title}"
        where = Span("remark", visible(f"  [{place(fix)}]"))
        yield Span("plus", "✎ ", lead=True), Span("plus", visible(head)), where
        patch = visible(fix.patch).split("\n") if fix.patch else []
        for line in patch[:_MOST_PATCHED]:
            style: Style = "minus" if line.startswith("-") else "plus"
            yield Span(style, f"  {line[:2]}", lead=True), Span(style, line[2:])
        if len(patch) > _MOST_PATCHED:
            yield (Span("remark", f"  … {counted(len(patch) - _MOST_PATCHED, 'more line')}"),)
