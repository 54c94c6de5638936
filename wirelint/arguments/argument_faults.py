"""Faults of a call's argument text. Each call has one verdict, so that only one rule reports it.

`concatenated` finds several values instead of one, `flaw` any other reason why the text is no JSON object;
`claims_complete` decides whether a cut is a fault.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wirelint.apis.traits import ending, traits
from wirelint.arguments.argument_markup import closing_tag, opening_tag
from wirelint.arguments.json_continuation import Scanner, same
from wirelint.arguments.schemas import kind_of
from wirelint.dialects import jsontext
from wirelint.dialects.declared import required
from wirelint.jsonvalues import Json
from wirelint.model import Arguments, Choice, Exchange, Tool, ToolCall
from wirelint.text.control_tokens import find
from wirelint.text.escaping import REDACTED as REDACTED
from wirelint.text.escaping import excerpt

# Repair of damaged JSON, with proof that nothing is added or lost.
#
# Theory of operation. Two readers propose a value for a damaged text: wirelint's own, for defects that need no guess,
# and a repair library, which handles many more defects and guesses. A proposal counts only if the text spells it: the
# text holds every key and scalar of the proposal in order, with its brackets and colons, and between them only commas,
# quotes and white space. A cut text is not completed, and nothing is left out.

_MOST_GUESSED = 64 << 10
"""Longest text for the library, which reads a few hundred kilobytes a second."""
_BLANK = " \t\r\n"
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$]*")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS = {True: ("true", "True", "TRUE"), False: ("false", "False", "FALSE"), None: ("null", "None", "NULL")}
_QUOTED = "|".join(rf"{begin}(?:[^{end}\\]|\\.)*+{end}" for begin, end in ('""', "''", "\u201c\u201d", "\u2018\u2019"))
_TOKEN = re.compile(
    rf"[\s,]*(?:(?P<mark>[{{}}\[\]:])|(?P<quoted>{_QUOTED})|(?P<word>[^\s,{{}}\[\]:\"'\u201c\u2018]+))", re.DOTALL
)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_ESCAPED = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_DEEPEST = 64


def repair_damaged(text: str) -> dict[str, Json] | None:
    """Return the object that a damaged text spells; None if it spells none without additions or omissions."""
    text = text.strip(_BLANK)
    if not text.startswith("{"):
        return None
    return next((value for value in _proposals(text) if isinstance(value, dict) and spells(text, value)), None)


def _proposals(text: str) -> Iterator[Json]:
    own = jsontext.repair(text)
    if own is not None and not own.missing:
        yield own.value
    if len(text) <= _MOST_GUESSED:
        import json_repair  # 20 ms, which few captures need

        try:
            proposed: Json = json_repair.loads(text, skip_json_loads=True)  # type: ignore[assignment]
        except (ValueError, RecursionError):  # nested too deep for it
            return
        yield proposed


def spells(text: str, value: Json) -> bool:
    """Return True if a text spells this value in spite of wrong punctuation and surplus brackets at its end."""
    place = 0
    for kind, part in _parts(value, 0):
        token = _TOKEN.match(text, place)
        if token is None or not _is_spelled(token, kind, part):
            return False
        place = token.end()
    return not text[place:].strip(f"}}],{_BLANK}")


def _parts(value: Json, depth: int) -> Iterator[tuple[Literal["mark", "key", "value"], Json]]:
    """Yield the brackets, colons, keys and scalars of a value, in the order of its text."""
    match value:
        case dict() if depth <= _DEEPEST:
            yield "mark", "{"
            for key, inner in value.items():
                yield from (("key", key), ("mark", ":"))
                yield from _parts(inner, depth + 1)
            yield "mark", "}"
        case list() if depth <= _DEEPEST:
            yield "mark", "["
            for inner in value:
                yield from _parts(inner, depth + 1)
            yield "mark", "]"
        case _:
            yield "value", value


def _is_spelled(token: re.Match[str], kind: str, value: Json) -> bool:
    word = token["word"]
    if token["quoted"]:
        return kind != "mark" and _unescaped(token["quoted"][1:-1]) == value
    if word is None:
        return kind == "mark" and token["mark"] == value
    match value:
        case bool() | None:
            return word in _WORDS[value]
        case int() | float() if _NUMBER.fullmatch(word):
            digits = word.lstrip("+")
            return same(int(digits) if re.fullmatch(r"-?[0-9]{1,400}", digits) else float(digits), value)
        case _:
            return kind == "key" and word == value and _BARE_KEY.fullmatch(word) is not None


def _unescaped(body: str) -> str | None:
    r"""Return the text of a quoted string. An escape that JSON does not have means itself (`\d`); then `\n` may, too,
    and the text is unknown."""
    escapes = {escape[0] for escape in _ESCAPED.finditer(body)}
    if any(_character(one) == one for one in escapes) and any(one[1] in "bfnrtu" for one in escapes):
        return None
    return _ESCAPED.sub(lambda one: _character(one[0]), body)


def _character(escape: str) -> str:
    """Return the character of an escape, or the escape itself if JSON does not have it."""
    if len(escape) > 2:
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    return _ESCAPES.get(escape[1], escape)


def unquoted(text: str) -> dict[str, Json] | None:
    """Return the object in a text that was encoded as a JSON string and lost the quotes: `{\\"city\\":\\"Oslo\\"}`."""
    if not text.lstrip(_BLANK).startswith('{\\"'):
        return None
    try:
        inner = json.loads(f'"{text}"')
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


UNREAD = frozenset({"broken-json", "unknown-field", "cut-event"})
"""Faults after which the content of a reply is unknown."""


def claims_complete(exchange: Exchange, choice: Choice, call: ToolCall) -> bool:
    """Return True if a call claims to be complete: no token limit, filter, error or lost event cut the reply in it.

    A cut can only be in the last call of a reply.
    """
    reply = exchange.reply
    if reply is None or not exchange.ok or any(fault.kind == "broken-json" for fault in reply.faults):
        return False  # the content of an unreadable event is unknown
    if _is_followed(exchange, choice, call):
        return True
    if reply.error is not None:
        return False
    if choice.finish_reason is None:
        return reply.terminated
    return is_normal_end(choice.finish_reason)


def has_ended(exchange: Exchange, choice: Choice, call: ToolCall) -> bool:
    """Return True if no more text of a call can arrive, for any reason."""
    reply = exchange.reply
    if reply is None or not exchange.ok:
        return False
    ended = reply.error is None and (choice.finish_reason is not None or reply.terminated)
    return ended or _is_followed(exchange, choice, call)


def lacks_finish_reason(exchange: Exchange, choice: Choice) -> bool:
    """Return True if a candidate holds complete calls, one with a name, and ends without a finish reason.

    Clients of APIs with a reason for calls (`Traits.has_reason_for_calls`) then wait or run nothing.
    """
    reply = exchange.reply
    if (
        reply is None
        or choice.finish_reason is not None
        or not choice.calls
        or not traits(exchange.api).has_reason_for_calls
    ):
        return False
    if not reply.terminated or reply.error is not None or any(fault.kind in UNREAD for fault in reply.faults):
        return False
    if not any(call.name for call in choice.calls):
        return False
    last = choice.calls[-1]
    return last.form == "custom" or last.arguments.mapping is not None or not last.arguments.text.strip(_BLANK)


def is_normal_end(reason: str) -> bool:
    """Return True if, by its finish reason, the model ended by itself."""
    return ending(reason) in ("ended", "stopped", "calls")


def _is_followed(exchange: Exchange, choice: Choice, call: ToolCall) -> bool:
    """Return True if another call follows; in APIs with successive blocks, any other part."""
    if traits(exchange.api).has_block_events:
        return choice.parts[-1] is not call
    return next(part for part in reversed(choice.parts) if isinstance(part, ToolCall)) is not call


@dataclass(frozen=True, slots=True)
class Concatenated:
    """Several values in place of one.

    `shape`: the non-empty values are `equal`, or `differ`; the text after the first value `continues` it after a comma, or
    is `cut` off; the deltas `grow`, each repeats all earlier ones. `start`: the first value is the input of an Anthropic
    start event. `offset`: the start of the second value in the argument text.
    """

    values: tuple[Json, ...]
    rest: str
    shape: Literal["equal", "differ", "continues", "cut", "grow"]
    start: bool
    offset: int = 0

    @property
    def kept(self) -> Json:
        """Return the last non-empty value, else the first one."""
        return next(filter(is_filled, reversed(self.values)), self.values[0])


def concatenated(call: ToolCall) -> Concatenated | None:
    """Return the values of a call that holds more than one. Free text (custom tools) is no JSON and does not count."""
    if call.form == "custom":
        return None
    if (grown := _grown(call)) is not None:
        text, offset = grown
        return Concatenated((Arguments(text).value,), "", "grow", start=False, offset=offset)
    if call.start_input is not None and call.deltas.strip(_BLANK):
        deltas = Arguments(call.deltas)
        return Concatenated(
            (*call.start_input.values, *deltas.values), deltas.rest, _shape(call.start_input, deltas), start=True
        )
    value = call.arguments.value
    arguments = Arguments(value) if isinstance(value, str) else call.arguments  # a client decodes them, too
    if not arguments.values or (len(arguments.values) == 1 and not _continues(arguments)):
        return None
    offset = arguments.ends[0] if arguments is call.arguments else 0
    return Concatenated(arguments.values, arguments.rest, _shape(arguments), start=False, offset=offset)


def _grown(call: ToolCall) -> tuple[str, int] | None:
    """Return the last delta of a call whose deltas each repeat all earlier ones, and the offset of the second one.

    Joined they are no JSON. Two of them count only if the last is an object; equal deltas are repeated values.
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
    two = steps == 1 and Arguments(begun).mapping is not None  # joined they are cut off, if they are not broken
    return (begun, offset) if two or (steps > 1 and is_broken(call.deltas)) else None


