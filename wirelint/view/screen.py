"""The terminal: the only rich console, which escapes wire text; lines with a hanging indent; columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.containers import Lines
from rich.segment import Segment
from rich.text import Text

from wirelint.text.escaping import printable, unguarded

_NARROWEST = 20
_PADDING = re.compile(" +(?=\n)")
_MEASURE = Console(width=80, color_system=None)
"""`Text.wrap` needs a console, but uses nothing of it that differs between consoles."""


class _Unpadded:
    """A file or pipe for text without blanks at the ends of lines, with which rich fills columns."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        return self._out.write(_PADDING.sub("", text))


class Screen(Console):
    """A console on `out`. `[red]` in wire text is shown as five characters, not as a colour."""

    def __init__(self, out: TextIO, **options: Any) -> None:
        file = unguarded(out)
        if not (file.isatty() or options.get("force_terminal")):
            file = cast("TextIO", _Unpadded(file))
        super().__init__(file=file, **{"highlight": False, "markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, "\n"))

    def print_lines(self, lines: Iterable[Text]) -> None:
        """Print lines that already fit the width."""
        for line in lines:
            self.print(line, soft_wrap=True)


def wrapped(text: Text, width: int) -> Lines:
    """Return the lines of a text, broken at blanks; longer words are cut."""
    return text.wrap(_MEASURE, width, overflow="fold")


def hung(text: Text, width: int, indent: int, hang: int = 0) -> Iterator[Text]:
    """Wrap a text that begins in column `indent`; lines after the first begin `hang` columns further in."""
    room = max(width - indent, _NARROWEST)
    lines = wrapped(text, room)
    if hang and len(lines) > 1:
        rest = text[len(lines[0]) :]
        rest = rest[len(rest.plain) - len(rest.plain.lstrip(" ")) :]
        lines = Lines([lines[0], *wrapped(rest, max(room - hang, _NARROWEST))])
    for number, line in enumerate(lines):
        line.rstrip()
        yield Text(" " * (indent + (hang if number else 0))).append_text(line)


def in_columns(rows: Iterable[Sequence[Text | str]], numbers: Collection[int] = ()) -> Iterator[Text]:
    """Yield each row as a line, its cells in columns two blanks apart; those of `numbers` are aligned to the right."""
    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        line = Text()
        for number, (cell, size) in enumerate(zip(row, widths, strict=True)):
            gap = " " * (size - cell.cell_len)
            parts = (gap, cell) if number in numbers else (cell, gap)
            line.append("  " if number else "").append_text(Text.assemble(*parts))
        line.rstrip()
        yield line
