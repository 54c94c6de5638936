"""Flows and recorders for the tests of the addon."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import brotli
import zstandard
from mitmproxy import http
from mitmproxy.test import taddons, tflow

from tests.build import REGISTRY, Talk, as_record, chunk, sse
from tests.fakes import Clock
from wirelint.addon.addon import Inspector
from wirelint.addon.annotate import judge, read
from wirelint.addon.log import Failures
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.streamed_reply import HttpReply
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.engine import Engine, Session, lower
from wirelint.model import End
from wirelint.settings import Scopes

CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "zstd": zstandard.ZstdCompressor().compress,
}
"""What encodes a body, by its content-encoding."""


HEAD = sse(chunk({"role": "assistant", "content": ""}), done=False).encode()
BEGUN = sse(chunk({"content": "Once upon"}), done=False).encode()
OVER = sse(chunk({"content": " a time."}), chunk({}, "stop")).encode()
"""A stream in three pieces."""

CUT = Talk().record("openai.chat", True)
CUT["response"]["body"] = sse(chunk({"content": "half"}), done=False)
"""A stream that ends too early."""

NAME = "3f2a9c11-0000"


def recorder_of(
    record: Mapping[str, Any],
    limit: int = 1 << 20,
    clock: Clock | None = None,
    name: str = NAME,
    rules: Scopes | None = None,
    flow: http.HTTPFlow | None = None,
    failures: Failures | None = None,
) -> ExchangeRecorder:
    """A recorder whose request has been read."""
    made, clock = as_record(record), clock or Clock()
    session = Session.begin(
        id=name,
        method=made.method,
        url=made.url,
        headers=lower(made.request_headers),
        body=made.request_body or b"",
    )
    return ExchangeRecorder(
        flow=flow or tflow.tflow(resp=True),
        failures=failures or Failures(),
        id=name,
        method=made.method,
        url=made.url,
        request_headers=made.request_headers,
        request_body=made.request_body,
        session=session,
        started=1767225600.0,
        rules=rules or Scopes.over(REGISTRY.rules),
        limit=limit,
        clock=clock,
        clock_start=clock(),
    )


def feed(recorder: ExchangeRecorder, data: bytes, at: float) -> None:
    """Bytes of a body without codings arrive at this time."""
    if recorder.store(data) and recorder.session is not None:
        recorder.session.feed(data, at)


def result_of_record(
    record: Mapping[str, Any],
    end: End = "complete",
    error: str | None = None,
    rules: tuple[str, ...] = (),
    engine: Engine | None = None,
    name: str = NAME,
) -> Checked:
    """The result on an exchange that passed in one piece."""
    chosen = Scopes.over(REGISTRY.select(rules))
    made, recorder = as_record(record), recorder_of(record, rules=chosen, name=name)
    if made.status is not None:
        recorder.respond(made.status, made.response_headers)
        feed(recorder, made.response_body or b"", 420.0)
    return judged(recorder, engine or Engine(chosen), end, error)


def judged(recorder: ExchangeRecorder, engine: Engine, end: End = "complete", error: str | None = None) -> Checked:
    """The result on an exchange that has ended after 1.84 seconds."""
    recorder.end, recorder.error, recorder.duration = end, error, 1840.0
    return judge(recorder, read(recorder, Redactor(b"key")), engine, Redactor(b"key"))


def with_model(checked: Checked, model: str) -> Checked:
    """The result on an exchange with another model."""
    exchange = checked.exchange
    assert exchange is not None
    assert exchange.request is not None
    request = dataclasses.replace(exchange.request, model=model)
    return dataclasses.replace(checked, exchange=dataclasses.replace(exchange, request=request))


def flow_of(record: Mapping[str, Any], *, live: bool = True) -> http.HTTPFlow:
    """A flow with the request of a record; its reply is still to come, unless it is not live."""
    made = as_record(record)
    headers: dict[str | bytes, str | bytes] = dict(made.request_headers)
    flow = tflow.tflow()
    flow.request = http.Request.make(made.method, made.url, made.request_body or b"", headers)
    flow.live = live
    if not live:
        flow.response = head_of(record)
        flow.response.raw_content = made.response_body
    return flow


def head_of(record: Mapping[str, Any]) -> http.Response:
    made = as_record(record)
    response = http.Response.make(made.status or 200, b"", dict(made.response_headers))
    response.headers.pop("content-length", None)
    response.raw_content = None
    return response


@contextlib.contextmanager
def inspecting(*addons: Any, **options: str) -> Iterator[tuple[Inspector, Any]]:
    """The addon behind others in a context of mitmproxy, with these options; without more it captures nothing."""
    inspector = Inspector()
    with taddons.context(*addons, inspector) as context:
        context.configure(inspector, **{"wirelint_captures": "", **options})
        yield inspector, context
        inspector.done()


def loaded(inspector: Inspector, flow: http.HTTPFlow) -> http.HTTPFlow:
    """The flow of a file after all hooks that mitmproxy calls for it."""
    with taddons.context(Inspector()) as context:
        asyncio.run(context.cycle(inspector, flow))
    return flow


def captured(inspector: Inspector, tmp_path: Path) -> list[dict[str, Any]]:
    """The lines of the captures after the addon has finished."""
    inspector.done()
    lines = [line for path in tmp_path.glob("captures/*/exchanges.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def pass_head(inspector: Inspector, flow: http.HTTPFlow, response: http.Response) -> http.Response:
    """The response, after the request and its head have passed."""
    inspector.request(flow)
    flow.response = response
    inspector.responseheaders(flow)
    return response


def ended(inspector: Inspector, record: Mapping[str, Any]) -> http.HTTPFlow:
    flow = pass_through(inspector, record)
    inspector.response(flow)
    return flow


def pass_through(inspector: Inspector, record: Mapping[str, Any]) -> http.HTTPFlow:
    """A flow whose streamed reply has passed without repairs, up to its last byte."""
    flow = flow_of(record)
    response = pass_head(inspector, flow, head_of(record))
    assert isinstance(response.stream, HttpReply)
    body = as_record(record).response_body or b""
    assert response.stream(body) == body
    return flow
