"""The shape of a rule's cases. A file `tests/rules/<name>.py` holds `FIRES` and `SILENT`, side by side.

Each maps an id to a case: a `Talk` (run in every API, whole and streamed), one record, or a list of records that pass one
after the other (the last is judged). In `FIRES` a case may be wrapped by `Fires` to say more of what is expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.build import FORMS, Talk

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
