"""The parts of a message as a terminal shows them: text with the evidence marked, thinking folded, calls, results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from wirelint.model import (
    HostedCall,
    HostedResult,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Rpc,
    Side,
    ToolCall,
    ToolResult,
)
from wirelint.model import Text as Words
from wirelint.rule import Finding
from wirelint.view.writer import STYLES, visible

_CLIPPED = 700
_SYSTEM = 200
_BEFORE = 200
"""Characters that are shown before evidence which lies further on in a text than is shown of it."""
_THOUGHT = 60


@dataclass(frozen=True, slots=True)
class View:
    """How much is shown: `full` all messages and all of their text, `thinking` what the model thought.

    `findings` are those that mark a stretch of text, by where it stands.
    """

    full: bool = False
    thinking: bool = False
    findings: Mapping[tuple[Side, str], Sequence[Finding]] = field(default_factory=dict)

    def of(self, side: Side, pointer: str) -> Sequence[Finding]:
        return self.findings.get((side, pointer), ())


def marking(findings: Sequence[Finding]) -> dict[tuple[Side, str], list[Finding]]:
    """The findings that mark a stretch of text, by where it stands."""
    made: dict[tuple[Side, str], list[Finding]] = {}
    for finding in findings:
        if finding.span is not None and finding.pointer is not None:
            made.setdefault((finding.side, finding.pointer), []).append(finding)
    return made


def part_text(part: Part, side: Side, view: View, *, system: bool = False) -> Text:
    """A part for a terminal. `system`: it is an instruction, of which the beginning tells enough."""
    marks = view.of(side, part.pointer)
    match part:
        case Words(text):
            return written(text, marks, view.full, _SYSTEM if system else _CLIPPED)
        case Reasoning(text, _, opaque):
            return _thought(text, opaque, marks, view)
        case Refusal(text):
            return Text.assemble(("refusal: ", "magenta"), written(text, marks, view.full))
        case ToolCall(id_, name, arguments):
            shown = Text.assemble(("→ ", "bold blue"), (visible(name or "(no name)"), "bold blue"), " ")
            return shown.append_text(written(arguments.text, marks, view.full)).append(
                f"  {visible(id_ or '(no id)')}", "dim"
            )
        case Rpc(form, id_, method, value):
            said = "" if value is None else f" {clip(json.dumps(value, ensure_ascii=False), view.full)}"
            return Text.assemble((visible(method or form), "blue"), said, (f"  {visible(id_ or '')}", "dim"))
        case ToolResult(call_id, text, _, _, error):
            head = Text.assemble(("← ", "bold green"), ("error: " if error else "", "red"))
            return head.append_text(written(text, marks, view.full)).append(f"  {visible(call_id or '(no id)')}", "dim")
        case HostedCall(_, name):
            return Text(f"⇢ {visible(name or 'tool')} (run by the provider)", "blue")
        case HostedResult(_, _, kind):
            return Text(f"⇠ {visible(kind or 'result')} (from the provider)", "green")
        case Opaque(kind):
            return Text(f"({visible(kind or 'unknown part')})", "dim")


def written(text: str, marks: Sequence[Finding], full: bool, most: int = _CLIPPED) -> Text:
    """Text with the evidence underlined. Of a long one the beginning is shown, or what is around the first evidence."""
    start, end = 0, len(text)
    if not full and end > most:
        first = min((finding.span[0] for finding in marks if finding.span), default=0)
        start = max(first - _BEFORE, 0) if first > most // 2 else 0
        end = min(start + max(most, _CLIPPED if marks else 0), end)
    shown = Text.assemble((f"(+{start} characters) …" if start else "", "dim"), _flat(text[start:end]))
    base = len(shown.plain) - len(_flat(text[start:end]))
    for finding in marks:
        if finding.span is not None and finding.span[0] < end and finding.span[1] > start:
            low, high = (len(_flat(text[start : max(at, start)])) for at in finding.span)
            shown.stylize(
                f"underline {STYLES[finding.severity]}", base + low, base + min(high, len(shown.plain) - base)
            )
    if end < len(text):
        shown.append(f"… (+{len(text) - end} characters)", "dim")
    elif shown.plain.strip():
        shown.rstrip()
    return shown


def _flat(text: str) -> str:
    """Tabs as blanks: in a cell of a table a terminal's own would lead anywhere."""
    return visible(text).replace("\t", "    ")


def clip(text: str, full: bool) -> str:
    if full or len(text) <= _CLIPPED:
        return visible(text)
    return f"{visible(text[:_CLIPPED])}… (+{len(text) - _CLIPPED} characters)"


def _thought(text: str, opaque: bool, marks: Sequence[Finding], view: View) -> Text:
    """Thinking: its first words, unless it is asked for or something in it was found."""
    if opaque:
        return Text("(encrypted thinking)", "italic dim")
    if view.thinking or view.full or marks:
        shown = written(text, marks, view.thinking or view.full)
        shown.style = "italic dim"
        return shown
    words = len(text.split())
    first = " ".join(text.split())[:_THOUGHT].rstrip()
    more = "…" if len(" ".join(text.split())) > len(first) else ""
    return Text(visible(f"▸ {first}{more}  ({words} word{'' if words == 1 else 's'} of thinking)"), "italic dim")
