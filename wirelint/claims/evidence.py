"""Calls that ran in the present turn, and their outcomes: an error, nothing, or a number of hits.

Text protocols count too: a user message may be the result of a tool without any API field for it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from wirelint import lexicon
from wirelint.apis.traits import is_raw
from wirelint.claims.actions import Kind, bare
from wirelint.claims.claims import Claim
from wirelint.claims.derivation import Datum, data
from wirelint.claims.toolkinds import Ability, abilities, ability, fits
from wirelint.jsonvalues import decode_json
from wirelint.model import (
    Choice,
    Confidence,
    Exchange,
    HostedCall,
    HostedResult,
    Json,
    Message,
    Opaque,
    Request,
    Severity,
    Tool,
    ToolCall,
    ToolResult,
)
from wirelint.text.escaping import excerpt
from wirelint.text.prose import Cues, Prose, Sentence, mentions
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("evidence")
_MEDIA = frozenset(_PHRASES.words("media"))

_GIVEN = (" result", " output", " response")
_RESULT_MARKS = Cues(*_PHRASES.words("result_marks"))
_RESULT_WORDS = Cues(*(f"{giver}{given}" for giver in ("tool", "function", "command") for given in _GIVEN))
_RESULT_ENDS = Cues(*_GIVEN)
_SUMMARY_WORDS = ("previous conv", "summary", "compacted", "earlier in", "so far")
"""Words in lower case, of which every match of the pattern has one. Searching for them is much faster."""


_LOOKED_AT = 64
"""Open calls that may belong to a result without an id."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A call of the turn with its result. The client may have sent only one of them."""

    call: ToolCall | None
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a result. `counts`: every number that may be the number of hits (empty: unknown)."""

    error: bool
    counts: frozenset[int]

    @property
    def empty(self) -> bool:
        return 0 in self.counts


def answers(exchange: Exchange) -> tuple[Choice, ...]:
    """Return the choices of a reply that could call a declared tool and do not; none at raw endpoints, whose prompts hold
    calls in any notation."""
    request, reply = exchange.request, exchange.reply
    if request is None or reply is None or not exchange.ok or not request.client_tools:
        return ()
    silent = tuple(choice for choice in reply.choices if not choice.calls and not choice.hosted)
    return () if not silent or is_raw(exchange.api, request) else silent


def last_words(request: Request) -> str:
    """Return the user's last message without reminders of the client; empty without one."""
    last = request.last_user
    return last.words if last is not None else ""


def anything_ran(request: Request) -> bool:
    """Return True if any call, result or hosted tool is in the turn, in an API field or, in text protocols, as text.

    True also if the server holds a part of the turn, which is then unknown. A search for tools does not count: its result
    names declared tools and gives nothing else.
    """
    if request.hosted or not request.tools_known or not request.shows_turn:
        return True
    results = [result for message in request.turn for result in message.results]
    names = {tool.name for tool in request.tools}
    searches = {result.call_id for result in results if result.call_id and _names_tools(result, names)}
    for message in request.turn:
        for part in message.parts:
            if isinstance(part, (HostedCall, HostedResult)):
                return True
            if isinstance(part, (ToolCall, ToolResult)) and _id_of(part) not in searches:
                return True
    for message in reversed(request.messages):
        if message.role in ("user", "tool") and not any(result.call_id in searches for result in message.results):
            return message.role == "tool" or _is_result(message.text)
    return False


def _names_tools(result: ToolResult, names: set[str]) -> bool:
    """Return True if a result holds some of these names of tools and nothing else."""
    words = result.text.split(maxsplit=len(names))
    return bool(words) and names.issuperset(words)


def _id_of(part: ToolCall | ToolResult) -> str | None:
    return part.id if isinstance(part, ToolCall) else part.call_id


def _is_result(text: str) -> bool:
    lower = text.lower()
    named = _RESULT_ENDS.occur_in(lower) and _RESULT_WORDS.occur_in(lower)
    return (named or _RESULT_MARKS.occur_in(lower)) and _PHRASES["result_text"].search(text) is not None


def ran(messages: tuple[Message, ...]) -> tuple[Ran, ...]:
    """Return the calls of some messages with their results, in the order of the results; unpaired ones too.

    If the API has no ids, results answer the calls of their name in order.
    """
    calls = {call.id: call for message in messages for call in message.calls if call.id}
    nameless = deque(call for message in messages for call in message.calls if not call.id)
    results = [result for message in messages for result in message.results]
    paired = [
        Ran(calls.get(result.call_id) if result.call_id else _next_of(nameless, result.name), result)
        for result in results
    ]
    answered = {result.call_id for result in results}
    left = (*(call for id_, call in calls.items() if id_ not in answered), *nameless)
    return (*paired, *(Ran(call, None) for call in left))


