"""Captures as tables: the Parquet datasets `exchanges`, `findings`, `calls` and `usage`.

Layout: `DIR/<dataset>/day=2026-01-31/provider=api.openai.com/part-0.parquet`, partitions in Hive style, with the day in
UTC. An unknown day or provider is `__HIVE_DEFAULT_PARTITION__`, which readers take for NULL. Columns have the names of
OpenTelemetry's GenAI conventions where these define one. Bodies are not in the tables: `source` and `exchange` name the
file and the record that hold them.

DuckDB writes the tables from lines of JSON, which wait on the disk, so memory does not grow with the captures. `wirelint
stats` and `compare` read the figures of exchanges back from the tables.

This module needs DuckDB, which is optional (`pip install 'wirelint[tables]'`).
"""

from __future__ import annotations

import contextlib
import itertools
import tomllib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import duckdb

from wirelint.apis import channel_of
from wirelint.capture import storage
from wirelint.capture.format import dump_printable
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.model import Exchange, HostedCall, Json, Reply, ToolCall, ToolResult
from wirelint.prices import Tokens, cost, tokens_of
from wirelint.rule import Finding
from wirelint.state.issues import Issue
from wirelint.view.findings import flat, worst
from wirelint.view.scores import Observation, Outcome, is_url, is_valid_call, name_provider, observe

Row: TypeAlias = dict[str, Json]

_EMPTY = "empty"
"""Outcome of a reply without content; an exchange without a reply that can be read has none."""
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
_LONGEST = 60
"""Characters of a provider's name in a path: a URL escape takes up to 12 bytes for one, and a file name has 255."""

_TABLES = tomllib.loads(Path(__file__).with_name("parquet.toml").read_text(encoding="utf-8"))
_SHARED: dict[str, str] = _TABLES.pop("shared")
_COLUMNS: dict[str, dict[str, str]] = {dataset: _SHARED | columns for dataset, columns in _TABLES.items()}
DATASETS = frozenset(_COLUMNS)
_PARTITIONS = {"day": "DATE", "provider": "VARCHAR"}
_OPTIONS = "FORMAT parquet, COMPRESSION zstd"


def write_tables(folder: Path, items: Iterable[Checked]) -> None:
    """Write the datasets of checked exchanges below an empty folder. Raises OSError.

    A dataset without rows gets one file without rows, so that queries find its columns.
    """
    write_rows(folder, items)
    for dataset in _COLUMNS:
        if not (folder / dataset).exists():
            empty = folder.joinpath(dataset, *(f"{name}={_UNKNOWN}" for name in _PARTITIONS))
            empty.mkdir(parents=True)
            columns = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in _COLUMNS[dataset].items())
            with _database() as database:
                database.execute(f"COPY (SELECT {columns} LIMIT 0) TO {_text(empty / 'part-0.parquet')} ({_OPTIONS})")


def write_rows(folder: Path, items: Iterable[Checked], name: str = "part") -> None:
    """Write the rows of checked exchanges below a folder, in files with this name and a number. Raises OSError."""
    spools = {dataset: folder / f"{dataset}.jsonl" for dataset in _COLUMNS}
    with contextlib.ExitStack() as opened:
        files = {dataset: opened.enter_context(spool.open("wb")) for dataset, spool in spools.items()}
        for number, checked in enumerate(items):
            partition: Row = dict(zip(_PARTITIONS, _partition(checked), strict=True))
            for dataset, row in _rows(checked, number):
                for key, one in row.items():
                    row[key] = None if isinstance(one, int) and abs(one) >= 1 << 63 else one  # beyond 64 bits
                files[dataset].write(dump_printable(partition | row) + b"\n")
    with _database() as database:
        for dataset, spool in spools.items():
            columns = _PARTITIONS | _COLUMNS[dataset]
            types = ", ".join(f"{_text(column)}: '{kind}'" for column, kind in columns.items())
            rows = f"FROM read_json({_text(spool)}, format = 'newline_delimited', columns = {{{types}}})"
            split = f"PARTITION_BY ({', '.join(_PARTITIONS)}), FILENAME_PATTERN {_text(f'{name}-{{i}}')}"
            if spool.stat().st_size:
                database.execute(f"COPY ({rows}) TO {_text(folder / dataset)} ({_OPTIONS}, {split})")
            spool.unlink()


