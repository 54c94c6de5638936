"""What a secret looks like: the names that hold one, and the shapes of well-known keys. Strings in, spans out.

Theory of operation. Each shape is announced by a `hint`, a literal that a plain substring search finds at memory speed;
the pattern runs only over text that holds its hint. Look-behinds stand after the literal, so that the pattern engine
can skip to it, and every repetition is over one character class, so that all of them are linear. Names are compared in
one spelling (`apiKey`, `API-Key` and `api_key` are the same name).

Counts of tokens, pagination tokens, log probabilities (`{"token": "Hello"}`) and the signatures of reasoning blocks
look like secrets by their names and are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

MARK = re.compile(r"\[redacted:[0-9a-f]{8}\]")
"""What stands in the place of a secret. The digits are equal where the secrets were."""

_MARKED = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]*\s+)?(?:\[|%5B)redacted:[0-9a-f]{8}(?:\]|%5D)", re.IGNORECASE)


class Span(NamedTuple):
    """Characters `start` to `end` of a text, which stand for the secret `secret`."""

    start: int
    end: int
    secret: str


# --- names -----------------------------------------------------------------------------------------------------------

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[-. ]+")
_SECRET_NAME = re.compile(
    r"(?:.*_)?(?:"
    r"password|passwd|pwd|passphrase|secret|authorization|credentials?|cookie"
    r"|(?:api|app|secret|private|signing|encryption|subscription|access|account|master|auth|service|role)_?key"
    r"|(?:access|refresh|id|auth|authorization|bearer|session|security|csrf|xsrf|oauth|api|bot|github|gitlab|slack|hf|jwt"
    r"|sas|secret|service|webhook|verification|login|push|personal)_?token"
    r")"
)
_SECRET_PARAMETERS = frozenset({"key", "token", "sig", "signature", "auth", "pass", "pw", "jwt"})
_CLOUD_PARAMETER = re.compile(r"x_(?:amz|goog)_(?!algorithm$|date$|expires$|signed_?headers$|content_sha256$)\w+")
_SECRET_HEADER = re.compile(
    r"token(?!s)|secret|password|passwd|credential|signature|cookie|authorization|^x-auth$"
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
    """Whether a value is nothing but a mark, with a scheme word before it perhaps."""
    return _MARKED.fullmatch(value.strip()) is not None


def is_secret_name(name: str) -> bool:
    """Whether a JSON key of this name holds a secret."""
    return _SECRET_NAME.fullmatch(_normal(name)) is not None


def holds_secret(name: str, value: str) -> bool:
    """Whether `value` under the JSON key `name` is a secret. Stand-ins (`null`, `your_api_key`, `${KEY}`) are none."""
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
    """Whether a query parameter of this name holds a secret."""
    normal = _normal(name)
    if normal.startswith(("x_amz_", "x_goog_")):
        return _CLOUD_PARAMETER.fullmatch(normal) is not None
    return normal in _SECRET_PARAMETERS or _SECRET_NAME.fullmatch(normal) is not None


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header holds a secret; rate limits and other counts of tokens do not."""
    lower = name.lower()
    if _PLAIN_HEADER.search(lower) or not value.strip():
        return False
    match = _SECRET_HEADER.search(lower)
    if match is None:
        return False
    return not (match.group() == "token" and _COUNT.fullmatch(value.strip()))


def _normal(name: str) -> str:
    return _SEPARATORS.sub("_", _CAMEL.sub("_", name)).lower()


# --- the parts of a header value -------------------------------------------------------------------------------------

_SCHEME = re.compile(
    r"(?:bearer|basic|digest|negotiate|ntlm|token|apikey|api-key|key|aws4-hmac-sha256|hmac|dpop|oauth|goog4-rsa-sha256)\s+",
    re.IGNORECASE,
)


def split_scheme(value: str) -> tuple[str, str]:
    """The scheme word with its space (empty when there is none), and the secret."""
    match = _SCHEME.match(value)
    if match is None or match.end() == len(value):
        return "", value
    return value[: match.end()], value[match.end() :]


