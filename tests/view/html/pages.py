"""Captures for the tests of the page, and how a page's data are read back."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.build import REGISTRY, Assistant, Call, Result, Talk, User, as_record, schema
from wirelint.capture.offline import check
from wirelint.capture.record import Record, Sent
from wirelint.fix import AppliedFix
from wirelint.model import Timing
from wirelint.view.html import Written, write_report

TOOLS = {"look_up": schema(city="string")}
LEAK = '<tool_call>\n{"name": "look_up", "arguments": {"city": "Oslo"}}\n</tool_call>'
_ELEMENT = re.compile(rb'<script type="text/plain" class="(block|index)">([A-Za-z0-9+/=]*)</script>')


def record(talk: Talk, id_: str, api: str = "openai.chat", stream: bool = False, **changes: Any) -> Record:
    made = as_record(talk.record(api, stream))
    return replace(
        made, id=id_, source="run.jsonl", url=made.url.replace("http://llm.test", "https://llm.test"), **changes
    )


def sample() -> list[Record]:
    """A leak that was repaired, a clean talk in the same conversation, a stream that stalls, one of another vendor."""
    call = Call("look_up", {"city": "Oslo"}, "call_Qk3zYw8Nn2VtLr6PsDfB4hXc")
    before = (User("How warm is it in Oslo?"), Assistant("Let me see.", (call,)), Result(call.id, "12 degrees"))
    leak = record(Talk(before[:1], text=f"I look that up. \U0001f600 {LEAK}", tools=TOOLS), "leak")
    repaired = record(Talk(before[:1], text=LEAK, tools=TOOLS), "repaired")
    mended = record(Talk(before[:1], calls=(call,), tools=TOOLS), "mended")
    made = AppliedFix(
        "LK101",
        "xml-leak",
        "unsafe",
        "response",
        "promoted a call",
        "/choices/0/message/content",
        None,
        LEAK,
        "look_up",
    )
    repaired = replace(
        repaired,
        delivered=Sent(mended.response_headers, mended.response_body),
        fixes=(made,),
        timing=Timing(1_770_000_000.0, duration=900.0),
    )
    stall = record(Talk((User("Count slowly."),), text="one two three four"), "stall", stream=True)
    body = stall.response_body or b""
    cut = len(body) // 2
    stall = replace(
        stall, chunks=((400.0, cut), (45_000.0, len(body) - cut)), timing=Timing(1_770_000_060.0, duration=45_100.0)
    )
    return [
        record(Talk((User("Good morning"),), text="Good morning to you."), "clean-1"),
        record(Talk(before, text="Twelve degrees, says the tool.", tools=TOOLS), "clean-2"),
        leak,
        repaired,
        stall,
        record(Talk((User("And in Bergen?"),), text="Rain.", model="other-2"), "clean-3", api="anthropic.messages"),
        record(Talk((User("Thanks"),), text="You are welcome."), "clean-4"),
    ]


@dataclass(frozen=True)
class Page:
    """A page that was written, and the data in it."""

    path: Path
    written: Written
    html: str
    rows: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    exchanges: list[dict[str, Any]]


def unpacked(raw: bytes) -> Iterator[tuple[bytes, Any]]:
    """The kinds and the contents of a page's data elements."""
    for kind, packed in _ELEMENT.findall(raw):
        yield kind, json.loads(gzip.decompress(base64.b64decode(packed)))


def page(out: Path, records: Iterable[Record], **options: Any) -> Page:
    rules = REGISTRY.rules
    written = write_report(check(records, rules), out, rules=rules, **options)
    raw = out.read_bytes()
    index: Mapping[str, Any] = {}
    messages: list[dict[str, Any]] = []
    exchanges: list[dict[str, Any]] = []
    for kind, data in unpacked(raw):
        if kind == b"index":
            index = data
        else:
            messages += data["messages"]
            exchanges += data["exchanges"]
    return Page(out, written, raw.decode(), index["rows"], messages, exchanges)
