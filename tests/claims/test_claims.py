from __future__ import annotations

import pytest

from wirelint.claims.claims import bare_done, claims, letter_start, may_claim
from wirelint.text import prose

CLAIMED = {
    "perfect": ("I've just updated x.py.", [("updated", "said")]),
    "past": ("I searched the wiki.", [("searched", "said")]),
    "chain": ("I opened a.c, fixed it and ran the tests.", [("opened", "said"), ("fixed", "said"), ("ran", "said")]),
    "split verb": ("I looked it up.", [("looked up", "said")]),
    "after": ("After checking the log, I can say it is fine.", [("checking", "after")]),
    "attempt": ("I tried to open the door.", [("open", "said")]),
    "outcome": ("The search returned nothing.", [("search", "outcome")]),
    "relative": ("The query I just ran gave 3.", [("ran", "said")]),
    "passive": ("The mail has been sent.", [("sent", "passive")]),
    "terse": ("Deleted.", [("deleted", "terse")]),
    "tests": ("All 9 tests passed.", [("tests", "passive")]),
    "german": ("Ich habe die Datei gelöscht.", [("gelöscht", "said")]),
    "french": ("J'ai supprimé le fichier.", [("supprimé", "said")]),
    "spanish": ("He borrado el archivo.", [("borrado", "said")]),
    "chinese": ("我已经删除了文件。", [("删除", "said")]),
    "portuguese": ("Já enviei o e-mail.", [("enviei", "said")]),
    "italian": ("Ho cancellato il file.", [("cancellato", "said")]),
    "japanese": ("ファイルを削除しました。", [("削除", "said")]),
    "spanish preterite": ("Borré el archivo.", [("borré", "said")]),
    "perfect run": ("I've read it and run the tests.", [("read", "said"), ("run", "said")]),
    "would": ("I'd run it.", []),
    "had": ("I'd already run it.", [("run", "said")]),
    "another time": ("Last year I sent the mail. I deleted it.", []),
    "after another time": ("Last year I sent it.\n\nI deleted it now.", [("deleted", "said")]),
    "japanese condition": ("もし削除しましたら教えます。", []),
    "negated": ("I have not sent it.", []),
    "contracted": ("I didn't send it.", []),
    "conditional": ("If I had sent it, you would know.", []),
    "modal": ("I could have sent it.", []),
    "question": ("Have I sent it?", []),
    "quoted": ('"I sent it."', []),
    "code": ("`I sent it.`", []),
    "third person": ("She sent it.", []),
    "by others": ("The file has been deleted by the installer.", []),
    "heading": ("Updated version:", []),
    "idiom": ("I ran into trouble.", []),
    "german condition": ("Wenn ich die Datei gelöscht habe, melde ich mich.", []),
    "chinese condition": ("如果我已经删除了文件。", []),
    "inside a letter": ("Here:\n\nSubject: Hi\n\nI sent the file.", []),
}


@pytest.mark.parametrize(("text", "expected"), CLAIMED.values(), ids=CLAIMED)
def test_claims(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(claim.verb, claim.form) for claim in claims(prose.read(text))] == expected


def test_a_salutation_on_the_first_line_is_the_replys_own() -> None:
    assert letter_start("Hi Ann,\nI've sent it.") == len("Hi Ann,\nI've sent it.")
    assert letter_start("Ok:\n\nDear Ann,\nx") == 5


@pytest.mark.parametrize(
    ("text", "done"), [("Done.", True), ("✅ All set!", True), ("Done! What else?", False), ("Not done.", False)]
)
def test_says_done(text: str, done: bool) -> None:
    assert (bare_done(prose.read(text)) is not None) == done


@pytest.mark.parametrize(
    "unit", ["I have ", "I've just now already ", "and then, ", "the search ", "` ", '"', "我已经", "Ich habe "]
)
def test_long_texts_are_read_to_their_end(unit: str) -> None:
    text = unit * 4000 + "\n\nI sent the mail."
    assert [claim.verb for claim in claims(prose.read(text))][-1:] == ["sent"]


FORMS = ("said", "after", "outcome")


@pytest.mark.parametrize(
    "text", [text for text, expected in CLAIMED.values() if any(form in FORMS for _, form in expected)]
)
@pytest.mark.parametrize("filler", ["", "It rains in May. ", "Fine\n"])
def test_what_may_claim_is_read(text: str, filler: str) -> None:
    assert may_claim(filler + text)


@pytest.mark.parametrize(
    "text", ["The API was moved first.", "I would suggest reading it.", "We are here, and WIFI works.", "Es ist gut."]
)
def test_plain_talk_is_not_read(text: str) -> None:
    assert not may_claim(text)
