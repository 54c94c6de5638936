"""Checking and fixing of captures offline, with the session and the engine of live traffic and one ledger per file.

A partition is the unit that one process checks with one ledger:

    captures/20260131T094500Z-3f2a9c11/exchanges.jsonl
    captures/20260131T213007Z-3f2a9c11/exchanges.jsonl

A proxy writes its run in parts. A conversation goes on from part to part, and so does the ledger: the parts that a run
began on one day are one partition. Every other capture is a partition by itself.

Large partitions are cut into slices by the root of a conversation, which the proxy wrote beside each exchange. A slice
also reads the exchanges without a root (tool servers), since they are evidence for all conversations. The number of
slices depends on the size of the captures alone, so results do not depend on the number of processes.

Behind a balancer that does not keep a session on one proxy, a conversation is in the captures of several: `interleaved`
puts the runs of a day together, in order of time.
"""

from __future__ import annotations

import dataclasses
import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from wirelint.apis.unknown import unknown_because
from wirelint.capture.readers import Problem, read
from wirelint.capture.readers.source import as_string
from wirelint.capture.record import Form, Headers, Record, Sent
from wirelint.capture.replay import begin, delivered_reply, finish, mended, replay, respond
from wirelint.engine import Engine, internal
from wirelint.fix import AppliedFix, FixPolicy
from wirelint.model import Exchange, MissingInfo, Reply, Request, Side, missing_words
from wirelint.rewrite import rewrite_reply
from wirelint.rewrite.request import Mended, mend_request
from wirelint.rewrite.stream import Rewritten
from wirelint.rule import Finding, Rule
from wirelint.state.issues import Issue

NOT_JUDGED = "IN001"
Report = Callable[[str, Exception], None]
"""Function that reports a failure: (culprit, exception)."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A record with its exchange and findings. `exchange` is None for an unrecognised API, and if reading failed.

    `because` explains an unrecognised exchange that looks like an API of models or tools, and is empty for other traffic.
    `known` are findings of earlier exchanges (`folded`); without folding, all of them are in `findings`.
    `names`: API and model, if they are not those of `exchange`.
    """

    record: Record
    exchange: Exchange | None
    findings: tuple[Finding, ...] = ()
    because: str = ""
    known: tuple[Finding, ...] = ()
    names: tuple[str, str] = ("", "")

    @property
    def api(self) -> str:
        return self.names[0] or (self.exchange.api if self.exchange is not None else "")

    @property
    def model(self) -> str:
        return self.names[1] or (self.exchange.model if self.exchange is not None else "")

    @property
    def request(self) -> Request | None:
        return self.exchange.request if self.exchange is not None else None

    @property
    def reply(self) -> Reply | None:
        return self.exchange.reply if self.exchange is not None else None

    @property
    def conversation(self) -> str | None:
        return self.exchange.conversation if self.exchange is not None else None

    @property
    def calls(self) -> int:
        """The number of tool calls in the reply."""
        return len(self.reply.calls) if self.reply is not None else 0

    @property
    def streamed(self) -> bool:
        return self.reply is not None and self.reply.streamed

    @property
    def is_open(self) -> bool:
        """Return True if the exchange is in progress."""
        return self.exchange is not None and self.exchange.open

    @property
    def folded(self) -> Checked:
        """The exchange with its new findings in `findings`, and those of earlier exchanges in `known`."""
        known = tuple(finding for finding in self.findings if finding.is_known)
        if not known:
            return self
        new = tuple(finding for finding in self.findings if not finding.is_known)
        return dataclasses.replace(self, findings=new, known=(*self.known, *known))

    @property
    def outline(self) -> Checked:
        """The exchange without bodies and messages if it has no findings: all that a list of findings needs of it."""
        if self.findings or self.known or self.record.fixes:
            return self
        record = self.record.but(request_body=None, response_body=None)
        exchange = self.exchange.but(request=None, reply=None, delivered=None) if self.exchange is not None else None
        return dataclasses.replace(self, record=record, exchange=exchange, names=(self.api, self.model))

    @property
    def new_fixes(self) -> list[AppliedFix]:
        """The fixes that are not at the place of a known finding, nor of a rule all of whose findings are known."""
        folded = self.folded
        places = {(one.code, one.side, one.pointer) for one in folded.known}
        known = {place[:2] for place in places} - {(one.code, one.side) for one in folded.findings}
        return [
            fix
            for fix in self.record.fixes
            if (fix.code, fix.side, fix.pointer) not in places and (fix.code, fix.side) not in known
        ]


