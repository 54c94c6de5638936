"""Text of a model that is stuck in a loop, and bodies that carry it. `adversarial` measures them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

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
    history: tuple[Assistant | User | Result, ...] = (User("Please go on."),)
    first = "Well, here it is. " if place in ("arguments", "name", "id") else ""
    talk = Talk(history, tools=TOOLS, step=step, text=first)
    parsed = api in ("anthropic.messages", "google.generate_content")
    match place:
        case "text":
            talk = Talk(history, text=text, tools=TOOLS, step=step)
        case "reasoning":
            talk = Talk(history, text="Well.", reasoning=text, tools=TOOLS, step=step)
        case "arguments":
            if parsed:
                return None
            talk = Talk(history, calls=[Call("look", text)], tools=TOOLS, step=step)
        case "string":
            arguments = json.dumps({"q": text}, ensure_ascii=False)
            talk = Talk(history, calls=[Call("look", arguments)], tools=TOOLS, step=step)
        case "name":
            talk = Talk(history, calls=[Call(text, {"q": "a"})], tools=TOOLS, step=step)
        case "id":
            talk = Talk(history, calls=[Call("look", {"q": "a"}, id=text)], tools=TOOLS, step=step)
        case "history":
            talk = Talk((User("Go."), Assistant(text), User("Please go on.")), text="Yes.", tools=TOOLS)
        case "result" | "told":
            made, said = Call("look", {"q": "a"}), "Yes." if place == "result" else text[:8_000].replace("4", "7")
            talk = Talk((User("Go."), Assistant("", (made,)), Result(made.id, text)), text=said, tools=TOOLS)
    return as_record(talk.record(api, stream))