def _next_of(calls: deque[ToolCall], name: str | None) -> ToolCall | None:
    """Remove and return the first call of a name; the first of all for a result without one."""
    for number, call in enumerate(itertools.islice(calls, _LOOKED_AT)):
        if name in (None, "", call.name):
            del calls[number]
            return call
    return None


def was_summarised(request: Request) -> bool:
    """Return True if the request lacks a part of the conversation: the server holds it, or a summary replaces it."""
    if request.is_partial:
        return True
    spoken = [message for message in request.messages if message.role != "system"]
    if spoken and spoken[0].role != "user":
        return True
    heard = (message.text[:4000] for message in request.messages if message.role != "assistant")
    return any(mentions(text, _SUMMARY_WORDS) and _PHRASES["summary"].search(text) for text in heard)


def is_unseen(request: Request) -> bool:
    """Return True if images, audio or files are part of the request, which may show anything."""
    heard = (message for message in request.messages if message.role in ("user", "tool"))
    return any(isinstance(part, Opaque) and part.kind in _MEDIA for message in heard for part in message.parts)


def supplies_results(request: Request) -> bool:
    """Return True if the prompt contains material that a tool would find: passages, documents, search results."""
    return any(_PHRASES["supplied"].search(message.text) for message in request.messages if message.role != "assistant")


def brings_content(request: Request) -> bool:
    """Return True if the last user message contains material: an attachment, a block of code, a long text."""
    last = request.last_user
    if last is None:
        return False
    return any(isinstance(part, Opaque) for part in last.parts) or "```" in last.words or len(last.words) > 1500


_LONGEST_FAILURE = 600
_LONGEST_ERROR = 1500
_COUNT_KEYS = frozenset(_PHRASES.words("count_keys"))
_LIST_KEYS = frozenset(_PHRASES.words("list_keys"))


_NO_ERROR: tuple[Json, ...] = (None, "", False, [], {}, 0)
_ERROR_KEYS = _PHRASES.words("error_keys")
STATE_KEYS = _PHRASES.words("state_keys")
_FAILURES = frozenset(map(bare, _PHRASES.words("failures")))
_FAULT_KEYS = frozenset({"errors", "warnings", "failures", "diagnostics", "notes", "tags"})
"""Lists about the hits that are not the hits themselves."""
REASONS = frozenset(_PHRASES.words("reasons"))
_REFUSALS = frozenset(_PHRASES.words("refusals"))


def outcome(result: ToolResult) -> Outcome:
    """Return the outcome of a result, by its text and its error flag."""
    return _outcome_of_text(result.text, result.is_error is True)


def _outcome_of_record(text: str) -> Outcome | None:
    """Return the outcome of the record of a thing that has failed, which is no error of the look-up: a pipeline's."""
    document = decode_json(text) if text.lstrip().startswith("{") else None
    if not isinstance(document, dict) or len(document) <= _FEW_FIELDS:
        return None
    rest = {key: value for key, value in document.items() if key.lower() not in STATE_KEYS}
    return None if _says_error(rest) else Outcome(False, frozenset(_counts(text, rest)))


_FEW_FIELDS = 4


@remembered
def _outcome_of_text(text: str, marked: bool) -> Outcome:
    """Return the outcome of a result's text. `marked`: the API marks the result as an error."""
    text = text.strip()
    document = decode_json(text) if text.startswith(("{", "[")) else None
    error = marked or _is_error(text, document)
    return Outcome(error, frozenset() if error else frozenset(_counts(text, document)))


def failed_command(text: str, arguments: str) -> bool:
    """Return True if the output of a shell, a compiler or a database is an error, by the first or last of few lines.

    Commands that show a file do not count: the file may be about errors.
    """
    if len(text) > _LONGEST_FAILURE or _PHRASES["shows_text"].search(arguments):
        return False
    lines = text.strip().splitlines()
    return bool(lines) and any(_PHRASES["failed_command"].match(line) for line in (lines[0], lines[-1]))


def _is_error(text: str, document: Json) -> bool:
    if isinstance(document, dict):
        return _says_error(document)
    if len(text) > _LONGEST_ERROR:
        return False
    if _PHRASES["error_start"].match(text):
        return True
    # Exit status 1 alone is an answer of many programs: grep found nothing, diff found something.
    exited = _PHRASES["exit"].search(text)
    if exited is None or _PHRASES["failure"].search(text) is None:
        return False
    return len(text) < 400 or (exited[1] or exited[2]) not in (None, "1")


