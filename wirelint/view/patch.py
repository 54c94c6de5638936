"""Repairs as unified diffs: of JSON laid out for reading, of streams as the text of their events.

# captures/run.jsonl: 3f2a9c11
# LK101 xml-leak (unsafe): promoted to a call of search_notes
--- captures/run.jsonl:3f2a9c11/response
+++ captures/run.jsonl:3f2a9c11/delivered
@@ -7,12 +7,6 @@
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TextIO

import orjson
from rich.text import Text

from wirelint.capture.fixing import Fixed
from wirelint.capture.record import Headers, Record
from wirelint.engine import lower
from wirelint.text.escaping import printable
from wirelint.view.screen import Screen
from wirelint.wire import Sniffer

_CONTEXT = 3
_MOST_COMPARED = 20_000_000
"""Pairs of lines up to which it is looked for the smallest difference."""

_STYLES = {"#": "cyan", "---": "bold", "+++": "bold", "@@": "magenta", "-": "red", "+": "green"}


def write_patch(fixed: Fixed, out: TextIO) -> None:
    """The patch of an exchange, in colours on a terminal and plain elsewhere; nothing where nothing was repaired."""
    lines = list(patch(fixed.record))
    console = Screen(out, soft_wrap=True)
    if not console.is_terminal:
        out.writelines(f"{line}\n" for line in lines)
        return
    for line in lines:
        console.print(Text(line, next((style for sign, style in _STYLES.items() if line.startswith(sign)), "")))


def patch(record: Record) -> Iterator[str]:
    """The lines of a patch. Nothing in them can steer a terminal."""
    changed = (
        ("request", record.request_headers, record.request_body, "forwarded", record.forwarded),
        ("response", record.response_headers, record.response_body, "delivered", record.delivered),
    )
    if record.forwarded is None and record.delivered is None:
        return
    name = printable(f"{record.source}:{record.id}")
    yield printable(f"# {record.source}: {record.id}")
    for repair in record.fixes:
        yield printable(f"# {repair.code} {repair.name} ({repair.safety}): {repair.title}")
    for before, headers, body, after, sent in changed:
        if sent is not None:
            yield f"--- {name}/{before}"
            yield f"+++ {name}/{after}"
            yield from _hunks(body_lines(headers, body), body_lines(sent.headers, sent.body))
    yield ""


def body_lines(headers: Headers, body: bytes | None) -> list[str]:
    """A body as lines: the text of a stream's events, JSON laid out, or else the text as it is."""
    if not body:
        return []
    sniffer = Sniffer(lower(headers))
    sniffer.feed(body)
    sniffer.close()
    text = body.decode("utf-8", "backslashreplace")
    if not sniffer.streamed:
        with contextlib.suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):  # lines of JSON, or none at all
            text = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2).decode()
    return [printable(line.replace("\r", "␍"), "\t") for line in text.removesuffix("\n").split("\n")]


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    start, end = _common(before, after)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if len(old) * len(new) > _MOST_COMPARED:
        groups = [[("replace", 0, len(old), 0, len(new))]]
    else:
        groups = [list(group) for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT)]
    for group in groups:
        _, old_from, _, new_from, _ = group[0]
        _, _, old_to, _, new_to = group[-1]
        yield f"@@ -{_range(start + old_from, start + old_to)} +{_range(start + new_from, start + new_to)} @@"
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[old_from:old_to])
                continue
            yield from (f"-{line}" for line in old[old_from:old_to])
            yield from (f"+{line}" for line in new[new_from:new_to])


def _common(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines at both ends need no comparison: those that are equal, save for the context of a difference."""
    most = min(len(before), len(after))
    start = next((n for n in range(most) if before[n] != after[n]), most)
    end = next((n for n in range(most - start) if before[-1 - n] != after[-1 - n]), most - start)
    return max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)


def _range(start: int, stop: int) -> str:
    """Lines in the notation of unified diffs, which counts from one and names the line before an empty range."""
    size = stop - start
    return f"{start + 1}" if size == 1 else f"{start + 1 if size else start},{size}"
