"""Values of arguments that nobody said, and that are of a kind that no real value has (`placeholders`).

Theory of operation. A value is an invention only where neither the tool's declaration nor the conversation has it. What
users and tools say counts most: there the value itself may stand, or what it is built of (`/path/to`). Words such as
`default` stand in many a long prompt without being meant as a value, so in what the system and the assistant say they
count in quotes only. Values for which the schema has a list are its own affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from wirelint.arguments.placeholders import Sign, purpose, sign, words_of
from wirelint.arguments.schemas import element, kinds, member, plain, required
from wirelint.claims import evidence
from wirelint.model import Json, Message, Request, Text, Tool, ToolResult

_MOST_VALUES = 400
_DEEPEST = 8
_LEAST_ID = 1000
_BEFORE_A_VALUE = "to|as|auf|als|zu|à|sur|a|como|op|til|till|na"
_OF_FORMS = re.compile(r"format|convert|pars(?:e|ing)|pattern|rename|template", re.IGNORECASE)
"""Tools that take the form of a date as it is written."""
_LONGEST_PLACE = 80
_HAS_A_DEFAULT = re.compile(r"terraform|tofu|pulumi", re.IGNORECASE)
"""Tools in which a workspace really is called `default`."""


class Leaf(NamedTuple):
    """A value inside arguments: where it stands, and the name of its parameter."""

    path: tuple[str | int, ...]
    name: str
    value: Json

    @property
    def where(self) -> str:
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return shown.removeprefix(".")


def leaves(arguments: dict[str, Json]) -> Iterator[Leaf]:
    """The texts and numbers of arguments. Bounded."""
    stack = [Leaf((name,), name, value) for name, value in reversed(arguments.items())]
    count = 0
    while stack and count < _MOST_VALUES:
        leaf = stack.pop()
        count += 1
        path, name, value = leaf
        match value:
            case dict() if len(path) < _DEEPEST:
                stack += reversed([Leaf((*path, key), key, one) for key, one in value.items()])
            case list() if len(path) < _DEEPEST:
                stack += reversed([Leaf((*path, n), name, one) for n, one in enumerate(value[:_MOST_VALUES])])
            case bool() | None:
                pass
            case _:
                yield leaf


def declared(root: Json, path: Iterable[str | int]) -> Json:
    """What a schema says of a place; None when it says nothing."""
    found = root
    for step in path:
        found = member(found, step, root) if isinstance(step, str) else element(found, step, root)
    return found


class Said:
    """What the conversation and the tool's declaration say. Built when something is first looked for."""

    __slots__ = ("_heard", "_others", "_request", "_worked")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._heard: str | None = None
        self._others: str | None = None
        self._worked: str | None = None

    @property
    def heard(self) -> str:
        """What users and tools said, in lower case."""
        if self._heard is None:
            self._heard = _joined(message for message in self._request.messages if message.role in ("user", "tool"))
        return self._heard

    @property
    def worked(self) -> str:
        """The arguments of earlier calls that went well, in lower case: a path that is there was no invention."""
        if self._worked is None:
            ran = evidence.ran(self._request.messages)
            well = (one.call for one in ran if one.result is not None and not evidence.outcome(one.result).error)
            self._worked = "\n".join(call.arguments.text for call in well if call is not None).casefold()
        return self._worked

    @property
    def others(self) -> str:
        """What the system and the assistant said."""
        if self._others is None:
            self._others = _joined(
                message for message in self._request.messages if message.role not in ("user", "tool")
            )
        return self._others

    def holds(self, value: str, found: Sign, tool: Tool, described: str) -> bool:
        """Return True if anybody said a value, so that it was not invented, or may have said it where the server knows."""
        if self._request.is_partial:
            return True
        folded = value.strip().casefold()
        if folded == "default" and _HAS_A_DEFAULT.search(f"{tool.name} {tool.description}"):
            return True
        if found.form:
            return folded in self.heard or _OF_FORMS.search(f"{tool.name} {tool.description}") is not None
        if found.word:
            if found.void and self._names(value.strip()):
                return True
            word = re.compile(rf"(?<!\w){re.escape(folded)}(?!\w)")
            quoted = re.compile(rf"[\"'`“‘«]{re.escape(folded)}[\"'`”’»]")
            # Results of tools are full of JSON's null; only the word in quotes is the value.
            heard = (quoted if found.void else word).search(self.heard)
            return (
                heard is not None
                or word.search(described.casefold()) is not None
                or quoted.search(self.others) is not None
                or quoted.search(tool.description.casefold()) is not None
            )
        if found.stem and not found.word and found.stem.casefold() in self.worked:
            return True
        if folded in self.heard or folded in self.others or folded in tool.description.casefold():
            return True
        stem = found.stem.casefold()
        return folded in described.casefold() or bool(stem and stem in self.heard)

    def _names(self, value: str) -> bool:
        """Whether a user gave a word as a value: people and places are called `Null`, and things are set `to null`."""
        word = re.escape(value)
        given = re.compile(
            rf"(?<![\w'\"`.]){word}(?!\w)" if value.istitle() else rf"(?<!\w)(?:{_BEFORE_A_VALUE})\s{word}(?!\w)"
        )
        users = (message for message in self._request.messages if message.role == "user")
        return any(
            given.search(part.text) is not None for message in users for part in message.parts if isinstance(part, Text)
        )


