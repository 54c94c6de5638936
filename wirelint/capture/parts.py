"""Folders of captures: creation, appending to their files, and removal of old ones."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

FILES: Final = ("exchanges.jsonl", "flows.mitm")
"""The files of a part. Other files in its folder belong to the user and are never removed."""

_NAME = re.compile(r"(\d{8}T\d{6}Z)-(\d+)(?:-\d+)?")
_STAMP = "%Y%m%dT%H%M%SZ"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT
for _flag in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)  # each is missing on some system
_KEEP = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?b?|[hdw])", re.IGNORECASE)
_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECONDS = {"h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True, slots=True)
class Keep:
    """Limits of old captures: `total` bytes of all parts, `age` seconds of each."""

    total: int | None = None
    age: float | None = None


def parse_keep(text: str) -> Keep:
    """`2g`, `500m`, `14d`, `12h`, or one of each with a comma between. Raises ValueError with a line for the user."""
    total: int | None = None
    age: float | None = None
    for item in filter(None, (item.strip() for item in text.split(","))):
        match = _KEEP.fullmatch(item)
        if match is None:
            raise ValueError(f"cannot read {item!r}: give a size such as 2g, an age such as 14d, or both as 2g,14d")
        unit = match[2][0].lower()
        if unit in _SECONDS:
            age = float(match[1]) * _SECONDS[unit]
        else:
            total = int(float(match[1]) * _BYTES[unit])
    return Keep(total, age)


class UnwrittenError(OSError):
    """Only the first `whole` entries were written. `torn`: a piece of the next one is in the file, which must not grow."""

    def __init__(self, error: OSError, whole: int, *, torn: bool) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.whole = whole
        self.torn = torn


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

    @classmethod
    def create(cls, folder: Path, now: float) -> Part:
        """Make a folder below `folder`, and `folder` if it is missing. Raises OSError."""
        with contextlib.suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        name = f"{datetime.fromtimestamp(now, UTC).strftime(_STAMP)}-{os.getpid()}"
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

    @property
    def size(self) -> int:
        return sum(file.size for file in self._files.values())

    def is_intact(self) -> bool:
        return all(file.is_intact() for file in self._files.values()) if self._files else self.path.is_dir()

    def append(self, name: str, entries: Sequence[bytes]) -> None:
        """Write entries in one go, each as a whole or not at all. Raises UnwrittenError if some are left."""
        data = b"".join(entries) if len(entries) > 1 else entries[0]
        written = 0
        try:
            file = self._files.get(name)
            if file is None:
                file = self._files[name] = _Open(self.path / name)
            view = memoryview(data)
            while written < len(data):
                written += os.write(file.descriptor, view[written:])
        except OSError as error:
            whole, size = 0, 0
            while size + len(entries[whole]) <= written:
                size += len(entries[whole])
                whole += 1
            raise UnwrittenError(error, whole, torn=written > size and not self._cut(name, size)) from error
        file.size += len(data)

    def _cut(self, name: str, size: int) -> bool:
        """Cut a file behind the next `size` bytes, which are whole entries. Return False if that fails."""
        file = self._files[name]
        file.size += size
        try:
            os.ftruncate(file.descriptor, file.size)
        except OSError:
            return False
        return True

    def close(self) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):
                os.close(file.descriptor)
        self._files.clear()


def prune(folder: Path, keep: Keep, now: float, *, except_for: Path) -> None:
    """Remove the oldest parts below `folder` until `keep` holds.

    It removes only files and folders with the names of parts, and none of a running process. A failed removal is skipped.
    """
    try:
        parts = sorted(path for path in folder.iterdir() if _is_removable(path, except_for))
    except OSError:
        return
    sizes = {path: _size(path) for path in parts}
    total = sum(sizes.values())
    for path in parts:
        too_old = keep.age is not None and now - _started(path) > keep.age
        too_much = keep.total is not None and total > keep.total
        if not too_old and not too_much:
            return
        with contextlib.suppress(OSError):
            for name in FILES:
                (path / name).unlink(missing_ok=True)
            total -= sizes[path]
            path.rmdir()


def _is_removable(path: Path, current: Path) -> bool:
    match = _NAME.fullmatch(path.name)
    if match is None or path == current or path.is_symlink() or not path.is_dir():
        return False
    return not _is_alive(int(match[2]))


def _is_alive(pid: int) -> bool:
    if pid == os.getpid():
        return False
    if os.name != "posix":
        return True  # Signal 0 ends a process there; without a way to ask, nothing is removed.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _started(path: Path) -> float:
    stamp = path.name.partition("-")[0]
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("inf")


def _size(path: Path) -> int:
    total = 0
    for name in FILES:
        with contextlib.suppress(OSError):
            total += (path / name).lstat().st_size
    return total
