"""Minimal reproducers of findings, safe to share.

    case = reproduce(record, rules, names=["xml-leak"], prior=records_before_it)
    Path("case.jsonl").write_bytes(encode_case(case))

Messages, tools, fields and events are dropped, and texts are shortened and made neutral (`xxxx`), as long as the same
rules report the same kind of finding on the same side, and no rule reports anything else. Secrets are redacted first.
The same record and rules give the same case. `expect` in the line of a case lists its findings; `disappointed` checks
that the rules still report them.

Reductions are delta debugging of JSON values, level by level (Zeller; Misherghi and Su): sans-I/O and deterministic. The
test is expensive, so a `Budget` limits the number of tests; when it is used up, the smallest value so far is the result.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from wirelint.capture.format import as_number, changes, decode, dump, encode
from wirelint.capture.offline import Checked, check_record
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.secrets import MARK
from wirelint.capture.streams import Body
from wirelint.engine import Engine, lower
from wirelint.jsonvalues import Path, decode_json, inside, mapping, mappings, strings
from wirelint.model import Json, Timing
from wirelint.rule import Finding, Rule
from wirelint.wire.aws_eventstream import content_of, with_content

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
    last, *before = _redacted([record, *prior[-_MOST_PRIOR:]])
    return _Reduction(last, before, rules, Budget(steps, seconds)).run(names)


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
    missing = [
        item
        for item in expect
        if not any(all(one.get(name) == value for name, value in item.items() if name in one) for one in told)
    ]
    words = ([item.get(name) for name in ("rule", "side", "pointer")] for item in missing)
    return [f"expected {' '.join(str(word) for word in some if word)}" for some in words]


def _expected(finding: Finding) -> dict[str, Json]:
    return {"rule": finding.name, **{name: getattr(finding, name) for name in ("code", "side", "pointer", "event")}}


def _bare(record: Record) -> Record:
    return record.but(annotations={})


def _redacted(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records with numbered marks for secrets, which do not depend on the key of the process."""
    redactor = Redactor()
    marks: dict[str, str] = {}
    for record in records:
        line = encode(redactor.record(_bare(record))).decode()
        line = MARK.sub(lambda mark: marks.setdefault(mark[0], f"[redacted:{len(marks) + 1:08x}]"), line)
        yield decode(orjson.loads(line), record.source, record.place).but(form=record.form)


def _kind(finding: Finding) -> tuple[str, ...]:
    """Return the parts of a finding that must stay, so that a reduction does not turn one fault into another."""
    place = "/".join("*" if step.isdigit() else step for step in (finding.pointer or "").split("/"))
    safety = finding.fix.safety if finding.fix is not None else ""
    said = _QUOTED.sub("…", finding.message)
    return finding.code, finding.side, finding.severity, finding.confidence, finding.layer, place, safety, said


