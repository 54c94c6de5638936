from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter

from wirelint.claims import evidence
from wirelint.claims.actions import Kind
from wirelint.claims.announcements import (
    asked,
    asks_about_past,
    asks_for_text,
    orders_beside_text,
    orders_role,
)
from wirelint.claims.claims import MADE_NAME, Claim, bare_done, claims, reported_call, reported_outcome, shared_words
from wirelint.claims.evidence import calls_before, has_material, may_be_on_record, tools_used
from wirelint.claims.order_check import (
    claim_by_name,
    ordered,
    performed,
)
from wirelint.claims.reported import acted_by_name, is_dialogue, is_named_apart, reported_beside_lookups, reported_done
from wirelint.claims.side_effects import Reach, has_place, reach
from wirelint.claims.toolkinds import Ability, abilities, cannot, matching, may_also, reports, topics_in
from wirelint.history.handed_back import never_ran
from wirelint.lexicon import Phrases
from wirelint.model import Choice, Exchange, Request, Text
from wirelint.rule import REDACTED, Confidence, Finding, Rule, Severity, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose
from wirelint.text.prose import Prose

_PHRASES = Phrases("fabricated_call")
_LONGEST_TERSE = 700
_TOLD_APART: frozenset[Kind] = frozenset({"send", "book", "delete", "run", "write", "create", "control"})
"""Kinds of action that are no side effect of a tool of another kind."""
_LONGEST_ORDER = 120
"""Characters of an order that names a state."""
_MARKS = ' .!…*_"“”«»'
"""Blanks, punctuation and quotation marks around a sentence, which its comparison with the order leaves out."""


