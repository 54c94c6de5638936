"""Scorecards of tool calls per model and provider, counted from traffic, and comparisons of two runs.

Theory of operation. A reply is counted once: by its ending and by the validity of its calls. Names and measures are
those of the K2-Vendor-Verifier: a reply that ends in calls is *successful* if every call names a declared tool and its
arguments fit the tool's schema, else it is a *schema error*; *schema accuracy* is the share of successful ones among
replies that end in calls. Calls to tools without a known schema count as valid: unknown is not wrong. The upstream's
replies are scored, or the delivered ones; the difference is the effect of fixes.

In a comparison, requests of two runs are paired by their messages and tools, independent of the model, the ids and the
form of the reply. Repeated requests pair off in order: equal body, provider and model first, then equal body, then
equal model, so that a run compared with itself is similar in everything. A candidate is right to end in calls if the
reference does: precision, recall and F1 of *triggering*. *Similarity* is the share of pairs that end alike.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import orjson

from wirelint.apis import channel_of
from wirelint.apis.traits import ending, traits
from wirelint.arguments.schemas import accepts
from wirelint.capture.offline import NOT_JUDGED, Checked
from wirelint.capture.record import Record
from wirelint.jsonvalues import decode_object
from wirelint.model import Exchange, Json, Part, Reasoning, Reply, Request, Role, Text, ToolCall, ToolResult
from wirelint.prices import Spending, Tokens, cost, tokens_of
from wirelint.text.escaping import shorten

Finish = Literal["stop", "tool_calls", "other"]
"""Ending of a reply. `other`: cut off, filtered, or without a finish reason."""

_LARGEST_HEAD = 1 << 16
"""Bytes of a reply in which a gateway names the provider it forwarded the request to."""

_PROMPT = 60
"""Characters of a prompt that name its conversation."""
_FIRST = 4096
"""Characters of a message in which a prompt is looked for."""


class Outcome(NamedTuple):
    """Figures of one reply: its ending, the number of its calls, of valid ones, and the names of the tools called."""

    finish: Finish
    calls: int
    valid: int
    tools: tuple[str, ...]

    @property
    def is_successful(self) -> bool:
        """Return True if the reply ended in calls and all of them are valid."""
        return self.finish == "tool_calls" and 0 < self.calls == self.valid


class Observation(NamedTuple):
    """Figures of one exchange. Times are in milliseconds, `speed` in tokens a second; None is unknown.

    `outcome` is None if there is no reply to read: HTTP errors, error objects, broken connections. `findings`: names of
    rules with the blamed layers. `tokens` None: the reply has no usage. `cost` in US dollars; None without a price.
    `longest_gap`: the longest silence of a stream after its first event. `answered`: there is a reply, perhaps without
    content. `prompt`: the first words of a user. `key`: digests of the request's messages and tools, and of its body, if
    runs are compared.
    """

    provider: str
    model: str
    outcome: Outcome | None
    findings: tuple[tuple[str, str], ...] = ()
    streamed: bool = False
    tokens: Tokens | None = None
    cost: float | None = None
    first_token: float | None = None
    duration: float | None = None
    longest_gap: float | None = None
    speed: float | None = None
    answered: bool = False
    source: str = ""
    conversation: str = ""
    prompt: str = ""
    key: tuple[str, str] = ("", "")


def observe(checked: Checked, *, delivered: bool = False, keyed: bool = False) -> Observation | None:
    """Return the figures of an exchange; None if it is not one with a model. `delivered`: score the delivered reply."""
    exchange, record = checked.exchange, checked.record
    if exchange is None or (request := exchange.request) is None or channel_of(exchange.api) != "model":
        return None
    findings = tuple((one.label, one.layer) for one in checked.folded.findings if one.code != NOT_JUDGED)
    names = provider_of(record, exchange), exchange.model or "unknown"
    seen = Observation(*names, None, findings, source=record.source)
    seen = seen._replace(conversation=exchange.conversation or record.id, prompt=prompt_of([checked]))
    if keyed:
        digest = hashlib.blake2b(record.request_body or b"", digest_size=16).hexdigest()
        seen = seen._replace(key=(request_key(request), digest))
    reply = exchange.delivered if delivered and exchange.delivered is not None else exchange.reply
    if reply is None or not exchange.ok or reply.error is not None:
        return seen
    first, end = exchange.timing.first_token, exchange.timing.duration
    tokens, spent = usage_of(checked)
    seen = seen._replace(answered=True, tokens=tokens, cost=spent)
    if not reply.choices:
        return seen
    seen = seen._replace(outcome=outcome_of(exchange, reply), duration=end)
    if not reply.streamed:
        return seen
    gaps = [gap.length for gap in exchange.arrivals.gaps(0.0) if gap.before is not None]
    shows_reasoning = any(isinstance(part, Reasoning) and part.text for part in reply.parts)
    sent = tokens.output - (0 if shows_reasoning else tokens.reasoning) if tokens is not None else 0
    speed = (sent - 1) * 1000 / (end - first) if first is not None and end and end > first and sent > 1 else None
    return seen._replace(streamed=True, first_token=first, longest_gap=max(gaps, default=None), speed=speed)


def usage_of(checked: Checked) -> tuple[Tokens | None, float | None]:
    """Return the token counts of a reply and its cost in US dollars, each None if unknown."""
    exchange = checked.exchange
    if exchange is None or checked.reply is None or (tokens := tokens_of(checked.reply.usage)) is None:
        return None, None
    found = cost(tokens, exchange.model, exchange.url, exchange.timing.started)
    return tokens, found.amount if found is not None else None


def outcome_of(exchange: Exchange, reply: Reply) -> Outcome:
    """Return the figures of the first choice of a reply, which must have one."""
    calls, reason = reply.choices[0].calls, reply.choices[0].finish_reason
    valid = sum(is_valid_call(call, exchange.request) for call in calls)
    finish: Finish = "other"
    match ending(reason):
        case "calls":
            finish = "tool_calls"
        case "ended" | "stopped":
            # Some APIs have one finish reason for text and calls.
            finish = "tool_calls" if calls and not traits(exchange.api).has_reason_for_calls else "stop"
    return Outcome(finish, len(calls), valid, tuple(sorted(call.name or "" for call in calls)))


def is_valid_call(call: ToolCall, request: Request | None) -> bool:
    """Return True if no known fact prevents the client from running the call."""
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
    """Return the host of the request, and in brackets the provider that a gateway's reply names (`"provider": "…"`)."""
    host = urlsplit(record.url).netloc.rpartition("@")[2] or exchange.request_headers.get("host", "")
    body, named = record.response_body or b"", ""
    head = body[:_LARGEST_HEAD]
    if b'"provider"' in head:
        lines = head.splitlines() if head.startswith((b"data:", b"event:", b":")) else [body]
        names = (decode_object(line.removeprefix(b"data:")).get("provider") for line in lines)
        named = next((name[:80] for name in names if isinstance(name, str)), "")
    return f"{host} ({named})" if named and host else named or host or "unknown"