class _Reduction:
    def __init__(self, record: Record, prior: list[Record], rules: Sequence[Rule], budget: Budget) -> None:
        self._record, self._prior, self._rules, self._budget = record, prior, rules, budget
        self._wanted: frozenset[tuple[str, ...]] = frozenset()
        self._allowed: frozenset[str] = frozenset()

    def run(self, names: Collection[str]) -> Case:
        found = self._judge(self._record, self._prior).findings
        wanted = [one for one in found if one.name in names or one.code in names]
        if not names:
            wanted = [one for one in found if one.severity != "info"] or list(found)
        if not wanted:
            raise NoFindingError(f"no finding{f' of {chr(44).join(sorted(names))}' if names else ''} to reproduce")
        self._wanted = frozenset(map(_kind, wanted))
        self._allowed = frozenset(one.code for one in found)
        before = self._prior
        minimise(range(len(before)), lambda left: self._try(self._record, [before[number] for number in left]))
        self._bare_head()
        self._prior = [self._reduce(one, before=number)[0] for number, one in enumerate(self._prior)]
        self._record, plain = self._reduce(self._record)
        self._record = self._record.but(id="case")
        self._prior = [one.but(id=f"case/{n}") for n, one in enumerate(self._prior, 1)]
        found = self._judge(self._record, self._prior).findings
        expect = tuple(one for one in found if one.severity != "info") or found
        budget = self._budget
        return Case(self._record, tuple(self._prior), expect, tuple(plain), not budget.spent, budget.steps)

    def _judge(self, record: Record, prior: Sequence[Record]) -> Checked:
        engine = Engine(self._rules)
        *_, last = [check_record(one, engine) for one in (*prior, record)]
        return last

    def _holds(self, record: Record, prior: Sequence[Record]) -> bool:
        found = self._judge(record, prior).findings
        kinds = {_kind(one) for one in found}
        worse = {one.code for one in found if one.severity != "info"}
        return self._wanted <= kinds and worse <= self._allowed

    def _try(self, record: Record, prior: list[Record] | None = None) -> bool:
        """Accept a record, and other prior ones, if the findings remain."""
        prior = self._prior if prior is None else prior
        if not self._budget.take() or not self._holds(record, prior):
            return False
        self._record, self._prior = record, prior
        return True

    def _bare_head(self) -> None:
        """Remove headers, times and other values around the bodies that the findings do not need."""
        if changes(self._record):
            self._try(self._record.but(forwarded=None, delivered=None, fixes=()))
        self._try(self._record.but(timing=Timing(), chunks=(), error=None))
        self._try(self._record.but(timing=dataclasses.replace(self._record.timing, started=None)))
        parts = urlsplit(self._record.url)
        for url in (f"{_HOST}{parts.path}", parts._replace(query="", fragment="").geturl()):
            if self._try(self._record.but(url=url)):
                break
        kept = (frozenset[str](), frozenset({"content-type"}), _HEADERS)
        for name, tried in (("request_headers", kept), ("response_headers", kept[1:])):
            for keep in tried:
                fields = tuple(field for field in getattr(self._record, name) if field[0].lower() in keep)
                if self._try(self._record.but(**{name: fields})):
                    break

    def _reduce(self, record: Record, before: int | None = None) -> tuple[Record, list[str]]:
        """Return the smallest form of one record: that of the case, or a prior one."""
        budget = self._budget

        def holds(made: Record) -> bool:
            if before is None:
                return self._holds(made, self._prior)
            return self._holds(self._record, [*self._prior[:before], made, *self._prior[before + 1 :]])

        parts = urlsplit(record.url)
        elsewhere = record.but(url=f"{_HOST}{parts.path}")
        if before is not None and parts.netloc and budget.take() and holds(elsewhere):
            record = elsewhere

        timeless = record.but(chunks=(), timing=Timing())
        if budget.take() and holds(timeless):
            record = timeless
        form = draft(record)
        if not holds(form.record(form.value)):
            return record, ["/request", "/response"]
        shrinker = Shrinker(form.value, lambda value: holds(form.record(value)), budget)
        shrinker.offer(joined(shrinker.value))
        for side in ("response", "request"):
            shrinker.drop((side,), _STAYS)
        names = self._names(form.record(shrinker.value)) | frozenset(_keys(shrinker.value))

        def stays(path: Path, text: str) -> bool:
            return _is_protocol(path) or text in names

        for path in shrinker.plain(stays):
            shrinker.shorten(path)
        shrinker.clip()
        for side in ("response", "request"):
            shrinker.drop((side,), _STAYS)
        places = [f"/{'/'.join(map(str, path))}" for path in shrinker.real_texts(stays)]
        return form.record(shrinker.value), [*places, *(["/response"] if form.is_opaque else [])]

    def _names(self, record: Record) -> frozenset[str]:
        """Return the names of tools, which are kept: they help a reader and hold few personal data."""
        exchange = self._judge(record, ()).exchange
        request, reply = (exchange.request, exchange.reply) if exchange is not None else (None, None)
        calls = [*(request.calls if request else ()), *(reply.calls if reply else ())]
        tools = request.tools if request else ()
        return frozenset({call.name for call in calls if call.name} | {tool.name for tool in tools})


def _is_protocol(path: Path) -> bool:
    name = next((key for key in reversed(path) if isinstance(key, str)), "")
    return name in _WORDS or name == "id" or name.endswith(("_id", "Id"))


def _keys(value: Json) -> set[str]:
    own = set(value) if isinstance(value, dict) else set()
    return own.union(*(_keys(item) for _, item in inside(value)))


# --- delta debugging -------------------------------------------------------------------------------------------------

# An exchange as one JSON value, from which a reproducer is reduced.
#
#     {"request": <the body>, "response": <the body>} or {"request": …, "response": [{"n": 0, "data": …, "at": …}, …]}
#
# A stream is a list of its frames, each with the number of its bytes. A frame that holds one JSON document has that
# document as `data`, and its bytes are rebuilt from the document in the frame's own form; any other frame has its
# unchanged `text`.

_TEXTS = frozenset({"content", "text", "delta", "thinking", "reasoning", "reasoning_content", "arguments", "partial_json",
                     "refusal"})  # fmt: skip
