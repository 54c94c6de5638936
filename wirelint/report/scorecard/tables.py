"""Cards and comparisons as tables, on a terminal and in Markdown.

A table is a title, headings and rows of cells that are text already; both ways to show one take it from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wirelint.knowledge.excerpts import printable
from wirelint.scores import Card, Comparison, Spread

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
    console = Console(file=out)
    for number, sheet in enumerate(sheets):
        table = Table(box=None, pad_edge=False, header_style="dim")
        for place, heading in enumerate(sheet.headings):
            label = place < sheet.labels
            table.add_column(heading, justify="left" if label else "right", no_wrap=not label, overflow="fold")
        for row in sheet.rows:
            table.add_row(*(Text(cell) for cell in row))
        if number:
            console.print()
        console.print(Text(sheet.title, "bold"), table)


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