@contextlib.contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an empty database that writes one file for each partition. Its errors become OSError."""
    try:
        with duckdb.connect() as database:
            database.execute("SET threads = 1")
            yield database
    except duckdb.Error as error:
        raise OSError(f"the tables cannot be written: {str(error).partition(chr(10))[0]}") from error


def _text(value: object) -> str:
    return "'{}'".format(str(value).replace("'", "''"))


def _partition(checked: Checked) -> tuple[str | None, str | None]:
    started, provider = _started(checked), name_provider(checked)
    day = started[:10] if started is not None else None
    return day, provider[:_LONGEST] if provider not in ("", "unknown") else None


def _started(checked: Checked) -> str | None:
    try:
        started = checked.record.timing.started
        return datetime.fromtimestamp(started, UTC).isoformat() if started is not None else None
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return None


def _rows(checked: Checked, number: int) -> Iterator[tuple[str, Row]]:
    """Yield the rows of an exchange, each with its dataset. `number`: its place in the export."""
    exchange = checked.exchange
    shared: Row = {
        "exchange": checked.record.id,
        "source": checked.record.source,
        "place": checked.record.place,
        "started": _started(checked),
        "api": checked.api or None,
        "gen_ai.conversation.id": checked.conversation,
        "gen_ai.request.model": checked.model or None,
    }
    yield "exchanges", {**shared, "number": number, **_exchange(checked)}
    for finding in checked.findings:
        made, fix = flat(checked, finding), finding.fix
        texts: Row = {name: value for name, value in made.items() if isinstance(value, (str, int, float))}
        fixes: Row = {"fix_safety": fix.safety, "fix_title": fix.title} if fix is not None else {}
        yield "findings", {**texts, **shared, "is_known": finding.is_known, **fixes}
    if exchange is None:
        return
    yield from (("calls", {**shared, **row}) for row in _calls(exchange))
    if (usage := _usage(exchange)) is not None:
        yield "usage", {**shared, **usage}


def _exchange(checked: Checked) -> Row:
    record, request, reply = checked.record, checked.request, checked.reply
    choices = reply.choices if reply is not None else ()
    reasons: list[Json] = [one.finish_reason for one in choices if one.finish_reason is not None]
    found = [finding for finding in checked.findings if not finding.is_known]
    seen = observe(checked, keyed=True)
    return {
        "gen_ai.operation.name": _operation(checked.exchange),
        "gen_ai.response.id": reply.id if reply is not None else None,
        "gen_ai.response.model": reply.model if reply is not None else None,
        "gen_ai.response.finish_reasons": reasons or None,
        "http.request.method": record.method,
        "http.response.status_code": record.status,
        "url.full": record.url,
        "server.address": urlsplit(record.url).hostname if is_url(record.url) else None,
        "error.type": _error(record.status, record.end, reply),
        "end": record.end,
        "outcome": (seen.outcome.finish if seen.outcome is not None else _EMPTY) if seen and seen.answered else None,
        "streamed": checked.streamed,
        "first_byte_ms": record.timing.first_byte,
        "first_token_ms": record.timing.first_token,
        "longest_gap_ms": seen.longest_gap if seen is not None else None,
        "duration_ms": record.timing.duration,
        "tokens_per_second": seen.speed if seen is not None else None,
        "request_digest": seen.key[0] if seen is not None else None,
        "request_body_digest": seen.key[1] if seen is not None else None,
        "request_bytes": len(record.request_body or b""),
        "response_bytes": len(record.response_body or b""),
        "messages": len(request.messages) if request is not None else None,
        "tools": len(request.tools) if request is not None else None,
        "calls": checked.calls,
        "findings": len(found),
        "worst": worst(found),
        "fixes": len(record.fixes),
    }


def _operation(exchange: Exchange | None) -> str | None:
    """Return the name of the operation as in the conventions; None if they have none."""
    if exchange is None:
        return None
    if channel_of(exchange.api) == "mcp":
        return "execute_tool" if exchange.request is not None and exchange.request.calls else None
    others = {"openai.completions": "text_completion", "google.generate_content": "generate_content"}
    return others.get(exchange.api, "chat")


def _error(status: int | None, end: str, reply: Reply | None) -> str | None:
    """Return the status of an HTTP error, the way in which the connection broke, or `error` for an error in a reply."""
    if status is not None and status >= 400:
        return str(status)
    if end in ("client-left", "upstream-died"):
        return end
    return "error" if reply is not None and reply.error is not None else None


def _calls(exchange: Exchange) -> Iterator[Row]:
    """Yield the calls of a model's reply, or those that a tool server (MCP) ran, with the outcome."""
    request, reply = exchange.request, exchange.reply
    if channel_of(exchange.api) == "mcp":
        results = {part.call_id: part for part in reply.parts if isinstance(part, ToolResult)} if reply else {}
        for position, call in enumerate(request.calls if request is not None else ()):
            result = results.get(call.id)
            failed = result.is_error if result is not None else None
            yield {**_call(call, 0, position), "is_error": failed, "duration_ms": exchange.timing.duration}
        return
    for choice in reply.choices if reply is not None else ():
        calls = [part for part in choice.parts if isinstance(part, (ToolCall, HostedCall))]
        for position, one in enumerate(calls):
            valid: Row = {"is_valid": is_valid_call(one, request)} if isinstance(one, ToolCall) else {}
            yield {**_call(one, choice.index, position), **valid}