# --- shapes ----------------------------------------------------------------------------------------------------------


def _anything(_: str) -> bool:
    return True


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _is_token(text: str) -> bool:
    """Not a word of prose (`Bearer authentication`) and not a stand-in."""
    if _PLACEHOLDER.fullmatch(text):
        return False
    return _has_digit(text) or (len(text) >= 20 and text.lower() != text and text.upper() != text)


class Shape(NamedTuple):
    """Group `group` of `pattern` is a secret if `check` agrees. `hints`: one of them stands in every text that fits."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = _anything
    group: int = 0


def _prefixed(prefix: str, rest: str, check: Callable[[str], bool] = _anything) -> Shape:
    literal = re.escape(prefix)
    return Shape((prefix,), re.compile(rf"{literal}(?<![A-Za-z0-9]{literal}){rest}"), check)


_ASSIGNED = (
    r"(?:api[_-]?key|secret[_-]?(?:access[_-]?)?key|access[_-]?key|account[_-]?key|private[_-]?key|auth[_-]?key"
    r"|(?:access|auth|refresh|session|security|bot|api|github|gitlab|hf)[_-]?token|client[_-]?secret|app[_-]?secret"
    r"|password|passwd)"
)
_ASSIGNED_HINTS = tuple(
    spelling
    for word in ("key", "token", "secret", "password", "passwd")
    for spelling in (word, word.upper(), word.capitalize())
)

SHAPES: tuple[Shape, ...] = (
    # OpenAI (sk-, sk-proj-), Anthropic (sk-ant-), OpenRouter (sk-or-) and the many that copied them.
    _prefixed("sk-", r"[A-Za-z0-9_-]{16,}", _has_digit),
    Shape(("sk-",), re.compile(r"sk-(?<![A-Za-z0-9]sk-)(?:ant|proj|or|svcacct|admin|lf|lit)-[A-Za-z0-9_-]{8,}")),
    # An error message that shows the ends of the key: sk-ab12****wxyz.
    Shape(("**",), re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{2,24}\*{3,}[A-Za-z0-9_-]{2,12}"), _has_digit),
    _prefixed("gsk_", r"[A-Za-z0-9]{20,}"),
    _prefixed("xai-", r"[A-Za-z0-9]{20,}"),
    _prefixed("csk-", r"[A-Za-z0-9]{20,}"),
    _prefixed("pplx-", r"[A-Za-z0-9]{20,}"),
    _prefixed("nvapi-", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("fw_", r"[A-Za-z0-9]{20,}", _has_digit),
    _prefixed("tgp_v1_", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("tvly-", r"[A-Za-z0-9-]{16,}", _has_digit),
    _prefixed("lsv2_", r"[A-Za-z0-9_]{20,}"),
    _prefixed("ek_", r"[A-Za-z0-9]{24,}", _has_digit),
    _prefixed("sess-", r"[A-Za-z0-9]{24,}", _has_digit),
    _prefixed("hf_", r"[A-Za-z0-9]{20,}"),
    _prefixed("r8_", r"[A-Za-z0-9]{24,}"),
    _prefixed("dapi", r"[0-9a-f]{32}(?![0-9a-f])"),
    # Google
    _prefixed("AIza", r"[A-Za-z0-9_-]{30,}"),
    _prefixed("ya29.", r"[A-Za-z0-9_-]{20,}"),
    _prefixed("GOCSPX-", r"[A-Za-z0-9_-]{16,}"),
    # Forges and chat
    *(_prefixed(f"gh{letter}_", r"[A-Za-z0-9]{20,}") for letter in "pousr"),
    _prefixed("github_pat_", r"[A-Za-z0-9_]{20,}"),
    _prefixed("glpat-", r"[A-Za-z0-9_-]{16,}"),
    *(_prefixed(f"xox{letter}-", r"[A-Za-z0-9-]{10,}") for letter in "abeprs"),
    _prefixed("xapp-", r"[A-Za-z0-9-]{10,}", _has_digit),
    _prefixed("npm_", r"[A-Za-z0-9]{30,}"),
    _prefixed("pypi-AgE", r"[A-Za-z0-9_-]{20,}"),
    *(_prefixed(f"{kind}_{mode}_", r"[A-Za-z0-9]{16,}") for kind in ("sk", "rk") for mode in ("live", "test")),
    _prefixed("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    # AWS: the id of a key. The secret half has no shape of its own: see `find_shapes`.
    _prefixed("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _prefixed("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    # A JSON Web Token: three base64url runs, the first two of JSON objects.
    Shape(("eyJ",), re.compile(r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")),
    Shape(("earer", "EARER"), re.compile(r"(?i:bearer)\s{1,4}([A-Za-z0-9._~+/=-]{8,})"), _is_token, 1),
    Shape(
        ("uthorization", "UTHORIZATION"),
        re.compile(r"(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?i:basic|token|apikey)\s{1,4}([^\s\"',;\[\]\\]{6,})"),
        _is_token,
        1,
    ),
    Shape(
        _ASSIGNED_HINTS,
        re.compile(rf"(?i:{_ASSIGNED})[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?([^\s\"'`,;&()<>\[\]{{}}\\$|]{{8,}})"),
        lambda text: _has_digit(text) and not _PLACEHOLDER.fullmatch(text),
        1,
    ),
    # A query in the text, or a form as the whole body.
    Shape(
        ("=",),
        re.compile(r"(?:(?<=[?&])|\A)(?i:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|key|token"
                   r"|(?:api|access)[_-]?key|(?:access|refresh|id)_token|client_secret|password)"
                   r"=([^&\s\"'`<>()\[\]\\]{8,})"),
        lambda text: not _PLACEHOLDER.fullmatch(text),
        1,
    ),
    Shape(("://",), re.compile(r"://[^/\s:@\"'\\]{0,64}:([^/\s:@\"'\\\[\]]{3,256})@(?=[\w\[])"), _anything, 1),
)  # fmt: skip

_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_AWS_REACH = 256
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\:,-]*")
_PEM_HINT = "-----BEGIN "


def shapes_in(text: str) -> tuple[Shape, ...]:
    """The shapes that `text`, or a part of it, can have at all."""
    return tuple(shape for shape in SHAPES if any(hint in text for hint in shape.hints))


def find_shapes(text: str, shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Span]:
    """Secrets that their own shape gives away, in no particular order; spans may overlap."""
    for hints, pattern, check, group in shapes:
        if not any(hint in text for hint in hints):
            continue
        for match in pattern.finditer(text):
            if check(secret := match.group(group)) and not is_marked(secret):
                yield Span(*match.span(group), secret)
                if hints in (("AKIA",), ("ASIA",)):
                    yield from _aws_secrets(text, match.end())
    if _PEM_HINT in text:
        yield from _private_keys(text)


def _aws_secrets(text: str, position: int) -> Iterator[Span]:
    """The secret that stands shortly after the id of an AWS key; a SHA-1 (40 hexadecimal digits) is none."""
    for match in _AWS_SECRET.finditer(text, position, position + _AWS_REACH):
        if not _HEXADECIMAL.fullmatch(match.group()):
            yield Span(*match.span(), match.group())
            return


def _private_keys(text: str) -> Iterator[Span]:
    """PEM and PGP private keys, also one that was cut off before its end line."""
    position = 0
    end: re.Match[str] | None = None
    ends = True
    while (begin := _PEM_BEGIN.search(text, position)) is not None:
        if ends and (end is None or end.start() < begin.end()):
            end = _PEM_END.search(text, begin.end())
            ends = end is not None
        body = _PEM_BODY.match(text, begin.end())
        stop = end.end() if ends and end is not None else body.end() if body is not None else begin.end()
        # A second BEGIN before the END belongs to a key of its own.
        again = _PEM_BEGIN.search(text, begin.end(), stop)
        stop = again.start() if again is not None else stop
        yield Span(begin.start(), stop, text[begin.start() : stop])
        position = stop
