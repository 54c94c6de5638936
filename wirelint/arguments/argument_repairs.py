"""Repairs of a call's arguments, used by the rule that reports the fault and by the fix.

Theory of operation. A repair of a stream must continue the text that the client has already received. So every repair is a
whole argument text that begins like the original, up to the first sign of the fault; without such a text there is no
repair, streamed or whole.

    {"q":"a"}{"q":"a"}     `{"q":"a"` is sent at once, `}` when the call ends: one of two equal values
    {"q":"a"}{"q":"b"}     `{"q":"a"` is sent at once, `}` and a second call with `{"q":"b"}` when the call ends
    {"q":'a'}              `{"q":` is sent at once, `"a"}` when the call ends
    {"n":"3"}              `{"n":` is sent at once, `3}` when the call ends, if `n` is declared as an integer

Watchers find the first sign of a fault in the text of one call while it arrives. After each piece a watcher returns the
length of the text that may be sent for any text after it. From the first suspicious place on nothing may be sent; a few
characters are held until the next one decides about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from wirelint.apis.traits import Traits, history_of, traits
from wirelint.arguments import argument_faults as faults
from wirelint.arguments.argument_faults import Concatenated, Flaw, Rewritten, concatenated, flaw, is_filled
from wirelint.arguments.json_continuation import Scanner, continuation
from wirelint.arguments.schemas import Validator, accepts, inner_schema, kinds, plain
from wirelint.dialects.declared import bind, properties_of
from wirelint.dialects.openers import any_of, cut_at
from wirelint.fix import Edit, Safety
from wirelint.jsonvalues import write
from wirelint.lexicon import lazy_pattern
from wirelint.model import Arguments, Exchange, Json, Layer, Request, Tool, ToolCall
from wirelint.state.ledger import Ledger
from wirelint.text.escaping import REDACTED, excerpt
from wirelint.text.pointers import at
from wirelint.text.remembered import remembered
from wirelint.text.thinking import SPELT_OPENER, SPELT_TAG

_BLANK = " \t\r\n"


class Watcher(Protocol):
    """Watcher of an argument text. `feed` returns the length of the text that may be sent.

    `is_suspicious`: there may be a fault, so the whole text must be checked. `complete`: a value has ended and nothing
    follows it.
    """

    @property
    def is_suspicious(self) -> bool: ...

    @property
    def complete(self) -> bool: ...

    def feed(self, piece: str) -> int: ...


class Everything:
    """Watcher that holds a whole call back."""

    is_suspicious = True
    complete = False

    def feed(self, piece: str) -> int:
        return -1


class ValuesWatcher(Scanner):
    """Watcher for a second value, or more members, after the first. An empty first value is held back."""

    __slots__ = ()

    @property
    def is_suspicious(self) -> bool:
        return self.second is not None or (self.top not in ("", "{") and not self._is_prose)

    @property
    def complete(self) -> bool:
        return super().complete and self.second is None

    @property
    def _is_prose(self) -> bool:
        """Return True if the text begins no JSON value. A later error is different: `nullnull` is two values."""
        return self.broken is not None and self.broken == self.top_at

    def feed(self, piece: str) -> int:
        super().feed(piece)
        if not self.filled:
            damaged = (self.broken is not None and self.top == "{") or self.lost
            return self.length if damaged or self._is_prose else 0
        # The bracket that closes an object is held until it is known that no more members follow.
        return self.length if self.closed is None else self.closed - 1


class SyntaxWatcher(Scanner):
    """Watcher for the first character that is invalid in a JSON object; a comma is held until the next character."""

    __slots__ = ()

    @property
    def is_suspicious(self) -> bool:
        return self.is_wrong

    def feed(self, piece: str) -> int:
        super().feed(piece)
        if self.top not in ("", "{"):
            return self.top_at
        wrong = (self.comma, self.broken, self.second)
        return next((place for place in wrong if place is not None), self.length)


WRAPPERS = ("arguments", "input", "parameters", "params", "args", "kwargs")
"""Undeclared parameters in which models wrap all others."""
_FIRST_KEY = re.compile(r'\s*\{\s*(?:"(?P<key>[a-z]*)(?P<end>")?)?')


class KindWatcher(Scanner):
    """Watcher for a value of a forbidden type that may spell a value of an allowed one.

    It also looks for an undeclared first key that may wrap the arguments. `_wrong` is the offset of the first fault.
    """

    __slots__ = ("_head", "_key", "_places", "_root", "_wrappers", "_wrong")

    def __init__(self, tool: Tool) -> None:
        super().__init__()
        properties = properties_of(tool.schema)
        self._wrappers = [key for key in (*WRAPPERS, "name") if properties and key not in properties]
        self._head: str | None = ""
        self._wrong: int | None = None
        self._root: Json = plain(tool)
        self._places: list[tuple[Json, str | int]] = []
        """The schemas of the open containers, each with the key of its current member or the number of its next element."""
        self._key: list[str] = []

    @property
    def is_suspicious(self) -> bool:
        return self._wrong is not None

    def feed(self, piece: str) -> int:
        if self._wrong is None:
            super().feed(piece)
        begun = self._wrapper_begins(self._head + piece) if self._head is not None else None
        return begun if begun is not None else self.length if self._wrong is None else self._wrong

    def _wrapper_begins(self, head: str) -> int | None:
        """Return the offset of a first key that wraps the arguments, or may wrap them."""
        begun = _FIRST_KEY.match(head)
        key = begun["key"] if begun is not None else None
        if begun is not None and begun.end() == len(head) and not begun["end"]:
            self._head = head if key is None or any(name.startswith(key) for name in self._wrappers) else None
            return None if key is None or self._head is None else begun.start("key") - 1
        self._head = None if head.strip() else head
        if begun is None or key not in self._wrappers or not begun["end"]:
            return None
        self._wrong = begun.start("key") - 1
        return self._wrong

    def _value_begins(self, character: str, offset: int) -> None:
        place = self._place()
        if place is not None and self._wrong is None:
            kind = _KINDS.get(character, "number")
            allowed = kinds(place, self._root)
            readable = kind == "string" or (kind in ("number", "boolean") and "string" in allowed)
            if kind not in allowed and readable:
                self._wrong = offset
        if character in "{[":
            inner = place if isinstance(place, dict) and not _INSIDE[character].isdisjoint(place) else None
            self._places.append((inner, 0 if character == "[" else ""))

    def _may_skip(self) -> bool:
        return self._places[-1][0] is None

    def _place(self) -> Json:
        """Return the schema of the value that begins."""
        if not self._places:
            return self._root
        around, at = self._places[-1]
        if isinstance(at, int):
            self._places[-1] = (around, at + 1)
        return inner_schema(around, at, self._root)

    def _key_text(self, text: str) -> None:
        self._key.append(text)

    def _key_ends(self) -> None:
        raw = "".join(self._key)
        self._key.clear()
        self._places[-1] = (self._places[-1][0], json.loads(f'"{raw}"') if "\\" in raw else raw)

    def _container_ends(self) -> None:
        self._places.pop()


_PARTS = ("allOf", "anyOf", "oneOf", "$ref")
_INSIDE = {
    "[": frozenset(("items", "prefixItems", "additionalItems", *_PARTS)),
    "{": frozenset(("properties", "patternProperties", "additionalProperties", *_PARTS)),
}
"""By bracket: the keywords of a schema that describe the contents of a container."""
_KINDS = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}


class PatternWatcher:
    """Watcher of text that matches a pattern. Text that may begin a match is held back."""

    __slots__ = ("_firsts", "_length", "_pattern", "_tail", "_wrong")
    complete = False

    def __init__(self, pattern: re.Pattern[str], firsts: str) -> None:
        """`firsts`: the characters with which a match begins."""
        self._pattern, self._firsts = pattern, firsts
        self._length = 0
        self._tail = ""
        self._wrong: int | None = None

    @property
    def is_suspicious(self) -> bool:
        return self._wrong is not None

    def feed(self, piece: str) -> int:
        self._length += len(piece)
        if self._wrong is None and (self._tail or any(first in piece for first in self._firsts)):
            text = self._tail + piece
            found = self._pattern.search(text)
            if found is not None:
                self._wrong = self._length - len(text) + found.start()
            else:
                cut = cut_at(self._pattern, text, max(len(text) - _LONGEST_MATCH, 0))
                self._tail = "" if cut is None else text[cut:]
        return self._length - len(self._tail) if self._wrong is None else self._wrong


_LONGEST_MATCH = 512
_CLOSER = rf"(?:<|\\u003[cC])(?:(?:/|\\/)\s?(?:{any_of(faults.TAGS)})\s?|\|[A-Za-z][\w-]{{0,39}}\|)(?:>|\\u003[eE])"
"""A closing tag or a control token in the spellings of JSON."""
_AT_END = lazy_pattern(rf'(?:{_CLOSER}(?:\s|\\[nrt])*){{1,16}}"')
_THOUGHT = lazy_pattern(
    rf'[:\[,]\s{{0,64}}"(?:\s|\\[nrt]){{0,64}}(?:{SPELT_OPENER.pattern})|{SPELT_TAG.pattern}', SPELT_TAG.flags
)


def markup_watcher() -> PatternWatcher:
    """Return a watcher of closing tags at the end of strings."""
    return PatternWatcher(_AT_END, "<\\")


def thought_watcher() -> PatternWatcher:
    """Return a watcher of native tags of reasoning. At the beginning of a string, the string is held back too."""
    return PatternWatcher(_THOUGHT, ":[,<&\\")


@lru_cache(maxsize=64)
def _voids(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(
        rf'[{{,]\s{{0,64}}"(?:{any_of(names)})"\s{{0,8}}:\s{{0,8}}"(?:null|undefined|none|nil|nan)"', re.IGNORECASE
    )


def void_watcher(names: frozenset[str]) -> PatternWatcher:
    """Return a watcher of members of these names whose value is a word for nothing: `"dir": "null"`.

    A repair removes the comma before the member too.
    """
    return PatternWatcher(_voids(names), "{,")


# --- changes --------------------------------------------------------------------------------------------------------


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


def separate_values(call: ToolCall, request: Request | None) -> Change | None:
    """Return a repair of concatenated arguments: one value, or one for each call; None if that needs a guess."""
    found = concatenated(call)
    if found is None:
        return None
    if found.start:
        return _one_source(call, found, request)
    parallel = request is None or request.parallel_tool_calls is not False
    match found.shape:
        case "equal" if all(piece.name in (None, "", call.name) for piece in call.pieces):
            filled = (number for number, value in enumerate(found.values) if is_filled(value))
            text = _piece(found.source, next(filled, 0))
            shown = excerpt(text)
            return Change(text, "safe", f"keep one value: {shown}", f"kept one value: {shown}", offset=found.offset)
        case "differ" if parallel and call.form == "function":
            calls: list[Separated] = []
            seen: set[str] = set()
            for number, value in enumerate(found.values):
                if not is_filled(value):
                    continue
                name, id_ = _label(call, found.source, number)
                if not isinstance(value, dict) or not accepts(_tool(request, name), value):
                    return None
                key = f"{name} {faults.canonical(value)}"
                if key not in seen:
                    seen.add(key)
                    calls.append(Separated(_piece(found.source, number), name, id_))
            first, *others = calls
            if first.name != call.name:
                return None  # the first value is empty, and the call of the other tool would replace the call
            title, done = f"split into {len(calls)} calls", f"split the arguments into {len(calls)} calls"
            return Change(first.text, "unsafe", title, done, tuple(others), found.offset)
        case "grow":
            text = found.source.text
            title, done = "pass on what each delta adds", "passed on what each delta adds"
            return Change(text, "safe", title, done, offset=found.offset)
        case "continues":
            return _joined(call, call.arguments, call.arguments.text[found.offset :], found.offset, request)
    return None


def _tool(request: Request | None, name: str | None) -> Tool | None:
    return request.tool(name) if request is not None else None


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


def _joined(call: ToolCall, first: Arguments, rest: str, offset: int, request: Request | None) -> Change | None:
    """Return the object of a complete object and the members that follow it, if nothing is lost."""
    begun, more = first.values[0], rest.lstrip(_BLANK)
    if not isinstance(begun, dict) or not more.startswith(","):
        return None
    text = first.text[: first.ends[0] - 1] + (more if begun else more[1:])
    value = Arguments(text).mapping
    added = Arguments("{" + more[1:]).mapping
    if value is None or added is None or added.keys() & begun.keys() or not added:
        return None
    if accepts(_tool(request, call.name), value) is False:
        return None
    title, done = f"join the parts: {excerpt(text)}", f"joined the parts of the arguments: {excerpt(text)}"
    return Change(text, "unsafe", title, done, offset=offset)


def _one_source(call: ToolCall, found: Concatenated, request: Request | None) -> Change | None:
    """Return the deltas instead of start input and deltas. Nothing is lost if they hold all members of the start."""
    assert call.start_input is not None
    deltas = found.source
    match found.shape:
        case "equal":
            telling = [number for number, value in enumerate(deltas.values) if is_filled(value)]
            text = _piece(deltas, telling[0]) if telling else call.start_input.text
            done = "kept one of the start's input and the deltas, which say the same"
            return Change(text, "safe", f"keep one value: {excerpt(text)}", done)
        case "continues":
            return _joined(call, call.start_input, call.deltas, 0, request) if not deltas.values else None
        case "differ":
            start, won = call.start_input.value, deltas.mapping
            if not isinstance(start, dict) or won is None:
                return None
            if faults.canonical({**won, **start}) == faults.canonical(won):
                what = "the deltas, which say all that the start does"
                return Change(call.deltas, "safe", f"keep {what}", f"kept {what}")
            if accepts(_tool(request, call.name), won):
                title = "keep the deltas, drop the input of the start"
                return Change(call.deltas, "unsafe", title, "kept the deltas, dropped the input of the start")
    return None


# --- no JSON object ----------------------------------------------------------------------------------------------------


def repair_flaw(call: ToolCall, found: Flaw, tool: Tool | None) -> Change | None:
    """Return arguments without their flaw; None if that needs a guess, does not fit, or cannot continue a stream.

    A call without a name is not given empty arguments, because without both it is no call.
    """
    value = found.repaired
    if value is None or not (value or call.name) or (tool is not None and accepts(tool, value) is False):
        return None
    made = continued(call.arguments.text, value, SyntaxWatcher())
    if made is None:
        return None
    shown = excerpt(write(value))
    return Change(made.text, "unsafe", f"write them as {shown}", f"wrote the arguments, {found.words}, as {shown}")


def write_as_text(call: ToolCall) -> Change:
    return Change(call.arguments.text, "safe", "write them as text", "wrote the arguments as text")


def coerce_types(call: ToolCall, tool: Tool, schema: Validator) -> Change | None:
    """Return arguments with converted types, or without their wrapper, if that makes them valid."""
    arguments = call.arguments.mapping
    if arguments is None or concatenated(call) is not None:
        return None
    inner = unwrapped(arguments, tool)
    fitting = inner if inner is None or schema.accepts(inner) else schema.coerced(inner)
    made = continued(call.arguments.text, fitting, KindWatcher(tool)) if isinstance(fitting, dict) else None
    if made is not None:
        what = "the arguments out of their wrapper"
        return Change(made.text, "unsafe", f"take {what}", f"took {what}")
    coerced = schema.coerced(arguments)
    made = continued(call.arguments.text, coerced, KindWatcher(tool)) if isinstance(coerced, dict) else None
    if made is None or not isinstance(coerced, dict):
        return None
    changed = ", ".join([name for name, value in coerced.items() if arguments[name] is not value][:4])
    return Change(made.text, "unsafe", f"coerce the type of {changed}", f"coerced the type of {changed}")


def unwrapped(arguments: dict[str, Json], tool: Tool) -> dict[str, Json] | None:
    """Return the object in `{"arguments": {…}}`, or in a whole call in place of its arguments, if it fits the schema."""
    properties = properties_of(tool.schema)
    wrappers = [key for key in arguments if key in WRAPPERS and key not in properties]
    if len(wrappers) != 1 or not arguments.keys() <= {wrappers[0], "name"} - properties.keys():
        return None
    if arguments.get("name", tool.name) != tool.name:
        return None
    inner = Arguments(value).mapping if isinstance(value := arguments[wrappers[0]], str) else value
    return inner if isinstance(inner, dict) and inner.keys() <= properties.keys() else None


def continued(text: str, value: Json, watcher: Watcher) -> Rewritten | None:
    """Return a text of `value` that begins with the part of `text` that the watcher sends; None without one."""
    begun = text[: watcher.feed(text)]
    rest = continuation(begun, value)
    return None if rest is None else Rewritten(begun + rest, len(begun))


# --- arguments of earlier calls ---------------------------------------------------------------------------------------
# Calls in a request's history whose arguments have another type than the API takes. A client in a language without a
# difference between an empty list and an empty map (PHP) sends `[]` for `{}`; others send the value of the only parameter
# alone. Servers refuse such a history, or their chat template raises.

_EMPTY: tuple[Json, ...] = ([], None, "")
_JSON = ("{", "[", '"', "`", "<")
"""First characters of JSON, and of the markup that servers and models put around it."""


class PastFault(NamedTuple):
    """A call of the history whose arguments are damaged, or of a wrong type (then `layer` is known).

    `right`: the arguments as JSON, which `edit` writes; both are None if that needs a guess. `concatenated`: they are
    several values; `nothing`: they are empty or null.
    """

    call: ToolCall
    words: str
    right: str | None
    safety: Safety = "unsafe"
    layer: Layer | None = None
    concatenated: bool = False
    nothing: bool = False
    edit: Edit | None = None

    @property
    def name(self) -> str:
        return self.call.name or "a call without a name"


def past_faults(exchange: Exchange, ledger: Ledger | None) -> Iterator[PastFault]:
    """Yield the faulty calls of a request's history. Without a ledger, wrong types are not looked for."""
    request = exchange.request
    for call in request.calls if request is not None else ():
        if request is None or call.form == "custom" or REDACTED in call.arguments.text:
            continue
        own = traits(request.api)
        place = f"{call.pointer}/{'arguments' if call.form == 'legacy' else history_of(request.api).arguments}"
        given = at(request.body, place)
        fault = _damaged(call, request, place, given)
        words = _mistyped(given, call, own) if fault is None and ledger is not None else None
        if words and ledger is not None:
            issued = ledger.issued(call.id, exchange.conversation) if call.id else None
            passed = issued is not None and issued.arguments == call.arguments.text
            known = _right(given, issued.arguments if issued is not None and issued.name == call.name else None)
            safety: Safety = "safe" if known is not None else "unsafe"
            right = known if known is not None else _bound(given, request.tool(call.name))
            written = write(right) if right is not None else None
            fault = PastFault(call, words, written, safety, "model" if passed else "client")
        if fault is not None:
            value: Json = fault.right if own.arguments == "text" or fault.right is None else json.loads(fault.right)
            yield fault._replace(edit=Edit("replace", place, value) if fault.right is not None else None)


