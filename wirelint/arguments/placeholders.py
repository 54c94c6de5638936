"""Placeholders in place of unknown values: `default`, `null`, `your_api_key`, `/path/to/…`, `user@example.com`.

A model that must fill a parameter without a value for it writes the sample values of documentation. If such a value may
be real, like `default` for a namespace, the purpose of the parameter decides, and uncertain cases have low confidence.
Text, code, patterns and queries are not checked: any value may be intended there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from wirelint import lexicon
from wirelint.arguments.schemas import dotted, inner_schema, kinds, plain
from wirelint.claims import evidence
from wirelint.dialects.declared import required
from wirelint.jsonvalues import inside
from wirelint.model import Confidence, Json, Message, Request, Text, Tool, ToolResult
from wirelint.text.escaping import REDACTED

_PHRASES = lexicon.Phrases("placeholders")

# Purpose of a tool's parameter by its name: a path, a key, an id, a host, or free text. Names are split at underscores and
# capitals (`subWorkspace`, `file_path`), so that one list of words serves all spellings.

Purpose = Literal["path", "secret", "id", "host", "address", "person", "prose", "command", "kind", "other"]
"""`prose`: text, code, queries, patterns, values of any sort. `kind`: the name of a type."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_NAMES = {purpose: frozenset(words.split()) for purpose, words in _PHRASES.table("names").items()}
_ORDER: tuple[Purpose, ...] = ("kind", "command", "path", "host", "address", "person", "prose")


@lru_cache(maxsize=1024)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name: `subWorkspace` → sub, workspace."""
    return tuple(word.lower() for word in _WORD.findall(name[:200]))


@lru_cache(maxsize=1024)
def purpose(name: str) -> Purpose:
    """Return the purpose of a parameter, mainly by its last word: `file_content` is prose, `content_file` a path."""
    words = words_of(name)
    if not words:
        return "other"
    last = words[-1]
    if last == "string" and words[:-1] and words[-2] in ("connection", "conn"):
        return "host"
    if (found := _of_word(last, words)) != "other":
        return found
    if last in ("name", "names", "number", "list", "array"):  # `file_name`, `user_names`, `path_list`
        if len(words) == 1:
            return "person" if words[0] == "name" else "other"
        found = _of_word(words[-2], words)
        return "person" if words[-1] == "name" and words[-2] in ("full", "first", "last", "user", "contact") else found
    return next((kind for word in reversed(words[:-1]) if (kind := _of_word(word, words)) == "prose"), "other")


def _of_word(word: str, words: tuple[str, ...]) -> Purpose:
    if word in _NAMES["id"]:
        return "id"
    if word in _NAMES["secret"] or (word in ("key", "keys") and not _NAMES["keys"].isdisjoint(words)):
        return "secret"
    return next((purpose for purpose in _ORDER if word in _NAMES[purpose]), "other")


LONGEST = 300
"""Longest value that may be a placeholder."""

_REFERENCES: frozenset[Purpose] = frozenset({"path", "secret", "id", "host", "address"})
"""Purposes of parameters whose values refer to existing objects."""

_THINGS = _PHRASES.text("things")


@dataclass(frozen=True, slots=True)
class Sign:
    """The sign of a placeholder. `why` completes "… is": `no path but what documentation writes for one`.

    `void`: it means "no value", so it can be removed. `stem`: the text that a source of the value would hold. `word`:
    an ordinary word, so that its occurrence in a long prompt is no source. `form`: the form of values, so that its
    description in a declaration or a prompt is no source.
    """

    why: str
    confidence: Confidence = "high"
    void: bool = False
    stem: str = ""
    word: bool = False
    form: bool = False


_SLOTS = _PHRASES.patterns("slots")
_YOURS = lexicon.lazy_pattern(
    rf"^<?your(?:[-_]?(?:{_THINGS})s?|(?:[-_][a-z0-9]+){{1,4}}| (?:{_THINGS}))>?$", re.IGNORECASE
)
_STEPS = re.compile(r"[/\\@:?&=.,#]+")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?P<host>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)$", re.IGNORECASE)


def sign(value: str, name: str, described: str = "") -> Sign | None:
    """Return the sign of a placeholder in a parameter of this name. `described`: the parameter's description."""
    plain_value = value.strip()
    if not plain_value or len(value) > LONGEST:
        return None
    what = purpose(name)
    if what == "prose":
        return None
    if what == "command":
        # Quoted or piped text does not count.
        if any(mark in value for mark in ("'", '"', "<<", "`", "\n", "echo", "printf", "grep", "sed ")):
            return None
        for word in value.split():
            if (match := _PHRASES["path"].search(word)) is not None:
                return Sign("a command on what documentation writes for a path", "medium", stem=match[0].strip("/\\: "))
        return None
    if _PHRASES["suspect"].search(plain_value.casefold()) is None:
        return _echo(plain_value, name, what)
    if (found := _listed_sign("signs", plain_value, what, name, described)) is not None:
        return found
    if "your" in plain_value.casefold() and (blank := _yours(plain_value)):
        return Sign("a blank to be filled in", "high", stem=blank)
    if any(pattern.search(plain_value) for pattern in _SLOTS):
        return Sign("a blank to be filled in", "high", stem=plain_value)
    if (match := _PHRASES["path"].search(plain_value)) is not None and " " not in plain_value[: match.start()]:
        return Sign("what documentation writes for a path", "high", stem=match[0].strip("/\\: "))
    if (match := _PHRASES["login"].match(plain_value)) is not None:
        return Sign("an address with a login of the documentation", "medium", stem=match[0])
    is_address = "@" in plain_value or "://" in plain_value or what in ("host", "address")
    if is_address and (match := _PHRASES["example"].match(plain_value)) is not None:
        return Sign("an address that is reserved for examples", "medium", stem=match["host"])
    return _listed_sign("dummies", plain_value, what, name, described) or _echo(plain_value, name, what)


