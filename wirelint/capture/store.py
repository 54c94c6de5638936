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

With a `Shipper`, each new part gets the file `.ship`. Its text is the folder of the part in the storage, `<host>/<part>`;
the store keeps it locked until the part is finished. The shipper's thread looks for such files, uploads the other files
of each part whose mark is not locked, and removes the mark. So the disk alone says which parts wait: the next process
ships those of a killed one, two processes with one folder ship no part twice, and an interrupted upload is repeated
under the same name.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import random
import re
import secrets
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from wirelint.capture.format import SHIP_MARK
from wirelint.capture.redact import Redactor
from wirelint.capture.storage import StorageError, upload
from wirelint.model import Json

MAX_AGE = 24 * 3600.0
"""Seconds after which a part ends."""
FLUSH = 8.0
"""Seconds for the last uploads when the proxy stops: Docker kills a container after 10."""
_STAMP = "%Y%m%dT%H%M%SZ"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
for _flag in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)  # each is missing on some system


class Part:
    """An open folder of captures with mode 0700, its files 0600. `is_torn`: a piece of an entry is at the end of a file."""

    def __init__(self, folder: Path, now: float, run: str) -> None:
        """Make a folder for a part of a run below `folder`, and `folder` if it is missing. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        name = f"{datetime.fromtimestamp(now, UTC).strftime(_STAMP)}-{run}"
        self.path, number = folder / name, 1
        while os.path.lexists(self.path):
            number += 1
            self.path = folder / f"{name}-{number:03}"
        self.path.mkdir(mode=0o700)
        self.started = now
        self.is_torn = False
        self._files: dict[str, int] = {}

    def mark(self) -> None:
        """Make the file `.ship`, locked until `close`. Raises OSError."""
        import fcntl  # missing on Windows, where nothing is shipped

        new = self.path / f"{SHIP_MARK}.new"
        descriptor = self._files[SHIP_MARK] = os.open(new, _FLAGS, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        host = re.sub(r"[^\w.-]", "_", socket.gethostname(), flags=re.ASCII) or "localhost"
        os.write(descriptor, f"{host}/{self.path.name}".encode())
        new.rename(self.path / SHIP_MARK)  # no other process sees it unlocked

    @property
    def size(self) -> int:
        return sum(os.fstat(opened).st_size for name, opened in self._files.items() if name != SHIP_MARK)

    def is_intact(self, name: str) -> bool:
        """Return True if a file of the folder can be written to. A removed open file takes writes without an error."""
        if name not in self._files:
            return self.path.is_dir()
        try:
            return os.path.samestat(os.stat(self.path / name), os.fstat(self._files[name]))
        except OSError:
            return False

    def append(self, name: str, data: bytes) -> None:
        """Write an entry as a whole or not at all, unless the part is torn then. Raises OSError."""
        if name not in self._files:
            self._files[name] = os.open(self.path / name, _FLAGS, 0o600)
        descriptor = self._files[name]
        size, written = os.fstat(descriptor).st_size, 0
        try:
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
        except OSError:
            if written:
                try:
                    os.ftruncate(descriptor, size)
                except OSError:
                    self.is_torn = True
            raise

    def close(self) -> None:
        for descriptor in self._files.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)


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


@dataclass(slots=True)
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
        max_part_age: float = MAX_AGE,
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
        self.counts = Counts()
        self._numbered = 0
        self._thread: threading.Thread | None = None

    @property
    def part(self) -> Path | None:
        """The current folder; None before the first exchange."""
        return self._part.path if self._part is not None else None

    @property
    def waiting(self) -> int:
        """Number of entries that are not on disk yet."""
        return len(self._queue)

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
            is_closing = self._closing
            if not is_closing and (not self._queue or self._queued + size <= self._max_queue):
                self._queue.append(_Entry(pieces, size))
                self._queued += size
                if self._thread is None:
                    # A daemon: a disk that hangs must not keep the process alive.
                    self._thread = threading.Thread(target=self._run, name="wirelint-captures", daemon=True)
                    self._thread.start()
                if len(self._queue) == 1:
                    self._condition.notify()
                return True
            self.counts.dropped += len(pieces)
        if not is_closing:
            self._tell("queue", f"captures cannot be written as fast as traffic comes; dropping some ({self.folder})")
        return False

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
            self.counts.dropped += left
            self._queue.clear()
            self._queued = 0
        if thread is None or not thread.is_alive():
            self._close_part()
        if self.counts.dropped:
            self._tell("lost", f"{self.counts.dropped} captures were not written ({self.folder})")
        if self._shipper is not None:
            self._shipper.close(FLUSH if flush else 0.0)
        return left == 0

    def _run(self) -> None:
        began = time.thread_time()
        while (entry := self._next()) is not None:
            for piece in entry.pieces:
                try:
                    data = piece.make()
                except Exception as error:  # Fail open: after any error of serialisation the next exchange is written.
                    self.counts.failed += 1
                    why = f"{type(error).__name__}: {self.redactor.text(str(error))}"
                    self._tell("make", f"an exchange could not be captured: {why}")
                else:
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
        with self._condition:
            if not self._queue:
                self._hurried = False
                while True:
                    part = self._part  # it ends when it is too old
                    left = max(0.0, part.started + self._limits[1] - self._clock()) if part is not None else None
                    if self._condition.wait_for(lambda: self._queue or self._closing, left):
                        break
                    self._close_part()
                self._rest(_GATHER)
            return self._queue[0] if self._queue else None

    def _rest(self, seconds: float) -> None:
        if self._queue and self._queued < self._max_queue / _SHORT:
            self._condition.wait_for(lambda: self._closing or self._hurried, seconds)

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
                self.counts.written += 1
                return
            with self._condition:
                if self._closing:
                    self.counts.dropped += 1
                    return
                self._condition.wait_for(lambda: self._closing, pause)
            pause = min(pause * 2, longest)

    def _write(self, file: File, data: bytes, *, may_turn: bool) -> None:
        """Append to the current part, or to a new one if the old one is gone, or full or too old. Raises OSError."""
        now, part, (most, oldest) = self._clock(), self._part, self._limits
        if part is not None:
            is_over = part.size > 0 and (part.size + len(data) > most or now - part.started >= oldest)
            if part.is_torn or not part.is_intact(file) or (may_turn and is_over):
                self._close_part()
        if self._part is None:
            self._part = Part(self.folder, now, self.run)
            if self._shipper is not None:
                self._mark(self._part)
        self._part.append(file, data)

    def _mark(self, part: Part) -> None:
        """Mark a new part that is to be shipped. Raises OSError, and leaves no folder then."""
        try:
            part.mark()
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
                part.close()
                self._part = None
                shutil.rmtree(part.path, ignore_errors=True)
                raise
            self._tell("mark", f"captures in {self.folder} are not shipped: no file there can be locked")

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


# --- shipping --------------------------------------------------------------------------------------------------------


class Shipper:
    """Uploads the marked parts below `folder` to `url`. `report` gets one-line messages, from the thread.

    `backoff` are the first and the longest pause after a failure, in seconds.
    """

    def __init__(
        self, folder: Path, url: str, report: Callable[[str], None], *, backoff: tuple[float, float] = (1.0, 60.0)
    ) -> None:
        self._folder, self._url, self._report, self._backoff = folder, url, report, backoff
        self._condition = threading.Condition()
        self._is_due = True  # of an earlier process
        self._closing = False
        self._said: set[Path] = set()
        self._thread = threading.Thread(target=self._run, name="wirelint-ship", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        with self._condition:
            self._is_due = True
            self._condition.notify()

    def close(self, wait: float) -> None:
        """Try once more to ship what waits, and wait for that for some seconds. The rest stays on the disk."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join(wait)
        left = sum(1 for _ in self._marks()) if wait else 0
        if left:
            parts = "1 folder" if left == 1 else f"{left} folders"
            self._report(f"{parts} of captures in {self._folder} not shipped yet; the next start ships them")

    def _run(self) -> None:
        for name in ("aiobotocore", "botocore"):  # they tell where credentials and endpoints are from
            logging.getLogger(name).setLevel(logging.WARNING)
        pause = 0.0  # after a failure
        is_last = False
        while not is_last:
            is_last = self._wait(pause * random.uniform(0.5, 1.0))
            try:
                self._ship()
            except Exception as error:  # fail open: what waits is shipped later
                if not pause:
                    reason = error.strerror if isinstance(error, StorageError) else f"{type(error).__name__}: {error}"
                    self._report(
                        f"captures are not shipped to {self._url}: {reason}; they stay in {self._folder} until it works"
                    )
                pause = min(pause * 2, self._backoff[1]) or self._backoff[0]
            else:
                if pause:
                    self._report(f"captures are shipped to {self._url} again")
                pause = 0.0

    def _wait(self, pause: float) -> bool:
        """Wait for a finished part, after a failure for `pause` seconds. Return True at the last attempt."""
        with self._condition:
            self._condition.wait_for(lambda: self._closing or (self._is_due and not pause), pause or None)
            self._is_due = False
            return self._closing

    def _ship(self) -> None:
        """Upload the files of all parts that wait. Raises StorageError at the first that cannot be uploaded."""
        for mark in sorted(self._marks()):
            with _locked(mark) as place:
                if not place:
                    continue
                try:
                    for file in sorted(mark.parent.iterdir()):
                        if file.is_file() and not file.is_symlink() and not file.name.startswith("."):
                            upload(file, self._url, f"{place}/{file.name}")
                    mark.unlink()
                except StorageError:
                    raise
                except OSError as error:  # of the disk; the other parts are shipped
                    if mark.parent.exists() and mark.parent not in self._said:
                        self._said.add(mark.parent)
                        self._report(f"{mark.parent} is not shipped: {error.strerror or error}")

    def _marks(self) -> Iterator[Path]:
        return self._folder.glob(f"*/{SHIP_MARK}")


@contextlib.contextmanager
def _locked(mark: Path) -> Iterator[str]:
    """Lock a mark and yield its text; yield an empty text if another process has locked or removed it."""
    import fcntl  # missing on Windows

    try:
        descriptor = os.open(mark, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield ""
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield ""
        else:
            text = os.read(descriptor, 1024).decode("utf-8", "replace")
            yield text if os.fstat(descriptor).st_nlink else ""
    finally:
        os.close(descriptor)
