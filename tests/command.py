"""Running the command line as a user does, without the cost of a process."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wirelint.cli import main


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    def refuses(self, words: str, begin: str = "wirelint: ") -> None:
        """The command printed one line with these words, which begins like that, and ended with status 2."""
        assert (self.status, self.out, self.err.count("\n")) == (2, "", 1), self
        assert self.err.startswith(begin), self.err
        assert words in self.err, self.err


Wirelint = Callable[..., Ran]
SAMPLES = Path(__file__).resolve().parents[1] / "captures" / "samples"


def few_samples(folder: Path) -> None:
    """Make a folder of the shipped samples with few of the faults: commands that are only shown need no more."""
    folder.mkdir()
    shutil.copy(SAMPLES / "one-call.jsonl", folder)
    lines = (SAMPLES / "faults.jsonl").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if any(word in line[:60] for word in (b"-leak-", b"concatenated", b"collision"))]
    (folder / "faults.jsonl").write_bytes(b"".join(kept))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The documents of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def wirelint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Wirelint:
    """Calls `wirelint ARGS…`; gives exit status, stdout, stderr."""

    def run(*args: object, stdin: bytes = b"", columns: int = 100) -> Ran:
        monkeypatch.setattr(sys, "argv", ["wirelint", *map(str, args)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        return Ran(status, captured.out, captured.err)

    return run