def _says_error(document: dict[str, Json], depth: int = 0) -> bool:
    fields = {key.lower().replace("-", "_"): value for key, value in document.items()}
    if fields.get("iserror") is True or fields.get("is_error") is True:
        return True
    if any(fields.get(key) not in _NO_ERROR for key in _ERROR_KEYS) and not any(
        fields.get(key) for key in _LIST_KEYS - {"content"}
    ):
        return True
    if fields.get("errors") not in _NO_ERROR and fields.get("data", 1) is None:
        return True  # GraphQL
    if fields.get("ok") is False or fields.get("success") is False:
        return True
    if depth:
        return False
    status = next((fields[key] for key in STATE_KEYS if fields.get(key)), None)
    if isinstance(status, str):
        plain = bare(status.lower().replace(" ", "_"))
        # A record may have such a state too: only in a short result with a reason is it the state of the call.
        refused = plain in _REFUSALS and len(fields) <= _FEW_FIELDS and bool(fields.keys() & REASONS)
        return refused or plain in _FAILURES
    if isinstance(status, int) and not isinstance(status, bool):
        return 400 <= status < 600
    inner = [*fields.values()] if len(fields) == 1 else [fields.get(key) for key in _ENVELOPES]
    return any(isinstance(one, dict) and _says_error(one, depth + 1) for one in inner)


_ENVELOPES = ("result", "response", "data", "body")
"""Keys of an answer beside which there may be others: `{"result": {"error": …}, "info": …}`."""


_FEW_LINES = 2
"""Line ends of a short result."""


def _counts(text: str, document: Json) -> Iterator[int]:
    if isinstance(document, list):
        yield len(document)
        return
    if isinstance(document, dict):
        yield from _counts_of(document, 0)
        return
    first = text.partition("\n")[0] if text.count("\n") > _FEW_LINES else text  # a file may quote such a result
    if _PHRASES["none"].search(first[:400]):
        yield 0
    for found in _PHRASES["number"].finditer(text[:2000]):
        number = int(next(number for number in found.groups() if number))
        if number or found.start() < len(first):
            yield number


def _counts_of(document: dict[str, Json], depth: int) -> Iterator[int]:
    lists = [value for key, value in document.items() if isinstance(value, list) and key.lower() not in _FAULT_KEYS]
    if len(lists) == 1 and lists[0] and all(isinstance(one, dict) for one in lists[0]):
        yield len(lists[0])  # the only list of a result holds the hits, under any name
    for key, value in document.items():
        plain = key.lower().replace("-", "_")
        if plain in _COUNT_KEYS and isinstance(value, int) and not isinstance(value, bool):
            yield value
        elif isinstance(value, list) and plain in _LIST_KEYS:
            yield len(value)
        elif isinstance(value, dict) and depth < 2:
            yield from _counts_of(value, depth + 1)


# Evidence in the history that supports a claim: earlier calls, and content that arrived with the conversation.


def may_be_on_record(claim: Claim, request: Request, wanted: frozenset[Kind]) -> bool:
    """Return True if the claim may be about an earlier call of the history.

    It may not if the user has just ordered such an action, wants it done again, or gave a name that the claim repeats and
    no result holds.
    """
    same = calls_before(claim, request)
    if not same or wanted & claim.kinds:
        return False
    words = last_words(request).lower()
    if _PHRASES["again"].search(claim.object) and _PHRASES["again"].search(words):
        return False
    named = [mark for mark in map(str.lower, _PHRASES["marks"].findall(claim.object)) if mark in words]
    return not named or any(mark in result.text.lower() for mark in named for result in request.results)


def calls_before(claim: Claim, request: Request) -> list[ToolCall]:
    """Return the calls of the history that could have done the claimed action."""
    able = [
        (call, ability(request.tool(call.name) or Tool(call.name, call.pointer))) for call in request.calls if call.name
    ]
    return [call for call, one in able if fits(one, claim.kinds, claim.verb, claim.object)]


def has_material(claim: Claim, request: Request) -> bool:
    """Return True if the conversation contains the material that the claim is about."""
    if not claim.kinds & {"read", "search"}:
        return False
    return supplies_results(request) or ("read" in claim.kinds and brings_content(request))


def tools_used(request: Request) -> tuple[Ability, ...]:
    """Return the abilities of the tools that the turn called; none if there may be unknown ones."""
    if request.hosted or not request.tools_known or request.is_partial:
        return ()
    if not any(message.calls for message in request.turn):
        return ()
    if any(isinstance(part, (HostedCall, HostedResult)) for part in request.parts):
        return ()
    declared = {name: request.tool(name) for name in {call.name for message in request.turn for call in message.calls}}
    tools = [tool for tool in declared.values() if tool is not None and not tool.hosted]
    return abilities(tools) if len(tools) == len(declared) else ()


