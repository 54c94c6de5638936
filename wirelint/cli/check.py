"""`wirelint check`: captures in, findings out."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wirelint.capture.offline import check as judge
from wirelint.capture.readers import Problem, read
from wirelint.cli.case import verify
from wirelint.cli.selection import limit_options, policy_option, rule_options, selected, tell, tell_failure
from wirelint.report import FORMATS, Statistics
from wirelint.rule import Limits


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@rule_options
@policy_option
@click.option(
    "--output-format",
    type=click.Choice(list(FORMATS)),
    default="full",
    show_default=True,
    help="How to print findings.",
)
@limit_options
@click.option("--statistics", is_flag=True, help="Print counts per rule instead of findings.")
@click.option("--expect", is_flag=True, help="Hold what is found to what the cases in PATH say is in them.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when something was found.")
def check(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    folders: tuple[Path, ...],
    policy: Path | None,
    output_format: str,
    stall: float,
    burst: float,
    hang: float,
    statistics: bool,
    expect: bool,
    exit_zero: bool,
) -> int:
    """Judge captures: files, folders, or - for standard input.

    Reads wirelint's exchanges.jsonl (hand-made records with only `request` and `response` too), mitmproxy flow files,
    HAR, VCR cassettes, LHAR, session logs of Claude Code and results of K2-Vendor-Verifier; what a format cannot tell is
    not judged, and that is said. Each file is judged by itself, in file order.

    Exit status: 0 nothing of warning or worse, 1 findings, 2 something could not be read.
    """
    rules = selected(select, ignore, folders, policy, Limits(stall, burst, hang))
    if expect:
        return verify(paths, rules)
    writer = FORMATS[output_format](sys.stdout)
    counts = Statistics()
    problems = 0
    for item in judge(read(paths), rules, tell_failure):
        if isinstance(item, Problem):
            problems += 1
            sys.stdout.flush()
            tell(f"wirelint: {item}")
            continue
        counts.add(item)
        if not statistics:
            writer.add(item)
    if statistics:
        counts.write(sys.stdout, output_format)
    else:
        writer.close()
    tell(counts.summary())
    if output_format in ("full", "concise") and (hint := counts.hint()):
        tell(hint)
    return _status(counts, problems, exit_zero)


def _status(counts: Statistics, problems: int, exit_zero: bool) -> int:
    if problems:
        return 2
    found = counts.severities["error"] + counts.severities["warning"]
    return 1 if found and not exit_zero else 0
