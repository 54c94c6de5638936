"""`wirelint check`: captures in, findings out."""

from __future__ import annotations

from pathlib import Path

import click

from wirelint.capture.readers import Problem
from wirelint.cli import completing
from wirelint.cli.case import verify
from wirelint.cli.guidance import guided
from wirelint.cli.known import Known, baseline_options
from wirelint.cli.progress import Bar
from wirelint.cli.results import Results, output_option
from wirelint.cli.selection import limit_options, occurrences_option, policy_option, rule_options, selected, tell
from wirelint.rule import Limits
from wirelint.view import FORMATS, Statistics, begin


@guided(
    examples=(
        ("all captures of a folder", "wirelint check captures/"),
        (
            "only what was leaked into text, a line each, for grep",
            "wirelint check captures/ --select LK --output-format concise",
        ),
        ("what goes wrong most, and who is to blame", "wirelint check captures/ --statistics"),
        ("what a program said, without a file", "cat captures/samples/faults.jsonl | wirelint check -"),
    ),
    exits={
        0: "nothing of warning or worse was found (or --exit-zero)",
        1: "something was found",
        2: "something could not be read, or the command was wrong",
    },
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=completing.paths)
@rule_options
@policy_option
@click.option(
    "--output-format",
    type=click.Choice(list(FORMATS)),
    default="full",
    show_default=True,
    help="How to print findings.",
)
@output_option
@baseline_options
@limit_options
@occurrences_option
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
    output: str | None,
    baseline: Path | None,
    write_baseline: bool,
    stall: float,
    burst: float,
    hang: float,
    all_occurrences: bool,
    statistics: bool,
    expect: bool,
    exit_zero: bool,
) -> int:
    """Judge captures: files, folders, or - for standard input.

    Reads wirelint's exchanges.jsonl (hand-made records with only `request` and `response` too), mitmproxy flow files,
    HAR, VCR cassettes, LHAR, session logs of Claude Code and results of K2-Vendor-Verifier; what a format cannot tell is
    not judged, and that is said. Each file is judged by itself, in file order. Findings stand with the source they are
    about, carets at the evidence; `wirelint show` tells the whole exchange, `wirelint rule NAME` explains a rule.

    Clients send their whole history with every request. A finding in it is told where it appears first; later turns of the
    conversation say how many are known, and --all-occurrences tells each again.
    """
    rules = selected(select, ignore, folders, policy, Limits(stall, burst, hang))
    if expect:
        return verify(paths, rules)
    known = Known(baseline, write=write_baseline)
    results = Results(output)
    writer = begin(output_format, results.out, rules.everywhere)
    counts = Statistics()
    problems = 0
    with Bar(paths, "checking") as bar:
        for item in bar.judged(rules):
            if isinstance(item, Problem):
                problems += 1
                results.out.flush()
                bar.tell(f"wirelint: {item}")
                continue
            item = known.news(item)
            item = item if all_occurrences else item.folded
            counts.add(item)
            if statistics or write_baseline:
                continue
            if item.findings or item.known:
                bar.hide(results.out)
            writer.add(item)
    if statistics:
        counts.write(results.out, output_format)
    elif not write_baseline:
        writer.close()
    results.commit()
    tell(counts.summary(problems))
    if output_format in ("full", "concise") and (hint := counts.hint()):
        tell(hint)
    known.close(rules.everywhere)
    return _status(counts, problems, exit_zero or write_baseline)


def _status(counts: Statistics, problems: int, exit_zero: bool) -> int:
    if problems:
        return 2
    found = counts.severities["error"] + counts.severities["warning"]
    return 1 if found and not exit_zero else 0