def _listed_sign(table: str, value: str, what: Purpose, name: str, described: str) -> Sign | None:
    """Return the first sign in a table of `placeholders.toml` that a value has."""
    folded, words = value.casefold(), words_of(name)
    for row in _PHRASES.table(table):
        if what not in row.get("purposes", (what,)) or not set(row.get("unless", ())).isdisjoint(words):
            continue
        if folded in row["words"] if "words" in row else _PHRASES[row["pattern"]].match(value):
            confidence: Confidence = "medium" if what in row.get("sure_for", ()) else row["confidence"]
            if "described" in row and re.search(row["described"], described):
                confidence = "high"
            flags = {flag: row.get(flag, False) for flag in ("void", "word", "form")}
            return Sign(row["why"], confidence, **flags)
    return None


def _echo(value: str, name: str, what: Purpose) -> Sign | None:
    """Return the sign of a value that is the name of its parameter: `file_path` for file_path."""
    words = words_of(name)
    if len(words) > 1 and what in _REFERENCES and words_of(value) == words and value.replace("_", "").isalnum():
        return Sign("the name of its own parameter", "medium", word=True)
    return None


def _yours(value: str) -> str:
    """Return the blank in a value, `your-domain` of `https://your-domain.com/`; empty without one."""
    url = _URL.match(value)
    if url is None:
        own = re.search(r"(?:^|[/\\])your[/\\]\w+", value, re.IGNORECASE)
        return next(filter(_YOURS.match, _STEPS.split(value)), own[0].strip("/\\") if own is not None else "")
    steps = _STEPS.split(f"{url['host']}{url['rest']}")
    # Names of pages hold `your` too (`/help/reset-your-password`), so most sites need a spelling that pages do not have.
    path = _STEPS.split(url["path"])
    steps += (
        path if _PHRASES["code_hosts"].search(url["host"]) else [step for step in path if "_" in step or step.isupper()]
    )
    return next((step for step in steps if _YOURS.match(step)), "")


# Arguments of a call that the error of its tool names: `Unknown workspace: 'default'` for `{"workspace": "default"}`.
#
# The error names a value if it quotes it, or holds it as a word together with a word of its parameter's name. An error may
# also name the parameter alone, in quotes or before a colon.

_LONGEST_ERROR = 1000
_LONGEST_VALUE = 200
_SHORTEST_VALUE = 2


class Leaf(NamedTuple):
    """A value inside arguments: its place, and the name of its parameter."""

    path: tuple[str | int, ...]
    name: str
    value: Json

    @property
    def where(self) -> str:
        return dotted(self.path)


def refused(arguments: Mapping[str, Json], error: str) -> Iterator[tuple[Leaf, Sign | None]]:
    """Yield the values that an error of the tool refuses by name, each with its sign of a placeholder."""
    error = error[:_LONGEST_ERROR]
    if not _PHRASES["refuses"].search(error):
        return
    said = set(re.findall(r"[a-z]+", error.lower()))
    values = [*islice(_values(dict(arguments)), MOST_VALUES)]
    times = Counter(name for _, name, _ in values)
    for leaf in values:
        name, value = leaf.name, str(leaf.value)
        is_named = times[name] == 1 and name in error  # else the name alone does not say which of them is meant
        if len(value) > _LONGEST_VALUE or not (is_named or value in error):
            continue
        quoted = re.search(rf"(['\"`‘“«<]){re.escape(value)}['\"`’”»>]", error)
        about = any(len(word) > 2 and said & {word, word.removesuffix("s")} for word in words_of(name))
        beside = about and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", error) is not None
        written = re.escape(name)
        parameter = is_named and re.search(
            rf"['\"`]{written}['\"`]|(?<!\w){written}\s*:|(?:parameter|argument|property|field): ?{written}(?!\w)",
            error,
        )
        if ((quoted or beside) and len(value) >= _SHORTEST_VALUE) or parameter:
            yield leaf, sign(value, name) if isinstance(leaf.value, str) else None


