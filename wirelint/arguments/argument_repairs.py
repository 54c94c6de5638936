"""Repairs of a call's arguments, used by the rule that reports the fault and by the fix.

Theory of operation. A repair of a stream must continue the text that the client has already received. So every repair is a
whole argument text that begins like the original, up to the first sign of the fault; without such a text there is no
repair, streamed or whole. The watchers (`argument_watchers`) find that place while the text arrives.

    {"q":"a"}{"q":"a"}     `{"q":"a"` is sent at once, `}` when the call ends: one of two equal values
    {"q":"a"}{"q":"b"}     `{"q":"a"` is sent at once, `}` and a second call with `{"q":"b"}` when the call ends
    {"q":'a'}              `{"q":` is sent at once, `"a"}` when the call ends
    {"n":"3"}              `{"n":` is sent at once, `3}` when the call ends, if `n` is declared as an integer
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import orjson

from wirelint.apis.traits import history_of, traits
from wirelint.arguments.argument_faults import (
    NO_VALUES,
    REDACTED,
    Concatenated,
    Flaw,
    canonical,
    concatenated,
    flaw,
    is_filled,
    type_words,
)
from wirelint.arguments.argument_watchers import WRAPPERS, KindWatcher, SyntaxWatcher, Watcher
from wirelint.arguments.json_continuation import continuation, write
from wirelint.arguments.schemas import Validator, accepts
from wirelint.dialects.declared import bind, properties_of
from wirelint.fix import Edit, Safety
from wirelint.model import Arguments, Exchange, Json, Layer, Request, Tool, ToolCall
from wirelint.state.ledger import Ledger
from wirelint.text.escaping import excerpt
from wirelint.text.pointers import at
from wirelint.text.remembered import remembered

_BLANK = " \t\r\n"
Tools: TypeAlias = Callable[["str | None"], "Tool | None"]
"""Lookup of the declared tool of a name."""


@dataclass(frozen=True, slots=True)
class Separated:
    """A call that was concatenated to another one. `id` is the id on the wire, None without one."""

    text: str
    name: str | None
    id: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A repair of a call's arguments. `text` is the whole text; `title` names the repair as an order, `done` as a fact.

    `separated` are further calls found in the arguments, which follow the call. `offset`: the start of the fault.
    """

    text: str
    safety: Literal["safe", "unsafe"]
    title: str
    done: str
    separated: tuple[Separated, ...] = ()
    offset: int = 0


# --- several values ----------------------------------------------------------------------------------------------------


def separate_values(call: ToolCall, tools: Tools, *, parallel: bool = True) -> Change | None:
    """Return a repair of concatenated arguments: one value, or one for each call; None if that needs a guess.

    `parallel`: the client allows several calls.
    """
    found = concatenated(call)
    if found is None:
        return None
    if found.start:
        return _one_source(call, found, tools)
    match found.shape:
        case "equal" if all(piece.name in (None, "", call.name) for piece in call.pieces):
            filled = (number for number, value in enumerate(found.values) if is_filled(value))
            text = _piece(_source(call), next(filled, 0))
            shown = excerpt(text)
            return Change(text, "safe", f"keep one value: {shown}", f"kept one value: {shown}", offset=found.offset)
        case "differ" if parallel and call.form == "function":
            source = _source(call)
            calls: list[Separated] = []
            seen: set[str] = set()
            for number, value in enumerate(found.values):
                if not is_filled(value):
                    continue
                name, id_ = _label(call, source, number)
                if not isinstance(value, dict) or not accepts(tools(name), value):
                    return None
                key = f"{name} {canonical(value)}"
                if key not in seen:
                    seen.add(key)
                    calls.append(Separated(_piece(source, number), name, id_))
            first, *others = calls
            if first.name != call.name:
                return None  # the first value is empty, and the call of the other tool would replace the call
            title, done = f"split into {len(calls)} calls", f"split the arguments into {len(calls)} calls"
            return Change(first.text, "unsafe", title, done, tuple(others), found.offset)
        case "grow":
            text = call.deltas[call.events.starts[-1] :]
            title, done = "pass on what each delta adds", "passed on what each delta adds"
            return Change(text, "safe", title, done, offset=found.offset)
        case "continues":
            return _joined(call, call.arguments, found.offset, tools)
    return None


