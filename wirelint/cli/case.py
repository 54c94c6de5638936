"""`wirelint case`: one exchange in, the least of it that still shows the fault out. And whether a case still does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from wirelint.capture.cases import NoFindingError, disappointed, encode_case, expected, reproduce
from wirelint.capture.format import is_prior
from wirelint.capture.offline import Checked
from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.staging import Staging, TargetError
from wirelint.cli.guidance import guided
from wirelint.cli.selection import policy_option, selected, tell, tell_failure
from wirelint.rule import Rule
from wirelint.view.findings import visible

_SHOWN = 12


@guided(
    examples=(
        ("the only exchange with findings, made small", "wirelint case captures/samples/one-call.jsonl -o case.jsonl"),
        (
            "one of several, by its id",
            "wirelint case captures/samples xml-leak-anthropic-stream -o leak.jsonl",
        ),
        ("whether the case still shows it", "wirelint check leak.jsonl --expect"),
    ),
    exits={0: "written", 2: "nothing to make a case of, or it could not be written"},
)
@click.argument("path", metavar="PATH")
@click.argument("exchange", required=False, metavar="[ID]")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where the case goes; standard output when left out.")
@click.option("--select", multiple=True, metavar="RULE", help="What has to stay: findings of these rules.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave out these rules: names, codes or code prefixes.")
@click.option(
    "--rules",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder with rules of your own, besides the shipped ones.",
)
@policy_option
@click.option("--steps", type=click.IntRange(1), default=2500, show_default=True, help="How often to try something.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True, help="For how long at most."
)
@click.option("--force", is_flag=True, help="Replace FILE when it is there.")
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
    """Make a minimal redacted reproducer of one exchange, to be given away with a bug report.

    PATH is a capture, ID the exchange's id or the beginning of one; it may be left out where a single exchange has
    findings. What the findings do not need is dropped, and texts are replaced by others of the same shape. --select names
    the findings that have to stay. What passed before the exchange is kept as far as it is needed.

    The case is a line of a capture that says what is found in it; `wirelint check FILE --expect` tells whether it still is.
    """
    rules = selected((), ignore, folders, policy)
    names = {rule.name for rule in selected(select, (), folders, policy)} if select else set()
    items = list(read([path]))
    for item in items:
        if isinstance(item, Problem):
            tell(f"wirelint: {item}")
    records = [item for item in items if isinstance(item, Record)]
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
        raise click.ClickException(f"{chosen.id}: its JSON is nested too deeply to be taken apart") from error
    except (TargetError, OSError) as error:
        raise click.ClickException(str(error)) from error
    found = ", ".join(dict.fromkeys(finding.name for finding in made.expect))
    size = len(chosen.request_body or b"") + len(chosen.response_body or b"")
    left = len(made.record.request_body or b"") + len(made.record.response_body or b"")
    before = f", {len(made.prior)} exchange{'s' if len(made.prior) > 1 else ''} before it" if made.prior else ""
    tell(f"{found}: {left:,} of {size:,} bytes left{before} ({made.steps} steps)")
    if not made.complete:
        tell("not everything was tried; --steps and --seconds give it more")
    if made.plain:
        tell(f"texts that still say something: {_listed(made.plain)}; read them before you give the case away")
    return 0


def verify(paths: Sequence[str], rules: Sequence[Rule]) -> int:
    """Whether cases still show what they say: 0 all of them, 1 some do not, 2 something could not be read."""
    cases = wrong = problems = 0
    pending: list[Record] = []
    for item in read(paths):
        if isinstance(item, Problem):
            problems += 1
            tell(f"wirelint: {item}")
            continue
        pending.append(item)
        if is_prior(item):
            continue
        expects, run = expected(item), pending
        pending = []
        if expects is None:
            continue
        cases += 1
        *_, last = (one for one in judge(run, rules, tell_failure) if isinstance(one, Checked))
        for line in disappointed(item, last.findings):
            wrong += 1
            click.echo(visible(f"{item.source}:{item.id}: {line}"))
    if not cases and not problems:
        raise click.ClickException(f"{', '.join(paths)}: no cases; `wirelint case` makes them")
    tell(f"{cases} case{'' if cases == 1 else 's'}: {f'{wrong} not as expected' if wrong else 'all as expected'}")
    return 2 if problems else 1 if wrong else 0


def _choose(records: Sequence[Record], path: str, wanted: str | None, rules: Sequence[Rule], names: set[str]) -> Record:
    """The exchange that is meant."""
    if not records:
        raise click.ClickException(f"{path}: no exchange in it")
    if wanted is not None:
        named = [one for one in records if one.id == wanted] or [one for one in records if one.id.startswith(wanted)]
        if not named:
            raise click.ClickException(f"{path}: no exchange {wanted}; `wirelint show {path}` lists them")
    else:
        named = [
            one.record
            for one in judge(records, rules, tell_failure)
            if isinstance(one, Checked)
            and any(finding.severity != "info" and (not names or finding.name in names) for finding in one.findings)
        ]
        if not named:
            raise click.ClickException(f"{path}: nothing is found in it; there is nothing to reproduce")
    if len(named) > 1:
        ids = [one.id for one in named]
        raise click.ClickException(f"{path}: {len(ids)} exchanges are meant; name one: {_listed(ids)}")
    return named[0]


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return visible(", ".join(words[:_SHOWN])) + more
