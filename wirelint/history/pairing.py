"""Which tool result of a request's history answers which call: paired once, by exact id, then by similarity.

Theory of operation. Results are taken in order. One whose id is that of an open call answers it; where several open calls
share the id, the latest turn's first. What is left over is then compared with the calls that nothing has answered, those
of the turn just before it first: the mildest alteration wins (`ids.match`). Where that fails, the only unanswered calls
of a turn and the only left-over results after it belong together if the ids of one side say nothing at all (`undefined`,
a bare number, the id of a message). What remains are results without a call, and calls without a result.

Where an API does without ids (Gemini, Ollama), or one side leaves them out, a result answers the first open call of its
function in the turn before it. Gemini goes by that alone: as many results as calls, in their order.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from wirelint.apis.traits import history_of, traits
from wirelint.history.ids import Match, is_other_kind, is_placeholder, key, match
from wirelint.model import HostedCall, Request, ToolCall, ToolResult

_COMPARED = 32
"""Calls that a left-over result is compared with: what one turn may hold, and what keeps long histories linear."""
_BUDGET = 20_000
"""Comparisons in one history, so that thousands of strangers cost no more than a moment."""
_RANK = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class Answer:
    """A result and the position of its message in `Request.messages`. `match` is None for equal ids."""

    result: ToolResult
    position: int
    match: Match | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A call of the history, the position of its message, and what answers it (None: nothing does)."""

    call: ToolCall
    position: int
    answer: Answer | None = None

    @property
    def ids(self) -> tuple[str | None, str | None]:
        return self.call.id, self.answer.result.call_id if self.answer is not None else None


@dataclass(frozen=True, slots=True)
class Pairing:
    """`pairs`: every call, in order. `orphans`: results that answer none. `repeats`: further answers to an answered id.

    An answer whose position is before its call's is of equal id and out of order.
    """

    pairs: tuple[Pair, ...]
    orphans: tuple[Answer, ...]
    repeats: tuple[Answer, ...]


@lru_cache(maxsize=1)  # several rules ask, one after the other, for the same request
def pair(request: Request) -> Pairing:
    """Pairs the calls and results of a history. Results without an id pair by name and order, or not at all.

    They are orphans only where the API has no ids, so that they show all that there is to know.
    """
    return _Pairer(request).run()


