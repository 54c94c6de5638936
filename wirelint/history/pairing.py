"""Pairing of the calls and results of a request's history: by exact id, then by similarity.

Theory of operation. Results are processed in order. A result with the id of an open call answers it; if several open
calls share the id, it answers the first one of the latest turn. The results left over are compared with the unanswered
calls, beginning with those of the turn just before: the smallest alteration wins (`ids.match`). If none matches, the
unanswered calls of a turn and the left-over results after it are paired in order, provided that there are as many of
each and that the ids of one side identify nothing (`undefined`, a bare number, the id of a message). The rest are
results without a call, and calls without a result.

If an API has no ids (Gemini, Ollama), or one side omits them, a result answers the first open call of its function in the
turn before it. Gemini pairs by order alone: as many results as calls.
"""

from __future__ import annotations

import bisect
import operator
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import orjson

from wirelint.apis.traits import History, history_of, traits
from wirelint.arguments.json_continuation import Scanner
from wirelint.fix import Edit
from wirelint.history.id_demands import Demand, KimiK2, Mistral, first_free, is_kimi_k3
from wirelint.history.ids import Match, form_of, is_other_kind, is_placeholder, key, match, restore
from wirelint.model import HostedCall, Json, Piece, Request, ToolCall, ToolResult
from wirelint.text.pointers import at

_COMPARED = 32
"""Calls that a left-over result is compared with: as many as one turn may hold, so that long histories stay linear."""
_BUDGET = 20_000
"""Most comparisons in one history, which bounds the time for thousands of unrelated ids."""
_POSITION = operator.attrgetter("position")
_RANK = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class Answer:
    """A result and the position of its message in `Request.messages`. `match` is None for equal ids."""

    result: ToolResult
    position: int
    match: Match | None = None


@dataclass(slots=True)
class Pair:
    """A call of the history, the position of its message, and its answer (None: there is none), which `pair` finds."""

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
    """Pair the calls and results of a history. Results without an id pair by name and order, or not at all.

    They are orphans only if the API has no ids, because only then name and order are all the evidence.
    """
    return _Pairer(request).run()


