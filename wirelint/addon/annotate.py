"""Check of an exchange that has ended; annotation of its flow (comment, marker, metadata); and its copy for `flows.mitm`.

Findings are a function of the captured bytes. If redaction changes a body, the exchange is parsed again from the
redacted bytes, so that no finding quotes a secret, the ledger equals that of a reader of the captures, and `wirelint
check` agrees with the live run. Otherwise the parse made in transit is used.

mitmweb's comment column shows about twenty characters, so a comment begins with the worst finding, the model and the
tokens. Filters use metadata (`~meta xml-leak`) and flow files keep it; mitmproxy can save plain values only. Markers are
‼ and ⚠, which every font has.

A captured copy is redacted and its bodies are decoded. It shows the received messages, as all captures do; the sent
ones are in its metadata. An incomplete exchange has the response header `x-wirelint-end`, which a HAR keeps, and no
mitmproxy `error` beside its response: mitmproxy would run both hooks when reading it back, and write the exchange into
a HAR twice."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from mitmproxy import http

from wirelint.addon.log import log_exchange
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.format import END_HEADER, NAMES, beside_sent, decode, encode
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import delivered_reply, replay
from wirelint.capture.store import Piece, Store
from wirelint.capture.streams import StreamStrings
from wirelint.capture.writers.flows import finished, make_flow
from wirelint.engine import INTERNAL_NAME, Engine, internal, lower
from wirelint.jsonvalues import decode_json
from wirelint.lexicon import compile_patterns
from wirelint.model import Exchange, Json
from wirelint.prices import tokens_of
from wirelint.rule import Finding, Rule
from wirelint.state.linking import name_of
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.findings import annotations_of, flat, worst, worst_first

MARKERS = {"error": ":bangbang:", "warning": ":warning:"}
"""By severity. Exchanges with nothing worse than an info are not marked."""

_RANKS = ("error", "warning", "info", "none")
_CONFIDENCES = ("high", "medium", "low")
_DETAIL = ("code", "name", "severity", "confidence", "layer", "side", "pointer", "event", "fix")
_DETAILS = 40
_MESSAGE = 300
_COMMENTED = 160
_PREFIX = "wirelint."


@dataclass(frozen=True, slots=True)
class Annotation:
    """Comment, marker and metadata of a flow, without the other side of a changed exchange (`capture.format`)."""

    comment: str
    marker: str
    metadata: dict[str, Json]


def annotation(checked: Checked) -> Annotation:
    """Return the annotation of an exchange. Metadata keys are stable; lists are bounded."""
    checked = checked.folded
    record, exchange, highest = checked.record, checked.exchange, worst(checked.findings) or ""
    surest_first = sorted(checked.findings, key=lambda one: _CONFIDENCES.index(one.confidence))
    names = list(dict.fromkeys(finding.name for finding in worst_first(surest_first)))
    metadata: dict[str, Json] = {
        "findings": list[Json](names),
        "severity": highest or "none",
        "api": checked.api,
        "model": checked.model[:200],
        "end": "open" if checked.is_open else record.end,
        "detail": [
            {**{name: detail[name] for name in _DETAIL}, "message": finding.message[:_MESSAGE]}
            for finding in checked.findings[:_DETAILS]
            for detail in (flat(checked, finding),)
        ],
    }
    if exchange is not None and exchange.conversation is not None:
        metadata["conversation"] = exchange.conversation
    if record.error is not None:
        metadata["error"] = record.error[:_MESSAGE]
    if checked.known:
        metadata["known"] = len(checked.known)
    if record.fixes:
        metadata["fixed"] = list[Json](dict.fromkeys(fix.name for fix in record.fixes))
    if record.notes:
        metadata["notes"] = [note[:_MESSAGE] for note in record.notes]
    return Annotation(_comment(checked, names), MARKERS.get(highest, ""), prefixed(metadata))


def prefixed(metadata: Mapping[str, Json]) -> dict[str, Json]:
    return {f"{_PREFIX}{name}": value for name, value in metadata.items()}


def annotate(flow: http.HTTPFlow, made: Annotation, record: Record | None = None) -> None:
    """Annotate a flow. A comment or marker set by someone else stays.

    `record`: an exchange that passed just now; its flow shows the sent messages, and the received ones go into the
    metadata.
    """
    ours = f"{_PREFIX}findings" in flow.metadata
    if ours and record is not None and (flow.websocket is not None or flow.request.method == "GET"):
        # Many exchanges pass over one socket, or one stream of a session: it shows the worst of them.
        before, now = flow.metadata.get(f"{_PREFIX}severity"), made.metadata[f"{_PREFIX}severity"]
        if before in _RANKS and now in _RANKS and _RANKS.index(before) < _RANKS.index(str(now)):
            return
    sides = [f"{_PREFIX}{name}" for name in NAMES] if record is None else []
    for name in [name for name in flow.metadata if str(name).startswith(_PREFIX) and name not in sides]:
        del flow.metadata[name]  # of an earlier run, or of the flow that this one replays
    flow.metadata.update(made.metadata)
    if record is not None:
        flow.metadata.update(prefixed(beside_sent(record)))
    if ours or not flow.comment:
        flow.comment = made.comment
    elif made.comment not in flow.comment:
        flow.comment = f"{made.comment} | {flow.comment}"
    if ours or not flow.marked:
        flow.marked = made.marker


def announce(recorder: ExchangeRecorder, exchange: Exchange, findings: tuple[Finding, ...], redactor: Redactor) -> None:
    clean = tuple(_redacted(findings, redactor))
    recorder.open_findings += clean
    record = Record(exchange.id, exchange.method, "", status=exchange.status, timing=exchange.timing)
    checked = Checked(record, exchange, clean, names=(exchange.api, redactor.text(exchange.model)))
    log_exchange(checked)
    withdraw(recorder)
    made = annotation(dataclasses.replace(checked, findings=tuple(recorder.open_findings)))
    recorder.open_annotation = (made.comment, "" if recorder.flow.marked else made.marker)
    annotate(recorder.flow, made)


def withdraw(recorder: ExchangeRecorder) -> None:
    """Remove the provisional annotation from a flow, except for later changes by someone else."""
    if recorder.open_annotation is None:
        return
    flow, (comment, marker) = recorder.flow, recorder.open_annotation
    for name in [name for name in flow.metadata if str(name).startswith(_PREFIX)]:
        del flow.metadata[name]
    flow.comment = flow.comment.removeprefix(comment).removeprefix(" | ")
    if marker and flow.marked == marker:
        flow.marked = ""
    recorder.open_annotation = None


def mark_failure(flow: http.HTTPFlow, culprit: str) -> None:
    """Mark a flow that has no result because of an internal failure."""
    before = flow.metadata.get(f"{_PREFIX}findings")
    flow.metadata[f"{_PREFIX}findings"] = [*(before if isinstance(before, list) else []), INTERNAL_NAME]
    flow.metadata.setdefault(f"{_PREFIX}severity", "warning")
    comment = printable(f"{INTERNAL_NAME} · {culprit}")
    flow.comment = f"{comment} | {flow.comment}" if flow.comment else comment
    flow.marked = flow.marked or MARKERS["warning"]


def _comment(checked: Checked, names: list[str]) -> str:
    parts = [f"{names[0]} +{len(names) - 1}" if len(names) > 1 else names[0]] if names else []
    record = checked.record
    if checked.is_open:
        parts.append("still open")
    elif record.end not in ("complete", "unknown"):
        parts.append(record.end)
    elif record.status is None:
        parts.append("no reply")
    elif not 200 <= record.status < 300:
        parts.append(f"http {record.status}")
    if checked.known:
        parts.append(f"+{len(checked.known)} known")
    parts = parts or ["ok" if checked.api else "not checked"]
    if record.fixes:
        parts.append(f"{len(record.fixes)} fixed")
    reply = checked.exchange.reply if checked.exchange is not None else None
    counts = tokens_of(reply.usage) if reply is not None else None
    tokens = f"{counts.input:,}→{counts.output:,} tokens" if counts is not None else ""
    calls = counted(checked.calls, "call") if checked.calls else ""
    parts += filter(None, (checked.model[:60], tokens, calls, checked.api))
    if len(names) > 1:
        parts.append(", ".join(names[1:9]))
    worst = next((finding for finding in checked.findings if names and finding.name == names[0]), None)
    if worst is not None:
        parts.append(shorten(worst.message, _COMMENTED))
    return printable(" · ".join(parts))


def captured_copy(original: http.HTTPFlow, record: Record, made: Annotation) -> Callable[[], bytes]:
    """Return a function that serialises the captured copy. It may run later in a thread: it does not use `original`."""
    flow = make_flow(record)
    flow.client_conn, flow.server_conn = copy.copy(original.client_conn), copy.copy(original.server_conn)
    flow.timestamp_created, flow.is_replay = original.timestamp_created, original.is_replay
    flow.request.data.host, flow.request.data.port = original.request.host, original.request.port
    for message, other in ((flow.request, original.request), (flow.response, original.response)):
        if message is not None and other is not None:
            for name in ("http_version", "timestamp_start", "timestamp_end"):
                setattr(message.data, name, getattr(other.data, name))
    if flow.response is not None and original.response is not None:
        flow.response.data.reason = original.response.data.reason
        if record.end != "complete":
            flow.response.headers[END_HEADER] = record.end
    return functools.partial(finished, flow, record, made.comment, made.marker, made.metadata)


def capture(store: Store, flow: http.HTTPFlow, checked: Checked) -> None:
    record, annotations = checked.record, {**annotations_of(checked), **store.place()}
    size = len(record.request_body or b"") + len(record.response_body or b"") + 4096
    pieces = [Piece("exchanges.jsonl", functools.partial(encode, record, annotations))]
    try:
        pieces.append(Piece("flows.mitm", captured_copy(flow, record, annotation(checked))))
    finally:  # a flow that cannot be copied costs its own file alone
        store.put(*pieces, size=size)


Reading: TypeAlias = "tuple[Record, Exchange | None]"
"""Redacted record of an ended exchange and its parse; None if there is nothing to check."""


def read(recorder: ExchangeRecorder, redactor: Redactor) -> Reading:
    """Parse and redact the recorder of an ended exchange; safe in a thread, since only the recorder and the redactor are
    used. Raises parse errors."""
    session, exchange = recorder.session, None
    if session is not None and recorder.is_readable:
        if recorder.status is None:
            # A reader of captures cannot distinguish "no head" from "an empty reply"; neither is checked.
            session.respond(None, {})
        exchange = session.finish(recorder.end, error=recorder.error)
        recorder.notes += [note for note in exchange.notes if note not in recorder.notes]
    record = recorder.record(exchange, recorder.duration)
    strings = StreamStrings()
    delivered = delivered_reply(record, strings) if exchange is not None else None
    clean = redactor.record(record, recorder.strings, strings)
    if exchange is not None:
        if delivered is not None and record.delivered != clean.delivered:
            delivered = delivered_reply(clean)
        same = clean.request_body == record.request_body and clean.response_body == record.response_body
        if recorder.must_reread or not same:
            return clean, replay(clean)
        headers, request = lower(clean.request_headers), exchange.request
        exchange = exchange.but(
            url=clean.url,
            request_headers=headers,
            response_headers=lower(clean.response_headers),
            error=clean.error,
            timing=clean.timing,
            delivered=delivered,
            # A redacted value may name the session of a client.
            conversation=name_of(request, headers) if request is not None else None,
        )
    return clean, exchange


def judge(recorder: ExchangeRecorder, reading: Reading | None, engine: Engine, redactor: Redactor) -> Checked:
    """Check an ended exchange. Without a reading, which has failed, return its record and the failures. Raises the errors
    of the engine."""
    clean, exchange = reading or (redactor.record(recorder.record()), None)
    findings, session = _redacted(recorder.faults, redactor), recorder.session
    if exchange is not None:
        if clean.notes or exchange.notes:
            exchange = exchange.but(notes=clean.notes)
        exchange = engine.ledger.place(exchange)
        findings += engine.check(exchange, rules=recorder.rules)
    elif reading is not None and recorder.is_readable and not recorder.is_unread:
        findings.append(
            internal("reading the exchange without its secrets", ValueError("it has no known API without them"))
        )
    asked = session.request if session is not None and exchange is None else None
    names = session.api.name if session is not None else "", redactor.text(asked.model) if asked is not None else ""
    return Checked(clean, exchange, tuple(findings), names=names)


def warm_up(rules: Sequence[Rule]) -> None:
    """Compile all patterns and judge a sample; safe in a thread.

    Patterns are compiled and some modules imported at their first use, which would hold up all traffic for 0.1 s. The
    reply of the sample has a claim, a number, code, the beginning of markup, and arguments that are no JSON.
    """
    compile_patterns()
    sample = Path(__file__).with_name("warm_up.json").read_bytes()
    exchange = replay(decode(decode_json(sample), "sample", "line 1"))
    if exchange is not None:
        Engine(rules).judge(exchange)


def _redacted(findings: Iterable[Finding], redactor: Redactor) -> list[Finding]:
    """Return findings without secrets, which the text of an exception or of the traffic may quote."""
    return [dataclasses.replace(finding, message=redactor.text(finding.message)) for finding in findings]


def with_faults(checked: Checked, faults: list[Finding]) -> Checked:
    return dataclasses.replace(checked, findings=(*checked.findings, *faults)) if faults else checked
