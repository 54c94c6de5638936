"""`assert_clean`: check an exchange, records or a capture in a test; a failure reads like `wirelint check`."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from wirelint.capture.format import FormatError, decode
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.engine import Engine
from wirelint.model import Exchange, Json
from wirelint.policy.checks import RealDisk
from wirelint.policy.file import load
from wirelint.registry import Registry, RuleError
from wirelint.rule import SEVERITIES, Severity
from wirelint.settings.file import NO_CONFIG, find
from wirelint.settings.scopes import Layer, Scopes
from wirelint.view.formats import begin
from wirelint.view.stats import Statistics

Subject: TypeAlias = "Exchange | Record | Mapping[str, Json] | str | Path | Iterable[Record | Mapping[str, Json]]"
Rules: TypeAlias = "str | Sequence[str]"


def assert_clean(
    subject: Subject,
    *,
    select: Rules = (),
    ignore: Rules = (),
    least: Severity = "warning",
    isolated: bool = False,
) -> None:
    """Raise AssertionError with all findings if one has the severity `least` or worse.

    `subject` is an `Exchange`, a record (also as the dictionary of a line of exchanges.jsonl), several records in order,
    or the path of a capture or a folder. Rules as in `wirelint check`: by name, code or prefix. The configuration of the
    working directory applies, unless `isolated`. Raises ValueError, in one line, for unknown rules and unreadable input.
    """
    __tracebackhide__ = True
    checked = findings_of(subject, select=select, ignore=ignore, isolated=isolated)
    worst = SEVERITIES[: SEVERITIES.index(least) + 1]
    if any(finding.severity in worst for one in checked for finding in one.findings):
        raise AssertionError(_printed([one.folded for one in checked]))


def findings_of(
    subject: Subject, *, select: Rules = (), ignore: Rules = (), isolated: bool = False
) -> tuple[Checked, ...]:
    """Return the exchanges of a subject with their findings. Arguments and errors as in `assert_clean`."""
    rules = _rules(_names(select), _names(ignore), isolated=isolated)
    if isinstance(subject, Exchange):
        record = Record(subject.id, subject.method, subject.url, source="exchange")
        return (Checked(record, subject, Engine(rules).check(subject)),)
    checked = []
    for item in check(_items(subject), rules):
        if isinstance(item, Problem):
            raise ValueError(str(item))
        checked.append(item)
    return tuple(checked)


def _items(subject: Record | Mapping[str, Json] | str | Path | Iterable[Record | Mapping[str, Json]]) -> Iterator[
    Record | Problem
]:  # fmt: skip
    match subject:
        case str() | Path():
            yield from read([subject])
        case Record():
            yield subject
        case Mapping():
            yield _record(subject, 1)
        case _:
            for number, one in enumerate(subject, 1):
                yield one if isinstance(one, Record) else _record(one, number)


def _record(value: Mapping[str, Json], number: int) -> Record:
    if not isinstance(value, Mapping):
        raise ValueError(f"record {number}: {type(value).__name__} is neither a record nor the dictionary of one")
    try:
        return decode(dict(value), "record", f"record {number}")
    except FormatError as error:
        raise ValueError(f"record {number}: {error}") from error


def _rules(select: tuple[str, ...], ignore: tuple[str, ...], *, isolated: bool) -> Scopes:
    config = NO_CONFIG if isolated else find(Path.cwd())
    known = _registry(config.rules)
    given = Layer(select=select or None, ignore=ignore)
    try:
        given.check(known)
    except RuleError as error:
        raise ValueError(str(error)) from error
    config.check(known)
    if config.policy is not None:
        known = known.under(load(config.policy, RealDisk()))
    return config.scopes(known, given)


@functools.cache
def _registry(folders: tuple[Path, ...]) -> Registry:
    return Registry.load(folders)


def _names(given: Rules) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else given
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def _printed(checked: Sequence[Checked]) -> str:
    """Return the output of `wirelint check`, without colours."""
    out, counts = io.StringIO(), Statistics()
    writer = begin("full", out)
    for one in checked:
        counts.add(one)
        writer.add(one)
    writer.close()
    lines = "\n".join(line.rstrip() for line in out.getvalue().rstrip().split("\n"))
    return f"{counts.summary()}\n\n{lines}"
