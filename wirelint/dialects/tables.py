r"""Dialect tables: the TOML files of this package, one beside each module that reads its families.

    [lfm]                                            a family; its reader is `read_lfm` in the module of the same name,
    rank = 1                                         or the module's `row_reader` if there is no such function
    openers = ['(?&bar)tool_call_start\|{1,2}>']     see `openers` for the syntax
    speakers.lfm2 = ["lfm"]                          dialect → model families
    closers.'lfm:call' = "lfm2"                      see `values.Family` for `closers`, `lone` and `after_name`
    patterns.end = '<\|{1,2}tool_call_end\|{1,2}>'   regular expressions, attributes of the table in the module
    cuts.cut_end = '<\|tool_call_end\|>'            likewise, but matches what the end of the text cuts off

    named.call = 'DECLARED\s{0,3}\('                 sources for the names of declared tools, see `weak.compiled`

`(?&bar)` stands for a part: an entry of `[parts]` in the file, of `parts` in the family, or a common one of `_COMMON`.
`[templates.X]` in a file holds patterns that each family fills with parts of its own (`Table.expand`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, cast

from wirelint.dialects.openers import Opener, cut_pattern, parse, word_start
from wirelint.dialects.reader import Pattern

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
    """The table of one family. Its compiled patterns are attributes."""

    def __init__(
        self, name: str, data: Mapping[str, Any], parts: Mapping[str, str], templates: Mapping[str, Any]
    ) -> None:
        self.family = name
        self.data = data
        self.templates = templates
        self._parts = {**_COMMON, **parts, **data.get("parts", {})}
        self._patterns = {key: self.compile(source) for key, source in data.get("patterns", {}).items()}
        for key, source in data.get("cuts", {}).items():
            self._patterns[key] = re.compile(cut_pattern([parse(self.source(source))]))
        self.named = {key: self.source(source) for key, source in data.get("named", {}).items()}

    def __getattr__(self, name: str) -> Pattern:
        try:
            return cast("dict[str, Pattern]", self.__dict__["_patterns"])[name]
        except KeyError:
            raise AttributeError(name) from None

    def source(self, source: str, parts: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return a pattern source with its parts in place. `parts` come before those of the table."""
        known = {**self._parts, **parts}
        while _PART.search(source):
            source = _PART.sub(lambda part: known[part[1]], source)
        return source

    def expand(self, template: str, parts: Mapping[str, str]) -> dict[str, Pattern]:
        """Compile the patterns of a template."""
        return {key: re.compile(self.source(source, parts)) for key, source in self.templates[template].items()}

    def compile(self, source: str) -> Pattern:
        return re.compile(self.source(source))

    def openers(self, key: str = "openers") -> tuple[Opener, ...]:
        return tuple(parse(self.source(source)) for source in self.data.get(key, ()))

    @property
    def speakers(self) -> dict[str, frozenset[str]]:
        return {dialect: frozenset(families) for dialect, families in self.data.get("speakers", {}).items()}


@cache
def load(file: str) -> dict[str, Table]:
    """Read the tables of a file, given by its name without the extension; keyed by family."""
    document = tomllib.loads((resources.files(__package__) / f"{file}.toml").read_text("utf-8"))
    parts, templates = document.pop("parts", {}), document.pop("templates", {})
    return {name: Table(name, data, parts, templates) for name, data in document.items()}


def table(module: str, family: str) -> Table:
    """Return the table of a family that the module `module` (its `__name__`) reads."""
    return load(module.rpartition(".")[2])[family]


def files() -> list[str]:
    """Return the names of all table files without the extension."""
    return sorted(
        file.name.removesuffix(".toml")
        for file in resources.files(__package__).iterdir()
        if file.name.endswith(".toml")
    )
