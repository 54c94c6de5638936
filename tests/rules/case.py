"""The shape of a rule's cases. A file `tests/rules/<name>.py` holds `FIRES` and `SILENT`, side by side.

Each maps an id to a case: a `Talk` (run in every API, whole and streamed), one record, or a list of records that pass one
after the other (the last is judged). In `FIRES` a case may be wrapped by `Fires` to say more of what is expected.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tests.build import FORMS, REGISTRY, Talk
from wirelint.rule import Rule

ELSEWHERE = tuple(
    (api, False)
    for api in (
        "openai.responses",
        "google.generate_content",
        "ollama.chat",
        "mistral.chat",
        "cohere.chat",
        "bedrock.converse",
    )
)
"""The forms of a request in the other APIs that have a history."""


def without(*apis: str) -> tuple[tuple[str, bool], ...]:
    """`ELSEWHERE` less some APIs."""
    return tuple(form for form in ELSEWHERE if form[0] not in apis)


Case = Talk | Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True)
class Fires:
    """`says`: words that the message must hold. `forms`: the APIs and forms (api, streamed) a Talk is run in."""

    case: Case
    count: int = 1
    says: str = ""
    pointer: str | None = None
    severity: str | None = None
    layer: str | None = None
    fix: str | None = None
    forms: Sequence[tuple[str, bool]] = FORMS


@dataclass(frozen=True)
class Silent:
    """A silent case that makes sense in some forms only."""

    case: Case
    forms: Sequence[tuple[str, bool]] = FORMS


def expand(case: Case, forms: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The runs of a case: a label, and the records that pass."""
    items = list(case) if isinstance(case, Sequence) else [case]
    records = [item for item in items if not isinstance(item, Talk)]
    if len(records) == len(items):
        yield "", records
        return
    for api, stream in forms:
        label = f"{api}{' streamed' if stream else ''}"
        yield label, [item.record(api, stream) if isinstance(item, Talk) else item for item in items]


def module_of(rule: Rule) -> ModuleType:
    """The file of a rule's cases."""
    return importlib.import_module(f"tests.rules.{rule.name.replace('-', '_')}")


def fires(rules: Sequence[Rule] = REGISTRY.rules) -> Iterator[tuple[str, Rule, Fires]]:
    """All cases in which a rule fires: id, rule, case."""
    for rule in rules:
        for id_, case in module_of(rule).FIRES.items():
            yield f"{rule.name}-{id_}", rule, case if isinstance(case, Fires) else Fires(case)


def silent(rules: Sequence[Rule] = REGISTRY.rules) -> Iterator[tuple[str, Rule, Silent]]:
    """All cases in which a rule stays silent: id, rule, case."""
    for rule in rules:
        for id_, case in module_of(rule).SILENT.items():
            yield f"{rule.name}-{id_}", rule, case if isinstance(case, Silent) else Silent(case)


@contextmanager
def in_form(label: str) -> Iterator[None]:
    """Name the API and form of a run, or another label, in its failures."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"in the form: {label or 'as given'}")
        raise
