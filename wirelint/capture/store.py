"""Store of captures on disk, written by a separate thread.

Theory of operation. `put` queues a function and returns. The thread calls the function for the bytes and appends them to a
file of the current *part*, a folder named by its time and process (`20260131T094500Z-4242`). A run has one part, until
it is too large or too old and the next one begins. An entry is one write to an unbuffered file, so that a killed process
leaves at most one torn line. A new process never appends to an old part.

After a failed write (the disk is full, the folder is gone or read-only) the incomplete exchange is cut off, the failure
is reported once, and the write is repeated after a pause that doubles. The queue holds a limited number of bytes.
Exchanges that find it full are dropped and counted.

The thread shares the lock of the interpreter with the traffic, and would delay the next request if it began at once. So
it lets entries gather for a moment, and rests after each spell of work.

With a `Shipper`, each new part gets the file `.ship`, which is locked until the part is finished (see `ship.py`).
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import secrets
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from wirelint.capture.redact import Redactor
from wirelint.model import Json

if TYPE_CHECKING:
    from wirelint.capture.ship import Shipper

FLUSH = 8.0
"""Seconds for the last uploads when the proxy stops: Docker kills a container after 10."""
SHIP_MARK = ".ship"
"""Name of the file in a part that is to be shipped. Its text is the folder of the part in the storage."""
_STAMP = "%Y%m%dT%H%M%SZ"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
for _flag in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)  # each is missing on some system


class TornError(OSError):
    """A piece of an entry is in the file and could not be cut off. Nothing may follow it."""


class _Open:
    """An open file. `size` counts its whole entries in bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, _FLAGS, 0o600)
        state = os.fstat(self.descriptor)
        self.size = state.st_size
        self.identity = (state.st_dev, state.st_ino)

    def is_intact(self) -> bool:
        """Return True if the path still leads to this file. A removed open file takes writes without an error."""
        try:
            state = os.stat(self.path)
        except OSError:
            return False
        return (state.st_dev, state.st_ino) == self.identity


class Part:
    """An open folder of captures with mode 0700, its files 0600."""

    def __init__(self, path: Path, started: float) -> None:
        self.path = path
        self.started = started
        self._files: dict[str, _Open] = {}
        self._mark: _Open | None = None

    @classmethod
    def create(cls, folder: Path, now: float, run: str) -> Part:
        """Make a folder for a part of a run below `folder`, and `folder` if it is missing. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        name = f"{datetime.fromtimestamp(now, UTC).strftime(_STAMP)}-{run}"
        for number in itertools.count(1):
            path = folder / (name if number == 1 else f"{name}-{number:03}")
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                if not path.exists() and not path.is_symlink():
                    raise  # `folder` itself is a file
                continue
            return cls(path, now)
        raise AssertionError("unreachable")

    def mark(self) -> None:
        """Make the file `.ship`, locked until `close`. Raises OSError."""
        import fcntl  # missing on Windows, where nothing is shipped

        new = self.path / f"{SHIP_MARK}.new"
        self._mark = _Open(new)
        fcntl.flock(self._mark.descriptor, fcntl.LOCK_EX)
        host = re.sub(r"[^\w.-]", "_", socket.gethostname(), flags=re.ASCII) or "localhost"
        os.write(self._mark.descriptor, f"{host}/{self.path.name}".encode())
        new.rename(self.path / SHIP_MARK)  # no other process sees it unlocked

    @property
    def size(self) -> int:
        return sum(file.size for file in self._files.values())

    def is_intact(self, name: str) -> bool:
        """Return True if a file of the folder can be written to."""
        file = self._files.get(name)
        return file.is_intact() if file is not None else self.path.is_dir()

    def append(self, name: str, data: bytes) -> None:
        """Write an entry as a whole or not at all. Raises OSError, and TornError if a piece of it stays."""
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _Open(self.path / name)
        written, view = 0, memoryview(data)
        try:
            while written < len(data):
                written += os.write(file.descriptor, view[written:])
        except OSError as error:
            if written:
                try:
                    os.ftruncate(file.descriptor, file.size)
                except OSError:
                    raise TornError(error.errno, error.strerror) from error
            raise
        file.size += len(data)

    def close(self) -> None:
        for file in (*self._files.values(), *([self._mark] if self._mark is not None else [])):
            with contextlib.suppress(OSError):
                os.close(file.descriptor)
        self._files.clear()
        self._mark = None


File = Literal["exchanges.jsonl", "flows.mitm"]

_MIB = 1 << 20
_DEFAULT_SIZE = 4096
_GATHER = 0.4
"""Seconds for which entries gather before the first is written. Written together, each further entry takes a fraction
of the time."""
_SPELL = 0.004
"""Seconds of work after which the writer rests, at the end of an entry."""
_RESTS = 3
"""Length of a pause while the queue is short, as a multiple of the working time before it."""
_SHORT = 4
"""The queue is short if it holds less than its limit divided by this number."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of entries: written, dropped (no room, no disk), and failed to serialise."""

    written: int = 0
    dropped: int = 0
    failed: int = 0