class FabricatedCall(Rule):
    """The reply claims that a tool acted, but no tool ran.

    ## What it does
    Reports a reply whose text claims an action (searched, read, changed, sent, ran, booked) of a declared tool,
    although no call and no result comes between the user's last message and the reply. A claim matches a tool by a
    shared subject, by the words of the user's order, or by the verb in the tool's name; a report that repeats the
    order as done counts in many languages. Where tools did run, a claim that none of them can explain is a warning:
    the mails were read, and the reply says "I've sent the answer" though the sending tool was never called. A shell
    whose commands only read (`du`, `git status`) has looked something up.

    ## Why is this bad?
    The user believes that the mail is out, the file is changed, the knowledge base has no answer. No log of the tools
    shows anything, because nothing reached them.

    ## Example
    Tools: `search_docs`. The user asks for the holiday policy. The reply is `I searched the documents and found 0
    results.`, with finish reason `stop` and no call.

    ## False positives
    Silent where a tool that ran may explain the claim (a shell, an agent, a tool that takes any request, a side effect
    named in a description or result), where the provider has tools of its own, at raw endpoints (their prompt holds
    earlier calls in any notation), where an earlier call explains the claim, and where no declared tool could act so.
    Quotations, code, negations, questions, conditions and plans are not claims, nor are past years and roles that the
    user asked to play, nor acts of the reply itself: writing a text, reading a question, correcting code in place.
    Uncertain claims, and claims in conversations whose beginning was cut off or summarised, are at most an `info`.

    ## Fix safety
    Reported only: the tool's result is unknown.

    ## References
    - OpenAI, Function calling; Anthropic, Tool use
    """

    severity = "error"
    layer = "model"
    requires_in_reply = frozenset({"tools"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, answers = exchange.request, evidence.answers(exchange)
        if request is None or not answers:
            return
        if evidence.anything_ran(request):
            yield from self._beside_the_calls(request, answers, ledger)
            return
        for choice in answers:
            yield from self._judge(request, choice, ledger)

    def _beside_the_calls(self, request: Request, answers: tuple[Choice, ...], ledger: Ledger) -> Iterator[Finding]:
        """Yield a finding on a claim that none of the tools that ran in this turn can explain."""
        used = tools_used(request)
        if not used or evidence.was_summarised(request):
            return
        lookups = {one.tool.name for one in used if one.kinds and one.kinds <= {"search", "read"} and not one.shell}
        # What a tool has read may be about anything.
        results = [
            one.result.text
            for one in evidence.ran(tuple(request.turn))
            if one.result is not None and (one.call is None or one.call.name not in lookups)
        ]
        for choice in answers:
            unbacked = _unbacked(request, choice, used)
            told = (one for one in unbacked if not any(reports(text, one[1].kinds) for text in results))
            found = next(told, None) or _reported(request, choice, used)
            if found is None:
                continue
            words = evidence.last_words(request)
            part, claim, fitting = found
            if asks_about_past(words) or (asks_for_text(words) and not orders_beside_text(words) & claim.kinds):
                return
            if any(call.name == fitting.tool.name for call in request.calls) and not asked(words) & claim.kinds:
                return  # a call of an earlier turn did it
            names = ", ".join(sorted({one.tool.name for one in used}))
            idle = never_ran(fitting.tool, ledger.tools)
            yield self.text_finding(
                part,
                (claim.start, claim.end),
                (
                    f"claims {excerpt(part.text[claim.start : claim.end], 90)!r}, which no tool of this turn "
                    f"({excerpt(names, 60)}) can do: {fitting.tool.name} is declared and was not called{idle}"
                ),
                severity="error" if idle else "warning",
                confidence="high" if idle else "medium",
            )

    def _judge(self, request: Request, choice: Choice, ledger: Ledger) -> Iterator[Finding]:
        found: list[tuple[int, Text, Claim, Ability]] = []
        able, words = abilities(request.tools), evidence.last_words(request).casefold()
        for part in choice.parts:
            if not isinstance(part, Text) or not _may_hold_claim(part.text):
                continue
            for number, claim in enumerate(claims(read := prose.read(part.text))):
                if _is_users_own(part, claim, words):
                    continue
                fitting = next(matching(able, claim.kinds, claim.verb, claim.object), None)
                weight = _weigh(claim, read, request, fitting) if fitting is not None else 0
                if weight < 2 and number < _MOST_LINKED and (tool := _ordered(claim, read, request, able)):
                    weight, fitting = 2, tool
                if fitting is not None and weight > 0:
                    found.append((weight, part, claim, fitting))
                    if weight == max(_GRADES):
                        break
            if not found or max(found, key=itemgetter(0))[0] < 2:
                others = ((weight, look(read, request, able)) for look, weight in _OTHERS.items())
                weight, other = next((one for one in others if one[1] is not None), (0, None))
                if other is not None and not _is_explained(request) and not _is_users_own(part, other[0], words):
                    found.append((weight, part, *other))
        report = None if found else _reported(request, choice)
        if report is not None and not _is_users_own(report[0], report[1], words):
            found.append((2, *report))
        if not found:
            return
        weight, part, claim, fitting = max(found, key=lambda one: (one[0], -one[2].start))
        idle = never_ran(fitting.tool, ledger.tools)
        severity, confidence = _GRADES[3 if idle and weight > 1 else weight]
        yield self.text_finding(
            part,
            (claim.start, claim.end),
            (
                f"claims {excerpt(part.text[claim.start : claim.end], 90)!r} and nothing ran: no call in this reply, "
                f"no call or result since the user's last message ({fitting.tool.name} is declared{idle})"
            ),
            severity=severity,
            confidence=confidence,
        )


def _is_users_own(part: Text, claim: Claim, words: str) -> bool:
    """Return True if a claim has the user's very words: "I have published my book", in a text that the user orders."""
    return part.text[claim.start : claim.end].strip(_MARKS).casefold() in words


def _reported(request: Request, choice: Choice, used: tuple[Ability, ...] = ()) -> tuple[Text, Claim, Ability] | None:
    """Return a report that repeats the user's order as done. `used`: the tools of the turn."""
    for part in choice.parts:
        if isinstance(part, Text) and REDACTED not in part.text and not is_dialogue(part.text):
            read, able = prose.read(part.text), abilities(request.tools)
            looks = (acted_by_name, reported_done, reported_beside_lookups)
            found = next(filter(None, (look(read, request, able, used) for look in looks)), None)
            if found is not None:
                # Last, because reading the whole order is slow.
                return None if _is_explained(request) else (part, *found)
    return None


def _may_hold_claim(text: str) -> bool:
    """Return True if a text may hold a claim of the model: it is whole, and no dialogue."""
    return REDACTED not in text and not is_dialogue(text)


def _unbacked(request: Request, choice: Choice, used: tuple[Ability, ...]) -> Iterator[tuple[Text, Claim, Ability]]:
    """Yield first-person claims that only a declared tool without any call can explain."""
    names = {one.tool.name for one in used}
    idle = [one for one in abilities(request.tools) if one.tool.name not in names]
    wanted = asked(evidence.last_words(request))
    for part in choice.parts:
        if not idle or not isinstance(part, Text) or not _may_hold_claim(part.text):
            continue
        read = prose.read(part.text)
        for claim in claims(read):
            if (
                claim.form != "said"
                or claim.earlier
                or not claim.kinds & _TOLD_APART
                or _PHRASES["nothing"].match(claim.object)
            ):
                continue
            able = [one for one in used if not cannot(one, claim.kinds)]
            fitting = next(matching(idle, claim.kinds, claim.verb, claim.object), None)
            if able and (fitting is None or any(may_also(one, claim.kinds) for one in able)):
                continue
            if able and fitting and not is_named_apart(fitting, used, read.text[claim.start : claim.end]):
                continue
            reached = reach(claim, read, fitting) if fitting is not None else Reach.NO
            if fitting is not None and reached >= (Reach.MAYBE if claim.kinds & wanted else Reach.SURE):
                yield part, claim, fitting
            elif tool := _ordered(claim, read, request, tuple(idle)):
                yield part, claim, tool


_GRADES: dict[int, tuple[Severity, Confidence]] = {3: ("error", "high"), 2: ("warning", "medium"), 1: ("info", "low")}


def _weigh(claim: Claim, read: Prose, request: Request, fitting: Ability) -> int:
    """Return the weight of a claim: 0 none, 1 info, 2 warning, 3 error."""
    reached = reach(claim, read, fitting) if claim.form != "news" else Reach.NO
    if reached is Reach.NO:
        return 0
    words = evidence.last_words(request)
    wanted = claim.kinds & asked(words)
    if claim.form == "state":
        return 2 if _is_set(claim, words, read) else 0
    if _is_fiction(request) and not wanted:
        return 0
    of_the_past = asks_about_past(words) or claim.earlier
    if request.is_partial and (of_the_past or not wanted):
        return 0  # the call for an earlier order may be on the server
    if of_the_past and any(message.role == "assistant" for message in request.messages):
        return 0 if calls_before(claim, request) else 1
    if may_be_on_record(claim, request, wanted) or _is_quoted_back(claim, words):
        return 0
    beside = orders_beside_text(words) & claim.kinds or (has_place(claim.object) and has_place(words))
    if asks_for_text(words) and not beside:
        return 0
    weight = {Reach.SURE: 3, Reach.MAYBE: 1}[reached]
    if claim.form in ("passive", "terse"):
        if len(read.text) > _LONGEST_TERSE:
            return 0  # in a report these forms mostly tell what others did
        # "Searched the wiki for leave: no documents." is a note with its outcome.
        came_of_it = claim.form == "terse" and _PHRASES["found"].search(read.masked, claim.start, claim.end + 80)
        if not (wanted or came_of_it):
            return 0
        weight = 2
    return min(weight, 1) if has_material(claim, request) or evidence.was_summarised(request) else weight


_ACCOUNT = re.compile(r"\b(?:is|are|was|were|have|I|it['’]s|if|when)\b")
"""A word of clauses that tell something and order nothing."""


def _is_set(claim: Claim, words: str, read: Prose) -> bool:
    """Return True if an order names the reported state: "hall light off", "heating to 19"."""
    if len(words) > _LONGEST_ORDER or asks_for_text(words) or "?" in words:
        return False
    words = ", ".join(clause for clause in re.split(r"[,.;!]\s", words) if _ACCOUNT.search(clause) is None)
    states = re.findall(r"\d+", read.masked[claim.start : claim.end]) if claim.verb == "set to" else [claim.verb]
    return any(re.search(rf"\b{re.escape(state)}(?:\b|(?=\D))", words.lower()) for state in states[:1])


def _is_quoted_back(claim: Claim, words: str) -> bool:
    """Return True if the user wrote the claim about somebody: "make this nicer: I booked the room"."""
    return re.search(rf"\b(?:I|[Ww]e)(?:['’](?:ve|d)| have)? (?:\w+ )?{re.escape(claim.verb)}\b", words) is not None


def _by_name(read: Prose, request: Request, able: tuple[Ability, ...]) -> tuple[Claim, Ability] | None:
    """Return a claim that a tool, given by its name, answered, or that a call did, where the user orders one by name."""
    words = evidence.last_words(request)
    ordered_one = next((one for one in able if MADE_NAME.search(one.tool.name) and one.tool.name in words), None)
    if ordered_one is not None and not request.calls and (told := reported_call(read)):
        return told, ordered_one
    conversation = " ".join(message.text for message in request.messages if message.role != "system")
    for one in able:
        claim = reported_outcome(read, one.tool.name)
        if claim is not None and one.tool.name not in conversation:
            return claim, one
    return None


_MOST_LINKED = 16
"""Claims of a text to compare with the words of the order; a reply reports on its order early."""


def _ordered(claim: Claim, read: Prose, request: Request, able: tuple[Ability, ...]) -> Ability | None:
    """Return the tool for an order whose words the claim repeats, if nothing else explains the claim."""
    words = evidence.last_words(request)
    if claim.form == "passive" and len(read.text) > _LONGEST_TERSE:
        return None
    if _is_explained(request, content=False) or _is_quoted_back(claim, words):
        return None
    if claim.form == "state" and _is_set(claim, words, read) and shared_words(claim.object, words):
        return next((one for one in able if "control" in one.kinds), None)
    conversation = " ".join(message.text for message in request.messages)
    fitting = ordered(claim, read, words, conversation, able)
    return None if has_material(claim, request) or calls_before(claim, request) else fitting


def _carried_out(read: Prose, request: Request, able: tuple[Ability, ...]) -> tuple[Claim, Ability] | None:
    """Return a claim, in any words, that the ordered action was done."""
    conversation = " ".join(message.text for message in request.messages)
    return performed(
        read, evidence.last_words(request), conversation, able, {call.name or "" for call in request.calls}
    )


def _in_its_verb(read: Prose, request: Request, able: tuple[Ability, ...]) -> tuple[Claim, Ability] | None:
    """Return a claim in the verb of a tool's own name, if no earlier call explains it."""
    called = {call.name for call in request.calls}
    return claim_by_name(read, evidence.last_words(request), [one for one in able if one.tool.name not in called])


def _is_explained(request: Request, *, content: bool = True) -> bool:
    """Return True if a claim may be about something else than this turn: a past one, a text to compose, a role.

    `content`: also about attached content.
    """
    words = evidence.last_words(request)
    if asks_about_past(words) or asks_for_text(words) or _is_fiction(request):
        return True
    return evidence.was_summarised(request) or (content and evidence.brings_content(request))


def _is_fiction(request: Request) -> bool:
    """Return True if the user asked the model to play a role."""
    return any(message.speaks and orders_role(message.words[-4000:]) for message in request.messages[-6:])


def _bare(read: Prose, request: Request, able: tuple[Ability, ...]) -> tuple[Claim, Ability] | None:
    """Return a bare "Done." after an order that only a tool can carry out, and that tool."""
    claim, words = bare_done(read), evidence.last_words(request)
    wanted = asked(words) - {"search", "read"} if claim is not None else frozenset()
    fitting = next((one for one in matching(able, wanted, "", words) if one.topics & topics_in(words)), None)
    return (claim, fitting) if claim is not None and fitting is not None else None


_OTHERS = {_by_name: 3, _in_its_verb: 2, _bare: 2, _carried_out: 2}
