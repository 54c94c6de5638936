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


def document_order(value: object, pointer: str) -> tuple[tuple[int, str], ...]:
    """Where a place stands in a decoded body, as a key to sort by: members in the order of the document, items by number.

    What is not there comes after what is, numbers as numbers.

    >>> document_order({"model": "m", "messages": ["a", "b"]}, "/messages/1")
    ((1, ''), (1, ''))
    """
    steps: list[tuple[int, str]] = []
    for token in tokens(pointer if pointer[:1] == "/" else ""):
        place: int | None = None
        if isinstance(value, dict):
            place = next((number for number, name in enumerate(value) if name == token), None)
            value = value.get(token)
        elif token.isdecimal():
            place = int(token)
            value = value[place] if isinstance(value, list) and place < len(value) else None
        else:
            value = None
        steps.append((place, "") if place is not None else (_NOT_THERE, token))
    return tuple(steps)


_NOT_THERE = 1 << 62
