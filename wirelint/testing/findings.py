"""Findings as they stand in captures, read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, get_args

from wirelint.model import Confidence, Json, Layer, Severity, Side
from wirelint.rule import Finding, Fix, Safety

Word = TypeVar("Word", bound=str)


def read_finding(value: Mapping[str, Json]) -> Finding:
    """What is not understood of a finding is replaced by what is least: it was written by us."""
    fix, event = value.get("fix"), value.get("event")
    safety = _word(fix.get("safety"), get_args(Safety), "unsafe") if isinstance(fix, dict) else None
    return Finding(
        code=_text(value.get("code")),
        name=_text(value.get("name")),
        severity=_word(value.get("severity"), get_args(Severity), "info"),
        confidence=_word(value.get("confidence"), get_args(Confidence), "low"),
        layer=_word(value.get("layer"), get_args(Layer), "wirelint"),
        side=_word(value.get("side"), get_args(Side), "response"),
        message=_text(value.get("message")),
        pointer=_text(value.get("pointer")) or None,
        event=event if isinstance(event, int) else None,
        fix=Fix(safety, _text(fix.get("title"))) if isinstance(fix, dict) and safety is not None else None,
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _word(value: Json, words: tuple[Word, ...], least: Word) -> Word:
    return next((word for word in words if word == value), least)
