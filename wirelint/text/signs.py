"""Our signs where an output cannot show them: pipes of Windows are often cp1252, and some terminals know ASCII alone."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

_PLAIN = {
    "●": "*",
    "▲": "!",
    "·": ".",
    "✓": "v",
    "✎": "~",
    "✗": "x",
    "■": "#",
    "▸": ">",
    "…": ".",
    "│": "|",
    "─": "-",
    "━": "=",
    "→": ">",
    "←": "<",
    "⇢": ">",
    "⇠": "<",
    "↵": "/",
    "␍": "/",
    "⇥": ">",
}
"""A sign for a sign, so that columns stay in place."""

ERRORS = "wirelint-signs"
"""The name of the error handler: signs become plain ones, all else is escaped."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    made = (_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text)
    return "".join(made), error.end


codecs.register_error(ERRORS, _replace)


def settle(*outputs: TextIO) -> None:
    """Has outputs show what they can of everything, instead of failing."""
    for output in outputs:
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors=ERRORS)
