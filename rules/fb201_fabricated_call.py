from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.claims import evidence
from wirelint.claims.actions import Kind
from wirelint.claims.announcements import (
    accepted_offer,
    asked,
    asks_about_past,
    asks_for_text,
    orders_beside_text,
    orders_role,
)
from wirelint.claims.claims import Claim, bare_done, claims, may_claim, reported_outcomes
from wirelint.claims.evidence import calls_before, has_material, may_be_on_record, tools_used
from wirelint.claims.grounding import reported_done
from wirelint.claims.order_check import (
    answering,
    claim_by_name,
    is_brief,
    ordered,
    performed,
)
from wirelint.claims.side_effects import Reach, has_place, reach
from wirelint.claims.toolkinds import Ability, abilities, cannot, matching, reports, tool_by_words, topics_in
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


class FabricatedCall(Rule):
    """The reply claims that a tool acted, but no tool ran.

    ## What it does
    Reports a reply whose text claims an action (searched, read, changed, sent, ran, booked) of a declared tool,
    although no call and no result comes between the user's last message and the reply. A claim matches a tool by a
    shared subject, by the words of the user's order, or by the verb in the tool's name; a report that repeats the order
    as done counts in many languages. Where tools did run, a claim that none of them can explain is a warning: the mails
    were read, and the reply says "I've sent the answer" though the sending tool was never called.

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
        results = [result.text for message in request.turn for result in message.results]
        words = evidence.last_words(request)
        if asks_about_past(words) or asks_for_text(words):
            return
        for choice in answers:
            unbacked = _unbacked(request, choice, used)
            told = (one for one in unbacked if not any(reports(text, one[1].kinds) for text in results))
            found = next(told, None) or _reported(request, choice, used)
            if found is None:
                continue
            part, claim, fitting = found
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
        for part in choice.parts:
            if not isinstance(part, Text) or not _may_hold_claim(part.text):
                continue
            for number, claim in enumerate(claims(read := prose.read(part.text))):
                able = abilities(request.tools)
                fitting = next(matching(able, claim.kinds, claim.verb, claim.object), None)
                weight = _weigh(claim, read, request, fitting) if fitting is not None else 0
                if fitting is None and claim.form == "said" and claim.verb in _USES:
                    fitting = tool_by_words(able, claim.object)
                    weight = 2 if fitting is not None and _is_unexplained(claim, request) else 0
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
            if not [entry for entry in found if entry[0] >= 2] and (found_claim := _carried_out(read, request)):
                found.append((2, part, *found_claim))
        if not found and (report := _reported(request, choice)) is not None:
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


def _reported(request: Request, choice: Choice, used: tuple[Ability, ...] = ()) -> tuple[Text, Claim, Ability] | None:
    """Return a report that repeats the user's order as done. `used`: the tools of the turn."""
    for part in choice.parts:
        if isinstance(part, Text) and REDACTED not in part.text:
            found = reported_done(prose.read(part.text), request, abilities(request.tools), used)
            if found is not None:
                # Last, because reading the whole order is slow.
                return None if _orders_no_action(request, evidence.last_words(request)) else (part, *found)
    return None


def _may_hold_claim(text: str) -> bool:
    """Return True if a text may hold a claim: a short text in any form, a long one only with a subject."""
    return REDACTED not in text and (len(text) <= _LONGEST_TERSE or may_claim(text))


def _unbacked(request: Request, choice: Choice, used: tuple[Ability, ...]) -> Iterator[tuple[Text, Claim, Ability]]:
    """Yield first-person claims that only a declared tool without any call can explain."""
    names = {one.tool.name for one in used}
    idle = [one for one in abilities(request.tools) if one.tool.name not in names]
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
            if not all(cannot(one, claim.kinds) for one in used):
                continue
            fitting = next(matching(idle, claim.kinds, claim.verb, claim.object), None)
            if fitting is not None and reach(claim, read, fitting) is Reach.SURE:
                yield part, claim, fitting


_GRADES: dict[int, tuple[Severity, Confidence]] = {3: ("error", "high"), 2: ("warning", "medium"), 1: ("info", "low")}


