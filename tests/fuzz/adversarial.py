"""`python -m tests.fuzz.adversarial`: what a reply full of tags costs, and how that grows with its length.

Each shape (`shapes`) is repeated up to a size, put at a place of an exchange, and goes through wirelint as it does live:
judged with repairs off, repaired under `unsafe` (over HTTP and over a WebSocket), redacted and written down. The CPU time
of this thread is measured, in total and of the longest single call, which is for how long everybody else behind the proxy
would wait; then the size is doubled. The work grows linearly where doubling the size at most doubles the time, noise aside.
"""

from __future__ import annotations

import gc
import itertools
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType

import click

from tests.build import REGISTRY, some
from tests.fixes.drive import open_session
from tests.fuzz.shapes import APIS, PLACES, STEPS, Place, Shape, record, shapes
from wirelint.addon.idle_queue import LARGE
from wirelint.capture.format import encode
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.engine import Engine, Session, lower
from wirelint.fix import FixPolicy
from wirelint.model import Exchange
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.request import mend_request
from wirelint.state.ledger import Ledger
from wirelint.wire import ArrayStream, EventStream, Framer, JsonLines, MessageStream, Sniffer
from wirelint.wire.websocket import HEADERS, STATUS, as_line, closes, socket_url

UNSAFE = FixPolicy("unsafe")
MOST_BLOCKED = 0.050
"""Seconds of one call for 100 KB."""
MOST_GROWTH = 2.2
_TOLERATED = 2.6
"""The growth from which one doubling is a violation by itself: single figures are that noisy."""
_WORTH_A_LOOK = 0.020
"""Seconds below which a growth is noise."""
_HOPELESS = 1.0
"""Seconds after which a shape is not made any larger."""
_ABORT = 4.0
"""Seconds after which a measurement is given up."""


class AbortError(Exception):
    """A measurement took too long."""


@dataclass(slots=True)
class Cost:
    """Seconds of CPU: of all calls together, and of the longest one."""

    total: float = 0.0
    longest: float = 0.0

    def call(self, function: Callable[[], object], *, beside: bool = False) -> None:
        """Calls a function. `beside`: a thread of its own does that, and nobody waits for it."""
        start = time.thread_time()
        try:
            function()
        finally:
            took = time.thread_time() - start
            self.total += took
            if not beside:
                self.longest = max(self.longest, took)


def pieces_of(made: Record, stream: bool) -> list[bytes]:
    body = made.response_body or b""
    if not stream:
        return [body]
    end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    return [part + end for part in body.split(end) if part]


def judge(made: Record, pieces: Sequence[bytes], cost: Cost) -> None:
    """Repairs off: read and judged when it is over."""
    session = open_session(made)
    for piece in pieces:
        cost.call(partial(session.feed, piece, 1.0))
    ended: list[Exchange] = []
    cost.call(lambda: ended.append(session.finish()), beside=len(made.response_body or b"") >= LARGE)
    cost.call(lambda: Engine(REGISTRY.rules).check(*ended))


def repair(made: Record, pieces: Sequence[bytes], cost: Cost) -> None:
    """Under `unsafe`: the reply on its way to the client."""
    session = open_session(made)
    session.request  # noqa: B018 - read when it came
    rewriting = some(ReplyStream.begin(session, REGISTRY.rules, Ledger(), UNSAFE))
    for piece in pieces:
        cost.call(partial(rewriting.feed, piece, 1.0))
    cost.call(rewriting.end)


def relay(made: Record, pieces: Sequence[bytes], cost: Cost) -> None:
    """Under `unsafe`, over a WebSocket: each of the server's messages on its way to the client; then it is judged."""
    asked = {"type": "response.create", **json.loads(made.request_body or b"{}")}
    fields = lower(made.request_headers)
    body = json.dumps(asked).encode()
    session = some(Session.begin(id=made.id, method="GET", url=socket_url(made.url), headers=fields, body=body))
    session.respond(STATUS, lower(HEADERS))
    rewriting = some(ReplyStream.begin(session, REGISTRY.rules, Ledger(), UNSAFE))
    for piece in pieces:
        message = piece.partition(b"data: ")[2].strip()
        cost.call(lambda: (rewriting.feed(as_line(message), 1.0), closes(message)))  # noqa: B023 - called at once
    cost.call(rewriting.end)
    cost.call(lambda: Engine(REGISTRY.rules).check(session.finish()))


