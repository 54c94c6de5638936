"""One exchange as a conversation: who said what, calls beside their results, findings in the margin at their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule as Line
from rich.table import Table
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.replay import mended, replay
from wirelint.model import Choice, Exchange, Message, Reply, ToolCall, ToolResult
from wirelint.rule import SEVERITIES, Finding, Side
from wirelint.view.layout import hung
from wirelint.view.parts import View, clip, marking, part_text
from wirelint.view.writer import MARKS, STYLES, known_note, place, recurrence, remedy, visible

_PATCH_STYLES = {"-": "red", "+": "green"}
_VOICES = {"user": "cyan", "assistant": "magenta", "reply": "magenta", "tool": "green", "tools": "dim", "system": "dim"}
_LATEST = 12
_WIDE = 100
_MOST = 40
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the conversation. `pointer` is where it stands in the body of `side`.

    `sent`: it was sent on in the place of what came in. `opens`: a turn begins with it.
    """

    speaker: str
    text: Text
    side: Side
    pointer: str
    sent: bool = False
    opens: bool = False


def conversation(checked: Checked, *, full: bool = False, thinking: bool = False) -> RenderableType:
    """The exchange for a terminal of any width. `full` shows every message and all of its text, `thinking` all thoughts."""
    exchange = checked.exchange
    if exchange is None:
        why = f": {visible(checked.because)}" if checked.because else ""
        told = f"{visible(checked.record.id)}: of no API that wirelint understands, not judged{why}; see --wire"
        return Text(told, "yellow")
    findings = list(checked.findings)
    view = View(full, thinking, marking(findings))
    rows = list(_rows(checked, exchange, view))
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=6, no_wrap=True)
    grid.add_column(width=9, no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        if row.opens and grid.row_count:
            grid.add_row("", "", "")
        placed = [finding for finding in findings if _stands_at(finding, row, rows)]
        findings = [finding for finding in findings if finding not in placed]
        _add(checked, grid, row, placed)
    for finding in findings:
        _add_note(checked, grid, finding)
    if note := known_note(len(checked.known)):
        grid.add_row("", "", Text(f"{note} (--all-occurrences shows them)", "dim"))
    return Group(_title(checked, exchange), grid, *_fixes(checked.record, view), _foot(exchange))


def _rows(checked: Checked, exchange: Exchange, view: View) -> Iterator[_Row]:
    """What came in; beneath each part that was changed, what was sent on in its place."""
    record = checked.record
    sent = replay(mended(record)) if record.forwarded is not None or record.delivered is not None else None
    for part, speaker in ((_request_rows, "forwarded"), (_reply_rows, "delivered")):
        came = list(part(exchange, view))
        plain = replace(view, findings={})
        yield from came if sent is None else _beside(came, list(part(sent, plain)), speaker)


def _beside(came: list[_Row], sent: list[_Row], speaker: str) -> Iterator[_Row]:
    matcher = SequenceMatcher(None, _words(came), _words(sent), autojunk=False)
    for kind, start, end, sent_start, sent_end in matcher.get_opcodes():
        yield from came[start:end]
        if kind == "equal":
            continue
        for row in sent[sent_start:sent_end]:
            yield replace(row, speaker=speaker, sent=True, opens=False)
            speaker = ""
        if sent_start == sent_end:
            yield _Row(speaker, Text("(left out)", "dim"), came[start].side, "", sent=True)
            speaker = ""


def _words(rows: list[_Row]) -> list[str]:
    """What is compared of rows; a remark without a place is equal to any other."""
    return [row.text.plain if row.pointer else "" for row in rows]


def _fixes(record: Record, view: View) -> Iterator[RenderableType]:
    """What was repaired, with patches."""
    if record.fixes:
        yield Text("\nrepaired", "bold")
    for fix in record.fixes:
        head = Text.assemble(("✎ ", "green"), (f"{visible(fix.code)} {visible(fix.name)}", "bold green"))
        where = f"  {fix.side}{f' {fix.pointer}' if fix.pointer else ''}"
        where += f", event {fix.event}" if fix.event is not None else ""
        yield head.append(f" ({fix.safety}) {visible(fix.title)}", "green").append(visible(where), "dim")
        for line in fix.patch.split("\n") if fix.patch else ():
            yield Padding(Text(clip(line, view.full), _PATCH_STYLES.get(line[:1], ""), overflow="fold"), (0, 0, 0, 2))


def _add(checked: Checked, grid: Table, row: _Row, placed: Iterable[Finding]) -> None:
    placed = list(placed)
    worst = placed[0].severity if placed else None
    margin = Text(placed[0].code, f"bold {STYLES[worst]}") if placed and worst else Text("")
    if row.sent:
        grid.add_row(Text("    ✎", "green"), Text(row.speaker, "bold green"), row.text)
    else:
        grid.add_row(margin, Text(row.speaker, f"bold {_VOICES.get(row.speaker, '')}"), row.text)
    for finding in placed:
        _add_note(checked, grid, finding, first=finding is placed[0])


def _add_note(checked: Checked, grid: Table, finding: Finding, *, first: bool = False) -> None:
    style = STYLES[finding.severity]
    note = Text.assemble(
        (f"{MARKS[finding.severity]} {finding.name}", f"bold {style}"), (f" ({finding.layer}) ", style)
    )
    note.append(finding.message, style)
    note.append(f"  [{place(finding)}]", "dim")
    if again := recurrence(finding.issue, checked.record.id):
        note.append(f"\n  {again}", "dim")
    if repair := remedy(checked, finding):
        note.append(f"\n  {repair}", "green")
    grid.add_row(Text("" if first else finding.code, f"bold {style}"), "", note)


def _title(checked: Checked, exchange: Exchange) -> RenderableType:
    facts = [exchange.api, exchange.model, "stream" if exchange.reply and exchange.reply.streamed else "whole body"]
    if exchange.status is not None:
        facts.append(str(exchange.status))
    if exchange.timing.duration is not None:
        facts.append(f"{exchange.timing.duration:.0f} ms")
    if exchange.conversation:
        facts.append(f"conversation {exchange.conversation}")
    return Group(
        Line(Text(visible(f" {checked.record.id} "), "bold cyan"), align="left", style="dim"),
        Text(visible(f"{exchange.method} {exchange.url}"), overflow="fold"),
        Text(visible(" · ".join(fact for fact in facts if fact)), "dim"),
        Text(""),
    )


def _foot(exchange: Exchange) -> RenderableType:
    reply = exchange.reply
    notes: list[str] = []
    if exchange.end not in ("complete", "unknown"):
        notes.append(f"ended: {exchange.end}")
    if exchange.error:
        notes.append(exchange.error)
    if reply is not None and reply.error is not None:
        notes.append(f"error object: {reply.error}")
    if reply is not None:
        said = [_reasons(side) for side in (reply, exchange.delivered) if side is not None]
        notes.append(f"finish reason: {', delivered as '.join(dict.fromkeys(said))}")
        if reply.usage:
            counts = (f"{name} {count}" for name, count in reply.usage.items() if isinstance(count, int))
            notes.append(", ".join(counts))
    elif exchange.end != "unread":
        notes.append("no reply")
    return Text(visible("\n".join(["", *notes])), "dim")


def _reasons(reply: Reply) -> str:
    return ", ".join(f"{choice.finish_reason}" for choice in reply.choices) or "none"


def _request_rows(exchange: Exchange, view: View) -> Iterator[_Row]:
    request = exchange.request
    if request is None:
        return
    if request.tools:
        names = ", ".join(tool.name for tool in request.tools)
        yield _Row("tools", Text(clip(names, view.full), "dim"), "request", "/tools")
    messages = request.messages
    skipped = 0 if view.full else max(len(messages) - _LATEST, 0)
    if skipped:
        yield _Row("", Text(f"… {skipped} earlier messages (--full shows them)", "dim"), "request", "")
    results = _answers(messages[skipped:])
    told = {id(result) for result in results.values()}
    before = ""
    for message in messages[skipped:]:
        rows = list(_message_rows(message, results, told, view))
        if rows and (message.role != before or message.role == "user"):
            rows[0] = replace(rows[0], opens=True)
        yield from rows
        before = message.role if rows else before


def _answers(messages: Sequence[Message]) -> dict[int, ToolResult]:
    """The results that stand beside their calls, by the identity of the call: each is the first that bears its id."""
    waiting: dict[str, list[ToolCall]] = {}
    found: dict[int, ToolResult] = {}
    for message in messages:
        for call in message.calls:
            waiting.setdefault(call.id or "", []).append(call)
        for result in message.results:
            calls = waiting.get(result.call_id or "")
            if calls and result.call_id:
                found[id(calls.pop(0))] = result
    return found


def _message_rows(message: Message, results: dict[int, ToolResult], told: set[int], view: View) -> Iterator[_Row]:
    speaker: str = message.role
    for part in message.parts:
        if isinstance(part, ToolResult) and id(part) in told:
            continue
        shown = "tool" if isinstance(part, ToolResult) and speaker == "user" else speaker
        text = part_text(part, "request", view, system=message.role == "system")
        yield _Row(shown, text, "request", part.pointer)
        speaker = "" if shown == speaker else speaker
        result = results.get(id(part))
        if result is not None:
            yield _Row("tool", part_text(result, "request", view), "request", result.pointer)
    if not message.parts:
        yield _Row(speaker, Text("(empty)", "dim"), "request", message.pointer)


def _reply_rows(exchange: Exchange, view: View) -> Iterator[_Row]:
    if exchange.reply is None:
        return
    several = len(exchange.reply.choices) > 1
    for choice in exchange.reply.choices:
        yield from _choice_rows(choice, f"reply {choice.index}" if several else "reply", view)


def _choice_rows(choice: Choice, speaker: str, view: View) -> Iterator[_Row]:
    opens = True
    for part in choice.parts:
        yield _Row(speaker, part_text(part, "response", view), "response", part.pointer, opens=opens)
        speaker, opens = "", False
    if choice.finish_reason:
        text = Text(visible(f"■ {choice.finish_reason}"), "dim")
        yield _Row(speaker, text, "response", choice.finish_pointer, opens=opens)


def _stands_at(finding: Finding, row: _Row, rows: Iterable[_Row]) -> bool:
    """Whether a finding belongs to a row: its own place, or the row is the nearest part above or below that place."""
    if row.sent or finding.side != row.side or not finding.pointer or not row.pointer:
        return False
    if any(not other.sent and finding.side == other.side and finding.pointer == other.pointer for other in rows):
        return finding.pointer == row.pointer
    return finding.pointer.startswith(f"{row.pointer}/") or row.pointer.startswith(f"{finding.pointer}/")


def index(items: Sequence[Checked], width: int) -> Iterator[Text]:
    """Several exchanges, a line each, for picking one: the worst of their findings, id, model, and what was found."""
    ids = [_short(checked.record.id) for checked in items]
    models = [visible(checked.exchange.model) if checked.exchange else "" for checked in items]
    apis = [checked.exchange.api if checked.exchange else "" for checked in items]
    narrow = [model or api for model, api in zip(models, apis, strict=True)]
    columns = [ids, apis, models] if width >= _WIDE else [ids, narrow]
    widths = [min(max(map(cell_len, column), default=0), _MOST) for column in columns]
    for number, checked in enumerate(items):
        worst = min((finding.severity for finding in checked.findings), key=SEVERITIES.index, default=None)
        clean = ("✓", "green") if checked.exchange is not None else ("-", "dim")
        line = Text.assemble((MARKS[worst], STYLES[worst]) if worst else clean, " ")
        for column, size in zip(columns, widths, strict=True):
            text = column[number]
            line.append(text, "cyan" if column is ids else "").append(" " * max(size - cell_len(text), 0) + "  ")
        line.rstrip()
        names = _names(checked)
        if cell_len(line.plain) + 2 + cell_len(names.plain) <= width:
            line.append(" " * (sum(widths) + 2 * len(widths) + 2 - cell_len(line.plain))).append_text(names).rstrip()
            yield line
        else:
            yield line
            yield from hung(names, width, 4)


def _names(checked: Checked) -> Text:
    """What was found, the worst first, and whether something was repaired."""
    if checked.exchange is None and not checked.findings:
        return Text("not judged", "yellow" if checked.because else "dim")
    found = sorted(checked.findings, key=lambda finding: SEVERITIES.index(finding.severity))
    names = {finding.name: STYLES[finding.severity] for finding in found}
    told = Text(", ").join(Text(name, style) for name, style in names.items())
    if checked.known:
        told.append(f"{' ' if names else ''}+ {len(checked.known)} known", "dim")
    return told.append(" ✎" if checked.record.fixes else "", "green")


def _short(name: str) -> str:
    """As much of an exchange's id as names it: of a UUID the beginning."""
    return name[:8] if _UUID.fullmatch(name) else visible(name)
