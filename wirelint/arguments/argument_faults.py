"""Faults of a call's argument text. Each call has one verdict, so that only one rule reports it.

`concatenated` finds several values instead of one, `flaw` any other reason why the text is no JSON object, `polluted` the
native markup that a server's parser left in the values; `claims_complete` decides whether a cut is a fault.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from wirelint import lexicon
from wirelint.apis.traits import ending, traits
from wirelint.arguments.json_continuation import Scanner, same
from wirelint.arguments.schemas import kind_of
from wirelint.dialects import jsontext
from wirelint.dialects.declared import properties_of, required
from wirelint.jsonvalues import Json, common_length
from wirelint.model import Arguments, Choice, Exchange, Request, Tool, ToolCall
from wirelint.text import pointers
from wirelint.text.asking import request_holds
from wirelint.text.control_tokens import find
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
    own = jsontext.repair(text) if text.startswith("{") else None
    if own is not None and not own.missing and isinstance(own.value, dict) and spells(text, own.value):
        return own.value
    if len(text) > _MOST_GUESSED or not text.startswith("{"):
        return None
    import json_repair  # 20 ms, which few captures need

    try:
        proposed: Json = json_repair.loads(text, skip_json_loads=True)  # type: ignore[assignment]
    except (ValueError, RecursionError):  # nested too deep for it
        return None
    return proposed if isinstance(proposed, dict) and spells(text, proposed) else None


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
    r"""Return the text of a quoted string; None if it is unknown."""
    # An escape that JSON does not have means itself (`\d`); then `\n` may, too.
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

    `source` is the text that holds them, or the later of two. `shape`: the non-empty values are `equal`, or `differ`; the
    text after the first value `continues` it after a comma, or is `cut` off; the deltas `grow`, each repeats all earlier
    ones. `start`: the first value is the input of an Anthropic start event. `offset`: the start of the second value in the
    argument text.
    """

    values: tuple[Json, ...]
    source: Arguments
    shape: Literal["equal", "differ", "continues", "cut", "grow"]
    start: bool
    offset: int = 0


def concatenated(call: ToolCall) -> Concatenated | None:
    """Return the values of a call that holds more than one. Free text (custom tools) is no JSON and does not count."""
    if call.form == "custom":
        return None
    if (grown := _grown(call)) is not None:
        last, offset = Arguments(grown[0]), grown[1]
        return Concatenated((last.value,), last, "grow", start=False, offset=offset)
    if call.start_input is not None and call.deltas.strip(_BLANK):
        deltas = Arguments(call.deltas)
        shape = _shape(call.start_input, deltas)
        return Concatenated((*call.start_input.values, *deltas.values), deltas, shape, start=True)
    value = call.arguments.value
    arguments = Arguments(value) if isinstance(value, str) else call.arguments  # a client decodes them, too
    rest = arguments.rest
    # Another object, or more members, may follow the first object: `{…}{…`, `{…},{…`, `{…},"k":1}`.
    begins = rest[:1] in ("{", ",") and rest.lstrip(f",{_BLANK}")[:1] in ("{", '"')
    continues = bool(arguments.values) and isinstance(arguments.values[0], dict) and begins
    if not arguments.values or (len(arguments.values) == 1 and not continues):
        return None
    offset = arguments.ends[0] if arguments is call.arguments else 0
    return Concatenated(arguments.values, arguments, _shape(arguments), start=False, offset=offset)


def _grown(call: ToolCall) -> tuple[str, int] | None:
    """Return the last delta of a call whose deltas each repeat all earlier ones, and the offset of the second one."""
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
    # Joined they are no JSON. Two may be cut off, so they count only if the last is an object.
    two = steps == 1 and Arguments(begun).mapping is not None
    return (begun, offset) if two or (steps > 1 and is_broken(call.deltas)) else None


def is_broken(text: str) -> bool:
    """Return True if a text is no JSON object, whole or cut."""
    scanner = Scanner()
    scanner.feed(text)
    return scanner.is_wrong


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
    ends, starts = {token.start: token.end for token in tokens}, {token.end: token.start for token in tokens}
    start, end = 0, len(text)
    while start < end:
        if text[start] in _BLANK:
            start += 1
        elif start in ends:
            start = ends[start]
            start += len(_TYPE) * text.startswith(_TYPE, start)  # `<|constrain|>json<|message|>{…}`
        elif (tag := _OPENER.match(text, start)) is not None:
            start = tag.end()
        else:
            break
    while start < end:
        if text[end - 1] in _BLANK:
            end -= 1
        elif end in starts:
            end = starts[end]
        elif (closer := _closing_tag(text, end)) is not None:
            end = closer.start()
        else:
            break
    between = text[start : max(start, end)].strip(_BLANK)
    return between if len(between) < len(text.strip(_BLANK)) else None


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
        message, position = error.msg, error.pos
    except RecursionError:
        return "nested too deep", False
    except ValueError as error:
        return f"with {error}", False
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


