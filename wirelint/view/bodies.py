"""Bodies as lines: the raw exchange event by event, and fixes as unified diffs.

# captures/run.jsonl: 3f2a9c11
# LK101 xml-leak (unsafe): promoted to a call of search_notes
--- captures/run.jsonl:3f2a9c11/response
+++ captures/run.jsonl:3f2a9c11/delivered
@@ -7,12 +7,6 @@
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import TextIO

import orjson
from rich.console import Group, RenderableType
from rich.text import Text

from wirelint.capture.offline import Checked, Fixed
from wirelint.capture.record import Headers, Record
from wirelint.engine import lower
from wirelint.events import Frame
from wirelint.rule import Finding
from wirelint.text.escaping import printable
from wirelint.view.findings import MARKS, STYLES, visible
from wirelint.view.screen import Screen
from wirelint.wire import Sniffer

_CONTEXT = 3
_MOST_COMPARED = 20_000_000
"""Most pairs of lines for which the smallest difference is computed."""
_STYLES = {"#": "cyan", "---": "bold", "+++": "bold", "@@": "magenta", "-": "red", "+": "green"}


def frames_of(headers: Headers, body: bytes) -> list[Frame] | None:
    """Return the events of a streamed body; None for a whole body."""
    sniffer = Sniffer(lower(headers))
    frames = [*sniffer.feed(body), *sniffer.close()]
    return frames if sniffer.streamed else None


# --- the raw exchange -------------------------------------------------------------------------------------------------


def render_wire(checked: Checked) -> RenderableType:
    """Render request and reply in raw form; control characters are escaped."""
    record = checked.record
    return Group(
        Text(visible(f"{record.method} {record.url}"), "bold"),
        *_headers(record.request_headers),
        Text(""),
        _raw(record.request_body),
        Text(""),
        Text(f"{record.status if record.status is not None else 'no status'}", "bold"),
        *_headers(record.response_headers),
        Text(""),
        *_response(checked),
    )


def _headers(headers: Headers) -> Iterator[Text]:
    return (Text.assemble((visible(f"{name}: "), "dim"), visible(value), overflow="fold") for name, value in headers)


def _response(checked: Checked) -> Iterator[Text]:
    body, findings = checked.record.response_body, checked.findings
    frames = frames_of(checked.record.response_headers, body) if body is not None else None
    if frames is None:
        yield _raw(body)
        yield from _notes(findings if body is not None else ())
        return
    for frame in frames:
        yield Text(f"{frame.number:>5}  ", "dim").append(_shown(frame.raw), "")
        yield from _notes(finding for finding in findings if finding.event == frame.number)
    yield from _notes(finding for finding in findings if finding.event is None)


def _notes(findings: Iterable[Finding]) -> Iterator[Text]:
    for finding in findings:
        text = f"       {MARKS[finding.severity]} {finding.code} {finding.name}: {finding.message}"
        yield Text(text, STYLES[finding.severity])


def _raw(body: bytes | None) -> Text:
    return Text("(no body)", "dim") if body is None else Text(_shown(body), overflow="fold")


def _shown(raw: bytes) -> str:
    """Decode bytes for a terminal: a line feed ends a line, a carriage return becomes ␍, other controls are escaped."""
    shown = visible(raw.decode("utf-8", "backslashreplace").replace("\r", "␍"))
    return shown.rstrip("\n").replace("\n", "\n       ")


# --- fixes as diffs ---------------------------------------------------------------------------------------------------


def write_patch(fixed: Fixed, out: TextIO) -> None:
    """Write the patch of an exchange, coloured on a terminal; nothing if nothing was fixed."""
    lines = list(patch(fixed.record))
    console = Screen(out, soft_wrap=True)
    if not console.is_terminal:
        out.writelines(f"{line}\n" for line in lines)
        return
    for line in lines:
        console.print(Text(line, next((style for sign, style in _STYLES.items() if line.startswith(sign)), "")))


def patch(record: Record) -> Iterator[str]:
    """Yield the lines of a patch, with control characters escaped."""
    changed = (
        ("request", record.request_headers, record.request_body, "forwarded", record.forwarded),
        ("response", record.response_headers, record.response_body, "delivered", record.delivered),
    )
    if record.forwarded is None and record.delivered is None:
        return
    name = printable(f"{record.source}:{record.id}")
    yield printable(f"# {record.source}: {record.id}")
    for fix in record.fixes:
        yield printable(f"# {fix.code} {fix.name} ({fix.safety}): {fix.title}")
    for before, headers, body, after, sent in changed:
        if sent is not None:
            yield f"--- {name}/{before}"
            yield f"+++ {name}/{after}"
            yield from _hunks(body_lines(headers, body), body_lines(sent.headers, sent.body))
    yield ""


def body_lines(headers: Headers, body: bytes | None) -> list[str]:
    """Return a body as lines: the text of a stream's events, indented JSON, or the text itself."""
    if not body:
        return []
    text = body.decode("utf-8", "backslashreplace")
    if frames_of(headers, body) is None:
        with contextlib.suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):  # JSON lines, or no JSON at all
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
    """Count equal lines at both ends that need no comparison; the context of a difference is not counted."""
    most = min(len(before), len(after))
    start = next((n for n in range(most) if before[n] != after[n]), most)
    end = next((n for n in range(most - start) if before[-1 - n] != after[-1 - n]), most - start)
    return max(start - _CONTEXT, 0), max(end - _CONTEXT, 0)


def _range(start: int, stop: int) -> str:
    """Return a range of lines as unified diffs write it: from one; an empty range names the line before it."""
    size = stop - start
    return f"{start + 1}" if size == 1 else f"{start + 1 if size else start},{size}"
