"""One run held against another that answered the same requests.

Theory of operation. A request of one run is found in the other by what it asks: its messages and its tools, whatever
the model, the ids of calls and the way the reply is wanted. The same request asked several times pairs off in order: with
answers to the same body by the same provider and model first, then to the same body, then by the same model. So a run
compared with itself is alike in all. On each pair the reference says whether calls were in place, and precision, recall and
F1 of *triggering* follow: a candidate is right to end in calls where the reference does. *Similarity* is the share of pairs
that end alike: both in calls of the same tools, or both in the same other way.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from wirelint.capture.offline import Checked
from wirelint.model import Json, Part, Request, Role, Text, ToolCall, ToolResult
from wirelint.view.scores.card import Card, Outcome, Sighting, sight


@dataclass(slots=True)
class Trigger:
    """Whether calls were triggered where the reference triggers them: counts of pairs, and what follows from them."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0

    @property
    def precision(self) -> float | None:
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of precision and recall."""
        wrong = self.false_positives + self.false_negatives
        return _share(2 * self.true_positives, 2 * self.true_positives + wrong)

    def add(self, expected: bool, found: bool) -> None:
        match expected, found:
            case True, True:
                self.true_positives += 1
            case True, False:
                self.false_negatives += 1
            case False, True:
                self.false_positives += 1
            case _:
                self.true_negatives += 1


@dataclass(slots=True)
class Comparison:
    """A provider and model of the candidate run on the requests that both runs answered.

    `card` and `reference` score these replies and no others. `unmatched` are requests of the candidate that the
    reference never got.
    """

    provider: str
    model: str
    card: Card
    reference: Card
    trigger: Trigger = field(default_factory=Trigger)
    alike: int = 0
    unmatched: int = 0

    @property
    def pairs(self) -> int:
        return self.card.exchanges

    @property
    def similarity(self) -> float | None:
        return _share(self.alike, self.pairs)


def compare(
    reference: Iterable[Checked], candidate: Iterable[Checked], *, delivered: bool = False
) -> tuple[list[Comparison], int]:
    """The candidate's models against the reference, and how many of the reference's requests nobody answered again.

    `delivered`: what clients got is compared, where that is not what the upstream sent.
    """
    known: defaultdict[bytes, _Answers] = defaultdict(_Answers)
    for checked in reference:
        if (seen := sight(checked, delivered=delivered)) is not None:
            known[_key_of(checked)].add(seen, _body_of(checked))
    found: dict[tuple[str, str], Comparison] = {}
    met: set[bytes] = set()
    for checked in candidate:
        if (seen := sight(checked, delivered=delivered)) is None:
            continue
        name, key = (seen.provider, seen.model), _key_of(checked)
        if name not in found:
            found[name] = Comparison(*name, Card(*name), Card("reference", ""))
        answers = known.get(key)
        if answers is None:
            found[name].unmatched += 1
            continue
        met.add(key)
        _add(found[name], answers.take(name, _body_of(checked)), seen)
    ordered = sorted(found.values(), key=lambda one: (-one.pairs, one.provider, one.model))
    return ordered, sum(len(answers) for key, answers in known.items() if key not in met)


class _Answers:
    """What the reference answered to one request, which each model of the candidate meets anew."""

    def __init__(self) -> None:
        self._all: list[Sighting] = []
        self._groups: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
        self._taken: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._next: Counter[tuple[object, ...]] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    def add(self, seen: Sighting, body: bytes) -> None:
        for group in self._likenesses((seen.provider, seen.model), body):
            self._groups[group].append(len(self._all))
        self._all.append(seen)

    def take(self, name: tuple[str, str], body: bytes) -> Sighting:
        """The answer that fits best of those that this model has not met; the last one again where it has met all."""
        taken = self._taken[name]
        for group in self._likenesses(name, body):
            numbers = self._groups.get(group, [])
            while (at := self._next[name, group]) < len(numbers):
                self._next[name, group] += 1
                if numbers[at] not in taken:
                    taken.add(numbers[at])
                    return self._all[numbers[at]]
        return self._all[-1]

    def _likenesses(self, name: tuple[str, str], body: bytes) -> tuple[tuple[object, ...], ...]:
        """Groups of answers, the most alike first."""
        return (name, body), (body,), (name,), ()


def _add(made: Comparison, expected: Sighting, seen: Sighting) -> None:
    made.reference.add(expected)
    made.card.add(seen)
    want, got = expected.outcome, seen.outcome
    made.trigger.add(want is not None and want.finish == "tool_calls", got is not None and got.finish == "tool_calls")
    made.alike += _are_alike(want, got)


def _are_alike(one: Outcome | None, other: Outcome | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.finish == other.finish and (one.finish != "tool_calls" or one.tools == other.tools)


def _key_of(checked: Checked) -> bytes:
    assert checked.exchange is not None
    assert checked.exchange.request is not None
    return asked_by(checked.exchange.request)


def _body_of(checked: Checked) -> bytes:
    """A digest of all of the request's body."""
    return hashlib.blake2b(checked.record.request_body or b"", digest_size=16).digest()


def asked_by(request: Request) -> bytes:
    """What a request asks, as a digest: the same for every model, API and spelling of ids."""
    digest = hashlib.blake2b(digest_size=16)
    for message in request.messages:
        for part in message.parts:
            if (said := _said(message.role, part)) is not None:
                digest.update(orjson.dumps(said, option=orjson.OPT_SORT_KEYS, default=str) + b"\n")
    digest.update(orjson.dumps(sorted(tool.name for tool in request.tools)))
    return digest.digest()


def _said(role: Role, part: Part) -> Json:
    """What a part says. Whose message carries a result is a matter of the API."""
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
