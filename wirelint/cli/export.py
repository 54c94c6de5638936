"""`wirelint export`: captures of any kind in, one file of another kind out, findings with them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, get_args

import click

from wirelint.capture.format import encode
from wirelint.capture.offline import NOT_JUDGED, Checked
from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.staging import Staging, TargetError
from wirelint.capture.writers import har_file
from wirelint.cli import completing
from wirelint.cli.guidance import guided
from wirelint.cli.selection import policy_option, rule_options, selected, tell, tell_failure
from wirelint.model import Json, Severity
from wirelint.rule import SEVERITIES
from wirelint.view.findings import flat

_SUFFIXES = {".har": "har", ".mitm": "mitm", ".flow": "mitm", ".flows": "mitm", ".jsonl": "jsonl"}
_SHOWN = 3


class _Writer(Protocol):
    def add(self, checked: Checked) -> None: ...

    def close(self) -> None: ...


@guided(
    examples=(
        ("for a browser or any tool that reads HAR", "wirelint export captures/samples -o samples.har"),
        (
            "for mitmweb, only what went wrong",
            "wirelint export captures/samples --severity error -o errors.mitm",
        ),
        ("one kind of fault", "wirelint export captures/samples --with xml-leak -o leaks.jsonl"),
    ),
    exits={0: "written", 2: "something could not be read, or nothing was left to write"},
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=completing.paths)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="OUT", help="The file to write."
)
@click.option(
    "--format", "form", type=click.Choice(["har", "mitm", "jsonl"]),
    help="What to write; told by OUT's suffix when left out: .har, .mitm (.flow), .jsonl.",
)  # fmt: skip
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only the exchange with this id, or beginning of one.")
@click.option("--with", "having", multiple=True, metavar="RULE", help="Only exchanges in which this was found.")
@click.option(
    "--severity", type=click.Choice(get_args(Severity)), help="Only exchanges with a finding that bad or worse."
)
@rule_options
@policy_option
@click.option("--force", is_flag=True, help="Replace what is at OUT already.")
def export(
    paths: tuple[str, ...],
    output: Path,
    form: str | None,
    ids: tuple[str, ...],
    having: tuple[str, ...],
    severity: Severity | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None,
    force: bool,
) -> int:
    """Write captures as HAR, as a flow file for mitmweb, or as JSONL, with the findings in them.

    PATH is whatever `wirelint check` reads. Secrets are redacted, as they are in captures. Read again, the file gives the
    same findings, unless exchanges were left out that they hang on: what passed before counts.
    """
    kind = form or _SUFFIXES.get(output.suffix.lower())
    if kind is None:
        raise click.UsageError(f"{output}: which format? name it .har, .mitm or .jsonl, or say --format")
    rules = selected(select, ignore, folders, policy)
    names = frozenset(rule.name for rule in selected(having, (), folders, policy)) if having else None
    worth = SEVERITIES[: SEVERITIES.index(severity) + 1] if severity is not None else None
    redactor = Redactor()
    problems = read_ = 0
    found: Counter[str] = Counter()
    try:
        with Staging(output, folder=False, force=force) as staging, staging.path.open("wb") as out:
            writer = _WRITERS[kind](out)
            count = 0
            for item in judge(_redacted(read(paths), redactor), rules, tell_failure):
                if isinstance(item, Problem):
                    problems += 1
                    tell(f"wirelint: {item}")
                    continue
                read_ += 1
                if _chosen(item, ids, names, worth):
                    count += 1
                    new = [one for one in item.findings if one.code != NOT_JUDGED and not one.is_known]
                    found.update(finding.severity for finding in new)
                    writer.add(item)
            writer.close()
            out.flush()
            if count:
                staging.commit()
    except (TargetError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if not count:
        raise click.ClickException(f"none of {read_} exchanges is meant; nothing was written")
    told = ", ".join(f"{found[name]} {name}{'s' if found[name] != 1 else ''}" for name in SEVERITIES if found[name])
    tell(f"wrote {output}: {count} of {read_} exchange{'' if read_ == 1 else 's'}, {told or 'nothing found in them'}")
    return 2 if problems else 0


def _redacted(items: Iterator[Record | Problem], redactor: Redactor) -> Iterator[Record | Problem]:
    """Findings are made of what is written: none of them quotes a secret, and reading the file again gives the same."""
    for item in items:
        yield item if isinstance(item, Problem) else redactor.record(item)


def _chosen(
    checked: Checked, ids: tuple[str, ...], names: frozenset[str] | None, worth: tuple[Severity, ...] | None
) -> bool:
    if ids and not checked.record.id.startswith(ids):
        return False
    if names is not None and not any(finding.name in names for finding in checked.findings):
        return False
    return worth is None or any(
        finding.severity in worth and finding.code != NOT_JUDGED for finding in checked.findings
    )


def _annotations(checked: Checked) -> dict[str, Json]:
    """What stands beside the bytes: as in a capture, so without where it was read from."""
    findings: list[Json] = [
        {name: item for name, item in flat(checked, finding).items() if name != "source"}
        for finding in checked.findings
        if finding.code != NOT_JUDGED
    ]
    exchange = checked.exchange
    notes = checked.record.annotations.get("notes")
    return {
        "api": exchange.api if exchange is not None else None,
        "model": (exchange.model or None) if exchange is not None else None,
        "conversation": exchange.conversation if exchange is not None else None,
        "findings": findings,
        "notes": notes if isinstance(notes, list) else [],
    }


def _comment(checked: Checked) -> str:
    findings = [finding for finding in checked.findings if finding.code != NOT_JUDGED]
    told = [f"{finding.name}: {finding.message}" for finding in findings[:_SHOWN]]
    more = [f"and {len(findings) - _SHOWN} more"] if len(findings) > _SHOWN else []
    return "; ".join([*told, *more]) or "ok"


def _bare(record: Record) -> Record:
    """Without what an earlier run had written beside it."""
    annotations = {name: item for name, item in record.annotations.items() if name not in ("prior", "expect")}
    return dataclasses.replace(record, annotations=annotations)


class _Lines:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def add(self, checked: Checked) -> None:
        self._out.write(encode(_bare(checked.record), _annotations(checked)))

    def close(self) -> None:
        pass


class _Har:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._count = 0
        out.write(har_file.opening())

    def add(self, checked: Checked) -> None:
        made = har_file.entry(checked.record, _annotations(checked), _comment(checked), first=not self._count)
        self._out.write(made)
        self._count += 1

    def close(self) -> None:
        self._out.write(har_file.closing("written by wirelint export; findings are in _wirelint"))


class _Flows:
    def __init__(self, out: BinaryIO) -> None:
        # Loading mitmproxy takes most of a second, and only these files need it.
        from wirelint.addon.annotate import annotation
        from wirelint.addon.verdict import CheckResult
        from wirelint.capture.writers.flows import flow_of

        self._out = out
        self._annotation, self._verdict, self._flow = annotation, CheckResult, flow_of

    def add(self, checked: Checked) -> None:
        record, exchange = checked.record, checked.exchange
        findings = tuple(finding for finding in checked.findings if finding.code != NOT_JUDGED)
        notes = record.annotations.get("notes")
        verdict = self._verdict(
            record,
            exchange,
            findings,
            exchange.api if exchange is not None else "",
            exchange.model if exchange is not None else "",
            tuple(map(str, notes)) if isinstance(notes, list) else (),
        )
        made = self._annotation(verdict)
        self._out.write(self._flow(record, made.comment, made.marker, made.metadata))

    def close(self) -> None:
        pass


_WRITERS: dict[str, Callable[[BinaryIO], _Writer]] = {"har": _Har, "mitm": _Flows, "jsonl": _Lines}
