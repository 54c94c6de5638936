"""`wirelint check`: captures in, findings out."""

from __future__ import annotations

from pathlib import Path

import click

from wirelint.capture.readers import Problem
from wirelint.cli.baseline import BaselineRun, baseline_options
from wirelint.cli.case import verify
from wirelint.cli.guidance import guided
from wirelint.cli.options import (
    Results,
    Selection,
    format_option,
    inform,
    occurrences_option,
    output_option,
    paths_argument,
    rule_options,
)
from wirelint.cli.progress import Bar
from wirelint.view import FORMATS, Statistics, begin


@guided("check")
@paths_argument
@rule_options(policy=True, limits=True)
@format_option(list(FORMATS), "Format of the findings.")
@output_option
@baseline_options
@occurrences_option
@click.option("--statistics", is_flag=True, help="Print counts per rule instead of findings.")
@click.option("--expect", is_flag=True, help="Verify findings against each case's `expect`.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even if something was found.")
def check(
    paths: tuple[str, ...],
    selection: Selection,
    output_format: str,
    output: str | None,
    baseline: Path | None,
    write_baseline: bool,
    all_occurrences: bool,
    statistics: bool,
    expect: bool,
    exit_zero: bool,
) -> int:
    """Check captures: files, folders, or - for standard input.

    Reads wirelint's exchanges.jsonl (also hand-made records with only `request` and `response`), mitmproxy flow files,
    HAR, VCR cassettes, LHAR, session logs of Claude Code and results of K2-Vendor-Verifier. Checks that need something a
    format lacks are skipped, and a finding says so. Each file is checked by itself, in file order. `wirelint show` prints a
    whole exchange, `wirelint rule NAME` explains a rule.

    Clients send their whole history with every request. A finding in it is reported where it appears first; later turns of
    the conversation say how many are known, and --all-occurrences reports each again.
    """
    rules = selection.scopes()
    if expect:
        return verify(paths, rules)
    known = BaselineRun(baseline or selection.configuration.baseline, write=write_baseline)
    results = Results(output)
    writer = begin(output_format, results.out, rules.everywhere)
    counts = Statistics()
    problems = 0
    with Bar(paths, "checking") as bar:
        for item in bar.checked(rules):
            if isinstance(item, Problem):
                problems += 1
                results.out.flush()
                bar.inform(f"wirelint: {item}")
                continue
            item = known.new(item)
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
    inform(counts.summary(problems))
    if output_format in ("full", "concise") and (hint := counts.hint()):
        inform(hint)
    known.close(rules.everywhere)
    if problems:
        return 2
    return 1 if counts.faults and not (exit_zero or write_baseline) else 0