def is_broken(text: str) -> bool:
    """Return True if a text is no JSON object, whole or cut."""
    scanner = Scanner()
    scanner.feed(text)
    return scanner.broken is not None or scanner.second is not None or scanner.top not in ("", "{")


def _continues(arguments: Arguments) -> bool:
    """Return True if another object, or more members, follow the first object: `{…}{…`, `{…},{…`, `{…},"k":1}`."""
    rest = arguments.rest
    return (
        isinstance(arguments.values[0], dict) and rest.lstrip(f",{_BLANK}")[:1] in ("{", '"') and rest[:1] in ("{", ",")
    )


def _shape(*sources: Arguments) -> Literal["equal", "differ", "continues", "cut"]:
    rest = sources[-1].rest
    if rest:
        return "continues" if rest.startswith(",") else "cut"
    said = {canonical(value) for source in sources for value in source.values if is_filled(value)}
    return "equal" if len(said) <= 1 else "differ"


def is_filled(value: Json) -> bool:
    """Return True if a value is not empty."""
    return value not in ({}, [], None, "")


def canonical(value: Json) -> str:
    """Return the JSON text of a value with sorted members: equal values have equal texts."""
    return json.dumps(value, sort_keys=True)


_TYPE = "json"
_ENTITY = re.compile(r"\{\s*&(?:quot|#34|#[xX]22);")
NO_VALUES = frozenset({"none", "undefined", "null", "nil"})