def named_parameters(arguments: Mapping[str, Json], error: str) -> Iterator[tuple[str, bool]]:
    """Yield the parameters in a tool's error: given ones that are unknown (True), and missing ones."""
    error = error[:_LONGEST_ERROR]
    for phrase, is_given in ((_PHRASES["unknown_parameter"], True), (_PHRASES["missing_parameter"], False)):
        names = (next(filter(None, found.groups()), "") for found in phrase.finditer(error))
        yield from ((name, is_given) for name in dict.fromkeys(names) if (name in arguments) is is_given)


# Placeholders without a source.
#
# Theory of operation. A value is an invention if neither the tool's declaration nor the conversation holds it. Texts of
# users and tools count most: they may hold the value, or a part of it (`/path/to`). Many long prompts hold words such as
# `default` in another sense, so texts of the system and the assistant count only with the word in quotes. Values that the
# schema enumerates are left to `schema-violation`.

MOST_VALUES = 400
_DEEPEST = 8
_LEAST_ID = 1000
_BEFORE_A_VALUE = "to|as|auf|als|zu|à|sur|a|como|op|til|till|na"
_OF_FORMS = re.compile(r"format|convert|pars(?:e|ing)|pattern|rename|template", re.IGNORECASE)
"""Tools whose arguments may be the form of a date."""
_LONGEST_PLACE = 80
_HAS_A_DEFAULT = re.compile(r"terraform|tofu|pulumi", re.IGNORECASE)
"""Tools with a workspace that is named `default`."""


def are_too_many(arguments: dict[str, Json]) -> bool:
    """Return True if arguments hold more than `MOST_VALUES` texts and numbers; `inventions` reads no more of them."""
    return next(islice(_values(arguments), MOST_VALUES, None), None) is not None


def _values(value: Json, path: tuple[str | int, ...] = (), name: str = "") -> Iterator[Leaf]:
    if isinstance(value, dict | list) and len(path) < _DEEPEST:
        for step, one in inside(value):
            yield from _values(one, (*path, step), step if isinstance(step, str) else name)
    elif value is not None and not isinstance(value, bool):
        yield Leaf(path, name, value)


def declared(root: Json, path: Iterable[str | int]) -> Json:
    """Return the schema of a place; None without one."""
    found = root
    for step in path:
        found = inner_schema(found, step, root)
    return found


