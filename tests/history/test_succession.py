"""Announcements of a streamed call: the same call, a stray id, another call."""

from __future__ import annotations

import pytest

from wirelint.history.pairing import Succession, announced
from wirelint.model import Arguments, Piece, ToolCall

WHOLE, HALF = '{"door":1}', '{"door"'


def call(text: str, *later: tuple[str | None, str | None, int], start: bool = False) -> ToolCall:
    pieces = (Piece(0, 0, "a", "paint", 0), *(Piece(n, 0, *rest) for n, rest in enumerate(later, 1)))
    given = Arguments(WHOLE) if start else None
    return ToolCall("a", "paint", Arguments(text), "/x", start_input=given, deltas=text, pieces=pieces)


CASES: dict[str, tuple[ToolCall, list[str]]] = {
    "nothing later": (call(WHOLE), []),
    "repeated": (call(WHOLE, ("a", "paint", 3)), ["same"]),
    "nothing said": (call(WHOLE, (None, None, 3), ("", "", 9)), ["same", "same"]),
    "another id in the middle": (call(WHOLE, ("b", None, 7)), ["stray"]),
    "another id and the same name in the middle": (call(WHOLE, ("b", "paint", 7)), ["stray"]),
    "another name in the middle": (call(WHOLE, (None, "sand", 7)), ["same"]),
    "both in the middle": (call(HALF, ("b", "sand", 7)), ["anew"]),
    "another id after the arguments, and text": (call(WHOLE * 2, ("b", None, len(WHOLE))), ["stray"]),
    "another id, the same name and text": (call(WHOLE * 2, ("b", "paint", len(WHOLE))), ["anew"]),
    "another id after the arguments, and no text": (call(WHOLE, ("b", None, len(WHOLE))), ["same"]),
    "another id after the arguments, and a blank": (call(WHOLE + " \n", ("b", None, len(WHOLE))), ["same"]),
    "another id with the same name after the arguments": (call(WHOLE, ("b", "paint", len(WHOLE))), ["anew"]),
    "another name after the arguments": (call(WHOLE + "{}", (None, "sand", len(WHOLE))), ["anew"]),
    "an id for every event": (
        call(WHOLE, ("b", None, 2), ("c", None, 7), ("d", None, len(WHOLE))),
        ["stray", "stray", "stray"],
    ),
    "an id and the name with every event": (
        call(WHOLE, ("b", "paint", 2), ("c", "paint", len(WHOLE))),
        ["stray", "stray"],
    ),
    "an id for every event, and another call": (
        call(WHOLE * 2, ("b", None, 2), ("c", "paint", len(WHOLE)), ("d", None, len(WHOLE) + 3)),
        ["stray", "anew", "stray"],
    ),
    "the second call's own id repeated": (
        call(WHOLE * 2, ("b", "paint", len(WHOLE)), ("b", None, len(WHOLE) + 4)),
        ["anew", "same"],
    ),
    "a blank between": (call(f"{WHOLE} {WHOLE}", ("b", "paint", len(WHOLE) + 1)), ["anew"]),
    "nothing yet": (call(WHOLE, ("b", "paint", 0)), ["stray"]),
    "the rest of a name": (call("{}", (None, "ing", 0)), ["same"]),
    "three calls": (call(WHOLE * 3, ("b", "paint", len(WHOLE)), ("c", "paint", 2 * len(WHOLE))), ["anew", "anew"]),
    "an empty object before": (call("{}" + WHOLE * 2, ("b", "paint", 2 + len(WHOLE))), ["anew"]),
    "a number is no call's arguments": (call("12", ("b", None, 2)), ["stray"]),
    "the input of the start is all": (call("{}", ("b", "paint", 0), start=True), ["anew"]),
    "the first id comes late": (
        ToolCall("a", "x", Arguments(""), "/x", pieces=(Piece(0, 0, "", "x", 0), Piece(1, 0, "a", None, 0))),
        ["same"],
    ),
    "a whole body has none": (ToolCall("a", "x", Arguments("{}"), "/x"), []),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_announced(given: ToolCall, expected: list[str]) -> None:
    assert [found.verdict for found in announced(given, "openai.chat")] == expected


@pytest.mark.parametrize(
    ("text", "id_", "name", "expected"),
    [
        (HALF, "b", None, False),
        (WHOLE, "b", None, True),
        (WHOLE, "b", "paint", False),
        (WHOLE, "a", None, False),
        (WHOLE, "b", "sand", False),
    ],
)
def test_what_must_wait(text: str, id_: str, name: str | None, expected: bool) -> None:
    calls = Succession("a", "paint")
    calls.text(text)
    assert calls.undecided(id_, name) is expected


def test_every_cut_of_the_text_gives_the_same() -> None:
    text = '{}\n {"a": "}{", "b": [1, {"c": "\\"}"}]} '
    for cut in range(len(text)):
        calls = Succession("a", "x")
        calls.text(text[:cut])
        calls.text(text[cut:])
        assert calls.complete, cut
