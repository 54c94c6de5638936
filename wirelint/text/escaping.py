r"""Escaping of output, and short forms of texts for messages.

Names, texts and addresses come from the wire. Any of them may hold an escape sequence that hides or rewrites the screen, a
control of the writing direction, or invisible characters. `main` replaces standard output and standard error by a `Guard`,
which writes such characters as escapes; result files have one too. Output drawn by rich bypasses it: `view.screen` escapes
text before it adds colours.

Escapes are those of JSON (`\u202e`, `\udb40\udc41`), so that JSON keeps its meaning.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from typing import Any, TextIO

# Wording of one-line messages: excerpts, lists and counts.

REDACTED = "[redacted:"
"""Start of the text that replaces a redacted secret."""


def excerpt(text: str, limit: int = 60) -> str:
    """Return a text with folded white space and without its middle, if it is long."""
    folded = " ".join(text.split())
    if len(folded) <= limit:
        return folded
    head = (limit - 1) * 2 // 3
    return f"{folded[:head]}…{folded[len(folded) - (limit - 1 - head) :]}"


def shorten(text: str, limit: int) -> str:
    """Cut a text to `limit` characters; the last one shows that it is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first `most` names and the number of the others: `a, b and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 file`, `2 files`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def amount(count: int, noun: str) -> str:
    """Return `a call` for one, `3 calls` for more."""
    return f"a {noun}" if count == 1 else counted(count, noun)


_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters of ASCII and of ISO 6429
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the writing direction
    "\u2028\u2029"  # ends of a line and of a paragraph
    "\u00ad\u115f\u1160\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # invisible characters
    "\U000e0000-\U000e007f"  # tags: invisible ASCII
    "\ud800-\udfff]"
)
"""Joiners (U+200C, U+200D) and variation selectors are not included: Persian, Hindi and most emoji need them."""

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_OURS = re.compile(r"(\x1b\[[012]m)")
"""Escape sequences of the help pages: bold, dim, reset."""


def printable(text: str, keep: str = "") -> str:
    """Return a text with control characters and invisible characters escaped, except those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return _ACTIVE.sub(lambda match: match[0] if match[0] in keep else _escaped(match[0]), text)


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))


class Guard:
    """A text output that escapes control characters except line ends and tabs. It delegates the rest to `below`."""

    def __init__(self, below: TextIO) -> None:
        self.below = below

    def write(self, text: str) -> int:
        if "\x1b" in text and self.below.isatty():
            pieces = _OURS.split(text)
            pieces[::2] = [printable(piece, "\n\t") for piece in pieces[::2]]
            self.below.write("".join(pieces))
        else:
            self.below.write(printable(text, "\n\t"))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


def guarded(output: TextIO) -> TextIO:
    return output if isinstance(output, Guard) else Guard(output)  # type: ignore[return-value]


def unguarded(output: TextIO) -> TextIO:
    """Return the output of a guard, for text that is escaped already and for the output of other programs."""
    return output.below if isinstance(output, Guard) else output


@contextmanager
def _redirected(change: Callable[[TextIO], TextIO]) -> Iterator[None]:
    with redirect_stdout(change(sys.stdout)), redirect_stderr(change(sys.stderr)):
        yield


guard, no_guard = partial(_redirected, guarded), partial(_redirected, unguarded)
"""Guard standard output and standard error during a `with` block, or remove their guards."""


# Replacements for wirelint's signs on outputs that cannot encode them: Windows pipes are often cp1252, some terminals
# are ASCII.

_PLAIN = dict(zip("●▲·✓✎✗■▸…│─━→←⇢⇠↵␍⇥", "*!.v~x#>.|-=><><//>", strict=True))
"""One character for each sign, so that columns stay aligned."""

ERRORS = "wirelint-signs"
"""Name of the encoding error handler: signs become plain characters, other characters are escaped."""


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    made = (_PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text)
    return "".join(made), error.end


codecs.register_error(ERRORS, _replace)


def settle(*outputs: TextIO) -> None:
    """Make outputs replace characters that they cannot encode, instead of failing."""
    for output in outputs:
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors=ERRORS)
