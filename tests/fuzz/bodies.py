"""Exchanges that the fuzzer starts from: the captures and corpora of the tree, and those that may lie beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import wirelint.apis
from tests.build import as_record
from tests.shared import SHARED, cases, traffic
from wirelint.apis import channel_of
from wirelint.capture.record import Record
from wirelint.capture.replay import replay

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 12_000
"""Bytes of a message above which an exchange is left out: thousands of small bodies show more than a few large ones."""


def load(*, shared: bool = True) -> list[Record]:
    """Exchanges of known APIs with a request and a reply of moderate size."""
    return [record for record in _all(shared=shared) if _is_fit(record)]


def _all(*, shared: bool) -> Iterator[Record]:
    folders = (ROOT / "captures" / "clean", ROOT / "captures" / "samples", ROOT / "tests" / "corpus")
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            record = json.loads(line)
            if isinstance(record.get("request"), dict) and isinstance(record.get("response"), dict):
                yield dataclasses.replace(
                    as_record(record), id=f"{path.stem}:{number}", timing=as_record(record).timing
                )
    if not shared:
        return
    apis = tuple(api.name for api in wirelint.apis.APIS)
    models = tuple(api for api in apis if channel_of(api) == "model")
    if (SHARED / "cases").is_dir():
        for name in ("anomalies", "clean"):
            yield from (case.records[-1] for case in cases(name, apis))
    if (SHARED / "traffic").is_dir():
        yield from (record for _, record in traffic(models))


def _is_fit(record: Record) -> bool:
    sizes = [len(body) for body in (record.request_body, record.response_body) if body]
    return len(sizes) == 2 and max(sizes) <= LARGEST and record.status is not None and replay(record) is not None