class _Pairer:
    def __init__(self, request: Request) -> None:
        self.history, self.messages = history_of(request.api), request.messages
        self.ids_needed = traits(request.api).has_call_ids
        parts = [(part, position) for position, message in enumerate(request.messages) for part in message.parts]
        self.pairs = [Pair(part, position) for part, position in parts if isinstance(part, ToolCall)]
        self.results = [Answer(part, position) for part, position in parts if isinstance(part, ToolResult)]
        self.hosted = {part.id for part, _ in parts if isinstance(part, HostedCall)}
        self.orphans: list[Answer] = []
        self.repeats: list[Answer] = []
        self.open: list[Pair] = []
        self.budget = _BUDGET
        self.later: dict[str, list[Pair]] = {}

    def run(self) -> Pairing:
        left = [answer for answer in self._pair_exactly() if answer.result.call_id not in self.hosted]
        self.open = [each for each in self.pairs if each.answer is None]
        for each in self.open:
            self.later.setdefault(each.call.id or "", []).append(each)
        for is_paired in (self._pair_nameless, self._pair_early, self._pair_similar):
            left = [answer for answer in left if not is_paired(answer)]
        self._pair_by_place(left)
        return Pairing(tuple(self.pairs), tuple(self.orphans), tuple(self.repeats))

    def _pair_exactly(self) -> list[Answer]:
        left: list[Answer] = []
        open_calls: dict[str, list[Pair]] = {}  # by id; the list of an id is empty if all its calls are answered
        number = 0
        for answer in self.results:
            while number < len(self.pairs) and self.pairs[number].position < answer.position:
                each = self.pairs[number]
                number += 1
                if each.call.id is not None:
                    open_calls.setdefault(each.call.id, []).append(each)
            id_ = answer.result.call_id
            calls = open_calls.get(id_) if id_ is not None else None
            if calls:
                calls.pop(bisect.bisect_left(calls, calls[-1].position, key=_POSITION)).answer = answer
            elif id_ and calls is not None:
                self.repeats.append(answer)
            else:
                left.append(answer)
        return left

    def _unanswered(self, before: int) -> list[Pair]:
        """Return the last unanswered calls before a message, the nearest turn first and in order within it."""
        end = bisect.bisect_left(self.open, before, key=_POSITION)
        near = self.open[max(end - 4 * _COMPARED, 0) : end]
        unanswered = [each for each in near if each.answer is None][-_COMPARED:]
        return sorted(unanswered, key=lambda each: -each.position)

    def _pair_nameless(self, answer: Answer) -> bool:
        """Pair a result without an id. OpenAI's first function calls had none; some servers leave them out to this day."""
        id_, free = answer.result.call_id, not self.ids_needed
        if id_ is not None and not free:
            return False
        for each in self._unanswered(answer.position):
            if answer.result.name in (None, each.call.name) and not (id_ and each.call.id):
                each.answer = answer
                return True
        # Unknown is not wrong: it may answer any call.
        return self._may_repeat(answer) if free else True

    def _may_repeat(self, answer: Answer) -> bool:
        """Return True if a result may be a further answer to a call, in an API that does not count results."""
        if self.history.is_counted:
            return False
        before = bisect.bisect_left(self.pairs, answer.position, key=_POSITION)
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
        later = self.later.get(answer.result.call_id or "")
        if not later or later[-1].position <= answer.position or (each := later.pop()).answer is not None:
            return False
        each.answer = answer
        return True

    def _pair_similar(self, answer: Answer) -> bool:
        found: list[tuple[Pair, Match]] = []
        for each in self._unanswered(answer.position):
            self.budget -= 1
            if self.budget < 0 or (found and found[-1][1].certainty == "high"):
                break
            altered = match(each.call.id or "", answer.result.call_id or "", each.call.name)
            if altered is not None and answer.result.name in (None, "", each.call.name):
                found.append((each, altered))
        if found:
            best, altered = min(found, key=lambda one: _RANK[one[1].certainty])
            best.answer = replace(answer, match=altered)
        return bool(found)

    def _pair_by_place(self, left: Sequence[Answer]) -> None:
        """Pair the rest of a turn in order, if its ids identify no call and there are as many calls as results."""
        turns: dict[int, list[Answer]] = {}
        for answer in left:
            place = bisect.bisect_left(self.pairs, answer.position, key=_POSITION)
            turns.setdefault(self.pairs[place - 1].position if place else -1, []).append(answer)
        unanswered: defaultdict[int, list[Pair]] = defaultdict(list)
        for each in self.open:
            if each.answer is None:
                unanswered[each.position].append(each)
        for position, answers in turns.items():
            couples = list(zip(unanswered[position], answers, strict=False))
            how = "something that is no id in its place"
            certain = all(
                _identify_nothing(each.call.id or "", answer.result.call_id or "") for each, answer in couples
            )
            if not certain and self.history.is_counted:
                how = "another id in its place"
                certain = all(each.call.name == answer.result.name for each, answer in couples)
            if certain and len(answers) == len(unanswered[position]):
                for each, answer in couples:
                    each.answer = replace(answer, match=Match(how, "medium"))
            else:
                self.orphans += answers


def _identify_nothing(*ids: str) -> bool:
    """Return True if the ids of a call and a result do not show that they belong to different calls."""
    counted = [id_.isdecimal() and len(id_) <= 3 for id_ in ids]
    strange = [is_other_kind(id_) for id_ in ids]
    mute = any(not key(id_) or is_placeholder(id_) for id_ in ids)
    return mute or any(flags in ([True, False], [False, True]) for flags in (counted, strange))


# Fixes of tool results that answer no call: removed, or kept as text if their message is needed.
#
# Theory of operation. In OpenAI's chat and in Responses a result is a message or an item and can be removed. With
# Anthropic, Converse and Gemini it is a block of a user message, and a message must not be empty. An empty message is
# removed, unless the history would then begin or end with the assistant, or have two assistant messages in a row: APIs
# and chat templates refuse that, or continue an assistant message at the end. In these cases the result becomes plain text.

_CONTENT = frozenset({"text", "image", "document"})
"""Blocks of a result that a user message may hold too."""
_CONVERSE = ("text", "image", "document", "video")
_ASSISTANT = (None, "assistant", "model")


