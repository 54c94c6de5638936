"""An exchange as data of the HTML page: a row for the list and the filters, and the details shown when it is opened.

The page's script makes elements and text nodes of these values, never markup. Places of a message are relative to its own
pointer, so that a message that many histories repeat is stored once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias
from urllib.parse import urlsplit

from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.model import (
    Exchange,
    HostedCall,
    HostedResult,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Reply,
    Rpc,
    Text,
    Timing,
    Tool,
    ToolCall,
    ToolResult,
)
from wirelint.rule import Finding
from wirelint.text.escaping import excerpt, printable
from wirelint.timing import NO_ARRIVALS, Arrivals
from wirelint.view.bodies import patch
from wirelint.view.conversation import aligned, is_within, nearest, sent_on
from wirelint.view.findings import flat, known_note, remedy, worst_first
from wirelint.view.scores import is_url, name_provider

Object: TypeAlias = dict[str, Json]

_TITLE = 160
_MOST_LINES, _LONGEST_LINE = 3000, 4000
_MOST_RAW = 20_000
_MOST_TEXT = 200_000
"""Characters of one text that a page holds."""
_QUOTED = re.compile(r"`([^`]+)`|'([^']+)'|\"([^\"]+)\"")
_SHORTEST_QUOTE = 3
_FIELDS = {
    **dict.fromkeys(("arguments", "input", "args", "parameters"), "text"),
    **dict.fromkeys(("id", "call_id", "tool_call_id", "tool_use_id"), "id"),
    "name": "name",
}
_IN_ROW = ("code", "name", "severity", "layer", "message")
_FINDING = ("code", "name", "severity", "confidence", "layer", "side", "pointer", "event", "message")
_FIX = ("code", "name", "safety", "side", "title", "pointer", "before", "after")


Store: TypeAlias = Callable[[Object], int]
"""Stores each message once, and returns its number, equal for equal messages."""


def make_row(checked: Checked) -> Object:
    """Return the data of an exchange for the list and its filters."""
    record, exchange = checked.record, checked.exchange
    timing = exchange.timing if exchange is not None else record.timing
    return {
        **{name: getattr(record, name) for name in ("id", "source", "place")},
        "api": checked.api,
        "model": printable(checked.model),
        "provider": name_provider(checked),
        "method": record.method,
        "path": urlsplit(record.url).path[:200] if is_url(record.url) else record.url[:200],
        "status": record.status,
        "end": record.end,
        "stream": checked.streamed,
        "started": timing.started,
        "duration": timing.duration,
        "conversation": checked.conversation,
        "rewritten": is_rewritten(record),
        "title": _title(exchange),
        "known": known_note(len(checked.known)),
        "findings": [{name: getattr(one, name) for name in _IN_ROW} for one in worst_first(checked.findings)],
    }


def make_detail(checked: Checked, store: Store) -> Object:
    """Return the conversation with findings, the fixes, and the times of chunks. Messages go to `store`."""
    record, exchange = checked.record, checked.exchange
    findings, arrivals = worst_first(checked.findings), exchange.arrivals if exchange is not None else NO_ARRIVALS
    made: Object = {
        "url": clip(record.url),
        "headers": [
            [side, [[name, clip(value)] for name, value in headers]]
            for side, headers in (("request", record.request_headers), ("response", record.response_headers))
        ],
        "fixes": [{name: getattr(fix, name) for name in _FIX} for fix in record.fixes],
        "diff": list(_diff(record)),
        "strip": build_timeline(record.chunks, record.timing, arrivals),
        "error": record.error if record.end != "complete" else None,
    }
    if exchange is None:
        raw: list[Json] = []
        for side, body in (("request", record.request_body), ("response", record.response_body)):
            if body:
                text, left = body[:_MOST_RAW].decode("utf-8", "backslashreplace"), len(body) - _MOST_RAW
                raw.append([side, f"{text}… (+{left} bytes)" if left > 0 else text])
        return made | {"raw": raw, "findings": [_finding(checked, one, {}) for one in findings]}
    sent = sent_on(record)
    messages, choices, reply = _messages(exchange), _choices(exchange.reply), exchange.reply
    forwarded = _messages(sent) if sent is not None and record.forwarded is not None else None
    delivered = _choices(exchange.delivered) if exchange.delivered is not None else None
    spots = {
        "request": _spots((pointer, _parts(value)) for pointer, value in messages),
        "response": _spots(("", [*_parts(choice), {"at": choice["finishAt"]}]) for choice in choices),
    }
    usage = reply.usage if reply is not None else None
    return made | {
        "request": _aligned(messages, forwarded, store),
        "reply": [*choices],
        "delivered": [*delivered] if delivered is not None and delivered != choices else None,
        "findings": [_finding(checked, one, spots) for one in findings],
        "usage": {name: count for name, count in usage.items() if isinstance(count, int | float)} if usage else None,
        "errorObject": compact(reply.error) if reply is not None and reply.error else None,
        "notes": [*exchange.notes],
    }


def describe_failure(checked: Checked, error: Exception) -> Object:
    """Return the details of an exchange whose conversion failed: its findings and the error."""
    note = f"wirelint could not show this exchange ({type(error).__name__}); try wirelint show, and please report it"
    findings: list[Json] = [_finding(checked, one, {}) for one in worst_first(checked.findings)]
    empty: Object = {"headers": [], "fixes": [], "diff": [], "strip": None, "error": None}
    return {"url": clip(checked.record.url), **empty, "findings": findings, "notes": [note]}


def is_rewritten(record: Record) -> bool:
    return record.forwarded is not None or record.delivered is not None


def _title(exchange: Exchange | None) -> str:
    """Return an exchange in a line: the user's last words, else the last message, else the reply."""
    if exchange is None:
        return ""
    request, reply = exchange.request, exchange.reply
    if request is not None:
        words = request.last_user.words if request.last_user is not None else ""
        if words.strip():
            return excerpt(words[:4000], _TITLE)
        for sent in reversed(request.messages):
            if text := _first_words(sent.parts[-1:]):
                return text
    return _first_words(reply.choices[0].parts) if reply is not None and reply.choices else ""