def _source(call: ToolCall) -> Arguments:
    """Return the text that holds the values: the arguments, or the text encoded in them."""
    value = call.arguments.value
    return Arguments(value) if isinstance(value, str) else call.arguments


def _piece(arguments: Arguments, number: int) -> str:
    """Return the text of one of several values; white space before the first belongs to it."""
    start = arguments.ends[number - 1] if number else 0
    piece = arguments.text[start : arguments.ends[number]]
    return piece.lstrip(_BLANK) if number else piece


def _label(call: ToolCall, source: Arguments, number: int) -> tuple[str | None, str | None]:
    """Return the name and the id on the wire for one of several values; by default the call's own name."""
    if number == 0 or source is not call.arguments:
        return call.name, None
    start, end = source.ends[number - 1], source.ends[number]
    given = [piece for piece in call.pieces[1:] if start <= piece.offset < end]
    name = next((piece.name for piece in given if piece.name), call.name)
    return name, next((piece.id for piece in given if piece.id and piece.id != call.id), None)


def _joined(call: ToolCall, first: Arguments, offset: int, tools: Tools, rest: str | None = None) -> Change | None:
    """Return the object of a complete object and the members that follow it, if nothing is lost."""
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
    title, done = f"join the parts: {excerpt(text)}", f"joined the parts of the arguments: {excerpt(text)}"
    return Change(text, "unsafe", title, done, offset=offset)


def _one_source(call: ToolCall, found: Concatenated, tools: Tools) -> Change | None:
    """Return the deltas instead of start input and deltas. Nothing is lost if they hold all members of the start."""
    assert call.start_input is not None
    deltas = Arguments(call.deltas)
    match found.shape:
        case "equal":
            telling = [number for number, value in enumerate(deltas.values) if is_filled(value)]
            text = _piece(deltas, telling[0]) if telling else call.start_input.text
            done = "kept one of the start's input and the deltas, which say the same"
            return Change(text, "safe", f"keep one value: {excerpt(text)}", done)
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
    if all(key in won and canonical(won[key]) == canonical(value) for key, value in start.items()):
        what = "the deltas, which say all that the start does"
        return Change(call.deltas, "safe", f"keep {what}", f"kept {what}")
    if not accepts(tools(call.name), won):
        return None
    title, done = "keep the deltas, drop the input of the start", "kept the deltas, dropped the input of the start"
    return Change(call.deltas, "unsafe", title, done)


# --- no JSON object ----------------------------------------------------------------------------------------------------


def repair_flaw(call: ToolCall, found: Flaw, tool: Tool | None) -> Change | None:
    """Return arguments without their flaw; None if that needs a guess, does not fit, or cannot continue a stream.

    A call without a name is not given empty arguments, because without both it is no call.
    """
    value = found.repaired
    if value is None or not (value or call.name) or (tool is not None and accepts(tool, value) is False):
        return None
    text = _from(call.arguments.text, value, SyntaxWatcher())
    if text is None:
        return None
    shown = excerpt(write(value))
    return Change(text, "unsafe", f"write them as {shown}", f"wrote the arguments, {found.words}, as {shown}")


def write_as_text(call: ToolCall) -> Change:
    """Return JSON arguments as text."""
    return Change(call.arguments.text, "safe", "write them as text", "wrote the arguments as text")


def coerce_types(call: ToolCall, tool: Tool, schema: Validator) -> Change | None:
    """Return arguments with converted types, or without their wrapper, if that makes them valid."""
    arguments = call.arguments.mapping
    inner = unwrapped(arguments, tool)
    if inner is not None and concatenated(call) is None:
        fitting = inner if schema.accepts(inner) else schema.coerced(inner)
        text = _from(call.arguments.text, fitting, KindWatcher(tool)) if isinstance(fitting, dict) else None
        if text is not None:
            what = "the arguments out of their wrapper"
            return Change(text, "unsafe", f"take {what}", f"took {what}")
    coerced = schema.coerced(arguments) if arguments is not None and concatenated(call) is None else None
    if arguments is None or not isinstance(coerced, dict):
        return None
    text = _from(call.arguments.text, coerced, KindWatcher(tool))
    if text is None:
        return None
    changed = ", ".join([name for name, value in coerced.items() if arguments[name] is not value][:4])
    return Change(text, "unsafe", f"coerce the type of {changed}", f"coerced the type of {changed}")