# Native markup left in the arguments by a server's parser.
#
# Three shapes: a key with its own tag (`{"path</arg_key>": "a.txt"}`), a value with the tags that closed it (`{"path":
# "a.txt</parameter></function>"}`), and a value with the next parameter (`{"pattern": "x</parameter>\n<parameter
# name=\"path\">src"}`, with `path` declared and not given). The first two are repaired by removing the tags. A text
# with the opening tag too is about markup, and so may be a text that is stored or searched for: there a single tag does
# not count.

_PHRASES = lexicon.Phrases("argument_markup")

_DATA = frozenset(_PHRASES.words("data"))
_PLACES = frozenset(_PHRASES.words("places"))


def strings(value: Json, *, documents: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the strings of a JSON value in order, keys too, each with its dotted name.

    `documents`: a string that holds a JSON object or list is read like one, unless it is data for the tool.
    """
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        match item:
            case str():
                if documents and not is_data(path) and (document := _document(item)) is not None:
                    waiting.append((path, document[0]))
                else:
                    yield path, item
            case list():
                waiting += [(path, element) for element in reversed(item)]
            case dict():
                for key, element in reversed(item.items()):
                    below = f"{path}.{key}" if path else key
                    waiting += ((below, element), (below, key))


def with_strings(value: dict[str, Json], kept: Mapping[tuple[str, str], str]) -> dict[str, Json]:
    """Return a copy of an object with other strings as values, by dotted name and text, as `strings` yields them."""
    copy = value.copy()
    waiting: list[tuple[str, Any, Any]] = [(key, copy, key) for key in copy]
    while waiting:
        path, holder, key = waiting.pop()
        match holder[key]:
            case str(text):
                inner, spaced = _document(text) or (None, False)
                if inner is None:
                    holder[key] = kept.get((path, text), text)
                elif (made := with_strings({path: inner}, kept)[path]) != inner:
                    holder[key] = _dump(made, spaced=spaced)
            case list(items):
                holder[key] = items = items.copy()
                waiting += [(path, items, number) for number in range(len(items))]
            case dict(members):
                holder[key] = members = members.copy()
                waiting += [(f"{path}.{name}" if path else name, members, name) for name in members]
    return copy


def _document(text: str) -> tuple[Json, bool] | None:
    """Return the JSON object or list in a string, and whether blanks follow its commas and colons.

    None if writing it would change the string.
    """
    if not text.startswith(("{", "[")):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return next(((value, spaced) for spaced in (True, False) if _dump(value, spaced=spaced) == text), None)


def is_data(path: str) -> bool:
    """Return True if the tool stores, runs or searches for the literal text of a value of this name, or inside it."""
    return any(name.lower() in _DATA for name in path.split("."))


def writes_file(arguments: Json) -> bool:
    """Return True if a call names a file: its other texts are then the content of a file."""
    return isinstance(arguments, dict) and any(key.lower() in _PLACES for key in arguments)


class Gone:
    """Marker for a member that must be removed."""


GONE: Final = Gone()


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text of an object. `offset`: the length of its unchanged start."""

    text: str
    offset: int


def rewrite(text: str, changes: Mapping[str, Json | Gone]) -> Rewritten | None:
    """Return the text of a JSON object with some members changed, removed or added; all other characters are kept.

    None if the text is no single object, or repeats a member that must change.
    """
    if Arguments(text).mapping is None:
        return None
    begin = text.index("{") + 1
    members = list(pointers.members(text, begin - 1))
    names = [member.name for member in members]
    if any(names.count(name) > 1 for name in changes):
        return None
    spaced = not members or text[members[0].value - 1] in _BLANK
    comma, colon = (", ", ": ") if spaced else (",", ":")
    opening = text[begin : members[0].start] if members else ""
    leads = [opening, *(text[one.end : other.start] for one, other in itertools.pairwise(members))]
    pieces: list[str] = []
    for lead, member in zip(leads, members, strict=False):
        value = changes.get(member.name)
        if not isinstance(value, Gone):
            written = _dump(value, spaced=spaced) if member.name in changes else text[member.value : member.end]
            pieces.append(f"{lead if pieces else opening}{text[member.start : member.value]}{written}")
    for name, value in changes.items():
        if name not in names and not isinstance(value, Gone):
            lead = (leads[1] if len(leads) > 1 else comma) if pieces else opening
            pieces.append(f"{lead}{json.dumps(name)}{colon}{_dump(value, spaced=spaced)}")
    end = members[-1].end if members else begin
    made = f"{text[:begin]}{''.join(pieces)}{text[end:] if members else '}'}"
    return Rewritten(made, common_length(text[:end], made))


def _dump(value: Json, *, spaced: bool) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))