def _first_words(parts: Iterable[object]) -> str:
    for item in parts:
        match item:
            case Text(text) if text.strip():
                return excerpt(text[:4000], _TITLE)
            case ToolCall(_, name, arguments):
                return excerpt(f"→ {name} {arguments.text[:400]}", _TITLE)
            case Rpc(form, _, method, _):
                return method or form
    return ""


def _messages(exchange: Exchange) -> list[tuple[str, Object]]:
    request = exchange.request
    if request is None:
        return []
    tools = [("/tools", _tools(request.tools))] if request.tools else []
    return [*tools, *((one.pointer, _message(one)) for one in request.messages)]


def _message(value: Message) -> Object:
    """Return a message; the places of its parts are relative to it."""
    return {"role": value.role, "parts": [write_part(item, value.pointer) for item in value.parts]}


def _choices(reply: Reply | None) -> list[Object]:
    """Return the choices of a reply; the places of their parts are absolute."""
    made: list[Object] = []
    for one in reply.choices if reply is not None else ():
        parts: list[Json] = [write_part(part, "") for part in one.parts]
        made.append({"index": one.index, "parts": parts, "finish": one.finish_reason, "finishAt": one.finish_pointer})
    return made


def _parts(turn: Object) -> list[Json]:
    parts = turn["parts"]
    return parts if isinstance(parts, list) else []


def _aligned(before: list[tuple[str, Object]], after: list[tuple[str, Object]] | None, store: Store) -> list[Json]:
    """Return messages as [sign, pointer, number in the store, position among those received]."""
    numbers = [store(value) for _, value in before]
    sent = [store(value) for _, value in after] if after is not None else None
    made: list[Json] = []
    for sign, n in aligned(numbers, sent):
        if sign != "+" and n is not None:
            made.append([sign, before[n][0], numbers[n], n])
        elif n is not None and after is not None and sent is not None:
            made.append([sign, after[n][0], sent[n], None])
    return made


