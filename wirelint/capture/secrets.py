"""Names of headers, query parameters and JSON keys that hold a secret, and the mark that replaces a secret.

Names are compared in one spelling: `apiKey`, `API-Key` and `api_key` are the same name.

Counts of tokens, pagination tokens, log probabilities (`{"token": "Hello"}`) and the signatures of reasoning blocks
look like secrets by their names and are none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

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
_SECRET_NAME = re.compile(
    r"(?:.*_)?(?:"
    r"password|passwd|pwd|passphrase|secret|authorization|credentials?|cookie"
    r"|(?:api|app|secret|private|signing|encryption|subscription|access|account|master|auth|service|role|admin)_?key|client_key_data"
    r"|(?:access|refresh|id|auth|authorization|bearer|session|security|csrf|xsrf|oauth|api|bot|github|gitlab|slack|hf|jwt"
    r"|sas|secret|service|webhook|verification|login|push|personal|line|channel)_?token"
    r")"
)
_SECRET_PARAMETERS = frozenset({"key", "token", "sig", "signature", "auth", "pass", "pw", "jwt"})
_CLOUD_PARAMETER = re.compile(r"x_(?:amz|goog)_(?!algorithm$|date$|expires$|signed_?headers$|content_sha256$)\w+")
_SECRET_HEADER = re.compile(
    r"token(?!s)|secret|password|passwd|credential|signature|cookie|authorization|^authentication$|-auth$|^(?:x-)?(?:[a-z]{2}-)?key$"
    r"|(?:api|access|auth|subscription|functions|master|private|account)[-_]?key"
)
_PLAIN_HEADER = re.compile(r"^access-control-|token-(?:type|count|limit|usage)|^www-authenticate$|-sha256$")
_COUNT = re.compile(r"[\d.,]+(?:ms|s|m|h)?|true|false", re.IGNORECASE)

_PLACEHOLDER = re.compile(
    r"\s*|null|none|undefined|nil|default|string|true|false|include|omit|same-origin|required|optional|bearer|basic"
    r"|<[^<>]*>|\$\{?\w+\}?|\$\(.*|\{\{?[^{}]*\}?\}|%\w+%|\*+|\.+|your[-_ ][a-z_ -]*|(?:process\.env|os\.environ)\b.*",
    re.IGNORECASE,
)
_PATH = re.compile(r"[/~.]|[A-Za-z]:\\")
_SECRET_TOKEN = re.compile(r"(?=[^\d\s]*\d)(?=[^A-Za-z\s]*[A-Za-z])\S{20,}")


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
        return _SECRET_TOKEN.fullmatch(value) is not None
    if normal.endswith("pwd") and _PATH.match(value):
        return False
    return _SECRET_NAME.fullmatch(normal) is not None


def is_secret_parameter(name: str) -> bool:
    """Return True if a query parameter of this name holds a secret."""
    normal = _normal(name)
    if normal.startswith(("x_amz_", "x_goog_")):
        return _CLOUD_PARAMETER.fullmatch(normal) is not None
    return normal in _SECRET_PARAMETERS or _SECRET_NAME.fullmatch(normal) is not None


def is_secret_header(name: str, value: str) -> bool:
    """Return True if a header holds a secret; rate limits and other counts of tokens do not."""
    word = _secret_word(name)
    if not word or not value.strip():
        return False
    return not (word == "token" and _COUNT.fullmatch(value.strip()))


@lru_cache(maxsize=512)
def _secret_word(header: str) -> str:
    """The part of a header's name that announces a secret; empty if none does."""
    lower = header.lower()
    match = None if _PLAIN_HEADER.search(lower) else _SECRET_HEADER.search(lower)
    return match.group() if match is not None else ""


def _normal(name: str) -> str:
    return _SEPARATORS.sub("_", _CAMEL.sub("_", name)).lower()


_SCHEME = re.compile(
    r"(?:bearer|basic|digest|negotiate|ntlm|token|apikey|api-key|key|aws4-hmac-sha256|hmac|dpop|oauth|goog4-rsa-sha256)\s+",
    re.IGNORECASE,
)


def split_scheme(value: str) -> tuple[str, str]:
    """The scheme word with its space, empty if there is none, and the secret."""
    match = _SCHEME.match(value)
    if match is None or match.end() == len(value):
        return "", value
    return value[: match.end()], value[match.end() :]
