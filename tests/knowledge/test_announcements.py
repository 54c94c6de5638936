from __future__ import annotations

import pytest

from wirelint.knowledge import prose
from wirelint.knowledge.announcements import announcement

ANNOUNCED = {
    "let me": ("Fine. Let me search the wiki.", "search"),
    "will": ("I will now read a.c.", "read"),
    "gerund": ("Reading a.c now...", "reading"),
    "patience": ("One moment, searching the web.", "searching"),
    "german": ("Ich suche jetzt danach.", "suche"),
    "chinese": ("让我搜索一下。", "搜索"),
    "answer follows": ("Let me search the wiki. It says 4.", None),
    "question follows": ("I'll search. For what?", None),
    "condition": ("I'll search if you like.", None),
    "subject, not announcement": ("Reading books is fun.", None),
    "list item": ("- I'll read a.c", None),
    "block follows": ("I'll write it:\n\n```\nx\n```", None),
}


@pytest.mark.parametrize(("text", "verb"), ANNOUNCED.values(), ids=ANNOUNCED)
def test_announcement(text: str, verb: str | None) -> None:
    found = announcement(prose.read(text))
    assert (found.verb if found else None) == verb
