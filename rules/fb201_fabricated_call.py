from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.apis.traits import is_raw
from wirelint.claims import evidence
from wirelint.claims.actions import Kind
from wirelint.claims.announcements import asked, assented, besides, composes, looks_back, plays
from wirelint.claims.claims import Claim, claims, may_claim, says_done, told_of
from wirelint.claims.evidence import brought_along, calls_before, on_record, tools_used
from wirelint.claims.order_check import answering, performed, read_off, readings
from wirelint.claims.side_effects import Reach, has_place, reach
from wirelint.claims.tool_match import done_as_ordered, done_by_name, is_brief, ordered
from wirelint.claims.toolkinds import Ability, abilities, cannot, matching, reports, spoken_of, topics_in
from wirelint.history.handed_back import never_ran
from wirelint.model import Choice, Exchange, Reply, Request, Text
from wirelint.rule import Confidence, Finding, Rule, Severity, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose
from wirelint.text.prose import Prose

_REDACTED = "[redacted:"
_LONGEST_TERSE = 700
_TOLD_APART: frozenset[Kind] = frozenset({"send", "book", "delete", "run", "write", "create", "control"})
"""Kinds that a tool of another kind does not do by the way."""
_LOOKED_IN = re.compile(
    r"\b(?:in|on) (?:the|our|your|my|this) (?:[\w-]+ )?(?:knowledge base|kb|docs|documentation|database|wiki|"
    r"index|repo|repository|codebase|web|internet|catalog(?:ue)?|inbox|calendar|logs?)\b",
    re.IGNORECASE,
)


