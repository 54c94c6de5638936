r"""An answer that talks on as the user, the tokens between the turns lost: `\n\nHuman: …`, a line that says `user`.

Plays, interviews and tables name speakers too. So only what no author writes counts: a text that ends with the label of
the next speaker, or a speaker's whole turn after an answer in which nobody was named, with the assistant's turn after it or
a question at its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.text.prose import Cues
from wirelint.text.quoting import is_mention

_LABEL = re.compile(r"\n\n(?:###[ ])?(?P<label>Human|USER|H|Instruction):(?=\s|\Z)")
_LINE = re.compile(r"(?<=[.!?…)\]\"'”*`|])[ \t]*\n+(?P<label>user)[ \t]*\n+(?=\S+[ \t]+\S+[ \t]+\S)")
_ANSWERS = {
    "Human": re.compile(r"\n\n(?:###[ ])?Assistant:"),
    "H": re.compile(r"\n\nA:"),
    "USER": re.compile(r"\n+ASSISTANT:"),
    "Instruction": re.compile(r"\n\n### (?:Response|Answer):"),
    "user": re.compile(r"\n(?:assistant|model)[ \t]*\n"),
}
# `Robot: Hello.`, `**Anna:** Hello.`, `- Human: slow`: somebody, or something, was named before.
_NAMED = re.compile(r"^[ \t]*(?:[-*•>#]+[ \t]*)?\**[A-Z][\w.’' -]{0,30}\**:", re.MULTILINE)
_MARKS = Cues("\n\nHuman:", "\n\nUSER:", "\n\nH:", "\n\n### ", "\nuser")
_SENTENCE_END = (".", "!", "?", "…", "。", "？", "！")
_LONGEST_TURN = 2000


@dataclass(frozen=True, slots=True)
class Runaway:
    """Where the next speaker begins, from the label to the end of the text."""

    label: str
    start: int


def find(text: str) -> Runaway | None:
    """The place at which a text goes on as the user; None when it does not, or may be meant to."""
    if not _MARKS.stand_in(text):
        return None
    for pattern in (_LABEL, _LINE):
        match = pattern.search(text)
        if match is None or not text[: match.start()].strip() or _NAMED.search(text[: match.start()]):
            continue
        label, start = match["label"], match.start("label")
        if is_mention(text, start, match.end()) or not _is_turn(text[match.end() :], label):
            continue
        return Runaway(label, start)
    return None


def _is_turn(rest: str, label: str) -> bool:
    """Return True if what follows a label is what a user says."""
    if not rest.strip():
        return label in ("Human", "USER")
    if len(rest.split(maxsplit=3)) < 3:
        return False
    answer = _ANSWERS[label].search(rest, 0, _LONGEST_TURN)
    if answer is not None:
        return rest[: answer.start()].rstrip().endswith(_SENTENCE_END)
    return len(rest) <= _LONGEST_TURN and rest.rstrip().endswith("?") and label != "H"
