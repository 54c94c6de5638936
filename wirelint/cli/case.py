"""`wirelint case`: a minimal reproducer of one exchange; and `wirelint check --expect`, which verifies reproducers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from wirelint.capture.cases import Case, NoFindingError, disappointed, encode_case, expected, reproduce
from wirelint.capture.format import is_prior
from wirelint.capture.offline import Checked
from wirelint.capture.offline import check as check_records
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.writers import Staging, TargetError
from wirelint.cli.guidance import guided
from wirelint.cli.options import Selection, folders_option, force_option, inform, inform_failure, policy_option
from wirelint.rule import Rule
from wirelint.view.findings import counted, visible

_SHOWN = 12


@guided("case")
@click.argument("path", metavar="PATH")
@click.argument("exchange", required=False, metavar="[ID]")
@click.option("-o", "--output", default="-", metavar="FILE", help="The file to write; standard output by default.")
@click.option("--select", multiple=True, metavar="RULE", help="Keep the findings of these rules.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave out these rules: names, codes or code prefixes.")
@folders_option
@policy_option
@click.option("--steps", type=click.IntRange(1), default=2500, show_default=True, help="Most reductions to try.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True, help="Longest time to try."
)
@force_option
def case(
    path: str,
    exchange: str | None,
    output: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None,
    steps: int,
    seconds: float,
    force: bool,
) -> int:
    """Make a minimal redacted reproducer of one exchange, to attach to a bug report.

    PATH is a capture, ID the exchange's id or the beginning of one; ID is optional if only one exchange has findings.
    What the findings do not need is removed, and texts are replaced by others of the same shape. --select names the
    findings to keep. Earlier exchanges are kept as far as they are needed.

    The case is a line of a capture that states its findings; `wirelint check FILE --expect` verifies them.
    """
    selection = Selection(ignore=ignore, folders=folders, policy=policy, isolated=True)
    rules, names = selection.scopes(), set(selection.names(select))
    records = []
    for item in read([path]):
        if isinstance(item, Record):
            records.append(item)
        else:
            inform(f"wirelint: {item}")
    chosen = _choose(records, path, exchange, rules, names)
    prior = [one for one in records[: records.index(chosen)] if one.source == chosen.source]
    try:
        made = reproduce(chosen, rules, names=names, prior=prior, steps=steps, seconds=seconds)
        line = encode_case(made)
        if output == "-":
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        else:
            with Staging(Path(output), folder=False, force=force) as staging:
                staging.path.write_bytes(line)
                staging.commit()
    except NoFindingError as error:
        raise click.ClickException(f"{chosen.id}: {error}") from error
    except RecursionError as error:
        raise click.ClickException(f"{chosen.id}: its JSON is nested too deeply to reduce") from error
    except (TargetError, OSError) as error:
        raise click.ClickException(str(error)) from error
    _summarise(chosen, made)
    return 0


def _summarise(chosen: Record, made: Case) -> None:
    found = ", ".join(dict.fromkeys(finding.name for finding in made.expect))
    size, left = (len(one.request_body or b"") + len(one.response_body or b"") for one in (chosen, made.record))
    before = f", after {counted(len(made.prior), 'earlier exchange')}" if made.prior else ""
    inform(f"{found}: {left:,} of {size:,} bytes left{before} ({made.steps} steps)")
    if not made.complete:
        inform("not everything was tried; --steps and --seconds allow more")
    if made.plain:
        inform(f"Unredacted text remains at {_listed(made.plain)}; review before sharing")


def verify(paths: Sequence[str], rules: Sequence[Rule]) -> int:
    """Verify that cases still show their findings. Returns 0 if all do, 1 if some do not, 2 for unreadable input."""
    cases = wrong = problems = 0
    pending: list[Record] = []
    for item in read(paths):
        if isinstance(item, Problem):
            problems += 1
            inform(f"wirelint: {item}")
            continue
        pending.append(item)
        if is_prior(item):
            continue
        expects, run = expected(item), pending
        pending = []
        if expects is None:
            continue
        cases += 1
        *_, last = (one for one in check_records(run, rules, inform_failure) if isinstance(one, Checked))
        for line in disappointed(item, last.findings):
            wrong += 1
            click.echo(visible(f"{item.source}:{item.id}: {line}"))
    if not cases and not problems:
        raise click.ClickException(f"{', '.join(paths)}: no cases; `wirelint case` makes them")
    inform(f"{counted(cases, 'case')}: {f'{wrong} not as expected' if wrong else 'all as expected'}")
    return 2 if problems else 1 if wrong else 0


def _choose(records: Sequence[Record], path: str, wanted: str | None, rules: Sequence[Rule], names: set[str]) -> Record:
    """Return the exchange to reproduce: the one with an id, else the only one with findings."""
    if not records:
        raise click.ClickException(f"{path}: no exchange in it")
    if wanted is not None:
        found = [one for one in records if one.id == wanted] or [one for one in records if one.id.startswith(wanted)]
        if not found:
            raise click.ClickException(f"{path}: no exchange {wanted}; `wirelint show {path}` lists them")
    else:
        found = [
            one.record
            for one in check_records(records, rules, inform_failure)
            if isinstance(one, Checked)
            and any(finding.severity != "info" and (not names or finding.name in names) for finding in one.findings)
        ]
        if not found:
            raise click.ClickException(f"{path}: no findings; there is nothing to reproduce")
    if len(found) > 1:
        ids = [one.id for one in found]
        raise click.ClickException(f"{path}: {len(ids)} exchanges match; name one: {_listed(ids)}")
    return found[0]


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return visible(", ".join(words[:_SHOWN])) + more