def _diff(record: Record) -> Iterator[str]:
    """Yield the lines of the patch without its heads; too many or too long lines are cut."""
    lines = (line for line in patch(record) if line and not line.startswith("# "))
    for line in islice(lines, _MOST_LINES):
        yield line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    if left := sum(1 for _ in lines):
        yield f"@@ {left} more lines: wirelint fix --diff @@"


# --- the place and the evidence of a finding --------------------------------------------------------------------------


Spot: TypeAlias = tuple[str, int, int | None, Json]
"""A place on the page: pointer, number of the turn, number of the part (None: the whole turn), the part."""


def _spots(turns: Iterable[tuple[str, Sequence[Json]]]) -> list[Spot]:
    """Return the places of turns, each given by its pointer and its parts."""
    spots: list[Spot] = []
    for number, (pointer, parts) in enumerate(turns):
        for count, one in enumerate(parts):
            if isinstance(one, dict):
                spots.append((absolute(str(one["at"]), pointer), number, count, one))
        if pointer:
            spots.append((pointer, number, None, None))
    return spots


def _finding(checked: Checked, finding: Finding, spots: dict[str, list[Spot]]) -> Object:
    """Return a finding with its place: `at` is [turn, part] of its side, `mark` the evidence in that part."""
    value = flat(checked, finding)
    made: Object = {name: value[name] for name in _FINDING} | {"remedy": remedy(checked, finding)}
    side = spots.get(finding.side, [])
    number = nearest(finding.pointer, (spot[0] for spot in side))
    if number is not None:
        _, turn, count, one = side[number]
        made["at"] = [turn, count]
        if isinstance(one, dict):
            made["mark"] = find_mark(finding, one)
    return made


def find_mark(finding: Finding, part: Object) -> list[Json] | None:
    """Return the evidence in a part as [field, start, end] in UTF-16 units; None for the whole part."""
    texts = {name: value for name in ("text", "name", "id") if isinstance(value := part.get(name), str) and value}
    text = texts.get("text", "")
    if finding.span is not None and text:
        start, end = finding.span
        if start < end and start < len(text):
            return ["text", count_utf16(text, start), count_utf16(text, end)]
    field = _FIELDS.get((finding.pointer or "").rpartition("/")[2])
    if field in ("name", "id") and field in texts:
        return [field, 0, count_utf16(texts[field], len(texts[field]))]
    for quoted in _quotes(finding.message):
        for name in ("id", "name"):
            if texts.get(name) == quoted:
                return [name, 0, count_utf16(quoted, len(quoted))]
        start = text.find(quoted)
        if start >= 0:
            return ["text", count_utf16(text, start), count_utf16(text, start + len(quoted))]
    return None


def _quotes(message: str) -> Iterator[str]:
    """Yield the quotations in a message, and the beginning of a quotation that is shortened with `…`."""
    for found in _QUOTED.finditer(message):
        whole = next(group for group in found.groups() if group)
        yield from (text for text in (whole, whole.partition("…")[0]) if len(text) >= _SHORTEST_QUOTE)


# --- messages and parts -----------------------------------------------------------------------------------------------


def _tools(tools: tuple[Tool, ...]) -> Object:
    parts: list[Json] = []
    for tool in tools:
        text = compact(tool.schema) if tool.schema is not None else ""
        at = relative(tool.pointer, "/tools")
        parts.append({"kind": "tool", "at": at, "name": tool.name, "note": clip(tool.description), "text": text})
    return {"role": "tools", "parts": parts}


