"""The live page's board is bounded and counts right; a browser that does not read holds up nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, checked, some
from tests.view.html.pages import LEAK, TOOLS, record, sample
from wirelint.addon import dashboard as server
from wirelint.addon.dashboard import HOST, Dashboard
from wirelint.addon.log import Failures
from wirelint.addon.proxy import lines
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.model import Timing
from wirelint.prices import price_table
from wirelint.view.dashboard import Board
from wirelint.view.totals import Totals


def talks(count: int) -> list[Checked]:
    made = [record(Talk((User(f"Question {n}"),), text="Fine."), f"talk-{n}") for n in range(count)]
    return checked(dataclasses.replace(one, timing=Timing(1000.0 + n, duration=500.0)) for n, one in enumerate(made))


def board(items: list[Checked]) -> Board:
    totals = Totals()
    made = Board(totals)
    for one in items:
        totals.add(one)
        made.add(one)
    return made


CALL = Call("look_up", {"city": "Oslo"}, "call_Qk3zYw8Nn2VtLr6PsDfB4hXc")
ASKED = (User("How warm is it in Oslo?"),)
WEATHER = [
    record(Talk(ASKED, calls=(CALL,), tools=TOOLS), "asks", timing=Timing(1000.0, duration=500.0)),
    record(
        Talk((*ASKED, Assistant("", (CALL,)), Result(CALL.id, "12 degrees")), text=f"Again. {LEAK}", tools=TOOLS),
        "leaks",
        timing=Timing(1002.0, duration=500.0),
    ),
]


def test_rows_issues_and_totals() -> None:
    other = record(
        Talk((User("And in Bergen?"),), text=LEAK, tools=TOOLS), "other", timing=Timing(1009.0, duration=0.0)
    )
    made: Any = board(checked([*WEATHER, other])).everything()
    weather, bergen = made["rows"]
    assert (weather["title"], weather["exchanges"], weather["took"]) == ("How warm is it in Oslo?", 2, 1000.0)
    assert weather["issues"]["error"] == bergen["issues"]["error"] == 1
    (issue,) = (one for one in made["issues"] if one["code"] == "LK101")
    assert (issue["count"], issue["first"], issue["last"], issue["exchange"]) == (2, 1002.5, 1009.0, "other")
    assert issue["id"] in weather["prints"]
    assert made["totals"]["exchanges"] == 3
    assert made["totals"]["conversations"] == 2


def test_the_board_is_bounded_and_totals_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    items = talks(12)
    monkeypatch.setattr("wirelint.view.dashboard._MOST_ROWS", 5)
    monkeypatch.setattr("wirelint.view.dashboard._MOST_EXCHANGES", 3)
    made: Any = board(items)
    state = made.everything()
    assert [row["title"] for row in state["rows"]] == [f"Question {n}" for n in range(7, 12)]
    assert state["totals"]["exchanges"] == state["totals"]["conversations"] == 12
    kept = [made.exchange(f"talk-{n}") is not None for n in range(12)]
    assert kept == [False] * 9 + [True] * 3
    first, last = (some(items[n].exchange).conversation for n in (0, 11))
    assert made.changes([first, last], [])["gone"] == [first]
    monkeypatch.setattr("wirelint.view.dashboard._MOST_BYTES", 1)
    large = board(items)
    assert [large.exchange(f"talk-{n}") is not None for n in (10, 11)] == [False, True], "the latest one always stays"


def test_a_path_waits_for_the_client_as_long_as_the_conversation_ends_with_it() -> None:
    """A tool that runs at this moment is no lost call."""
    items = checked(WEATHER)
    name = some(items[0].exchange).conversation or ""
    begun, whole = (board(some_of).conversation(name)() for some_of in (items[:1], items))
    for made, expected in ((begun, [("asks", False, True)]), (whole, [("asks", True, False), ("leaks", False, True)])):
        paths: Any = made["paths"]
        assert [(path["exchange"], path["complete"], path["waiting"]) for path in paths] == expected
    assert [row["id"] for row in whole["exchanges"]] == ["asks", "leaks"]  # type: ignore[union-attr, call-overload, index]


def test_cost_of_what_has_a_price() -> None:
    pytest.importorskip("genai_prices")
    usage = '"usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}'
    known = record(Talk((User("Hello"),), text="Hi.", model="gpt-4o-mini"), "known")
    priced = dataclasses.replace(
        known,
        url="https://api.openai.com/v1/chat/completions",
        response_body=re.sub(rb'"usage": ?\{[^}]*\}', usage.encode(), known.response_body or b""),
    )
    state: Any = board(checked([priced, record(Talk((User("And you?"),), text="Fine."), "unknown")])).everything()
    assert [row["cost"] for row in state["rows"]] == ["$0.0002", "unknown"]
    assert state["totals"]["cost"] == "$0.0002 + 1 unknown"
    assert "genai-prices" in state["totals"]["prices"]
    local = dataclasses.replace(priced, id="local", url="http://127.0.0.1:8000/v1/chat/completions")
    state = board(checked([local])).everything()
    assert [state["rows"][0]["cost"], state["totals"]["cost"]] == ["unknown", "unknown"]


@pytest.mark.parametrize(("width", "titles"), [(120, 9), (80, 7), (50, 5)])
def test_the_table_of_totals_fits(width: int, titles: int) -> None:
    totals = Totals()
    for one in checked(sample()):
        totals.add(one)
    head, first, *_, last = (line.plain for line in totals.table(width))
    assert len(head.split()) == titles
    assert max(map(len, (head, first, last))) <= width
    assert (first.split()[:2], last.split()[:2]) == (["acme-1", "6"], ["all", "7"])
    assert {line.index(count) + 1 for line, count in ((first, " 6 "), (last, " 7 "))} == {head.index("exchanges") + 8}


def served(talk: Callable[[Dashboard, asyncio.StreamReader], Any]) -> None:
    """Runs a test with a server and one page that is connected and has not read anything."""

    async def run() -> None:
        made = Dashboard(Board(Totals()), lambda: (), Redactor, Failures())
        made.start(0)
        reader, writer = await asyncio.open_connection(HOST, made.port)
        path = made.url.partition("/?")[2]
        writer.write(f"GET /events?{path} HTTP/1.1\r\nHost: {HOST}:{made.port}\r\n\r\n".encode())
        while not made.pages:
            await asyncio.sleep(0.01)
        await talk(made, reader)
        writer.close()
        made.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_page_that_does_not_read_is_bounded_and_then_left(monkeypatch: pytest.MonkeyPatch) -> None:
    items = talks(3)
    monkeypatch.setattr(server, "_MOST_WAITING", 2)

    async def stuck(made: Dashboard, reader: asyncio.StreamReader) -> None:
        (page,) = made.pages
        monkeypatch.setattr(page, "flush", lambda: asyncio.get_running_loop().create_future())
        await reader.readuntil(b"\n\n")
        sizes = []
        for one in items:
            made.add(one)
            sizes.append((len(page.conversations), page.is_new))
        assert sizes == [(1, False), (2, False), (0, True)], "three are too many: an event with everything follows"
        monkeypatch.setattr(server, "_PATIENCE", 0.05)
        while made.pages:
            await asyncio.sleep(0.01)
        await reader.read()  # the connection is closed

    served(stuck)


def test_a_page_that_connects_again_gets_everything() -> None:
    items = talks(3)

    async def again(made: Dashboard, reader: asyncio.StreamReader) -> None:
        for one in items:
            made.add(one)
        seen = b""
        while seen.count(b'"title"') < 3:
            seen += await reader.readuntil(b"\n\n")
        assert seen.count(b'"all":true') == 1, "what follows the first event are changes"
        made.stop()
        assert (await reader.readuntil(b"\r\n0\r\n\r\n")).endswith(b"event: end\ndata: {}\n\n\r\n0\r\n\r\n")

    served(again)


def test_the_table_of_the_terminal_has_the_same_counts_and_fits_every_width() -> None:
    totals = Totals()
    made = Board(totals)
    names = [f"vendor/a-model-of-a-long-name-{n:02}" for n in range(20)]
    records = [record(Talk(text=LEAK, tools=TOOLS, model=name), f"one-{n}") for n, name in enumerate(names)]
    for one in checked(records):
        totals.add(one)
        made.add(one)
    for width in (60, 80, 140):
        shown = [line.plain for line in lines(totals, made, 2, width)]
        assert [line for line in shown if len(line) > width] == []
        told = " ".join(shown)
        counts = "20 conversations, 20 exchanges, 220 tokens in, 140 out"
        assert told.startswith(f"{counts}{', cost unknown' if price_table() else ''}; 2 in progress ")
        assert [line for line in shown if line.startswith(("… ", "all "))] == [shown[-3], shown[-2]]
        assert shown[-3:] == ["… 12 more", shown[-2], "● xml-leak 20"]
