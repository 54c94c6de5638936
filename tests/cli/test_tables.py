"""`wirelint export --format parquet`: rows, all or nothing, and the queries of docs/tables.md."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pytest

from tests.build import Call, Talk, schema
from tests.cli.test_check import CUT, write
from tests.command import Wirelint, few_samples
from tests.rules import mcp
from tests.selection import sampled
from tests.tables import tables
from wirelint.view import parquet

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tables.md"
VIEWS, *QUERIES = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

DAY = 1769852700.25  # 2026-01-31T09:45:00.25Z
OPENAI, OTHER = "https://api.openai.com/v1/chat/completions", "http://llm.example:8080/v1/chat/completions"
KEY = "sk-ant-api03-Zq8vKx2LmTn4Rw6YpBdFhJcGs1Eu3Ao5Xi7Vk9Mt"
TOOLS = {"tide": schema(["port"], port="string")}
USAGE = {"prompt_tokens": 100, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 64}}

FEW = {"prompt_tokens": 5, "completion_tokens": 7}


def _record(name: str, url: str, started: float | None, talk: Talk, usage: Any = None, **reply: Any) -> dict[str, Any]:
    made = talk.record("openai.chat", False)
    body = {**json.loads(made["response"]["body"]), "model": talk.model, **({"usage": usage} if usage else {}), **reply}
    timing = {"started": started, "first_byte_ms": 200.0, "first_token_ms": 250.0, "duration_ms": 1500.0}
    return {
        **made,
        "id": name,
        "end": "complete",
        "timing": timing,
        "request": {**made["request"], "url": url},
        "response": {**made["response"], "body": json.dumps(body)},
    }


def _talk(**more: Any) -> Talk:
    return Talk(**{"text": "High at nine.", "tools": TOOLS, "model": "gpt-4o", **more})


LEAK = '<tool_call>{"name": "tide", "arguments": {"port": "Hove"}}</tool_call>'
RECORDS = [
    _record("calls", OPENAI, DAY, _talk(text="", calls=(Call("tide", {"port": "Hove"}), Call("tide", {"port": 7}))), USAGE),
    _record("leak", OPENAI, DAY + 60, _talk(text=LEAK), USAGE),
    _record("cut", OPENAI, DAY + 86400, _talk(finish="length"), {"prompt_tokens": 5, "completion_tokens": 1 << 63}),
    _record("other", f"{OTHER}?key={KEY}", None, _talk(model="acme-1"), FEW, model="acme-2"),
    {**_record("down", OTHER, DAY, _talk()), "response": {"status": 503, "body": '{"error": {"message": "no"}}'}},
    {"id": "shop", "request": {"url": "https://a'b%2F../..\\;é/cart", "body": {"a": "\ud83d"}}, "response": {"body": "{}"}},
]  # fmt: skip
ANSWER = mcp.text("no", is_error=True)
MCP = {
    **mcp.called("tide", {}, ANSWER, 1, url="https://tools.example/mcp", headers={"content-type": "application/json"}),
    "id": "tool",
    "timing": {"started": DAY, "duration_ms": 40.0},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("captures") / "run.jsonl", *RECORDS, MCP)


@pytest.fixture
def export(wirelint: Wirelint, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Exports the captures into `tables`, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *more: wirelint("export", source, "--format", "parquet", "-o", "tables", *more)


def _ask(query: str) -> list[tuple[Any, ...]]:
    database = duckdb.connect()
    database.execute(VIEWS)
    return database.execute(query).fetchall()


def _rows(folder: Path, dataset: str) -> int:
    return duckdb.read_parquet(f"{folder / dataset}/**/*.parquet").shape[0]


def test_rows(export: Callable[..., Any], tmp_path: Path) -> None:
    ran = export()
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith("wrote tables: 7 of 7 exchanges, ")
    folders = {path.parent.relative_to(tmp_path / "tables").as_posix() for path in tmp_path.rglob("*.parquet")}
    assert "exchanges/day=2026-01-31/provider=api.openai.com" in folders
    assert "usage/day=__HIVE_DEFAULT_PARTITION__/provider=llm.example%3A8080" in folders
    for query, expected in tables(__file__)["queries"].items():
        assert [list(row) for row in _ask(query)] == expected
    assert ("leak", "xml-leak", "error", False) in _ask("SELECT exchange, name, severity, is_known FROM findings")
    everything = "".join(str(_ask(f"FROM {name}")) for name in sorted(parquet.DATASETS))
    assert "High at nine." not in everything
    assert f"{OTHER}?key=" in everything
    assert KEY not in everything


def test_queries_of_the_page(export: Callable[..., Any]) -> None:
    assert export().status == 0
    assert [query for query in QUERIES if not _ask(query)] == [], "no row, so this test shows nothing"
    tools = next(query for query in QUERIES if "count_if(NOT is_valid)" in query)
    assert _ask(tools) == [("tide", "gpt-4o", 2, 1)]
    costs = next(query for query in QUERIES if "without_price" in query)
    assert [(str(day), model, given, left) for day, model, given, _, _, left in _ask(costs)] == [
        ("2026-01-31", "gpt-4o", 200, 0),
        ("2026-02-01", "gpt-4o", 5, 0),
        ("None", "acme-1", 5, 1),
    ]


WHAT = [
    ["stats", "{}"],
    *(["stats", "{}", "--output-format", "json", "--by", by] for by in ("model", "conversation", "run", "issue")),
    ["stats", "{}", "--output-format", "json", "--ignore", "xml-leak"],
    ["compare", "{}", "{}", "--output-format", "json"],
    ["compare", "run.jsonl", "{}", "--output-format", "json"],
]


@pytest.mark.parametrize(("capture", "words"), sampled(list(itertools.product(["own", "samples"], WHAT)), 4), ids=str)
def test_tables_give_the_figures_of_their_capture(
    wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], capture: str
) -> None:
    """Times and gaps of streams, calls and schemas, usage and cost, findings; of tables the prompts are left out."""
    monkeypatch.chdir(tmp_path)
    name = tmp_path / "run.jsonl"
    if capture == "own":
        write(name, *(record for record in [*RECORDS, MCP] if record["id"] != "cut"))  # it has a count above 64 bits
    else:
        few_samples(tmp_path / "samples")
        assert wirelint("export", "samples", "-o", name).status == 0
    assert wirelint("export", "run.jsonl", "--format", "parquet", "-o", "tables").status == 0
    expected, seen = (wirelint(*(word.replace("{}", place) for word in words)) for place in ("run.jsonl", "tables"))
    assert (expected.status, seen.status) == (0, 0), seen.err
    assert seen.out == re.sub(r'"prompt": ".*"', '"prompt": ""', expected.out)
    note = "findings of tables are those of their export; tables have no bodies, so no prompts are shown"
    assert set(seen.err.splitlines()) - set(expected.err.splitlines()) == {note}


def test_tables_in_a_bucket(export: Callable[..., Any], wirelint: Wirelint, tmp_path: Path) -> None:
    export()
    fsspec.filesystem("memory").put(str(tmp_path / "tables"), "/team/tables", recursive=True)
    expected, seen = (wirelint("stats", place) for place in ("tables", "memory://team/tables"))
    assert (seen.status, seen.out) == (0, expected.out)
    assert "gpt-4o" in seen.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["stats", "tables", "--side", "client"],
            "--side client: tables holds tables, which have no replies as delivered",
        ),
        (["stats", "tables", "--judge", "http://127.0.0.1:9"], "--judge: tables holds tables, which have no texts"),
    ],
)
def test_what_tables_cannot_say(export: Callable[..., Any], wirelint: Wirelint, words: list[str], says: str) -> None:
    export()
    wirelint(*words).refuses(f"{says}; name the captures")


def test_tables_that_are_broken(export: Callable[..., Any], wirelint: Wirelint, tmp_path: Path) -> None:
    export()
    next((tmp_path / "tables" / "usage").rglob("*.parquet")).write_bytes(b"PAR1")
    wirelint("stats", "tables").refuses("(export them again)", "wirelint: tables: tables that cannot be read: ")


def test_empty_datasets_have_columns(wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "cut.jsonl", CUT)
    assert wirelint("export", "cut.jsonl", "--format", "parquet", "-o", "tables").status == 0
    assert _ask('SELECT sum("gen_ai.usage.input_tokens") FROM usage') == [(None,)]
    assert _ask("SELECT count(*), any_value(provider) FROM calls") == [(0, None)]


def test_an_existing_folder(export: Callable[..., Any], tmp_path: Path) -> None:
    export()
    export().refuses("tables is there already; name another, or replace it with --force")
    assert export("--id", "leak", "--force").status == 0
    assert [_rows(tmp_path / "tables", name) for name in ("exchanges", "calls", "usage")] == [1, 0, 1]
    (tmp_path / "tables" / "thesis.txt").write_text("mine", encoding="utf-8")
    export("--force").refuses("tables holds other files (thesis.txt); name another folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tables"]


def test_a_failure_leaves_nothing(export: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_OPTIONS", "FORMAT parquet, COMPRESSION none_of_these")
    export().refuses("the tables cannot be written: ")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    words = ("export", "-", "--format", "parquet", "-o", "tables")
    process = subprocess.Popen(
        [sys.executable, "-m", "wirelint", *words], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(PAGE.parents[1]), "PATH": ""},
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(RECORDS[0]).encode() + b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".tables.*/out")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err.decode().splitlines()[-1]) == (130, "wirelint: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_without_duckdb(export: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "wirelint.view.parquet")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    export().refuses("--format parquet needs DuckDB: pip install 'wirelint[tables]'\n")
    assert list(tmp_path.iterdir()) == []