def unwrapped(arguments: dict[str, Json] | None, tool: Tool) -> dict[str, Json] | None:
    """Return the object in `{"arguments": {…}}`, or in a whole call in place of its arguments, if it fits the schema."""
    properties = properties_of(tool.schema)
    wrappers = [key for key in arguments or () if key in WRAPPERS and key not in properties]
    if arguments is None or len(wrappers) != 1 or not arguments.keys() <= {wrappers[0], "name"} - properties.keys():
        return None
    if arguments.get("name", tool.name) != tool.name:
        return None
    inner = Arguments(value).mapping if isinstance(value := arguments[wrappers[0]], str) else value
    return inner if isinstance(inner, dict) and inner.keys() <= properties.keys() else None


def _from(text: str, value: Json, watcher: Watcher) -> str | None:
    """Return a text of `value` that begins with the part of `text` that the watcher sends."""
    begun = text[: watcher.feed(text)]
    rest = continuation(begun, value)
    return None if rest is None else begun + rest


# --- arguments of earlier calls ---------------------------------------------------------------------------------------
# Calls in a request's history whose arguments have another type than the API takes. A client in a language without a
# difference between an empty list and an empty map (PHP) sends `[]` for `{}`; others send the value of the only parameter
# alone. Servers refuse such a history, or their chat template raises.

_EMPTY: tuple[Json, ...] = ([], None, "")
_JSON = ("{", "[", '"', "`", "<")
"""First characters of JSON, and of the markup that servers and models put around it."""


@dataclass(frozen=True, slots=True)
class PastFault:
    """A call of the history whose arguments are damaged, or of a wrong type (then `layer` is known).

    `right`: the arguments as JSON, which `edit` writes; both are None if that needs a guess. `concatenated`: they are
    several values; `nothing`: they are empty or null.
    """

    call: ToolCall
    words: str
    right: str | None
    edit: Edit | None
    safety: Safety = "unsafe"
    layer: Layer | None = None
    concatenated: bool = False
    nothing: bool = False

    @property
    def name(self) -> str:
        return self.call.name or "a call without a name"


def past_faults(exchange: Exchange, ledger: Ledger | None) -> Iterator[PastFault]:
    """Yield the faulty calls of a request's history. Without a ledger, wrong types are not looked for."""
    request = exchange.request
    for call in request.calls if request is not None else ():
        if request is None or call.form == "custom" or REDACTED in call.arguments.text:
            continue
        fault = _damaged(call, request)
        if fault is None and ledger is not None:
            fault = _mistyped(call, request, exchange.conversation, ledger)
        if fault is not None:
            yield fault


def _place(api: str, call: ToolCall) -> str:
    return f"{call.pointer}/{'arguments' if call.form == 'legacy' else history_of(api).arguments}"


def _damaged(call: ToolCall, request: Request) -> PastFault | None:
    """Return the damage of arguments. Null counts, except for Gemini and Ollama, which read it like no arguments."""
    text = call.arguments.text
    if text and _is_object(text):
        return None
    form, place = traits(request.api).arguments, _place(request.api, call)
    given = at(request.body, place)
    if isinstance(given, str):
        return _damage(call, place, given, as_object=form != "text")
    if given is None and form != "object" and call.name and _is_null(request.body, place):
        return PastFault(call, "null", "{}", _written(place, "{}", as_object=form != "text"), "safe", nothing=True)
    return None


def _written(place: str, right: str | None, *, as_object: bool) -> Edit | None:
    return Edit("replace", place, orjson.loads(right) if as_object else right) if right is not None else None


def _is_null(body: Mapping[str, Json], place: str) -> bool:
    """Return True if a place holds null, as opposed to a missing member."""
    holder, _, name = place.rpartition("/")
    parent = at(body, holder)
    return isinstance(parent, dict) and name in parent


