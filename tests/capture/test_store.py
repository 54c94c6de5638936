"""The store: nothing lost that can be kept, nothing raised, nothing of others touched."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.build import some
from tests.fakes import Clock
from tests.live.harness import wait_until
from tests.selection import sampled
from wirelint.capture.format import encode
from wirelint.capture.readers import read
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.store import Counts, File, Piece, Store

LINES: Final = "exchanges.jsonl"
PATIENCE = 20.0


def _store(folder: Path, **options: object) -> tuple[Store, list[str]]:
    said: list[str] = []
    options = {"report": said.append, "clock": Clock(1_700_000_000.0), "backoff": (0.001, 0.01), **options}
    return Store(folder, Redactor(b"k"), **options), said  # type: ignore[arg-type]


def _queue(store: Store, file: File, make: Callable[[], bytes], **options: int) -> bool:
    return store.put(Piece(file, make), **options)


def _put(store: Store, text: str) -> bool:
    return _queue(store, "exchanges.jsonl", lambda: text.encode() + b"\n")


def _lines(folder: Path) -> list[str]:
    return [line for path in sorted(folder.glob(f"*/{LINES}")) for line in path.read_text().splitlines()]


def _put_record(store: Store, record: Record) -> bool:
    return _queue(store, LINES, functools.partial(encode, record, {}))


def test_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "captures"
    store, said = _store(folder)
    assert store.part is None, "no folder for a run without exchanges"
    record = Record(
        "1", "POST", "https://h/", (("authorization", "Bearer q1w2e3r4t5"),), b"{}", 200, (), b'"q1w2e3r4t5"'
    )
    assert _put_record(store, record)
    assert _queue(store, "flows.mitm", lambda: b"flow")
    assert store.close()
    (part,) = folder.iterdir()
    assert re.fullmatch(rf"20231114T221320Z-{store.run}", part.name)
    assert sorted(path.name for path in part.iterdir()) == [LINES, "flows.mitm"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in part.iterdir()} == {0o600}
    assert stat.S_IMODE(part.stat().st_mode) == stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert json.loads((part / LINES).read_text())["id"] == "1"
    assert (store.counts.written, store.counts.dropped, said) == (2, 0, [])
    assert not _put(store, "late")
    assert store.counts.dropped == 1


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    for text in "abc":
        store, _ = _store(tmp_path)
        _put(store, text)
        store.close()
    assert len(list(tmp_path.iterdir())) == 3
    assert sorted(_lines(tmp_path)) == ["a", "b", "c"]


def test_rotation_by_size_keeps_pairs_together(tmp_path: Path) -> None:
    store, _ = _store(tmp_path, max_part_bytes=28)
    for number in range(5):
        store.put(*_both(f"line {number}"))
    store.close()
    parts = sorted(tmp_path.iterdir())
    assert [(part / LINES).read_text().split("\n")[:-1] for part in parts] == [
        ["line 0", "line 1"],
        ["line 2", "line 3"],
        ["line 4"],
    ]
    assert [(part / "flows.mitm").read_text() for part in parts] == [
        "line 0;line 1;",
        "line 2;line 3;",
        "line 4;",
    ]


def test_rotation_by_age(tmp_path: Path) -> None:
    clock = Clock(1_700_000_000.0)
    store, _ = _store(tmp_path, max_part_age=3600, clock=clock)
    for number, later in enumerate((0, 3599, 1, 3600)):
        clock.time += later
        _put(store, str(number))
        wait_until(lambda number=number: store.counts.written == number + 1, "the writer")  # type: ignore[misc]
    store.close()
    assert [(part / LINES).read_text() for part in sorted(tmp_path.iterdir())] == ["0\n1\n", "2\n", "3\n"]


def _both(name: str) -> tuple[Piece, Piece]:
    return Piece("exchanges.jsonl", lambda: f"{name}\n".encode()), Piece("flows.mitm", lambda: f"{name};".encode())


def test_the_queue_is_bounded_and_what_an_exchange_puts_into_two_files_is_one_entry(tmp_path: Path) -> None:
    store, said = _store(tmp_path, max_queue_bytes=100)
    gate = threading.Event()
    assert _queue(store, "exchanges.jsonl", lambda: b"slow\n" if gate.wait(PATIENCE) else b"late\n", size=60)
    assert store.put(*_both("fits"), size=40)
    assert [store.put(*_both("no"), size=size) for size in (40, 1)] == [False] * 2
    assert (store.waiting, store.counts.dropped) == (2, 4)
    gate.set()
    assert store.close(PATIENCE)
    assert (_lines(tmp_path), store.counts.written, store.counts.dropped) == (["slow", "fits"], 3, 4)
    assert len([line for line in said if "as fast as" in line]) == 1
    assert "4 captures were not written" in said[-1]
    assert [path.read_text() for path in tmp_path.glob("*/flows.mitm")] == ["fits;"]
    assert not store.put(*_both("late"))
    assert store.counts.dropped == 6


@pytest.mark.parametrize("name", [LINES, "flows.mitm"])
def test_a_removed_file_starts_a_new_part(tmp_path: Path, name: str) -> None:
    store, _ = _store(tmp_path)
    _put(store, "before")
    _queue(store, "flows.mitm", lambda: b"flow")
    wait_until(lambda: store.counts.written == 2, "the writer")
    (store.part or tmp_path).joinpath(name).unlink()
    _put(store, "after")
    store.close(PATIENCE)
    assert _lines(tmp_path)[-1] == "after"


def test_a_folder_that_cannot_be_made_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.write_text("a file in the way")
    store, said = _store(folder)
    for number in range(3):
        assert _put(store, str(number))
    wait_until(lambda: bool(said), "the writer")
    folder.unlink()
    wait_until(lambda: store.counts.written == 3, "the writer")
    assert store.close(PATIENCE)
    assert _lines(folder) == ["0", "1", "2"]
    assert len(said) == 1, "a failure that lasts is reported once"
    assert str(folder) in said[0]


class _Disk:
    """A disk that takes `room` bytes and then says that it is full."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.refused = 0
        self._write = os.write

    def write(self, descriptor: int, data: bytes) -> int:
        if threading.current_thread().name != "wirelint-captures":
            return self._write(descriptor, data)
        if self.room <= 0:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


