"""What a real run writes: the same verdict from every file that holds it, no secrets, and little lost to a kill."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import h11
from mitmproxy import http
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.io import FlowReader

from tests.build import REGISTRY, Call, Talk, User, as_record, chunk, schema, some, sse
from tests.live.harness import CHUNKED, SCRIPT, Client, Peer, Proxy, Upstream, post, replying, running, scripted
from tests.selection import sampled
from wirelint.capture.format import changes
from wirelint.capture.offline import Checked, Fixed, check, fix
from wirelint.capture.readers import read
from wirelint.capture.record import Record
from wirelint.capture.replay import mended, replay
from wirelint.capture.writers import write
from wirelint.rule import Finding

KEY = "sk-proj-Zq8Yw3Rt6Uv1Nm4Kc9Pd2Lf7Hb5Gx0S"
PASSWORD = "correct-horse-battery-42"
LEAKY = Talk(
    history=(User(f"Deploy with the key {KEY}, please."),),
    text=f"I pass {KEY} on.",
    calls=(Call("deploy", {"api_key": KEY, "replicas": "three"}), Call("nobody_declared_this", {"password": PASSWORD})),
    tools={"deploy": schema(api_key="string", replicas="integer")},
)
CUT = sse(chunk({"role": "assistant", "content": "Ünder way ☂"}), done=False).encode()


def specials() -> Iterator[tuple[str, dict[str, Any]]]:
    for api in ("openai.chat", "anthropic.messages"):
        for stream in (True, False):
            yield f"secrets {api} {stream}", LEAKY.record(api, stream)
    refused = Talk(status=429).record("openai.chat", False)
    refused["response"]["body"] = json.dumps({"error": {"message": f"key {KEY} is over its limit"}})
    yield "refused", refused


def exchanges() -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything the rules have examples of, and what captures could trip over."""
    silent = sampled(REGISTRY.rules, 12)
    for rule in REGISTRY.rules:
        earlier: Any = rule.example.fires.get("prior", ())
        for number, prior in enumerate(earlier):
            yield f"{rule.name} {number}", dict(prior)
        yield f"{rule.name} fires", dict(rule.example.fires)
        if rule in silent:
            yield f"{rule.name} is silent", dict(rule.example.silent)
    yield from specials()


def drive(
    proxy: Proxy,
    upstream: Upstream,
    name: str,
    record: dict[str, Any],
    body: bytes | None = None,
    *,
    repaired: bool = False,
) -> None:
    """Sends the request of a record through the proxy; the upstream answers with the record's reply.

    `repaired`: what comes back may be another one.
    """
    made = as_record(record)
    reply = body if body is not None else made.response_body or b""
    headers = {name.replace("-", "_"): value for name, value in made.response_headers}
    upstream.scripts[name] = replying(
        [reply[:50], reply[50:]] if reply[50:] else [reply], made.status or 200, **headers
    )
    path = made.url.split("://", 1)[1]
    extra = {"authorization": f"Bearer {KEY}", "x-test-id": name, SCRIPT: name}
    sent = made.request_body or b""
    answer = post(proxy.port, f"/{path.split('/', 1)[1]}", sent, {**dict(made.request_headers), **extra})
    assert answer.complete
    assert repaired or answer.body == reply


def drive_all(proxy: Proxy, upstream: Upstream) -> int:
    examples = list(exchanges())
    for name, record in examples:
        drive(proxy, upstream, name, record, repaired=True)
    plain = Talk(text="squeezed <b>text</b>").record("openai.chat", True)
    squeezed = gzip.compress(plain["response"]["body"].encode())
    plain["response"]["headers"]["content-encoding"] = "gzip"
    drive(proxy, upstream, "gzip", plain, squeezed, repaired=True)
    del plain["response"]["headers"]["content-encoding"]
    torn = CUT + b'data: {"choices": [\xff\n\ndata: [DONE]\n\n'
    drive(proxy, upstream, "no UTF-8", plain, torn, repaired=True)
    plain["response"]["headers"]["content-encoding"] = "gzip"
    drive(proxy, upstream, "not gzip", plain, b"plain after all, and long enough to be cut in two pieces")
    upstream.scripts["cut off"] = scripted(CHUNKED, CUT, Peer.close)
    upstream.scripts["client leaves"] = scripted(CHUNKED, CUT, Peer.wait_for_close, Peer.close)
    for name in ("cut off", "client leaves"):
        headers = {"x-test-id": name, SCRIPT: name}
        with Client(proxy.port) as client, contextlib.suppress(h11.RemoteProtocolError):
            client.ask("/v1/chat/completions", as_record(plain).request_body or b"", headers)
            client.head()
            client.read_at_least(len(CUT))
            if name == "cut off":
                client.rest()
        proxy.wait_for_record(name)
    return len(examples) + 5


def bare(finding: Finding | dict[str, Any]) -> tuple[Any, ...]:
    given = finding if isinstance(finding, dict) else {name: getattr(finding, name) for name in Finding.__slots__}
    return tuple(given[name] for name in ("code", "severity", "layer", "side", "pointer", "event", "message"))


def judged(path: Path) -> list[list[tuple[Any, ...]]]:
    found = []
    for item in check(read([str(path)]), REGISTRY.rules):
        assert isinstance(item, Checked), item
        found.append([bare(finding) for finding in item.findings])
    return found


