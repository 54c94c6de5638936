"""What the arguments of a call should have been: the same verdict for the rule that reports and the repair that writes.

Theory of operation. A repair of a stream can only go on from what the client has already. So every verdict here is a
whole argument text that begins as the one that came, up to the first place that gives the fault away; where that cannot
be, there is no repair, streamed or whole. `wirelint.arguments.argument_watchers` tells that place while the text arrives.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wirelint.arguments.argument_faults import Flaw, Glued, glued
from wirelint.arguments.argument_watchers import WRAPPERS, KindWatcher, SyntaxWatcher, Watcher
from wirelint.arguments.json_continuation import continuation, write
from wirelint.arguments.schemas import Validator, accepts
from wirelint.dialects.coercion import properties_of
from wirelint.model import Arguments, Json, Tool, ToolCall
from wirelint.text.excerpts import excerpt

_BLANK = " \t\r\n"
Tools: TypeAlias = Callable[["str | None"], "Tool | None"]
"""The declared tool of a name."""


@dataclass(frozen=True, slots=True)
class Separated:
    """A call that was glued to another one. `id` is the wire's own, None when it gave none."""

    text: str
    name: str | None
    id: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """What to make of a call's arguments. `text` is all of them; `order` says what to do, `done` what was done.

    `separated` are calls of their own that were found in it, to follow the call. `offset` is where the fault begins.
    """

    text: str
    safety: Literal["safe", "unsafe"]
    order: str
    done: str
    separated: tuple[Separated, ...] = ()
    offset: int = 0


# --- several values ----------------------------------------------------------------------------------------------------


def unglued(call: ToolCall, tools: Tools, *, parallel: bool = True) -> Change | None:
    """One value, or one for each call, of arguments that hold several; None when they do not, or it would be a guess.

    `parallel` False: the client wants one call at most.
    """
    found = glued(call)
    if found is None:
        return None
    if found.start:
        return _one_source(call, found, tools)
    match found.shape:
        case "equal" if all(piece.name in (None, "", call.name) for piece in call.pieces):
            text = _kept(call, found)
            shown = excerpt(text)
            return Change(text, "safe", f"keep one value: {shown}", f"kept one value: {shown}", offset=found.offset)
        case "differ" if parallel and call.form == "function":
            return _split(call, found, tools)
        case "grow":
            text = call.deltas[call.events.starts[-1] :]
            return Change(
                text, "safe", "pass on what each delta adds", "passed on what each delta adds", offset=found.offset
            )
        case "continues":
            return _joined(call, call.arguments, found.offset, tools)
    return None


def _source(call: ToolCall) -> Arguments:
    """The text that holds the values: the arguments, or the text that they are an encoding of."""
    value = call.arguments.value
    return Arguments(value) if isinstance(value, str) else call.arguments


def _says_something(value: Json) -> bool:
    return value not in ({}, [], None, "")


def _piece(arguments: Arguments, number: int) -> str:
    """The text of one of several values; white space before the first belongs to it."""
    start = arguments.ends[number - 1] if number else 0
    piece = arguments.text[start : arguments.ends[number]]
    return piece.lstrip(_BLANK) if number else piece


def _kept(call: ToolCall, found: Glued) -> str:
    source = _source(call)
    telling = (number for number, value in enumerate(found.values) if _says_something(value))
    return _piece(source, next(telling, 0))


def _split(call: ToolCall, found: Glued, tools: Tools) -> Change | None:
    source = _source(call)
    calls: list[Separated] = []
    seen: set[str] = set()
    for number, value in enumerate(found.values):
        if not _says_something(value):
            continue
        name, id_ = _label(call, source, number)
        if not isinstance(value, dict) or not accepts(tools(name), value):
            return None
        key = f"{name} {_canonical(value)}"
        if key not in seen:
            seen.add(key)
            calls.append(Separated(_piece(source, number), name, id_))
    first, *others = calls
    count = len(calls)
    if first.name != call.name:
        return None  # what came first says nothing, and the other tool has only its place
    return Change(
        first.text,
        "unsafe",
        f"split into {count} calls",
        f"split the arguments into {count} calls",
        tuple(others),
        found.offset,
    )


def _canonical(value: Json) -> str:
    """A text that is the same for values that are the same."""
    return json.dumps(value, sort_keys=True)


def _label(call: ToolCall, source: Arguments, number: int) -> tuple[str | None, str | None]:
    """The name and the id that the wire gave with one of several values; the call's own name where it gave none."""
    if number == 0 or source is not call.arguments:
        return call.name, None
    start, end = source.ends[number - 1], source.ends[number]
    given = [piece for piece in call.pieces[1:] if start <= piece.offset < end]
    name = next((piece.name for piece in given if piece.name), call.name)
    return name, next((piece.id for piece in given if piece.id and piece.id != call.id), None)