class FabricatedCall(Rule):
    """The reply claims an action of a tool, and nothing ran.

    ## What it does
    Reports a reply whose text says that something was done (searched, read, changed, sent, run, booked) which a tool
    declared in the request does, although no call and no result stands between the user's last words and this reply.
    A claim and a tool are linked by what both speak of, by the words of the order, or by the tool's own verb.
    Where calls did run, a claim of another kind of action than any of their tools can do is reported as a warning: the
    mails were read, and "I've sent the answer" is said of a tool that was never called.

    ## Why is this bad?
    The user believes that the mail is out, the file is changed, the knowledge base has nothing on the subject. No log
    of the tools shows anything, because nothing reached them.

    ## Example
    Tools: `search_docs`. The user asks for the holiday policy. The reply is `I searched the documents and found 0
    results.`, with finish reason `stop` and no call.

    ## False positives
    Silent when what ran may have done it (a shell, an agent, a tool that takes any request, a side effect that a
    description or a result speaks of), when the provider was offered tools of its own, at raw endpoints (what ran
    stands in their prompt, in whatever notation), when an earlier call on record is what the claim speaks of, and when
    no declared tool could have done it. What is quoted, in code, negated, asked, conditional or planned is no claim, nor
    what happened in another year or in a part that the user wants played. Neither are acts of the reply itself: a text
    that was written, a question that was read, code that was corrected in place. Claims that may be meant so, and those
    of conversations whose beginning was cut off or summarised, are reported as `info` at most.

    ## Fix safety
    Reported only: what the tool would have said is not known.

    ## References
    - OpenAI, Function calling; Anthropic, Tool use
    """

    code = "FB201"
    name = "fabricated-call"
    severity = "error"
    layer = "model"
    requires_in_reply = frozenset({"tools"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or not request.client_tools:
            return
        spoken = [choice for choice in reply.choices if not choice.calls and not choice.hosted]
        if not spoken or is_raw(exchange.api, request):
            return  # at raw endpoints, what ran stands in the prompt, in whatever notation
        if evidence.anything_ran(request):
            yield from self._beside_the_calls(request, reply, ledger)
            return
        for choice in spoken:
            yield from self._judge(request, choice, ledger)

    def _beside_the_calls(self, request: Request, reply: Reply, ledger: Ledger) -> Iterator[Finding]:
        """A claim of an action that no tool which ran in this conversation can do."""
        used = tools_used(request)
        if not used or evidence.was_summarised(request):
            return
        results = [result.text for message in request.turn for result in message.results]
        words = evidence.last_words(request)
        for choice in reply.choices:
            if choice.calls or choice.hosted:
                continue
            for part, claim, fitting in _unbacked(request, choice, used):
                if looks_back(words) or composes(words) or any(reports(text, claim.kinds) for text in results):
                    continue
                names = ", ".join(sorted({one.tool.name for one in used}))
                idle = never_ran(fitting.tool, ledger.tools)
                yield self.finding(
                    "response",
                    f"claims {excerpt(part.text[claim.start : claim.end], 90)!r}, which what ran in this turn "
                    f"({excerpt(names, 60)}) cannot have done: {fitting.tool.name} is declared and was not called{idle}",
                    part.pointer,
                    event=part.event_at(claim.start),
                    span=(claim.start, claim.end),
                    severity="error" if idle else "warning",
                    confidence="high" if idle else "medium",
                )
                break

    def _judge(self, request: Request, choice: Choice, ledger: Ledger) -> Iterator[Finding]:
        found: list[tuple[int, Text, Claim, Ability]] = []
        for part in choice.parts:
            if not isinstance(part, Text) or not _worth_reading(part.text):
                continue
            for number, claim in enumerate(claims(read := prose.read(part.text))):
                able = abilities(request.tools)
                fitting = next(matching(able, claim.kinds, claim.verb, claim.object), None)
                weight = _weigh(claim, read, request, fitting) if fitting is not None else 0
                if fitting is None and claim.form == "said" and claim.verb in _USES:
                    fitting = spoken_of(able, claim.object)
                    weight = 2 if fitting is not None and _stands(claim, request) else 0
                if weight < 2 and number < _MOST_LINKED and (tool := _ordered(claim, read, request, able)):
                    weight, fitting = 2, tool
                if fitting is not None and weight > 0:
                    found.append((weight, part, claim, fitting))
                    if weight == max(_GRADES):
                        break
            if not found and (named := _by_name(read, request)):
                found.append((3, part, *named))
            if not found and (called := _in_its_verb(read, request)):
                found.append((2, part, *called))
            if not found and (done := _bare(read, request)):
                found.append((2, part, *done))
            if not [entry for entry in found if entry[0] >= 2] and (told := _carried_out(read, request)):
                found.append((2, part, *told))
        if not found:
            return
        weight, part, claim, fitting = max(found, key=lambda one: (one[0], -one[2].start))
        idle = never_ran(fitting.tool, ledger.tools)
        severity, confidence = _GRADES[3 if idle and weight > 1 else weight]
        yield self.finding(
            "response",
            f"claims {excerpt(part.text[claim.start : claim.end], 90)!r} and nothing ran: no call in this reply, "
            f"no call or result since the user's last message ({fitting.tool.name} is declared{idle})",
            part.pointer,
            event=part.event_at(claim.start),
            span=(claim.start, claim.end),
            severity=severity,
            confidence=confidence,
        )


def _worth_reading(text: str) -> bool:
    """Whether a text can hold a claim that counts: a short one in any form, a long one not without a subject."""
    return _REDACTED not in text and (len(text) <= _LONGEST_TERSE or may_claim(text))


def _unbacked(request: Request, choice: Choice, used: tuple[Ability, ...]) -> Iterator[tuple[Text, Claim, Ability]]:
    """First-person claims of which only a declared tool that was never called can be the source."""
    names = {one.tool.name for one in used}
    idle = [one for one in abilities(request.tools) if one.tool.name not in names]
    for part in choice.parts:
        if not idle or not isinstance(part, Text) or not _worth_reading(part.text):
            continue
        read = prose.read(part.text)
        for claim in claims(read):
            if claim.form != "said" or claim.earlier or not claim.kinds & _TOLD_APART:
                continue
            if not all(cannot(one, claim.kinds) for one in used):
                continue
            fitting = next(matching(idle, claim.kinds, claim.verb, claim.object), None)
            if fitting is not None and reach(claim, read, fitting) is Reach.SURE:
                yield part, claim, fitting


_GRADES: dict[int, tuple[Severity, Confidence]] = {3: ("error", "high"), 2: ("warning", "medium"), 1: ("info", "low")}


def _weigh(claim: Claim, read: Prose, request: Request, fitting: Ability) -> int:
    """How heavy a claim is: 0 nothing, 1 info, 2 warning, 3 error."""
    reached = reach(claim, read, fitting) if claim.form not in ("stands", "news") else Reach.NO
    if reached is Reach.NO:
        return 0
    words = evidence.last_words(request)
    wanted = asked(words) | assented(words, _said_before(request))
    if claim.form == "state":
        return 2 if _is_set(claim, words, read) and fitting.kinds & {"control"} and not looks_back(words) else 0
    if claim.form in ("passive", "terse", "missed") and len(read.text) > _LONGEST_TERSE:
        return 0
    if _is_fiction(request) and not wanted & claim.kinds:
        return 0
    if (looks_back(words) or claim.earlier) and any(message.role == "assistant" for message in request.messages):
        return 0 if calls_before(claim, request) else 1
    if on_record(claim, request, wanted):
        return 0
    weight = {Reach.SURE: 3, Reach.MAYBE: 1}[reached]
    if claim.verb == "results":
        spoken_of = any("result" in message.text.lower() for message in request.messages if message.role != "assistant")
        return 0 if spoken_of else 2
    if claim.form in ("passive", "terse", "missed"):
        named = claim.form == "missed" and _LOOKED_IN.search(claim.object) is not None
        named = named or (claim.form == "terse" and _reports_back(claim, read))
        named = named or (claim.form == "terse" and read.text[claim.start] in "✅✔☑" and reached is Reach.SURE)
        if not (wanted & claim.kinds or named):
            return 0
        weight = 2
    elif reached is Reach.MAYBE and wanted & claim.kinds and not read.fenced:
        weight = 2
    if (composes(words) and not _ordered_too(words, claim)) or _is_quoted_back(claim, words):
        return 0
    if brought_along(claim, request) or evidence.was_summarised(request):
        weight = min(weight, 1)
    return weight


_FOUND = re.compile(
    r"(?:[:,;.–—-]|\band)\s*(?:there (?:is|are|was|were)|(?:I )?found|no|nothing|none|\d+|zero|not a single)\b",
    re.IGNORECASE,
)


def _reports_back(claim: Claim, read: Prose) -> bool:
    """Whether a note of a search goes on with what came of it: "Searched the wiki for leave: no documents."."""
    if not claim.kinds & {"search"} or claim.start > 4 or not topics_in(claim.object):
        return False
    return _FOUND.search(read.masked, claim.start, claim.end + 80) is not None


_LONGEST_ORDER = 120


def _is_set(claim: Claim, words: str, read: Prose) -> bool:
    """Whether a state that is told is the one that was ordered, in few words: "hall light off", "heating to 19"."""
    told = read.masked[claim.start : claim.end].lower()
    if len(words) > _LONGEST_ORDER or "?" in words or composes(words):
        return False
    if re.search(r"\b(?:is|are|was|were|have|I|it['’]s|if|when)\b", words):
        return False
    state = claim.verb if claim.verb != "set to" else next(iter(re.findall(r"\d+", told)), "")
    return bool(state) and re.search(rf"\b{re.escape(state)}(?:\b|(?=\D))", words.lower()) is not None


def _is_quoted_back(claim: Claim, words: str) -> bool:
    """Whether the user has said the same of somebody: "make this nicer: I booked the room"."""
    return re.search(rf"\b(?:I|[Ww]e)(?:['’](?:ve|d)| have)? (?:\w+ )?{re.escape(claim.verb)}\b", words) is not None


def _said_before(request: Request) -> str:
    """What the model said last, before the user's last words."""
    return next((message.text for message in reversed(request.messages) if message.role == "assistant"), "")


def _by_name(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """A tool that is said, by its name, to have answered."""
    told = list(told_of(read, [tool.name for tool in request.client_tools]))
    if not told:
        return None
    words = evidence.last_words(request)
    if looks_back(words) or composes(words) or evidence.was_summarised(request):
        return None
    heard = " ".join(message.text for message in request.messages if message.role != "system")
    for name, claim in told:
        if name not in heard and not any(call.name == name for message in request.messages for call in message.calls):
            return claim, next(one for one in abilities(request.tools) if one.tool.name == name)
    return None


def _ordered_too(words: str, claim: Claim) -> bool:
    """Whether a claim beside a text to be composed is one of an act that was ordered with it, not a part of the text."""
    return bool(besides(words) & claim.kinds) or (has_place(claim.object) and has_place(words))


_MOST_LINKED = 16
"""Claims of a text that are held against the words of the order: what was ordered is told at once."""
_USES = frozenset({"used", "called", "invoked", "ran", "queried"})


def _stands(claim: Claim, request: Request) -> bool:
    """Whether nothing explains a claim: no other speaker, no earlier call, no text that was asked for."""
    words = evidence.last_words(request)
    if (
        looks_back(words)
        or composes(words)
        or claim.earlier
        or _is_fiction(request)
        or evidence.was_summarised(request)
    ):
        return False
    return not any(message.calls for message in request.messages)


def _ordered(claim: Claim, read: Prose, request: Request, able: tuple[Ability, ...]) -> Ability | None:
    """The tool for an order whose own words a claim takes up, where nothing else explains the claim."""
    words = evidence.last_words(request)
    if claim.form == "passive" and len(read.text) > _LONGEST_TERSE:
        return None
    if looks_back(words) or composes(words) or _is_fiction(request) or evidence.was_summarised(request):
        return None
    if _is_quoted_back(claim, words):
        return None
    heard = " ".join(message.text for message in request.messages)
    fitting = ordered(claim, read, words, heard, able)
    if fitting is None or brought_along(claim, request) or calls_before(claim, request):
        return None
    return fitting


def _in_its_verb(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """What is said to have been done in the verb of a tool's own name."""
    if not is_brief(read) or (request.has_history and any(message.calls for message in request.messages)):
        return None
    words, able = evidence.last_words(request), abilities(request.tools)
    found = done_by_name(read, words, able)
    if found is None:
        found = done_as_ordered(read, words, able)
        if found is None or composes(words):
            return None
    # To go through what was asked takes longest, and most replies say no such thing.
    handed_over = composes(words) and re.search(r"[:：] *\S", words) is not None
    return None if handed_over or _asks_otherwise(request, words) else found


def _carried_out(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """What is told, in whatever words, as the act that was ordered."""
    words = evidence.last_words(request)
    acts, read_there = answering(read, words), readings(read, words)
    if not acts and not read_there:
        return None
    able = abilities(request.tools)
    heard = " ".join(message.text for message in request.messages)
    called = {call.name or "" for message in request.messages for call in message.calls}
    told = performed(read, acts, words, heard, _said_before(request), able, called)
    if told is None and read_there and not evidence.supplies_results(request):
        told = read_off(read, read_there, words, heard, able, called)
    # As in `_in_its_verb`: what was asked comes last.
    return None if told is None or composes(words) or _asks_otherwise(request, words) else told


def _asks_otherwise(request: Request, words: str) -> bool:
    """Whether no act was ordered: an account, a part to be played, or work on what the user brought along."""
    if looks_back(words) or _is_fiction(request):
        return True
    return evidence.was_summarised(request) or evidence.brings_content(request)


def _is_fiction(request: Request) -> bool:
    """Whether the user has asked for a part to be played."""
    return any(message.speaks and plays(message.words[-4000:]) for message in request.messages[-6:])


def _bare(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """A bare "Done." in answer to an order that only a tool can carry out, with that tool."""
    claim = says_done(read)
    if claim is None:
        return None
    words = evidence.last_words(request)
    wanted = asked(words) - {"search", "read"}
    if not wanted or len(words) > 400 or composes(words) or looks_back(words) or evidence.was_summarised(request):
        return None
    able = matching(abilities(request.tools), wanted, "", words)
    fitting = next((one for one in able if one.topics & topics_in(words)), None)
    return (claim, fitting) if fitting is not None else None