@pytest.mark.parametrize("room", sampled(range(1, 40), 14))
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """It is full in the middle of one of several entries, in either file.

    The part of an entry that still fitted is cut off; when there is room again, nothing is missing or torn.
    """
    disk = _Disk(room=room)
    monkeypatch.setattr("wirelint.capture.store.os.write", disk.write)
    store, said = _store(tmp_path)
    gate = threading.Event()
    _queue(store, "exchanges.jsonl", lambda: b"" if gate.wait(PATIENCE) else b"late\n")
    for number in range(5):
        store.put(*_both(f"line {number}"))
    gate.set()
    wait_until(lambda: disk.refused >= 3, "the writer")
    assert _lines(tmp_path) == [f"line {number}" for number in range(min((room + 7) // 14, 5))]
    disk.room = 1000
    wait_until(lambda: store.counts.written == 11, "the writer")
    assert store.close(PATIENCE)
    assert _lines(tmp_path) == [f"line {number}" for number in range(5)]
    assert [path.read_text() for path in tmp_path.glob("*/flows.mitm")] == ["line 0;line 1;line 2;line 3;line 4;"]
    assert store.counts == Counts(written=11, dropped=0, failed=0)
    assert len(said) == 1
    assert os.strerror(errno.ENOSPC) in said[0]


def test_closing_on_a_full_disk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirelint.capture.store.os.write", _Disk(room=0).write)
    store, said = _store(tmp_path, backoff=(60.0, 60.0))
    for number in range(5):
        _put(store, str(number))
    wait_until(lambda: bool(said), "the writer")
    store.close(PATIENCE)
    assert (store.counts.written, store.counts.dropped) == (0, 5)
    assert "5 captures were not written" in said[-1]


def test_a_failing_serialisation_costs_one_entry(tmp_path: Path) -> None:
    def fail() -> bytes:
        raise RuntimeError("broken for Bearer q1w2e3r4t5y6")

    def complain(_: str) -> None:
        raise RuntimeError("the callback is broken too")

    for report in (None, complain):
        folder = tmp_path / str(report is None)
        store, said = _store(folder, **({"report": report} if report else {}))
        _queue(store, "exchanges.jsonl", fail)
        _queue(store, "exchanges.jsonl", fail)
        _put(store, "after")
        store.close(PATIENCE)
        assert _lines(folder) == ["after"]
        assert store.counts.failed == 2
        assert len(said) == (1 if report is None else 0)
        assert not said or "q1w2e3r4t5y6" not in said[0]


WRITER = """
import sys, threading
from pathlib import Path
from typing import Final
from wirelint.capture.format import encode
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.store import Piece, Store
store = Store(Path(sys.argv[1]), Redactor(), report=lambda line: print("said", line, flush=True), backoff=(0.01, 0.01))
for number in range(int(sys.argv[2])):
    record = Record(str(number), "POST", "https://h/", (), b"x" * 200, 200, (), b"y" * 200)
    while not store.put(Piece("exchanges.jsonl", lambda record=record: encode(record, {}))):
        threading.Event().wait(0.001)
    if number == 50:
        while store.counts.written < 40:
            threading.Event().wait(0.001)
        print("going", flush=True)
print("closed", store.close(), store.counts, flush=True)
"""


def test_kill_9(tmp_path: Path) -> None:
    """A real process, killed while it writes: its whole lines are read."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), "100000000"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert some(process.stdout).readline() == "going\n"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
    items = list(read([tmp_path]))
    records = [item for item in items if isinstance(item, Record)]
    assert [record.id for record in records] == [str(number) for number in range(len(records))]
    assert len(records) >= 40
    assert len(items) - len(records) <= 1


@pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX")
def test_a_real_limit_on_file_size(tmp_path: Path) -> None:
    """The kernel refuses to let the file grow: the process lives, says so once, and whole lines stand on the disk."""
    script = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n" + WRITER.replace(
        "== 50", "== -1"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "60"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("said captures cannot be written") == 1
    records = list(read([tmp_path]))
    assert all(isinstance(record, Record) for record in records)
    assert 5 <= len(records) < 60
