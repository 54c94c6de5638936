"""Telemetry: a span and metrics for each ended exchange, sent to a collector over OTLP/HTTP by OpenTelemetry's SDK.

Theory of operation. `Telemetry.put` adds a checked exchange to a queue and returns at once. A thread imports the SDK
(which takes half a second), turns exchanges into spans and measurements, and hands these to the SDK's batch processor
and metric reader, whose threads send them. Both queues are bounded: while the collector is away, the newest exchanges
(here) and the oldest spans (there) are dropped. The first problem of a run is logged, later ones are not. At the end of
a run `close` waits a bounded time for the last batch.

Names follow the semantic conventions for generative AI, release 0.1.0 (`lexicon/telemetry.toml`), and those for MCP for
exchanges with tool servers. A span is the child of the `traceparent` header of the request; without that header it is
a trace of its own. Texts of messages are exported on request only. All texts are redacted, and encoded as UTF-8 without
surrogates, since one text that cannot be encoded would cost its whole batch.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from wirelint import __version__, lexicon, model
from wirelint.apis import channel_of
from wirelint.apis.traits import history_of, traits
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.jsonvalues import mapping
from wirelint.model import Exchange, Json, Part, Rpc, ToolCall, ToolResult
from wirelint.prices import Tokens, tokens_of
from wirelint.rule import Finding
from wirelint.text.escaping import excerpt, printable, shorten
from wirelint.text.families import provider_of

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from requests import Session

CURE = "install OpenTelemetry's SDK with pip install 'wirelint[otel]'"
FLUSH = 2.0
"""Seconds that the end of a run waits for the collector."""

_MOST_WAITING, _MOST_NAMES = 256, 200
"""Exchanges that wait for the thread; different texts in one attribute of metrics (models, servers, tools, rules …)."""
_MOST_NAME, _MOST_TEXT, _MOST_CONTENT = 120, 4_000, 64_000
"""Most characters of an attribute, of a text in exported messages, and of all exported messages of one side."""
_MOST_HELD = 512
"""Spans with messages that wait for the collector; an eighth of them is one request, of at most 10 MB."""
_MOST_COUNT = 1 << 53
_OTHER = "_OTHER"
_CODE = re.compile(r"-?\w[\w.:-]{0,63}", re.ASCII)
_SYSTEM_ERROR = re.compile(r"\[Errno -?\d+\] [\w ]+")
_TABLE = lexicon.load("telemetry")

Value = str | bool | int | float | Sequence[str]
Attributes = dict[str, Value]
Measurement = tuple[str, float, Attributes]
"""Name of an instrument, value, attributes."""


@dataclass(frozen=True, slots=True)
class Span:
    """The telemetry of one exchange. Times are in nanoseconds since 1970.

    `headers` are those of the request, for its trace context. `events` are the findings as (time, attributes). `error`
    describes a failure, if there was one.
    """

    name: str
    start: int
    end: int
    headers: Mapping[str, str]
    attributes: Attributes
    events: tuple[tuple[int, Attributes], ...]
    error: str | None
    measurements: tuple[Measurement, ...]


# --- thread -----------------------------------------------------------------------------------------------------------


class Telemetry:
    """Exporter of ended exchanges to the collector at a base URL (`http://127.0.0.1:4318`). `report` logs one line."""

    def __init__(self, url: str, report: Callable[[str], None], *, content: bool = False) -> None:
        self._url, self._report, self._content = url, report, content
        self._redactor = Redactor()  # also with `wirelint_redact=off`: nobody means to send keys elsewhere
        self._waiting: SimpleQueue[Checked | None] = SimpleQueue()
        self._reported = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="wirelint-otlp", daemon=True)
        self._thread.start()

    def put(self, checked: Checked) -> None:
        """Export an exchange that has ended. Returns at once."""
        if not self._thread.is_alive():
            return
        if self._waiting.qsize() >= _MOST_WAITING:
            self._complain("too many exchanges at one time")
        else:
            self._waiting.put(checked)

    def close(self, wait: float = FLUSH) -> None:
        """Send what waits, for at most `wait` seconds; the rest is lost if the process ends then."""
        self._waiting.put(None)
        self._thread.join(wait)
        if wait and self._thread.is_alive():
            self._complain(f"the collector did not take the last batch within {wait:g} s")

    def _run(self) -> None:
        try:
            sdk = _Sdk(self._url, self._complain, content=self._content)
        except ImportError:
            self._report(f"wirelint_otlp={self._url}: no telemetry is exported; {CURE}")
            return
        except Exception as error:  # fail open: a wrong certificate file, a wrong environment variable
            self._complain(f"{type(error).__name__}: {error}")
            return
        while (checked := self._waiting.get()) is not None:
            try:
                self._redactor.learn(checked.record.request_headers, checked.record.url)
                if (span := describe(checked, self._redactor, content=self._content)) is not None:
                    sdk.export(span)
            except Exception as error:  # fail open: the next exchange is exported
                self._complain(f"{type(error).__name__}: {error}")
        sdk.close()

    def _complain(self, reason: str) -> None:
        """Log the first problem of a run."""
        with self._lock:
            known, self._reported = self._reported, True
        if not known:
            found = _SYSTEM_ERROR.search(reason)  # the libraries' texts around it are long
            reason = excerpt(found[0] if found is not None else reason, 200)
            self._report(
                f"wirelint_otlp={self._url}: telemetry does not arrive: {reason}; traffic is not affected; "
                "check the URL and the collector (logged once)"
            )


class _Sdk:
    """The SDK with its exporters. Raises ImportError without the extra `otel`.

    Nothing is registered globally, because other addons of the process may use OpenTelemetry too. The log of the SDK
    goes to `complain`: mitmproxy would stop at an error that is logged during its start.
    """

    def __init__(self, url: str, complain: Callable[[str], None], *, content: bool) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._log, self._handler = logging.getLogger("opentelemetry"), _Complaints(complain)
        self._log.propagate = False
        self._log.addHandler(self._handler)
        own = Resource.create().merge(Resource({"service.name": "wirelint", "service.version": __version__}))
        resource = own.merge(OTELResourceDetector().detect())  # OTEL_SERVICE_NAME wins
        self._spans: TracerProvider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(f"{url}/v1/traces", session=_session(url))
        sizes = (_MOST_HELD, _MOST_HELD // 8) if content else (None, None)  # else those of OTEL_BSP_…
        self._spans.add_span_processor(
            BatchSpanProcessor(exporter, max_queue_size=sizes[0], max_export_batch_size=sizes[1])
        )
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics", session=_session(url)))
        self._metrics: MeterProvider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._spans.get_tracer("wirelint", __version__)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        meter = self._metrics.get_meter("wirelint", __version__)
        self._record: dict[str, Callable[[float, Attributes], None]] = {}
        for name, row in _TABLE["metrics"].items():
            about = name, row["unit"], row["description"]
            if row["kind"] == "counter":
                self._record[name] = meter.create_counter(*about).add
            else:
                bounds = _TABLE[row["kind"]]
                self._record[name] = meter.create_histogram(*about, explicit_bucket_boundaries_advisory=bounds).record
        self._handler.is_built = True

    def export(self, span: Span) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract(span.headers, Context())
        made = self._tracer.start_span(span.name, parent, SpanKind.CLIENT, span.attributes, start_time=span.start)
        for at, attributes in span.events:
            made.add_event("wirelint.finding", attributes, at)
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(span.end)
        for name, value, attributes in span.measurements:
            self._record[name](value, {key: self._bounded(key, one) for key, one in attributes.items()})

    def _bounded(self, key: str, value: Value) -> Value:
        """Return an attribute of a metric; `_OTHER` for new texts beyond `_MOST_NAMES`: the SDK keeps each forever."""
        names = self._names[key]
        if not isinstance(value, str) or value in names:
            return value
        if len(names) >= _MOST_NAMES:
            return _OTHER
        names.add(value)
        return value

    def close(self) -> None:
        """Send the last batches, spans and metrics side by side, so that neither waits for the other."""
        thread = threading.Thread(target=self._metrics.shutdown, name="wirelint-otlp-metrics", daemon=True)
        thread.start()
        self._spans.shutdown()
        thread.join()
        self._log.removeHandler(self._handler)
        self._log.propagate = not any(isinstance(one, _Complaints) for one in self._log.handlers)


class _Complaints(logging.Handler):
    """Log handler that passes warnings and errors of the SDK on as text.

    Until `is_built`, only those of the thread that builds the SDK: its reader of metrics starts a thread before the
    provider knows it, and with a short interval this thread complains.
    """

    def __init__(self, complain: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._complain = complain
        self._builder, self.is_built = threading.get_ident(), False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.is_built and record.thread != self._builder:
            return
        cause = record.exc_info[1] if record.exc_info else None
        self._complain(record.getMessage() if cause is None else f"{record.getMessage()} {cause}")


def _session(url: str) -> Session | None:
    """Return a session without the proxy of the environment for a collector on this machine; None for the SDK's own.

    In a shell whose `HTTP_PROXY` names mitmproxy, telemetry would pass through the proxy that it is about.
    """
    if provider_of(urlsplit(url).hostname or "") != "local":
        return None
    from requests import Session

    session = Session()
    session.trust_env = False
    return session


# --- content of a span ------------------------------------------------------------------------------------------------


class _Operation(NamedTuple):
    """The operation of an exchange. `dimensions` are attributes of its span and its metrics, `details` of its span.

    `measured`: instruments and values, with the dimensions and these attributes. `durations`: instruments that get the
    whole time, with the error beside the dimensions.
    """

    name: str
    dimensions: Attributes
    details: Attributes
    durations: Sequence[str]
    measured: Sequence[Measurement] = ()


def describe(checked: Checked, redactor: Redactor, *, content: bool = False) -> Span | None:
    """Return the span of an exchange, with texts (`content`); None for an unknown API or MCP without a method."""
    checked = checked.folded
    record, exchange = checked.record, checked.exchange
    if not checked.api or record.timing.started is None:
        return None
    start, duration = int(record.timing.started * 1e9), record.timing.duration
    end = start + int(duration * 1e6) if duration is not None else max(start, time.time_ns())
    operation = (_tool_operation if channel_of(checked.api) == "mcp" else _model_operation)(checked)
    if operation is None:
        return None
    dimensions, (host, port), error = operation.dimensions, _split(record.url), _error_type(checked)
    if host:
        dimensions = {**dimensions, "server.address": _text(host), "server.port": port}
    failed = dimensions if error is None else {**dimensions, "error.type": error}
    ids = {"wirelint.exchange.id": record.id, "wirelint.end": record.end}
    attributes = {**dimensions, **operation.details, **ids}
    if record.status is not None:
        attributes["http.response.status_code"] = record.status
    if record.fixes:
        attributes["wirelint.fixes"] = list(dict.fromkeys(fix.name for fix in record.fixes))
    if checked.known:
        attributes["wirelint.findings.known"] = len(checked.known)
    attributes |= failed
    if content and exchange is not None:
        attributes |= _content(exchange, redactor)
    return Span(
        name=operation.name,
        start=start,
        end=end,
        headers=exchange.request_headers if exchange is not None else {},
        attributes=attributes,
        events=tuple(_events(checked, start, end, redactor)),
        error=None if error is None else _text(redactor.text(record.error or "")) or error,
        measurements=(
            *((name, (end - start) / 1e9, failed) for name in operation.durations),
            *((name, value, {**dimensions, **more}) for name, value, more in operation.measured),
            ("wirelint.exchanges", 1, failed),
            *(("wirelint.findings", 1, {**dimensions, **_rule(one)}) for one in checked.findings),
        ),
    )


def _model_operation(checked: Checked) -> _Operation:
    exchange, timing = checked.exchange, checked.record.timing
    request, reply = (exchange.request, exchange.reply) if exchange is not None else (None, None)
    name = _TABLE["operations"].get(checked.api, "chat")
    shared: Attributes = {"gen_ai.operation.name": name, "gen_ai.provider.name": _provider(checked)}
    if asked := _text(request.model if request is not None else checked.model):
        shared["gen_ai.request.model"] = asked
    if reply is not None and reply.model:
        shared["gen_ai.response.model"] = _text(reply.model)
    reasons = [_text(choice.finish_reason or "error") for choice in reply.choices] if reply is not None else []
    told: dict[str, Value | None] = {
        "gen_ai.conversation.id": _text((exchange.conversation if exchange is not None else None) or ""),
        "gen_ai.request.stream": request is not None and request.stream,
        "gen_ai.response.id": _text((reply.id if reply is not None else None) or ""),
        "gen_ai.response.finish_reasons": reasons if traits(checked.api).has_finish_reason else None,
    }
    details = {label: value for label, value in told.items() if value}
    made: list[Measurement] = []
    times = (timing.first_byte, timing.first_token) if checked.streamed else ()
    for (label, metric), time_ms in zip(_TABLE["first_times"].items(), times, strict=False):
        if time_ms is not None:
            details[label] = time_ms / 1e3
            made.append((metric, time_ms / 1e3, {}))
    tokens = tokens_of(reply.usage) if reply is not None else None
    for side, count in (("input", tokens.input), ("output", tokens.output)) if tokens is not None else ():
        # A vendor that counts one side only leaves 0 at the other.
        if count < _MOST_COUNT and (count or tokens == Tokens()):
            details[f"gen_ai.usage.{side}_tokens"] = count
            unknown: Attributes = {"gen_ai.token.modality": "unknown"}
            made.append((f"gen_ai.client.inference.usage.{side}_tokens", count, unknown))
            made.append(("gen_ai.client.token.usage", count, {"gen_ai.token.type": side}))
    durations = "gen_ai.client.inference.duration", "gen_ai.client.operation.duration"
    return _Operation(f"{name} {asked}".rstrip(), shared, details, durations, made)


def _tool_operation(checked: Checked) -> _Operation | None:
    """Return the operation of an exchange with a tool server (MCP): its first message that has a method."""
    exchange = checked.exchange
    if exchange is None or exchange.request is None:
        return None
    headers = exchange.request_headers
    for part in exchange.request.parts:
        match part:
            case ToolCall(id_, name, _):
                method, target = "tools/call", _text(name or "")
                more: Attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": target}
            case Rpc("request" | "notification", id_, name, _):
                method, target, more = _text(name), "", {}
            case _:
                continue
        details: Attributes = {"jsonrpc.request.id": _text(id_.strip('"'))} if id_ is not None else {}
        details |= {name: _text(headers[key]) for key, name in _TABLE["mcp_headers"].items() if key in headers}
        shared: Attributes = {"mcp.method.name": method, **more}
        return _Operation(f"{method} {target}".rstrip(), shared, details, ("mcp.client.operation.duration",))
    return None


def _provider(checked: Checked) -> str:
    """Return the well-known name of the provider: by its host, else by the API, which is that of its first vendor."""
    host = _split(checked.record.url)[0]
    name = provider_of(host)
    if name in ("local", host.lower().rstrip(".")):
        name = checked.api.partition(".")[0]
    return _text(_TABLE["providers"].get(name, name))


def _split(url: str) -> tuple[str, int]:
    """Return host and port of a URL; an empty host for a URL that cannot be read."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or (443 if parts.scheme in ("https", "wss") else 80)
    except ValueError:
        return "", 0


