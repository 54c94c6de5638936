"""The page in a real browser: filters, search, keys, links, what hostile captures can do (nothing), how large it gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.addon.dashboard import LOW_CONTRAST
from tests.build import Assistant, Call, Result, Talk, User, as_record, some
from tests.selection import is_complete
from tests.tables import tables
from tests.view.html.browser import Report, chromium
from tests.view.html.pages import LEAK, page, sample
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record, Sent
from wirelint.capture.replay import replay
from wirelint.fix import AppliedFix
from wirelint.model import Side, Timing
from wirelint.registry import page_url
from wirelint.rule import Finding
from wirelint.view.html import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page(tmp_path_factory.mktemp("page") / "report.html", sample(), title="run").path


@pytest.fixture
def tab(browser: Browser, path: Path) -> Iterator[Report]:
    opened = Report(browser, path)
    yield opened
    opened.close()


CLEAN = "2 clean exchanges"
TABLES = tables(__file__)


def test_filters(tab: Report) -> None:
    everything = tab.shown
    assert everything == [CLEAN, "leak", "repaired", "stall", CLEAN]
    found = {}
    for name, (kind, value, _) in TABLES["filters"].items():
        tab.choose(kind, value)
        found[name] = tab.shown
        tab.page.click("#clear")
        assert tab.shown == everything
    expected = {name: entries for name, (_, _, entries) in TABLES["filters"].items()}
    assert found == expected
    tab.page.uncheck("#hide-clean")
    tab.choose("provider", "llm.test")
    assert tab.shown == ["clean-1", "clean-2", "leak", "repaired", "stall", "clean-3", "clean-4"]
    tab.page.click(".summary > summary")
    tab.page.click("button[data-filter=rule][data-value=LK101]")
    assert tab.shown == ["leak", "repaired"]
    tab.choose("api", "anthropic.messages")
    assert tab.page.is_visible("#nothing")
    tab.page.click("#nothing-clear")
    assert len(tab.shown) == 7


def test_search(tab: Report) -> None:
    for query, expected in TABLES["searches"].values():
        tab.search(query)
        tab.shows(*expected)
    assert tab.run("document.querySelector('#shown').textContent") == "0 of 7"
    tab.search("degrees")
    tab.until("document.querySelector('#list mark.hit')?.textContent", "degrees")
    tab.search("")
    tab.shows(CLEAN, "leak", "repaired", "stall", CLEAN)


def test_keys(tab: Report) -> None:
    chosen = "document.querySelector('.chosen .id')?.textContent ?? document.querySelector('.chosen')?.textContent"
    body = "document.querySelectorAll('.chosen .body:not([aria-busy])').length"
    for keys, expected in (
        ("j", CLEAN),
        ("j", "leak"),
        ("n", "repaired"),
        ("j", "stall"),
        ("p", "repaired"),
        ("k", "leak"),
    ):
        tab.press(keys)
        assert tab.run(chosen) == expected, keys
    tab.press("Enter")
    tab.until(body, 1)
    tab.press("m")
    tab.until("document.querySelector('.manual h2')?.textContent", "What it does")
    tab.press("Escape")
    tab.until(body, 0)
    tab.press("o")
    tab.until(body, 1)
    tab.press("G")
    assert tab.run(chosen) == CLEAN
    tab.press("Enter")  # unfolds it
    assert tab.run(chosen) == "clean-3"
    tab.press("g", "h")
    assert tab.shown == ["clean-1", "clean-2", "leak", "repaired", "stall", "clean-3", "clean-4"]
    tab.press("/")
    tab.page.keyboard.type("jk?")
    assert tab.run("document.querySelector('#search').value") == "jk?"
    tab.until("document.querySelector('#nothing').hidden", False)
    tab.press("Escape", "Escape")
    assert len(tab.shown) == 7
    tab.press("?")
    assert tab.page.is_visible("#keys")
    tab.press("Escape")
    assert not tab.page.is_visible("#keys")
    tab.press("e")
    tab.until("document.querySelectorAll('.body:not([aria-busy])').length", 7)
    ink = "getComputedStyle(document.body).backgroundColor"
    light = tab.run(ink)
    tab.press("t")
    assert tab.run(ink) != light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: Browser, path: Path, scheme: str) -> None:
    tab = Report(browser, path, scheme=scheme)
    tab.press("h", "e")
    tab.until("document.querySelectorAll('.body:not([aria-busy])').length", 7)
    assert tab.run(LOW_CONTRAST) == []
    tab.close()


def test_an_exchange_by_its_link(browser: Browser, path: Path) -> None:
    tab = Report(browser, path, anchor="#leak")
    tab.until("document.querySelector('.chosen .body mark.error')?.textContent", LEAK)
    assert tab.run("document.querySelector('.chosen .note').innerText.includes('xml-leak')")
    tab.page.evaluate("location.hash = 'clean-4'")  # a clean one that is folded away
    tab.until("document.querySelector('.chosen .id')?.textContent", "clean-4")
    tab.page.evaluate("location.hash = '%E0%A4%A'")
    tab.close()


def test_a_link_keeps_the_filters(browser: Browser, path: Path) -> None:
    tab = Report(browser, path, anchor="#stall")
    tab.page.uncheck("#hide-clean")
    tab.choose("provider", "llm.test")
    tab.search("degrees")
    tab.shows("clean-2")
    link = tab.run("location.hash")
    assert link == "#stall?provider=llm.test&search=degrees&clean=show"
    tab.page.click("#clear")
    tab.page.check("#hide-clean")
    assert tab.run("location.hash") == "#stall"
    tab.close()
    tab = Report(browser, path, anchor=link.removeprefix("#stall").join(("#", "")))
    tab.shows("clean-2")
    assert tab.run("[document.querySelector('#search').value, document.querySelector('#hide-clean').checked]") == [
        "degrees",
        False,
    ]
    tab.close()


def test_an_opened_exchange_is_in_view_and_its_rule_has_a_page(browser: Browser, path: Path) -> None:
    tab = Report(browser, path, width=390)
    tab.press("n", "n", "Enter")
    box = "document.querySelector('.chosen').getBoundingClientRect()"
    bar = "document.querySelector('.filters').getBoundingClientRect().bottom"
    tab.until("document.querySelectorAll('.chosen .body:not([aria-busy])').length", 1)
    tab.until(f"{box}.top >= {bar} - 1 && {box}.top < innerHeight / 2", True)
    assert tab.page.get_attribute(".chosen .note a.rule", "href") == page_url("xml-leak")
    assert tab.run("document.documentElement.scrollWidth") == 390
    tab.close()


MARKUP = (
    "</script></style></title></template></textarea><script>window.owned=1;document.title='owned';alert(1)</script>"
    '<img src=x onerror="window.owned=1"><svg/onload=window.owned=1><iframe srcdoc="<script>parent.owned=1</script>">'
    '<a href="javascript:window.owned=1" autofocus onfocus=window.owned=1>x</a><style>*{display:none}</style>'
    "<link rel=stylesheet href=http://evil.example/x.css><base href=http://evil.example/>'\"`${owned=1}{{7*7}}<!--"
)
BIDI = "\u202egpj.exe\u202c\u2066\u200b\x1b[31m\x00\u061c\U000e0041"
EVIL = MARKUP + BIDI


def hostile() -> list[Checked]:
    """An exchange with markup in every field that comes from the wire, one that no API knows, and a name of a file."""
    call = Call(EVIL, {EVIL: EVIL}, EVIL)
    history = (User(EVIL), Assistant(EVIL, (call,)), Result(EVIL, EVIL))
    talk = Talk(history, f"{EVIL}{LEAK}", (call,), EVIL, {EVIL: (EVIL, {"title": EVIL})}, EVIL, EVIL, EVIL)
    made = as_record(talk.record("openai.chat", False))
    request, reply = json.loads(made.request_body or b""), json.loads(made.response_body or b"")
    request["messages"][1]["content"] = [{"type": "text", "text": EVIL}, {"type": EVIL}]
    reply["choices"][0]["message"]["refusal"] = EVIL
    reply |= {"id": EVIL, "usage": {EVIL: 1}, "error": {"message": EVIL}}
    given = {"index": 0, "message": {"role": "assistant", "content": EVIL}, "finish_reason": None}
    less = {"model": f"{EVIL}2", "messages": request["messages"][:2]}
    record = Record(
        id=EVIL,
        method="POST",
        url=f"https://{'a' * 40}.example/v1/chat/completions?{EVIL}",
        request_headers=((EVIL, EVIL), ("content-type", "application/json")),
        request_body=json.dumps(request).encode(),
        status=200,
        response_headers=((EVIL, EVIL), ("content-type", "application/json")),
        response_body=json.dumps(reply).encode(),
        forwarded=Sent(((EVIL, EVIL),), json.dumps(less).encode()),
        delivered=Sent(((EVIL, EVIL),), json.dumps({**reply, "choices": [given]}).encode()),
        fixes=(AppliedFix(EVIL, EVIL, "unsafe", "response", EVIL, EVIL, 1, EVIL, EVIL),),
        error=EVIL,
        source=EVIL,
        place=EVIL,
        timing=Timing(1_770_000_000.0, duration=20.0),
    )
    exchange = some(replay(record))
    address = f"javascript:owned=1//{EVIL}"
    odd = replace(
        record,
        id="javascript:owned=1",
        method=EVIL,
        url=address,
        request_body=EVIL.encode(),
        response_body=EVIL.encode(),
    )
    exchange = replace(exchange, conversation=EVIL, notes=(EVIL,), api=EVIL)
    sides: tuple[tuple[Side, str], ...] = (
        ("response", "/choices/0/message/content"),
        ("request", "/messages/2"),
        ("request", EVIL),
    )
    found = tuple(
        Finding(f"XX{n}{EVIL}", EVIL, "error", "low", "model", side, f"`{EVIL}`", pointer, None, None, (0, 30))
        for n, (side, pointer) in enumerate(sides)
    )
    return [Checked(record, exchange, found), Checked(odd, None, found[2:]), Checked(record, exchange, ())]


def test_hostile_captures_run_nothing(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    write_report(hostile(), out, title=EVIL)
    tab = Report(browser, out)
    tab.run("window.violations = []")
    tab.run("document.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective))")
    scripts = tab.run("document.scripts.length")
    tab.press("h", "e")
    tab.until("document.querySelectorAll('.body:not([aria-busy])').length", 3)
    tab.run("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    tab.press("j", "m")
    tab.search("owned evil.example")
    tab.until("document.querySelector('#clear').hidden", False)
    tab.until("document.querySelectorAll('.body:not([aria-busy])').length", 3)
    for selector in (
        ".fix",
        ".diff .in",
        ".headers dd",
        ".turn.sent",
        ".note",
        "option[data-known]",
        ".control",
        "mark.hit",
    ):
        assert tab.page.locator(selector).count() > 0, selector
    tab.page.locator(".head a").first.click()
    tab.page.wait_for_timeout(100)
    assert tab.run("[typeof window.owned, window.violations]") == ["undefined", []]
    assert tab.run("document.scripts.length") == scripts == 3, "a block, the index and the page's own"
    links = tab.run("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
    assert [link for link in links if not link.startswith("#") and link != page_url("xml-leak")] == []
    assert tab.run("document.querySelectorAll('iframe, img, base, object, embed, main style, main link').length") == 0
    attributes = (
        "[...document.querySelectorAll('*')].flatMap((e) => e.getAttributeNames()).filter((n) => n.startsWith('on'))"
    )
    assert tab.run(attributes) == []
    assert (
        tab.run("document.body.innerText.search(/[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\u061c\\u0000\\u001b]/)") == -1
    )
    assert tab.run("document.title").startswith("</script>")
    tab.close()


def test_the_policy_is_in_force(tab: Report) -> None:
    """That nothing ran would prove little if the lock were open: an attempt from within must fail."""
    blocked = tab.run(
        """(() => {
        const tried = [];
        for (const attempt of [
          () => { document.body.innerHTML += "<b>x</b>"; },
          () => { const s = document.createElement("script"); s.text = "window.owned = 1"; document.body.append(s); },
        ]) { try { attempt(); tried.push("done"); } catch (error) { tried.push(error.name); } }
        const inline = document.createElement("b");
        try { inline.setAttribute("onclick", "window.owned = 1"); } catch { /* forbidden already */ }
        inline.click();
        return [tried, typeof window.owned];
      })()"""
    )
    assert blocked == [["TypeError", "TypeError"], "undefined"]
    refused = tab.run("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)")
    assert refused == "TypeError"
    assert any("Content Security Policy" in line for line in tab.errors)
    assert not tab.requests
    tab.errors.clear()


def many(count: int) -> Iterator[Checked]:
    """Checked exchanges, a third with a finding, none alike."""
    judged = []
    for record in sample():
        exchange = some(replay(record))
        judged.append((record, exchange))
    made_up = Finding(
        "XX901", "made-up", "warning", "high", "model", "response", "said so", "/choices/0/message/content"
    )
    for n, (record, exchange) in enumerate(islice(cycle(judged), count)):
        timed = replace(record, id=f"x{n}", timing=Timing(1_770_000_000.0 + n))
        yield Checked(timed, exchange, (made_up,) if n % 3 == 0 else ())


def test_thousands_of_exchanges(browser: Browser, tmp_path: Path) -> None:
    out, count = tmp_path / "r.html", 5000 if is_complete() else 900
    written = write_report(many(count), out)
    assert written.exchanges == count
    assert written.size < 4_000_000
    tab = Report(browser, out)
    sizes = [tab.elements]
    tab.press("h", "G")
    tab.until("document.querySelector('.chosen .id')?.textContent", f"x{count - 1}")
    sizes.append(tab.elements)
    for part in range(1, 6):
        tab.run(f"scrollTo(0, document.body.scrollHeight * {part} / 6)")
        tab.page.wait_for_timeout(30)
        sizes.append(tab.elements)
    tab.press("e")
    tab.until("document.querySelectorAll('.body[aria-busy]').length", 0)
    sizes.append(tab.elements)
    assert max(sizes) < (12_000 if is_complete() else 5_000), sizes
    tab.search("x321")
    tab.until("document.querySelector('#shown').textContent", f"1 of {count:,}")
    assert tab.shown == ["x321"]
    tab.close()