def _damaged(call: ToolCall, request: Request, place: str, given: Json) -> PastFault | None:
    """Return the damage of arguments. Null counts, except for Gemini and Ollama, which read it like no arguments."""
    form = traits(request.api).arguments
    if given is None and form != "object" and call.name:
        holder, _, name = place.rpartition("/")
        parent = at(request.body, holder)
        is_null = isinstance(parent, dict) and name in parent  # as opposed to a missing member
        return PastFault(call, "null", "{}", "safe", nothing=True) if is_null else None
    if not isinstance(given, str) or _is_object(call.arguments.text):
        return None
    if not given.strip(_BLANK):
        return PastFault(call, "empty", "{}", "safe", nothing=True) if form == "text" else None
    read = replace(call, arguments=Arguments(given), start_input=None)
    if (several := concatenated(read)) is not None:
        words = f"several values: {excerpt(given, 60)}"
        change = separate_values(read, None)
        if change is not None and not change.separated:
            return PastFault(call, words, change.text, change.safety, concatenated=True)
        first = next((one for one in several.source.values if is_filled(one)), None)
        return PastFault(call, words, write(first) if isinstance(first, dict) else None, concatenated=True)
    if (len(read.arguments.values) == 1 and not read.arguments.rest) or given.lstrip()[:1] not in _JSON:
        return None  # of another type
    found = flaw(read, None)
    change = repair_flaw(read, found, None) if found is not None else None
    # Without a repair, the fault was reported with the reply.
    return PastFault(call, found.words, change.text) if found is not None and change is not None else None


@remembered
def _is_object(text: str) -> bool:
    return Arguments(text).mapping is not None


def _mistyped(given: Json, call: ToolCall, own: Traits) -> str | None:
    """Return words for arguments of another type than the API takes; None for arguments that are left out."""
    if given is None:
        return None
    if own.arguments != "text":
        return None if isinstance(given, dict) else f"{faults.type_words(given)} instead of an object"
    if isinstance(given, dict):
        return "JSON itself where the API has JSON as text" if own.has_only_strings else None
    if not isinstance(given, str):
        return f"{faults.type_words(given)} where the API has an object as text"
    arguments = Arguments(given)
    if not given.strip() or arguments.mapping is not None:
        return None
    if len(arguments.values) == 1 and not arguments.rest:
        found = flaw(call, None)
        return found.words if found is not None else None
    if arguments.values or given.lstrip()[:1] in _JSON:
        return None  # damaged by the model
    return f"bare text instead of an object: {excerpt(given, 40)!r}"


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
    if not isinstance(value, str) or value.lstrip()[:1] in _JSON or value.strip().lower() in faults.NO_VALUES:
        return None
    return bind(tool, value)
