r"""Dialect tables: the TOML files of this package, one beside each module that reads its families.

    [lfm]                                            a family; its reader is `read_lfm` in the module of that name, if any,
    rank = 1                                         or the module's `read` with a grammar from the table
    openers = ['(?&bar)tool_call_start\|{1,2}>']     see `openers` for the syntax
    speakers.lfm2 = ["lfm"]                          dialect → model families
    closers.'lfm:call' = "lfm2"                      see `Table` for `closers`, `lone` and `after_name`
    patterns.end = '<\|{1,2}tool_call_end\|{1,2}>'   regular expressions, attributes of the table in the module
    named.call = 'DECLARED\s{0,3}\('                 likewise, with the names of the declared tools, see `Table.named`
    proper.lfm2 = '…'                                matches a block that keeps to the notation, see `scan.is_damaged`

`(?&bar)` is replaced by a part: an entry of `[parts]` in the file, of `parts` in the family, or of `_COMMON`.
`[templates.X]` in a file holds patterns that each family fills with its strings (`Table.filled`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from wirelint.dialects.openers import Opener, parse, word_start
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.lexicon import lazy_pattern

NAME_KEYS = ("name", "tool_name", "function_name", "tool", "function", "recipient_name", "action")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
"""Keys of a call's name and of its arguments, in the order in which they are tried."""
_PART = re.compile(r"\(\?&(\w+)\)")
_COMMON = {
    "word": word_start(),
    "s": r"\s{0,3}",
    "prefix": r"(?:functions?\.|tools?\.|default_api\.)?",
    "u": r"(?:_| |\\_)",
    "turn_end": r"</s>|<\|(?:endoftext|end|eot_id|eom_id|im_end|end_of_text|assistant_end|END_OF_TURN_TOKEN)\|>",
}
"""Parts of every file: a word start, blanks in a tag, prefixes of tools' names, an underscore as models
write it, tokens that end a turn."""


class Table:
    """The table of one family: dialects that share openers and a reader. Its compiled patterns are attributes.

    `openers`: all beginnings of a block of the family. `rank`: families of a lower rank are tried first at a shared
    opener: 1 if the family has bytes that no other family has, 2 usual, 3 for markup that no earlier family reads, 4 for
    weak shapes. `speakers`: per dialect, the model families (`text.families`) that write it. `closers`: pattern source of a
    closing tag → dialect of a lone closer at the end of a text, whose opener is lost (None: shared by several dialects).
    `lone`: closers that count without company. `after_name`: openers that may follow the name of a declared tool at a line
    start, if only that name is left of a call. `file`: the name of the table's file without the extension.
    """

    def __init__(
        self, family: str, file: str, data: Mapping[str, Any], parts: Mapping[str, str], templates: Mapping[str, Any]
    ) -> None:
        self.family, self.file, self.data = family, file, data
        self._parts, self._templates = {**parts, **data.get("parts", {})}, templates
        self.openers, self.after_name = self._parsed("openers"), self._parsed("after_name")
        self.rank: int = data.get("rank", 2)
        self.speakers = {dialect: frozenset(models) for dialect, models in data.get("speakers", {}).items()}
        self.closers = {self.source(tag): dialect or None for tag, dialect in data.get("closers", {}).items()}
        self.lone = frozenset[str](data.get("lone", ()))
        self.patterns: dict[str, Any] = {key: self.compile(one) for key, one in data.get("patterns", {}).items()}
        self._named = {key: self.source(source) for key, source in data.get("named", {}).items()}

    def __getattr__(self, name: str) -> Pattern:
        try:
            pattern: Pattern = self.__dict__["patterns"][name]
        except KeyError:
            raise AttributeError(name) from None
        return pattern

    def named(self, reader: Reader, key: str, position: int) -> Match | None:
        """Match a pattern with the names of the declared tools at a position.

        `DECLARED` matches any of the names, as the group `name`; `NAMES` a name with or without `functions.`; `HEAD` the
        start of a JSON object that calls one of them, up to the name of the tool, or, if the arguments come first, up to a
        parameter of a tool. So an answer that begins with `{"name": "Bob"` stops matching at the `B`, and a stream that is
        held back is released there.
        """
        return reader.match(self.pattern_for(reader, key), position)

    def pattern_for(self, reader: Reader, key: str) -> Pattern:
        """Return a pattern with the names of the declared tools; see `named`."""
        return _with_names(self._named[key], *reader.names_and_keys)

    def source(self, source: str) -> str:
        """Return a pattern source with its parts in place."""
        while _PART.search(source):
            source = _PART.sub(lambda part: self._parts[part[1]], source)
        return source

    def filled(self, template: str, row: Mapping[str, Any]) -> Table:
        """Return the patterns of a template, with the strings of a row or of `[templates.defaults]` as parts."""
        row = {**self._templates.get("defaults", {}), **row}
        parts = self._parts | {key: value for key, value in row.items() if isinstance(value, str)}
        return Table(self.family, self.file, {**row, "patterns": self._templates[template]}, parts, {})

    def compile(self, source: str) -> Pattern:
        return lazy_pattern(self.source(source))

    def _parsed(self, key: str) -> tuple[Opener, ...]:
        return tuple(parse(self.source(source)) for source in self.data.get(key, ()))