class Occurrences:
    """Counts of each issue in a set of files. Complete after the last exchange."""

    def __init__(self) -> None:
        self._again: dict[tuple[str, str, str], tuple[str, int]] = {}

    def see(self, checked: Checked) -> None:
        """Count the findings of an exchange that earlier exchanges had."""
        for finding in (*checked.findings, *checked.known):
            issue = finding.issue
            if issue is not None and issue.known:
                key = checked.record.source, issue.first, issue.id
                self._again[key] = issue.last, self._again.get(key, ("", 0))[1] + 1

    def total(self, source: str, issue: Issue) -> Issue:
        """Return an issue with its last exchange and its number of exchanges."""
        last, count = self._again.get((source, issue.first, issue.id), (issue.last, 0))
        return dataclasses.replace(issue, last=last, count=count + 1)

    def totalled(self, checked: Checked) -> Checked:
        """Return a checked exchange whose findings have the totals of their issues."""
        source, findings = checked.record.source, checked.findings
        totals = [self.total(source, finding.issue) if finding.issue is not None else None for finding in findings]
        totalled = map(lambda finding, issue: dataclasses.replace(finding, issue=issue), findings, totals)
        return dataclasses.replace(checked, findings=tuple(totalled))


def check(
    items: Iterable[Record | Problem],
    rules: Sequence[Rule],
    report: Report | None = None,
    *,
    together: bool = False,
) -> Iterator[Checked | Problem]:
    """Check records in order, with a ledger for each file, or one for all (`together`). Problems keep their place."""
    lacking: frozenset[MissingInfo] = frozenset()
    for item, engine, is_first in _with_engines(items, rules, report, together=together):
        if isinstance(item, Problem):
            yield item
            continue
        if is_first:
            lacking = frozenset()
        checked = check_record(item, engine, report)
        if news := item.missing - lacking:  # reported once in each file
            said = f"not checked here: {missing_words(news)}"
            note = Finding(NOT_JUDGED, "not-judged", "info", "high", "wirelint", "response", said)
            checked = dataclasses.replace(checked, findings=(note, *checked.findings))
            lacking |= item.missing
        yield checked


def _with_engines(
    items: Iterable[Record | Problem], rules: Sequence[Rule], report: Report | None, *, together: bool = False
) -> Iterator[tuple[Record | Problem, Engine, bool]]:
    """Yield each item with the engine of its file, or one for all, and True for the first record of a file."""
    engine, source = Engine(rules, report=report), None
    for item in items:
        is_first = isinstance(item, Record) and item.source != source
        if is_first:
            engine, source = engine if together else Engine(rules, report=report), item.source
        yield item, engine, is_first


def check_record(record: Record, engine: Engine, report: Report | None = None) -> Checked:
    """Check the next record of a file. The engine's ledger takes it."""
    try:
        exchange = replay(record)
        if exchange is None:
            because = unknown_because(record.method, record.url, record.request_body or b"")
            return Checked(record, None, because=because)
        exchange = engine.ledger.place(exchange)
        return Checked(record, exchange, engine.check(exchange))
    except Exception as error:  # fail open: the other records are checked
        if report is not None:
            report("the reader", error)
        return Checked(record, None, (internal("the reader", error),))


# --- fixing ------------------------------------------------------------------------------------------------------------
#
# Theory of operation. A fix starts from the received bytes: the request of the client, the reply of the upstream. It
# replaces the messages that a live run sent, or removes them if no fix applies any more. So the result depends on the
# bytes and the options alone: fixing a capture twice gives the result of fixing it once, and the options of the live
# run give the result of the live run. Two messages are kept although no fix made them: a side whose original is lost,
# and a reply of which the client got less than the upstream sent.
#
# `findings` are those of the received bytes, as `wirelint check` reports them; `remaining` are those of the fixed exchange.
# The ledger records the exchange with the delivered reply: of this fix, else of the live run.

