"""Members of an argument object, changed in its text: what is not changed stays as it was written, to the character."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from wirelint.model import Json

# The strings in the arguments of a call, with their names, and which of them are data that a tool takes as it is.

_DATA = frozenset({
    "code", "command", "cmd", "content", "contents", "data", "diff", "file_text", "html", "input_text", "insert_text",
    "markdown", "new_content", "new_str", "new_string", "newstring", "old_str", "old_string", "oldstring", "patch",
    "pattern", "regex", "replacement", "script", "source", "template", "xml",
})  # fmt: skip
_PLACES = frozenset({
    "path", "file_path", "filepath", "file", "filename", "file_name", "target_file", "uri", "notebook_path",
})  # fmt: skip


def strings(value: Json) -> Iterator[tuple[str, str]]:
    """All strings in a JSON value in order, keys too, each with the dotted name it stands under."""
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        match item:
            case str():
                yield path, item
            case list():
                waiting += [(path, element) for element in reversed(item)]
            case dict():
                for key, element in reversed(item.items()):
                    below = f"{path}.{key}" if path else key
                    waiting += ((below, element), (below, key))
            case _:
                pass


def is_data(path: str) -> bool:
    """Return True if a value is by its name something that the tool stores, runs or searches for as it is."""
    return path.rsplit(".", 1)[-1].lower() in _DATA


def writes_file(arguments: Json) -> bool:
    """Return True if a call names a place to write to or read from: its texts are then the text of a file."""
    return isinstance(arguments, dict) and any(key.lower() in _PLACES for key in arguments)


_BLANK = " \t\r\n"


class Gone:
    """In the place of a value: the member is to be taken out."""


GONE: Final = Gone()


class _Member(NamedTuple):
    """A member in a text: `start` is where its name begins, `value` its value, `end` the place behind that."""

    name: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The text of the object as it is now. `offset`: how much of it is as it was."""

    text: str
    offset: int


def rewrite(text: str, changes: Mapping[str, Json | Gone]) -> Rewritten | None:
    """The text of one JSON object with some of its members changed, taken out or, where it lacks them, added.

    None when the text is no single object, or names a member that is to be changed twice.
    """
    members = _members(text)
    if members is None:
        return None
    names = [member.name for member in members]
    if any(names.count(name) > 1 for name in changes):
        return None
    kept = [member for member in members if not isinstance(changes.get(member.name), Gone)]
    first = next((member for member in members if member.name in changes), None)
    spaced = not members or text[members[0].value - 1] in _BLANK
    pieces: list[str] = []
    before = text.index("{") + 1
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
    return Rewritten(made, _common(text, made, first.end if first is not None else end))


def _common(text: str, made: str, most: int) -> int:
    same = 0
    for one, other in zip(text[:most], made, strict=False):
        if one != other:
            break
        same += 1
    return same


def _dump(value: Json, *, spaced: bool) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if spaced else (",", ":"))


def _members(text: str) -> list[_Member] | None:
    decoder = json.JSONDecoder()
    place = _skip(text, 0)
    if text[place : place + 1] != "{":
        return None
    place = _skip(text, place + 1)
    members: list[_Member] = []
    try:
        while text[place : place + 1] != "}":
            start = place
            name, place = decoder.raw_decode(text, place)
            place = _skip(text, place)
            if not isinstance(name, str) or text[place : place + 1] != ":":
                return None
            value = _skip(text, place + 1)
            _, end = decoder.raw_decode(text, value)
            members.append(_Member(name, start, value, end))
            place = _skip(text, end)
            if text[place : place + 1] == ",":
                place = _skip(text, place + 1)
            elif text[place : place + 1] != "}":
                return None
    except (ValueError, RecursionError):
        return None
    return members if not text[place + 1 :].strip(_BLANK) else None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANK:
        place += 1
    return place
