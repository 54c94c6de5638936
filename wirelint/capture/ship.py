"""Shipping of finished captures to object storage, by a separate thread.

Theory of operation. The store writes each part on the disk, as without shipping, with the file `.ship` in it. Its text is
the folder of the part in the storage, `<host>/<part>`; the store keeps it locked while it writes. The thread looks for
such files, uploads the other files of each part whose mark is not locked, and removes the mark. So the disk alone says
which parts wait: the next process ships those of a killed one, two processes with one folder ship no part twice, and an
interrupted upload is repeated under the same name.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from wirelint.capture.readers.storage import StorageError, upload
from wirelint.capture.store import SHIP_MARK


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
        """Note that a part is finished."""
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
        pause, longest = self._backoff
        is_away = is_last = False
        while not is_last:
            is_last = self._wait(pause * random.uniform(0.5, 1.0) if is_away else None)
            try:
                self._ship()
            except Exception as error:  # fail open: what waits is shipped later
                if is_away:
                    pause = min(pause * 2, longest)
                    continue
                is_away, pause = True, self._backoff[0]
                reason = error.strerror if isinstance(error, StorageError) else f"{type(error).__name__}: {error}"
                self._report(
                    f"captures are not shipped to {self._url}: {reason}; they stay in {self._folder} until it works"
                )
            else:
                if is_away:
                    self._report(f"captures are shipped to {self._url} again")
                is_away = False

    def _wait(self, pause: float | None) -> bool:
        """Wait for a finished part, after a failure for `pause` seconds. Return True at the last attempt."""
        with self._condition:
            self._condition.wait_for(lambda: self._closing or (self._is_due and pause is None), pause)
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
