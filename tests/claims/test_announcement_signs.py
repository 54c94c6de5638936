"""What a pattern finds has the signs without which the pattern is not asked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.claims import announcements
from wirelint.claims.actions import AHEAD, GERUND, SOON

ENGLISH = (
    "Let me ", "let me ", "Let's ", "let’s ", "I'll ", "I’ll ", "I will ", "I'm going to ", "I am going to ", "I need to ",
    "I should ", "I have to ", "I’m about to ", "allow me to ", "while I ", "I'm ", "I am now ", "Now ", "next up: ",
    "Next, ", "starting by ", "while I’m ", "Sure! ", "OK, now ", "hold on - ", "", "- ", "calling ", "Executing ",
)  # fmt: skip
FOREIGN = (
    ("Ich ", "ich werde ", "Ich muss das ", "Jetzt ", "nun ", "Dann ", "zuerst ", "Zunächst ", "Als Nächstes ",
     "Lassen Sie mich das ", "lass mich ", "dazu werde ich es "),
    ("Je vais ", "je vais vite ", "Laissez-moi ", "laisse-moi ", "Je dois ", "je ", "Je suis en train de ",
     "je suis en train d’"),
    ("Voy a ", "voy a ahora ", "Déjame ", "déjeme ", "Permítame ", "permitame ", "Vamos a ", "Debo ", "procedo a ",
     "Estoy ", "Ahora ", "enseguida lo ", "Ya te ", "un momento, ", "Primero mismo "),
    ("Vou ", "vou agora ", "Deixe-me ", "deixa-me ", "deixe eu ", "Preciso ", "Estou a ", "irei ", "Agora vou ", "já ",
     "Um momento, ", "primeiro "),
    ("Vado a ", "vado subito a ", "Fammi ", "lasciami ", "Mi lasci ", "devo ora ", "Sto ", "Procedo a ", "Ora ", "adesso ",
     "Subito ", "un attimo, ", "Prima "),
    ("让我", "我们来", "接下来", "正在", "现在就", "稍等，我", "首先"),
    ("ただいま", "これから", "今すぐ", "まず", "早速", "次に", ""),
)  # fmt: skip
BEHIND = (
    *("", ".", " now.", "...", ": it", " the file"),
    *(" subito", " ora", " adesso", " ich", "します", "いたします", "しますね"),
)


@pytest.mark.parametrize("number", range(len(SOON)))
def test_what_is_found_has_a_sign(number: int) -> None:
    pattern, found = announcements._SOON_FOREIGN[number], 0
    signs = announcements._SOON_SIGNS[number] if number < len(announcements._SOON_SIGNS) else None
    for verb in SOON[number]:
        for before in (*FOREIGN[number], *ENGLISH):
            for behind in BEHIND:
                line = f"{before}{verb}{behind}"
                if pattern.search(line):
                    found += 1
                    assert signs.stand_in(line) if signs is not None else not line.isascii(), line
    assert found > len(SOON[number])


@pytest.mark.parametrize("place", range(len(ENGLISH)))
def test_what_is_found_in_english_has_a_sign(place: int) -> None:
    before, found = ENGLISH[place], 0
    for verb in (*AHEAD, *GERUND, *(gerund.upper() for gerund in GERUND), "it"):
        for behind in BEHIND:
            line = f"{before}{verb}{behind}"
            if any(pattern.search(line) for pattern in announcements._OPENED):
                found += 1
                assert announcements._OPENERS.stand_in(line), line
            if any(pattern.search(line) for pattern in (*announcements._GOING, announcements._ALONE_ING)):
                found += 1
                assert announcements._may_be_going(line), line
    assert found


_PIECES = st.sampled_from([
    *(piece for some in (ENGLISH, *FOREIGN) for piece in some),
    *(next(iter(table)) for table in (AHEAD, GERUND, *SOON)),
    *announcements._SEPARABLE,
    *BEHIND,
    " ", "ıng ", "İ", "the", "sehe ", "ich ", " nach",
])  # fmt: skip


@given(st.lists(_PIECES, max_size=8).map("".join))
def test_nothing_is_missed(line: str) -> None:
    patterns: list[tuple[re.Pattern[str], bool]] = [
        *((pattern, announcements._OPENERS.stand_in(line)) for pattern in announcements._OPENED),
        *(
            (pattern, announcements._may_be_going(line))
            for pattern in (*announcements._GOING, announcements._ALONE_ING)
        ),
        (announcements._GERMAN_APART, "ch " in line or " ich" in line),
    ]
    for number, pattern in enumerate(announcements._SOON_FOREIGN):
        signs = announcements._SOON_SIGNS[number] if number < len(announcements._SOON_SIGNS) else None
        patterns.append((pattern, signs.stand_in(line) if signs is not None else not line.isascii()))
    for pattern, asked in patterns:
        assert asked or not pattern.search(line), pattern.pattern[:60]
