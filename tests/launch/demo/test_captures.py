"""What the demo reads of its captures while they are written."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from wirelint.launch.demo.processes import Captures


class _Growing(io.BytesIO):
    """A file of which the rest of a line comes when its beginning has been read."""

    def __init__(self, lines: list[bytes]) -> None:
        super().__init__()
        self._lines = lines

    def __next__(self) -> bytes:
        if not self._lines:
            raise StopIteration
        return self._lines.pop(0)


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Captures(tmp_path)
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "exchanges.jsonl").touch()
    views = [[b'{"a":1}\n', b'{"b"', b":2}\n"], [b'{"b":2}\n']]
    monkeypatch.setattr(Path, "open", lambda path, mode: _Growing(views.pop(0)))
    assert written.wait(2) == [{"a": 1}, {"b": 2}]
    assert not views
