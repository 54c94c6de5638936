"""What a page is made of: places, evidence, messages that are kept once, silences, counts; and how it is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import Markup

from tests.build import some
from tests.tables import rows, tables
from tests.view.html.pages import LEAK, Page, page, sample
from wirelint.capture.offline import Checked
from wirelint.capture.readers import Problem
from wirelint.model import Timing
from wirelint.rule import Finding
from wirelint.timing import Arrivals
from wirelint.view.html import Section, Summary, write_report
from wirelint.view.html.exchange import build_timeline
from wirelint.view.scorecard import COLOURS

TABLES = tables(__file__)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Page:
    section = Section("Scorecard", Markup('<p id="card">42</p>'))
    return page(tmp_path_factory.mktemp("page") / "report.html", sample(), title="a <run>", sections=(section,))


def finding(pointer: str | None, message: str = "said so", span: tuple[int, int] | None = None) -> Finding:
    return Finding("XX901", "made-up", "error", "high", "model", "response", message, pointer, None, None, span)


@rows(TABLES["strips"])
def test_silences(chunks: list[tuple[str, int]], duration: float | None, gaps: list[list[float]] | None) -> None:
    drawn = build_timeline([(float(at), size) for at, size in chunks], Timing(duration=duration))
    assert (None if drawn is None else drawn["gaps"]) == gaps


def test_a_ping_ends_no_silence_and_ticks_are_bounded() -> None:
    chunks = ((100.0, 9), (1500.0, 2), (3000.0, 9))
    arrivals = Arrivals([100.0, 1500.0, 3000.0], [1, 2, 3], [1], 0)
    drawn = some(build_timeline(chunks, Timing(duration=3000.0), arrivals))
    assert drawn["gaps"] == [[100.0, 3000.0]]
    many = some(build_timeline([(float(n), 3) for n in range(50_000)], Timing()))
    ticks = many["ticks"]
    assert isinstance(ticks, list)
    assert len(ticks) <= 601
    assert (
        sum(tick[1] for tick in ticks if isinstance(tick, list) and isinstance(tick[1], int))
        == many["bytes"]
        == 150_000
    )


def test_summary_counts_and_draws() -> None:
    summary = Summary()
    for n, item in enumerate(sample()):
        timed = replace(item, timing=Timing(1_770_000_000.0 + n * 60))
        summary.add(Checked(timed, None, (finding("/c"), finding("/d")) if n == 1 else ()))
    (rule,) = summary.counts("rule")
    assert (rule.name, rule.note, rule.total, rule.affected, rule.worst) == ("XX901", "made-up", 2, 1, "error")
    assert [(count.name, count.exchanges) for count in summary.counts("provider")] == [("llm.test", 7)]
    chart = some(summary.chart())
    assert (chart.timed, chart.start) == (True, "2026-02-02 02:40:00")
    assert {bar.kind for bar in chart.bars} == {"error", "clean"}
    assert all(0 <= bar.x <= 600 and bar.y >= 0 and bar.y + bar.height <= 100.01 for bar in chart.bars)
    summary.add(Checked(replace(sample()[0], timing=Timing()), None))
    chart = some(summary.chart())
    assert not chart.timed


def test_a_long_list_of_counts_is_folded(tmp_path: Path) -> None:
    for count in (8, 9):
        found = tuple(replace(finding("/c"), code=f"XX9{number:02}") for number in range(count))
        write_report([Checked(sample()[0], None, found)], tmp_path / "r.html")
        html = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert all(one.code in html for one in found)
        assert (f"{count - 6} more" in html) is (count > 8)


def test_rows_and_details(made: Page) -> None:
    rows = {row["id"]: (row, made.exchanges[n]) for n, row in enumerate(made.rows)}
    assert made.written.exchanges == len(rows) == 7
    row, leak = rows["leak"]
    assert (row["api"], row["model"], row["provider"]) == ("openai.chat", "acme-1", "llm.test")
    assert row["title"] == "How warm is it in Oslo?"
    assert [one["code"] for one in row["findings"]][:1] == ["LK101"]
    found = leak["findings"][0]
    field, start, end = found["mark"]
    text = leak["reply"][0]["parts"][0][field].encode("utf-16-le")
    assert (found["at"], text[start * 2 : end * 2].decode("utf-16-le")) == ([0, 0], LEAK)
    row, repaired = rows["repaired"]
    assert row["rewritten"]
    assert [choice["finish"] for choice in repaired["delivered"]] == ["tool_calls"]
    assert repaired["fixes"][0]["before"] == LEAK
    assert any(line.startswith("+") and "call_Qk3z" in line for line in repaired["diff"])
    asked = {turn[2] for turn in leak["request"]}
    assert asked < {turn[2] for turn in rows["clean-2"][1]["request"]}, "the same messages stand in both, once"


def test_the_page_is_locked_and_whole(made: Page) -> None:
    policy = some(re.search(r'Content-Security-Policy" content="([^"]+)"', made.html))
    rules = dict(rule.split(" ", 1) for rule in policy[1].replace("&#39;", "'").split("; "))
    assert (rules["default-src"], rules["base-uri"], rules["form-action"]) == ("'none'",) * 3
    for tag in ("script", "style"):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", made.html, re.S)
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert (len(texts), rules[f"{tag}-src"]) == (1, f"'sha256-{digest}'")
    assert re.findall(r"""\s(?:src|href|action|style|on[a-z]+)=["'](?!#|data:,)[^"']*""", made.html) == []
    assert "<title>a &lt;run&gt; · wirelint</title>" in made.html
    assert '<p id="card">42</p>' in made.html
    assert 'class="scorecard"' not in made.html, "no reply made a call"
    assert 'data-manual="LK101"' in made.html
    assert LEAK not in made.html
    wide = made.html.count('<div class="wide"')
    assert wide == made.html.count('<div class="wide" tabindex="0"') > 0, (
        "a table that scrolls is reached by the keyboard"
    )


def test_what_cannot_be_laid_out_does_not_take_the_rest_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise KeyError("gone")

    monkeypatch.setattr("wirelint.view.html.exchange.build_timeline", broken)
    made = page(tmp_path / "r.html", sample())
    assert made.written.exchanges == 7
    assert all("could not show this exchange (KeyError)" in one["notes"][0] for one in made.exchanges)


def test_a_page_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    out.write_text("before")

    def broken() -> Iterator[Checked | Problem]:
        yield Checked(sample()[0], None)
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_report(broken(), out)
    assert write_report([Problem("x", "", "unreadable", "", True)], out).exchanges == 0
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r.html", "before")]


def test_no_character_of_the_wire_that_acts_is_in_the_file(tmp_path: Path) -> None:
    """Browsers are not the only readers of it: a model's name is a value of the filters, too."""
    hidden = "\x1b]0;x\x07\x9b2J\u202e\u2066\u200b\u2028\U000e0041"
    leak = sample()[0]
    body = (leak.request_body or b"").replace(b'"model": "', f'"model": "{json.dumps(hidden)[1:-1]}'.encode())
    assert body != leak.request_body
    made = tmp_path / "report.html"
    page(made, [replace(leak, request_body=body)])
    assert not set(hidden) - set("]0;x2J") & set(made.read_text("utf-8"))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_all_text_has_contrast(scheme: int, made: Page) -> None:
    colours = {name: pair[scheme] for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", made.html)}
    low = [
        (ground, text, contrast(colours[text], colours[ground]))
        for ground, texts in TABLES["text_on"].items()  # the colours of texts on each background of the style sheet
        for text in texts.split()
        if contrast(colours[text], colours[ground]) < 4.5
    ]
    assert low == []
    assert [name for name, (_, colour) in COLOURS.items() if contrast("#ffffff", colour) < 4.5] == []


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2 between two colours, 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
