"""Checked exchanges as one HTML page without external files, for `wirelint report` and `wirelint.view`.

    from wirelint.view.html import write_report
    written = write_report(check(read(["captures"]), rules), Path("report.html"), rules=rules)

Theory of operation. Exchanges are written one by one to a temporary file as compressed blocks; only their rows and the
counts stay in memory. Then the page is assembled: summary and manuals by a template that escapes everything, the blocks,
the script. The script unpacks a block when the user opens an exchange in it. Blocks are JSON, gzip, Base64 in an
element browsers do not run, and Base64 has no character with a meaning in HTML, so wire text cannot end the element:

    <script type="text/plain" class="block">H4sIAAAAAAAC/…</script>

The policy in the head permits this script and this style by digest and nothing else: no other script, no request, and
(Trusted Types) no text that is parsed as HTML. The page replaces the output file when it is complete.
"""

from __future__ import annotations

import base64
import datetime
import gzip
import hashlib
import inspect
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from markupsafe import Markup

from wirelint import __version__
from wirelint.capture.format import dump_printable
from wirelint.capture.offline import Checked, Occurrences
from wirelint.capture.readers import Problem
from wirelint.capture.writers import Staging
from wirelint.jsonvalues import mappings
from wirelint.model import Json
from wirelint.registry import page_url, shipped_names
from wirelint.rule import SEVERITIES, Rule, Severity
from wirelint.state.issues import Issue
from wirelint.text.escaping import printable
from wirelint.view import scorecard
from wirelint.view.findings import Repeats, recurrence, worst, worst_first
from wirelint.view.html.exchange import Object, describe_failure, is_rewritten, make_detail, make_row
from wirelint.view.scores import Card, Observation, cards_of, name_provider, observe

__all__ = ["Section", "Written", "render_dashboard", "write_report"]

_HERE = Path(__file__).resolve().parent
_PIECE = 1 << 20
_BLOCK = 512 << 10
"""Bytes of JSON after which a block is closed."""


class Section(NamedTuple):
    """A part of the page below the summary, made by the caller. Scripts and style attributes do not work in it."""

    title: str
    body: Markup


@dataclass(frozen=True, slots=True)
class Written:
    """A page that was written. `size` is in bytes, `problems` counts inputs that could not be read."""

    path: Path
    size: int
    exchanges: int
    affected: int
    problems: int


def write_report(
    items: Iterable[Checked | Problem],
    out: Path,
    *,
    rules: Sequence[Rule] = (),
    title: str = "",
    sections: Sequence[Section] = (),
    on_problem: Callable[[Problem], None] = lambda problem: None,
    all_occurrences: bool = False,
) -> Written:
    """Write a page of `items` to `out`, replacing a file there. Raises OSError.

    `rules`: the page includes the manuals of those that have findings. `sections` follow the scorecard. Without any
    exchange nothing is written (`exchanges` is 0). Findings that earlier exchanges had are only counted, unless
    `all_occurrences`.
    """
    summary, seen, problems, rows = Summary(), list[Observation | None](), list[str](), list[Json]()
    anchors, occurrences, repeats, shown_issues = Counter[str](), Occurrences(), Repeats(), list[_ShownIssue]()
    with tempfile.TemporaryFile() as data:
        blocks = Blocks(data)
        for item in items:
            if isinstance(item, Problem):
                problems.append(str(item))
                on_problem(item)
                continue
            item = item if all_occurrences else item.folded
            summary.add(item)
            seen.append(observe(item))
            repeats.add(item)
            occurrences.see(item)
            row = make_row(item)
            name = str(row["id"] or row["place"] or "exchange")
            anchors[name] += 1
            row["anchor"] = name if anchors[name] == 1 else f"{name}~{anchors[name]}"  # its name in links
            rows.append(row)
            shown_issues += _issues(item, row)
            blocks.exchange(_detail(item, blocks))
        blocks.close()
        if not rows:
            return Written(out, 0, 0, 0, len(problems))
        for source, here, issue, value in shown_issues:
            if note := recurrence(occurrences.total(source, issue), here):
                value["again"] = note
        codes = {count.name for count in summary.counts("rule")}
        data.write(encode_element("index", dump_printable({"blocks": blocks.firsts, "rows": rows})))
        with Staging(out, folder=False, force=True) as staging:
            _write_page(
                staging.path,
                data,
                title=title or ", ".join(summary.sources),
                summary=summary,
                chart=summary.chart(),
                manuals=[_manual(rule) for rule in rules if rule.code in codes],
                sections=[*_own_sections(cards_of(filter(None, seen)), repeats), *sections],
                problems=problems,
            )
            staging.commit()
    return Written(out, out.stat().st_size, summary.all.exchanges, summary.all.affected, len(problems))