def write_part(value: Part, base: str) -> Object:
    """Return a part: `kind`, and `text`, `name`, `id` if it has them. `at` is its place relative to `base`."""
    made: Object
    match value:
        case Text(text):
            made = {"kind": "text", "text": clip(text)}
        case Reasoning(text, _, opaque):
            made = {"kind": "reasoning", "text": "" if opaque else clip(text)}
        case Refusal(text):
            made = {"kind": "refusal", "text": clip(text)}
        case ToolCall(id_, name, arguments):
            made = {"kind": "call", "text": clip(arguments.text), "name": name, "id": id_}
        case ToolResult(call_id, text, _, name, error):
            made = {"kind": "result", "text": clip(text), "name": name, "id": call_id, "error": bool(error)}
        case HostedCall(id_, name):
            made = {"kind": "hosted", "name": name, "id": id_}
        case HostedResult(call_id, _, kind):
            made = {"kind": "hosted-result", "name": kind, "id": call_id}
        case Rpc(form, id_, method, content):
            text = "" if content is None else compact(content)
            made = {"kind": "rpc", "name": method or form, "id": id_, "text": text}
        case Opaque(kind):
            made = {"kind": "opaque", "name": kind}
    return {"at": relative(value.pointer, base), **made}


def relative(pointer: str, base: str) -> str:
    """Return a pointer relative to `base`; a pointer outside of it stays whole, after `^`."""
    return pointer[len(base) :] if is_within(pointer, base) else f"^{pointer}"


def absolute(at: str, base: str) -> str:
    """Return the pointer that `relative` shortened to `at`."""
    return at[1:] if at.startswith("^") else base + at


def compact(value: Json) -> str:
    try:
        return clip(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "(nested too deeply to be shown)"


def clip(text: str) -> str:
    left = len(text) - _MOST_TEXT
    return text if left <= 0 else f"{text[:_MOST_TEXT]}… (+{left} characters, left out of this page)"


def count_utf16(text: str, offset: int) -> int:
    """Return an offset in characters as JavaScript counts them."""
    offset = max(0, min(offset, len(text)))
    return offset if text.isascii() else offset + sum(char > "\uffff" for char in text[:offset])


# --- the chunks of a reply on a time axis -----------------------------------------------------------------------------


_MOST_TICKS, _MOST_GAPS = 600, 12
_SHORTEST_GAP, _SHARE = 1000.0, 0.1


def build_timeline(
    chunks: Sequence[tuple[float, int]], timing: Timing, arrivals: Arrivals = NO_ARRIVALS
) -> dict[str, Json] | None:
    """Return the chunks of a reply on a time axis; None without times.

    `ticks` are [milliseconds after the request, bytes], `gaps` are [start, end] of silences.

    A silence is a time without an event that carries content, if `arrivals` are known, else without a chunk. Shown are
    silences of a second and a tenth of the whole. The time before the first event is the model's reading time, no silence.
    """
    times = [at for at, _ in chunks]
    end = max([*times, timing.duration or 0.0])
    if not (0 < end < math.inf and all(map(math.isfinite, times))):
        return None
    first = times[0] if times else timing.first_byte
    return {
        "end": round(end, 1),
        "first": None if first is None else round(first, 1),
        "chunks": len(chunks),
        "bytes": sum(size for _, size in chunks),
        "ticks": [[round(at, 1), size] for at, size in _joined(chunks, end)],
        "gaps": _gaps(times, end, arrivals),
    }


def _joined(chunks: Sequence[tuple[float, int]], end: float) -> list[tuple[float, int]]:
    """Join chunks by their place on the axis, if there are too many to draw."""
    if len(chunks) <= _MOST_TICKS:
        return list(chunks)
    made: dict[int, tuple[float, int]] = {}
    for at, size in chunks:
        spot = int(at / end * _MOST_TICKS)
        first, total = made.get(spot, (at, 0))
        made[spot] = first, total + size
    return list(made.values())


def _gaps(times: Sequence[float], end: float, arrivals: Arrivals) -> list[Json]:
    least = max(_SHORTEST_GAP, end * _SHARE)
    if arrivals and arrivals.framed:
        found = [(gap.start, gap.end) for gap in (*arrivals.gaps(least), arrivals.rest(end)) if gap.before is not None]
    else:
        found = list(zip(times, [*times[1:], end], strict=False))
    longest = sorted((gap for gap in found if gap[1] - gap[0] >= least), key=lambda gap: gap[0] - gap[1])
    return [[round(start, 1), round(stop, 1)] for start, stop in sorted(longest[:_MOST_GAPS])]