def _error_type(checked: Checked) -> str | None:
    """Return the class of an exchange's failure, a word of few values; None if it did not fail.

    The provider's own code counts first (`rate_limit_error`), then the status (`503`), then the end of the connection
    (`upstream-died`, `client-left`). For tool servers: the JSON-RPC code, or `tool_error`.
    """
    record, reply = checked.record, checked.exchange.reply if checked.exchange is not None else None
    parts = reply.parts if reply is not None else []
    answers = [part.value for part in parts if isinstance(part, Rpc) and part.form == "error"]
    for error in [reply.error if reply is not None else None, *answers]:
        if error is not None:
            return _error_code(error)
    if record.status is not None and record.status >= 400:
        return f"{record.status}"
    if any(isinstance(part, ToolResult) and part.is_error for part in parts) and channel_of(checked.api) == "mcp":
        return "tool_error"
    return record.end if record.end in ("client-left", "upstream-died") else None


def _error_code(error: Json) -> str:
    found = {**mapping(error), **mapping(mapping(error).get("error"))}
    words = [found[key] for key in ("code", "type", "status") if isinstance(found.get(key), str)]
    numbers = [found[key] for key in ("code", "status") if isinstance(found.get(key), int)]
    return next((f"{word}" for word in (*words, *numbers) if _CODE.fullmatch(f"{word}")), _OTHER)