def _joined(messages: Iterable[Message]) -> str:
    texts = [
        part.text
        for message in messages
        for part in message.parts
        if isinstance(part, (Text, ToolResult)) and part.text
    ]
    return "\n".join(texts).casefold()


@dataclass(frozen=True, slots=True)
class Invention:
    """A value that nobody said. `instead`: what may stand there, `null` or nothing at all, where that loses nothing."""

    leaf: Leaf
    sign: Sign
    instead: str = ""


def inventions(arguments: dict[str, Json], tool: Tool, said: Said) -> Iterator[Invention]:
    """The values among arguments that stand in for ones that nobody knew."""
    for leaf in leaves(arguments):
        value = leaf.value if isinstance(leaf.value, str) else _number(leaf)
        found = sign(value, leaf.name) if value is not None else None
        if value is None or found is None or "[redacted:" in value:
            continue
        schema = declared(tool.schema, leaf.path)
        described = describe(schema)
        found = sign(value, leaf.name, described) or found
        if _takes(leaf, tool) and not _lists(schema) and not said.holds(value, found, tool, described):
            yield Invention(leaf, found, _instead(leaf, found, tool))
    yield from _guessed_places(arguments, tool, said)


def _takes(leaf: Leaf, tool: Tool) -> bool:
    """Return True if the schema takes a value of this kind there; where it does not, that is another fault."""
    root: Json = plain(tool)
    return ("string" if isinstance(leaf.value, str) else "number") in kinds(declared(root, leaf.path), root)


def _number(leaf: Leaf) -> str | None:
    """A number is a stand-in for an id only."""
    if isinstance(leaf.value, int) and leaf.value > _LEAST_ID and purpose(leaf.name) == "id":
        return str(leaf.value)
    return None


def describe(schema: Json) -> str:
    """What a schema says in words, with the values it gives as examples."""
    if not isinstance(schema, dict):
        return ""
    words = [schema.get(key) for key in ("title", "description", "default", "examples", "example", "pattern")]
    parts = [_words(word) for word in words if word is not None]
    nested = (option for key in ("anyOf", "oneOf", "allOf") for option in _listed(schema.get(key)))
    return "\n".join([*parts, *(describe(option) for option in nested)])


def _words(value: Json) -> str:
    return value if isinstance(value, str) else "\n".join(map(_words, value)) if isinstance(value, list) else str(value)


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _lists(schema: Json) -> bool:
    """Return True if a schema lists the values there are: then any other is `schema-violation`."""
    if not isinstance(schema, dict):
        return False
    options = [schema, *(one for key in ("anyOf", "oneOf", "allOf") for one in _listed(schema.get(key)))]
    return any(isinstance(one, dict) and ("enum" in one or "const" in one) for one in options)


def _instead(leaf: Leaf, found: Sign, tool: Tool) -> str:
    if not found.void or len(leaf.path) != 1 or leaf.name not in voidable(tool):
        return ""
    return "null" if _is_nullable(leaf.name, tool) else "nothing"


def voidable(tool: Tool) -> frozenset[str]:
    """The arguments of a tool in the place of which the word for nothing can be taken out: null does, or nothing does."""
    properties = tool.schema.get("properties") if tool.schema is not None else None
    if not isinstance(properties, dict) or tool.hosted:
        return frozenset()
    needed = required(tool)
    return frozenset(
        name
        for name, schema in properties.items()
        if sign("null", name) is not None
        and isinstance(schema, dict)
        and not _lists(schema)
        and (name not in needed or _is_nullable(name, tool))
    )


def _is_nullable(name: str, tool: Tool) -> bool:
    root: Json = plain(tool)
    schema = declared(root, (name,))
    return (
        isinstance(schema, dict)
        and "string" in kinds(schema, root)
        and "null" in kinds(schema, root)
        and _is_typed(schema)
    )


def _is_typed(schema: dict[str, Json]) -> bool:
    return any(key in schema for key in ("type", "anyOf", "oneOf", "allOf"))


def _guessed_places(arguments: dict[str, Json], tool: Tool, said: Said) -> Iterator[Invention]:
    """A place below another one that only the words of the query name: no one said that there is such a place."""
    needed = required(tool)
    places = [
        (name, value)
        for name, value in arguments.items()
        if isinstance(value, str)
        and 2 < len(value) <= _LONGEST_PLACE
        and name not in needed
        and "/" not in value
        and "." not in value
        and purpose(name) == "path"
    ]
    if not places:
        return
    texts = [(name, value) for name, value in arguments.items() if isinstance(value, str)]
    queries = [
        value.casefold() for name, value in texts if purpose(name) == "prose" and "pattern" not in words_of(name)
    ]
    for name, value in places:
        folded = value.strip().casefold()
        if not any(folded != query and _has_word(query, folded) for query in queries):
            continue
        schema = declared(tool.schema, (name,))
        if not isinstance(schema, dict) or _lists(schema) or _is_named_elsewhere(folded, queries, said, tool, schema):
            continue
        found = Sign("a word of the query; nothing says that there is such a place", "low")
        yield Invention(Leaf((name,), name, value), found)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _is_named_elsewhere(word: str, queries: list[str], said: Said, tool: Tool, schema: Json) -> bool:
    rest = f"{said.heard}\n{said.others}\n{tool.description.casefold()}\n{describe(schema).casefold()}"
    for query in queries:
        rest = rest.replace(query, " ")
    return _has_word(rest, word)
