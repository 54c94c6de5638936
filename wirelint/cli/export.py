"""`wirelint export`: captures of any kind in, one HAR, flow file, JSONL file or folder of tables out, with findings."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import click

from wirelint.capture import har
from wirelint.capture.format import encode
from wirelint.capture.offline import NOT_JUDGED, Checked
from wirelint.capture.redact import new_key, redacted
from wirelint.capture.writers import Staging, TargetError
from wirelint.cli import guided
from wirelint.cli.jobs import Bar, Workers
from wirelint.cli.options import Selection, inform
from wirelint.jsonvalues import mappings
from wirelint.model import Json, Severity
from wirelint.rule import SEVERITIES
from wirelint.text.escaping import counted
from wirelint.view.findings import annotations_of, count_by_severity

_SUFFIXES = {".har": "har", ".mitm": "mitm", ".flow": "mitm", ".flows": "mitm", ".jsonl": "jsonl"}
_SHOWN = 3


@guided("export", severity={"choices": get_args(Severity)})
def export(
    paths: tuple[str, ...],
    output: Path,
    form: str | None,
    ids: tuple[str, ...],
    having: tuple[str, ...],
    severity: Severity | None,
    selection: Selection,
    jobs: int | None,
    force: bool,
) -> int:
    """Write captures as HAR, as a flow file for mitmweb, as JSONL, or as tables, with their findings.

    PATH is read as by `wirelint check`. Secrets are redacted, as in captures. Checking the file gives the same
    findings, unless exchanges were left out that they depend on. With --format parquet, OUT is a folder of tables for
    DuckDB and other tools, which hold no bodies.
    """
    kind = form or _SUFFIXES.get(output.suffix.lower())
    if kind is None:
        raise click.UsageError(f"{output}: unknown format; name it .har, .mitm or .jsonl, or use --format")
    write, members = _writer(kind)
    rules, names = selection.scopes(), selection.names(having)
    worth = SEVERITIES[: SEVERITIES.index(severity) + 1] if severity is not None else ()

    def is_chosen(checked: Checked) -> bool:
        has_rule = not names or any(finding.name in names for finding in checked.findings)
        is_worth = not worth or any(finding.severity in worth for finding in checked.findings)
        return has_rule and is_worth and (not ids or checked.record.id.startswith(ids))

    total = count = 0
    found: Counter[str] = Counter()

    def chosen() -> Iterator[Checked]:
        nonlocal total, count
        # Redacted before they are checked, so that no finding quotes a secret and the file gives the same findings.
        change = functools.partial(redacted, new_key())
        for item in map(judged, bar.checked(workers.checked(rules, change), rules)):
            total += 1
            if is_chosen(item):
                count += 1
                found.update(finding.severity for finding in item.findings if not finding.is_known)
                yield item

    try:
        with (
            Bar(paths, "exporting") as bar, Workers(jobs, bar, selection.scopes) as workers,
            Staging(output, folder=bool(members), force=force, members=members) as staging,
        ):  # fmt: skip
            write(staging.path, chosen())
            if count:
                staging.commit()
    except (TargetError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if not count:
        raise click.ClickException("No exchange matches; nothing written")
    inform(f"wrote {output}: {count} of {counted(total, 'exchange')}, {count_by_severity(found) or 'no findings'}")
    return 2 if bar.problems else 0


def judged(checked: Checked) -> Checked:
    """Return the exchange without the finding that its file lacks something, which is about the file."""
    findings = tuple(finding for finding in checked.findings if finding.code != NOT_JUDGED)
    return checked if len(findings) == len(checked.findings) else dataclasses.replace(checked, findings=findings)


def _annotations(checked: Checked) -> dict[str, Json]:
    """Return findings and facts of an exchange as in a capture, without the file it was read from."""
    made = annotations_of(checked)
    for _, finding in mappings(made["findings"]):
        finding.pop("source")
    return made


def _writer(kind: str) -> tuple[Callable[[Path, Iterator[Checked]], None], frozenset[str]]:
    """Return the function that writes a format, and the names in the folder that it fills; none if it writes a file."""
    if kind == "parquet":
        try:
            from wirelint.view.parquet import DATASETS, write_tables
        except ImportError as error:
            raise click.ClickException("--format parquet needs DuckDB: pip install 'wirelint[tables]'") from error
        return write_tables, DATASETS

    def write(path: Path, items: Iterator[Checked]) -> None:
        with path.open("wb") as out:
            out.writelines(_PIECES[kind](items))

    return write, frozenset()


def _lines(items: Iterator[Checked]) -> Iterator[bytes]:
    for checked in items:
        annotations = checked.record.annotations.items()
        kept = {name: item for name, item in annotations if name not in ("prior", "expect")}
        yield encode(dataclasses.replace(checked.record, annotations=kept), _annotations(checked))


def _har(items: Iterator[Checked]) -> Iterator[bytes]:
    yield har.opening()
    for number, checked in enumerate(items):
        findings = checked.findings
        texts = [f"{finding.name}: {finding.message}" for finding in findings[:_SHOWN]]
        texts += [f"and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
        yield har.entry(checked.record, _annotations(checked), "; ".join(texts) or "ok", first=not number)
    yield har.closing("written by wirelint export; findings are in _wirelint")


def _flows(items: Iterator[Checked]) -> Iterator[bytes]:
    # Loading mitmproxy takes most of a second, and only these files need it.
    from wirelint.addon.annotate import annotation
    from wirelint.capture.writers.flows import finished, make_flow

    for checked in items:
        made = annotation(checked)
        yield finished(make_flow(checked.record), checked.record, made.comment, made.marker, made.metadata)


_PIECES = {"har": _har, "mitm": _flows, "jsonl": _lines}
