"""The scorecard of one model at one provider.

Theory of operation. A reply is counted once, by how it ended and by what became of its calls. The names and measures are
those of the K2-Vendor-Verifier, which made such cards known: a reply that ends in calls is *successful* when every call in
it names a declared tool and has arguments that its schema takes, else it is a *schema error*; *schema accuracy* is the
share of the successful among those that ended in calls. Where the schema of a tool is not known, its calls are taken for
good: unknown is not wrong.

What is scored is what the upstream sent or, if asked for, what the client got: the difference is what repairs are worth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import orjson

from wirelint.apis import channel_of
from wirelint.apis.traits import ending, traits
from wirelint.arguments.schemas import accepts
from wirelint.capture.offline import NOT_JUDGED, Checked
from wirelint.capture.record import Record
from wirelint.model import Choice, Exchange, Json, Reply, Request, ToolCall

Finish = Literal["stop", "tool_calls", "other"]
"""How a reply ended: by itself, in calls, or in any other way (cut off, filtered, without a word)."""

_LARGEST_HEAD = 1 << 16
"""Bytes of a reply in which a gateway says who it passed the request on to."""


class Outcome(NamedTuple):
    """What is counted of one reply. `calls` and `valid` are numbers of calls; `tools` the names that were called."""

    finish: Finish
    calls: int
    valid: int
    tools: tuple[str, ...]

    @property
    def successful(self) -> bool:
        """Whether it ended in calls, and every one of them can be run."""
        return self.finish == "tool_calls" and 0 < self.calls == self.valid


def outcome_of(exchange: Exchange, reply: Reply) -> Outcome:
    """What is counted of a reply, of its first candidate."""
    choice = reply.choices[0] if reply.choices else None
    calls = choice.calls if choice is not None else ()
    valid = sum(_is_valid(call, exchange.request) for call in calls)
    return Outcome(_finish(exchange, choice), len(calls), valid, tuple(sorted(call.name or "" for call in calls)))


def _finish(exchange: Exchange, choice: Choice | None) -> Finish:
    if choice is None:
        return "other"
    match ending(choice.finish_reason):
        case "calls":
            return "tool_calls"
        case "ended" | "stopped":
            # Where an API has one word for both, the calls tell.
            told = traits(exchange.api).tells_calls
            return "tool_calls" if choice.calls and not told else "stop"
        case _:
            return "other"


def _is_valid(call: ToolCall, request: Request | None) -> bool:
    """Whether a client could run a call, as far as is known."""
    if not call.name:
        return False
    tool = request.tool(call.name) if request is not None else None
    if tool is None and request is not None and request.tools_known:
        return False
    if call.form == "custom":
        return True
    arguments = call.arguments.mapping
    if arguments is None:
        return not call.arguments.text.strip() and accepts(tool, {}) is not False
    return accepts(tool, arguments) is not False


def provider_of(record: Record, exchange: Exchange) -> str:
    """Who answered: whom a gateway names in its reply (OpenRouter's `provider`), behind the host that was asked."""
    parts = urlsplit(record.url)
    host = parts.netloc.rpartition("@")[2] or exchange.request_headers.get("host", "")
    named = _named_by(record.response_body)
    return f"{host} ({named})" if named and host else named or host or "unknown"


def _named_by(body: bytes | None) -> str:
    head = (body or b"")[:_LARGEST_HEAD]
    if b'"provider"' not in head:
        return ""
    streamed = head.startswith((b"data:", b"event:", b":"))
    lines = head.splitlines() if streamed else [body or b""]
    for line in lines:
        try:
            document: Json = orjson.loads(line.removeprefix(b"data:"))
        except orjson.JSONDecodeError:
            continue
        if isinstance(document, dict) and isinstance(name := document.get("provider"), str):
            return name[:80]
    return ""


@dataclass(slots=True)
class Spread:
    """Measurements of one kind, in milliseconds unless said otherwise."""

    values: list[float] = field(default_factory=list)

    def add(self, value: float | None) -> None:
        if value is not None:
            self.values.append(value)

    def __bool__(self) -> bool:
        return bool(self.values)

    def at(self, share: float) -> float | None:
        """The value that `share` of all values do not exceed (the nearest rank); None without any."""
        if not self.values:
            return None
        ordered = sorted(self.values)
        return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]