# The results of a turn, each with its outcome and the abilities of its tool; and statements that contradict them.


SURE: tuple[Severity, Confidence] = ("error", "high")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A statement, its offsets, and the result that contradicts it."""

    start: int
    end: int
    against: str
    severity: Severity = "warning"
    confidence: Confidence = "medium"


@dataclass(frozen=True, slots=True)
class Fact:
    """A result of the turn with its outcome and the abilities of the called tool."""

    result: ToolResult
    outcome: Outcome
    able: Ability
    arguments: str

    @property
    def shown(self) -> str:
        return f"{self.able.tool.name or 'the tool'} gave {excerpt(self.result.text, 70)!r}"


class Turn:
    """A reply, the calls that ran before it with their results, and the request: what the checks compare.

    `good`: the results that are no errors. `returned`: their texts. `sent`: the arguments of the calls. `order`: the user's
    last message.
    """

    def __init__(self, prose: Prose, known: Sequence[Fact], ran: Sequence[Ran], request: Request) -> None:
        self.prose, self.known, self.ran, self.request = prose, known, ran, request
        self.order = last_words(request)
        self.good = [fact for fact in known if not fact.outcome.error]
        self.returned = [fact.result.text for fact in self.good]
        self.sent = [fact.arguments for fact in known]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """The sentences that are no questions."""
        return [sentence for sentence in self.prose.sentences if not sentence.question]

    @cached_property
    def told(self) -> list[str]:
        """The messages of the conversation and the arguments of its calls."""
        request = self.request
        return [*(one.text for one in request.messages), *(call.arguments.text for call in request.calls)]

    @cached_property
    def results(self) -> list[str]:
        """The results of the whole conversation."""
        return [result.text for result in self.request.results]

    @cached_property
    def texts(self) -> list[str]:
        """The messages, arguments and results of the conversation."""
        return [*self.told, *self.results]

    @cached_property
    def numbers(self) -> list[Datum]:
        """The numbers of the results of the whole conversation."""
        return [datum for text in self.results for datum in data(text)]

    @cached_property
    def outdated(self) -> frozenset[str]:
        """The results whose states the turn has changed: of look-ups before its last action, and those of which a later
        result has an object with another flag or state."""
        looked = [fact.able.kinds <= {"search", "read"} for fact in self.good]
        last = max((at for at, looking in enumerate(looked) if not looking), default=0)
        documents = [decode_json(text) for text in self.returned]
        latest = [(at, one) for at, one in enumerate(documents) if isinstance(one, dict)][-_MOST_LATER:]
        changed = (
            text
            for at, text in enumerate(self.returned)
            if any(later > at and _updates(one, documents[at]) for later, one in latest)
        )
        before = (text for text, looking in zip(self.returned[:last], looked, strict=False) if looking)
        return frozenset((*before, *changed))


_MOST_LATER = 16
"""The last results of a turn that are compared with all before them."""


def _updates(later: dict[str, Json], document: Json) -> bool:
    """Return True if a later result is an object that a result has with another flag or state: `"locked": true`."""
    states = {k: cell for k, cell in later.items() if isinstance(cell, bool) or k.lower() in (*STATE_KEYS, "state")}
    first = next(iter(later), "")  # mostly the key of an id or a name
    return any(
        other.get(first) == later[first] and any(key in other and other[key] != cell for key, cell in states.items())
        for other in (_objects(document, 0) if states else ())
    )


def _objects(document: Json, depth: int) -> Iterator[dict[str, Json]]:
    if isinstance(document, dict):
        yield document
    if isinstance(document, (dict, list)) and depth < _DEEPEST_OBJECT:
        for one in document.values() if isinstance(document, dict) else document:
            yield from _objects(one, depth + 1)


_DEEPEST_OBJECT = 4


def facts(request: Request, ran: Sequence[Ran]) -> tuple[Fact, ...]:
    """Return the results of a turn with their outcomes and the abilities of their tools."""
    made: list[Fact] = []
    for one in ran:
        if one.result is None:
            continue
        name = (one.call.name if one.call else None) or one.result.name or ""
        able = ability(request.tool(name) or Tool(name, one.result.pointer))
        arguments = one.call.arguments.text if one.call else ""
        says = outcome(one.result)
        if not says.error and (able.shell or "run" in able.kinds) and failed_command(one.result.text, arguments):
            says = Outcome(True, frozenset())
        if says.error and one.result.is_error is not True and able.kinds and able.kinds <= {"search", "read"}:
            says = _outcome_of_record(one.result.text) or says
        made.append(Fact(one.result, says, able, arguments))
    return tuple(made)
