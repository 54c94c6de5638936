"""Telemetry of real processes: mitmdump with `wirelint_otlp`, the mock server behind it, a collector on loopback."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from tests.addon.build import result_of_record, with_model
from tests.build import Talk, User
from tests.live.forked import WITHOUT
from tests.live.harness import PATIENCE, Peer, Upstream, post, running
from tests.mock.client import PATHS, make_body
from tests.rules import mcp
from wirelint import __version__
from wirelint.addon.otlp import Telemetry
from wirelint.mock import MockServer

KINDS: dict[str, type[Any]] = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
KEY = "sk-proj-Zq8Ww3Rt7Yp2Lm5Nk9Vb4Xc6"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@dataclass
class Collector:
    """An OTLP/HTTP receiver that decodes what it gets. With `silent` it answers no request until it is closed."""

    silent: bool = False
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def take(self, peer: Peer) -> None:
        self.reached.set()
        if self.silent:
            self.released.wait(PATIENCE)
        else:
            document = MessageToDict(KINDS[peer.target].FromString(peer.body))
            self.requests.append((peer.target, peer.headers, document))
        peer.head(content_length="0")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def spans(self) -> list[dict[str, Any]]:
        """The spans in the order of their starts, with plain attributes."""
        found = [
            {**span, "attributes": plain(span)}
            for _, _, document in self.requests
            for resource in document.get("resourceSpans", ())
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
        return sorted(found, key=lambda span: int(span["startTimeUnixNano"]))

    @property
    def metrics(self) -> dict[str, list[tuple[float, dict[str, Any]]]]:
        """The last value of each counter and the last count of each histogram, with their attributes."""
        *_, last = (document for _, _, document in self.requests if "resourceMetrics" in document)
        metrics = [one for scope in last["resourceMetrics"][0]["scopeMetrics"] for one in scope["metrics"]]
        made: dict[str, list[tuple[float, dict[str, Any]]]] = {}
        for one in metrics:
            points = (one.get("sum") or one["histogram"])["dataPoints"]
            made[one["name"]] = [
                (float(point.get("asInt") or point.get("asDouble") or point.get("count") or 0), plain(point))
                for point in points
            ]
        return made


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a decoded span, event, point or resource as a dictionary."""

    def value(given: dict[str, Any]) -> Any:
        ((kind, found),) = given.items()
        if kind == "arrayValue":
            return [value(one) for one in found["values"]]
        return int(found) if kind == "intValue" else found

    return {one["key"]: value(one["value"]) for one in item.get("attributes", ())}


@contextlib.contextmanager
def collecting(*, silent: bool = False) -> Iterator[Collector]:
    collector = Collector(silent)
    upstream = Upstream(collector.take)
    collector.port = upstream.port
    yield collector
    collector.released.set()
    upstream.close()


def ask(port: int, api: str, *, stream: bool, fault: str = "", **headers: str) -> bytes:
    """One exchange with the mock server; the body of the reply, which must be complete."""
    usage: dict[str, Any] = {"stream_options": {"include_usage": True}} if api == "openai" and stream else {}
    body = {**make_body(api, stream=stream), **usage}
    body["messages"][0]["content"] += f" My key is {KEY}."
    fields = {"authorization": f"Bearer {KEY}", **({"x-wirelint-mock": fault} if fault else {}), **headers}
    reply = post(port, PATHS[api], body, fields)
    assert (reply.status, reply.complete) == (200, True)
    return reply.body


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """Return what a collector received of five exchanges by the end of the proxy."""
    with pytest.MonkeyPatch.context() as patch, collecting() as collector, MockServer(seed=7) as vendor:
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=abc")
        patch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # that of the clients
        with running(tmp_path_factory.mktemp("telemetry"), vendor.url, f"wirelint_otlp={collector.url}/") as proxy:
            parent = f"00-{TRACE}-{PARENT}-01"
            ask(proxy.port, "openai", stream=True, fault="xml-leak;dialect=kimi_k2", traceparent=parent)
            ask(proxy.port, "openai", stream=False, traceparent=parent)
            ask(proxy.port, "anthropic", stream=True)
            body = make_body("openai", stream=False)
            assert post(proxy.port, "/v1/chat/completions", body, {"x-wirelint-mock": "fault=nosuch"}).status == 400
            post(proxy.port, "/mcp", mcp.call("get_weather", id_=7), {"accept": "application/json, text/event-stream"})
            proxy.stop()
        yield collector