def _detail(item: Checked, blocks: Blocks) -> dict[str, Json]:
    try:
        return make_detail(item, blocks.message)
    except Exception as error:  # fail open: one exchange that cannot be shown does not lose the others
        return describe_failure(item, error)


def _own_sections(cards: list[Card], repeats: Repeats) -> list[Section]:
    """Return the scorecard, if there are calls, and the faults that several exchanges have."""
    scored = cards if any(card.calls for card in cards) else []
    own = [Section(scorecard.title(scored), scorecard.section(scored))] if scored else []
    if again := [one for one in repeats.ordered() if one.count > 1]:
        table = scorecard.page_table(scorecard.issue_table(again), is_open=True)
        own.append(Section("Issues of several exchanges", table))
    return own


_ShownIssue: TypeAlias = tuple[str, str, Issue, Object]
"""(capture, exchange, issue, its finding in a row): how often it recurred is known when all exchanges have been read."""


def _issues(checked: Checked, row: Object) -> Iterator[_ShownIssue]:
    for finding, (_, value) in zip(worst_first(checked.findings), mappings(row["findings"]), strict=True):
        if finding.issue is not None:
            yield checked.record.source, checked.record.id, finding.issue, value


class Blocks:
    """Writes exchanges with their messages to `out` in blocks. An equal message is stored once.

    `firsts`: per block the numbers of its first message and its first exchange.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._seen: dict[bytes, int] = {}
        self._messages: list[bytes] = []
        self._exchanges: list[bytes] = []
        self._size = self._first_exchange = self._first_message = 0
        self.firsts: list[Json] = []

    def message(self, value: Object) -> int:
        """Return the number of a message."""
        data = dump_printable(value)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        number = self._seen.setdefault(digest, len(self._seen))
        if number == self._first_message + len(self._messages):
            self._messages.append(data)
            self._size += len(data)
        return number

    def exchange(self, value: Object) -> None:
        """Store an exchange. Its messages must have been stored before."""
        data = dump_printable(value)
        self._exchanges.append(data)
        self._size += len(data)
        if self._size >= _BLOCK:
            self.close()

    def close(self) -> None:
        """Write the last block."""
        if not self._exchanges:
            return
        self.firsts.append([self._first_message, self._first_exchange])
        body = b'{"messages":[' + b",".join(self._messages) + b'],"exchanges":[' + b",".join(self._exchanges) + b"]}"
        self._out.write(encode_element("block", body))
        self._first_message += len(self._messages)
        self._first_exchange += len(self._exchanges)
        self._messages, self._exchanges, self._size = [], [], 0


def encode_element(kind: str, data: bytes) -> bytes:
    """Return an element that holds data. `kind` is its class."""
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0))
    return b'<script type="text/plain" class="%s">%s</script>\n' % (kind.encode(), packed)


# --- the summary ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Count:
    """Exchanges and findings, in all or of one rule, model, provider, layer or API. `affected`: exchanges with findings."""

    name: str
    note: str = ""
    exchanges: int = 0
    affected: int = 0
    findings: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.findings.total()

    @property
    def worst(self) -> str:
        return next((severity for severity in SEVERITIES if self.findings[severity]), "clean")


class Bar(NamedTuple):
    """A rectangle of the chart."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


class Chart(NamedTuple):
    """Exchanges over time. `timed` False: times are unknown, and exchanges are in the order of the capture."""

    bars: Sequence[Bar]
    start: str
    end: str
    timed: bool


