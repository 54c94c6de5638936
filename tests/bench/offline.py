"""The engine without a proxy: bytes in, findings out, in MB/s beside a parser that finds nothing.

The baseline splits a stream at its blank lines and gives each document to `orjson.loads`: what every reader has to do, and
nothing else. `read` makes an exchange of the same bytes, `rules` judges it, `redact` looks for credentials in it with the
strings that the reading has found, `repair` passes the bytes on and repairs what it can: all of them where there is a leak,
none elsewhere.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from tests.bench import payloads
from tests.bench.payloads import Api, Kind
from tests.build import in_pieces, some
from wirelint.capture.format import encode
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.streams import StreamStrings
from wirelint.engine import Engine, Session
from wirelint.fix import FixPolicy
from wirelint.model import Exchange
from wirelint.registry import Registry
from wirelint.rewrite import ReplyStream
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

_REQUEST = 8000
_REPLY = 4000


@dataclass(frozen=True, slots=True)
class Throughput:
    """MB/s over one body. `ways` are the ways to take it, by name; the first is the baseline."""

    what: str
    size: int
    ways: dict[str, float]


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds that one step of one exchange takes."""

    step: str
    microseconds: float


@dataclass(frozen=True, slots=True)
class _Body:
    what: str
    api: Api
    pieces: Sequence[bytes]
    kind: str


def throughput(size: int, seconds: float) -> list[Throughput]:
    """Streams of about `size` bytes. `seconds` is how long each figure is measured for."""
    return [_throughput(body, seconds) for body in _bodies(size)]


def exchange_costs(seconds: float) -> list[Cost]:
    """What a short exchange costs, 8 KB asked and 4 KB answered, step by step; rules by themselves, the dearest first."""
    request = payloads.request("openai.chat", _REQUEST, stream=False)
    body = _Body("", "openai.chat", [payloads.whole("openai.chat", _REPLY)], "application/json")
    exchange, record = _exchange(body, body.pieces, request), _record(body, request)
    rules, redactor = Registry.load().rules, Redactor()
    engine = Engine(rules)
    steps: list[tuple[str, Callable[[], object]]] = [
        ("orjson.loads, both bodies", lambda: (orjson.loads(request), orjson.loads(body.pieces[0]))),
        ("reading", lambda: _exchange(body, body.pieces, request)),
        ("looking for credentials", lambda: redactor.record(record)),
        ("the line of the capture", lambda: encode(record, {})),
        ("all rules", lambda: engine.check(exchange)),
    ]
    costs = [Cost(step, 1e6 * _time(run, seconds)) for step, run in steps]
    for rule in rules:
        alone = Engine([rule])
        costs.append(Cost(f"rule {rule.name}", 1e6 * _time(functools.partial(alone.check, exchange), seconds)))
    return costs[: len(steps)] + sorted(costs[len(steps) :], key=lambda cost: -cost.microseconds)


def _bodies(size: int) -> list[_Body]:
    made: list[_Body] = []
    kinds: tuple[tuple[str, Kind], ...] = (
        ("prose", "prose"),
        ("tool call", "call"),
        ("code", "code"),
        ("leak", "markup"),
    )
    apis: tuple[Api, ...] = ("openai.chat", "anthropic.messages")
    for api in apis:
        for what, kind in kinds:
            if kind in ("prose", "call") or api == "openai.chat":
                each = len(payloads.stream(api, kind, 2)[-3])
                made.append(_Body(f"{api}, {what}", api, payloads.stream(api, kind, size // each), "text/event-stream"))
    made.append(_Body("openai.chat, whole", "openai.chat", [payloads.whole("openai.chat", size)], "application/json"))
    return made


def _throughput(body: _Body, seconds: float) -> Throughput:
    plain = b"".join(body.pieces)
    strings = StreamStrings()
    exchange, record = _exchange(body, body.pieces, listener=strings), _record(body)
    engine, redactor = Engine(Registry.load().rules), Redactor()
    ways: dict[str, Callable[[], object]] = {
        "orjson": functools.partial(_baseline, plain),
        "read, event by event": functools.partial(_exchange, body, body.pieces),
        "read, 64 KB a time": functools.partial(_exchange, body, list(in_pieces(plain, 1 << 16))),
        "rules": functools.partial(engine.check, exchange),
        "redact": functools.partial(redactor.record, record, strings),
        "repair, event by event": functools.partial(_repaired, body, engine.rules),
    }
    return Throughput(body.what, len(plain), {way: len(plain) / 1e6 / _time(run, seconds) for way, run in ways.items()})


def _baseline(body: bytes) -> None:
    if not body.startswith((b"data:", b"event:")):
        orjson.loads(body)
        return
    for event in body.split(b"\n\n"):
        document = event[event.find(b"data: ") + 6 :]
        if document.startswith(b"{"):
            orjson.loads(document)


def _exchange(
    body: _Body, pieces: Sequence[bytes], request: bytes | None = None, listener: StreamStrings | None = None
) -> Exchange:
    session = _session(body, request)
    session.listener = listener
    for at, piece in enumerate(pieces):
        session.feed(piece, float(at))
    return session.finish()


def _repaired(body: _Body, rules: Sequence[Rule]) -> bytes:
    """What the client gets, every repair permitted."""
    rewriting = some(ReplyStream.begin(_session(body), rules, Ledger(), FixPolicy("unsafe")))
    out = [piece for at, data in enumerate(body.pieces) for piece in rewriting.feed(data, float(at))]
    return b"".join(out + rewriting.end())


def _session(body: _Body, request: bytes | None = None) -> Session:
    """A session in which the head of the reply has come."""
    request = request or payloads.request(body.api, 1000, stream=len(body.pieces) > 1)
    path = payloads.PATHS[body.api]
    session = some(Session.begin(id="bench", method="POST", url=f"http://llm.test{path}", headers={}, body=request))
    session.respond(200, {"content-type": body.kind})
    return session


def _record(body: _Body, request: bytes | None = None) -> Record:
    return Record(
        id="bench",
        method="POST",
        url=f"http://llm.test{payloads.PATHS[body.api]}",
        request_headers=(("authorization", "Bearer not-a-real-key-0123456789"), ("content-type", "application/json")),
        request_body=request or payloads.request(body.api, 1000, stream=len(body.pieces) > 1),
        status=200,
        response_headers=(("content-type", body.kind),),
        response_body=b"".join(body.pieces),
    )


def _time(run: Callable[[], object], seconds: float) -> float:
    """Seconds of processor time that one call takes, at its best."""
    run()
    until, best = time.process_time() + seconds, float("inf")
    while True:
        start = time.process_time()
        run()
        now = time.process_time()
        best = min(best, now - start)
        if now >= until:
            return best
