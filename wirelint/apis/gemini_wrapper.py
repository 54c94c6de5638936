"""Gemini's bodies within another one, as Code Assist has them (`v1internal:generateContent`, `:streamGenerateContent`).

A request is `{"model": …, "project": …, "request": {"contents": […], …}}`, a reply and each event of a stream
`{"response": {"candidates": […], …}, "traceId": …}`; errors stand as they are. Source: the vendor's Gemini CLI.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TypeVar

from wirelint.model import Json, Message, Part, Tool

REQUEST = "/request"
REPLY = "/response"
_INNER = ("candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata")

T = TypeVar("T", Part, Tool)


def is_wrapped(body: Mapping[str, Json]) -> bool:
    """Return True if a request holds one of Gemini's."""
    inner = body.get("request")
    return isinstance(inner, dict) and isinstance(inner.get("contents"), list | dict) and "contents" not in body


def unwrapped(document: dict[str, Json]) -> tuple[dict[str, Json], str]:
    """A reply of Gemini's and the pointer of what it stands in: empty where that is the document itself."""
    inner = document.get("response")
    if isinstance(inner, dict) and "candidates" not in document and any(name in inner for name in _INNER):
        return inner, REPLY
    return document, ""


def message_moved(message: Message, place: str) -> Message:
    """A message of a body that stands at a place in another one."""
    parts = tuple(moved(part, place) for part in message.parts)
    return dataclasses.replace(message, pointer=place + message.pointer, parts=parts)


def moved(one: T, place: str) -> T:
    return dataclasses.replace(one, pointer=place + one.pointer)
