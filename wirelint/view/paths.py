"""The path of a call for a person: what each layer did, when, and where it ended; and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.model import Json
from wirelint.rule import Finding
from wirelint.text.excerpts import excerpt
from wirelint.view.call_paths import Path, Step
from wirelint.view.writer import MARKS, STYLES, flat, place, visible

_MARKS = {"ok": "✓", "changed": "✎", "failed": "▲", "unseen": "·", "missing": "✗"}
_STYLES = {"ok": "green", "changed": "yellow", "failed": "red", "unseen": "dim", "missing": "bold red"}


def path(traced: Path) -> RenderableType:
    """A path for a terminal of 80 columns or more: its layers in a line, then what each of them did."""
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=9, justify="right", no_wrap=True, style="dim")
    grid.add_column(width=1, no_wrap=True)
    grid.add_column(width=7, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for step in traced.steps:
        style = _STYLES[step.state]
        grid.add_row(_time(step.at), Text(_MARKS[step.state], style), Text(step.layer, style), _told(step))
        for finding in step.findings:
            grid.add_row("", "", Text(finding.code, f"bold {STYLES[finding.severity]}"), _finding(finding))
    head = Text.assemble(
        (visible(traced.name or "(no name)"), "bold blue"), (f"  {visible(traced.id or '(no id)')}", "cyan")
    )
    head.append(f"  exchange {visible(traced.exchange)}", "dim")
    head.append(f", conversation {traced.conversation}" if traced.conversation else "", "dim")
    return Group(head, trail(traced), Text(""), grid, Text(""))


def trail(traced: Path) -> Text:
    """The layers that a call passed, and where its path ends."""
    line = Text(overflow="fold")
    for number, step in enumerate(traced.steps):
        line.append(" → " if number else "", "dim")
        line.append(f"{step.layer} {_MARKS[step.state]}", _STYLES[step.state])
    if traced.end:
        line.append(f"  ends here: {visible(traced.end)}", "bold red")
    return line


def trails(traced: Iterable[Path]) -> RenderableType:
    """Several paths, two lines each, for picking one."""
    lines: list[RenderableType] = []
    for one in traced:
        head = Text.assemble((visible(one.name or "(no name)"), "bold blue"), overflow="fold")
        head.append(f" {visible(excerpt(one.arguments, 40))}")
        head.append(f"  {visible(one.id or '(no id)')}", "cyan").append(f"  exchange {visible(one.exchange)}", "dim")
        lines += [head, Text("  ").append_text(trail(one))]
    return Group(*lines)


def as_json(traced: Path, items: Sequence[Checked]) -> dict[str, Json]:
    """A path as plain JSON. `items` are the exchanges that its findings stand on."""
    by_id = {checked.record.id: checked for checked in items if checked.record.source == traced.source}
    return {
        "id": traced.id,
        "name": traced.name,
        "arguments": traced.arguments,
        "source": traced.source,
        "exchange": traced.exchange,
        "conversation": traced.conversation,
        "complete": not traced.end,
        "end": traced.end or None,
        "steps": [_step(step, by_id.get(step.exchange or "")) for step in traced.steps],
    }


def _step(step: Step, checked: Checked | None) -> dict[str, Json]:
    return {
        "layer": step.layer,
        "state": step.state,
        "what": step.what,
        "said": step.said or None,
        "at_ms": step.at,
        "took_ms": step.took,
        "exchange": step.exchange,
        "side": step.side,
        "pointer": step.pointer,
        "event": step.event,
        "changes": [{"what": what, "before": before, "after": after} for what, before, after in step.changes],
        "findings": [flat(checked, finding) for finding in step.findings] if checked is not None else [],
    }


def _told(step: Step) -> Text:
    told = Text(visible(step.what), overflow="fold")
    where = [step.exchange or ""]
    if step.event is not None:
        where.append(f"event {step.event}")
    if step.exchange:
        told.append(f"  [{visible(', '.join(where))}]", "dim")
    if step.took is not None:
        told.append(f"  took {_duration(step.took)}", "dim")
    if step.said:
        told.append(f"\n{visible(step.said)}", "italic")
    for line in _changes(step):
        told.append("\n").append_text(line)
    return told


def _changes(step: Step) -> Iterator[Text]:
    for what, before, after in step.changes:
        line = Text(f"{what} ", "yellow")
        line.append(visible(excerpt(before)) or "(none)", "red").append(" → ", "dim")
        yield line.append(visible(excerpt(after)) or "(none)", "green")


def _finding(finding: Finding) -> Text:
    style = STYLES[finding.severity]
    told = Text.assemble(
        (f"{MARKS[finding.severity]} {finding.name}", f"bold {style}"), (f" ({finding.layer}) ", style)
    )
    return told.append(finding.message, style).append(f"  [{place(finding)}]", "dim")


def _time(at: float | None) -> str:
    return "" if at is None else f"{at / 1000:+.3f} s" if abs(at) < 100_000 else f"{at / 1000:+.0f} s"


def _duration(took: float) -> str:
    return f"{took:.0f} ms" if took < 1000 else f"{took / 1000:.2f} s"