class Piece(NamedTuple):
    """The entry of an exchange in one file. `make` returns its bytes."""

    file: File
    make: Callable[[], bytes]


class _Entry(NamedTuple):
    pieces: tuple[Piece, ...]
    size: int


class Store:
    """The captures of one run below `folder`.

    `report` gets one-line messages for the user, from the writer's thread. `backoff` are the first and the longest
    pause after a failure, in seconds. `shipper` uploads finished parts; it is closed with the store. No method raises.
    """

    def __init__(
        self,
        folder: Path,
        redactor: Redactor,
        *,
        max_part_bytes: int = 64 * _MIB,
        max_part_age: float = 24 * 3600,
        max_queue_bytes: int = 64 * _MIB,
        report: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        backoff: tuple[float, float] = (0.5, 30.0),
        shipper: Shipper | None = None,
    ) -> None:
        self.folder = folder
        self.run = secrets.token_hex(4)
        """Name of the run in its captures. It is random, since process ids repeat in containers."""
        self.redactor = redactor
        self._limits = (max_part_bytes, max_part_age)
        self._max_queue = max_queue_bytes
        self._report = report
        self._clock = clock
        self._backoff = backoff
        self._shipper = shipper
        self._part: Part | None = None
        self._queue: deque[_Entry] = deque()
        self._queued = 0
        self._condition = threading.Condition()
        self._closing = self._hurried = False
        self._said: set[str] = set()
        self._written = self._dropped = self._failed = self._numbered = 0
        self._thread: threading.Thread | None = None

    @property
    def part(self) -> Path | None:
        """The current folder; None before the first exchange."""
        return self._part.path if self._part is not None else None

    @property
    def waiting(self) -> int:
        """Number of entries that are not on disk yet."""
        return len(self._queue)

    @property
    def counts(self) -> Counts:
        return Counts(self._written, self._dropped, self._failed)

    def place(self) -> dict[str, Json]:
        """Return the place of the next exchange of the run, for its captures: `proxy`, and `sequence` from 1. A number
        that is missing there belongs to a dropped exchange."""
        self._numbered += 1
        return {"proxy": self.run, "sequence": self._numbered}

    def put(self, *pieces: Piece, size: int = _DEFAULT_SIZE) -> bool:
        """Queue all pieces of an exchange, or none of them. Return False if there is no room.

        `size` is about how many bytes of memory wait. All pieces go into one part.
        """
        with self._condition:
            if self._closing:
                self._dropped += len(pieces)
                return False
            if self._queued + size > self._max_queue and self._queue:
                self._dropped += len(pieces)
                full = True
            else:
                full = False
                self._queue.append(_Entry(pieces, size))
                self._queued += size
                self._start()
                if len(self._queue) == 1:
                    self._condition.notify()
        if full:
            self._tell("queue", f"captures cannot be written as fast as traffic comes; dropping some ({self.folder})")
        return not full

    def hurry(self) -> None:
        """Write the queue without waiting for more, because someone waits for it."""
        with self._condition:
            self._hurried = bool(self._queue)
            self._condition.notify_all()

    def close(self, timeout: float = 5.0, *, flush: bool = True) -> bool:
        """Write the queue within `timeout` seconds. Return False if entries are left, which count as dropped.

        `flush`: wait for uploads too, since the process ends.
        """
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        with self._condition:
            left = sum(len(entry.pieces) for entry in self._queue)
            self._dropped += left
            self._queue.clear()
            self._queued = 0
        if thread is None or not thread.is_alive():
            self._close_part()
        if self._dropped:
            self._tell("lost", f"{self._dropped} captures were not written ({self.folder})")
        if self._shipper is not None:
            self._shipper.close(FLUSH if flush else 0.0)
        return left == 0

    def _start(self) -> None:
        if self._thread is None:
            # A daemon: a disk that hangs must not keep the process alive.
            self._thread = threading.Thread(target=self._run, name="wirelint-captures", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        began = time.thread_time()
        while (entry := self._next()) is not None:
            for piece in entry.pieces:
                if (data := self._make(piece)) is not None:
                    self._write_until_done(piece.file, data, may_turn=piece is entry.pieces[0])
            worked = time.thread_time() - began
            with self._condition:
                if self._queue and self._queue[0] is entry:  # it takes memory until it is written
                    self._queue.popleft()
                    self._queued -= entry.size
                if worked >= _SPELL:
                    self._rest(_RESTS * worked)
                    began = time.thread_time()

    def _next(self) -> _Entry | None:
        """Wait for the next entry. Return None if no more will come."""
        with self._condition:
            if not self._queue:
                self._hurried = False
                while not self._condition.wait_for(lambda: self._queue or self._closing, self._time_left()):
                    self._close_part()
                self._rest(_GATHER)
            return self._queue[0] if self._queue else None

    def _time_left(self) -> float | None:
        """Return the seconds until the current part is too old."""
        return max(0.0, self._part.started + self._limits[1] - self._clock()) if self._part is not None else None

    def _rest(self, seconds: float) -> None:
        if self._queue and self._queued < self._max_queue / _SHORT:
            self._condition.wait_for(lambda: self._closing or self._hurried, seconds)

    def _make(self, piece: Piece) -> bytes | None:
        try:
            return piece.make()
        except Exception as error:  # Fail open: after any error of serialisation the next exchange is written.
            self._failed += 1
            self._tell(
                "make", f"an exchange could not be captured: {type(error).__name__}: {self.redactor.text(str(error))}"
            )
            return None

    def _write_until_done(self, file: File, data: bytes, *, may_turn: bool) -> None:
        """Write an entry, again and again until the disk takes it or the store closes."""
        pause, longest = self._backoff
        while True:
            try:
                self._write(file, data, may_turn=may_turn)
            except OSError as error:
                self._tell(
                    f"errno {error.errno}",
                    f"captures cannot be written to {self.folder}: {error.strerror or error}; trying again",
                )
            else:
                self._written += 1
                return
            with self._condition:
                if self._closing:
                    self._dropped += 1
                    return
                self._condition.wait_for(lambda: self._closing, pause)
            pause = min(pause * 2, longest)

    def _write(self, file: File, data: bytes, *, may_turn: bool) -> None:
        """Append to the current part, or to a new one if the old one is gone, or full or too old. Raises OSError."""
        now = self._clock()
        part = self._part
        if part is not None and (not part.is_intact(file) or (may_turn and self._is_over(part, now, len(data)))):
            self._close_part()
        if self._part is None:
            self._part = self._begin(now)
        try:
            self._part.append(file, data)
        except TornError:
            self._close_part()
            raise

    def _begin(self, now: float) -> Part:
        """Return a new part, marked if it is to be shipped. Raises OSError, and leaves no folder then."""
        part = Part.create(self.folder, now, self.run)
        if self._shipper is not None:
            try:
                part.mark()
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                    part.close()
                    shutil.rmtree(part.path, ignore_errors=True)
                    raise
                self._tell("mark", f"captures in {self.folder} are not shipped: no file there can be locked")
        return part

    def _is_over(self, part: Part, now: float, size: int) -> bool:
        """Return True if a part ends before an entry of `size` bytes."""
        most, oldest = self._limits
        return part.size > 0 and (part.size + size > most or now - part.started >= oldest)

    def _close_part(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None
            if self._shipper is not None:
                self._shipper.wake()

    def _tell(self, topic: str, message: str) -> None:
        """Report once per topic, so that a full disk does not fill the log."""
        if topic in self._said:
            return
        self._said.add(topic)
        # Fail open: an error of the callback must not end the writer.
        with contextlib.suppress(Exception):
            self._report(message)
