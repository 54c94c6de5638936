"""Where results go: to standard output, or into a file that is there only when they are complete."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from typing import ParamSpec, TextIO, TypeVar

import click

from wirelint.text.escaping import guarded

P = ParamSpec("P")
R = TypeVar("R")


def output_option(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--output` to a command."""
    return click.option("-o", "--output", metavar="FILE", help="Write the results into this file.")(command)


class Results:
    """`out` is written to, then `commit`ted; without that, a file that was there stays as it was."""

    def __init__(self, path: str | None) -> None:
        self._path, self._staged = path, ""
        self.out: TextIO = sys.stdout
        if path is None or path == "-":
            return
        click.get_current_context().call_on_close(self._drop)
        try:
            self.out = self._open(path)
        except OSError as error:
            raise click.ClickException(
                f"--output {path}: {error.strerror or error}; name a place for a file"
            ) from error

    def commit(self) -> None:
        if self.out is sys.stdout:
            return
        self.out.close()
        if self._staged and self._path is not None:
            os.replace(self._staged, self._path)

    def _open(self, path: str) -> TextIO:
        if os.path.isdir(path):
            raise IsADirectoryError(0, "a folder")
        if os.path.lexists(path) and not os.path.isfile(path):  # a pipe, a terminal
            return guarded(open(path, "w", encoding="utf-8"))
        target = os.path.realpath(path)
        self._path = target
        existed = os.path.exists(target)
        with open(
            target, "ab"
        ):  # what is wrong with the place is told by its own name, and the rights are the usual ones
            mode = os.stat(target).st_mode & 0o777
        if not existed:
            os.unlink(target)
        handle, self._staged = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=os.path.dirname(target))
        os.chmod(self._staged, mode)
        return guarded(open(handle, "w", encoding="utf-8"))

    def _drop(self) -> None:
        if self.out is not sys.stdout:
            self.out.close()
        if self._staged:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._staged)