@dataclass(slots=True)
class Summary:
    """Counts of checked exchanges."""

    all: Count = field(default_factory=lambda: Count(""))
    unrecognised: int = 0
    rewritten: int = 0
    sources: dict[str, None] = field(default_factory=dict)
    _kinds: dict[str, dict[str, Count]] = field(default_factory=dict)
    _course: list[tuple[float | None, str]] = field(default_factory=list)

    def add(self, checked: Checked) -> None:
        record, exchange = checked.record, checked.exchange
        self.unrecognised += exchange is None
        self.rewritten += is_rewritten(record)
        self.sources[record.source] = None
        names = {"api": checked.api, "model": printable(checked.model), "provider": name_provider(checked)}
        counts = [self.all, *(self._count(kind, name) for kind, name in names.items())]
        for count in counts:
            count.exchanges += 1
        affected = {}
        for finding in checked.findings:
            rule, layer = self._count("rule", finding.code, finding.name), self._count("layer", finding.layer)
            for count in (*counts, rule, layer):
                count.findings[finding.severity] += 1
                affected[id(count)] = count
        for count in affected.values():
            count.affected += 1
        self._course.append((record.timing.started, worst(checked.findings) or "clean"))

    def counts(self, kind: str) -> list[Count]:
        """Return the counts of `rule`, `model`, `provider`, `layer` or `api`, most errors first, then warnings."""

        def order(count: Count) -> tuple[object, ...]:
            return *(-count.findings[severity] for severity in SEVERITIES), -count.exchanges, count.name

        return sorted(self._kinds.get(kind, {}).values(), key=order)

    def chart(self) -> Chart | None:
        """Return the exchanges over time, stacked by their worst finding; None for fewer than two."""
        if len(self._course) < 2:
            return None
        times = [at for at, _ in self._course if at is not None and 0 < at < 1e11]
        timed = len(times) == len(self._course) and max(times) > min(times)
        spots: list[float] = times if timed else [float(n) for n in range(len(self._course))]
        low, high = min(spots), max(spots)
        size = _BINS if timed else min(_BINS, len(spots))
        bins = [Counter[str]() for _ in range(size)]
        for at, (_, kind) in zip(spots, self._course, strict=True):
            bins[min(int((at - low) / (high - low) * size), size - 1)][kind] += 1
        labels = (format_time(low), format_time(high)) if timed else ("first exchange", f"exchange {len(self._course)}")
        return Chart(list(_bars(bins, low, high, timed)), *labels, timed)

    def _count(self, kind: str, name: str, note: str = "") -> Count:
        return self._kinds.setdefault(kind, {}).setdefault(name, Count(name, note))


_BINS = 60
_WIDTH, _HEIGHT = 600.0, 100.0
_GAP, _WIDEST = 0.22, 24.0
_STACK: tuple[Severity | str, ...] = (*SEVERITIES, "clean")
_WORDS = {"error": "with an error", "warning": "with a warning", "info": "with an info", "clean": "clean"}


def format_time(at: float) -> str:
    """Return a Unix time as text, in UTC."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _bars(bins: Sequence[Counter[str]], low: float, high: float, timed: bool) -> Iterable[Bar]:
    most = max(counts.total() for counts in bins)
    step = _WIDTH / len(bins)
    width = min(step * (1 - _GAP), _WIDEST)
    for number, counts in enumerate(bins):
        at = low + (high - low) * number / len(bins)
        where = format_time(at) if timed else f"from exchange {int(at) + 1}"
        title = f"{where}: {', '.join(f'{counts[kind]} {_WORDS[kind]}' for kind in _STACK if counts[kind])}"
        x, top = number * step + (step - width) / 2, _HEIGHT
        for kind in _STACK:
            if counts[kind]:
                height = counts[kind] / most * _HEIGHT
                top -= height
                yield Bar(round(x, 2), round(top, 2), round(width, 2), round(height, 2), kind, title)


def _write_page(out: Path, data: BinaryIO, **values: object) -> None:
    """Render the template to `out`. `data` holds the elements with the exchanges and the index."""
    script, style = _read("exchange.js", "report.js"), _read("report.css")
    template = scorecard.templates().get_template("page.html.jinja")
    assets = {"policy": _policy(_digest(script), _digest(style)), "script": Markup(script), "style": Markup(style)}
    data.seek(0)
    pieces = (Markup(piece.decode("ascii")) for piece in iter(lambda: data.read(_PIECE), b""))
    stream = template.stream(version=__version__, data=pieces, **assets, **values)
    stream.enable_buffering(16)
    with out.open("wb") as page:
        stream.dump(page, encoding="utf-8", errors="replace")


def _policy(script: str, style: str) -> str:
    """Return the policy of a page. `script`, `style`: the only sources of these that it permits."""
    sources = f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:"  # the empty icon
    return f"{sources}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"


def render_dashboard(nonce: str) -> tuple[str, str]:
    """Return the page of `addon.dashboard`, which holds no data, and its policy. `nonce`: a random one for each answer."""
    script, style = _read("exchange.js", "dashboard.js"), _read("report.css", "dashboard.css")
    page = scorecard.templates().get_template("dashboard.html.jinja")
    policy = f"{_policy(f'nonce-{nonce}', f'nonce-{nonce}')}; connect-src 'self'; frame-ancestors 'none'"
    pages = {code: page_url(name) for name, code in shipped_names().items()}
    assets = {"script": Markup(script), "style": Markup(style), "pages": pages}
    return page.render(version=__version__, nonce=nonce, **assets), policy


def _read(*names: str) -> str:
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in names)


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _manual(rule: Rule) -> dict[str, str]:
    """Return the code of a rule, its page on the web, and its manual as HTML: from a docstring, never from the wire."""
    from markdown_it import MarkdownIt  # 1 MB, which the live page does not need

    html = Markup(MarkdownIt("commonmark", {"html": False}).render(inspect.getdoc(rule) or ""))
    return {"code": rule.code, "page": page_url(rule.name), "html": html}
