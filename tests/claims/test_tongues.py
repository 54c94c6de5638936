from __future__ import annotations

import pytest

from wirelint.claims import tongues
from wirelint.claims.actions import ASKED, DONE, KINDS, SOON
from wirelint.claims.tongues import Tongue

ALL = {name: value for name, value in vars(tongues).items() if isinstance(value, Tongue)}


@pytest.mark.parametrize("name", ALL)
def test_every_kind_has_its_verbs(name: str) -> None:
    for forms in (ALL[name].done, ALL[name].asked, ALL[name].soon):
        assert set(forms) == set(KINDS)
        assert all(forms[kind].split() for kind in KINDS)


def test_every_language_is_used() -> None:
    assert len(ALL) == len(DONE) == len(ASKED) == len(SOON)