_UNWRITTEN: dict[Form, str] = {
    "vcr": "a cassette",
    "lhar": "an LHAR",
    "claude-code": "a session log",
    "k2vv": "a file of results",
}
_CURE = "`wirelint export` makes a capture of it, and that can be repaired"


@dataclass(frozen=True, slots=True)
class Fixed(Checked):
    """A checked record with its fixes in `forwarded`, `delivered` and `fixes`, which are empty without a change.

    `findings` are those before the fix, `remaining` those after it.
    """

    remaining: tuple[Finding, ...] = ()


def fix(
    items: Iterable[Record | Problem], rules: Sequence[Rule], permit: FixPolicy | None, report: Report | None = None
) -> Iterator[Fixed | Problem]:
    """Fix records in order. Problems keep their place. `permit` None: the scopes of the rules decide."""
    for item, engine, is_first in _with_engines(items, rules, report):
        if isinstance(item, Problem):
            yield item
            continue
        if item.form in _UNWRITTEN:
            if is_first:
                yield Problem(item.source, "", f"{_UNWRITTEN[item.form]} is not written", _CURE, fatal=True)
            continue
        try:
            fixed = _fix(item, engine, permit)
        except Exception as error:  # fail open: the other records are fixed
            if report is not None:
                report("repairing an exchange", error)
            finding = internal("repairing an exchange", error)
            fixed = Fixed(item, None, (finding,), remaining=(finding,))
        yield fixed


def _fix(record: Record, engine: Engine, permit: FixPolicy | None) -> Fixed:
    # Fixes derive ids of calls from the id, which must not depend on the file name.
    is_named_by_file = record.id.startswith(f"{record.source}:")
    session = begin(record.but(id=record.place) if is_named_by_file else record)
    if session is None:
        return Fixed(record, None)
    scope = engine.rules.of(session.head())
    rules = tuple(rule for rule in scope.rules if not rule.needs & record.missing)
    allowed = scope.permit if permit is None else permit
    asked: Mended | None = None
    made: Rewritten | None = None
    if record.request_body and session.request is not None and "request" not in record.missing:
        asked = mend_request(session.head(), record.request_body, rules, engine.ledger, allowed)
    is_mended = asked is not None and asked.body != record.request_body
    respond(session, record)
    if record.response_body:
        made = rewrite_reply(
            session,
            record.response_body,
            rules,
            engine.ledger,
            allowed,
            # If the end is unknown, the file counts as holding the whole reply.
            complete=record.end in ("complete", "unknown"),
            chunks=record.chunks,
            request=asked.request if asked is not None and is_mended else None,
        )
    forwarded, repairs = _sent(record, "request", asked)
    delivered, more = _sent(record, "response", made)
    faults = (*(asked.faults if asked is not None else ()), *(made.faults if made is not None else ()))
    annotations, kept = record.annotations, record.notes
    if made is not None and made.notes:
        annotations = {**annotations, "notes": [*kept, *(note for note in made.notes if note not in kept)]}
    fixed = record.but(forwarded=forwarded, delivered=delivered, fixes=(*repairs, *more), annotations=annotations)
    exchange = engine.ledger.place(finish(session, record, delivered_reply(fixed if delivered is not None else record)))
    findings = engine.check(exchange)
    if not is_mended and (made is None or made.body == record.response_body):
        return Fixed(fixed, exchange, (*faults, *findings), remaining=(*faults, *findings))
    # Findings on the fixed exchange, in the conversation of the received one. The ledger is not changed.
    after = replay(mended(fixed))
    if after is not None:
        after = after.but(conversation=exchange.conversation, link=exchange.link)
    remaining = engine.judge(after) if after is not None else ()
    return Fixed(fixed, exchange, (*faults, *findings), remaining=(*faults, *remaining))