def _call(call: ToolCall | HostedCall, choice: int, position: int) -> Row:
    row: Row = {"gen_ai.tool.call.id": call.id, "gen_ai.tool.name": call.name, "choice": choice, "position": position}
    if isinstance(call, HostedCall):
        return row | {"form": "hosted"}
    return row | {"form": call.form, "arguments_bytes": len(call.arguments.text.encode("utf-8", "replace"))}


def _usage(exchange: Exchange) -> Row | None:
    """Return the token counts of a reply and their cost; None if the reply has no counts."""
    reply = exchange.reply
    if reply is None or (tokens := tokens_of(reply.usage)) is None:
        return None
    spent = cost(tokens, exchange.model, exchange.url, exchange.timing.started)
    return {
        "gen_ai.response.model": reply.model,
        "gen_ai.usage.input_tokens": tokens.input,
        "gen_ai.usage.output_tokens": tokens.output,
        "gen_ai.usage.cache_read.input_tokens": tokens.cached,
        "gen_ai.usage.cache_creation.input_tokens": tokens.written,
        "cache_creation_1h_tokens": tokens.written_1h,
        "gen_ai.usage.reasoning.output_tokens": tokens.reasoning,
        "cost_usd": spent.amount if spent is not None else None,
        "price": spent.model if spent is not None else None,
    }


# --- reading ----------------------------------------------------------------------------------------------------------