class _Pairer:
    def __init__(self, request: Request) -> None:
        self.history, self.messages = history_of(request.api), request.messages
        self.ids_needed = traits(request.api).call_ids
        self.pairs: list[Pair] = []
        self.results: list[Answer] = []
        self.hosted: set[str | None] = set()
        for position, message in enumerate(request.messages):
            for part in message.parts:
                if isinstance(part, ToolCall):
                    self.pairs.append(Pair(part, position))
                elif isinstance(part, ToolResult):
                    self.results.append(Answer(part, position))
                elif isinstance(part, HostedCall):
                    self.hosted.add(part.id)
        self.orphans: list[Answer] = []
        self.repeats: list[Answer] = []
        self.open: list[int] = []
        self.budget = _BUDGET
        self.later: dict[str, list[int]] = {}

    def run(self) -> Pairing:
        left = self._pair_exactly()
        self.open = [number for number, pair in enumerate(self.pairs) if pair.answer is None]
        for number in self.open:
            self.later.setdefault(self.pairs[number].call.id or "", []).append(number)
        left = [
            answer for answer in left if answer.result.call_id not in self.hosted and not self._pair_nameless(answer)
        ]
        left = [answer for answer in left if not self._pair_early(answer)]
        left = [answer for answer in left if not self._pair_similar(answer)]
        self._pair_by_place(left)
        return Pairing(tuple(self.pairs), tuple(self.orphans), tuple(self.repeats))

    def _pair_exactly(self) -> list[Answer]:
        left: list[Answer] = []
        open_calls: dict[str, list[tuple[int, deque[int]]]] = {}
        seen: set[str] = set()
        upcoming = deque(range(len(self.pairs)))
        for answer in self.results:
            while upcoming and self.pairs[upcoming[0]].position < answer.position:
                number = upcoming.popleft()
                self._open(open_calls, number)
                seen.add(self.pairs[number].call.id or "")
            id_ = answer.result.call_id
            turns = open_calls.get(id_, []) if id_ is not None else []
            if turns:
                _, numbers = turns[-1]
                self._answer(numbers.popleft(), answer)
                if not numbers:
                    turns.pop()
            elif id_ and id_ in seen:
                self.repeats.append(answer)
            else:
                left.append(answer)
        return left

    def _open(self, open_calls: dict[str, list[tuple[int, deque[int]]]], number: int) -> None:
        call, position = self.pairs[number].call, self.pairs[number].position
        if call.id is None:
            return
        turns = open_calls.setdefault(call.id, [])
        if not turns or turns[-1][0] != position:
            turns.append((position, deque()))
        turns[-1][1].append(number)

    def _answer(self, number: int, answer: Answer) -> None:
        pair = self.pairs[number]
        self.pairs[number] = Pair(pair.call, pair.position, answer)

    def _unanswered(self, before: int) -> list[int]:
        """Unanswered calls before a message, the nearest turn first and in order within it; not all of very many."""
        end = bisect.bisect_left(self.open, before, key=lambda number: self.pairs[number].position)
        near = self.open[max(end - 4 * _COMPARED, 0) : end]
        numbers = [number for number in near if self.pairs[number].answer is None][-_COMPARED:]
        return sorted(numbers, key=lambda number: (-self.pairs[number].position, number))

    def _pair_nameless(self, answer: Answer) -> bool:
        """OpenAI's first function calls had no ids; some servers leave them out on one side to this day."""
        id_, free = answer.result.call_id, not self.ids_needed
        if id_ is not None and not free:
            return False
        for number in self._unanswered(answer.position):
            call = self.pairs[number].call
            if answer.result.name in (None, call.name) and not (id_ and call.id):
                self._answer(number, answer)
                return True
        # Unknown is not wrong: nothing says which call it answers, or that there is none.
        return self._again(answer) if free else True

    def _again(self, answer: Answer) -> bool:
        """Whether a result may be one more of a call that was answered, where nobody counts them."""
        if self.history.counted:
            return False
        before = bisect.bisect_left(self.pairs, answer.position, key=lambda pair: pair.position)
        turn = answer.position - 1
        while turn >= 0 and self.messages[turn].results and answer.position - turn < _COMPARED:
            turn -= 1
        return any(
            each.answer is not None
            and answer.result.name in (None, each.call.name)
            and not (answer.result.call_id and each.call.id)
            for each in self.pairs[max(before - _COMPARED, 0) : before]
            if each.position == turn
        )

    def _pair_early(self, answer: Answer) -> bool:
        numbers = self.later.get(answer.result.call_id or "")
        if not numbers or self.pairs[numbers[-1]].position <= answer.position:
            return False
        number = numbers.pop()
        taken = self.pairs[number].answer is not None
        if not taken:
            self._answer(number, answer)
        return not taken

    def _pair_similar(self, answer: Answer) -> bool:
        best: tuple[int, int, int, Match] | None = None
        for order, number in enumerate(self._unanswered(answer.position)):
            call = self.pairs[number].call
            self.budget -= 1
            if self.budget < 0:
                break
            found = match(call.id or "", answer.result.call_id or "", call.name)
            if found is None or answer.result.name not in (None, "", call.name):
                continue
            if best is None or (_RANK[found.certainty], order) < best[:2]:
                best = (_RANK[found.certainty], order, number, found)
            if found.certainty == "high":
                break
        if best is None:
            return False
        self._answer(best[2], replace(answer, match=best[3]))
        return True

    def _pair_by_place(self, left: Sequence[Answer]) -> None:
        """Pairs what is left of a turn in order, if its ids say nothing and there are as many calls as results."""
        turns: dict[int, list[Answer]] = {}
        for answer in left:
            turns.setdefault(self._turn_before(answer.position), []).append(answer)
        unanswered: dict[int, list[int]] = {}
        for number in self.open:
            if self.pairs[number].answer is None:
                unanswered.setdefault(self.pairs[number].position, []).append(number)
        for position, answers in turns.items():
            couples = list(zip(unanswered.get(position, ()), answers, strict=False))
            how = "something that is no id in its place"
            certain = all(self._says_nothing(number, answer) for number, answer in couples)
            if not certain and self.history.counted:
                how = "another id in its place"
                certain = all(self.pairs[number].call.name == answer.result.name for number, answer in couples)
            if certain and len(couples) == len(answers) == len(unanswered.get(position, ())):
                for number, answer in couples:
                    self._answer(number, replace(answer, match=Match(how, "medium")))
            else:
                self.orphans += answers

    def _says_nothing(self, number: int, answer: Answer) -> bool:
        ids = (self.pairs[number].call.id or "", answer.result.call_id or "")
        counted = [id_.isdecimal() and len(id_) <= 3 for id_ in ids]
        strange = [is_other_kind(id_) for id_ in ids]
        mute = any(not key(id_) or is_placeholder(id_) for id_ in ids)
        return mute or any(flags in ([True, False], [False, True]) for flags in (counted, strange))

    def _turn_before(self, position: int) -> int:
        place = bisect.bisect_left(self.pairs, position, key=lambda pair: pair.position)
        return self.pairs[place - 1].position if place else -1