def mend(made: Record, pieces: Sequence[bytes], cost: Cost) -> None:
    """Under `unsafe`: the request on its way to the upstream."""
    session = open_session(made)
    cost.call(lambda: mend_request(session.head(), made.request_body or b"", REGISTRY.rules, Ledger(), UNSAFE))


def capture(made: Record, pieces: Sequence[bytes], cost: Cost) -> None:
    """Redacted and written down. The writer has a thread of its own; a large exchange is redacted by one as well."""
    redacted: list[Record] = []
    large = len(made.request_body or b"") + len(made.response_body or b"") >= LARGE
    cost.call(lambda: redacted.append(Redactor().record(made)), beside=large)
    cost.call(lambda: encode(redacted[0], {}), beside=True)


WAYS: dict[str, Callable[[Record, Sequence[bytes], Cost], None]] = {
    "judge": judge,
    "repair": repair,
    "socket": relay,
    "request": mend,
    "capture": capture,
}


@dataclass(frozen=True, slots=True)
class Case:
    shape: Shape
    way: str
    api: str
    place: Place
    step: int
    """Characters of a streamed delta; 0 for a whole body."""

    @property
    def name(self) -> str:
        return f"{self.way} {self.api.split('.')[0]} {self.place} {self.step or 'whole'}"

    def measure(self, size: int) -> Cost | None:
        made = record(self.api, self.place, self.shape.text(size), stream=bool(self.step), step=self.step or 7)
        if made is None:
            return None
        pieces = pieces_of(made, bool(self.step))
        cost = Cost()
        old = signal.signal(signal.SIGVTALRM, _abort)
        signal.setitimer(signal.ITIMER_VIRTUAL, _ABORT)
        try:
            WAYS[self.way](made, pieces, cost)
        except AbortError:
            cost.total = cost.longest = max(cost.total, _ABORT)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, old)
        return cost


def _abort(number: int, frame: FrameType | None) -> None:
    raise AbortError


@dataclass(slots=True)
class Outcome:
    case: Case
    costs: dict[int, Cost] = field(default_factory=dict)
    most: int = 100_000

    @property
    def largest(self) -> int:
        return max(self.costs)

    def scaled(self, seconds: float) -> float:
        """Seconds for the text of `most` characters, if they went on growing linearly."""
        return seconds * self.most / self.largest

    @property
    def blocked(self) -> float:
        """Seconds of the longest call for the text of `most` characters, on the line through the last two sizes.

        What a call costs once, such as the events that leave together when a limit is reached, does not grow.
        """
        before, last = sorted(self.costs)[-2:]
        start, end = self.costs[before].longest, self.costs[last].longest
        return max(end + (end - start) * (self.most - last) / (last - before), end)

    @property
    def growth(self) -> float:
        """How much more the last doubling cost."""
        sizes = sorted(self.costs)
        if len(sizes) < 2 or self.costs[sizes[-1]].total < _WORTH_A_LOOK:
            return 0.0
        return self.costs[sizes[-1]].total / max(self.costs[sizes[-2]].total, 1e-4)


def outcome_of(case: Case, sizes: Sequence[int]) -> Outcome | None:
    outcome = Outcome(case, most=sizes[-1])
    for size in sizes:
        cost = case.measure(size)
        if cost is None:
            return None
        outcome.costs[size] = cost
        if cost.total > _HOPELESS and len(outcome.costs) > 1:
            break
    # Once more: another process may have had the caches.
    if outcome.growth > MOST_GROWTH or outcome.blocked > MOST_BLOCKED:
        for size in sorted(outcome.costs)[-2:]:
            again, first = some(case.measure(size)), outcome.costs[size]
            outcome.costs[size] = Cost(min(first.total, again.total), min(first.longest, again.longest))
    return outcome


def cases(ways: Sequence[str], apis: Sequence[str], places: Sequence[Place], steps: Sequence[int]) -> Iterator[Case]:
    """All shapes in all places, as far as they make sense, without their shapes."""
    for way, api, place, step in itertools.product(ways, apis, places, steps):
        told = place in ("history", "result", "told")
        if (way == "repair" and told) or (way == "request" and not told) or (told and step):
            continue
        if way == "socket" and (api != "openai.responses" or told or not step):
            continue
        if not (way == "capture" and step > 1):
            yield Case(Shape("", "x"), way, api, place, step)


