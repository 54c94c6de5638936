"""Writers of fixed captures in the format of their source: a line for a line, a flow for a flow.

    from wirelint.capture.writers import write

The output is the source file with the changes of the fixes. Exchanges without a fix and all other content are copied to
the byte. A HAR and other JSON documents keep the layout of their unchanged parts.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType

from wirelint.capture.format import is_prior
from wirelint.capture.offline import Fixed
from wirelint.capture.readers.storage import is_url
from wirelint.capture.writers.documents import write_har, write_lines, write_records
from wirelint.text.escaping import printable

# Output appears as a whole or not at all: it grows in a hidden folder beside its target, and is moved at the end.


class TargetError(ValueError):
    """The output path cannot be used. The message is one line for the user."""


class Staging:
    """An output file or folder that appears as a whole. Write at `path`, then `commit`; without `commit` nothing
    remains.

    `force` replaces an existing file, or the files of the same names in an existing folder. `members` names everything
    that a folder may hold; with `force`, such a folder is replaced as a whole. Everything may raise OSError. `TargetError`
    is raised for an existing target without `force`, and for a folder with other files than `members`.
    """

    def __init__(
        self, target: Path, *, folder: bool, force: bool = False, members: frozenset[str] = frozenset()
    ) -> None:
        if is_url(str(target).replace(":/", "://", 1)):  # a `Path` has one slash of two
            raise TargetError(f"{target}: output goes to the disk; name a file or folder there")
        if os.path.lexists(target) and not force:
            raise TargetError(f"{target} is there already; name another, or replace it with --force")
        if os.path.lexists(target) and target.is_dir() != folder:
            kinds = ("a file", "a folder") if folder else ("a folder", "a file")
            raise TargetError(f"{target} is {kinds[0]}, and the output is {kinds[1]}; name another")
        if members and target.is_dir() and (others := sorted(set(os.listdir(target)) - members)):
            raise TargetError(f"{target} holds other files ({printable(others[0])}); name another folder")
        self._target = target
        self._folder = folder
        self._is_whole = bool(members)
        home = next(parent for parent in target.absolute().parents if parent.is_dir())
        self._root = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=home))
        self.path = self._root / "out"
        if folder:
            self.path.mkdir()

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def commit(self) -> None:
        """Move the output to the target."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        if not self._folder or not self._target.is_dir():
            os.replace(self.path, self._target)
            return
        if self._is_whole:
            before = self._root / "before"
            os.replace(self._target, before)
            try:
                os.replace(self.path, self._target)
            except OSError:
                os.replace(before, self._target)
                raise
            return
        for parent, _, names in os.walk(self.path):
            home = self._target / Path(parent).relative_to(self.path)
            home.mkdir(parents=True, exist_ok=True)
            for name in names:
                os.replace(Path(parent, name), home / name)


__all__ = ["write"]

_Write = Callable[[Path, Iterator[Fixed], Path], None]


def write(source: Path, items: Iterable[Fixed], target: Path) -> None:
    """Write the file at `source` to `target`, with its records replaced by those of `items`.

    `items` are all records of the file, in its order. Raises OSError, and ValueError for a document that is broken
    after the records that could be read.
    """
    rest = (item for item in items if not is_prior(item.record))
    first = next(rest, None)
    if first is None:
        shutil.copyfile(source, target)
    else:
        _writer(first)(source, itertools.chain((first,), rest), target)
    shutil.copymode(source, target)


def _writer(first: Fixed) -> _Write:
    """Return the writer for the format of a file, by the place of its first record (`line 3`, `flow 2`, `entry 7`)."""
    match first.record.place.partition(" ")[0]:
        case "flow":
            # Loading mitmproxy takes most of a second, and only these files need it.
            from wirelint.capture.writers import flows

            return flows.write
        case "entry":
            return write_har
        case "record":
            return write_records
        case _:
            return write_lines
