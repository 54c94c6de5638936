"""What an exchange goes on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Link:
    """What an exchange goes on from: the id of an earlier one, and how.

    `turn`: the history is that exchange and its answer. `fork`: so is that of another exchange, which came first.
    `compaction`: the history was replaced by the summary that exchange gave.
    """

    exchange: str
    how: Literal["turn", "fork", "compaction"] = "turn"
