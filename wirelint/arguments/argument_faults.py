"""What may be wrong with the argument text of a call. Each call has one verdict, so that only one rule speaks of it.

`glued` finds more than one value where one belongs, `flaw` what else keeps the text from being a JSON object;
`came_whole` tells whether a cut would be anybody's fault.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from wirelint.apis.traits import ending, traits
from wirelint.arguments.argument_markup import closing_tag, opening_tag
from wirelint.arguments.json_continuation import Scanner
from wirelint.arguments.json_repair import mended, unquoted
from wirelint.arguments.schemas import required
from wirelint.model import Arguments, Choice, Exchange, Json, Tool, ToolCall
from wirelint.text.control_tokens import find
from wirelint.text.excerpts import REDACTED as REDACTED
from wirelint.text.excerpts import excerpt

"""How the mark begins that stands in the place of a secret."""

UNREAD = frozenset({"broken-json", "unknown-field", "cut-event"})
"""Faults after which it is not known what a reply holds."""

_BLANK = " \t\r\n"


def came_whole(exchange: Exchange, choice: Choice, call: ToolCall) -> bool:
    """Return True if a call claims to be all that there was. A cut by length, a filter, an error, a lost line does not.

    What cuts a reply cuts its last call; those before it were over.
    """
    reply = exchange.reply
    if reply is None or not exchange.ok or any(fault.kind == "broken-json" for fault in reply.faults):
        return False  # where an event could not be read, what was in it is unknown
    if _is_followed(exchange, choice, call):
        return True
    if reply.error is not None:
        return False
    if choice.finish_reason is None:
        return reply.terminated
    return claims_all(choice.finish_reason)


def came_to_an_end(exchange: Exchange, choice: Choice, call: ToolCall) -> bool:
    """Return True if nothing more can have been meant to come for a call, whatever the reason."""
    reply = exchange.reply
    if reply is None or not exchange.ok:
        return False
    ended = reply.error is None and (choice.finish_reason is not None or reply.terminated)
    return ended or _is_followed(exchange, choice, call)


def is_unstated(exchange: Exchange, choice: Choice) -> bool:
    """Return True if a candidate holds calls, all of them whole, and ends without a finish reason.

    Where the API tells calls by the reason alone (`Traits.tells_calls`), clients then wait for more, or run nothing.
    """
    reply = exchange.reply
    if reply is None or choice.finish_reason is not None or not choice.calls or not traits(exchange.api).tells_calls:
        return False
    if not reply.terminated or reply.error is not None or any(fault.kind in UNREAD for fault in reply.faults):
        return False
    last = choice.calls[-1]
    return last.form == "custom" or last.arguments.mapping is not None or not last.arguments.text.strip(_BLANK)


def claims_all(reason: str) -> bool:
    """Return True if a finish reason says that the model was done."""
    return ending(reason) in ("ended", "stopped", "calls")


def _is_followed(exchange: Exchange, choice: Choice, call: ToolCall) -> bool:
    """Return True if another call follows. Where blocks come one after the other, any part will do."""
    if traits(exchange.api).blocks:
        return choice.parts[-1] is not call
    return next(part for part in reversed(choice.parts) if isinstance(part, ToolCall)) is not call


@dataclass(frozen=True, slots=True)
class Glued:
    """More than one value in the place of one.

    `shape`: the values that say something are `equal`, or `differ`; what follows the first value `continues` it after a
    comma, or is `cut` off; the deltas `grow`, each repeats all that came before. `start`: the first value is the input of
    an Anthropic start event. `offset` in the argument text is where the second one begins.
    """

    values: tuple[Json, ...]
    rest: str
    shape: Literal["equal", "differ", "continues", "cut", "grow"]
    start: bool
    offset: int = 0

    @property
    def kept(self) -> Json:
        """The value that stays when only one says anything."""
        return next(filter(_says_something, reversed(self.values)), self.values[0])


def glued(call: ToolCall) -> Glued | None:
    """The values of a call that holds more than one. Free text (custom tools) is no JSON and is never glued."""
    if call.form == "custom":
        return None
    if (grown := _grown(call)) is not None:
        text, offset = grown
        return Glued((Arguments(text).value,), "", "grow", start=False, offset=offset)
    if call.start_input is not None and call.deltas.strip(_BLANK):
        deltas = Arguments(call.deltas)
        return Glued(
            (*call.start_input.values, *deltas.values), deltas.rest, _shape(call.start_input, deltas), start=True
        )
    arguments = _unwrapped(call.arguments)
    if not arguments.values or (len(arguments.values) == 1 and not _goes_on(arguments)):
        return None
    offset = arguments.ends[0] if arguments is call.arguments else 0
    return Glued(arguments.values, arguments.rest, _shape(arguments), start=False, offset=offset)


def _grown(call: ToolCall) -> tuple[str, int] | None:
    """The last delta of a call whose deltas each repeat all that came before, and where the second one begins.

    Joined they are no JSON. Two of them tell only if the last is an object; deltas that are equal are values that repeat.
    """
    starts = call.events.starts
    if len(starts) < 2 or call.start_input is not None or call.arguments.mapping is not None:
        return None
    if not call.deltas.startswith(call.deltas[: starts[1]], starts[1]):
        return None
    begun, offset, steps = "", 0, 0
    for start, end in zip(starts, [*starts[1:], len(call.deltas)], strict=True):
        piece = call.deltas[start:end]
        if not piece.startswith(begun):
            return None
        if len(piece) > len(begun) > 0:
            steps += 1
            offset = offset or start
        begun = piece
    told = steps > 1 or (steps == 1 and Arguments(begun).mapping is not None)
    return (begun, offset) if told and breaks(call.deltas) else None


def breaks(text: str) -> bool:
    """Return True if a text is no JSON object, nor the beginning of one."""
    scanner = Scanner()
    scanner.feed(text)
    return scanner.broken is not None or scanner.second is not None or scanner.top not in ("", "{")


def _unwrapped(arguments: Arguments) -> Arguments:
    """Arguments that came as a JSON string are read through it: the string is what a client hands on."""
    value = arguments.value
    return Arguments(value) if isinstance(value, str) else arguments


def _goes_on(arguments: Arguments) -> bool:
    """Return True if another object, or more members, follow the first object: `{…}{…`, `{…},{…`, `{…},"k":1}`."""
    rest = arguments.rest
    return (
        isinstance(arguments.values[0], dict) and rest.lstrip(f",{_BLANK}")[:1] in ("{", '"') and rest[:1] in ("{", ",")
    )


def _shape(*sources: Arguments) -> Literal["equal", "differ", "continues", "cut"]:
    rest = sources[-1].rest
    if rest:
        return "continues" if rest.startswith(",") else "cut"
    said = {_canonical(value) for source in sources for value in source.values if _says_something(value)}
    return "equal" if len(said) <= 1 else "differ"


def _says_something(value: Json) -> bool:
    return value not in ({}, [], None, "")


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why arguments are no JSON object. `repaired`: what they most likely say, None where that would be a guess."""

    words: str
    layer: Literal["model", "gateway"] = "model"
    repaired: dict[str, Json] | None = None
    cut: bool = False
    harmless: bool = False


