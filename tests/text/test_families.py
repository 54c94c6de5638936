from __future__ import annotations

from tests.tables import rows, tables
from wirelint.text.families import family, thinks

TABLES = tables(__file__)


@rows(TABLES["a_model_belongs_to_its_family"])
def test_a_model_belongs_to_its_family(model: str, known: str | None, thinker: bool) -> None:
    assert family(model) == known
    assert thinks(model) is thinker
