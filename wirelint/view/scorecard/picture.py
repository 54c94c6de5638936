"""A scorecard as a picture: a bar for each model, of how its replies ended and what became of its calls (SVG)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from wirelint.text.escaping import printable
from wirelint.view.scorecard.tables import share
from wirelint.view.scores import Card

_WIDTH, _LABEL, _BAR, _ROW, _TOP = 900, 260, 480, 44, 40
_LONGEST = 34


class _Piece(NamedTuple):
    title: str
    style: str
    number: int


def picture(cards: Sequence[Card]) -> str:
    """An SVG element with a `viewBox`. Colours are CSS variables with defaults (`--good`, `--bad`, `--plain`, `--other`,
    `--failed`, `--ink`, `--dim`), so that a page can put its own in their place; there is no script in it."""
    height = _TOP + _ROW * max(len(cards), 1)
    rows = [_row(card, _TOP + _ROW * number) for number, card in enumerate(cards)]
    return (
        f'<svg class="scorecard" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="How replies ended, by model" font-family="system-ui, sans-serif" font-size="13">'
        f"{_legend()}{''.join(rows)}</svg>"
    )


_COLOURS = {
    "good": ("good calls", "#2e9e5b"),
    "bad": ("schema errors", "#d64545"),
    "plain": ("stop", "#8aa0b8"),
    "other": ("other", "#d9a13b"),
    "failed": ("failed", "#6b6b76"),
}


def _fill(style: str) -> str:
    return f"var(--{style}, {_COLOURS[style][1]})"


def _legend() -> str:
    marks = []
    for number, (style, (title, _)) in enumerate(_COLOURS.items()):
        x = _LABEL + number * 124
        marks.append(
            f'<rect x="{x}" y="8" width="12" height="12" rx="2" fill="{_fill(style)}"/>'
            f'<text x="{x + 18}" y="19" fill="var(--dim, #777)">{title}</text>'
        )
    return "".join(marks)


def _row(card: Card, y: int) -> str:
    pieces = [
        _Piece("good calls", "good", card.successful),
        _Piece("schema errors", "bad", card.schema_errors),
        _Piece("stop", "plain", card.finishes["stop"]),
        _Piece("other", "other", card.finishes["other"]),
        _Piece("failed", "failed", card.failed),
    ]
    provider = _short(card.provider)
    made = [
        f'<text x="{_LABEL - 12}" y="{y + 14}" text-anchor="end" fill="var(--ink, #222)">{_short(card.model)}</text>',
        f'<text x="{_LABEL - 12}" y="{y + 30}" text-anchor="end" font-size="11" fill="var(--dim, #777)">{provider}</text>',
    ]
    x = float(_LABEL)
    for piece in pieces:
        if not piece.number or not card.exchanges:
            continue
        width = _BAR * piece.number / card.exchanges
        made.append(
            f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="24" fill="{_fill(piece.style)}">'
            f"<title>{piece.title}: {piece.number} of {card.exchanges}</title></rect>"
        )
        if width >= 30:
            made.append(
                f'<text x="{x + width / 2:.1f}" y="{y + 21}" text-anchor="middle" fill="#fff">{piece.number}</text>'
            )
        x += width
    accuracy = f"{share(card.schema_accuracy)} accuracy" if card.schema_accuracy is not None else "no calls"
    made.append(f'<text x="{_LABEL + _BAR + 12}" y="{y + 21}" fill="var(--ink, #222)">{accuracy}</text>')
    return "".join(made)


def _short(text: str) -> str:
    shown = printable(text)
    return escape(shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…")