def _weigh(claim: Claim, read: Prose, request: Request, fitting: Ability) -> int:
    """Return the weight of a claim: 0 none, 1 info, 2 warning, 3 error."""
    reached = reach(claim, read, fitting) if claim.form not in ("stands", "news") else Reach.NO
    if reached is Reach.NO:
        return 0
    words = evidence.last_words(request)
    wanted = asked(words) | accepted_offer(words, _text_before(request))
    if claim.form == "state":
        return 2 if _is_set(claim, words, read) and fitting.kinds & {"control"} and not asks_about_past(words) else 0
    if claim.form in ("passive", "terse", "missed") and len(read.text) > _LONGEST_TERSE:
        return 0
    if _is_fiction(request) and not wanted & claim.kinds:
        return 0
    of_the_past = asks_about_past(words) or claim.earlier
    if request.is_partial and (of_the_past or not wanted & claim.kinds):
        return 0  # the call for an earlier order may be on the server
    if of_the_past and any(message.role == "assistant" for message in request.messages):
        return 0 if calls_before(claim, request) else 1
    if may_be_on_record(claim, request, wanted):
        return 0
    weight = {Reach.SURE: 3, Reach.MAYBE: 1}[reached]
    if claim.verb == "results":
        tool_by_words = any(
            "result" in message.text.lower() for message in request.messages if message.role != "assistant"
        )
        return 0 if tool_by_words else 2
    if claim.form in ("passive", "terse", "missed"):
        named = claim.form == "missed" and _PHRASES["looked_in"].search(claim.object) is not None
        named = named or (claim.form == "terse" and _reports_back(claim, read))
        named = named or (claim.form == "terse" and read.text[claim.start] in "✅✔☑" and reached is Reach.SURE)
        if not (wanted & claim.kinds or named):
            return 0
        weight = 2
    elif reached is Reach.MAYBE and wanted & claim.kinds and not read.fenced:
        weight = 2
    if (asks_for_text(words) and not _is_ordered_beside(words, claim)) or _is_quoted_back(claim, words):
        return 0
    if has_material(claim, request) or evidence.was_summarised(request):
        weight = min(weight, 1)
    return weight


def _reports_back(claim: Claim, read: Prose) -> bool:
    """Return True if a note of a search continues with its outcome: "Searched the wiki for leave: no documents."."""
    if not claim.kinds & {"search"} or claim.start > 4 or not topics_in(claim.object):
        return False
    return _PHRASES["found"].search(read.masked, claim.start, claim.end + 80) is not None


_LONGEST_ORDER = 120


def _is_set(claim: Claim, words: str, read: Prose) -> bool:
    """Return True if a short order names the reported state: "hall light off", "heating to 19"."""
    state_text = read.masked[claim.start : claim.end].lower()
    if len(words) > _LONGEST_ORDER or "?" in words or asks_for_text(words):
        return False
    if re.search(r"\b(?:is|are|was|were|have|I|it['’]s|if|when)\b", words):
        return False
    state = claim.verb if claim.verb != "set to" else next(iter(re.findall(r"\d+", state_text)), "")
    return bool(state) and re.search(rf"\b{re.escape(state)}(?:\b|(?=\D))", words.lower()) is not None


def _is_quoted_back(claim: Claim, words: str) -> bool:
    """Return True if the user wrote the claim about somebody: "make this nicer: I booked the room"."""
    return re.search(rf"\b(?:I|[Ww]e)(?:['’](?:ve|d)| have)? (?:\w+ )?{re.escape(claim.verb)}\b", words) is not None


def _text_before(request: Request) -> str:
    """Return the model's last text before the user's last message."""
    return next((message.text for message in reversed(request.messages) if message.role == "assistant"), "")


