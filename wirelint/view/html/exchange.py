"""A judged record as the page holds it: a line for the list and the filters, and all that is shown when it is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import islice
from urllib.parse import urlsplit

from wirelint.capture.offline import Checked
from wirelint.capture.record import Headers, Record
from wirelint.capture.replay import mended, replay
from wirelint.fix import AppliedFix
from wirelint.model import Exchange, Json, Reply, Rpc, Text, ToolCall
from wirelint.rule import SEVERITIES, Finding
from wirelint.text.excerpts import excerpt
from wirelint.timing import NO_ARRIVALS
from wirelint.view.html.blocks import Blocks
from wirelint.view.html.places import Turn, mark, place
from wirelint.view.html.plain import Object, choice, clip, compact, declared, message
from wirelint.view.html.timeline import strip
from wirelint.view.patch import patch
from wirelint.view.scores import provider_of
from wirelint.view.writer import flat, known_note, remedy

_TITLE = 160
_MOST_LINES = 3000
_LONGEST_LINE = 4000
_MOST_RAW = 20_000


def row(checked: Checked) -> Object:
    """What the list shows of an exchange, and the filters ask for."""
    record, exchange = checked.record, checked.exchange
    timing = exchange.timing if exchange is not None else record.timing
    return {
        "id": record.id,
        "source": record.source,
        "place": record.place,
        "api": exchange.api if exchange is not None else "",
        "model": exchange.model if exchange is not None else "",
        "provider": provider(checked),
        "method": record.method,
        "path": urlsplit(record.url).path[:200] if _splits(record.url) else record.url[:200],
        "status": record.status,
        "end": record.end,
        "stream": bool(exchange is not None and exchange.reply is not None and exchange.reply.streamed),
        "started": timing.started,
        "duration": timing.duration,
        "conversation": exchange.conversation if exchange is not None else None,
        "rewritten": rewritten(record),
        "title": _title(exchange),
        "known": known_note(len(checked.known)),
        "findings": [
            {"code": one.code, "name": one.name, "severity": one.severity, "layer": one.layer, "message": one.message}
            for one in worst_first(checked.findings)
        ],
    }


def detail(checked: Checked, blocks: Blocks) -> Object:
    """The conversation with its findings, what was rewritten, when it came. Messages go to `blocks`."""
    record, exchange = checked.record, checked.exchange
    findings = worst_first(checked.findings)
    made: Object = {
        "url": clip(record.url),
        "headers": [["request", _headers(record.request_headers)], ["response", _headers(record.response_headers)]],
        "fixes": [_fix(repair) for repair in record.fixes],
        "diff": list(_diff(record)),
        "strip": strip(record.chunks, record.timing, exchange.arrivals if exchange is not None else NO_ARRIVALS),
        "error": record.error,
    }
    if exchange is None:
        bodies = (("request", record.request_body), ("response", record.response_body))
        raw: list[Json] = [[side, _raw(body)] for side, body in bodies if body]
        return made | {"raw": raw, "findings": [_finding(checked, one, {}) for one in findings]}
    sent = replay(mended(record)) if record.forwarded is not None or record.delivered is not None else None
    came = _request(exchange)
    request = _aligned(came, _request(sent) if sent is not None and record.forwarded is not None else None, blocks)
    reply = _reply(exchange.reply)
    kept = [Turn(pointer, _parts(value)) for pointer, value in came]
    answers = [Turn("", [*_parts(candidate), {"at": candidate["finishAt"]}]) for candidate in reply]
    turns = {"request": kept, "response": answers}
    delivered = _reply(exchange.delivered) if exchange.delivered is not None else None
    made["reply"] = [*reply]
    return made | {
        "request": request,
        "delivered": [*delivered] if delivered is not None and delivered != reply else None,
        "findings": [_finding(checked, one, turns) for one in findings],
        "usage": _usage(exchange.reply),
        "errorObject": compact(exchange.reply.error) if exchange.reply is not None and exchange.reply.error else None,
        "notes": [*exchange.notes],
    }


def unshown(checked: Checked, error: Exception) -> Object:
    """In the place of the details that could not be made: the findings, and why there is nothing else."""
    return {
        "url": clip(checked.record.url),
        "headers": [],
        "fixes": [],
        "diff": [],
        "strip": None,
        "error": None,
        "findings": [_finding(checked, one, {}) for one in worst_first(checked.findings)],
        "notes": [
            f"wirelint could not lay this exchange out ({type(error).__name__}); wirelint show may; please report it"
        ],
    }


def provider(checked: Checked) -> str:
    """Who was asked, as the scorecards call them; of what is no exchange with a known API, the host."""
    record, exchange = checked.record, checked.exchange
    if exchange is not None:
        return provider_of(record, exchange) if _splits(record.url) else "unknown"
    return (urlsplit(record.url).hostname or "unknown") if _splits(record.url) else "unknown"


def rewritten(record: Record) -> bool:
    return record.forwarded is not None or record.delivered is not None


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, the gravest first; of one kind in their order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _splits(url: str) -> bool:
    try:
        return urlsplit(url).hostname != ""
    except ValueError:  # `http://[` and the like
        return False


def _title(exchange: Exchange | None) -> str:
    """What an exchange is about, in a line: the user's last words, the call to a server of tools, else the answer."""
    if exchange is None:
        return ""
    request, reply = exchange.request, exchange.reply
    if request is not None:
        words = request.last_user.words if request.last_user is not None else ""
        if words.strip():
            return excerpt(words[:4000], _TITLE)
        for sent in reversed(request.messages):
            if (said := _said(sent.parts[-1:])) != "":
                return said
    return _said(reply.choices[0].parts) if reply is not None and reply.choices else ""


