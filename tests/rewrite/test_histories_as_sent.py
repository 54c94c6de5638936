"""Histories as clients of every API send them, whole and broken: what the rules of requests find in each, and no more.

A line of the corpus is a request with the codes of what is wrong with its history: none for most that only look so. Where
nothing is wrong nothing changes; what is repaired is found no more, and a second run changes nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.build import REGISTRY, as_record, lint, read
from tests.rewrite.mending import UNSAFE
from tests.selection import in_batches
from wirelint.model import Exchange
from wirelint.rewrite.request import mend_request
from wirelint.state.ledger import Ledger

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "histories.jsonl"
LINES = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
RULES = REGISTRY.select(["ID301", "ID302", "ID303", "ID304", "ID305", "LK104"])


def record(line: Mapping[str, Any]) -> dict[str, Any]:
    claude = {"anthropic-version": "2023-06-01"} if line["url"].endswith("/messages") else {}
    refused = line.get("refused")
    return {
        "request": {"method": "POST", "url": line["url"], "headers": claude, "body": json.dumps(line["body"])},
        "response": {
            "status": 200 if refused is None else 400,
            "headers": {"content-type": "application/json"},
            "body": json.dumps(refused or {}),
        },
    }


def head(made: Mapping[str, Any], body: bytes, line: Mapping[str, Any]) -> Exchange:
    """The exchange before its reply; where that is what tells of the fault, with it."""
    exchange = read({**made, "request": {**made["request"], "body": body.decode()}})
    return exchange if "refused" in line else dataclasses.replace(exchange, status=None, reply=None)


@in_batches("line", LINES, ids=lambda line: str(line["id"]))
def test_what_is_wrong_is_found_and_mended_once(line: Mapping[str, Any]) -> None:
    made = record(line)
    found = [finding for finding in lint([made], [rule.code for rule in RULES]) if finding.side == "request"]
    assert sorted(finding.code for finding in found) == line["finds"], found
    body = as_record(made).request_body or b""
    mended = mend_request(head(made, body, line), body, RULES, Ledger(), UNSAFE)
    assert mended.faults == ()
    fixable = [finding for finding in found if finding.fix is not None]
    assert (mended.body is body) == (not fixable)
    assert mend_request(head(made, mended.body, line), mended.body, RULES, Ledger(), UNSAFE).body is mended.body
    if len(fixable) == len(found) and "refused" not in line:
        left = lint(
            [{**made, "request": {**made["request"], "body": mended.body.decode()}}], [rule.code for rule in RULES]
        )
        assert [finding for finding in left if finding.side == "request"] == []


def test_the_corpus_has_both_kinds() -> None:
    broken = sum(bool(line["finds"]) for line in LINES)
    assert broken >= 100
    assert len(LINES) - broken >= 80
