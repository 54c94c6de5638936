"""Arguments of calls in a request's history that have another type than the API takes.

A client that keeps calls in a language without a difference between an empty list and an empty map (PHP) sends `[]` for
`{}`; others send the value of the only parameter alone. Servers refuse such a history, or their chat template raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from wirelint.apis.traits import history_of, traits
from wirelint.arguments.argument_faults import REDACTED, flaw, glued
from wirelint.arguments.argument_repairs import in_order, unglued
from wirelint.arguments.json_continuation import write
from wirelint.dialects.declared import bind
from wirelint.fix import Edit, Safety
from wirelint.model import Arguments, Exchange, Json, Layer, Tool, ToolCall
from wirelint.state.ledger import Ledger
from wirelint.text.escaping import excerpt
from wirelint.text.pointers import at
from wirelint.text.remembered import remembered

_BLANK = " \t\r\n"
_EMPTY: tuple[Json, ...] = ([], None, "")
_NO_VALUES = frozenset({"none", "undefined", "null", "nil"})
_JSON = ("{", "[", '"', "`", "<")
"""With what JSON begins, and what servers and models put around it."""


@dataclass(frozen=True, slots=True)
class PastFault:
    """A call of the history with arguments of a wrong type. `right`: the arguments as JSON; `edit` puts them there."""

    name: str
    pointer: str
    words: str
    given: str
    right: str
    edit: Edit | None
    layer: Layer
    safety: Safety = "safe"


@dataclass(frozen=True, slots=True)
class PastDamage:
    """A call of the history whose arguments are a text that is empty, damaged, or several values (`glued`).

    `right` is the object that they should be, None where that would be a guess. `nothing`: they say nothing.
    """

    call: ToolCall
    place: str
    words: str
    right: str | None
    safety: Safety = "unsafe"
    glued: bool = False
    nothing: bool = False
    as_object: bool = False

    @property
    def name(self) -> str:
        return self.call.name or "a call without a name"

    @property
    def done(self) -> str:
        return f"{self.name}: wrote the arguments, {self.words}, as {excerpt(self.right or '')}"

    @property
    def edit(self) -> Edit:
        return Edit("replace", self.place, orjson.loads(self.right or "") if self.as_object else self.right)


def past_damage(exchange: Exchange) -> Iterator[PastDamage]:
    """Yield the calls of a request's history whose argument text is empty, damaged, or more than one value."""
    request = exchange.request
    if request is None:
        return
    as_object = traits(request.api).arguments != "text"
    for message in request.messages:
        for call in message.calls:
            text = call.arguments.text
            if call.form == "custom" or (text and _is_object(text)) or REDACTED in text:
                continue
            place = _place(request.api, call)
            given = at(request.body, place)
            found = _damage(call, place, given, as_object=as_object) if isinstance(given, str) else None
            if found is not None:
                yield found


def _place(api: str, call: ToolCall) -> str:
    return f"{call.pointer}/{'arguments' if call.form == 'legacy' else history_of(api).arguments}"


def _damage(call: ToolCall, place: str, text: str, *, as_object: bool) -> PastDamage | None:
    if not text.strip(_BLANK):
        return None if as_object else PastDamage(call, place, "empty", "{}", "safe", nothing=True)
    call = replace(call, arguments=Arguments(text), start_input=None)
    shown = excerpt(text, 60)
    if glued(call) is not None:
        right, safety = _first(call)
        return PastDamage(call, place, f"several values: {shown}", right, safety, glued=True, as_object=as_object)
    if (len(call.arguments.values) == 1 and not call.arguments.rest) or text.lstrip()[:1] not in _JSON:
        return None  # of another type
    found = flaw(call, None)
    change = in_order(call, found, None) if found is not None else None
    if found is None or change is None:
        return None  # nothing can be done, and the reply has told
    return PastDamage(call, place, found.words, change.text, as_object=as_object)


def _first(call: ToolCall) -> tuple[str | None, Safety]:
    """Return the object that stays of several values."""
    change = unglued(call, lambda _: None)
    if change is not None and not change.separated:
        return change.text, change.safety
    value = call.arguments.value
    values = (Arguments(value) if isinstance(value, str) else call.arguments).values
    first = next((one for one in values if one not in ({}, *_EMPTY)), None)
    return (write(first) if isinstance(first, dict) else None), "unsafe"