@dataclass(frozen=True, slots=True)
class Flaw:
    """The fault of arguments that are no JSON object. `repaired`: the most likely value, None if that needs a guess."""

    words: str
    layer: Literal["model", "gateway"] = "model"
    repaired: dict[str, Json] | None = None
    cut: bool = False
    harmless: bool = False


_MOST_LAYERS = 2
"""Most layers of tokens around arguments that are removed. A text of `<|python<|python…` has one for each of its
tokens."""


def flaw(call: ToolCall, tool: Tool | None, layers: int = _MOST_LAYERS) -> Flaw | None:
    """Return the fault of arguments that are neither one JSON object nor concatenated values.

    `layers`: how many times tokens may be removed from the edges of the text.
    """
    arguments = call.arguments
    if call.form == "custom" or arguments.mapping is not None or concatenated(call) is not None:
        return None
    needed = required(tool)
    if not arguments.text.strip(_BLANK):
        return Flaw(f"empty, and {', '.join(needed[:4])} must be given") if needed else None
    if len(arguments.values) == 1 and not arguments.rest:
        return _other_value(arguments.values[0], layers, needs_some=bool(needed))
    if (word := arguments.text.strip(_BLANK)).lower() in NO_VALUES:
        return Flaw(f"{word} instead of an object", repaired=None if needed else {})
    return _unreadable(arguments, layers)


