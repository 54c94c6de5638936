"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "problem", "skipped"]


@dataclass(frozen=True, slots=True)
class Check:
    """`found` says what is so, in one line; `cure` what to do about a problem."""

    name: str
    state: State
    found: str
    cure: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name, "ok", found)


def problem(name: str, found: str, cure: str) -> Check:
    return Check(name, "problem", found, cure)


def skipped(name: str, found: str) -> Check:
    return Check(name, "skipped", found)
