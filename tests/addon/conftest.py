"""The addon in a context of mitmproxy, with the options that the module of the test names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.addon.build import inspecting
from wirelint.addon.addon import Inspector


@pytest.fixture
def inspector(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Inspector]:
    """The addon. Captures go to `captures` in the test's folder; `OPTIONS` of the module are further options."""
    options = {"wirelint_captures": str(tmp_path / "captures"), **getattr(request.module, "OPTIONS", {})}
    with inspecting(**options) as (inspector, _):
        yield inspector
