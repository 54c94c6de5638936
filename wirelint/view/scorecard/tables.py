"""Cards and comparisons as tables, on a terminal and in Markdown.

A table is a title, headings and rows of cells that are text already; both ways to show one take it from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from wirelint.text.escaping import printable
from wirelint.view.scores import Card, Comparison, Spread
from wirelint.view.screen import Screen

NOTHING = "-"
_LAYERS = ("model", "gateway", "client", "tool", "wirelint")


@dataclass(frozen=True, slots=True)
class Sheet:
    """`labels`: how many of the first columns are names; numbers follow, which stand to the right."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1


def score_tables(cards: Sequence[Card]) -> list[Sheet]:
    """What `wirelint stats` shows: how replies ended, how fast they came, what was found."""
    sheets = [
        Sheet(
            "tool calls",
            ("model", "replies", "failed", "stop", "calls", "other", "good", "errors", "accuracy"),
            tuple(
                (
                    _name(card),
                    *map(str, (card.replies, card.failed)),
                    *(str(card.finishes[finish]) for finish in ("stop", "tool_calls", "other")),
                    *map(str, (card.successful, card.schema_errors)),
                    share(card.schema_accuracy),
                )
                for card in cards
            ),
        )
    ]
    timed = [card for card in cards if card.duration or card.first_token]
    if timed:
        sheets.append(_times(timed))
    if any(card.findings for card in cards):
        sheets.append(_findings(cards))
    return sheets


def comparison_tables(comparisons: Sequence[Comparison]) -> list[Sheet]:
    """What `wirelint compare` shows: triggering against the reference, and both sides' calls on the same requests."""
    trigger = Sheet(
        "triggering, against the reference",
        ("model", "pairs", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "alike"),
        tuple(
            (
                _name(made.card),
                str(made.pairs),
                str(made.trigger.true_positives),
                str(made.trigger.false_positives),
                str(made.trigger.false_negatives),
                str(made.trigger.true_negatives),
                share(made.trigger.precision),
                share(made.trigger.recall),
                share(made.trigger.f1),
                share(made.similarity),
            )
            for made in comparisons
        ),
    )
    cards = [card for made in comparisons for card in (made.card, made.reference)]
    return [trigger, *score_tables(cards)]


def write_tables(sheets: Sequence[Sheet], out: TextIO) -> None:
    console = Screen(out)
    for number, sheet in enumerate(sheets):
        if number:
            console.print()
        console.print(Text(sheet.title, "bold"))
        console.print(_table(sheet) if _width(sheet) <= console.width else _stacked(sheet))


def _table(sheet: Sheet) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, heading in enumerate(sheet.headings):
        label = place < sheet.labels
        table.add_column(heading, justify="left" if label else "right", no_wrap=not label, overflow="fold")
    for row in sheet.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _stacked(sheet: Sheet) -> Group:
    """A table for a narrow terminal: the names of a row stand on a line of their own above its numbers."""
    labels = sheet.labels
    numbers = Sheet(sheet.title, sheet.headings[labels:], tuple(row[labels:] for row in sheet.rows), 0)
    widths = _widths(numbers)
    heads = [heading.split("\n") for heading in numbers.headings]
    lines = [Text("  ".join(heading.split("\n")[0] for heading in sheet.headings[:labels]), "dim", overflow="fold")]
    for line in range(max(map(len, heads), default=0)):
        lines += [_cells([head[line] if line < len(head) else "" for head in heads], widths, "dim")]
    for row, cells in zip(sheet.rows, numbers.rows, strict=True):
        lines.append(Text("  ".join(name.replace("\n", "  ") for name in row[:labels]), "bold", overflow="fold"))
        lines.append(_cells(cells, widths))
    return Group(*lines)


def _cells(cells: Sequence[str], widths: Sequence[int], style: str = "") -> Text:
    return Text("  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip(), style)


def _widths(sheet: Sheet) -> list[int]:
    """The width of each column: of the longest line in it."""
    columns = zip(sheet.headings, *sheet.rows, strict=True)
    return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]


def _width(sheet: Sheet) -> int:
    """The width at which no cell is broken."""
    widths = _widths(sheet)
    return sum(widths) + 2 * (len(widths) - 1)


def write_markdown(sheets: Sequence[Sheet], out: TextIO) -> None:
    for number, sheet in enumerate(sheets):
        if number:
            out.write("\n")
        out.write(f"### {sheet.title}\n\n")
        out.write(_line(in_full(sheet.headings)))
        out.write(_line([":--" if place < sheet.labels else "--:" for place in range(len(sheet.headings))]))
        for row in sheet.rows:
            out.write(_line([_escaped(cell) for cell in row]))


def share(value: float | None) -> str:
    """A share as a percentage."""
    return NOTHING if value is None else f"{value * 100:.1f} %"


def _times(cards: Sequence[Card]) -> Sheet:
    headings = ("model", "TTFT\np50", "\np95", "gap\np50", "\nmax", "total\np50", "\np95", "tokens/s\np50")
    rows = tuple(
        (
            _name(card),
            *(_seconds(card.first_token, rank) for rank in (0.5, 0.95)),
            *(_seconds(card.longest_gap, rank) for rank in (0.5, 1.0)),
            *(_seconds(card.duration, rank) for rank in (0.5, 0.95)),
            NOTHING if (speed := card.speed.at(0.5)) is None else f"{speed:.0f}",
        )
        for card in cards
    )
    return Sheet("times: to the first token, the longest silence of a stream, in all", headings, rows)


def _findings(cards: Sequence[Card]) -> Sheet:
    counts: Counter[tuple[str, str]] = Counter()
    for card in cards:
        counts.update(card.findings)
    layers = [layer for layer in _LAYERS if any(key[1] == layer for key in counts)]
    names: Counter[str] = Counter()
    for (name, _), count in counts.items():
        names[name] += count
    rows = tuple(
        (name, *(str(counts[name, layer] or NOTHING) for layer in layers), str(count))
        for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0]))
    )
    return Sheet("findings, by the layer they point at", ("rule", *layers, "all"), rows)


def _name(card: Card) -> str:
    """The model, and below it who served it."""
    name = printable(card.model) or "unknown"
    return f"{name}\n{printable(card.provider)}" if card.model else printable(card.provider)


def _seconds(spread: Spread, rank: float) -> str:
    value = spread.at(rank)
    if value is None:
        return NOTHING
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def in_full(headings: Sequence[str]) -> list[str]:
    """Headings of two lines in one: the first line of a group stands over those that have none of their own."""
    made: list[str] = []
    group = ""
    for heading in headings:
        first, gap, second = heading.partition("\n")
        group = first or group
        made.append(f"{group} {second}" if gap else heading)
    return made


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _escaped(cell: str) -> str:
    """Text of the wire in a cell of Markdown, where HTML would be obeyed too."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("`", "&#96;")):
        cell = cell.replace(character, entity)
    return cell.replace("\n", "<br>")