def name_provider(checked: Checked) -> str:
    """Return the provider of an exchange; for an unrecognised API the host."""
    record, exchange = checked.record, checked.exchange
    if not is_url(record.url):
        return "unknown"
    return provider_of(record, exchange) if exchange is not None else urlsplit(record.url).hostname or "unknown"


def is_url(url: str) -> bool:
    """Return True if a URL can be split; `http://[` cannot."""
    try:
        return urlsplit(url).hostname != ""
    except ValueError:
        return False


# --- a model at a provider --------------------------------------------------------------------------------------------


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that `share` of all values do not exceed (nearest rank); None without values."""
    rank = -int(-share * len(values) // 1)
    return sorted(values)[max(0, min(len(values), rank) - 1)] if values else None


@dataclass(slots=True)
class Card:
    """Counts of one model at one provider.

    `failed`: exchanges without a readable reply. `finishes` and `successful` count replies, `calls` and `valid_calls`
    calls.
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
    spending: Spending = field(default_factory=Spending)
    first_token: list[float] = field(default_factory=list)
    duration: list[float] = field(default_factory=list)
    longest_gap: list[float] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def replies(self) -> int:
        return self.exchanges - self.failed

    @property
    def schema_errors(self) -> int:
        return self.finishes["tool_calls"] - self.successful

    @property
    def schema_accuracy(self) -> float | None:
        """A share between 0 and 1; None if no reply ended in calls."""
        return _share(self.successful, self.finishes["tool_calls"])

    def add(self, seen: Observation) -> None:
        self.exchanges += 1
        self.findings.update(seen.findings)
        outcome = seen.outcome
        if outcome is None:
            self.failed += 1
            return
        self.finishes[outcome.finish] += 1
        self.calls += outcome.calls
        self.valid_calls += outcome.valid
        self.successful += outcome.is_successful
        self.streamed += seen.streamed
        self.spending.add(seen.tokens, seen.cost)
        for name in ("first_token", "duration", "longest_gap", "speed"):
            if (value := getattr(seen, name)) is not None:
                getattr(self, name).append(value)


def cards_of(observations: Iterable[Observation]) -> list[Card]:
    cards: dict[tuple[str, str], Card] = {}
    for seen in observations:
        key = seen.provider, seen.model
        cards.setdefault(key, Card(*key)).add(seen)
    return sorted(cards.values(), key=lambda card: (-card.exchanges, card.provider, card.model))


@dataclass(slots=True)
class Bill:
    """Spending of a conversation, or of a run: the exchanges of one file. `prompt`: the first words of a user."""

    source: str
    conversation: str = ""
    prompt: str = ""
    models: Counter[str] = field(default_factory=Counter)
    spending: Spending = field(default_factory=Spending)


def prompt_of(items: Sequence[Checked]) -> str:
    """Return the first words of the first user of a conversation; empty without any."""
    messages = (message for one in items if one.request is not None for message in one.request.messages)
    words = (" ".join(message.words[:_FIRST].split()) for message in messages if message.role == "user")
    return shorten(next(filter(None, words), ""), _PROMPT)


