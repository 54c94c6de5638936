"""State across exchanges: the ledger of a conversation, links between exchanges, the ledger of MCP servers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


def prune(index: dict[Any, Any], *path: Hashable) -> None:
    """Delete the value at a path of keys in nested mappings, and each mapping on the path that becomes empty."""
    first, *rest = path
    if rest:
        prune(index[first], *rest)
    if not rest or not index[first]:
        del index[first]


def keep(kept: OrderedDict[Any, Any], key: Hashable, value: object, most: int) -> None:
    """Put a value last, and drop the oldest ones beyond a number."""
    kept[key] = value
    kept.move_to_end(key)
    drop_oldest(kept, most)


def drop_oldest(kept: OrderedDict[Any, Any], most: int) -> bool:
    """Drop the oldest entries beyond a number; return True if there were any."""
    too_many = len(kept) > most
    while len(kept) > most:
        kept.popitem(last=False)
    return too_many