def orphans(request: Request) -> tuple[Answer, ...]:
    """Return the results of a history that are known to answer no call."""
    found = pair(request).orphans
    if not found or request.is_partial:
        return ()
    needed = traits(request.api).has_call_ids
    known = (one for one in found if one.result.call_id is not None or not needed)
    return tuple(one for one in known if "[redacted:" not in (one.result.call_id or ""))


def removals(request: Request, found: Sequence[Answer]) -> dict[str, tuple[Edit, ...]]:
    """Return the edits that remove results from a history, by the results' pointers; none for those that must stay."""
    history = history_of(request.api)
    if not history.has_blocks:
        gone = {answer.position for answer in found}
        spoken = any(message.role != "system" for n, message in enumerate(request.messages) if n not in gone)
        return {answer.result.pointer: (Edit("remove", answer.result.pointer),) for answer in found if spoken}
    by_message: dict[int, dict[str, str]] = {}
    for answer in found:
        place = answer.result.pointer.split("/")
        if len(place) > 4 and place[2].isdecimal() and place[4].isdecimal():  # the messages are an array
            by_message.setdefault(int(place[2]), {})[answer.result.pointer] = "/".join(place[:5])
    body = at(request.body, history.place)
    edits: dict[str, tuple[Edit, ...]] = {}
    emptied: dict[int, str | None] = {}
    ordered = sorted(by_message.items())
    # A second time from the last one on: a message between two of the assistant may go if the later one goes.
    for number, blocks in (*ordered, *reversed(ordered)):
        if edits.keys().isdisjoint(blocks):
            edits |= _taken_out(body if isinstance(body, list) else [], number, blocks, emptied, history)
    return edits


def keeps_words(edits: Sequence[Edit]) -> bool:
    """Return True if the edits of a result keep its content as text."""
    return any(edit.op == "replace" for edit in edits)


def _taken_out(
    messages: Sequence[Json], number: int, blocks: Mapping[str, str], gone: dict[int, str | None], history: History
) -> dict[str, tuple[Edit, ...]]:
    """Return the edits for the results of one message. `blocks` maps pointers of results to those of their blocks.

    `gone` maps each message that is removed as a whole to the role of the last message before it that remains.
    """
    message = messages[number]
    content = message.get(history.content or "") if isinstance(message, dict) else None
    if not isinstance(content, list) or len(blocks) < len(content):
        return {pointer: (Edit("remove", block),) for pointer, block in blocks.items()}
    place = f"{history.place}/{number}"
    last = number - 1
    before = gone[last] if last in gone else _role(messages[last]) if number else None
    following = next((n for n in range(number + 1, len(messages)) if n not in gone), None)
    after = _role(messages[following]) if following is not None else None
    if not (before in _ASSISTANT and after in _ASSISTANT):
        gone[number] = before
        return {pointer: (Edit("remove", place),) for pointer in blocks}
    words = [block for result in content if isinstance(result, dict) for block in _words(result)]
    if not words:
        return {}
    edits = [Edit("replace", f"{place}/{history.content}", words)]
    if _role(message) in ("function", "tool"):
        edits.append(Edit("replace", f"{place}/role", "user"))
    return dict.fromkeys(blocks, tuple(edits))


def _role(message: Json) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else "user"


def _words(block: Mapping[str, Json]) -> Iterator[Json]:
    """Yield the words of a result, as blocks that a user message may hold. The vendors refuse blank text."""
    told = block.get("toolResult")
    response = block.get("functionResponse", block.get("function_response"))
    if isinstance(told, dict):  # Converse
        content = told.get("content")
        parts: list[Json] = content if isinstance(content, list) else [{"text": content}]
        for one in parts:
            if isinstance(one, dict) and "json" in one:
                yield {"text": orjson.dumps(one["json"]).decode()}
            elif isinstance(one, dict) and any(one.get(name) for name in _CONVERSE) and _has_content(one):
                yield one
    elif isinstance(response, dict):  # Gemini
        value = response.get("response")
        only = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
        words = only if isinstance(only, str) else "" if value in (None, {}) else orjson.dumps(value).decode()
        if words.strip():
            yield {"text": words}
    else:
        given = block.get("content")
        blocks: list[Json] = given if isinstance(given, list) else [{"type": "text", "text": given}]
        yield from (
            one for one in blocks if isinstance(one, dict) and one.get("type") in _CONTENT and _has_content(one)
        )