def flaw(call: ToolCall, tool: Tool | None) -> Flaw | None:
    """What is wrong with the arguments of a call that are neither one JSON object nor glued ones."""
    arguments = call.arguments
    if call.form == "custom" or arguments.mapping is not None or glued(call) is not None:
        return None
    needed = required(tool)
    if not arguments.text.strip(_BLANK):
        return Flaw(f"empty, and {', '.join(needed[:4])} must be given") if needed else None
    if len(arguments.values) == 1 and not arguments.rest:
        return _other_value(arguments.values[0], needs_some=bool(needed))
    return _unreadable(arguments)


def _other_value(value: Json, *, needs_some: bool) -> Flaw:
    match value:
        case str():
            inner = Arguments(value)
            if inner.mapping is not None:
                return Flaw("a JSON object encoded twice", "gateway", inner.mapping)
            text = value.lstrip(_BLANK)
            if text.startswith(("{", "```")) or _without_tokens(value) is not None:
                within = _unreadable(inner)
                if within.repaired is not None or text.startswith("{"):  # a fence may hold any code
                    return Flaw(f"a string with damaged JSON in it, {within.words}", "gateway", within.repaired)
            return Flaw("a string instead of an object")
        case None:
            return Flaw("null instead of an object", harmless=not needs_some)
        case list():
            return Flaw("an array instead of an object")
        case bool():
            return Flaw("a boolean instead of an object")
        case _:
            return Flaw("a number instead of an object")


