"""Minimal reproducers of findings, safe to share.

    case = reproduce(record, rules, names=["xml-leak"], prior=records_before_it)
    Path("case.jsonl").write_bytes(encode_case(case))

Messages, tools, fields and events are dropped, and texts are shortened and made neutral (`xxxx`), as long as the same
rules report the same kind of finding on the same side, and no rule reports anything else. Secrets are redacted first.
The same record and rules give the same case. `expect` in the line of a case lists its findings; `disappointed` checks
that the rules still report them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

from wirelint.capture.ddmin import Budget, Draft, Shrinker, draft, joined, minimise, neutral
from wirelint.capture.format import changes, decode, encode
from wirelint.capture.offline import check_record
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.secrets import MARK
from wirelint.engine import Engine
from wirelint.jsonvalues import Path, inside, strings
from wirelint.model import Exchange, Json, Timing
from wirelint.rule import Finding, Rule

_MOST_PRIOR = 200
_QUOTED = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"|“[^”]*”|[0-9]+")
_STAYS = frozenset({"type", "role", "object", "model", "index", "jsonrpc", "id", "n", "data", "at", "text", "content",
                    "stream", "name", "function", "arguments", "input", "finish_reason", "stop_reason", "finishReason",
                    "message", "delta", "choices", "messages"})  # fmt: skip
"""Members that are kept: a body without them is hard to read and hardly smaller."""
_WORDS = frozenset({"type", "role", "object", "model", "finish_reason", "stop_reason", "jsonrpc", "method", "event",
                    "finishReason", "status", "format"})  # fmt: skip
"""Members whose texts are words of the protocol."""
_HEADERS = frozenset({"content-type", "anthropic-version", "mcp-session-id", "x-wirelint-end"})
_HOST = "https://api.example"


class NoFindingError(ValueError):
    """No rule finds anything in the exchange, so there is nothing to reproduce."""


@dataclass(frozen=True, slots=True)
class Case:
    """A reproducer. `prior` are exchanges that must precede it. `plain` are the places of unchanged texts that the
    finding needs. `complete` is False if the budget ended before all reductions were tried."""

    record: Record
    prior: tuple[Record, ...]
    expect: tuple[Finding, ...]
    plain: tuple[str, ...] = ()
    complete: bool = True
    steps: int = 0


def reproduce(
    record: Record,
    rules: Sequence[Rule],
    *,
    names: Collection[str] = (),
    prior: Sequence[Record] = (),
    steps: int = 2500,
    seconds: float = 30.0,
) -> Case:
    """Return the minimal case of an exchange. `names`: the rules whose findings must remain (default: those of warning
    or worse, else all). `prior`: the earlier records of the same file. Raises NoFindingError.

    The rules run `steps` times at most, for `seconds` at most. If the time ends first, the result may differ between
    runs.
    """
    redactor = _Numbered()
    return _Reduction(redactor.record(record), [redactor.record(one) for one in prior[-_MOST_PRIOR:]], rules).run(
        names, Budget(steps, seconds)
    )


def encode_case(case: Case) -> bytes:
    """Return the line of a case: a record with `expect`, and with `prior` if it needs earlier records."""
    extra: dict[str, Json] = {"expect": [_expected(finding) for finding in case.expect]}
    if case.prior:
        extra["prior"] = [orjson.loads(encode(_bare(one))) for one in case.prior]
    return encode(_bare(case.record), extra)


def expected(record: Record) -> list[dict[str, Json]] | None:
    """Return the expected findings of a record; None if its line has no `expect`."""
    expect = record.annotations.get("expect")
    return [item for item in expect if isinstance(item, dict)] if isinstance(expect, list) else None


def disappointed(record: Record, findings: Iterable[Finding]) -> list[str]:
    """Return the expected findings that are missing, a line each; for an empty expectation, the findings."""
    found = [finding for finding in findings if finding.severity != "info"]
    expect = expected(record)
    if expect is None:
        return []
    if not expect:
        return [f"nothing was expected; found {one.name} at {one.side} {one.pointer or ''}".rstrip() for one in found]
    told = [_expected(finding) for finding in findings]
    return [f"expected {_said(item)}" for item in expect if not any(_fits(item, one) for one in told)]


def _said(item: dict[str, Json]) -> str:
    words = [item.get("rule"), item.get("side"), item.get("pointer")]
    return " ".join(str(word) for word in words if word)


def _fits(item: dict[str, Json], found: dict[str, Json]) -> bool:
    return all(found.get(name) == value for name, value in item.items() if name in found)


def _expected(finding: Finding) -> dict[str, Json]:
    return {"rule": finding.name, **{name: getattr(finding, name) for name in ("code", "side", "pointer", "event")}}


def _bare(record: Record) -> Record:
    """Return the record without the annotations of a live run."""
    return dataclasses.replace(record, annotations={})


class _Numbered:
    """Redaction with numbered marks, which do not depend on the key of the process."""

    def __init__(self) -> None:
        self._redactor = Redactor()
        self._numbers: dict[str, str] = {}

    def record(self, record: Record) -> Record:
        clean = self._redactor.record(_bare(record))
        line: Json = orjson.loads(MARK.sub(self._number, encode(clean).decode()))
        return dataclasses.replace(
            decode(line, clean.source, clean.place), form=clean.form, chunks=clean.chunks, missing=clean.missing
        )

    def _number(self, match: re.Match[str]) -> str:
        return self._numbers.setdefault(match[0], f"[redacted:{len(self._numbers) + 1:08x}]")


_Kind = tuple[str, str, str, str, str, str, str, str]


def _kind(finding: Finding) -> _Kind:
    """Return the parts of a finding that must stay: the form of its place, its fix, its message without quotations.
    Otherwise a reduction would turn one fault into another."""
    place = "/".join("*" if step.isdigit() else step for step in (finding.pointer or "").split("/"))
    safety = finding.fix.safety if finding.fix is not None else ""
    said = _QUOTED.sub("…", finding.message)
    return finding.code, finding.side, finding.severity, finding.confidence, finding.layer, place, safety, said


class _Reduction:
    def __init__(self, record: Record, prior: list[Record], rules: Sequence[Rule]) -> None:
        self._record, self._prior, self._rules = record, prior, rules
        self._wanted: frozenset[_Kind] = frozenset()
        self._allowed: frozenset[str] = frozenset()

    def run(self, names: Collection[str], budget: Budget) -> Case:
        found = self._judge(self._record, self._prior)[0]
        wanted = [one for one in found if one.name in names or one.code in names]
        if not names:
            wanted = [one for one in found if one.severity != "info"] or list(found)
        if not wanted:
            raise NoFindingError(f"no finding{f' of {chr(44).join(sorted(names))}' if names else ''} to reproduce")
        self._wanted = frozenset(map(_kind, wanted))
        self._allowed = frozenset(one.code for one in found)
        self._drop_prior(budget)
        self._bare_head(budget)
        self._prior = [self._reduce(one, budget, before=number)[0] for number, one in enumerate(self._prior)]
        self._record, plain = self._reduce(self._record, budget)
        self._record = dataclasses.replace(self._record, id="case")
        self._prior = [dataclasses.replace(one, id=f"case/{n}") for n, one in enumerate(self._prior, 1)]
        expect = tuple(one for one in self._judge(self._record, self._prior)[0] if one.severity != "info")
        kept = expect or self._judge(self._record, self._prior)[0]
        return Case(self._record, tuple(self._prior), kept, tuple(plain), not budget.spent, budget.steps)

    def _judge(self, record: Record, prior: Sequence[Record]) -> tuple[tuple[Finding, ...], Exchange | None]:
        engine = Engine(self._rules)
        *_, last = [check_record(one, engine) for one in (*prior, record)]
        return last.findings, last.exchange

    def _holds(self, record: Record, prior: Sequence[Record]) -> bool:
        found = self._judge(record, prior)[0]
        kinds = {_kind(one) for one in found}
        worse = {one.code for one in found if one.severity != "info"}
        return self._wanted <= kinds and worse <= self._allowed

    def _try(self, record: Record, budget: Budget) -> bool:
        if not budget.take() or not self._holds(record, self._prior):
            return False
        self._record = record
        return True

    def _drop_prior(self, budget: Budget) -> None:
        def without(left: Sequence[int]) -> bool:
            if not budget.take() or not self._holds(self._record, [before[number] for number in left]):
                return False
            self._prior = [before[number] for number in left]
            return True

        before = self._prior
        if before:
            minimise(range(len(before)), without)

    def _bare_head(self, budget: Budget) -> None:
        """Remove headers, times and other values around the bodies that the findings do not need."""
        if changes(self._record):
            self._try(self._record.but(forwarded=None, delivered=None, fixes=()), budget)
        self._try(self._record.but(timing=Timing(), chunks=(), error=None), budget)
        self._try(self._record.but(timing=dataclasses.replace(self._record.timing, started=None)), budget)
        parts = urlsplit(self._record.url)
        for url in (f"{_HOST}{parts.path}", parts._replace(query="", fragment="").geturl()):
            if self._try(dataclasses.replace(self._record, url=url), budget):
                break
        kept = (frozenset[str](), frozenset({"content-type"}), _HEADERS)
        for name, tried in (("request_headers", kept), ("response_headers", kept[1:])):
            for keep in tried:
                fields = tuple(field for field in getattr(self._record, name) if field[0].lower() in keep)
                if self._try(self._record.but(**{name: fields}), budget):
                    break

    def _reduce(self, record: Record, budget: Budget, before: int | None = None) -> tuple[Record, list[str]]:
        """Return the smallest form of one record: that of the case, or a prior one."""

        def holds(made: Record) -> bool:
            if before is None:
                return self._holds(made, self._prior)
            return self._holds(self._record, [*self._prior[:before], made, *self._prior[before + 1 :]])

        parts = urlsplit(record.url)
        elsewhere = dataclasses.replace(record, url=f"{_HOST}{parts.path}")
        if before is not None and parts.netloc and budget.take() and holds(elsewhere):
            record = elsewhere

        form = draft(record)
        if not holds(form.record(form.value)):
            return record, ["/request", "/response"]
        timeless = form.without_times()
        if budget.take() and holds(timeless.record(timeless.value)):
            form = timeless
        shrinker = Shrinker(form.value, lambda value: holds(form.record(value)), budget)
        shrinker.offer(joined(shrinker.value))
        for side in ("response", "request"):
            shrinker.drop((side,), _STAYS)
        names = self._names(form, shrinker.value) | frozenset(_keys(shrinker.value))
        for path in shrinker.plain(lambda path, text: _is_protocol(path) or text in names):
            shrinker.shorten(path)
        shrinker.clip()
        for side in ("response", "request"):
            shrinker.drop((side,), _STAYS)
        left = [
            path
            for path, text in strings(shrinker.value)
            if not _is_protocol(path) and text not in names and neutral(text) != text
        ]
        places = [f"/{'/'.join(map(str, path))}" for path in left]
        return form.record(shrinker.value), [*places, *(["/response"] if form.opaque else [])]

    def _names(self, form: Draft, value: Json) -> frozenset[str]:
        """Return the names of tools, which are kept: they help a reader and hold few personal data."""
        exchange = self._judge(form.record(value), ())[1]
        if exchange is None:
            return frozenset()
        names: set[str] = set()
        if exchange.request is not None:
            names = {tool.name for tool in exchange.request.tools}
            names |= {call.name for message in exchange.request.messages for call in message.calls if call.name}
        if exchange.reply is not None:
            names |= {call.name for choice in exchange.reply.choices for call in choice.calls if call.name}
        return frozenset(names)


def _is_protocol(path: Path) -> bool:
    name = next((key for key in reversed(path) if isinstance(key, str)), "")
    return name in _WORDS or name == "id" or name.endswith(("_id", "Id"))


def _keys(value: Json) -> set[str]:
    own = set(value) if isinstance(value, dict) else set()
    return own.union(*(_keys(item) for _, item in inside(value)))