_QUOTE = "[\"']"
_SPACE = r"\s{0,64}"
_COLON = rf"{_SPACE}:{_SPACE}"
_BEFORE = (
    rf"(?:{_QUOTE}(?:id|call_id|tool_call_id){_QUOTE}{_COLON}{_QUOTE}[\w.:-]{{0,128}}{_QUOTE}{_SPACE},{_SPACE}"
    rf"|{_QUOTE}type{_QUOTE}{_COLON}{_QUOTE}(?:function|function_call|tool_call|tool_use){_QUOTE}{_SPACE},{_SPACE}"
    rf"|{_QUOTE}index{_QUOTE}{_COLON}[0-9]{{1,4}}{_SPACE},{_SPACE}){{0,3}}"
)


@lru_cache(maxsize=256)
def _with_names(pattern: str, declared: tuple[str, ...], keys: tuple[str, ...]) -> Pattern:
    written = rf"(?:functions?\.)?(?:{'|'.join(map(re.escape, declared))})"
    parameter = "|".join(map(re.escape, keys)) or "(?!)"
    inner = rf"(?:\{{{_SPACE}{_QUOTE}name{_QUOTE}{_COLON})?"
    named = rf"{_QUOTE}(?:{'|'.join(NAME_KEYS)}){_QUOTE}{_COLON}{inner}{_QUOTE}{written}{_QUOTE}"
    inside = rf"\{{{_SPACE}(?:\}}|{_QUOTE}(?:{parameter}){_QUOTE}{_SPACE}:)"
    inverted = rf"{_QUOTE}(?:{'|'.join(ARGUMENT_KEYS)}){_QUOTE}{_COLON}{inside}"
    head = rf"\{{{_SPACE}{_BEFORE}(?:{named}|{inverted})"
    declared_name = f"(?P<name>{'|'.join(map(re.escape, sorted(declared, key=len, reverse=True))) or '(?!)'})"
    return re.compile(pattern.replace("HEAD", head).replace("NAMES", written).replace("DECLARED", declared_name))


@cache
def load(file: str) -> dict[str, Table]:
    """Read the tables of a file, given by its name without the extension; keyed by family."""
    document = tomllib.loads((resources.files(__package__) / f"{file}.toml").read_text("utf-8"))
    parts, templates = document.pop("parts", {}), document.pop("templates", {})
    return {name: Table(name, file, data, _COMMON | parts, templates) for name, data in document.items()}


def tables(module: str, *families: str) -> list[Table]:
    """Return the tables of families that the module `module` (its `__name__`) reads."""
    return [load(module.rpartition(".")[2])[family] for family in families]


def files() -> list[str]:
    """Return the names of all table files without the extension."""
    names = (file.name for file in resources.files(__package__).iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))