def _other_value(value: Json, layers: int, *, needs_some: bool) -> Flaw:
    words, nothing = f"{type_words(value)} instead of an object", None if needs_some else dict[str, Json]()
    match value:
        case str():
            bare = value.strip(_BLANK).lower()
            if not bare or bare in NO_VALUES:  # `""` for no arguments, which servers refuse when clients echo it
                return Flaw(words if bare else "an empty string instead of an object", repaired=nothing)
            inner = Arguments(value)
            if inner.mapping is not None:
                return Flaw("a JSON object encoded twice", "gateway", inner.mapping)
            if isinstance(inner.value, str) and (deeper := Arguments(inner.value).mapping) is not None:
                return Flaw("a JSON object encoded three times", "gateway", deeper)
            text = value.lstrip(_BLANK)
            if text.startswith(("{", "```")) or _without_tokens(value, layers) is not None:
                within = _unreadable(inner, layers)
                if within.repaired is not None or text.startswith("{"):  # a fence may hold any code
                    return Flaw(f"a string with damaged JSON in it, {within.words}", "gateway", within.repaired)
            return Flaw(words)
        case None | []:
            return Flaw(words, repaired=nothing, harmless=value is None and not needs_some)
        case [dict(only)]:
            return Flaw("an array around the object", repaired=only)
        case _:
            return Flaw(words)


def type_words(value: Json) -> str:
    """Return the JSON type of a value that is no object, with its article."""
    if value is None or value == "":
        return "null" if value is None else "an empty string"
    return "an array" if isinstance(value, list) else f"a {kind_of(value)}"


def _unreadable(arguments: Arguments, layers: int) -> Flaw:
    text = arguments.text.strip(_BLANK)
    if (framed := _without_tokens(text, layers)) is not None:
        return framed
    if text.startswith("```"):
        inner = Arguments(text.partition("\n")[2].strip(_BLANK).removesuffix("```"))
        return Flaw("in a code fence", repaired=inner.mapping or repair_damaged(inner.text))
    if (typed := Arguments(text.removeprefix(_TYPE)).mapping) is not None:
        return Flaw("preceded by the word `json`", "gateway", typed)
    if arguments.values:
        value = arguments.values[0]
        # The object counts before surplus brackets, commas or the end of a fence, not before other text.
        repaired = value if isinstance(value, dict) and not arguments.rest.strip(f"}}],`{_BLANK}") else None
        return Flaw(f"followed by {excerpt(arguments.rest, 30)!r}", "gateway", repaired)
    if (bare := unquoted(text)) is not None:
        return Flaw("a JSON object encoded twice, without the quotes around it", "gateway", bare)
    if text.startswith("{{") and (doubled := Arguments(text[1:-1]).mapping) is not None:
        return Flaw("in doubled braces", repaired=doubled)
    if _ENTITY.match(text) and (plain := Arguments(html.unescape(text)).mapping) is not None:
        return Flaw("with HTML's entities for quotes", "gateway", plain)
    words, cut = _defect(text)
    return Flaw(words, "gateway" if cut else "model", None if cut else repair_damaged(text), cut=cut)


def between_tokens(text: str) -> str | None:
    """Return the text without the control tokens and the tags of tool calls at its edges; None if there are none."""
    tokens = find(text)
    start, end, number = 0, len(text), len(tokens) - 1
    for token in tokens:
        start = _after_tags(text, start)
        if token.start > start:
            break
        start = max(start, token.end)
        start += len(_TYPE) * text.startswith(_TYPE, start)  # `<|constrain|>json<|message|>{…}`
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


def _without_tokens(text: str, layers: int) -> Flaw | None:
    """Return the fault of arguments that are an object between tokens at their edges."""
    between = between_tokens(text) if layers else None
    if between is None:
        return None
    call = ToolCall(None, None, Arguments(between), "")
    found = flaw(call, None, layers - 1) if between else None
    value = call.arguments.mapping if found is None else found.repaired
    if between and value is None:
        return None
    place = text.index(between)
    tokens = f"{text[:place]} {text[place + len(between) :]}".strip()
    return Flaw(f"between control tokens ({excerpt(tokens, 60)})", "gateway", value or {})


_HALF_TOKEN = re.compile(r"[\w.+-]{1,12}|\\?u[0-9A-Fa-f]{0,3}")
_CONTROLS = {"\n": "line feed", "\r": "carriage return", "\t": "tab"}


def _defect(text: str) -> tuple[str, bool]:
    """Return the first error of a JSON parser, and whether the text ends there."""
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
    # Python 3.13 reports a comma before a bracket; earlier versions point at the bracket.
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