def _said(parts: Iterable[object]) -> str:
    for part in parts:
        match part:
            case Text(text) if text.strip():
                return excerpt(text[:4000], _TITLE)
            case ToolCall(_, name, arguments):
                return excerpt(f"→ {name} {arguments.text[:400]}", _TITLE)
            case Rpc(form, _, method, _):
                return method or form
            case _:
                continue
    return ""


def _request(exchange: Exchange) -> list[tuple[str, Object]]:
    request = exchange.request
    if request is None:
        return []
    tools = [("/tools", declared(request.tools))] if request.tools else []
    return [*tools, *((one.pointer, message(one)) for one in request.messages)]


def _reply(reply: Reply | None) -> list[Object]:
    return [choice(candidate) for candidate in reply.choices] if reply is not None else []


def _usage(reply: Reply | None) -> Json:
    """The token counts at the top of a usage object; what is nested in it is left out."""
    usage = reply.usage if reply is not None else None
    return {name: count for name, count in usage.items() if isinstance(count, int | float)} if usage else None


def _parts(turn: Object) -> list[Json]:
    parts = turn["parts"]
    return parts if isinstance(parts, list) else []


def _aligned(came: list[tuple[str, Object]], sent: list[tuple[str, Object]] | None, blocks: Blocks) -> list[Json]:
    """Turns as [sign, pointer, message, number among those that came]: `=` came and was sent, `-` came, `+` was sent."""
    before = [blocks.message(value) for _, value in came]
    if sent is None:
        return [["=", pointer, before[n], n] for n, (pointer, _) in enumerate(came)]
    after = [blocks.message(value) for _, value in sent]
    made: list[Json] = []
    for kind, start, end, sent_start, sent_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        sign = "=" if kind == "equal" else "-"
        made += [[sign, came[n][0], before[n], n] for n in range(start, end)]
        if kind != "equal":
            made += [["+", sent[n][0], after[n], None] for n in range(sent_start, sent_end)]
    return made


_TOLD = ("code", "name", "severity", "confidence", "layer", "side", "pointer", "event", "message")


def _finding(checked: Checked, finding: Finding, turns: dict[str, list[Turn]]) -> Object:
    """A finding with its place: `at` is [turn, part] of its side, `mark` the evidence in that part."""
    told = flat(checked, finding)
    made: Object = {name: told[name] for name in _TOLD} | {"remedy": remedy(checked, finding)}
    side = turns.get(finding.side, [])
    found = place(finding, side)
    if found is None:
        return made
    made["at"] = [found.turn, found.part]
    part = side[found.turn].parts[found.part] if found.part is not None else None
    if isinstance(part, dict):
        made["mark"] = mark(finding, part)
    return made


def _fix(repair: AppliedFix) -> Object:
    return {
        "code": repair.code,
        "name": repair.name,
        "safety": repair.safety,
        "side": repair.side,
        "title": repair.title,
        "pointer": repair.pointer,
        "before": repair.before,
        "after": repair.after,
    }


def _diff(record: Record) -> Iterator[str]:
    """The lines of the patch, heads left out; what is too long for a page is cut, and says so."""
    lines = (line for line in patch(record) if line and not line.startswith("# "))
    for line in islice(lines, _MOST_LINES):
        yield line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
    if left := sum(1 for _ in lines):
        yield f"@@ {left} more lines: wirelint fix --diff @@"


def _headers(headers: Headers) -> list[Json]:
    return [[name, clip(value)] for name, value in headers]


def _raw(body: bytes) -> str:
    text = body[:_MOST_RAW].decode("utf-8", "backslashreplace")
    return text if len(body) <= _MOST_RAW else f"{text}… (+{len(body) - _MOST_RAW} bytes)"
