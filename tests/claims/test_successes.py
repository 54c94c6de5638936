from __future__ import annotations

import pytest

from wirelint.claims.contradictions import admits
from wirelint.text import prose


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The import failed.", True),
        ("It could not be saved.", True),
        ("It ran without any errors.", False),
        ("There were no errors, but it timed out.", True),
        ("Es lief ohne Fehler.", False),
        ("没有任何错误。", False),
        ("エラーはありません。", False),
        ("エラーが発生しました。抱歉", True),
        ("`error` is a name", False),
    ],
)
def test_admits(text: str, expected: bool) -> None:
    assert admits(prose.read(text)) is expected
