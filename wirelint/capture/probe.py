r"""A quick look that proves most texts harmless, so that nothing else has to look at them.

Theory of operation. Every secret that has a form (`tokens`), a shape (`shapes`) or a telling name (`secrets`) comes with a
few bytes that ordinary traffic seldom has: a prefix before a long run of letters, a name before a colon. `harmless` looks
for those bytes and nothing else, in a handful of searches that each begin with one literal byte, which the pattern engine
skips to at memory speed.

It errs on one side. What it calls harmless holds no secret of a shape or a name: not in the text, not in a part of it, and
not in what a JSON reader makes of a literal in it, at any depth. So nothing here looks at what stands *before* a prefix
or *after* a run, where an escape, or the end of a fragment, would make a difference. Names are searched in the text
without its white space, quotation marks, backslashes and all that is not ASCII, so that `"api_key": "`, `api_key = '` and
`\"apiKey\":\"` are one case.
"""

from __future__ import annotations

import re
from functools import cache

from wirelint.capture.secret_patterns import signs

# Characters that a pattern without regard to case takes for an ASCII letter (Unicode, CaseFolding and SpecialCasing).
_FOLDED = (("\u212a", b"k"), ("\u017f", b"s"), ("\u0130", b"i"), ("\u0131", b"i"))

_PLAIN = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ=", b"abcdefghijklmnopqrstuvwxyz:")
_BETWEEN = b" \t\n\v\f\r\x1c\x1d\x1e\x1f\"'\\" + bytes(range(0x80, 0x100))


_STRUCTURES = (
    # An escape of a printable ASCII character or of a folded one, which may hide anything; one of white space between
    # name and colon.
    ("\\", r"(?:/|u(?:00[2-7]|(?i:212a|017f|013[01]))|(?:[bfnrt]|u[0-9a-fA-F]{4})\s*[:=])"),
    ("A", r"(?<=A)(?=[KS]IA[A-Z0-9]{16})"),
    ("*", r"(?<=[A-Za-z0-9_-]\*)(?=\*\*+[A-Za-z0-9_-]{2})"),
    ("K", r"(?<=PRIVATE K)(?=EY)"),
)
"""A character that is seldom there at all, and what has to stand around it: signs of secrets that `shapes` describes."""

_QUERY = re.compile(
    rb"=(?:(?<=[kK][eE][yY]=)|(?<=[sS][iI][gG]=)|(?<=[uU][rR][eE]=)|(?<=[iI][aA][lL]=))[^\s&\"'`<>()\[\]]{8}"
)

# `(?<=...)` three letters wide first: it lets almost none of the keys of ordinary traffic through to the others.
_NAMES = re.compile(
    rb":(?<=[krospai][erwsoali][yntdels]:)(?:(?<=[-_.iptegnsrh]key:)|(?<=token:)|(?<=secret:)|(?<=password:)|(?<=passwd:)"
    rb"|(?<=pwd:)|(?<=passphrase:)|(?<=authorization:)|(?<=credential:)|(?<=credentials:)|(?<=cookie:))"
)


_USER = re.compile(rb"://[^/\s:@\"']*+:[^/\s:@\"']*+@")
"""`https://user:password@`. A backslash may begin an escape of a letter; what stands for itself excludes itself."""


@cache
def _signs() -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
    return tuple((anchor.encode(), re.compile(sign.encode())) for anchor, sign in signs(*_STRUCTURES))


def harmless(text: str) -> bool:
    """Return True if no secret can be in `text` that a shape or a name gives away. False says nothing."""
    raw = text.encode("utf-8", "surrogatepass")
    for first, sign in _signs():
        if first in raw and sign.search(raw) is not None:
            return False
    if len(raw) != len(text):
        for character, letter in _FOLDED:
            if character in text:
                raw = raw.replace(character.encode(), letter)
    if b"@" in raw and _USER.search(raw) is not None:
        return False
    if b"=" in raw and _QUERY.search(raw) is not None:
        return False
    plain = raw.translate(_PLAIN, _BETWEEN)
    return b"bearer" not in plain and _NAMES.search(plain) is None
