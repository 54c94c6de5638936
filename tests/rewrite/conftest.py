"""What tests of replies share that follow those before them."""

from __future__ import annotations

import pytest

from wirelint.rewrite import ReplyStream
from wirelint.rewrite.following import Following, Forms


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[Following]:
    """Fills with what replies follow."""
    made: list[Following] = []
    real = Forms.following

    def noted(self: Forms, rewriting: ReplyStream) -> Following | None:
        found = real(self, rewriting)
        made.extend([found] if found is not None else [])
        return found

    monkeypatch.setattr(Forms, "following", noted)
    return made