def _unreadable(arguments: Arguments) -> Flaw:
    text = arguments.text.strip(_BLANK)
    if (framed := _without_tokens(text)) is not None:
        return framed
    if text.startswith("```"):
        inner = Arguments(text.partition("\n")[2].strip(_BLANK).removesuffix("```"))
        return Flaw("in a code fence", repaired=inner.mapping or mended(inner.text))
    if arguments.values:
        return Flaw(f"followed by {excerpt(arguments.rest, 30)!r}", "gateway", _before_closers(arguments))
    if (bare := unquoted(text)) is not None:
        return Flaw("a JSON object encoded twice, without the quotes around it", "gateway", bare)
    words, cut = _defect(text)
    return Flaw(words, "gateway" if cut else "model", None if cut else mended(text), cut=cut)


def between_tokens(text: str) -> str | None:
    """The text between the control tokens and the tags of tool calls at its edges; None if there are none."""
    tokens = find(text)
    start, end, number = 0, len(text), len(tokens) - 1
    for token in tokens:
        start = _after_tags(text, start)
        if token.start > start:
            break
        start = max(start, token.end)
    start = _after_tags(text, start)
    while start < end:
        while text[end - 1] in _BLANK and end - 1 > start:
            end -= 1
        while number >= 0 and tokens[number].end > end:
            number -= 1
        if number >= 0 and tokens[number].end == end:
            end = tokens[number].start
        elif (closer := closing_tag(text, end)) is not None:
            end = closer.start()
        else:
            break
    between = text[start : max(start, end)].strip(_BLANK)
    return between if len(between) < len(text.strip(_BLANK)) else None


def _after_tags(text: str, start: int) -> int:
    while start < len(text):
        if text[start] in _BLANK:
            start += 1
        elif (tag := opening_tag(text, start)) is not None:
            start = tag.end()
        else:
            break
    return start


def _without_tokens(text: str) -> Flaw | None:
    """The verdict on arguments that are an object once the tokens at their edges are gone."""
    between = between_tokens(text)
    if between is None:
        return None
    call = ToolCall(None, None, Arguments(between), "")
    found = flaw(call, None) if between else None
    value = call.arguments.mapping if found is None else found.repaired
    if between and value is None:
        return None
    place = text.index(between)
    tokens = f"{text[:place]} {text[place + len(between) :]}".strip()
    return Flaw(f"between control tokens ({excerpt(tokens, 60)})", "gateway", value or {})


def _before_closers(arguments: Arguments) -> dict[str, Json] | None:
    """The object before surplus brackets or commas; anything else that follows may mean something."""
    value = arguments.values[0]
    return value if isinstance(value, dict) and not arguments.rest.strip(f"}}],{_BLANK}") else None


_HALF_TOKEN = re.compile(r"[\w.+-]{1,12}|\\?u[0-9A-Fa-f]{0,3}")
_CONTROLS = {"\n": "line feed", "\r": "carriage return", "\t": "tab"}


def _defect(text: str) -> tuple[str, bool]:
    """The first thing that a JSON parser stumbles over, and whether it is the end of the text."""
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        return _described(text, error.msg, error.pos)
    except RecursionError:
        return "nested too deep", False
    except ValueError as error:
        return f"with {error}", False
    return "no JSON", False


def _described(text: str, message: str, position: int) -> tuple[str, bool]:
    here = excerpt(text[position : position + 16])
    if position >= len(text) or message.startswith("Unterminated string") or _HALF_TOKEN.fullmatch(text, position):
        return f"cut off after {excerpt(text[-24:])!r}", True
    if message.startswith("Invalid control character"):
        return f"with a raw {_CONTROLS.get(text[position], 'control character')} in a string", False
    if message.startswith("Invalid \\"):
        return f"with an escape that JSON does not have, at {here!r}", False
    # Python 3.13 has words of its own for a comma before a bracket; those before point at the bracket.
    if "trailing comma" in message or (text[position] in "}]" and text[:position].rstrip().endswith(",")):
        return "with a trailing comma", False
    if text[position] == "'":
        return "in single quotes", False
    if text.startswith(("True", "False", "None"), position):
        return f"with Python's {re.match('[A-Za-z]+', here)[0]}", False  # type: ignore[index]
    if message.startswith("Expecting ','"):
        return f"with a quote or a comma amiss before {here!r}", False
    return f"no JSON from {here!r} on", False


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant}, which is no JSON")
