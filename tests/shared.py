"""Readers of the labelled cases and recordings that may lie beside a checkout (`../shared`); tests skip without them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.selection import sampled
from wirelint.capture.record import Record
from wirelint.model import Timing

SHARED = Path(__file__).resolve().parents[2] / "shared"


@dataclass(frozen=True)
class Case:
    """A labelled exchange with those that passed before it."""

    id: str
    kind: str
    also: frozenset[str]
    api: str
    where: str
    records: tuple[Record, ...]
    fix: Mapping[str, Any] | None = None
    """The correct rewrite; None where there is none."""


def cases(name: str, apis: tuple[str, ...]) -> Iterator[Case]:
    with (SHARED / "cases" / f"{name}.jsonl").open() as lines:
        for line in lines:
            case = json.loads(line)
            if case["api"] in apis:
                before = [_record(prior, f"{case['id']}-{n}") for n, prior in enumerate(case.get("prior", ()))]
                records = (*before, _record(case, case["id"]))
                also, expect = frozenset(case.get("also", ())), case["expect"]
                where, fix = expect.get("where", ""), expect.get("fix")
                yield Case(case["id"], case["kind"], also, case["api"], where, records, fix)


def traffic(apis: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Recorded exchanges: (file name, record)."""
    for path in sorted((SHARED / "traffic").glob("*.jsonl.gz")):
        yield from _recordings(path.name, gzip.decompress(path.read_bytes()).splitlines(), apis)


def some_traffic(apis: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Recorded exchanges as `traffic`, 40 of a file; `--all`: every one."""
    for path in sorted((SHARED / "traffic").glob("*.jsonl.gz")):
        yield from _recordings(path.name, sampled(gzip.decompress(path.read_bytes()).splitlines(), 40), apis)


def _recordings(name: str, lines: Iterable[bytes], apis: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    for line in lines:
        case = json.loads(line)
        if case["api"] in apis:
            yield name, _record(case, case["id"])


def traffic_labels() -> dict[str, dict[str, Any]]:
    with (SHARED / "traffic" / "labels.jsonl").open() as lines:
        return {label["id"]: label for label in map(json.loads, lines)}


def _record(case: dict[str, Any], id_: str) -> Record:
    request, response = case.get("request") or {}, case.get("response") or {}
    body = "".join(response["sse"]).encode() if "sse" in response else _body(response)
    return Record(
        id=id_,
        method=request.get("method", "POST"),
        url=request.get("url", ""),
        request_headers=tuple((name, str(value)) for name, value in request.get("headers", {}).items()),
        request_body=_body(request),
        status=response.get("status"),
        response_headers=tuple((name, str(value)) for name, value in (response.get("headers") or {}).items()),
        response_body=body,
        chunks=_chunks(response, body or b""),
        timing=Timing(duration=response.get("end_ms")),
        end="client-left" if response.get("end") == "client-timeout" else "unknown",
    )


def _chunks(response: dict[str, Any], body: bytes) -> tuple[tuple[float, int], ...]:
    """Arrivals: of the pieces of a stream or, where those were others, of the network's chunks."""
    times = response.get("chunks_ms", ())
    sizes = response.get("chunk_sizes") or [len(piece.encode()) for piece in response.get("sse", ())]
    return tuple(zip(times, sizes, strict=True)) if times and sum(sizes) == len(body) else ()


def _body(message: dict[str, Any]) -> bytes | None:
    if message.get("body_b64"):
        return base64.b64decode(message["body_b64"])
    body = message.get("body")
    if body is None:
        return None
    return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()