def _by_name(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """Return a claim that a tool, given by its name, answered."""
    reported = list(reported_outcomes(read, [tool.name for tool in request.client_tools]))
    if not reported:
        return None
    words = evidence.last_words(request)
    if asks_about_past(words) or asks_for_text(words) or evidence.was_summarised(request):
        return None
    conversation = " ".join(message.text for message in request.messages if message.role != "system")
    for name, claim in reported:
        if name not in conversation and not any(call.name == name for call in request.calls):
            return claim, next(one for one in abilities(request.tools) if one.tool.name == name)
    return None


def _is_ordered_beside(words: str, claim: Claim) -> bool:
    """Return True if the claim is about an action that was ordered beside a text to compose."""
    return bool(orders_beside_text(words) & claim.kinds) or (has_place(claim.object) and has_place(words))


_MOST_LINKED = 16
"""Claims of a text to compare with the words of the order; a reply reports on its order early."""
_USES = frozenset({"used", "called", "invoked", "ran", "queried"})


def _is_unexplained(claim: Claim, request: Request) -> bool:
    """Return True if nothing explains a claim: no other speaker, no earlier call, no text that was ordered."""
    return not claim.earlier and not _is_retold(request) and not request.calls


def _is_retold(request: Request) -> bool:
    """Return True if a claim may be about something else than this turn: a past one, a text to compose, a role."""
    words = evidence.last_words(request)
    if asks_about_past(words) or asks_for_text(words):
        return True
    return _is_fiction(request) or evidence.was_summarised(request)


def _ordered(claim: Claim, read: Prose, request: Request, able: tuple[Ability, ...]) -> Ability | None:
    """Return the tool for an order whose words the claim repeats, if nothing else explains the claim."""
    words = evidence.last_words(request)
    if claim.form == "passive" and len(read.text) > _LONGEST_TERSE:
        return None
    if _is_retold(request) or _is_quoted_back(claim, words):
        return None
    conversation = " ".join(message.text for message in request.messages)
    fitting = ordered(claim, read, words, conversation, able)
    if fitting is None or has_material(claim, request) or calls_before(claim, request):
        return None
    return fitting


def _in_its_verb(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """Return a claim in the verb of a tool's own name."""
    if not is_brief(read) or (request.has_history and request.calls):
        return None
    words = evidence.last_words(request)
    found = claim_by_name(read, words, abilities(request.tools))
    if found is None:
        return None
    # Last, because reading the whole order is slow and most replies have no such claim.
    handed_over = asks_for_text(words) and re.search(r"[:：] *\S", words) is not None
    return None if handed_over or _orders_no_action(request, words) else found


def _carried_out(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """Return a claim, in any words, that the ordered action was done."""
    words = evidence.last_words(request)
    acts = answering(read, words)
    if not acts:
        return None
    able = abilities(request.tools)
    conversation = " ".join(message.text for message in request.messages)
    called = {call.name or "" for call in request.calls}
    found_claim = performed(read, acts, words, conversation, _text_before(request), able, called)
    # Last, as in `_in_its_verb`.
    return None if found_claim is None or asks_for_text(words) or _orders_no_action(request, words) else found_claim


def _orders_no_action(request: Request, words: str) -> bool:
    """Return True if the user ordered no action: an account, a role to play, or work on attached content."""
    if asks_about_past(words) or _is_fiction(request):
        return True
    return evidence.was_summarised(request) or evidence.brings_content(request)


def _is_fiction(request: Request) -> bool:
    """Return True if the user asked the model to play a role."""
    return any(message.speaks and orders_role(message.words[-4000:]) for message in request.messages[-6:])


def _bare(read: Prose, request: Request) -> tuple[Claim, Ability] | None:
    """Return a bare "Done." after an order that only a tool can carry out, and that tool."""
    claim = bare_done(read)
    if claim is None:
        return None
    words = evidence.last_words(request)
    wanted = asked(words) - {"search", "read"}
    if (
        not wanted
        or len(words) > 400
        or asks_for_text(words)
        or asks_about_past(words)
        or evidence.was_summarised(request)
    ):
        return None
    able = matching(abilities(request.tools), wanted, "", words)
    fitting = next((one for one in able if one.topics & topics_in(words)), None)
    return (claim, fitting) if fitting is not None else None
