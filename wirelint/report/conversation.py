"""One exchange as a conversation: who said what, calls beside their results, findings in the margin at their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule as Line
from rich.table import Table
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.replay import mended, replay
from wirelint.model import (
    Choice,
    Exchange,
    HostedCall,
    HostedResult,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Rpc,
    ToolCall,
    ToolResult,
)
from wirelint.model import Text as Words
from wirelint.report.writer import MARKS, STYLES, place, remedy, visible
from wirelint.rule import Finding, Side

_CLIPPED = 700
_PATCH_STYLES = {"-": "red", "+": "green"}
_LATEST = 12


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the conversation. `pointer` is where it stands in the body of `side`.

    `sent`: it was sent on in the place of what came in.
    """

    speaker: str
    text: Text
    side: Side
    pointer: str
    sent: bool = False


def conversation(checked: Checked, *, full: bool = False) -> RenderableType:
    """The exchange for a terminal of any width. `full` shows every message and all of its text."""
    exchange = checked.exchange
    if exchange is None:
        why = f": {visible(checked.because)}" if checked.because else ""
        told = f"{visible(checked.record.id)}: of no API that wirelint understands, not judged{why}; see --wire"
        return Text(told, "yellow")
    findings = list(checked.findings)
    rows = list(_rows(checked, exchange, full))
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=6, no_wrap=True)
    grid.add_column(width=9, no_wrap=True, style="bold")
    grid.add_column(ratio=1, overflow="fold")
    for row in rows:
        placed = [finding for finding in findings if _stands_at(finding, row, rows)]
        findings = [finding for finding in findings if finding not in placed]
        _add(checked, grid, row, placed)
    for finding in findings:
        _add_note(checked, grid, finding)
    return Group(_title(checked, exchange), grid, *_fixes(checked.record, full), _foot(exchange))


def _rows(checked: Checked, exchange: Exchange, full: bool) -> Iterator[_Row]:
    """What came in; beneath each part that was changed, what was sent on in its place."""
    record = checked.record
    sent = replay(mended(record)) if record.forwarded is not None or record.delivered is not None else None
    for part, speaker in ((_request_rows, "forwarded"), (_reply_rows, "delivered")):
        came = list(part(exchange, full))
        yield from came if sent is None else _beside(came, list(part(sent, full)), speaker)


def _beside(came: list[_Row], sent: list[_Row], speaker: str) -> Iterator[_Row]:
    matcher = SequenceMatcher(None, _words(came), _words(sent), autojunk=False)
    for kind, start, end, sent_start, sent_end in matcher.get_opcodes():
        yield from came[start:end]
        if kind == "equal":
            continue
        for row in sent[sent_start:sent_end]:
            yield replace(row, speaker=speaker, sent=True)
            speaker = ""
        if sent_start == sent_end:
            yield _Row(speaker, Text("(left out)", "dim"), came[start].side, "", sent=True)
            speaker = ""


def _words(rows: list[_Row]) -> list[str]:
    """What is compared of rows; a remark without a place is equal to any other."""
    return [row.text.plain if row.pointer else "" for row in rows]


def _fixes(record: Record, full: bool) -> Iterator[RenderableType]:
    """What was repaired, with patches."""
    if record.fixes:
        yield Text("\nrepaired", "bold")
    for fix in record.fixes:
        head = Text.assemble(("✎ ", "green"), (f"{visible(fix.code)} {visible(fix.name)}", "bold green"))
        where = f"  {fix.side}{f' {fix.pointer}' if fix.pointer else ''}"
        where += f", event {fix.event}" if fix.event is not None else ""
        yield head.append(f" ({fix.safety}) {visible(fix.title)}", "green").append(visible(where), "dim")
        for line in fix.patch.split("\n") if fix.patch else ():
            yield Padding(Text(_clip(line, full), _PATCH_STYLES.get(line[:1], ""), overflow="fold"), (0, 0, 0, 2))


def _add(checked: Checked, grid: Table, row: _Row, placed: Iterable[Finding]) -> None:
    placed = list(placed)
    worst = placed[0].severity if placed else None
    margin = Text(placed[0].code, f"bold {STYLES[worst]}") if placed and worst else Text("")
    if row.sent:
        grid.add_row(Text("    ✎", "green"), Text(row.speaker, "bold green"), row.text)
    else:
        grid.add_row(margin, row.speaker, row.text)
    for finding in placed:
        _add_note(checked, grid, finding, first=finding is placed[0])


def _add_note(checked: Checked, grid: Table, finding: Finding, *, first: bool = False) -> None:
    style = STYLES[finding.severity]
    note = Text.assemble(
        (f"{MARKS[finding.severity]} {finding.name}", f"bold {style}"), (f" ({finding.layer}) ", style)
    )
    note.append(finding.message, style)
    note.append(f"  [{place(finding)}]", "dim")
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


