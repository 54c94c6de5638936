from __future__ import annotations

import pytest

from wirelint.claims.announcements import announcement, may_announce, says_nothing
from wirelint.text import prose

ANNOUNCED = {
    "let me": ("Fine. Let me search the wiki.", "search"),
    "will": ("I will now read a.c.", "read"),
    "gerund": ("Reading a.c now...", "reading"),
    "patience": ("One moment, searching the web.", "searching"),
    "german": ("Ich suche jetzt danach.", "suche"),
    "chinese": ("让我搜索一下。", "搜索"),
    "german, apart": ("Ich sehe im Ordner nach.", "sehe nach"),
    "german, inverted": ("Dann rufe ich die Seite auf.", "rufe auf"),
    "french": ("Un instant, je consulte la page.", "consulte"),
    "spanish": ("Voy a revisar el archivo.", "revisar"),
    "portuguese": ("Vou abrir o arquivo.", "abrir"),
    "italian": ("Fammi controllare il file.", "controllare"),
    "chinese, wait": ("我马上查询，请稍候。", "查询"),
    "japanese": ("これから確認します。", "確認"),
    "japanese, courteous": ("お調べします。", "調べ"),
    "patience, please": ("One moment please while I check it.", "check"),
    "japanese, of a program": ("この関数は確認します。", None),
    "japanese, condition": ("届いたら確認します。", None),
    "portuguese, condition": ("Se você quiser, vou abrir o arquivo.", None),
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
    assert found is None or may_announce(text)


def test_a_model_speaks_to_itself() -> None:
    thought = prose.read("We need to call search.")
    assert announcement(thought) is None
    assert announcement(thought, thought=True) is not None
    assert may_announce(thought.text, thought=True)


@pytest.mark.parametrize(
    "text", ["The notes are worth reading in order.", "Es ist gut.", "It was an interesting thing."]
)
def test_plain_talk_is_not_read(text: str) -> None:
    assert not may_announce(text)


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("Sure. One moment please.", True),
        ("好的，请稍等。", True),
        ("Searching, one moment.", False),
        ("It is 4.", False),
    ],
)
def test_says_nothing(text: str, nothing: bool) -> None:
    assert says_nothing(prose.read(text)) is nothing


@pytest.mark.parametrize(("text", "now"), [("Let me read it first:", True), ("I'll read it.", False)])
def test_at_once(text: str, now: bool) -> None:
    found = announcement(prose.read(text))
    assert found is not None
    assert found.at_once is now