def bills_of(observations: Iterable[Observation], by: str) -> list[Bill]:
    """Return the bills by `conversation`, or by `run`, in the order of the files."""
    bills: dict[tuple[str, str], Bill] = {}
    for seen in observations:
        key = seen.source, seen.conversation if by == "conversation" else ""
        bill = bills.setdefault(key, Bill(*key))
        bill.prompt = bill.prompt or seen.prompt
        bill.models[seen.model] += 1
        if seen.answered:
            bill.spending.add(seen.tokens, seen.cost)
    return [*bills.values()]


@dataclass(slots=True)
class Comparison:
    """A model of the candidate run on the requests that both runs have. `unmatched`: requests the reference lacks.
    `similar`: pairs that end alike, in calls of the same tools or in the same other way.

    `card` and `reference` score the replies to these requests only. `triggered` counts them by whether the candidate and
    the reference ended in calls.
    """

    provider: str
    model: str
    card: Card
    reference: Card
    triggered: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    similar: int = 0
    unmatched: int = 0

    @property
    def pairs(self) -> int:
        return self.card.exchanges

    @property
    def similarity(self) -> float | None:
        return _share(self.similar, self.pairs)

    def triggering(self) -> tuple[dict[str, int], dict[str, float | None]]:
        """Return the counts of pairs as positives and negatives; and precision, recall and their harmonic mean."""
        names = ("true_positives", "false_positives", "false_negatives", "true_negatives")
        keys = product((True, False), repeat=2)
        counts = {name: self.triggered[got, want] for name, (got, want) in zip(names, keys, strict=True)}
        right, extra, missed, _ = counts.values()
        f1 = _share(2 * right, 2 * right + extra + missed)
        return counts, {"precision": _share(right, right + extra), "recall": _share(right, right + missed), "f1": f1}

    def add(self, expected: Observation, seen: Observation) -> None:
        self.reference.add(expected)
        self.card.add(seen)
        outcomes = seen.outcome, expected.outcome
        got, want = (None if one is None else one.finish for one in outcomes)
        self.triggered[got == "tool_calls", want == "tool_calls"] += 1
        tools = [one.tools for one in outcomes if one is not None and one.finish == "tool_calls"]
        self.similar += got == want and tools[:1] == tools[1:]


def compare(reference: Iterable[Observation], candidate: Iterable[Observation]) -> tuple[list[Comparison], int]:
    """Compare the candidate's models with the reference. Also returns the number of requests only the reference has."""
    known: defaultdict[str, _Answers] = defaultdict(_Answers)
    for seen in reference:
        known[seen.key[0]].add(seen)
    found: dict[tuple[str, str], Comparison] = {}
    matched: set[str] = set()
    for seen in candidate:
        name, key = (seen.provider, seen.model), seen.key[0]
        comparison = found.setdefault(name, Comparison(*name, Card(*name), Card("reference", "")))
        answers = known.get(key)
        if answers is None:
            comparison.unmatched += 1
            continue
        matched.add(key)
        comparison.add(answers.take(seen), seen)
    ordered = sorted(found.values(), key=lambda one: (-one.pairs, one.provider, one.model))
    return ordered, sum(len(answers.all) for key, answers in known.items() if key not in matched)


class _Answers:
    """The reference's answers to one request. Each model of the candidate is paired with all of them."""

    def __init__(self) -> None:
        self.all: list[Observation] = []
        self._groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        self._taken: defaultdict[tuple[str, str], set[int]] = defaultdict(set)

    def add(self, seen: Observation) -> None:
        for group in self._groups_of(seen):
            self._groups[group].append(len(self.all))
        self.all.append(seen)

    def take(self, seen: Observation) -> Observation:
        """Return the best answer that this model was not paired with yet; the last one if it was paired with all."""
        taken = self._taken[seen.provider, seen.model]
        for group in self._groups_of(seen):
            for number in self._groups.get(group, ()):
                if number not in taken:
                    taken.add(number)
                    return self.all[number]
        return self.all[-1]

    def _groups_of(self, seen: Observation) -> tuple[tuple[object, ...], ...]:
        """Return the keys of groups of answers, the most similar first."""
        name, body = (seen.provider, seen.model), seen.key[1]
        return (name, body), (body,), (name,), ()


def request_key(request: Request) -> str:
    """Return the digest of the messages and tools of a request, equal for every model, API and spelling of ids."""
    digest = hashlib.blake2b(digest_size=16)
    for role, part in ((message.role, part) for message in request.messages for part in message.parts):
        if (content := _content(role, part)) is not None:
            digest.update(orjson.dumps(content, option=orjson.OPT_SORT_KEYS, default=str) + b"\n")
    digest.update(orjson.dumps(sorted(tool.name for tool in request.tools)))
    return digest.hexdigest()


def _content(role: Role, part: Part) -> Json:
    """Return the content of a part. The role of a message with a result depends on the API and is left out."""
    match part:
        case Text(text):
            return [role, text.strip()] if text.strip() else None
        case ToolCall():
            value = part.arguments.mapping
            return ["call", part.name, part.arguments.text.strip() if value is None else dict(value)]
        case ToolResult():
            return ["result", part.text.strip()]
        case _:
            return None


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
