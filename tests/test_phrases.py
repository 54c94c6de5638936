"""Phrase files: every key that a module uses is there, every key is used, and every expression compiles."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.selection import in_batches
from wirelint import lexicon

PACKAGE = Path(lexicon.__file__).parent.parent
KEY = re.compile(r'_PHRASES(?:\.(?:words|table|text|patterns?)\(|\[)\s*"(\w+)"')
USER = re.compile(r'^_PHRASES = (?:lexicon\.)?Phrases\("(\w+)"\)', re.MULTILINE)
USERS: dict[str, str] = defaultdict(str)
"""The sources of the modules that use a file."""
for _path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.parent.glob("rules/*.py")]):
    _text = _path.read_text(encoding="utf-8")
    if _match := USER.search(_text):
        USERS[_match[1]] += _text


def words_of(value: Any) -> Iterator[str]:
    """The texts of a table, however deep: rows name expressions."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from words_of(inner)


@in_batches("name", sorted(path.stem for path in (PACKAGE / "lexicon" / "phrases").glob("*.toml")))
def test_a_phrase_file_has_the_keys_that_are_used_and_no_others(name: str) -> None:
    table = lexicon.load(f"phrases/{name}")
    used, told = set(KEY.findall(USERS[name])), set(words_of(table))
    parts = {part for text in told for part in re.findall(r"\{([a-z_]\w*)\}", text)}
    quoted = set(re.findall(r'"(\w+)"', USERS[name]))
    assert used - table.keys() == set()
    assert table.keys() - used - parts - told - quoted == set()
    phrases = lexicon.Phrases(name)
    for key, value in table.items():
        if isinstance(value, str) and not re.search(r"\{[a-z_]\w*\}", value):
            assert phrases[key] is phrases[key]