class KnownText:
    """Words of the conversation, in lower case, by speaker."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @cached_property
    def of_users(self) -> str:
        return _joined(message for message in self._request.messages if message.role in ("user", "tool"))

    @cached_property
    def of_others(self) -> str:
        """Words of the system and the assistant."""
        return _joined(message for message in self._request.messages if message.role not in ("user", "tool"))

    @cached_property
    def of_calls(self) -> str:
        """Arguments of earlier calls that succeeded: a path in them is no invention."""
        ran = evidence.ran(self._request.messages)
        well = (one.call for one in ran if one.result is not None and not evidence.outcome(one.result).error)
        return "\n".join(call.arguments.text for call in well if call is not None).casefold()

    def holds(self, value: str, found: Sign, tool: Tool, described: str) -> bool:
        """Return True if a value has a source in the request, or may have one that only the server knows."""
        if self._request.is_partial:
            return True
        folded = value.strip().casefold()
        if folded == "default" and _HAS_A_DEFAULT.search(f"{tool.name} {tool.description}"):
            return True
        if found.form:
            return folded in self.of_users or _OF_FORMS.search(f"{tool.name} {tool.description}") is not None
        if found.word:
            if found.void and self._is_given(value.strip()):
                return True
            word = re.compile(rf"(?<!\w){re.escape(folded)}(?!\w)")
            quoted = re.compile(rf"[\"'`“‘«]{re.escape(folded)}[\"'`”’»]")
            # Results of tools hold JSON's null; only the word in quotes is the value.
            heard = (quoted if found.void else word).search(self.of_users)
            return (
                heard is not None
                or word.search(described.casefold()) is not None
                or quoted.search(self.of_others) is not None
                or quoted.search(tool.description.casefold()) is not None
            )
        texts = (self.of_users, self.of_others, tool.description.casefold(), described.casefold())
        stem = found.stem.casefold()
        return any(folded in text for text in texts) or (
            bool(stem) and (stem in self.of_users or stem in self.of_calls)
        )

    def _is_given(self, value: str) -> bool:
        """Return True if a user wrote a word as a value: a person named `Null`, or `set it to null`."""
        word = re.escape(value)
        given = re.compile(
            rf"(?<![\w'\"`.]){word}(?!\w)" if value.istitle() else rf"(?<!\w)(?:{_BEFORE_A_VALUE})\s{word}(?!\w)"
        )
        users = (message for message in self._request.messages if message.role == "user")
        return any(given.search(part.text) for one in users for part in one.parts if isinstance(part, Text))


def _joined(messages: Iterable[Message]) -> str:
    parts = (part for message in messages for part in message.parts)
    return "\n".join(part.text for part in parts if isinstance(part, (Text, ToolResult)) and part.text).casefold()


@dataclass(frozen=True, slots=True)
class Invention:
    """A value without a source. `instead`: its replacement without loss, `null` or nothing."""

    leaf: Leaf
    sign: Sign
    instead: str = ""


def inventions(arguments: dict[str, Json], tool: Tool, known: KnownText) -> Iterator[Invention]:
    """Yield the invented values among arguments."""
    for leaf in islice(_values(arguments), MOST_VALUES):
        value = str(leaf.value)
        counts = isinstance(leaf.value, int) and leaf.value > _LEAST_ID and purpose(leaf.name) == "id"
        found = sign(value, leaf.name) if isinstance(leaf.value, str) or counts else None
        if found is None or REDACTED in value:
            continue
        schema = declared(tool.schema, leaf.path)
        described = describe(schema)
        found = sign(value, leaf.name, described) or found
        root: Json = plain(tool)
        if ("string" if isinstance(leaf.value, str) else "number") not in kinds(declared(root, leaf.path), root):
            continue  # a value of a wrong type is another fault
        if not _has_enum(schema) and not known.holds(value, found, tool, described):
            instead = "nothing"
            if not found.void or len(leaf.path) != 1 or leaf.name not in omittable(tool):
                instead = ""
            elif _is_nullable(leaf.name, tool):
                instead = "null"
            yield Invention(leaf, found, instead)
    yield from _guessed_places(arguments, tool, known)


def describe(schema: Json) -> str:
    """Return the words of a schema, with its examples."""
    if not isinstance(schema, dict):
        return ""
    words = [schema.get(key) for key in ("title", "description", "default", "examples", "example", "pattern")]
    parts = [_spelled(word) for word in words if word is not None]
    return "\n".join([*parts, *map(describe, _options(schema))])


def _spelled(value: Json) -> str:
    return "\n".join(map(_spelled, value)) if isinstance(value, list) else str(value)


def _options(schema: dict[str, Json]) -> list[Json]:
    lists = (schema.get(key) for key in ("anyOf", "oneOf", "allOf"))
    return [option for options in lists if isinstance(options, list) for option in options]


def _has_enum(schema: Json) -> bool:
    """Return True if a schema enumerates the values: then any other one is `schema-violation`."""
    options = [schema, *_options(schema)] if isinstance(schema, dict) else []
    return any(isinstance(one, dict) and ("enum" in one or "const" in one) for one in options)


def omittable(tool: Tool) -> frozenset[str]:
    """Return the arguments of a tool that can be null or left out in place of a word for nothing."""
    properties = tool.schema.get("properties") if tool.schema is not None else None
    if not isinstance(properties, dict) or tool.hosted:
        return frozenset()
    needed = required(tool)
    return frozenset(
        name
        for name, schema in properties.items()
        if sign("null", name) is not None
        and isinstance(schema, dict)
        and not _has_enum(schema)
        and (name not in needed or _is_nullable(name, tool))
    )


def _is_nullable(name: str, tool: Tool) -> bool:
    root: Json = plain(tool)
    schema = declared(root, (name,))
    if not isinstance(schema, dict) or schema.keys().isdisjoint(("type", "anyOf", "oneOf", "allOf")):
        return False
    return {"string", "null"} <= kinds(schema, root)


def _guessed_places(arguments: dict[str, Json], tool: Tool, known: KnownText) -> Iterator[Invention]:
    """Yield a path that is only a word of the query: it may not exist."""
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
    queries = [
        value.casefold()
        for name, value in arguments.items()
        if isinstance(value, str) and purpose(name) == "prose" and "pattern" not in words_of(name)
    ]
    for name, value in places:
        folded = value.strip().casefold()
        if not any(folded != query and _has_word(query, folded) for query in queries):
            continue
        schema = declared(tool.schema, (name,))
        if not isinstance(schema, dict) or _has_enum(schema):
            continue
        rest = f"{known.of_users}\n{known.of_others}\n{tool.description.casefold()}\n{describe(schema).casefold()}"
        for query in queries:
            rest = rest.replace(query, " ")
        if not _has_word(rest, folded):
            found = Sign("a word of the query; nothing says that there is such a place", "low")
            yield Invention(Leaf((name,), name, value), found)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
