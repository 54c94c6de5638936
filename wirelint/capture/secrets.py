"""Names of headers, query parameters and JSON keys that hold a secret, and the mark that replaces a secret.

Names are compared in one spelling: `apiKey`, `API-Key` and `api_key` are the same name.

Counts of tokens, pagination tokens, log probabilities (`{"token": "Hello"}`) and the signatures of reasoning blocks
look like secrets by their names and are none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from wirelint.lexicon import Phrases

MARK = re.compile(r"\[redacted:[0-9a-f]{8}\]")
"""The mark of a secret. Equal secrets have equal digits."""

_MARKED = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9-]*\s+)?(?:\[redacted:[0-9a-f]{8}\]|%5Bredacted%3A[0-9a-f]{8}%5D)", re.IGNORECASE
)


class Span(NamedTuple):
    """Characters `start` to `end` of a text, which stand for the secret `secret`."""

    start: int
    end: int
    secret: str


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[-. ]+")
_PATH = re.compile(r"[/~.]|[A-Za-z]:\\")
_PHRASES = Phrases("secrets")
_SECRET_NAME, _PLACEHOLDER = _PHRASES["secret_name"], _PHRASES["placeholder"]
_SECRET_PARAMETERS = frozenset(_PHRASES.words("secret_parameters"))


def is_marked(value: str) -> bool:
    """Return True if a value is a mark, with or without a scheme word before it."""
    return _MARKED.fullmatch(value.strip()) is not None


def is_placeholder(value: str) -> bool:
    """Return True if a value only stands in for a secret: `null`, `your_api_key`, `${KEY}`."""
    return _PLACEHOLDER.fullmatch(value) is not None


def is_secret_name(name: str) -> bool:
    """Return True if a JSON key of this name holds a secret."""
    return _SECRET_NAME.fullmatch(_normal(name)) is not None


def holds_secret(name: str, value: str) -> bool:
    """Return True if `value` under the JSON key `name` is a secret, and no stand-in such as `null` or `${KEY}`."""
    if is_marked(value) or _PLACEHOLDER.fullmatch(value):
        return False
    normal = _normal(name)
    if normal == "token":
        # Log probabilities have one word of text under this key; a credential is long and mixed.
        return _PHRASES["secret_token"].fullmatch(value) is not None
    if normal.endswith("pwd") and _PATH.match(value):
        return False
    return _SECRET_NAME.fullmatch(normal) is not None


def is_secret_parameter(name: str) -> bool:
    """Return True if a query parameter of this name holds a secret."""
    normal = _normal(name)
    if normal.startswith(("x_amz_", "x_goog_")):
        return _PHRASES["cloud_parameter"].fullmatch(normal) is not None
    return normal in _SECRET_PARAMETERS or _SECRET_NAME.fullmatch(normal) is not None


def is_secret_header(name: str, value: str) -> bool:
    """Return True if a header holds a secret; rate limits and other counts of tokens do not."""
    word = _secret_word(name)
    if not word or not value.strip():
        return False
    return not (word == "token" and _PHRASES["count"].fullmatch(value.strip()))


@lru_cache(maxsize=512)
def _secret_word(header: str) -> str:
    """The part of a header's name that announces a secret; empty if none does."""
    lower = header.lower()
    match = None if _PHRASES["plain_header"].search(lower) else _PHRASES["secret_header"].search(lower)
    return match.group() if match is not None else ""


def _normal(name: str) -> str:
    return _SEPARATORS.sub("_", _CAMEL.sub("_", name)).lower()


def split_scheme(value: str) -> tuple[str, str]:
    """The scheme word with its space, empty if there is none, and the secret."""
    match = _PHRASES["scheme"].match(value)
    if match is None or match.end() == len(value):
        return "", value
    return value[: match.end()], value[match.end() :]