def test_each_exchange_is_a_span_by_the_conventions(collected: Collector) -> None:
    first, second, third, refused, tool = collected.spans
    assert {(span["name"], span["kind"]) for span in (first, second, third, refused)} == {
        ("chat some-model", "SPAN_KIND_CLIENT")
    }
    shown = first["attributes"]
    times = [shown.pop(f"{name}") for name in ("gen_ai.response.time_to_first_chunk", "wirelint.time_to_first_token")]
    length = (int(first["endTimeUnixNano"]) - int(first["startTimeUnixNano"])) / 1e9
    assert 0 < times[0] <= times[1] <= length
    assert shown.pop("gen_ai.usage.input_tokens") > 0
    assert shown.pop("gen_ai.usage.output_tokens") > 0
    assert shown.pop("gen_ai.response.id").startswith("chatcmpl-")
    assert shown.pop("gen_ai.conversation.id")
    assert shown.pop("wirelint.exchange.id")
    assert shown.pop("server.port") > 0
    assert shown == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "some-model",
        "gen_ai.request.stream": True,
        "gen_ai.response.model": "some-model",
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "127.0.0.1",
        "http.response.status_code": 200,
        "wirelint.end": "complete",
    }
    assert third["attributes"]["gen_ai.provider.name"] == "anthropic"
    assert "gen_ai.response.time_to_first_chunk" not in second["attributes"]
    assert refused["status"]["code"] == "STATUS_CODE_ERROR"
    assert refused["attributes"]["error.type"] == "invalid_request_error"
    assert "code" not in first.get("status", {})
    assert tool["name"] == "tools/call get_weather"
    assert tool["attributes"]["gen_ai.operation.name"] == "execute_tool"
    assert tool["attributes"]["jsonrpc.request.id"] == "7"


def test_every_name_is_one_of_the_conventions(collected: Collector) -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    used = {name for span in collected.spans for name in span["attributes"] if name.startswith("gen_ai.")}
    assert len(used) > 10
    assert used <= known


def test_findings_are_events_at_their_time(collected: Collector) -> None:
    first, second, *_ = collected.spans
    assert "events" not in second
    (event,) = first["events"]
    assert int(first["startTimeUnixNano"]) < int(event["timeUnixNano"]) < int(first["endTimeUnixNano"])
    assert (event["name"], plain(event)) == (
        "wirelint.finding",
        {
            "wirelint.rule.code": "LK101",
            "wirelint.rule.name": "xml-leak",
            "wirelint.severity": "error",
            "wirelint.layer": "gateway",
            "wirelint.message": "tool call get_weather leaked into the text as kimi_k2 markup",
        },
    )


def test_spans_join_the_trace_of_the_client(collected: Collector) -> None:
    first, second, third, refused, tool = collected.spans
    joined = [(span["traceId"], span.get("parentSpanId")) for span in (first, second)]
    assert joined == [(encoded(TRACE), encoded(PARENT))] * 2
    alone = [third, refused, tool]
    assert [span.get("parentSpanId") for span in alone] == [None, None, None]
    assert len({span["traceId"] for span in alone} | {encoded(TRACE)}) == 4


def encoded(hexadecimal: str) -> str:
    """Bytes as the JSON form of protobuf has them."""
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()


def test_metrics_count_what_the_spans_say(collected: Collector) -> None:
    metrics, spans = collected.metrics, collected.spans
    totals = {name: sum(value for value, _ in points) for name, points in metrics.items()}
    tokens = [
        sum(span["attributes"].get(f"gen_ai.usage.{side}_tokens", 0) for span in spans) for side in ("input", "output")
    ]
    assert totals == {
        "wirelint.exchanges": 5,
        "wirelint.findings": sum(len(span.get("events", ())) for span in spans),
        "wirelint.time_to_first_token": 2,
        "gen_ai.client.inference.duration": 4,
        "gen_ai.client.inference.time_to_first_chunk": 2,
        "gen_ai.client.inference.usage.input_tokens": tokens[0],
        "gen_ai.client.inference.usage.output_tokens": tokens[1],
        "gen_ai.client.operation.duration": 4,
        "gen_ai.client.token.usage": 6,
        "mcp.client.operation.duration": 1,
    }
    leak = [point for _, point in metrics["wirelint.findings"] if point["wirelint.rule.name"] == "xml-leak"]
    assert [(one["gen_ai.request.model"], one["wirelint.layer"]) for one in leak] == [("some-model", "gateway")]
    assert {point["gen_ai.token.type"] for _, point in metrics["gen_ai.client.token.usage"]} == {"input", "output"}


