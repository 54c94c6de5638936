"""JSON Pointers (RFC 6901): what they name in a decoded body."""

from __future__ import annotations

from wirelint.model import Json


def tokens(pointer: str) -> list[str]:
    """The reference tokens of a pointer. Raises ValueError when it is none."""
    if not pointer:
        return []
    if pointer[0] != "/":
        raise ValueError(f"no JSON Pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def escaped(token: str) -> str:
    """A member's name as a reference token."""
    return token.replace("~", "~0").replace("/", "~1")


def at(value: object, pointer: str) -> Json:
    """What stands at a place of a decoded body; None where nothing does.

    >>> at({"messages": [{"role": "user"}]}, "/messages/0/role")
    'user'
    """
    for token in tokens(pointer):
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value  # type: ignore[return-value]  # what stands in JSON is JSON
