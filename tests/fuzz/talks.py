"""The same reply as a JSON document and as a stream: what is found in both, and made of both, is the same."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tests.build import APIS, Call, Talk, User, as_record, schema
from tests.fixes.drive import run
from tests.fuzz.mutate import MARKUP
from wirelint.capture.record import Record
from wirelint.fixes.promote_markup import PUT_BACK
from wirelint.model import Reply
from wirelint.rule import Finding

_WORDS = ("The", "tide", "turns", "at", "nine", ",", "and", "leaves", ".", "I", "will", "call", "get_weather", "now")
_TOOLS = {"get_weather": schema(("city",), city={"type": "string"}), "ping": schema()}
_STREAMS = frozenset({"ST601", "ST602", "ST603", "ST604", "ST605", "ST607"})
"""Rules about the form of a stream, or its course."""


def talk(chance: random.Random) -> tuple[Record, Record]:
    """A reply of words and pieces of markup: whole, and streamed."""
    api = chance.choice(APIS)
    calls = [Call("get_weather", {"city": "Oslo"})] if chance.random() < 0.2 else []
    reasoning = _text(chance) if chance.random() < 0.2 else ""
    said: dict[str, Any] = {"text": _text(chance), "calls": calls, "tools": _TOOLS if chance.random() < 0.8 else {}}
    made = Talk(history=(User("What is the weather?"),), reasoning=reasoning, **said)
    return as_record(made.record(api, False)), as_record(made.record(api, True))


def _text(chance: random.Random) -> str:
    # What has left a stream cannot be taken back. So no tags of thoughts, and one token of a template at the most: what two
    # of them are is told by both, and a stream cannot wait for the second.
    words: list[str] = []
    for _ in range(chance.randint(1, 25)):
        word = chance.choice(_WORDS) if chance.random() < 0.7 else chance.choice(MARKUP)
        if not ("<|" in word and any("<|" in one for one in words)):
            words.append(word)
    return chance.choice((" ", " ", "", "\n")).join(words)


def differences(whole: Record, stream: Record) -> Iterator[tuple[str, str]]:
    """How the two forms of a reply are treated otherwise.

    Markup is taken out of a stream as soon as it has come, and is put back when a structured call shows that it is none of
    its own. What stood behind it has left by then. A stream with such a note says the same in another order.
    """
    one, other = run(whole), run(stream)
    any_order = PUT_BACK in other.notes
    if (found := _told(one.findings)) != (also := _told(other.findings)):
        yield "whole and streamed find the same", f"{found} / {also}"
    made, also_made = _said(one.after.reply, any_order=any_order), _said(other.after.reply, any_order=any_order)
    if made != also_made:
        yield "whole and streamed repair the same", f"{made} / {also_made}"


def _told(findings: Sequence[Finding]) -> list[str]:
    return sorted({finding.code for finding in findings} - _STREAMS)


def _said(reply: Reply | None, *, any_order: bool) -> list[Any]:
    choices = reply.choices if reply is not None else ()
    return [
        (
            "".join(sorted("".join(choice.text.split()))) if any_order else choice.text.strip(),
            choice.reasoning.strip(),
            [(call.name, call.arguments.value) for call in choice.calls],
            choice.finish_reason,
        )
        for choice in choices
    ]
