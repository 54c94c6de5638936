"""Values that everything speaks of: the decoding of argument texts, offsets and events, turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables import pairs, tables
from wirelint.model import Arguments, Message, Opaque, Request, Text, ToolCall, ToolResult

TABLES = tables(__file__)

# text → (values, offsets after each, rest)


@pairs(TABLES["texts"])
def test_arguments_are_decoded_to_values_and_a_rest(text: str, expected: tuple[list[Any], list[int], str]) -> None:
    arguments = Arguments(text)
    values, ends, rest = expected
    assert [*map(_roughly, arguments.values)] == [*map(_roughly, values)]
    assert list(arguments.ends) == ends
    assert arguments.rest == rest
    single = len(values) == 1 and not rest
    assert _roughly(arguments.value) == (_roughly(values[0]) if single else None)
    assert (arguments.mapping is not None) == (single and isinstance(values[0], dict))


def _roughly(value: Any) -> Any:
    """Integers that 64 bits cannot hold may read as floats."""
    return (
        {key: float(one) if isinstance(one, int) else one for key, one in value.items()}
        if isinstance(value, dict)
        else value
    )


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "{}" * 20_000, "1 " * 20_000, '"' + "\\" * 99_999])
def test_monstrous_arguments_do_no_harm(text: str) -> None:
    arguments = Arguments(text)
    assert arguments.mapping is None
    assert arguments.rest
    assert len(arguments.values) in (0, 256)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_nothing_is_lost_of_any_text(text: str) -> None:
    arguments = Arguments(text)
    end = arguments.ends[-1] if arguments.ends else 0
    assert text[end:].strip(" \t\r\n") == arguments.rest
    assert len(arguments.values) == len(arguments.ends)
    assert list(arguments.ends) == sorted(set(arguments.ends))


def _user(*parts: str | ToolResult | Opaque) -> Message:
    return Message("user", tuple(Text(part, "") if isinstance(part, str) else part for part in parts), "")


CALLED = Message("assistant", (ToolCall("1", "t", Arguments("{}"), ""),), "")
RESULT = Message("tool", (ToolResult("1", "ok", ""),), "")
REMINDER = "<system-reminder>The list is empty.</system-reminder>"
GO = _user("go")
# messages → where the turn begins, and the message in which the user last spoke
SPOKEN: dict[str, tuple[tuple[Message, ...], int, Message | None]] = {
    "nobody": ((CALLED, RESULT), 0, None),
    "result beside a reminder": ((GO, CALLED, _user(ToolResult("1", "ok", ""), REMINDER)), 1, GO),
    "result beside words": ((GO, CALLED, _user(ToolResult("1", "ok", ""), "Keep going.")), 1, GO),
    "reminder alone": ((GO, CALLED, RESULT, _user(REMINDER)), 1, GO),
    "reminder beside words": ((GO, CALLED, RESULT, _user(REMINDER, "and b?")), 4, _user(REMINDER, "and b?")),
    "picture that a tool gave": ((GO, CALLED, RESULT, _user("Picture 1:", Opaque("image_url", ""))), 1, GO),
    "picture that the user gave": ((GO, CALLED, RESULT, GO, _user(Opaque("image", ""))), 5, _user(Opaque("image", ""))),
}


@pytest.mark.parametrize(("messages", "start", "last"), SPOKEN.values(), ids=SPOKEN)
def test_the_last_word_of_the_user_is_found(messages: tuple[Message, ...], start: int, last: Message | None) -> None:
    request = Request("m", messages, (), {}, api="openai.chat")
    assert request.turn == messages[start:]
    assert request.last_user == last