def test_every_request_names_the_service_and_carries_the_users_headers(collected: Collector) -> None:
    for _, headers, document in collected.requests:
        (kind,) = document
        resource = plain(document[kind][0]["resource"])
        assert (resource["service.name"], resource["service.version"]) == ("wirelint", __version__)
        assert headers["x-api-key"] == "abc"


def test_texts_are_exported_on_request_only_and_never_with_keys(collected: Collector, tmp_path: Path) -> None:
    assert "Paris" not in f"{collected.requests}"
    assert KEY not in f"{collected.requests}"
    with collecting() as collector, MockServer(seed=7) as vendor:
        options = (f"wirelint_otlp={collector.url}", "wirelint_otlp_content=on", "wirelint_redact=off")
        with running(tmp_path, vendor.url, *options) as proxy:
            ask(proxy.port, "openai", stream=True)
            proxy.stop()
    (span,) = collector.spans
    assert "Paris" in span["attributes"]["gen_ai.input.messages"]
    assert span["attributes"]["gen_ai.output.messages"].startswith('[{"role":"assistant","parts":[{"type":')
    assert "[redacted:" in span["attributes"]["gen_ai.input.messages"]
    assert KEY not in f"{collector.requests}"


@pytest.mark.parametrize("silent", [False, True], ids=["away", "silent"])
def test_a_collector_that_does_not_answer_costs_telemetry_only(
    silent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")  # several attempts before the end
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")  # the SDK itself would wait for so long
    with collecting(silent=True) as collector, MockServer(seed=7) as vendor, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        url = collector.url if silent else f"http://127.0.0.1:{taken.getsockname()[1]}"
        with running(tmp_path, vendor.url, f"wirelint_otlp={url}") as proxy:
            whole = ask(proxy.port, "openai", stream=False)
            if silent:
                assert collector.reached.wait(PATIENCE)
            else:
                proxy.wait_for("telemetry does not arrive: .*Connection refused")
            replies = [ask(proxy.port, "openai", stream=False) for _ in range(3)]
            log = proxy.stop()
            assert not collector.released.is_set(), "the proxy ended while the collector was still silent"
    assert all(len(reply) > 100 for reply in (whole, *replies))
    assert len(proxy.records()) == 4
    lines = [line for line in log.splitlines() if "telemetry" in line]
    assert len(lines) == 1, lines
    reason = "the collector did not take the last batch within 2 s" if silent else "[Errno 111] Connection refused"
    assert f"wirelint_otlp={url}: telemetry does not arrive: {reason}; " in lines[0]
    assert "Traceback" not in log
    assert proxy.process.returncode == 0


def test_without_the_extra_one_line_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITHOUT, "opentelemetry")
    with MockServer(seed=7) as vendor, running(tmp_path, vendor.url, "wirelint_otlp=http://127.0.0.1:9") as proxy:
        proxy.wait_for(r"no telemetry is exported; .*pip install 'wirelint\[otel\]'")
        assert ask(proxy.port, "openai", stream=True)
        log = proxy.stop()
    assert log.count("telemetry") == 1
    assert "Traceback" not in log
    assert len(proxy.records()) == 1


def test_names_in_metrics_are_bounded() -> None:
    """A client that invents models fills neither the memory nor the room for the names of rules."""
    record = Talk((User("Hi"),), text="<think>Hm.</think>Hi").record("openai.chat", False)
    checked = result_of_record(record, rules=("think-leak",))
    problems: list[str] = []
    with collecting() as collector:
        telemetry = Telemetry(collector.url, problems.append)
        for number in range(250):
            telemetry.put(with_model(checked, f"model-{number}"))
        telemetry.close(PATIENCE)
    assert not problems
    assert len(collector.spans) == 250
    points = collector.metrics["wirelint.findings"]
    assert sum(value for value, _ in points) == 250
    assert len({point["gen_ai.request.model"] for _, point in points}) == 201
    assert {point["wirelint.rule.name"] for _, point in points} == {"think-leak"}
