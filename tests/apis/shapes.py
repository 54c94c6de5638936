"""Replies in each form that servers send, by API: `shapes/<api>.toml`, and some of Bedrock, which are made.

Code Assist has Gemini's replies in a wrapper; its shapes are made of Gemini's.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.apis import talk_openai_responses as responses
from tests.apis.harness import Shape
from tests.apis.shapes_bedrock import DAMAGED, SHAPES_CLAUDE_ON_BEDROCK, events_of
from tests.apis.talk_google_generate_content import events


def _shape(row: Mapping[str, Any]) -> Shape:
    body = json.loads(row["whole"]) if "whole" in row else None
    stream = events_of(row["events"]) if "events" in row else row.get("stream")
    if "items" in row:
        more = json.loads(row.get("more", "{}"))
        body = responses.whole(json.loads(row["items"]), row.get("status", "completed"), row.get("details"), **more)
        stream = responses.streamed(body)
    return Shape(
        parts=[[(kind, words) for kind, words in candidate] for candidate in row.get("parts", ())],
        finish=[reason or None for reason in row.get("finish", ())],
        whole=body,
        stream=stream,
        error=row.get("error", False),
        usage=json.loads(row["usage"]) if "usage" in row else None,
        faults=row.get("faults", ()),
        terminated=not row.get("unfinished", False),
        id=row.get("id"),
    )


def wrapped(shape: Shape) -> Shape:
    """Return a shape of Gemini in the wrapper of Code Assist."""
    whole = {"response": shape.whole, "traceId": "t1"} if shape.whole is not None else None
    stream = shape.stream
    if isinstance(stream, str):
        lines = (line.removeprefix("data: ") for line in stream.split("\r\n"))
        stream = events(*({"response": json.loads(line), "traceId": "t1"} for line in lines if line))
    return replace(shape, whole=whole, stream=stream)


def _has_wrapped_form(name: str, shape: Shape) -> bool:
    """Return True if Code Assist sends such a reply: it has server-sent events and candidates."""
    if shape.error or shape.faults or name == "wrong types":
        return False
    if shape.whole is not None and "candidates" not in shape.whole:
        return False
    text = shape.stream
    return text is None or (isinstance(text, str) and text.startswith("data: {") and "\r\n" in text)


def _load() -> dict[str, dict[str, Shape]]:
    made: dict[str, dict[str, Shape]] = {}
    for path in sorted(Path(__file__).with_name("shapes").glob("*.toml")):
        rows = tomllib.loads(path.read_text(encoding="utf-8"))
        made[path.stem] = {name: _shape(row) for name, row in rows.items()}
    gemini = made["google.generate_content"]
    gemini |= {f"{name}, wrapped": wrapped(one) for name, one in gemini.items() if _has_wrapped_form(name, one)}
    made["anthropic.messages"] |= SHAPES_CLAUDE_ON_BEDROCK
    made["bedrock.converse"] |= DAMAGED
    return made


SHAPES: dict[str, dict[str, Shape]] = _load()