def _sent(record: Record, side: Side, made: Mended | Rewritten | None) -> tuple[Sent | None, Sequence[AppliedFix]]:
    """Return the message to send instead of the received one, None if it stays unchanged, and its fixes."""
    is_request = side == "request"
    live, received = (record.forwarded, record.request_body) if is_request else (record.delivered, record.response_body)
    earlier = [repair for repair in record.fixes if repair.side == side]
    if made is None:  # the received message is lost: keep the one that a live run sent
        return live, earlier
    if made.body == received:
        return (live if not is_request and not earlier else None), ()
    headers = record.request_headers if is_request else record.response_headers
    # The recorded headers of this body are better than reconstructed ones.
    is_same = live is not None and live.body == made.body
    return live if is_same else Sent(true_headers(headers, made.body), made.body), made.repairs


def true_headers(headers: Headers, body: bytes) -> Headers:
    """Return headers for a decoded body: no content-encoding, and the right content-length."""
    made: list[tuple[str, str]] = []
    length = str(len(body))
    for name, value in headers:
        if name.lower() != "content-length":
            made += [(name, value)] if name.lower() != "content-encoding" else []
        elif length:  # repeated lengths are left out
            made.append((name, length))
            length = ""
    return tuple(made)


Change: TypeAlias = Callable[[Iterator[Record | Problem]], Iterable[Record | Problem]]
"""Function that replaces records before they are checked."""
_PART = re.compile(r"(.*[/\\]|)(\d{8})T\d{6}Z-([0-9a-f]{8})(?:-\d+)?[/\\](exchanges\.jsonl|flows\.mitm)", re.DOTALL)
_SLICE = 32 << 20
"""Bytes of a slice."""
_MOST_SLICES = 8
"""Every slice reads the whole partition, which takes about a hundredth of the time of checking it."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Captures that are checked with one ledger: the files of each run in order. `size`: their bytes.

    `number` of `slices`: the conversations whose exchanges are reported.
    """

    runs: tuple[tuple[str, ...], ...]
    size: int
    number: int = 0
    slices: int = 1

    @property
    def files(self) -> Iterator[str]:
        return (file for run in self.runs for file in run)

    def records(self) -> Iterator[Record | Problem]:
        """Yield the records that the ledger needs, those of several runs in order of time, and the problems."""
        runs = (_timed(read(files)) for files in self.runs)
        for _, item in heapq.merge(*runs, key=itemgetter(0)):
            if isinstance(item, Problem) or self._slice_of(item) in (self.number, None):
                yield item

    def check(
        self, rules: Sequence[Rule], report: Report | None = None, change: Change = iter
    ) -> Iterator[Checked | Problem]:
        """Check the partition. Yield the results of its slice. `change` replaces records before they are checked."""
        for item in check(change(self.records()), rules, report, together=True):
            record = item.record if isinstance(item, Checked) else None
            if self.number in (0, self._slice_of(record) if record is not None else None):
                yield item

    def _slice_of(self, record: Record) -> int | None:
        """Return the number of the slice of a record; None if it has no root."""
        root = as_string(record.annotations.get("root")) if self.slices > 1 else ""
        return sum(root.encode("utf-8", "replace")) % self.slices if root else None


def partitions(
    files: Iterable[str], size_of: Callable[[str], int], *, interleaved: bool = False
) -> Iterator[Partition]:
    """Yield the partitions of captures, in the order of their first files. `interleaved`: those of a day are one."""
    groups: dict[str, dict[str, list[str]]] = {}
    for number, file in enumerate(files):
        found = _PART.fullmatch(file)
        day = found[2] if found is not None and interleaved else ""
        run = "".join(found.groups()) if found is not None else f"{number} {file}"
        groups.setdefault(day or run, {}).setdefault(run, []).append(file)
    for runs in groups.values():
        chains = tuple(tuple(chain) for chain in runs.values())
        size = sum(size_of(file) for chain in chains for file in chain)
        has_roots = all(map(_PART.fullmatch, chains[0]))
        slices = min(max(size // _SLICE, 1), _MOST_SLICES) if has_roots else 1
        for number in range(slices):
            yield Partition(chains, size // slices, number, slices)


def _timed(items: Iterable[Record | Problem]) -> Iterator[tuple[float, Record | Problem]]:
    """Yield the items of a run, each with the time at which it ended, or that of the item before it."""
    latest = 0.0
    for item in items:
        if isinstance(item, Record) and item.timing.started is not None:
            latest = max(latest, item.timing.started + (item.timing.duration or 0.0) / 1000)
        yield latest, item
