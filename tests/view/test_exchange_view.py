"""What is shown of an exchange: for every API, and case by case."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import pytest
from rich.console import Console

from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, chunk, forms, judged, schema, some, sse
from tests.rules.case import read, read_turn
from tests.tables import rows, tables
from wirelint.apis import APIS
from wirelint.capture.offline import Checked, fix
from wirelint.fix import FixPolicy
from wirelint.model import Side
from wirelint.view.html.exchange import make_detail
from wirelint.view.mitm import Shown, lines, plain
from wirelint.view.text import render_conversation

TABLES = read(tables(__file__))
SEARCH = Call("search", {"q": "launch"}, "call_11")
HISTORY = (User("When do we launch?"), Assistant("Let me look.", (SEARCH,)), Result("call_11", "On the 4th."))
TOOLS = {"search": ("Searches.", schema(["q"], q="string"))}
TALK = Talk(history=HISTORY, tools=TOOLS, text="On the fourth.", reasoning="The note says so.", model="acme-1")


def repaired(record: Any) -> Checked:
    made = next(iter(fix([judged(record).record], REGISTRY.rules, FixPolicy("unsafe"))))
    return Checked(made.record, made.exchange, made.findings)  # type: ignore[union-attr]


def text(checked: Checked, side: Side, width: int = 400, **shown: Any) -> str:
    return plain(lines(Shown(checked, **shown), side, width))


@pytest.mark.parametrize(("api", "stream"), forms(*(api.name for api in APIS)))
def test_every_api_shows_both_sides(api: str, stream: bool) -> None:
    checked = judged(TALK.record(api, stream), "ALL")
    request, response = text(checked, "request"), text(checked, "response")
    assert request.startswith(f"{api} · "), request
    assert response.startswith(f"{api} · "), response
    asked = '→ search {"q":"sky"}' if api == "mcp" else "launch?"
    assert asked in request
    assert "On the fourth." in response
    assert "On the fourth." not in request


@rows(TABLES["turns"])
def test_turns_are_shown_in_their_order(turns: list[dict[str, Any]], expected: list[str], absent: str) -> None:
    api = "anthropic.messages" if any({"is_error", "reasoning"} & turn.keys() for turn in turns) else "openai.chat"
    record = Talk(history=tuple(map(read_turn, turns)), tools=TOOLS, text="Well.").record(api, False)
    shown = text(judged(record, "xml-leak"), "request", 4000)
    position = 0
    for part in expected:
        position = shown.find(part, position)
        assert position >= 0, f"{part!r} not there, or not in its place:\n{shown}"
        position += len(part)
    assert absent not in shown, shown


LEAK = 'I look.\n<invoke name="search"><arg name="q">launch</arg></invoke>'


def test_findings_stand_below_their_part_and_say_what_can_be_done() -> None:
    record = Talk(history=HISTORY[:1], tools=TOOLS, text=LEAK).record("openai.chat", False)
    checked = judged(record, "xml-leak")
    page = text(checked, "response").split("\n")
    place = next(number for number, line in enumerate(page) if "<invoke" in line)
    assert page[place + 1].strip().startswith("‼ error xml-leak (gateway): tool call search leaked into the text")
    assert page[place + 2].strip() == "fix (unsafe): promote to a call of search"
    assert "1 error" in page[1]
    assert "see also the response: xml-leak" in text(checked, "request")


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_rewritten_stands_before_and_after(stream: bool) -> None:
    record = Talk(history=HISTORY[:1], tools=TOOLS, text=LEAK).record("openai.chat", stream)
    page = text(repaired(record), "response")
    assert '- <invoke name="search">' in page
    assert 'delivered  + I look.\n           + → search {"q":"launch"}' in page
    assert "- finish reason: stop" in page
    assert "+ finish reason: tool_calls" in page
    assert "✎ LK101 xml-leak (unsafe) promoted a call of search" in page


def test_an_exchange_that_is_under_way_says_so() -> None:
    record = Talk(text="Half a word").record("openai.chat", True)
    record["response"]["body"] = sse(chunk({"content": "Half a "}), done=False)
    checked = judged(record, "xml-leak")
    checked = dataclasses.replace(checked, findings=())
    page = text(checked, "response", open=True)
    assert "in progress: 7 characters received in 1 event\n" in page
    assert "no findings so far" in page
    assert "reply      Half a\n           … more may come" in page
    nothing = dataclasses.replace(checked, exchange=dataclasses.replace(checked.exchange, reply=None, status=None))  # type: ignore[type-var]
    assert "no response bytes yet" in text(nothing, "request", open=True)


@rows(TABLES["odd"])
def test_odd_replies_are_shown(response: dict[str, Any], expected: str) -> None:
    record = Talk().record("openai.chat", False)
    record["response"].update(response)
    assert expected in text(judged(record, "ALL"), "response")


HOSTILE = "\x1b[31m red \x07 \x1b]0;title\x07 \u202e turned \x9b31m \x00 \ud800"


@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages", "mcp"])
def test_nothing_of_the_wire_steers_a_terminal(api: str) -> None:
    call = Call(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE)
    history = (User(HOSTILE), Assistant(HOSTILE, (call,), HOSTILE), Result(HOSTILE, HOSTILE))
    talk = Talk(history, HOSTILE, (call,), HOSTILE, {HOSTILE: schema()}, finish=HOSTILE, system=HOSTILE, model=HOSTILE)
    for stream in (False, True):
        record = talk.record(api, stream)
        for side in ("request", "response"):
            body = record[side]["body"]
            record[side]["body"] = body.encode("utf-8", "backslashreplace").decode()
        for checked in (judged(record, "ALL"), repaired(record)):
            for side in ("request", "response"):
                page = text(checked, side, 60)  # type: ignore[arg-type]
                assert all(line.isprintable() for line in page.split("\n")), repr(page)


def test_lines_are_broken_below_their_text_and_none_is_empty() -> None:
    words = "one two three four five six seven eight nine ten " * 4 + "x" * 200
    record = Talk(history=(User("Hi."),), tools=TOOLS, text=words, calls=(SEARCH,)).record("openai.chat", False)
    page = text(judged(record, "ALL"), "response", 50).split("\n")
    assert max(map(len, page)) <= 50, page
    assert all(page)
    body = page[next(number for number, line in enumerate(page) if line.startswith("reply")) :]
    assert all(line.startswith((" " * 11, "reply ")) for line in body)
    assert "".join(line[11:] for line in body).replace(" ", "").startswith(words.replace(" ", ""))


def test_a_result_that_came_later_stands_below_its_call() -> None:
    record = Talk(history=HISTORY[:1], tools=TOOLS, calls=(SEARCH,)).record("openai.chat", True)
    page = text(judged(record, "ALL"), "response", later={"call_11": "On the 4th."}.get)
    assert '→ search {"q": "launch"}  call_11\n             ← On the 4th.  in a later request' in page


@pytest.mark.parametrize(("end", "is_shown"), [("complete", False), ("client-left", True)])
def test_a_client_that_leaves_after_the_end_is_no_remark(end: str, is_shown: bool) -> None:
    """SDKs close the connection once they have read the terminator; mitmproxy calls that an error of the flow."""
    made = judged(TALK.record("openai.chat", True), "ALL")
    record = dataclasses.replace(made.record, end=end, error="Client disconnected.")  # type: ignore[arg-type]
    found = Checked(record, dataclasses.replace(some(made.exchange), end=end, error=record.error), ())  # type: ignore[arg-type]
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(render_conversation(found))
    pages = text(found, "response"), console.export_text(), f"{make_detail(found, lambda _: 0)['error']}"
    assert [f"{record.error}" in page for page in pages] == [is_shown] * 3