def _has_content(block: Mapping[str, Json]) -> bool:
    """Return True if a block is not blank text."""
    if block.get("type") != "text" and "text" not in block:
        return True
    text = block.get("text")
    return isinstance(text, str) and bool(text.strip())


# Other ids for the calls and results of a request's history: always together, by edits of the body.

_COUNTED = re.compile(r"(?P<stem>(?:[^0-9]*|.*[:_.-])(?<![0-9]))(?P<number>[0-9]{1,6})\Z", re.DOTALL)


def give_id(part: ToolCall | ToolResult, new: str, api: str) -> Edit:
    """Return the edit that puts an id on a call or on a result, where the API has it."""
    history = history_of(api)
    place = history.call_id if isinstance(part, ToolCall) else history.result_id
    return Edit("replace", f"{part.pointer}/{place}", new)


def rename(pair: Pair, new: str, api: str) -> Iterator[Edit]:
    """Yield the edits that give an id to a call and its result, unless a part has this id or needs none."""
    for part, id_ in zip((pair.call, pair.answer.result if pair.answer is not None else None), pair.ids, strict=True):
        if part is not None and id_ != new and (id_ or traits(api).has_call_ids):
            yield give_id(part, new, api)


def rename_repeats(repeats: Iterable[Answer], names: Mapping[str, str], api: str) -> Iterator[Edit]:
    """Yield the edits for further results of calls that are renamed. `names`: new ids by old ones."""
    for repeat in repeats:
        if (new := names.get(repeat.result.call_id or "")) is not None:
            yield give_id(repeat.result, new, api)


def next_id(id_: str, name: str | None, model: str, demand: Demand | None, taken: Collection[str]) -> str:
    """Return an id for another call that shares `id_`: the next number of a counted one, else `id_` and a number.

    The result depends on the arguments alone, so a prompt cache stays valid. `name` is the called function's.

    >>> next_id("functions.read:0", "read", "kimi-k2", None, {"functions.read:0"})
    'functions.read:1'
    """
    if isinstance(demand, Mistral) or form_of(id_) == "Mistral":
        return Mistral().mint(f"{id_}2", name, 0, taken) or id_
    native = _native_stem(id_, name, model, demand)
    if native is not None:
        counted = re.search(r"[0-9]{1,6}\Z", id_)
        new = first_free(native, int(counted[0]) + 1 if counted is not None else 1, taken)
    elif not id_:
        new = first_free(f"call_{key(name or '') or 'tool'}_", 1, taken)
    else:
        counted = _COUNTED.fullmatch(id_) if form_of(id_) in (None, "a counter", "Gemini") else None
        stem, number = (counted["stem"] or "", int(counted["number"]) + 1) if counted is not None else (f"{id_}_", 2)
        new = first_free(stem, number, taken)
    if demand is not None and demand.fault(new, name) is not None:
        return demand.mint(new, name, 1, taken) or new
    return new


def _native_stem(id_: str, name: str | None, model: str, demand: Demand | None) -> str | None:
    """Return the part before the number of Kimi's ids, if this id is one or would count as a broken one."""
    if not name:
        return None
    form = form_of(id_)
    if form == "Kimi K3":
        return f"functions.{name}:" if isinstance(demand, KimiK2) else f"{name}:"
    kimi = isinstance(demand, KimiK2) or is_kimi_k3(model)
    unknown = form is None or form == "a counter"
    if form == "Kimi K2" or restore(f"{id_}_2", name) is not None or (kimi and unknown):
        return f"{name}:" if is_kimi_k3(model) and form != "Kimi K2" else f"functions.{name}:"
    return None


# Announcements within a streamed call: some begin another call, some merely carry another id.
#
# Theory of operation. The index of an event names the call that it belongs to, and servers make two mistakes: one index
# for several calls, and another id in every event of one call. They differ in whether the call before was complete when
# the announcement came, and in what follows it. A `Succession` reads the calls under one index, event by event: the rules
# replay a finished call through it, and the repairs use it while the call streams, so both reach the same verdict.

