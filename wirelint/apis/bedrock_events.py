"""The events of Bedrock's Converse by name, in all the forms in which they are sent and written down."""

from __future__ import annotations

from collections.abc import Mapping

from wirelint.apis.reading import mapping
from wirelint.model import Json

EVENTS = frozenset({
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
})  # fmt: skip
_MARKS = (
    ("stopReason", "messageStop"),
    ("delta", "contentBlockDelta"),
    ("start", "contentBlockStart"),
    ("contentBlockIndex", "contentBlockStop"),
    ("usage", "metadata"),
    ("role", "messageStart"),
)
"""What an event without a name is told by."""


def named(document: Mapping[str, Json], name: str | None) -> tuple[str, dict[str, Json]]:
    """The name of an event and what it says, whether the name stands beside it, around it, or nowhere."""
    inner = next((key for key in document if key in EVENTS and isinstance(document[key], dict)), None)
    if inner is not None:
        return inner, mapping(document[inner])
    if name in EVENTS:
        return str(name), dict(document)
    return next((event for mark, event in _MARKS if mark in document), ""), dict(document)