def _events(checked: Checked, start: int, end: int, redactor: Redactor) -> Iterator[tuple[int, Attributes]]:
    """Yield the findings that no earlier exchange had, each at the time of its event in the stream, else at the end."""
    exchange = checked.exchange
    for finding in checked.findings:
        event = finding.event if finding.side == "response" else None
        at = exchange.arrivals.at(event) if exchange is not None and event is not None else None
        message = _text(redactor.text(finding.message), _MOST_TEXT)
        yield (start + int(at * 1e6) if at is not None else end), {**_rule(finding), "wirelint.message": message}


def _rule(finding: Finding) -> Attributes:
    return {
        "wirelint.rule.code": finding.code,
        "wirelint.rule.name": finding.name,
        "wirelint.severity": finding.severity,
        "wirelint.layer": finding.layer,
    }


# --- messages ---------------------------------------------------------------------------------------------------------


def _content(exchange: Exchange, redactor: Redactor) -> Attributes:
    request, reply = exchange.request, exchange.reply
    if channel_of(exchange.api) == "mcp":
        asked, replied = request.parts if request is not None else [], reply.parts if reply is not None else []
        sent = next((part for part in asked if isinstance(part, ToolCall)), None)
        back = next((part for part in replied if isinstance(part, ToolResult)), None)
        made: Attributes = {}
        if sent is not None:
            made["gen_ai.tool.call.arguments"] = _json(_part(sent, redactor)["arguments"])
        if back is not None and not back.is_error:
            made["gen_ai.tool.call.result"] = _json(_part(back, redactor)["response"])
        return made

    def parts(role: str, parts: Iterable[Part], **more: Json) -> dict[str, Json]:
        return {"role": role, "parts": [_part(part, redactor) for part in parts], **more}

    place = history_of(exchange.api).place
    messages = request.messages if request is not None else ()
    choices = reply.choices if reply is not None else ()
    apart = [one for one in messages if one.role == "system" and not one.pointer.startswith(place)]
    rest = [one for one in messages if one not in apart]
    answers = (parts("assistant", one.parts, finish_reason=one.finish_reason or "error") for one in reversed(choices))
    texts = {
        "gen_ai.system_instructions": _newest(_part(part, redactor) for one in apart[::-1] for part in one.parts[::-1]),
        "gen_ai.input.messages": _newest(parts(one.role, one.parts) for one in reversed(rest)),
        "gen_ai.output.messages": _newest(answers),
    }
    return {name: text for name, text in texts.items() if text != "[]"}


