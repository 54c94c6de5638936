"""Verbs of action in other languages than English, from `lexicon/<language>.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from wirelint import lexicon

Forms = Mapping[str, str]
"""By kind of action (`actions.Kind`): words, separated by blanks."""


@dataclass(frozen=True, slots=True)
class Tongue:
    """The verbs of a language. `done`: claims; `asked`: orders of users; `soon`: announcements."""

    done: Forms
    asked: Forms
    soon: Forms


def _load(language: str) -> Tongue:
    tables = lexicon.load(language)
    return Tongue(
        *(
            MappingProxyType({kind: " ".join(words) for kind, words in tables[part].items()})
            for part in ("done", "asked", "soon")
        )
    )


GERMAN, FRENCH, SPANISH, CHINESE = _load("de"), _load("fr"), _load("es"), _load("zh")
JAPANESE, PORTUGUESE, ITALIAN = _load("ja"), _load("pt"), _load("it")