def _joined(call: ToolCall, first: Arguments, offset: int, tools: Tools, rest: str | None = None) -> Change | None:
    """The object that a complete one and the members that follow it make together, when nothing of either gets lost."""
    begun = first.values[0]
    if not isinstance(begun, dict):
        return None
    end = first.ends[0]
    more = first.text[end:].lstrip(_BLANK) if rest is None else rest.lstrip(_BLANK)
    if not more.startswith(","):
        return None
    text = first.text[: end - 1] + (more if begun else more[1:])
    value = Arguments(text).mapping
    added = Arguments("{" + more[1:]).mapping
    if value is None or added is None or added.keys() & begun.keys() or not added:
        return None
    if accepts(tools(call.name), value) is False:
        return None
    shown = excerpt(text)
    return Change(
        text, "unsafe", f"join the parts: {shown}", f"joined the parts of the arguments: {shown}", offset=offset
    )


def _one_source(call: ToolCall, found: Glued, tools: Tools) -> Change | None:
    """Deltas win over the start. It loses nothing when they hold all that the start says."""
    assert call.start_input is not None
    deltas = Arguments(call.deltas)
    match found.shape:
        case "equal":
            telling = [number for number, value in enumerate(deltas.values) if _says_something(value)]
            text = _piece(deltas, telling[0]) if telling else call.start_input.text
            return Change(
                text,
                "safe",
                f"keep one value: {excerpt(text)}",
                "kept one of the start's input and the deltas, which say the same",
            )
        case "continues":
            return _joined(call, call.start_input, 0, tools, call.deltas) if not deltas.values else None
        case "differ":
            return _deltas_win(call, deltas, tools)
    return None


def _deltas_win(call: ToolCall, deltas: Arguments, tools: Tools) -> Change | None:
    assert call.start_input is not None
    start, won = call.start_input.value, deltas.mapping
    if not isinstance(start, dict) or won is None:
        return None
    if all(key in won and _canonical(won[key]) == _canonical(value) for key, value in start.items()):
        return Change(
            call.deltas,
            "safe",
            "keep the deltas, which say all that the start does",
            "kept the deltas, which say all that the start does",
        )
    if not accepts(tools(call.name), won):
        return None
    return Change(
        call.deltas,
        "unsafe",
        "keep the deltas, drop the input of the start",
        "kept the deltas, dropped the input of the start",
    )


# --- no JSON object ----------------------------------------------------------------------------------------------------


def in_order(call: ToolCall, found: Flaw, tool: Tool | None) -> Change | None:
    """Arguments without their flaw; None when what they say would be a guess, does not fit, or cannot follow a stream."""
    value = found.repaired
    if value is None or (tool is not None and accepts(tool, value) is False):
        return None
    text = _from(call.arguments.text, value, SyntaxWatcher())
    if text is None:
        return None
    shown = excerpt(write(value))
    return Change(text, "unsafe", f"write them as {shown}", f"wrote the arguments, {found.words}, as {shown}")


def as_text(call: ToolCall) -> Change:
    """Arguments that came as JSON where the API has JSON as text."""
    return Change(call.arguments.text, "safe", "write them as text", "wrote the arguments as text")


def retyped(call: ToolCall, tool: Tool, schema: Validator) -> Change | None:
    """Arguments with wrong types read as what they spell, or taken out of a wrapper, where that makes them valid."""
    arguments = call.arguments.mapping
    inner = unwrapped(arguments, tool)
    if inner is not None and glued(call) is None:
        fitting = inner if schema.accepts(inner) else schema.coerced(inner)
        text = _from(call.arguments.text, fitting, KindWatcher(tool)) if isinstance(fitting, dict) else None
        if text is not None:
            return Change(
                text, "unsafe", "take the arguments out of their wrapper", "took the arguments out of their wrapper"
            )
    coerced = schema.coerced(arguments) if arguments is not None and glued(call) is None else None
    if arguments is None or not isinstance(coerced, dict):
        return None
    text = _from(call.arguments.text, coerced, KindWatcher(tool))
    if text is None:
        return None
    changed = ", ".join([name for name, value in coerced.items() if arguments[name] is not value][:4])
    return Change(text, "unsafe", f"coerce the type of {changed}", f"coerced the type of {changed}")


def unwrapped(arguments: dict[str, Json] | None, tool: Tool) -> dict[str, Json] | None:
    """The object in `{"arguments": {…}}`, or in a whole call that stands for its arguments, when the schema fits it."""
    properties = properties_of(tool.schema)
    wrappers = [key for key in arguments or () if key in WRAPPERS and key not in properties]
    if arguments is None or len(wrappers) != 1 or not arguments.keys() <= {wrappers[0], "name"} - properties.keys():
        return None
    if arguments.get("name", tool.name) != tool.name:
        return None
    inner = Arguments(value).mapping if isinstance(value := arguments[wrappers[0]], str) else value
    return inner if isinstance(inner, dict) and inner.keys() <= properties.keys() else None


def _from(text: str, value: Json, watcher: Watcher) -> str | None:
    """A text of `value` that begins as `text` does, as far as that may leave before the rest is known."""
    begun = text[: watcher.feed(text)]
    rest = continuation(begun, value)
    return None if rest is None else begun + rest