"""Members that hold pieces of text."""
_PADDING = frozenset({"obfuscation", "p"})
_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A record, its bodies as one value, and the frames of the reply if it is a stream."""

    base: Record
    value: dict[str, Json]
    stream: Body | None

    @property
    def is_opaque(self) -> bool:
        """Return True if the reply cannot be split into parts."""
        return self.value["response"] is None and bool(self.base.response_body)

    def record(self, value: Json) -> Record:
        asked, answer = mapping(value).get("request"), mapping(value).get("response")
        record = self.base if asked is None else self.base.but(request_body=dump(asked))
        if answer is None:
            return record
        if self.stream is None:
            return record.but(response_body=dump(answer), chunks=())
        frames = [(_bytes(frame, self.stream), as_number(frame["at"])) for _, frame in mappings(answer)]
        chunks = tuple((at, len(data)) for data, at in frames if at is not None)
        chunks = chunks if len(chunks) == len(frames) else ()
        return record.but(response_body=b"".join(data for data, _ in frames), chunks=chunks)


def _bytes(frame: dict[str, Json], stream: Body) -> bytes:
    if isinstance(text := frame.get("text"), str):
        return text.encode("utf-8", "surrogateescape")
    number, data = frame["n"], frame.get("data")
    assert isinstance(number, int)
    raw, was = stream.frames[number].raw, _document(stream, number)
    if data is None or decode_json(was) == data:
        return raw
    return with_content(raw, dump(data)) if stream.framing == "messages" else raw.replace(was, dump(data), 1)


def draft(record: Record) -> Draft:
    """Return the draft of a record. Bodies that are no JSON stay in the base."""
    asked, body = decode_json(record.request_body or b""), record.response_body or b""
    stream = Body(body, lower(record.response_headers))
    if stream.framing == "whole" or not body:
        return Draft(record, {"request": asked, "response": decode_json(body)}, None)
    frames: list[Json] = []
    for frame, at in zip(stream.frames, _times(stream, record.chunks), strict=True):
        made: dict[str, Json] = {"n": frame.number, "at": at}
        data = decode_json(_document(stream, frame.number)) if not frame.faults else None
        if isinstance(data, dict):
            made["data"] = data
        elif stream.framing != "messages":
            made["text"] = frame.raw.decode("utf-8", "surrogateescape")
        frames.append(made)
    return Draft(record, {"request": asked, "response": frames}, stream)


def joined(value: Json) -> Json:
    """Return the value with frames merged that differ only in a piece of text: whole texts lose less when shortened."""
    if not isinstance(value, dict) or not isinstance(answer := value.get("response"), list):
        return value
    frames: list[Json] = []
    for frame in answer:
        if frames and (made := _join(frames[-1], frame)) is not None:
            frames[-1] = made
        else:
            frames.append(frame)
    return {**value, "response": frames}


def _join(one: Json, other: Json) -> Json:
    if not isinstance(one, dict) or not isinstance(other, dict) or "data" not in one or "data" not in other:
        return None
    before, after = one["data"], other["data"]
    here, there = dict(strings(before)), dict(strings(after))
    differing = [path for path in here if path[-1] not in _PADDING and here[path] != there.get(path)]
    if len(differing) != 1 or here.keys() != there.keys():
        return None
    (path,) = differing
    if path[-1] not in _TEXTS:
        return None
    made = put(before, path, here[path] + there[path])
    # Everything except the text and the padding has to be equal.
    plain = [put(item, path, "") for item in (before, after)]
    for padding in (path for path in here if path[-1] in _PADDING):
        plain = [put(item, padding, "") for item in plain]
    return {**one, "data": made, "at": other.get("at")} if plain[0] == plain[1] else None


def _times(stream: Body, chunks: tuple[tuple[float, int], ...]) -> Iterator[float | None]:
    """Yield the arrival time of the last byte of each frame."""
    known = sum(size for _, size in chunks) == sum(len(frame.raw) for frame in stream.frames)
    ends = iter(chunks if known else ())
    at: float | None = None
    came = end = 0
    for frame in stream.frames:
        end += len(frame.raw)
        while came < end and (chunk := next(ends, None)) is not None:
            at = chunk[0]
            came += chunk[1]
        yield at


def _document(stream: Body, number: int) -> bytes:
    """Return the document in a frame's bytes; empty if there is none."""
    raw = stream.frames[number].raw
    if stream.framing == "messages":
        return content_of(raw)
    found = _DATA.findall(raw)
    if len(found) == 1:
        return bytes(found[0]).rstrip(b"\r")
    return raw.strip() if not found else b""


T = TypeVar("T")

_CLIPPED = 48
_WORD = re.compile(rf"{MARK.pattern}|(?:(?!{MARK.pattern})\S)+\s*|\s+")
_PART = re.compile(rf"{MARK.pattern}|\s+|\w+|[^\w\s]")


