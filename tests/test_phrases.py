"""Phrase files: every key that a module uses is there, every key is used, and every expression compiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wirelint import lexicon

PACKAGE = Path(lexicon.__file__).parent.parent
KEY = re.compile(r'_PHRASES(?:\.(?:words|table|text|patterns?)\(|\[)\s*"(\w+)"')
USERS = {
    match[1]: path
    for path in sorted(PACKAGE.rglob("*.py"))
    if (match := re.search(r'^_PHRASES = lexicon\.Phrases\("(\w+)"\)', path.read_text(encoding="utf-8"), re.MULTILINE))
}


@pytest.mark.parametrize("name", sorted(path.stem for path in (PACKAGE / "lexicon" / "phrases").glob("*.toml")))
def test_phrases(name: str) -> None:
    table = lexicon.load(f"phrases/{name}")
    used = set(KEY.findall(USERS[name].read_text(encoding="utf-8")))
    parts = {part for text in table.values() for part in re.findall(r"\{([a-z_]\w*)\}", str(text))}
    assert used - table.keys() == set()
    assert table.keys() - used - parts == set()
    phrases = lexicon.Phrases(name)
    for key, value in table.items():
        if isinstance(value, str) and not re.search(r"\{[a-z_]\w*\}", value):
            assert phrases[key] is phrases[key]