def _request_rows(exchange: Exchange, full: bool) -> Iterator[_Row]:
    request = exchange.request
    if request is None:
        return
    if request.tools:
        names = ", ".join(tool.name for tool in request.tools)
        yield _Row("tools", Text(_clip(names, full), "dim"), "request", "/tools")
    messages = request.messages
    skipped = 0 if full else max(len(messages) - _LATEST, 0)
    if skipped:
        yield _Row("", Text(f"… {skipped} earlier messages (--full shows them)", "dim"), "request", "")
    for message in messages[skipped:]:
        yield from _message_rows(message, full)


def _message_rows(message: Message, full: bool) -> Iterator[_Row]:
    speaker: str = message.role
    for part in message.parts:
        shown = "tool" if isinstance(part, ToolResult) and speaker == "user" else speaker
        yield _Row(shown, _part(part, full), "request", part.pointer)
        speaker = "" if shown == speaker else speaker
    if not message.parts:
        yield _Row(speaker, Text("(empty)", "dim"), "request", message.pointer)


def _reply_rows(exchange: Exchange, full: bool) -> Iterator[_Row]:
    if exchange.reply is None:
        return
    several = len(exchange.reply.choices) > 1
    for choice in exchange.reply.choices:
        yield from _choice_rows(choice, f"reply {choice.index}" if several else "reply", full)


def _choice_rows(choice: Choice, speaker: str, full: bool) -> Iterator[_Row]:
    for part in choice.parts:
        yield _Row(speaker, _part(part, full), "response", part.pointer)
        speaker = ""
    if choice.finish_reason:
        yield _Row(speaker, Text(f"■ {choice.finish_reason}", "dim"), "response", choice.finish_pointer)


def _part(part: Part, full: bool) -> Text:
    match part:
        case Words(text):
            return Text(_clip(text, full))
        case Reasoning(text, _, opaque):
            return Text("(encrypted thinking)" if opaque else _clip(text, full), "italic dim")
        case Refusal(text):
            return Text.assemble(("refusal: ", "magenta"), _clip(text, full))
        case ToolCall(id_, name, arguments):
            shown = Text.assemble(("→ ", "bold blue"), (visible(name or "(no name)"), "bold blue"))
            return shown.append(f" {_clip(arguments.text, full)}").append(f"  {visible(id_ or '(no id)')}", "dim")
        case Rpc(form, id_, method, value):
            said = "" if value is None else f" {_clip(json.dumps(value, ensure_ascii=False), full)}"
            return Text.assemble((visible(method or form), "blue"), said, (f"  {visible(id_ or '')}", "dim"))
        case ToolResult(call_id, text, _, _, error):
            head = Text.assemble(("← ", "bold green"), (f"{visible(call_id or '(no id)')} ", "dim"))
            return head.append("error: " if error else "", "red").append(_clip(text, full))
        case HostedCall(_, name):
            return Text(f"⇢ {visible(name or 'tool')} (run by the provider)", "blue")
        case HostedResult(_, _, kind):
            return Text(f"⇠ {visible(kind or 'result')} (from the provider)", "green")
        case Opaque(kind):
            return Text(f"({visible(kind or 'unknown part')})", "dim")


def _stands_at(finding: Finding, row: _Row, rows: Iterable[_Row]) -> bool:
    """Whether a finding belongs to a row: its own place, or the row is the nearest part above or below that place."""
    if row.sent or finding.side != row.side or not finding.pointer or not row.pointer:
        return False
    if any(not other.sent and finding.side == other.side and finding.pointer == other.pointer for other in rows):
        return finding.pointer == row.pointer
    return finding.pointer.startswith(f"{row.pointer}/") or row.pointer.startswith(f"{finding.pointer}/")


def _clip(text: str, full: bool) -> str:
    if full or len(text) <= _CLIPPED:
        return visible(text)
    return f"{visible(text[:_CLIPPED])}… (+{len(text) - _CLIPPED} characters)"


def index(items: Iterable[Checked]) -> RenderableType:
    """Several exchanges, a line each, for picking one."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("exchange", "api", "model"):
        table.add_column(column, overflow="fold")
    table.add_column("findings", ratio=1)
    for checked in items:
        exchange = checked.exchange
        names = sorted({(finding.name, STYLES[finding.severity]) for finding in checked.findings})
        found = Text(", ").join(Text(name, style) for name, style in names) if names else _clean(checked)
        found.append(" ✎" if checked.record.fixes else "", "green")
        table.add_row(
            f"[cyan]{escape(visible(checked.record.id))}[/]",
            exchange.api if exchange else "",
            visible(exchange.model) if exchange else "",
            found,
        )
    return table


def _clean(checked: Checked) -> Text:
    """What stands in the place of findings where there are none."""
    if checked.exchange is None:
        return Text("not judged", "yellow" if checked.because else "dim")
    return Text("✓", "green")