class Sighting(NamedTuple):
    """What is counted of one exchange. Times are in milliseconds, `speed` in tokens a second; None = not known.

    `outcome` is None where no reply could be read: HTTP errors, errors in the place of a reply, broken connections.
    `findings` are names of rules with the layers they point at. `longest_gap` is the longest silence of a stream, from its
    first event on.
    """

    provider: str
    model: str
    outcome: Outcome | None
    findings: tuple[tuple[str, str], ...] = ()
    streamed: bool = False
    tokens: int = 0
    first_token: float | None = None
    duration: float | None = None
    longest_gap: float | None = None
    speed: float | None = None


def sight(checked: Checked, *, delivered: bool = False) -> Sighting | None:
    """What is counted of an exchange; None where no model was asked, or nobody knows what.

    `delivered`: what the client got, where that is not what the upstream sent.
    """
    exchange = checked.exchange
    if exchange is None or exchange.request is None or channel_of(exchange.api) != "model":
        return None
    findings = tuple((one.name, one.layer) for one in checked.folded.findings if one.code != NOT_JUDGED)
    provider, model = provider_of(checked.record, exchange), exchange.model or "unknown"
    reply = exchange.delivered if delivered and exchange.delivered is not None else exchange.reply
    if reply is None or not exchange.ok or reply.error is not None or not reply.choices:
        return Sighting(provider, model, None, findings)
    tokens, timing = _tokens(reply), exchange.timing
    seen = Sighting(provider, model, outcome_of(exchange, reply), findings, tokens=tokens, duration=timing.duration)
    if not reply.streamed:
        return seen
    first, end = timing.first_token, timing.duration
    gaps = [gap.length for gap in exchange.arrivals.gaps(0.0) if gap.before is not None]
    timed = first is not None and end is not None and end > first and tokens > 1
    return seen._replace(
        streamed=True,
        first_token=first,
        longest_gap=max(gaps, default=None),
        speed=(tokens - 1) * 1000 / (end - first) if timed and first is not None and end is not None else None,
    )


_OUTPUT = ("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount", "eval_count")


def _tokens(reply: Reply) -> int:
    """Tokens that a reply says it took, under whatever name."""
    usage = reply.usage or {}
    return next((value for name in _OUTPUT if isinstance(value := usage.get(name), int)), 0)


@dataclass(slots=True)
class Card:
    """Counts of one model at one provider.

    `failed` are exchanges without a reply that could be read. `stop`, `tool_calls` and `other` are replies, and so are
    `successful` and `schema_errors`, the two kinds of those that ended in calls. `calls` and `valid_calls` are calls, of
    which a reply may hold several.
    """

    provider: str
    model: str
    exchanges: int = 0
    streamed: int = 0
    failed: int = 0
    finishes: Counter[Finish] = field(default_factory=Counter)
    calls: int = 0
    valid_calls: int = 0
    successful: int = 0
    output_tokens: int = 0
    first_token: Spread = field(default_factory=Spread)
    duration: Spread = field(default_factory=Spread)
    longest_gap: Spread = field(default_factory=Spread)
    speed: Spread = field(default_factory=Spread)
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def replies(self) -> int:
        return self.exchanges - self.failed

    @property
    def schema_errors(self) -> int:
        return self.finishes["tool_calls"] - self.successful

    @property
    def schema_accuracy(self) -> float | None:
        """Between 0 and 1; None when no reply ended in calls."""
        ended = self.finishes["tool_calls"]
        return self.successful / ended if ended else None

    def add(self, seen: Sighting) -> None:
        self.exchanges += 1
        self.findings.update(seen.findings)
        outcome = seen.outcome
        if outcome is None:
            self.failed += 1
            return
        self.finishes[outcome.finish] += 1
        self.calls += outcome.calls
        self.valid_calls += outcome.valid
        self.successful += outcome.successful
        self.streamed += seen.streamed
        self.output_tokens += seen.tokens
        self.first_token.add(seen.first_token)
        self.duration.add(seen.duration)
        self.longest_gap.add(seen.longest_gap)
        self.speed.add(seen.speed)


class Cards:
    """Cards by provider and model. Exchanges with servers of tools, and of no known API, are left out, and counted."""

    def __init__(self) -> None:
        self._cards: dict[tuple[str, str], Card] = {}
        self.left_out = 0

    def add(self, seen: Sighting | None) -> None:
        if seen is None:
            self.left_out += 1
            return
        key = seen.provider, seen.model
        card = self._cards.get(key)
        if card is None:
            card = self._cards[key] = Card(*key)
        card.add(seen)

    def ordered(self) -> list[Card]:
        """The cards, those of the most exchanges first."""
        return sorted(self._cards.values(), key=lambda card: (-card.exchanges, card.provider, card.model))
