"""`wirelint check`: captures in, findings out; baselines of known findings, which it does not report; and `wirelint case`,
a minimal reproducer of one exchange, which `wirelint check --expect` verifies.

A baseline is a file of fingerprints: sorted JSON with one entry per fingerprint, made to be kept under version control and
read in reviews. Only the fingerprint decides; the other members of an entry are for people.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from wirelint.capture import storage
from wirelint.capture.cases import Case, NoFindingError, disappointed, encode_case, expected, reproduce
from wirelint.capture.format import is_prior
from wirelint.capture.offline import Checked
from wirelint.capture.offline import check as check_records
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.writers import Staging, TargetError
from wirelint.cli import guided
from wirelint.cli.jobs import Bar, Workers, files_of
from wirelint.cli.options import Selection, inform, inform_failure, results, write_capture
from wirelint.model import Json
from wirelint.rule import Finding, Rule
from wirelint.settings import Scopes, file_states
from wirelint.state.issues import evidence, fingerprint, place_pattern
from wirelint.text.escaping import counted, listed
from wirelint.view.findings import visible
from wirelint.view.formats import FORMATS, begin
from wirelint.view.stats import Statistics

if TYPE_CHECKING:
    from wirelint.cli.judge import Judge

_WATCHED = ("full", "concise")
_PAUSE = 0.5
"""Seconds between two looks at the files."""
_FORMAT, _VERSION = "wirelint-baseline", 1
_CURE = "write it again with --write-baseline"


@guided("check", output_format={"choices": list(FORMATS)})
def check(
    paths: tuple[str, ...],
    selection: Selection,
    output_format: str,
    output: str | None,
    baseline: Path | None,
    write_baseline: bool,
    all_occurrences: bool,
    jobs: int | None,
    interleave: bool,
    ray: str | None,
    statistics: bool,
    expect: bool,
    exit_zero: bool,
    watch: bool,
    judge: Judge | None,
) -> int:
    """Check captures: files, folders, or - for standard input.

    Reads wirelint's exchanges.jsonl (also hand-made records with only `request` and `response`), mitmproxy flow files,
    HAR, VCR cassettes, LHAR, session logs of Claude Code and results of K2-Vendor-Verifier. Checks that need something a
    format lacks are skipped, and a finding says so. Each file is checked by itself, in file order, but the parts of a
    proxy's run are checked as one. `wirelint show` prints a whole exchange, `wirelint rule NAME` explains a rule.

    Clients send their whole history with every request. A finding in it is reported where it appears first. Equal findings
    of other conversations are one issue, shown once with its number of exchanges; --all-occurrences reports each again.
    """
    rules = selection.scopes()
    if expect:
        return verify(paths, rules)
    if ray is not None:
        from wirelint.cli.fleet import check_on_ray

        status = check_on_ray(ray, paths, output, selection, jobs, interleave, bool(baseline or watch or judge))
        return 0 if status == 1 and exit_zero else status
    known, counts = Baseline(baseline or selection.configuration.baseline, write=write_baseline), Statistics()
    if watch:
        _require_files(paths, output_format, others=bool(output or write_baseline or statistics or judge))
        return _watch(paths, rules, known, output_format, all_occurrences=all_occurrences, exit_zero=exit_zero)
    with (
        results(output) as out, Bar(paths, "checking") as bar,
        Workers(jobs, bar, selection.scopes, interleaved=interleave) as workers,
    ):  # fmt: skip
        writer = begin(output_format, out, rules.everywhere, grouped=not all_occurrences)
        for found in bar.checked(workers.checked(rules, outline=judge is None), rules, judge):
            item = known.new(found)
            item = item if all_occurrences else item.folded
            counts.add(item)
            if not (statistics or write_baseline):
                if item.findings or item.known:
                    bar.hide(out)
                writer.add(item)
        bar.hide()
        if statistics:
            counts.write(out, output_format)
        elif not write_baseline:
            writer.close()
    inform(counts.summary(bar.problems, hints=output_format in ("full", "concise")))
    known.close(rules.everywhere)
    return 2 if bar.problems else int(counts.faults > 0 and not (exit_zero or write_baseline))


def _require_files(paths: Sequence[str], output_format: str, *, others: bool) -> None:
    """Raise click.UsageError if --watch cannot be used: `others` are options that it excludes."""
    if output_format not in _WATCHED or others or "-" in paths:
        raise click.UsageError(
            f"--watch prints findings as {listed(_WATCHED, 9)}; leave out other formats, -o, -, --judge, --statistics "
            "and --write-baseline"
        )
    if any(map(storage.is_url, paths)):
        raise click.UsageError("--watch: a URL cannot be watched; name files or folders of this machine")


def _watch(
    paths: Sequence[str], rules: Scopes, known: Baseline, output_format: str, *, all_occurrences: bool, exit_zero: bool
) -> int:
    writer = begin(output_format, sys.stdout, rules.everywhere, grouped=not all_occurrences)
    counts, seen = Statistics(), Counter[str]()
    try:
        while True:
            files = [file for path in paths for file in files_of(path)]
            state, read_now, before = file_states(files), Counter[str](), counts.exchanges
            with Bar(paths, "checking") as bar:
                for found in bar.checked(Workers(1, bar, lambda: rules).checked(rules), rules):
                    source = found.record.source
                    read_now[source] += 1
                    if read_now[source] > seen[source]:
                        item = known.new(found)
                        item = item if all_occurrences else item.folded
                        counts.add(item)
                        bar.hide(sys.stdout)
                        writer.add(item)
            if bar.problems and not counts.exchanges:
                return 2
            seen = read_now  # a file that was replaced begins anew
            sys.stdout.flush()
            if counts.exchanges > before:
                inform(f"{counts.summary(bar.problems)}; watching, Ctrl-C ends")
            while file_states(file for path in paths for file in files_of(path)) == state:
                time.sleep(_PAUSE)
    except KeyboardInterrupt:
        writer.close()
    return 1 if counts.faults and not exit_zero else 0


# --- baselines ---------------------------------------------------------------------------------------------------------


class Baseline:
    """Known findings, and which of them occur in this run, if there is a file of them (`path`).

    `write`: record findings instead of leaving known ones out. Errors are click.ClickException with a message of one
    line: file, fault, cure.
    """

    def __init__(self, path: Path | None, *, write: bool) -> None:
        if write and path is None:
            raise click.UsageError("--write-baseline needs a file; add --baseline FILE")
        self._path, self._writes = path, write
        self._known = {} if write or path is None else _load(path)
        self._seen = Counter[str]()
        self._found: dict[str, Finding] = {}

    def new(self, checked: Checked) -> Checked:
        if self._path is None:
            return checked
        new = []
        for finding in checked.findings:
            print_ = fingerprint(finding)
            self._seen[print_] += not finding.is_known
            self._found.setdefault(print_, finding)
            if print_ not in self._known:
                new.append(finding)
        return checked if len(new) == len(checked.findings) else replace(checked, findings=tuple(new))

    def close(self, rules: Sequence[Rule]) -> None:
        """Write the file, or report how many findings were known, and which of the rules that ran are gone."""
        if self._path is None:
            return
        if self._writes:
            found = sorted(self._found.items(), key=lambda item: (item[1].code, place_pattern(item[1]), item[0]))
            entries: list[Json] = []
            for print_, one in found:
                names = {"fingerprint": print_, "code": one.code, "name": one.name, "layer": one.layer}
                where = {"place": f"{one.side} {place_pattern(one)}".rstrip(), "evidence": evidence(one)}
                entries.append({**names, **where, "count": self._seen[print_]})
            document: Json = {"format": _FORMAT, "version": _VERSION, "findings": entries}
            try:
                self._path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            except OSError as error:
                raise click.ClickException(f"{self._path}: {error.strerror or error}; name a writable place") from error
            inform(f"wrote {self._path}: {counted(len(found), 'finding')}")
            return
        if known := sum(count for print_, count in self._seen.items() if print_ in self._known):
            inform(f"{counted(known, 'finding')} known from {self._path}, not shown")
        names = {rule.code: rule.name for rule in rules}
        missing = (code for print_, code in self._known.items() if not self._seen[print_])
        if gone := Counter(names[code] for code in missing if code in names):
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(gone.items()))
            inform(f"gone since {self._path}: {listed}; --write-baseline removes them")


def _load(path: Path) -> dict[str, str]:
    try:
        document: Json = orjson.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise click.ClickException(f"{path}: no such file; --write-baseline writes it") from error
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}; name a readable baseline") from error
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{path}: line {error.lineno}: not JSON: {error.msg}; {_CURE}") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise click.ClickException(f"{path}: not a baseline of wirelint; {_CURE}")
    version, entries = document.get("version"), document.get("findings")
    if version != _VERSION:
        raise click.ClickException(f"{path}: version {version} is not {_VERSION}, which this wirelint reads; {_CURE}")
    if not isinstance(entries, list):
        raise click.ClickException(f"{path}: findings: not a list; {_CURE}")
    known = {}
    for number, entry in enumerate(entries, 1):
        match entry:
            case {"fingerprint": str(print_), "code": str(code)}:
                known[print_] = code
            case _:
                raise click.ClickException(f"{path}: findings[{number}]: without fingerprint or code; {_CURE}")
    return known


# --- reproducers ------------------------------------------------------------------------------------------------------

_SHOWN = 12


@guided("case")
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
    findings to keep. An earlier exchange is kept if a finding needs it.

    The case is a line of a capture that states its findings; `wirelint check FILE --expect` verifies them.
    """
    selection = Selection(ignore=ignore, folders=folders, policy=policy, isolated=True)
    rules, names = selection.scopes(), set(selection.names(select))
    records, problems = [], 0
    for item in read([path]):
        if isinstance(item, Record):
            records.append(item)
        else:
            problems += 1
            inform(f"wirelint: {item}")
    if problems and not records:
        return 2
    chosen = _choose(records, path, exchange, rules, names)
    prior = [one for one in records[: records.index(chosen)] if one.source == chosen.source]
    try:
        made = reproduce(chosen, rules, names=names, prior=prior, steps=steps, seconds=seconds)
        line = encode_case(made)
        if output == "-":
            write_capture([line])
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
        inform(f"Unredacted text remains at {visible(listed(made.plain, _SHOWN))}; review before sharing")


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
        run, pending = pending, []
        if expected(item) is None:
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
    if not records:
        raise click.ClickException(f"{path}: no exchange in it")
    if wanted is not None:
        found = [one for one in records if one.id == wanted] or [one for one in records if one.id.startswith(wanted)]
        lack = f"no exchange {wanted}; `wirelint show {path}` lists them"
    else:

        def is_kept(finding: Finding) -> bool:
            return finding.severity != "info" and (not names or finding.name in names)

        checked = (one for one in check_records(records, rules, inform_failure) if isinstance(one, Checked))
        found = [one.record for one in checked if any(map(is_kept, one.findings))]
        lack = "no findings; there is nothing to reproduce"
    if not found:
        raise click.ClickException(f"{path}: {lack}")
    if len(found) > 1:
        shown = visible(listed([one.id for one in found], _SHOWN))
        raise click.ClickException(f"{path}: {len(found)} exchanges match; name one: {shown}")
    return found[0]