def har(flows: Path, folder: Path) -> Path:
    """The file that mitmproxy's own addon makes of flows."""
    out = folder / "made.har"
    out.write_text(json.dumps(SaveHar().make_har(list(read_flows(flows)))))
    return out


def test_every_file_gives_the_verdict_and_the_repairs_of_the_live_run(upstream: Upstream, tmp_path: Path) -> None:
    saved = tmp_path / "saved.mitm"
    options = ("wirelint_captures=caught", "wirelint_fix=unsafe", f"save_stream_file={saved}")
    with running(tmp_path, upstream.url, *options) as proxy:
        # `wait_for_record` looks below `captures`.
        (proxy.folder / "captures").symlink_to(proxy.folder / "caught")
        count = drive_all(proxy, upstream)
        proxy.stop()
        folder = next((tmp_path / "caught").iterdir())
    lines = [json.loads(line) for line in (folder / "exchanges.jsonl").read_text().splitlines()]
    live = [[bare(finding) for finding in line["findings"]] for line in lines]
    assert len(live) == count
    assert sum(map(bool, live)) >= 3, "nothing was found, so nothing was compared"
    assert judged(folder / "exchanges.jsonl") == live
    assert judged(folder / "flows.mitm") == live
    # HAR is text: of bytes that are none, something is lost there.
    textual = [line["request"]["headers"]["x-test-id"] != "no UTF-8" for line in lines]
    exported = judged(har(folder / "flows.mitm", tmp_path))
    assert list(itertools.compress(exported, textual)) == list(itertools.compress(live, textual))

    # What mitmproxy saves itself has the secrets in it.
    harmless = [not line["request"]["headers"]["x-test-id"].startswith("secrets") for line in lines]
    assert list(itertools.compress(judged(saved), harmless)) == list(itertools.compress(live, harmless))
    changed = [record for record in records(folder / "exchanges.jsonl") if record.fixes]
    assert len(changed) >= 3, "nothing was repaired, so nothing was compared"
    for path in (folder / "flows.mitm", saved):
        both = {record.id: sides(record) for record in records(path) if record.fixes}
        assert both.keys() == {record.id for record in changed}
        for record in changed if path != saved else ():
            assert both[record.id] == sides(record)

    written = b"".join(path.read_bytes() for path in folder.iterdir()) + proxy.log.encode()
    assert KEY.encode() not in written
    assert PASSWORD.encode() not in written
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}

    flows = list(read_flows(folder / "flows.mitm"))
    assert [flow.id for flow in flows] == [line["id"] for line in lines]
    for flow, line in zip(flows, lines, strict=True):
        assert flow.metadata["wirelint.findings"] == list(dict.fromkeys(flow.metadata["wirelint.findings"]))
        new = {finding["name"] for finding in line["findings"] if finding["first_seen"] == line["id"]}
        assert set(flow.metadata["wirelint.findings"]) == new
        assert flow.comment
        assert flow.response is None or flow.error is None, "mitmproxy would put it into a HAR twice"
        if line["response"].get("body"):
            assert flow.response is not None
            assert flow.response.get_text() is not None
            assert flow.response.raw_content == line["response"]["body"].encode()
    for name in ("exchanges.jsonl", "flows.mitm"):
        _check_offline_repairs(folder / name, tmp_path / name)


def _check_offline_repairs(path: Path, out: Path) -> None:
    """Repair a capture: the result is that of the live run, and repairing the result changes nothing."""
    live, offline = records(path), _fixed(path)
    for one, two in zip(live, offline, strict=True):
        told = [[(done.code, done.safety, done.side, done.title) for done in item.fixes] for item in (one, two.record)]
        assert told[0] == told[1], one.request_headers
        # A mark in the place of a secret may come with another event than the secret did.
        look = changes if b"[redacted:" not in (one.response_body or b"") else _reply
        assert look(two.record) == look(one), one.request_headers
    write(path, offline, out)
    assert [changes(item.record) for item in _fixed(out)] == [changes(item.record) for item in offline]


def _fixed(path: Path) -> list[Fixed]:
    return [item for item in fix(read([path]), REGISTRY.rules, REGISTRY.permit("unsafe")) if isinstance(item, Fixed)]


def _reply(record: Record) -> Any:
    """What the client made of its reply."""
    exchange = some(replay(mended(record)))
    return [
        (one.text, [(call.name, call.arguments.text) for call in one.calls]) for one in some(exchange.reply).choices
    ]


def records(path: Path) -> list[Record]:
    return [item for item in read([str(path)]) if isinstance(item, Record)]


def sides(record: Record) -> tuple[Any, ...]:
    """The bodies of an exchange on both sides, and what was done."""
    forwarded, delivered = record.forwarded, record.delivered
    return (
        *(record.request_body, forwarded and forwarded.body, record.response_body, delivered and delivered.body),
        record.fixes,
    )


def read_flows(path: Path) -> Iterable[http.HTTPFlow]:
    with path.open("rb") as file:
        for flow in FlowReader(file).stream():
            assert isinstance(flow, http.HTTPFlow)
            yield flow


def test_nothing_is_written_when_captures_are_off(upstream: Upstream, tmp_path: Path) -> None:
    with running(tmp_path, upstream.url, "wirelint_captures=") as proxy:
        drive(proxy, upstream, "off", Talk().record("openai.chat", False))
        proxy.wait_for(r"openai\.chat acme-1 200")
        proxy.stop()
    seen = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}  # of probe.py
    assert seen == {"conf", "output.txt", "probe.py", "probe.jsonl"}
