"""Options of a baseline: findings that are known and not reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from wirelint.capture.offline import Checked
from wirelint.cli.selection import configuration, tell
from wirelint.rule import Rule
from wirelint.view.baseline import Baseline, BaselineError

P = ParamSpec("P")
R = TypeVar("R")


def baseline_options(command: Callable[P, R]) -> Callable[P, R]:
    """Adds `--baseline` and `--write-baseline` to a command."""
    command = click.option(
        "--write-baseline", is_flag=True, help="Take everything that is found for known from now on; exit 0."
    )(command)
    return click.option(
        "--baseline",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Leave out the findings that are known by this file.",
    )(command)


class Known:
    """The baseline of a run, if there is one. Raises click.ClickException in one line."""

    def __init__(self, path: Path | None, *, write: bool) -> None:
        self._path = path or configuration().baseline
        self._writes = write
        if write and self._path is None:
            raise click.UsageError("--write-baseline: where to? add --baseline FILE")
        try:
            self._baseline = Baseline() if write or self._path is None else Baseline.load(self._path)
        except BaselineError as error:
            raise click.ClickException(str(error)) from error

    def news(self, checked: Checked) -> Checked:
        return checked if self._path is None else self._baseline.news(checked)

    def close(self, rules: Sequence[Rule]) -> None:
        """Says what was known and what is gone, or writes the file."""
        if self._path is None:
            return
        if self._writes:
            try:
                count = self._baseline.write(self._path)
            except BaselineError as error:
                raise click.ClickException(str(error)) from error
            tell(f"wrote {self._path}: {_counted(count)} known from now on")
            return
        if self._baseline.known:
            tell(f"{_counted(self._baseline.known)} known by {self._path}, not shown")
        if gone := self._baseline.gone(rules):
            names = ", ".join(f"{name} ({count})" for name, count in sorted(gone.items()))
            tell(f"gone since {self._path}: {names}; --write-baseline takes them out")


def _counted(count: int) -> str:
    return f"{count} finding{'' if count == 1 else 's'}"
