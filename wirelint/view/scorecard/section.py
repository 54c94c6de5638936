"""The scorecard as a part of an HTML page: the picture, and the tables behind it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from wirelint.view.scorecard.picture import picture
from wirelint.view.scorecard.tables import Sheet, in_full, score_tables
from wirelint.view.scores import Card

_MOST = 8
"""Bars of the picture; the tables have all models."""


def title(cards: Sequence[Card]) -> str:
    made = "Scorecard: how replies ended, and what became of calls"
    return made if len(cards) <= _MOST else f"{made} (the {_MOST} most used of {len(cards)}; the table has all)"


def section(cards: Sequence[Card]) -> Markup:
    """HTML without scripts and styles of its own."""
    sheets = [sheet for sheet in score_tables(cards) if not sheet.title.startswith("findings")]  # the page has those
    return Markup("").join([Markup(picture(cards[:_MOST])), *map(_table, sheets)])


def _table(sheet: Sheet) -> Markup:
    head = Markup("").join(
        Markup("<th{}>{}</th>").format(_side(place, sheet), heading)
        for place, heading in enumerate(in_full(sheet.headings))
    )
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup("<td{}>{}</td>").format(_side(place, sheet), _lines(cell)) for place, cell in enumerate(row)
            )
        )
        for row in sheet.rows
    )
    return Markup(
        '<details class="sheet"><summary>{}</summary><div class="wide"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div></details>"
    ).format(sheet.title, head, rows)


def _side(place: int, sheet: Sheet) -> Markup:
    return Markup("") if place < sheet.labels else Markup(' class="number"')


def _lines(cell: str) -> Markup:
    return Markup("<br>").join(escape(line) for line in cell.split("\n"))
