"""Terminal text: findings by exchange, an exchange as a conversation, a list of conversations, a difference."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TextIO

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule as Line
from rich.table import Table
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.model import Exchange
from wirelint.prices import Tokens
from wirelint.rule import Finding
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.bodies import Source, excerpt_lines
from wirelint.view.conversation import FINISH, SIDES, ConversationView, Row, Turn
from wirelint.view.findings import (
    MARKS,
    STYLES,
    Repeats,
    known_note,
    note_of,
    place,
    recurrence,
    remedy,
    short_id,
    title_style,
    visible,
    worst,
    worst_first,
)
from wirelint.view.scores import prompt_of, usage_of
from wirelint.view.screen import Screen, hung

_INDENT = 6
_PATCH = {"-": "red", "+": "green"}
_SPEAKERS = {
    **dict.fromkeys(("user", "client"), "cyan"),
    **dict.fromkeys(("assistant", "reply", "server"), "magenta"),
    **dict.fromkeys(("tools", "system"), "dim"),
    "tool": "green",
}
_LABELS = {"call": "bold blue", "result": "bold green", "failed": "bold red", "text": "magenta"}
_CLIPPED, _CLIPPED_SYSTEM, _CLIPPED_THINKING = 700, 200, 60
"""Characters of a text, of an instruction and of thinking that are shown without `--full`."""
_BEFORE = 200
"""Characters shown before evidence that begins beyond the shown beginning of a text."""
_WIDE, _WIDEST_COLUMN = 100, 40
_LIST_INDENT, _SHORTEST_PROMPT = 2, 20
_MOST_EXCHANGES = 6
"""Exchanges of a conversation that a list shows without folding."""


class Full:
    """Format with a block per exchange with findings: a head line, then per finding message, place, evidence and fix.

    An exchange whose findings are all known from earlier ones is its head line alone. `grouped`: findings with equal
    fingerprints are shown once, and a list at the end has the number, the first and the last of their exchanges.
    """

    def __init__(self, out: TextIO, *, grouped: bool = False) -> None:
        self._console = Screen(out)
        self._source: str | None = None
        self._repeats = Repeats() if grouped else None

    def add(self, checked: Checked) -> None:
        findings, note = checked.findings, known_note(len(checked.known))
        if self._repeats is not None:
            findings, note = self._repeats.add(checked), ""
        if not findings and not note:
            return
        width, lines = self._console.width, self._console.print_lines
        if checked.record.source != self._source:
            self._source = checked.record.source
            lines(hung(Text(visible(self._source), "bold underline"), width, 0))
        head = _head(checked)
        if note:
            head.append(f"  {note}", "dim")
        lines(hung(head, width, 2, 2))
        if findings:
            source = Source(checked)
            for finding in findings:
                lines(finding_lines(checked, finding, source, width))
            lines([Text()])

    def close(self) -> None:
        width, lines = self._console.width, self._console.print_lines
        repeats = self._repeats.ordered() if self._repeats is not None else []
        if again := [one for one in repeats if one.count > 1]:
            lines(hung(Text("found again (--all-occurrences shows each)", "bold underline"), width, 0))
            for one in again:
                found = one.finding
                head = f"{MARKS[found.severity]} {found.code} {found.name}", STYLES[found.severity]
                lines(hung(Text.assemble(head, (f"  {one.seen}", "dim")), width, 2, 2))
            lines([Text()])
        self._console.file.flush()


def finding_lines(checked: Checked, finding: Finding, source: Source, width: int) -> Iterator[Text]:
    """Yield the lines of a finding as compilers print theirs: message, place, the source with carets, the fix."""
    style = STYLES[finding.severity]
    title = Text(f"{MARKS[finding.severity]} ", f"bold {style}")
    title.append(f"{finding.code} {finding.name}", title_style(finding))
    title.append(f"  {finding.severity} · {finding.layer}", style)
    if finding.confidence != "high":
        title.append(f" · {finding.confidence} confidence", "dim")
    yield from hung(title, width, 4, 2)
    yield from hung(Text(finding.message), width, _INDENT)
    yield from hung(Text.assemble(("--> ", "blue"), (visible(place(finding)), "dim")), width, _INDENT, 4)
    for line in excerpt_lines(source.evidence(finding), width - _INDENT, style):
        yield Text(" " * _INDENT).append_text(line)
    for note, colour in ((recurrence(finding.issue, checked.record.id), "dim"), (remedy(checked, finding), "green")):
        if note:
            yield from hung(Text.assemble(("= ", "blue"), (note, colour)), width, _INDENT, 2)


def _head(checked: Checked) -> Text:
    exchange = checked.exchange
    head = Text.assemble((visible(checked.record.id), "bold cyan"))
    if exchange is None:
        return head
    for word in filter(None, (exchange.api, exchange.model, "stream" if checked.streamed else "")):
        head.append(visible(f"  {word}"))
    if exchange.status is not None:
        head.append(f"  {exchange.status}", "green" if exchange.status < 400 else "red")
    return head


# --- a conversation ---------------------------------------------------------------------------------------------------


class Lengths(NamedTuple):
    """The amount of text to show: `full` all messages and all of their text, `thinking` all thinking."""

    full: bool = False
    thinking: bool = False


def render_conversation(checked: Checked, *, full: bool = False, thinking: bool = False) -> RenderableType:
    """Render an exchange as a conversation for a terminal of any width."""
    exchange = checked.exchange
    if exchange is None:
        why = f": {visible(checked.because)}" if checked.because else ""
        return Text(f"{visible(checked.record.id)}: unrecognised API, not checked{why}; see --wire", "yellow")
    lengths = Lengths(full, thinking)
    view = ConversationView(checked, exchange, full=full)
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=6, no_wrap=True)
    grid.add_column(width=9, no_wrap=True)
    grid.add_column(overflow="fold")
    loose: list[Finding] = []
    before: Row | None = None
    for side in SIDES:
        rows, left = view.side(side)
        loose += left
        for row in rows:
            _add_row(grid, row, before, checked, lengths)
            if not row.turn.is_paired:
                before = row
    for finding in loose:
        _add_note(grid, checked, finding)
    if note := known_note(len(checked.known)):
        grid.add_row("", "", Text(f"{note} (--all-occurrences shows them)", "dim"))
    return Group(_title(checked, exchange), grid, *_fixes(checked.record, lengths), _foot(exchange))


def _add_row(grid: Table, row: Row, before: Row | None, checked: Checked, lengths: Lengths) -> None:
    turn, last = row.turn, before.turn if before is not None else None
    opens = turn.message != "" and (last is None or turn.message != last.message) and not turn.is_paired
    if row.sign == "+":
        first = before is None or before.sign != "+"
        speaker = ("forwarded" if turn.side == "request" else "delivered") if first and not turn.is_paired else ""
        grid.add_row(Text("    ✎", "green"), Text(speaker, "bold green"), turn_text(turn, (), lengths))
        return
    changed = opens or last is None or last.speaker != turn.speaker or (before is not None and before.sign == "+")
    speaker = turn.speaker if changed or turn.is_paired else ""
    if opens and grid.row_count and (last is None or turn.speaker in ("user", "reply") or turn.speaker != last.speaker):
        grid.add_row("", "", "")
    marks = [finding for finding in checked.findings if finding.side == turn.side and finding.pointer == turn.pointer]
    margin = Text(row.findings[0].code, f"bold {STYLES[row.findings[0].severity]}") if row.findings else Text("")
    style = f"bold {_SPEAKERS.get(turn.speaker.partition(' ')[0], '')}"
    grid.add_row(margin, Text(speaker, style), turn_text(turn, [one for one in marks if one.span], lengths))
    for number, finding in enumerate(row.findings):
        _add_note(grid, checked, finding, is_first=not number)


def _add_note(grid: Table, checked: Checked, finding: Finding, *, is_first: bool = False) -> None:
    note = Text.assemble(*note_of(finding))
    if again := recurrence(finding.issue, checked.record.id):
        note.append(f"\n  {again}", "dim")
    if fix := remedy(checked, finding):
        note.append(f"\n  {fix}", "green")
    grid.add_row(Text("" if is_first else finding.code, f"bold {STYLES[finding.severity]}"), "", note)


def turn_text(turn: Turn, marks: Sequence[Finding], lengths: Lengths) -> Text:
    """Return the text of a turn with the evidence of findings underlined."""
    text, full = turn.text, lengths.full
    match turn.look:
        case "thinking":
            words = " ".join(text.split())
            first = words[:_CLIPPED_THINKING].rstrip()
            if turn.label:
                shown = Text(visible(turn.label))
            elif lengths.thinking or full or marks:  # all of it if requested or if it has evidence
                shown = underline(text, marks, lengths.thinking or full)
            else:
                more = "…" if len(words) > len(first) else ""
                shown = Text(visible(f"▸ {first}{more}  ({counted(len(text.split()), 'word')} of thinking)"))
            shown.style = "italic dim"
            return shown
        case "remark":
            more = " (--full shows them)" if text.startswith("… ") and not turn.pointer else ""
            return Text(f"{'■ ' if turn.label == FINISH else ''}{clip(text, full)}{more}", "dim")
    limit = _CLIPPED_SYSTEM if turn.speaker == "system" else _CLIPPED
    label = visible(turn.label) + (" " if text and turn.label else "")
    shown = Text.assemble((label, _LABELS[turn.look]), underline(text, marks, full, limit))
    return shown.append(f"  {visible(turn.tail)}" if turn.tail else "", "dim")


def underline(text: str, marks: Sequence[Finding], full: bool, limit: int = _CLIPPED) -> Text:
    """Underline the evidence in a text. Of a long text the beginning is shown, or the text around the first evidence."""
    start, end = 0, len(text)
    if not full and end > limit:
        first = min((finding.span[0] for finding in marks if finding.span), default=0)
        start = max(first - _BEFORE, 0) if first > limit // 2 else 0
        end = min(start + max(limit, _CLIPPED if marks else 0), end)
    shown = Text.assemble((f"(+{start} characters) …" if start else "", "dim"))
    base = len(shown.plain)
    shown.append(_flat(text[start:end]))
    for finding in marks:
        if finding.span is not None and finding.span[0] < end and finding.span[1] > start:
            low, high = (base + len(_flat(text[start : max(at, start)])) for at in finding.span)
            shown.stylize(f"underline {STYLES[finding.severity]}", low, min(high, len(shown.plain)))
    if end < len(text):
        shown.append(f"… (+{len(text) - end} characters)", "dim")
    elif shown.plain.strip():
        shown.rstrip()
    return shown


def clip(text: str, full: bool) -> str:
    if full or len(text) <= _CLIPPED:
        return visible(text)
    return f"{visible(text[:_CLIPPED])}… (+{len(text) - _CLIPPED} characters)"


def _flat(text: str) -> str:
    """Replace tabs by blanks: in a table cell a tab would break the columns."""
    return visible(text).replace("\t", "    ")


def _title(checked: Checked, exchange: Exchange) -> RenderableType:
    facts = [exchange.api, exchange.model, "stream" if checked.streamed else "whole body"]
    facts.append(str(exchange.status) if exchange.status is not None else "")
    facts.append(f"{exchange.timing.duration:.0f} ms" if exchange.timing.duration is not None else "")
    facts.append(f"conversation {exchange.conversation}" if exchange.conversation else "")
    head = Line(Text(visible(f" {checked.record.id} "), "bold cyan"), align="left", style="dim")
    url = Text(visible(f"{exchange.method} {exchange.url}"), overflow="fold")
    return Group(head, url, Text(visible(" · ".join(filter(None, facts))), "dim"), Text(""))


def _fixes(record: Record, lengths: Lengths) -> Iterator[RenderableType]:
    if record.fixes:
        yield Text("\nfixes applied", "bold")
    for fix in record.fixes:
        head = Text.assemble(("✎ ", "green"), (f"{visible(fix.code)} {visible(fix.name)}", "bold green"))
        yield head.append(f" ({fix.safety}) {visible(fix.title)}", "green").append(visible(f"  {place(fix)}"), "dim")
        for line in fix.patch.split("\n") if fix.patch else ():
            yield Padding(Text(clip(line, lengths.full), _PATCH.get(line[:1], ""), overflow="fold"), (0, 0, 0, 2))


def _foot(exchange: Exchange) -> RenderableType:
    reply = exchange.reply
    notes = [f"ended: {exchange.end}"] if exchange.end not in ("complete", "unknown") else []
    notes += [exchange.error] if exchange.error and exchange.end != "complete" else []
    notes += exchange.notes
    if reply is not None:
        if reply.error is not None:
            notes.append(f"error object: {reply.error}")
        replies = (side for side in (reply, exchange.delivered) if side is not None)
        reasons = [", ".join(f"{choice.finish_reason}" for choice in side.choices) or "none" for side in replies]
        notes.append(f"finish reason: {', delivered as '.join(dict.fromkeys(reasons))}")
        if reply.usage:
            notes.append(", ".join(f"{name} {count}" for name, count in reply.usage.items() if isinstance(count, int)))
    elif exchange.end != "unread":
        notes.append("no reply")
    return Text(visible("\n".join(["", *notes])), "dim")


def list_conversations(items: Sequence[Checked], width: int, *, full: bool = False) -> Iterator[Text]:
    """Yield a head line per conversation (time, prompt, tokens) and the lines of its exchanges.

    Of a long conversation the clean exchanges before the last one are only counted, unless `full`.
    """
    groups: dict[tuple[str, str], list[tuple[Checked, list[Text]]]] = {}
    for checked, lines in zip(items, _lines_of(items, width - _LIST_INDENT), strict=True):
        key = checked.record.source, checked.conversation or checked.record.id
        groups.setdefault(key, []).append((checked, lines))
    for group in groups.values():
        yield from _conversation_head([checked for checked, _ in group], width)
        last = len(group) - 1
        shown = [one for number, one in enumerate(group) if number == last or one[0].findings]
        is_folded = not full and len(group) > _MOST_EXCHANGES and len(shown) < len(group)
        for _, lines in shown if is_folded else group:
            yield from (Text(" " * _LIST_INDENT).append_text(line) for line in lines)
        if is_folded:
            yield Text(f"    … {counted(len(group) - len(shown), 'clean exchange')} (--full lists them)", "dim")


def _conversation_head(items: Sequence[Checked], width: int) -> Iterator[Text]:
    """Yield `2026-01-31 09:45  Search the notes …` and the counts, on one line if they fit."""
    started = min((at for checked in items if (at := checked.record.timing.started)), default=None)
    counts = [tokens for checked in items if (tokens := usage_of(checked)[0]) is not None]
    total = sum(counts, Tokens())
    notes = [counted(len(items), "exchange")] if len(items) > 1 else []
    notes += [f"{total.input:,} tokens in, {total.output:,} out"] if counts else []
    time, note = _time(started) if started is not None else "", ", ".join(notes)
    prompt = shorten(printable(prompt_of(items)), max(width - len(time) - len(note) - 4, _SHORTEST_PROMPT))
    pieces = [Text(text, style) for text, style in ((time, "cyan"), (prompt, "bold"), (note, "dim")) if text]
    if pieces:
        yield from hung(Text("  ").join(pieces), width, 0, 2)


def _time(at: float) -> str:
    """Return a Unix time as local time; empty for one that no calendar has."""
    try:
        return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return ""


def _lines_of(items: Sequence[Checked], width: int) -> Iterator[list[Text]]:
    """Yield the lines of each exchange: its worst severity, id, model, and the rules with findings, in common columns."""
    ids = [short_id(checked.record.id) for checked in items]
    models = [visible(checked.model) for checked in items]
    apis = [checked.api for checked in items]
    narrow = [model or api for model, api in zip(models, apis, strict=True)]
    columns = [ids, apis, models] if width >= _WIDE else [ids, narrow]
    widths = [min(max(map(cell_len, column), default=0), _WIDEST_COLUMN) for column in columns]
    for number, checked in enumerate(items):
        severity = worst(checked.findings)
        clean = ("✓", "green") if checked.exchange is not None else ("-", "dim")
        line = Text.assemble((MARKS[severity], STYLES[severity]) if severity else clean, " ")
        for column, size in zip(columns, widths, strict=True):
            text = column[number]
            line.append(text, "cyan" if column is ids else "").append(" " * max(size - cell_len(text), 0) + "  ")
        line.rstrip()
        rules = _names(checked)
        start = sum(widths) + 2 * len(widths) + 2
        if not rules or start + cell_len(rules.plain) <= width:
            line.append(" " * (start - cell_len(line.plain))).append_text(rules).rstrip()
            yield [line]
        else:
            yield [line, *hung(rules, width, 4)]


def _names(checked: Checked) -> Text:
    if checked.exchange is None and not checked.findings:
        return Text("not checked", "yellow" if checked.because else "dim")
    names = {finding.name: STYLES[finding.severity] for finding in worst_first(checked.findings)}
    shown = Text(", ").join(Text(name, style) for name, style in names.items())
    if checked.known:
        shown.append(f"{' ' if names else ''}+ {len(checked.known)} known", "dim")
    return shown.append(" ✎" if checked.record.fixes else "", "green")


def render_difference(one: Checked, other: Checked) -> Iterator[Text]:
    texts = [list(_plain_lines(checked)) for checked in (one, other)]
    names = [visible(checked.record.id) for checked in (one, other)]
    lines = list(difflib.unified_diff(texts[0], texts[1], names[0], names[1], lineterm="", n=2))
    for line in lines:
        yield Text(visible(line), "bold" if line.startswith(("---", "+++")) else _PATCH.get(line[:1], "dim"))
    if not lines:
        yield Text(f"{names[0]} and {names[1]} do not differ", "dim")


def _plain_lines(checked: Checked) -> Iterator[str]:
    """Yield the facts, the turns and the findings of an exchange as lines that do not depend on ids and times."""
    exchange = checked.exchange
    if exchange is None:
        return
    yield f"{exchange.api} {exchange.model}, status {exchange.status}, {exchange.end}"
    view = ConversationView(checked, exchange, full=True)
    for side in SIDES:
        for row in view.side(side)[0]:
            turn = row.turn
            for line in f"{turn.label} {turn.text}".strip().split("\n"):
                yield f"{turn.speaker}: {line}"
    if (tokens := usage_of(checked)[0]) is not None:
        yield f"tokens: {tokens.input:,} in, {tokens.output:,} out"
    for finding in checked.findings:
        yield f"finding: {finding.code} {finding.name} ({finding.layer}) {finding.message}"
