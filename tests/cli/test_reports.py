"""`wirelint report`, `stats` and `compare`: what they write, print and refuse."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.build import Call, Talk, User, schema
from tests.cli.test_check import CLEAN, CUT, write
from tests.command import Wirelint
from tests.tables import rows, tables
from wirelint.prices import price_table


def test_a_page_is_written_where_it_says(wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = write(tmp_path / "run.jsonl", CLEAN, CUT)
    monkeypatch.chdir(tmp_path)
    ran = wirelint("report", capture)
    assert (ran.status, ran.out) == (0, "report.html\n")
    assert "2 exchanges, 1 with findings (" in ran.err
    assert "kB)" in ran.err
    assert 'data-manual="ST604"' in Path("report.html").read_text(encoding="utf-8")
    again = wirelint("report", capture, "-o", "report.html", "--ignore", "ST604", "--title", "Tuesday")
    assert "2 exchanges, 0 with findings" in again.err
    html = Path("report.html").read_text(encoding="utf-8")
    assert "<title>Tuesday · wirelint</title>" in html
    assert "data-manual=" not in html


def test_what_cannot_be_read_is_told_and_the_rest_is_written(wirelint: Wirelint, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    ran = wirelint("report", write(tmp_path / "run.jsonl", CLEAN), tmp_path / "none.jsonl", "-o", out)
    assert ran.status == 2
    assert "none.jsonl: no such file" in ran.err
    assert "none.jsonl: no such file" in out.read_text(encoding="utf-8")


@rows(tables(__file__)["refused"])
def test_a_report_overwrites_no_other_file(out: str, said: str, wirelint: Wirelint, tmp_path: Path) -> None:
    capture = write(tmp_path / "run.jsonl", CLEAN)
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    before = {path.name for path in tmp_path.iterdir()}
    wirelint("report", capture, "-o", tmp_path / out if out != "-" else out).refuses(said)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


TOOLS = {"tide": schema(["port"], port="string")}


def reply(number: int, *calls: Call, model: str = "acme-1") -> dict[str, Any]:
    talk = Talk((User(f"Port {number}?"),), tools=TOOLS, calls=calls, text="" if calls else "Which?", model=model)
    return talk.record("openai.chat", False)


GOOD, BAD = Call("tide", {"port": "Hove"}), Call("tide", {"port": 3})


def test_stats_as_json(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", reply(1, GOOD), reply(2, BAD), reply(3))
    ran = wirelint("stats", path, "--output-format", "json")
    assert ran.status == 0
    (card,) = json.loads(ran.out)
    counts = {
        name: card[name] for name in ("finish_tool_calls", "finish_stop", "successful_tool_calls", "schema_errors")
    }
    assert counts == {"finish_tool_calls": 2, "finish_stop": 1, "successful_tool_calls": 1, "schema_errors": 1}
    assert (card["schema_accuracy"], card["first_token_ms"]) == (0.5, None)
    assert card["findings"] == [{"name": "schema-violation", "layer": "model", "count": 1}]


BILLED = {"prompt_tokens": 1000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 400}}


def billed(number: int, model: str, url: str = "https://api.openai.com/v1/chat/completions") -> dict[str, Any]:
    record = reply(number, GOOD, model=model)
    record["request"]["url"] = url
    body = json.loads(record["response"]["body"])
    record["response"]["body"] = json.dumps({**body, "usage": BILLED})
    return record


def test_tokens_and_cost(wirelint: Wirelint, tmp_path: Path) -> None:
    priced, strange = write(tmp_path / "a.jsonl", billed(1, "gpt-4o")), write(tmp_path / "b.jsonl", billed(2, "acme-1"))
    unknown, known = json.loads(wirelint("stats", priced, strange, "--output-format", "json").out)
    assert [known[f"{name}_tokens"] for name in ("input", "cached", "output")] == [1000, 400, 200]
    assert known["cost_usd"] > 0
    assert (known["unpriced"], unknown["cost_usd"], unknown["unpriced"]) == (0, None, 1)
    runs = json.loads(wirelint("stats", priced, strange, "--by", "run", "--output-format", "json").out)
    assert [(run["source"], run["cost_usd"]) for run in runs] == [
        (str(priced), known["cost_usd"]),
        (str(strange), None),
    ]
    table = wirelint("stats", priced, strange, "--by", "conversation").out
    assert "Port 1?" in table
    assert "unknown" in table
    assert "+ 1 unknown" in table.splitlines()[-1], "the total says what it leaves out"


def test_without_the_price_table_tokens_are_left(
    wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price_table.cache_clear()
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    ran = wirelint("stats", write(tmp_path / "a.jsonl", billed(1, "gpt-4o")))
    price_table.cache_clear()
    assert "1,000" in ran.out
    assert "cost" not in ran.out
    assert "pip install 'wirelint[prices]'" in ran.err


def test_faults_are_listed_once(wirelint: Wirelint, tmp_path: Path) -> None:
    ids = ["x1", "x2", "3f2a9c11-fc7f-447f-b907-73d1f0f0b4c5"]
    path = write(tmp_path / "run.jsonl", *[{**reply(number, BAD), "id": id_} for number, id_ in enumerate(ids, 1)])
    (issue,) = json.loads(wirelint("stats", path, "--by", "issue", "--output-format", "json").out)
    names = ("name", "count", "first_seen", "last_seen")
    assert [issue[name] for name in names] == ["schema-violation", 3, "x1", ids[2]]
    narrow = wirelint("stats", path, "--by", "issue", columns=60).out.splitlines()
    assert narrow[2] == "AR403 schema-violation  3 exchanges"
    assert narrow[3].startswith("  ")
    assert "x1  3f2a9c11  warning  model" in " ".join(narrow[3:])
    assert wirelint("stats", path, "--by", "issue", "--output-format", "svg").status == 2


@pytest.mark.parametrize("columns", [80, 160])
def test_tables_fit_the_terminal(wirelint: Wirelint, tmp_path: Path, columns: int) -> None:
    long = "moonshotai/a-model-with-a-name-that-goes-on-for-longer-than-any-table-is-wide"
    run = [reply(number, GOOD, model=long) for number in range(3)]
    path = write(tmp_path / "run.jsonl", *[{**one, "timing": {"duration_ms": 1234.5}} for one in run])
    for ran in (wirelint("stats", path, columns=columns), wirelint("compare", path, path, columns=columns)):
        assert ran.status == 0
        assert max(map(len, ran.out.splitlines())) <= columns
        assert "100.0 %" in ran.out
        assert " \n" not in ran.out, "a pipe gets no padding"


def test_names_from_the_wire_are_obeyed_nowhere(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", reply(1, GOOD, model="<script>alert(1)</script>|\x1b[31m`x`"))
    assert "\x1b" not in wirelint("stats", path).out
    markdown = wirelint("stats", path, "--output-format=markdown").out
    assert "<script>" not in markdown
    assert markdown.count("\\|") == markdown.count("alert(1)") > 0
    picture = wirelint("stats", path, "--output-format=svg").out
    assert not [node for node in ElementTree.fromstring(picture).iter() if node.tag.endswith("script")]


def test_two_runs_are_compared(wirelint: Wirelint, tmp_path: Path) -> None:
    reference = write(tmp_path / "reference.jsonl", reply(1, GOOD), reply(2, GOOD), reply(3), reply(4))
    candidate = write(tmp_path / "candidate.jsonl", reply(1, GOOD), reply(2), reply(3), reply(5))
    ran = wirelint("compare", reference, candidate, "--output-format", "json")
    (made,) = json.loads(ran.out)
    assert (made["pairs"], made["unmatched"], made["precision"], made["recall"], made["f1"]) == (3, 1, 1.0, 0.5, 0.6667)
    assert "1 request not in the reference" in ran.err
    assert "1 request of the reference not in any candidate" in ran.err
    assert "### triggering" in wirelint("compare", reference, candidate, "--output-format", "markdown").out


def test_nothing_to_compare_is_one_line(wirelint: Wirelint, tmp_path: Path) -> None:
    reference, candidate = write(tmp_path / "a.jsonl", reply(1)), write(tmp_path / "b.jsonl", reply(2))
    wirelint("compare", reference, candidate).refuses(f"no request of {reference} occurs in {candidate}")


def test_nothing_to_report(wirelint: Wirelint, tmp_path: Path) -> None:
    ran = wirelint("report", tmp_path / "none.jsonl", "-o", tmp_path / "r.html")
    assert ran.status == 2
    assert "no exchange to report" in ran.err
    assert not (tmp_path / "r.html").exists()
    other = {"request": {"url": "https://shop.test/cart", "body": {"a": 1}}, "response": {"body": "{}"}}
    assert "no exchange with a model" in wirelint("stats", write(tmp_path / "shop.jsonl", other)).err
