"""A reply that was repaired needs no second repair: bodies for which that takes some care."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from tests.build import as_record
from tests.fixes.drive import run
from tests.tables import rows, tables

URLS = {
    "chat": "https://llm.test/v1/chat/completions",
    "messages": "https://llm.test/v1/messages",
    "responses": "https://llm.test/v1/responses",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent",
}


@rows(tables(__file__)["bodies"])
def test_a_second_repair_changes_nothing(api: str, model: str, tools: list[str], body: str) -> None:
    asked: dict[str, Any] = {"model": model, "stream": True, "max_tokens": 9}
    asked["input" if api == "responses" else "messages"] = [{"role": "user", "content": "Row."}]
    shape = {"type": "object"}
    tool = {"type": "function", "parameters": shape, "input_schema": shape}
    asked["tools"] = [{**tool, "name": name, "function": {"name": name, "parameters": shape}} for name in tools]
    headers = {"anthropic-version": "2023-06-01"} if api == "messages" else {}
    request = {"url": URLS[api], "headers": headers, "body": json.dumps(asked)}
    kind = "application/json" if api == "gemini" else "text/event-stream"
    reply = {"headers": {"content-type": kind}, "body": body.encode("utf-8", "surrogateescape")}
    record = as_record({"request": request, "response": reply})
    first = run(record)
    second = run(dataclasses.replace(record, response_body=first.delivered))
    assert second.delivered == first.delivered
    assert not first.faults
    assert not second.faults
