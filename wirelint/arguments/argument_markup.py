r"""Native markup left in a call's arguments by a server's parser.

Three shapes: a key with its own tag (`{"path</arg_key>": "a.txt"}`), a value with the tags that closed it (`{"path":
"a.txt</parameter></function>"}`), and a value with the next parameter (`{"pattern": "x</parameter>\\n<parameter
name=\\"path\\">src"}`, with `path` declared and not given). The first two are repaired by removing the tags. A text with
the opening tag too is about markup, and so may be a text that is stored or searched for: there a single tag does not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from wirelint import lexicon
from wirelint.dialects.declared import properties_of
from wirelint.jsonvalues import Json, common_length
from wirelint.model import Arguments, Request, Tool
from wirelint.text import pointers
from wirelint.text.asking import request_holds
from wirelint.text.control_tokens import find

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
                    waiting.append((path, document.value))
                else:
                    yield path, item
            case list():
                waiting += [(path, element) for element in reversed(item)]
            case dict():
                for key, element in reversed(item.items()):
                    below = f"{path}.{key}" if path else key
                    waiting += ((below, element), (below, key))
            case _:
                pass


def with_strings(value: dict[str, Json], kept: Mapping[tuple[str, str], str]) -> dict[str, Json]:
    """Return a copy of an object with other strings as values, by dotted name and text, as `strings` yields them."""
    copy = value.copy()
    waiting: list[tuple[str, Any, Any]] = [(key, copy, key) for key in copy]
    while waiting:
        path, holder, key = waiting.pop()
        match holder[key]:
            case str(text):
                if (document := _document(text)) is None:
                    holder[key] = kept.get((path, text), text)
                elif (made := with_strings({path: document.value}, kept)[path]) != document.value:
                    holder[key] = _dump(made, spaced=document.spaced)
            case list(items):
                holder[key] = items = items.copy()
                waiting += [(path, items, number) for number in range(len(items))]
            case dict(members):
                holder[key] = members = members.copy()
                waiting += [(f"{path}.{name}" if path else name, members, name) for name in members]
            case _:
                pass
    return copy


class _Document(NamedTuple):
    """A JSON object or list in a string. `spaced`: blanks follow its commas and colons."""

    value: Json
    spaced: bool


def _document(text: str) -> _Document | None:
    """Return the JSON object or list that a string holds; None if writing it would change the string."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return next((_Document(value, spaced) for spaced in (True, False) if _dump(value, spaced=spaced) == text), None)


def is_data(path: str) -> bool:
    """Return True if the tool stores, runs or searches for the literal text of a value of this name, or inside it."""
    return any(name.lower() in _DATA for name in path.split("."))


def writes_file(arguments: Json) -> bool:
    """Return True if a call names a file: its other texts are then the content of a file."""
    return isinstance(arguments, dict) and any(key.lower() in _PLACES for key in arguments)


_BLANK = " \t\r\n"


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
    opening_bracket = text.index("{")
    members = list(pointers.members(text, opening_bracket))
    names = [member.name for member in members]
    if any(names.count(name) > 1 for name in changes):
        return None
    kept = [member for member in members if not isinstance(changes.get(member.name), Gone)]
    first = next((member for member in members if member.name in changes), None)
    spaced = not members or text[members[0].value - 1] in _BLANK
    pieces: list[str] = []
    before = opening_bracket + 1
    opening = text[before : members[0].start] if members else ""
    between = text[members[0].end : members[1].start] if len(members) > 1 else (", " if spaced else ",")
    for member in kept:
        number = members.index(member)
        lead = opening if not pieces else text[members[number - 1].end : member.start] if number else between
        value = changes.get(member.name, GONE)
        written = text[member.value : member.end] if isinstance(value, Gone) else _dump(value, spaced=spaced)
        pieces.append(f"{lead}{text[member.start : member.value]}{written}")
    for name, value in changes.items():
        if name not in names and not isinstance(value, Gone):
            colon = ": " if spaced else ":"
            pieces.append(f"{between if pieces else opening}{json.dumps(name)}{colon}{_dump(value, spaced=spaced)}")
    closing = text[members[-1].end :] if members else "}"
    made = f"{text[:before]}{''.join(pieces)}{closing}"
    end = members[-1].end if members else before
    return Rewritten(made, common_length(text[: first.end if first is not None else end], made))


def _dump(value: Json, *, spaced: bool) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))


_NAMES = _PHRASES.words("names")
_PREFIXES = ("", "antml:", "mm:", "atem:", "steptml:")
TAGS = sorted((f"{prefix}{name}" for prefix in _PREFIXES for name in _NAMES), key=len, reverse=True)
_ANY = "|".join(map(re.escape, TAGS))
_CLOSER = lexicon.lazy_pattern(rf"</\s?(?:{_ANY})\s?>")
_TOKEN = lexicon.lazy_pattern(r"<\|[A-Za-z][\w-]{0,39}\|>")
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


def closing_tag(text: str, end: int) -> re.Match[str] | None:
    """Return the closing tag of a tool call that ends at an offset."""
    place = text.rfind("</", max(end - 48, 0), end)
    return _CLOSER.fullmatch(text, place, end) if place >= 0 else None


def opening_tag(text: str, start: int) -> re.Match[str] | None:
    """Return the opening tag of a tool call, without attributes, that begins at an offset."""
    return _OPENER.match(text, start)


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
        tail = _tail(value, key, arguments, request) if isinstance(value, str) else ""
        if tail and isinstance(value, str):
            found.append((f"the value of {name}", tail))
            value = value[: -len(tail)]
            clean = clean and not value[-1].isspace()
        elif isinstance(value, str) and (swallowed := _swallowed(value, name, properties, arguments, request)):
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
        closer = _CLOSER.fullmatch(value, place, end) or _TOKEN.fullmatch(value, place, end) if place >= 0 else None
        if closer is None or not (closer.re == _CLOSER or find(closer[0])):
            return
        yield closer
        end = len(value[:place].rstrip()) if value[place - 1 : place].isspace() else place