def _damage(call: ToolCall, place: str, text: str, *, as_object: bool) -> PastFault | None:
    if not text.strip(_BLANK):
        return None if as_object else PastFault(call, "empty", "{}", Edit("replace", place, "{}"), "safe", nothing=True)
    read = replace(call, arguments=Arguments(text), start_input=None)
    if concatenated(read) is not None:
        right, safety = _first(read)
        edit = _written(place, right, as_object=as_object)
        return PastFault(call, f"several values: {excerpt(text, 60)}", right, edit, safety, concatenated=True)
    if (len(read.arguments.values) == 1 and not read.arguments.rest) or text.lstrip()[:1] not in _JSON:
        return None  # of another type
    found = flaw(read, None)
    change = repair_flaw(read, found, None) if found is not None else None
    if found is None or change is None:
        return None  # there is no repair, and the reply was reported
    return PastFault(call, found.words, change.text, _written(place, change.text, as_object=as_object))


def _first(call: ToolCall) -> tuple[str | None, Safety]:
    """Return the object that is kept of several values."""
    change = separate_values(call, lambda _: None)
    if change is not None and not change.separated:
        return change.text, change.safety
    value = call.arguments.value
    values = (Arguments(value) if isinstance(value, str) else call.arguments).values
    first = next((one for one in values if one not in ({}, *_EMPTY)), None)
    return (write(first) if isinstance(first, dict) else None), "unsafe"


@remembered
def _is_object(text: str) -> bool:
    return Arguments(text).mapping is not None


def _mistyped(call: ToolCall, request: Request, conversation: str | None, ledger: Ledger) -> PastFault | None:
    """Return the fault of arguments of another type than the API takes."""
    own = traits(request.api)
    place = _place(request.api, call)
    given = at(request.body, place)
    if given is None:
        return None  # left out
    if own.arguments == "text":
        words = (
            _as_text(given, call)
            if isinstance(given, str)
            else _instead_of_text(given, has_only_strings=own.has_only_strings)
        )
    else:
        words = None if isinstance(given, dict) else f"{type_words(given)} instead of an object"
    if not words:
        return None
    issued = ledger.issued(call.id, conversation) if call.id else None
    passed = issued is not None and issued.arguments == call.arguments.text
    right = _right(given, issued.arguments if issued is not None and issued.name == call.name else None)
    safety: Safety = "safe" if right is not None else "unsafe"
    right = _bound(given, request.tool(call.name)) if right is None else right
    layer: Layer = "model" if passed else "client"
    if right is None:
        return PastFault(call, words, None, None, safety, layer)
    written = write(right)
    return PastFault(
        call, words, written, Edit("replace", place, written if own.arguments == "text" else right), safety, layer
    )


def _as_text(given: str, call: ToolCall) -> str | None:
    """Return words for an argument text that is one JSON value other than an object, or no JSON from its first word on."""
    arguments = Arguments(given)
    if not given.strip() or arguments.mapping is not None:
        return None
    if len(arguments.values) == 1 and not arguments.rest:
        found = flaw(call, None)
        return found.words if found is not None else None
    if arguments.values or given.lstrip()[:1] in _JSON:
        return None  # damaged by the model
    return f"bare text instead of an object: {excerpt(given, 40)!r}"


def _instead_of_text(given: Json, *, has_only_strings: bool) -> str | None:
    if isinstance(given, dict):
        return "JSON itself where the API has JSON as text" if has_only_strings else None
    return f"{type_words(given)} where the API has an object as text"


def _right(given: Json, issued: str | None) -> dict[str, Json] | None:
    """Return the object that the arguments should be; None if it is unknown."""
    if isinstance(given, dict):
        return given
    if issued is not None and (known := Arguments(issued).mapping) is not None:
        return known
    value: Json = given
    for _ in range(2):  # a text, perhaps encoded once more
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
    """Return the object for a bare value: the object in an array, or the value as the only parameter."""
    if isinstance(given, list):
        return given[0] if isinstance(given[0], dict) and all(isinstance(one, dict) for one in given) else None
    if not isinstance(given, str) or not given.strip():
        return None
    values = Arguments(given).values
    value: Json = values[0] if len(values) == 1 else given
    if isinstance(value, list):
        return _bound(value, tool) if value else None
    if not isinstance(value, str) or value.lstrip()[:1] in _JSON or value.strip().lower() in NO_VALUES:
        return None
    return bind(tool, value)
