"""What a secret looks like by itself: the forms of vendors' credentials (`tokens`), and what surrounds one in any text.

Theory of operation. Each shape is announced by a `hint`, mostly a literal that a substring search finds at memory speed;
the pattern runs only over text that holds its hint. Look-behinds stand after the literal, so that the pattern engine
can skip to it, and every repetition is over one character class, so that all of them are linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from wirelint.capture.secrets import Span, is_marked, is_placeholder
from wirelint.capture.tokens import find_tokens, may_hold_tokens

Find = Callable[[str], Iterator[Span]]
Check = Callable[[str], bool]


def _anything(_: str) -> bool:
    return True


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _is_token(text: str) -> bool:
    """Not a word of prose (`Bearer authentication`) and not a stand-in."""
    if is_placeholder(text):
        return False
    return _has_digit(text) or (len(text) >= 20 and text.lower() != text and text.upper() != text)


def _is_encoded(text: str) -> bool:
    return not is_placeholder(text) and (_has_digit(text) or "=" in text or text.lower() != text)


def _is_masked(text: str) -> bool:
    return text.startswith("sk-") or _has_digit(text)


def _is_mixed(text: str) -> bool:
    return _has_digit(text) and not is_placeholder(text)


def _any_of(*literals: str) -> Callable[[str], bool]:
    if len(literals) == 1:
        literal = literals[0]
        return lambda text: literal in text
    return lambda text: any(literal in text for literal in literals)


class Shape(NamedTuple):
    """`hint` is a quick look that rules most texts out, `find` gives the secrets of this shape."""

    hint: Callable[[str], bool]
    find: Find


def _pattern(pattern: str, check: Check = _anything, group: int = 0) -> Find:
    compiled = re.compile(pattern)

    def find(text: str) -> Iterator[Span]:
        for match in compiled.finditer(text):
            if check(secret := match.group(group)) and not is_marked(secret):
                yield Span(*match.span(group), secret)

    return find


_ASSIGNED = (
    r"(?i:(?:api|app|secret(?:[_-]?access)?|access|account|private|auth|signing|encryption|master|license)[_-]?key"
    r"|(?:access|auth|refresh|session|security|bot|api|github|gitlab|hf|npm|slack|vault)[_-]?token"
    r"|(?:client|app|signing|webhook|jwt|auth|api)[_-]?secret|password|passwd)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([^\s\"'`,;&()<>\[\]{}\\$|]{8,})"
)
"""`OPENAI_API_KEY=…`, `x-api-key: …` in a shell command, a log, a configuration file."""

_ASSIGNMENT = re.compile(r"(?:key|token|secret|password|passwd)[\"'\\]{0,8}\s{0,4}[:=]")
_QUERY = (
    r"(?:(?<=[?&])|\A)(?i:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|key|token"
    r"|(?:api|access)[_-]?key|(?:access|refresh|id)_token|client_secret|password)=([^&\s\"'`<>()\[\]\\]{8,})"
)
"""A query in the text, or a form as the whole text."""

_QUERY_HINTS = ("key=", "Key=", "KEY=", "token=", "Token=", "TOKEN=", "sig=", "ignature=", "redential=", "secret=",
                "assword=")  # fmt: skip


def _assigns(text: str) -> bool:
    return _ASSIGNMENT.search(text.lower()) is not None


_AWS_ID = re.compile(
    r"A(?:KI|SI)A(?:(?<![A-Za-z0-9]A[KS]IA)|(?<=%[0-9A-Fa-f][0-9A-Fa-f]A[KS]IA))[A-Z0-9]{16}(?![A-Za-z0-9])"
)
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_REACH = 256
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")


def _find_aws(text: str) -> Iterator[Span]:
    """The id of an AWS key, and the secret shortly after it, which has no shape of its own; a SHA-1 is none."""
    for key in _AWS_ID.finditer(text):
        yield Span(*key.span(), key.group())
        for match in _AWS_SECRET.finditer(text, key.end(), key.end() + _AWS_REACH):
            if not _HEXADECIMAL.fullmatch(match.group()):
                yield Span(*match.span(), match.group())
                break


_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,-]*")
_PEM_CONTENT = re.compile(r"[A-Za-z0-9+/=]{16}")


def _find_private_keys(text: str) -> Iterator[Span]:
    """PEM and PGP private keys, also one that was cut off before its end line. The bare header is no secret."""
    begin = _PEM_BEGIN.search(text)
    end = _PEM_END.search(text, begin.end()) if begin is not None else None
    while begin is not None:
        following = _PEM_BEGIN.search(text, begin.end())
        limit = following.start() if following is not None else len(text)
        if end is not None and end.start() < begin.end():
            end = _PEM_END.search(text, begin.end())
        if end is not None and end.end() <= limit:
            stop = end.end()
        else:
            body = _PEM_BODY.match(text, begin.end(), limit)
            stop = body.end() if body is not None else begin.end()
        if _PEM_CONTENT.search(text, begin.end(), stop):
            yield Span(begin.start(), stop, text[begin.start() : stop])
        begin = following


SHAPES: tuple[Shape, ...] = (
    Shape(may_hold_tokens, find_tokens),
    # An error message that shows the ends of the key: sk-ab12****wxyz.
    Shape(_any_of("**"), _pattern(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{2,24}\*{3,}[A-Za-z0-9_-]{2,12}", _is_masked)),
    Shape(_any_of("AKIA", "ASIA"), _find_aws),
    Shape(_any_of("-----BEGIN "), _find_private_keys),
    Shape(_any_of("earer", "EARER"), _pattern(r"(?i:bearer)\s{1,4}([A-Za-z0-9._~+/=-]{8,})", _is_token, 1)),
    Shape(
        _any_of("uthorization", "UTHORIZATION"),
        _pattern(
            r"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?i:basic|token|apikey)\s{1,4}([^\s\"',;\[\]\\]{6,})",
            _is_encoded,
            1,
        ),
    ),
    Shape(_assigns, _pattern(_ASSIGNED, _is_mixed, 1)),
    Shape(_any_of(*_QUERY_HINTS), _pattern(_QUERY, lambda text: not is_placeholder(text), 1)),
    Shape(_any_of("://"), _pattern(r"://[^/\s:@\"'\\]{0,64}:([^/\s:@\"'\\\[\]]{3,256})@(?=[\w\[])", _anything, 1)),
)


def shapes_in(text: str) -> tuple[Shape, ...]:
    """The shapes that `text`, or a part of it, can have at all."""
    return tuple(shape for shape in SHAPES if shape.hint(text))


def find_shapes(text: str, shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Span]:
    """Secrets that their own shape gives away, in no particular order; spans may overlap."""
    for hint, find in shapes:
        if hint(text):
            yield from find(text)