def framed(rng: random.Random, some: Sequence[Shape], most: int) -> Outcome:
    """The bytes of a body as they are split into frames: a unit repeated, whole or in pieces."""
    shape, kind, step = rng.choice(some), rng.choice(tuple(FRAMERS)), rng.choice((64, 1 << 20))
    case = Case(shape, "wire", kind, "text", 0 if step > most else step)
    outcome = Outcome(case, most=most)
    for size in (most // 2, most):
        body, framer, cost = shape.text(size).encode("utf-8", "surrogatepass"), FRAMERS[kind](), Cost()
        for at in range(0, len(body), step):
            cost.call(partial(framer.feed, body[at : at + step]))
        cost.call(framer.close)
        outcome.costs[size] = cost
    return outcome


FRAMERS: dict[str, Callable[[], Framer | Sniffer]] = {
    "sse": EventStream,
    "ndjson": JsonLines,
    "array": ArrayStream,
    "aws": MessageStream,
    "any": lambda: Sniffer({}),
}


def outcomes(
    rng: random.Random, ways: Sequence[str], only: str, place: str, most: int, seconds: float
) -> Iterator[Outcome]:
    """What random shapes cost, for a time."""
    some = [shape for shape in shapes() if only in shape.name]
    kinds = [case for case in cases(ways, APIS, PLACES, (0, *STEPS)) if place in case.name]
    until = time.monotonic() + seconds
    sizes = (most // 8, most // 4, most // 2, most)
    while time.monotonic() < until:
        case = replace(rng.choice(kinds), shape=rng.choice(some)) if kinds else None
        if case is None or rng.random() < 0.1:
            yield framed(rng, some, most)
        elif (outcome := outcome_of(case, sizes)) is not None:
            yield outcome
        gc.collect()


def run(
    seconds: float = 60.0,
    seed: int = 0,
    ways: Sequence[str] = tuple(WAYS),
    only: str = "",
    place: str = "",
    most: int = 100_000,
) -> int:
    """Tries shapes and prints the dearest; exit status 1 if one of them costs more than it may."""
    gc.disable()
    rng = random.Random(seed)
    for case in cases(ways, APIS, PLACES, (0, 8)):  # what is made once is made now
        replace(case, shape=Shape("Error: none. I've sent the mail for 5 USD. <tool_call>", "x")).measure(2_000)
    table: list[tuple[float, str]] = []
    violations = 0
    for outcome in outcomes(rng, ways, only, place, most, seconds):
        last = outcome.costs[outcome.largest]
        blocked, total = outcome.blocked, outcome.scaled(last.total)
        violates = blocked > MOST_BLOCKED or outcome.growth > _TOLERATED
        violations += violates
        name = f"{outcome.case.name:34} {outcome.case.shape.name}"
        figures = f"{blocked * 1000:7.0f} {total * 1000:7.0f} {outcome.growth:6.1f} {outcome.largest:8}"
        table.append((blocked, f"{figures}  {name}{'  !' if violates else ''}"))
    gc.enable()
    measures = f"(ms of CPU for {most // 1000} KB; the time of a doubling)"
    print(f"{'longest':>7} {'total':>7} {'growth':>6} {'size':>8}  {measures}")
    for _, line in sorted(table, reverse=True)[:40]:
        print(line)
    print(f"{len(table)} shapes, {violations} violations: more than {MOST_BLOCKED * 1000:.0f} ms, or growth")
    return int(violations > 0)


@click.command()
@click.option("--seconds", default=60.0, help="For how long shapes are tried.")
@click.option("--seed", default=0, help="Which shapes.")
@click.option("--way", "ways", multiple=True, default=tuple(WAYS), type=click.Choice(tuple(WAYS)))
@click.option("--only", default="", help="Shapes that have this in them.")
@click.option("--place", default="", help="Cases whose name has this in it: `openai`, `reasoning`, `whole`.")
@click.option("--most", default=100_000, help="Characters of the largest text.")
def command(seconds: float, seed: int, ways: Sequence[str], only: str, place: str, most: int) -> None:
    """Measures what replies full of tags cost, and how that grows with their length."""
    sys.exit(run(seconds, seed, ways, only, place, most))


if __name__ == "__main__":
    command()
