"""The one console of rich: text that it draws is escaped before it gets its colours, and is never taken for markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from wirelint.text.escaping import printable, unguarded


class Screen(Console):
    """A console on `out`. Tables and tool output are text: `[red]` from the wire is five characters and no colour."""

    def __init__(self, out: TextIO, **options: Any) -> None:
        super().__init__(file=unguarded(out), **{"highlight": False, "markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, "\n"))
