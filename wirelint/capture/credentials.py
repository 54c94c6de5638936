"""The secrets that a request carries in its headers and its URL, to be known wherever else they turn up."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from urllib.parse import unquote_plus

from wirelint.capture.secrets import is_marked, is_secret_parameter, split_scheme

_SHORTEST_KNOWN = 8
_SHORTEST_COOKIE = 16
# What people give a local server that wants no key; words of ordinary text, not worth taking out of it.
_DUMMIES = frozenset({"lm-studio", "not-needed", "notneeded", "no-key-required", "dummy-key", "anthropic", "openrouter",
                      "undefined", "placeholder", "anything", "localhost", "not-required", "vllm-local"})  # fmt: skip
USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)@")


@lru_cache(maxsize=64)
def carried(name: str, value: str) -> list[str]:
    """The secrets in one header of a request that holds some, each by itself."""
    if "cookie" in name.lower():
        values = [crumb.partition("=")[2].strip() for crumb in value.split(";")]
        return [crumb for crumb in values if len(crumb) >= _SHORTEST_COOKIE]
    scheme, secret = split_scheme(value)
    secret = secret.strip()
    if scheme.strip().lower() != "basic":
        return [secret]
    try:
        plain = base64.b64decode(secret, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return [secret]
    return [secret, plain.partition(":")[2]]


def carried_by_url(url: str) -> list[str]:
    """The secrets in a URL: of its user, and of its parameters, as they stand there and as they are meant."""
    if "@" not in url and "?" not in url:
        return []
    found: list[str] = []
    if match := USERINFO.match(url):
        found.append(match[2].partition(":")[2] or match[2])
    for parameter in url.partition("?")[2].partition("#")[0].split("&"):
        name, _, value = parameter.partition("=")
        if is_secret_parameter(unquote_plus(name)):
            found.append(value)
    plain = [unquote_plus(secret) for secret in found]
    return found + [secret for secret in plain if secret not in found]


def is_worth_knowing(secret: str) -> bool:
    """Whether a secret is to be looked for in texts: it is not too short, not a word of prose, and not a mark."""
    return len(secret) >= _SHORTEST_KNOWN and secret.lower() not in _DUMMIES and not is_marked(secret)