class Budget:
    """Limits of a reduction: the number of tests, and seconds."""

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps = 0
        self._most = steps
        self._until = time.monotonic() + seconds

    @property
    def spent(self) -> bool:
        return self.steps >= self._most or time.monotonic() >= self._until

    def take(self) -> bool:
        """Count one test. Return False if the budget is spent."""
        if self.spent:
            return False
        self.steps += 1
        return True


class Shrinker:
    """Reduces a value that passes a test. `value` is the smallest one so far."""

    def __init__(self, value: Json, test: Callable[[Json], bool], budget: Budget) -> None:
        self.value = value
        self.budget = budget
        self._test = test

    def offer(self, value: Json) -> bool:
        """Accept a value if it passes the test."""
        if value == self.value:
            return True
        if not self.budget.take() or not self._test(value):
            return False
        self.value = value
        return True

    def drop(self, path: Path = (), kept: frozenset[str] = frozenset()) -> None:
        """Remove members and elements that the test does not need, from the top down. `kept`: names of members that
        stay, and whose lists do not become empty."""
        if self.budget.spent:
            return
        whole, node = self.value, at(self.value, path)
        keys = [key for key, _ in inside(node) if key not in kept]
        may_be_empty = isinstance(node, dict) or not path or path[-1] not in kept

        def without(left: Sequence[str | int]) -> bool:
            if self.budget.spent or not (left or may_be_empty):
                return False
            gone = set(keys) - set(left)
            made: Json = {str(key): item for key, item in inside(node) if key not in gone}
            if not isinstance(node, dict):
                made = [item for key, item in inside(node) if key not in gone]
            return self.offer(put(whole, path, made))

        minimise(keys, without)
        for key, _ in inside(at(self.value, path)):
            self.drop((*path, key), kept)

    def plain(self, kept: Callable[[Path, str], bool]) -> Sequence[Path]:
        """Replace texts by neutral ones of the same shape. Return the places of texts that the test needs."""
        return self._replace(self.real_texts(kept), neutral)

    def real_texts(self, kept: Callable[[Path, str], bool]) -> list[Path]:
        """Return the places of texts that are not neutral, without those that are kept."""
        return [path for path, text in strings(self.value) if not kept(path, text) and neutral(text) != text]

    def clip(self) -> None:
        """Shorten long neutral texts."""
        places = [path for path, text in strings(self.value) if len(text) > _CLIPPED and neutral(text) == text]
        self._replace(places, lambda text: text[:_CLIPPED].rsplit(" ", 1)[0])

    def _replace(self, places: Sequence[Path], make: Callable[[str], str]) -> Sequence[Path]:
        """Replace texts by what `make` returns for them. Return the places of texts that the test needs."""
        whole = self.value

        def real(left: Sequence[Path]) -> bool:
            if self.budget.spent:
                return False
            made = whole
            for path in set(places) - set(left):
                made = put(made, path, make(str(at(whole, path))))
            return self.offer(made)

        return minimise(places, real)

    def shorten(self, path: Path) -> None:
        """Shorten a text, and replace the parts that the test does not need by neutral ones."""
        words = _WORD.findall(str(at(self.value, path)))

        def shorter(left: Sequence[int]) -> bool:
            return self.offer(put(self.value, path, "".join(words[number] for number in left)))

        minimise(range(len(words)), shorter)
        words = _PART.findall(str(at(self.value, path)))

        def real(left: Sequence[int]) -> bool:
            told = set(left)
            made = (word if number in told else neutral(word) for number, word in enumerate(words))
            return self.offer(put(self.value, path, "".join(made)))

        minimise([number for number, word in enumerate(words) if neutral(word) != word], real)


def minimise(items: Sequence[T], test: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return the fewest items that pass the test; one-minimal if the budget lasts. All items together pass."""
    if not items or test([]):
        return []
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            left = [*items[:start], *items[start + size :]]
            if left and test(left):
                items, parts = left, max(parts - 1, 2)
                break
        else:
            if parts >= len(items):
                break
            parts = min(parts * 2, len(items))
    return items


def neutral(text: str) -> str:
    """Return the neutral text of the same shape: letters become x, digits 0. Redaction marks stay."""
    return "".join(word if MARK.match(word) else "".join(map(_neutral, word)) for word in _PART.findall(text))


def _neutral(one: str) -> str:
    if one.isalpha():
        return "X" if one.isupper() else "x"
    return "0" if one.isdigit() else one


def at(value: Any, path: Path) -> Json:
    found: Json = functools.reduce(operator.getitem, path, value)
    return found


def put(value: Any, path: Path, new: Json) -> Any:
    """Return a copy of the value with a new value at a path."""
    if not path:
        return new
    made = copy.copy(value)
    made[path[0]] = put(value[path[0]], path[1:], new)
    return made