def _newest(items: Iterable[Json]) -> str:
    """Return a JSON array of the first items, the newest ones, in reversed order: the end of a long conversation."""
    made: list[str] = []
    size = 0
    for item in items:
        text = _json(item)
        size += len(text)
        if made and size > _MOST_CONTENT:
            break
        made.append(text)
    return f"[{','.join(reversed(made))}]"


def _part(part: Part, redactor: Redactor) -> dict[str, Json]:
    """Return a part of a message in the form of the conventions. Files and images are named only."""

    def text(value: str) -> str:
        return shorten(redactor.text(value), _MOST_TEXT)

    match part:
        case model.Text(words):
            return {"type": "text", "content": text(words)}
        case model.Reasoning(words):
            return {"type": "reasoning", "content": text(words)}
        case model.Refusal(words):
            return {"type": "refusal", "content": text(words)}
        case ToolCall(id_, name, given):
            whole = given.value if len(given.text) <= _MOST_TEXT else None
            value = redactor.json(whole) if whole is not None else text(given.text)
            return {"type": "tool_call", "id": id_, "name": name or "", "arguments": value}
        case ToolResult(id_, words):
            return {"type": "tool_call_response", "id": id_, "response": text(words)}
        case model.HostedCall(id_, name):
            return {"type": "server_tool_call", "id": id_, "name": name or "", "server_tool_call": {"type": name or ""}}
        case model.HostedResult(id_):
            return {"type": "server_tool_call_response", "id": id_, "server_tool_call_response": {"type": part.kind}}
        case model.Opaque(kind):
            return {"type": kind or "unknown"}
        case Rpc():
            return {"type": "rpc"}


def _json(value: Json) -> str:
    return _utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _text(value: str, most: int = _MOST_NAME) -> str:
    """Return a text from the wire as the value of an attribute: escaped, of bounded length."""
    return _utf8(shorten(printable(shorten(value, most)), most))


def _utf8(text: str) -> str:
    """Return a text without lone surrogates, which protobuf refuses."""
    return text.encode("utf-8", "replace").decode()