@remembered
def _is_object(text: str) -> bool:
    return Arguments(text).mapping is not None


def past_faults(exchange: Exchange, ledger: Ledger) -> Iterator[PastFault]:
    """Yield the calls of a request's history whose arguments are of another type than the API has there."""
    request = exchange.request
    if request is None:
        return
    for message in request.messages:
        for call in message.calls:
            if call.form != "custom" and REDACTED not in call.arguments.text:
                fault = _judge(call, exchange, ledger)
                if fault is not None:
                    yield fault


def _judge(call: ToolCall, exchange: Exchange, ledger: Ledger) -> PastFault | None:
    request = exchange.request
    assert request is not None
    own = traits(request.api)
    place = _place(request.api, call)
    given = at(request.body, place)
    if given is None:
        return None  # left out
    if own.arguments != "text" and isinstance(given, str) and _damage(call, place, given, as_object=True) is not None:
        return None
    if own.arguments == "text":
        words = _as_text(given, call) if isinstance(given, str) else _instead_of_text(given, text_only=own.text_only)
    else:
        words = None if isinstance(given, dict) else f"{_type(given)} instead of an object"
    if not words:
        return None
    issued = ledger.issued(call.id, exchange.conversation) if call.id else None
    passed = issued is not None and issued.arguments == call.arguments.text
    right = _right(given, issued.arguments if issued is not None and issued.name == call.name else None)
    safety: Safety = "safe" if right is not None else "unsafe"
    right = _bound(given, request.tool(call.name)) if right is None else right
    edit = None
    if right is not None:
        value: Json = orjson.dumps(right).decode() if own.arguments == "text" else right
        edit = Edit("replace", place, value)
    return PastFault(
        call.name or "a call without a name",
        call.pointer,
        words,
        call.arguments.text,
        orjson.dumps(right).decode() if right is not None else "",
        edit,
        "model" if passed else "client",
        safety,
    )


def _as_text(given: str, call: ToolCall) -> str | None:
    """Say what a text of arguments is, if it is one JSON value other than an object, or no JSON from its first word on."""
    arguments = Arguments(given)
    if not given.strip() or arguments.mapping is not None:
        return None
    if len(arguments.values) == 1 and not arguments.rest:
        found = flaw(call, None)
        return found.words if found is not None else None
    if arguments.values or given.lstrip()[:1] in _JSON:
        return None  # damaged by the model
    return f"bare text instead of an object: {excerpt(given, 40)!r}"


def _instead_of_text(given: Json, *, text_only: bool) -> str | None:
    if isinstance(given, dict):
        return "JSON itself where the API has JSON as text" if text_only else None
    return f"{_type(given)} where the API has an object as text"


def _type(value: Json) -> str:
    match value:
        case bool():
            return "a boolean"
        case str():
            return "a string" if value else "an empty string"
        case list():
            return "an array"
        case None:
            return "null"
        case _:
            return "a number"


def _right(given: Json, issued: str | None) -> dict[str, Json] | None:
    """Return the object that the arguments stand for; None if nothing says it."""
    if isinstance(given, dict):
        return given
    if issued is not None and (known := Arguments(issued).mapping) is not None:
        return known
    value: Json = given
    for _ in range(2):  # as text, and encoded once more
        if not isinstance(value, str) or not value:
            break
        read = Arguments(value)
        if len(read.values) != 1 or read.rest:
            return None
        value = read.values[0]
    if isinstance(value, dict):
        return value
    return {} if value in _EMPTY else None


def _bound(given: Json, tool: Tool | None) -> dict[str, Json] | None:
    """Return the object that a bare value stands for: the object in an array, or the value of the only parameter."""
    if isinstance(given, list):
        return given[0] if isinstance(given[0], dict) and all(isinstance(one, dict) for one in given) else None
    if not isinstance(given, str) or not given.strip():
        return None
    values = Arguments(given).values
    value: Json = values[0] if len(values) == 1 else given
    if isinstance(value, list):
        return _bound(value, tool) if value else None
    if not isinstance(value, str) or value.lstrip()[:1] in _JSON or value.strip().lower() in _NO_VALUES:
        return None
    return bind(tool, value)
