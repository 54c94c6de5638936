"""Text of a model that is stuck in a loop, and bodies that carry it. `adversarial` measures them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from tests.build import Assistant, Call, Result, Talk, User, as_record, schema
from tests.fuzz.units import units
from wirelint.capture.record import Record

Place: TypeAlias = Literal["text", "reasoning", "arguments", "string", "name", "id", "result", "told", "history"]

PLACES: tuple[Place, ...] = get_args(Place)
TOOLS = {"look": ("Look things up.", schema(q="string")), "run": ("Run a command.", schema(command="string"))}
APIS = ("openai.chat", "anthropic.messages", "openai.responses", "google.generate_content")
STEPS = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Shape:
    """What fills a text up to a size: `head` once, then `unit` again and again."""

    head: str
    unit: str

    @property
    def name(self) -> str:
        shown = repr(self.unit)[1:-1]
        shown = shown if len(shown) <= 56 else f"{shown[:55]}…"
        return f"{repr(self.head)[1:-1][:24]} + {shown}" if self.head else shown

    def text(self, size: int) -> str:
        if self.unit == NESTED:
            closer = "".join(reversed(self.head)).translate(str.maketrans("<>[](){}", "><][)(}{"))
            depth = max(size // len(self.head) // 2, 1)
            return self.head * depth + closer * depth
        units = max((size - len(self.head)) // len(self.unit), 1)
        return self.head + "".join(self.unit.replace(COUNTER, str(n)) for n in range(units))


COUNTER = "\1"
"""A placeholder for a number that differs in each repetition of a unit."""
NESTED = "\0nested"
"""In the place of a unit: the beginning again and again, and then as often what closes it."""


def shapes() -> Iterator[Shape]:
    """Every unit repeated, then behind a beginning; then pairs of units in turn."""
    every = units()
    yield from (Shape("", unit) for unit in every)
    yield from (Shape(unit, NESTED) for unit in every)
    heads = (
        *("Here it is: ", "<think>", "```\n", "`", '"', "[", "{", "> ", "<tool_call>", "<tool_call>\n{"),
        '[TOOL_CALLS][{"name": "look", "arguments": {"q": "',
        '<function_calls>\n<invoke name="look">\n<parameter name="q">',
    )
    yield from (Shape(head, unit) for head in heads for unit in every)
    yield from (
        Shape("", f"{one}{sep}{other}") for one, other in itertools.permutations(every, 2) for sep in ("", "a ", "\n")
    )


def record(api: str, place: Place, text: str, *, stream: bool, step: int) -> Record | None:
    """An exchange that has a text at a place of its reply or of its history; None where the API cannot say it."""
    ask, go = User("Please go on."), User("Go.")
    call = Call("look", {"q": "a"})
    if place == "arguments" and api in ("anthropic.messages", "google.generate_content"):
        return None
    said: dict[Place, dict[str, Any]] = {
        "text": {"text": text},
        "reasoning": {"text": "Well.", "reasoning": text},
        "arguments": {"calls": [Call("look", text)]},
        "string": {"calls": [Call("look", {"q": text})]},
        "name": {"text": "Well, here it is. ", "calls": [Call(text, {"q": "a"})]},
        "id": {"text": "Well, here it is. ", "calls": [replace(call, id=text)]},
        "history": {"history": (go, Assistant(text), ask), "text": "Yes."},
        "result": {"history": (go, Assistant("", (call,)), Result(call.id, text)), "text": "Yes."},
    }
    said["told"] = {**said["result"], "text": text[:8_000].replace("4", "7")}
    talk = Talk(**{"history": (ask,), "tools": TOOLS, "step": step, **said[place]})
    return as_record(talk.record(api, stream))
