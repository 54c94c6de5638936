"""Evidence as compilers show it: the stretch of source around it on one line, carets beneath.

text │ …k that up.↵↵<function_calls>↵<invoke name="search_notes">↵<parameter na…
     │              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   9 │ …"delta":{"type":"text_delta","text":"<function_calls>"}}
     │                                       ^^^^^^^^^^^^^^^^
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wirelint.view.evidence import Evidence
from wirelint.view.writer import visible

_GUTTER = 4
_CONTROLS = str.maketrans({"\n": "↵", "\r": "␍", "\t": "⇥"})
_LEAST = 24
"""Columns of source that are shown however narrow the terminal is."""
_CONTEXT = 2000
"""Characters before and after the evidence that are looked at; no terminal is wider."""


class Window(NamedTuple):
    """One line of source, in cells that a terminal shows: `start` and `size` of the carets, 0 when there are none."""

    text: str
    start: int
    size: int


def excerpt_lines(found: Sequence[Evidence], width: int, style: str) -> Iterator[Text]:
    """The lines of a finding's evidence in `width` columns, empty ones of the gutter around them."""
    if not found:
        return
    labels = [_label(evidence) for evidence in found]
    gutter = max(_GUTTER, *map(len, labels))
    room = max(width - gutter - 3, _LEAST)
    yield _bar("", gutter)
    for label, evidence in zip(labels, found, strict=True):
        window = windowed(evidence, room)
        yield _bar(label, gutter).append(f" {window.text}")
        if window.size:
            yield _bar("", gutter).append(" " * (window.start + 1)).append("^" * window.size, f"bold {style}")


def windowed(evidence: Evidence, room: int) -> Window:
    """The part of a text that `room` columns can show: the beginning of the evidence, and as much around it as fits."""
    text, start, end = evidence.text, evidence.start, evidence.end
    before = _shown(text[max(start - _CONTEXT, 0) : start])
    marked = _shown(text[start : min(end, start + _CONTEXT)])
    after = _shown(text[end : end + _CONTEXT]) if end - start < _CONTEXT else ""
    cut_after = end + _CONTEXT < len(text)
    size = min(cell_len(marked), room - min(cell_len(before), room // 5))
    fits = size == cell_len(marked)
    right = min(cell_len(after), max((room - size) // 2, room - size - cell_len(before))) if fits else 0
    left = _last(before, room - size - right, cut=start > _CONTEXT)
    place = cell_len(left)
    line = left + _first(marked, room - place)
    line += _first(after, room - place - size, cut=cut_after) if fits else ""
    return Window(line, place, min(cell_len(marked), room - place))


def _shown(text: str) -> str:
    return visible(text.translate(_CONTROLS))


def _first(text: str, room: int, *, cut: bool = False) -> str:
    """As much of the beginning of a text as fits; dots stand for what does not."""
    if room <= 0:
        return ""
    if cell_len(text) <= room and not cut:
        return text
    return set_cell_size(text, room - 1).rstrip() + "…" if cell_len(text) > room - 1 else f"{text}…"


def _last(text: str, room: int, *, cut: bool) -> str:
    """As much of the end of a text as fits."""
    if room <= 0:
        return ""
    if cell_len(text) <= room and not cut:
        return text
    kept = text[-(room - 1) :] if room > 1 else ""
    while cell_len(kept) > room - 1:
        kept = kept[1:]
    return f"…{kept}"


def _label(evidence: Evidence) -> str:
    if evidence.joined:
        return "text"
    return "" if evidence.event is None else str(evidence.event)


def _bar(label: str, gutter: int) -> Text:
    return Text.assemble((f"{label:>{gutter}} │", "dim"))