_NAMES = _PHRASES.words("names")
_PREFIXES = ("", "antml:", "mm:", "atem:", "steptml:")
TAGS = sorted((f"{prefix}{name}" for prefix in _PREFIXES for name in _NAMES), key=len, reverse=True)
_ANY = "|".join(map(re.escape, TAGS))
_CLOSER = lexicon.lazy_pattern(rf"</\s?(?:{_ANY})\s?>")
_CONTROL_TOKEN = lexicon.lazy_pattern(r"<\|[A-Za-z][\w-]{0,39}\|>")
_OPENER = lexicon.lazy_pattern(rf"<\s?(?:{_ANY})\s?>")
_KEY_TAG = lexicon.lazy_pattern(rf"\s*(?:</?\s?(?:{_ANY})(?:=|\s?>?|\s+name=)|[\"'>])\s*")
_NEXT = _PHRASES.pattern("next", any=_ANY)
_NEXT_NAMED = re.compile(r"\s{0,8}<([A-Za-z_][\w.-]{0,79})>")


@dataclass(frozen=True, slots=True)
class Polluted:
    """Arguments with markup: its place in words, the markup, and the clean arguments (None if a line end precedes it)."""

    where: str
    markup: str
    cleaned: Json


def _closing_tag(text: str, end: int) -> re.Match[str] | None:
    """Return the closing tag of a tool call that ends at an offset."""
    place = text.rfind("</", max(end - 48, 0), end)
    return _CLOSER.fullmatch(text, place, end) if place >= 0 else None


def may_be_polluted(text: str) -> bool:
    return any(mark in text for mark in ("</", "<\\/", "<|", "\\u003", "<arg", "<parameter"))


def polluted(arguments: Json, tool: Tool | None, request: Request) -> Polluted | None:
    """Return the markup in the arguments of a call; None without any, or if it may be intended."""
    if not isinstance(arguments, dict):
        return None
    properties = properties_of(tool.schema) if tool is not None else {}
    cleaned: dict[str, Json] = {}
    found: list[tuple[str, str]] = []
    clean = True
    for key, value in arguments.items():
        name = key if key in properties else _KEY_TAG.sub("", key)
        name = name if name in properties and name not in arguments else key
        if name != key:
            found.append((f"the key {key!r}", key.replace(name, "", 1)))
        if isinstance(value, str):
            if tail := _tail(value, key, arguments, request):
                found.append((f"the value of {name}", tail))
                value = value[: -len(tail)]
                clean = clean and not value[-1].isspace()
            elif swallowed := _swallowed(value, name, properties, arguments, request):
                found.append((f"the value of {name}", swallowed))
                clean = False
        cleaned[name] = value
    if not found or len(cleaned) < len(arguments):
        return None
    where = " and ".join(place for place, _ in found[:3])
    return Polluted(where, found[0][1].strip(), cleaned if clean else None)


def _tail(value: str, key: str, arguments: dict[str, Json], request: Request) -> str:
    """Return the closing tags at the end of a value, from the first of them on."""
    closers = list(_closers_at_end(value))
    if not closers:
        return ""
    start = closers[-1].start()
    kept = value[:start]
    tags = {closer[0] for closer in closers}
    is_place = writes_file({key: value})
    stored = is_data(key) or (writes_file(arguments) and not is_place)
    marks = ("<|" if tag.startswith("<|") else f"<{tag.strip('</ >')}" for tag in tags)
    opened = any(mark in kept for mark in marks)
    if not kept.strip() or opened or (stored and len(tags) < 2) or request_holds(request, *tags):
        return ""
    return value[start:]


def _swallowed(
    value: str, key: str, properties: Mapping[str, Json], arguments: dict[str, Json], request: Request
) -> str:
    """Return the tags inside a value that end it and begin a declared parameter that is missing."""
    if "</" not in value:
        return ""
    match = _NEXT.search(value)
    named = f"</{key}>"  # a tag may have the name of a parameter: `</path>` in the value of path, then `<note>`
    if match is None and (place := value.find(named)) >= 0:
        match = _NEXT_NAMED.match(value, place + len(named))
    if match is None:
        return ""
    start = match.start() if match.re == _NEXT else match.start() - len(named)
    begun, name = value[:start], next(group for group in match.groups() if group)
    opener = match[0].partition(">")[2].strip()[:5] if match.re == _NEXT else f"<{key}"
    if name not in properties or name in arguments or opener in begun or request_holds(request, opener):
        return ""
    return value[start : match.end()]


def _closers_at_end(value: str) -> Iterator[re.Match[str]]:
    """Yield the closing tags and the control tokens at the end of a text, from the last to the first."""
    end = len(value.rstrip())
    while end and value[end - 1] == ">":
        place = value.rfind("<", max(end - 48, 0), end)
        closer = (
            _CLOSER.fullmatch(value, place, end) or _CONTROL_TOKEN.fullmatch(value, place, end) if place >= 0 else None
        )
        if closer is None or not (closer.re == _CLOSER or find(closer[0])):
            return
        yield closer
        end = len(value[:place].rstrip()) if value[place - 1 : place].isspace() else place