CheckResult = Literal["same", "stray", "anew"]
"""`same`: the call continues. `stray`: it continues under another id. `anew`: another call begins."""


class Succession:
    """The calls under one index. `id` and `name` are those of the current call.

    A new id alone may come from a server that makes one up for every event, and another name may be the rest of the first.
    If the arguments before it are complete, or both are new, another call begins. If the server is known to make up ids,
    an announcement with nothing but another id after the arguments is one more of them; likewise if the event that ends a
    call repeats its id.
    """

    __slots__ = ("_given", "_repeated", "_scanner", "id", "name", "unstable")

    def __init__(self, id_: str | None, name: str | None, *, given: bool = False, repeated: bool = False) -> None:
        """`given`: the arguments came as a value with the start of the call. `repeated`: its id comes again at its end."""
        self._repeated = repeated
        self.id = id_ or None
        self.name = name or None
        self.unstable = False
        self._given = given
        self._scanner = Scanner()

    @property
    def complete(self) -> bool:
        """Return True if the arguments so far are whole values, the last of them an object."""
        return self._given or self._scanner.is_object

    def text(self, piece: str) -> None:
        """Record argument text of the call."""
        while piece:
            before = self._scanner.length
            self._scanner.feed(piece)
            if self._scanner.second is None:
                return
            piece = piece[self._scanner.second - before :] if self._scanner.second >= before else ""
            self._scanner = Scanner()

    def is_undecided(self, id_: str | None, name: str | None) -> bool:
        """Return True if the verdict on an announcement depends on the next event."""
        return self.judge(id_, name, follows=True) != self.judge(id_, name, follows=False)

    def judge(self, id_: str | None, name: str | None, *, follows: bool) -> CheckResult:
        """Return the verdict on an announcement. `follows`: argument text comes after it, before the next one."""
        other_id = bool(id_ and self.id and id_ != self.id)
        other_name = bool(name and self.name and name != self.name)
        if not other_id and not other_name:
            return "same"
        if other_id and other_name:
            return "anew"
        if not self.complete:
            return "stray" if other_id else "same"
        if name and (follows or not self.unstable):
            return "anew"
        # Without a name no client could run a new call, so the id is made up and the call continues.
        return "stray" if other_id and (follows or self.unstable or self._repeated) else "same"

    def is_late(self, id_: str | None, name: str | None) -> bool:
        """Return True if an announcement brings the first id or name of a call whose arguments have begun."""
        begun = self._given or self._scanner.length > 0
        brings = (id_ and not self.id) or (name and not self.name)
        other = (self.complete and self.name and name) or (self.id and id_ and id_ != self.id)
        return bool(begun and brings) and not other

    def take(self, verdict: CheckResult, id_: str | None, name: str | None) -> None:
        """Update the current call with an announcement and its verdict."""
        if verdict == "anew":
            self.id, self.name = id_ or None, name or self.name
            self._given = False
            self._scanner = Scanner()
        elif verdict == "stray":
            self.unstable = True
        else:
            self.id, self.name = self.id or id_ or None, self.name or name or None


class Announced(NamedTuple):
    """A later announcement of a call, whose id was `id`. `late`: it brings its first id or name, after arguments."""

    piece: Piece
    verdict: CheckResult
    id: str | None
    late: bool


def announced(call: ToolCall, api: str) -> Iterator[Announced]:
    """Yield the announcements of a streamed call after its first, each with its verdict."""
    if not call.pieces:
        return
    first, *later = call.pieces
    calls = Succession(
        first.id, first.name, given=call.start_input is not None, repeated=traits(api).has_repeated_calls
    )
    calls.text(call.deltas[: later[0].offset] if later else "")
    ends = [*(two.offset for _, two in pairwise(later)), len(call.deltas)]
    for piece, end in zip(later, ends, strict=False):
        text = call.deltas[piece.offset : end]
        verdict = calls.judge(piece.id, piece.name, follows=bool(text.strip(" \t\r\n")))
        yield Announced(piece, verdict, calls.id, calls.is_late(piece.id, piece.name))
        calls.take(verdict, piece.id, piece.name)
        calls.text(text)