_FETCHED = 1_000
_QUERY = """
WITH called AS (
  SELECT source, place, count(*) AS calls, count_if(is_valid) AS valid,
         list_sort(list(coalesce("gen_ai.tool.name", ''))) AS tools
  FROM calls WHERE form <> 'hosted' AND choice = 0 GROUP BY ALL
), found AS (
  SELECT source, place, list({code: code, name: name, severity: severity, confidence: confidence, layer: layer, side: side,
         message: message, pointer: pointer, event: event, is_known: is_known} ORDER BY file_row_number) AS findings
  FROM findings GROUP BY ALL
)
SELECT e.source, e.place, e.exchange, e.provider, e.api, e."gen_ai.request.model" AS model,
       e."gen_ai.conversation.id" AS conversation, e.messages, e.outcome, e.streamed, e.first_token_ms, e.duration_ms,
       e.longest_gap_ms, e.tokens_per_second, e.request_digest, e.request_body_digest, e."url.full" AS url,
       epoch(e.started) AS started, c.calls, c.valid, c.tools, f.findings,
       u."gen_ai.usage.input_tokens" AS input, u."gen_ai.usage.output_tokens" AS output,
       u."gen_ai.usage.cache_read.input_tokens" AS cached, u."gen_ai.usage.cache_creation.input_tokens" AS written,
       u.cache_creation_1h_tokens AS written_1h, u."gen_ai.usage.reasoning.output_tokens" AS reasoning,
       u.source IS NOT NULL AS counted
FROM exchanges e LEFT JOIN called c USING (source, place) LEFT JOIN found f USING (source, place)
LEFT JOIN usage u USING (source, place)
ORDER BY e.number, e.source, e.place
"""


def read_tables(path: str, is_kept: Callable[[str], bool]) -> Iterator[tuple[Observation | None, Checked]]:
    """Yield the figures of each exchange, as `observe` returns them, and a checked record with its findings alone.

    The order is that of the export. `is_kept`: whether the findings of a rule count. Raises StorageError.
    """
    try:
        with duckdb.connect() as database:
            if storage.is_url(path):
                database.register_filesystem(storage.filesystem_of(path)[0])
            for dataset in _COLUMNS:
                below = itertools.chain.from_iterable(storage.files_below(storage.joined(path, dataset)))
                files = [getattr(file, "full", file) for name, file in below if name.endswith(".parquet")]
                database.read_parquet(files, hive_partitioning=True, file_row_number=True).create_view(dataset)
            cursor = database.execute(_QUERY)
            names = [column[0] for column in cursor.description or ()]
            while rows := cursor.fetchmany(_FETCHED):
                for row in rows:
                    yield _read_row(dict(zip(names, row, strict=True)), is_kept)
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise storage.StorageError(path, f"tables that cannot be read: {reason}", "export them again") from error


def _read_row(row: dict[str, Any], is_kept: Callable[[str], bool]) -> tuple[Observation | None, Checked]:
    findings = tuple(_read_finding(one, row["exchange"]) for one in row["findings"] or () if is_kept(one["name"]))
    url, model, outcome = row["url"] or "", row["model"] or "", row["outcome"]
    checked = Checked(Record(row["exchange"], "", url, source=row["source"], place=row["place"]), None, findings)
    if row["messages"] is None or channel_of(row["api"] or "") != "model":
        return None, checked
    tokens = spent = None
    if outcome is not None and row["counted"]:
        counts = ("input", "cached", "written", "written_1h", "output", "reasoning")
        tokens = Tokens(*(row[name] or 0 for name in counts))
        found = cost(tokens, model, url, row["started"])
        spent = found.amount if found is not None else None
    labels = tuple((one.label, one.layer) for one in checked.folded.findings)
    names = str(row["provider"] or "unknown"), model or "unknown"
    seen = Observation(*names, None, labels, tokens=tokens, cost=spent, answered=outcome is not None)
    keys = row["request_digest"], row["request_body_digest"]
    seen = seen._replace(source=row["source"], conversation=row["conversation"] or row["exchange"], key=keys)
    if outcome not in ("stop", "tool_calls", "other"):
        return seen, checked
    made = Outcome(outcome, row["calls"] or 0, row["valid"] or 0, tuple(row["tools"] or ()))
    seen = seen._replace(outcome=made, duration=row["duration_ms"])
    if row["streamed"]:
        gap, speed = row["longest_gap_ms"], row["tokens_per_second"]
        seen = seen._replace(streamed=True, first_token=row["first_token_ms"], longest_gap=gap, speed=speed)
    return seen, checked


def _read_finding(one: dict[str, Any], exchange: str) -> Finding:
    issue = Issue("", exchange, exchange, known=one.pop("is_known"))
    return Finding(**one, issue=issue)
