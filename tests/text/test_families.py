from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirelint.text.families import family, thinks

TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("families.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("model", "known", "thinker"), TABLES["a_model_belongs_to_its_family"])
def test_a_model_belongs_to_its_family(model: str, known: str | None, thinker: bool) -> None:
    assert family(model) == known
    assert thinks(model) is thinker
