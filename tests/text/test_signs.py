"""Signs where an output cannot show them."""

from __future__ import annotations

import io

import pytest

from wirelint.text.escaping import settle

SHOWN = {
    "utf-8": "● ✓ │ ^^^ … 漢 ü",
    "cp1252": "* v | ^^^ … \\u6f22 ü",
    "ascii": "* v | ^^^ . \\u6f22 \\xfc",
}


@pytest.mark.parametrize("encoding", SHOWN)
def test_an_output_shows_what_it_can(encoding: str) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding)
    settle(out, io.StringIO())
    out.write(SHOWN["utf-8"])
    out.flush()
    assert out.buffer.getvalue().decode(encoding) == SHOWN[encoding]
