from __future__ import annotations

import pytest

from wirelint.claims.announcements import announcement
from wirelint.claims.claims import claims
from wirelint.claims.side_effects import Reach, acts_outside, reach
from wirelint.claims.toolkinds import ability
from wirelint.model import Tool
from wirelint.text import prose

TOOL = ability(Tool("do_it", "", ""))

REACHES = {
    "path": ("I've updated src/a.py.", Reach.SURE),
    "outer noun": ("I searched the knowledge base.", Reach.SURE),
    "recipient": ("I've sent it to Dana.", Reach.SURE),
    "command": ("I ran `make`.", Reach.SURE),
    "saved beside a fence": ("I've saved it to a.py:\n\n```\nx\n```", Reach.SURE),
    "shown beside a fence": ("I've updated a.py:\n\n```\nx\n```", Reach.MAYBE),
    "text": ("I've written a function.", Reach.NO),
    "given": ("I read your question.", Reach.NO),
    "given code": ("I checked the code.", Reach.NO),
    "list of files": ("I've listed the files.", Reach.NO),
    "thought": ("I've considered it and changed my answer.", Reach.NO),
}


@pytest.mark.parametrize(("text", "expected"), REACHES.values(), ids=REACHES)
def test_reach(text: str, expected: Reach) -> None:
    read = prose.read(text)
    assert max((reach(claim, read, TOOL) for claim in claims(read)), default=Reach.NO) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Let me read a.py.", True),
        ("Let me search for it.", True),
        ("Let me write the introduction.", False),
        ("Let me share my thoughts.", False),
    ],
)
def test_acts_outside(text: str, expected: bool) -> None:
    read = prose.read(text)
    found = announcement(read)
    assert (found is not None and acts_outside(found, read, TOOL)) is expected
