from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from wirelint.conversation import Ledger
from wirelint.knowledge import evidence, prose
from wirelint.knowledge.actions import Kind
from wirelint.knowledge.asks import asked, composes, looks_back
from wirelint.knowledge.claims import Claim, claims, says_done
from wirelint.knowledge.prose import Prose
from wirelint.knowledge.reach import Reach, has_place, reach
from wirelint.knowledge.toolkinds import PATH, Ability, abilities, ability, fits, matching, topics_in
from wirelint.model import Choice, Exchange, Json, Request, Text, Tool, ToolCall
from wirelint.rule import Confidence, Finding, Rule, Severity, excerpt

_REDACTED = "[redacted:"
_LONGEST_TERSE = 700
_OUTWARD = frozenset({"send", "book", "delete", "run", "control"})
_LOOKED_IN = re.compile(
    r"\b(?:in|on) (?:the|our|your|my|this) (?:[\w-]+ )?(?:knowledge base|kb|docs|documentation|database|wiki|"
    r"index|repo|repository|"
    r"codebase|web|internet|catalog(?:ue)?|inbox|calendar|logs?)\b",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"[\w./-]*\d{2,}[\w./-]*|[\w-]+\.\w{1,5}\b|(?<=`)[^`\n]+(?=`)|(?<=[\"“])[^\"”\n]+(?=[\"”])|\b[A-Z][\w-]{2,}"
)
"""What a claim names: numbers, file names, code, quotations, proper names."""


class FabricatedCall(Rule):
    """The reply claims an action of a tool, and nothing ran.

    ## What it does
    Reports a reply whose text says that something was done (searched, read, changed, sent, run, booked) which a tool
    declared in the request does, although no call and no result stands between the user's last words and this reply.

    ## Why is this bad?
    The user believes that the mail is out, the file is changed, the knowledge base has nothing on the subject. No log
    of the tools shows anything, because nothing reached them.

    ## Example
    Tools: `search_docs`. The user asks for the holiday policy. The reply is `I searched the documents and found 0
    results.`, with finish reason `stop` and no call.

    ## False positives
    Silent when anything ran in this turn, when the provider was offered tools of its own, when an earlier call on
    record is what the claim speaks of, and when no declared tool could have done it. What is quoted, in code,
    negated, asked, conditional or planned is no claim. Neither are acts of the reply itself: a text that was written,
    a question that was read, code that was corrected in place. Claims that may be meant so, and those of
    conversations whose beginning was cut off or summarised, are reported as `info` at most.

    ## Fix safety
    Reported only: what the tool would have said is not known.

    ## References
    - OpenAI, Function calling; Anthropic, Tool use
    """

    code = "FB201"
    name = "fabricated-call"
    severity = "error"
    layer = "model"
    fires: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [{"role": "user", "content": "Search the documents for the holiday policy."}],
                "tools": [
                    {"type": "function", "function": {"name": "search_docs", "description": "Search the documents."}}
                ],
            },
        },
        "response": {
            "headers": {"content-type": "application/json"},
            "body": '{"choices":[{"index":0,"message":{"role":"assistant","content":"I searched the documents and found '
            '0 results."},"finish_reason":"stop"}]}',
        },
    }
    silent: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [{"role": "user", "content": "Can you search the documents?"}],
                "tools": [
                    {"type": "function", "function": {"name": "search_docs", "description": "Search the documents."}}
                ],
            },
        },
        "response": {
            "headers": {"content-type": "application/json"},
            "body": '{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes. I searched nothing so far; '
            'what shall I look for?"},"finish_reason":"stop"}]}',
        },
    }

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or not request.client_tools:
            return
        if evidence.anything_ran(request):
            return
        able: tuple[Ability, ...] = ()
        for choice in reply.choices:
            if choice.calls or choice.hosted:
                continue
            able = able or abilities(request.tools)
            yield from self._judge(request, choice, able)

    def _judge(self, request: Request, choice: Choice, able: tuple[Ability, ...]) -> Iterator[Finding]:
        found: list[tuple[int, Text, Claim, Ability]] = []
        for part in choice.parts:
            if not isinstance(part, Text) or _REDACTED in part.text:
                continue
            read = prose.read(part.text)
            for claim in claims(read):
                fitting = next(matching(able, claim.kinds, claim.verb, claim.object), None)
                if fitting is not None and (weight := _weigh(claim, read, request, fitting)) > 0:
                    found.append((weight, part, claim, fitting))
            if not found and (done := _bare(read, request, able)):
                found.append((2, part, *done))
        if not found:
            return
        weight, part, claim, fitting = max(found, key=lambda entry: (entry[0], -entry[2].start))
        severity, confidence = _GRADES[weight]
        yield self.finding(
            "response",
            f"claims {excerpt(part.text[claim.start : claim.end], 90)!r} and nothing ran: no call in this reply, "
            f"no call or result "
            f"since the user's last message ({fitting.tool.name} is declared)",
            part.pointer,
            event=part.event_at(claim.start),
            span=(claim.start, claim.end),
            severity=severity,
            confidence=confidence,
        )


_GRADES: dict[int, tuple[Severity, Confidence]] = {3: ("error", "high"), 2: ("warning", "medium"), 1: ("info", "low")}


def _weigh(claim: Claim, read: Prose, request: Request, fitting: Ability) -> int:
    """How heavy a claim is: 0 nothing, 1 info, 2 warning, 3 error."""
    reached = reach(claim, read, fitting)
    if reached is Reach.NO:
        return 0
    words = evidence.last_words(request)
    wanted = asked(words)
    if (looks_back(words) or claim.earlier) and any(message.role == "assistant" for message in request.messages):
        return 0 if _calls_before(claim, request) else 1
    if _on_record(claim, request, wanted):
        return 0
    weight = {Reach.SURE: 3, Reach.MAYBE: 1}[reached]
    if claim.verb == "results":
        spoken_of = any("result" in message.text.lower() for message in request.messages if message.role != "assistant")
        return 0 if spoken_of else 2
    if claim.form in ("passive", "terse", "missed"):
        named = claim.form == "missed" and _LOOKED_IN.search(claim.object) is not None
        named = named or (claim.form == "terse" and read.text[claim.start] in "✅✔☑" and reached is Reach.SURE)
        if len(read.text) > _LONGEST_TERSE or not (wanted & claim.kinds or named):
            return 0
        weight = 2
    elif reached is Reach.MAYBE and wanted & claim.kinds and not read.fenced:
        weight = 2
    if composes(words) and not has_place(claim.object) and not wanted & claim.kinds & _OUTWARD:
        return 0
    if _brought_along(claim, request) or evidence.was_summarised(request):
        weight = min(weight, 1)
    return weight


def _bare(read: Prose, request: Request, able: tuple[Ability, ...]) -> tuple[Claim, Ability] | None:
    """A bare "Done." in answer to an order that only a tool can carry out, with that tool."""
    claim = says_done(read)
    if claim is None:
        return None
    words = evidence.last_words(request)
    wanted = asked(words) - {"search", "read"}
    if not wanted or len(words) > 400 or composes(words) or looks_back(words) or evidence.was_summarised(request):
        return None
    fitting = next((one for one in matching(able, wanted, "", words) if topics_in(words) & one.topics), None)
    return (claim, fitting) if fitting is not None else None


def _on_record(claim: Claim, request: Request, wanted: frozenset[Kind]) -> bool:
    """Whether an earlier call of the history may be what the claim speaks of.

    It is when its arguments hold what the claim names, and when the user has not just asked for another action of the
    kind.
    """
    same = _calls_before(claim, request)
    if not same:
        return False
    marks = {mark.lower() for mark in _MARKS.findall(claim.object)}
    if any(mark in call.arguments.text.lower() for call in same for mark in marks):
        return True
    return not wanted & claim.kinds


def _calls_before(claim: Claim, request: Request) -> list[ToolCall]:
    """The calls on record that could have done what is claimed."""
    before = [call for message in request.messages for call in message.calls if call.name]
    return [call for call in before if fits(_of(call, request), claim.kinds, claim.verb, claim.object)]


def _of(call: ToolCall, request: Request) -> Ability:
    return ability(request.tool(call.name) or Tool(call.name or "", call.pointer))


def _brought_along(claim: Claim, request: Request) -> bool:
    """Whether what was read or changed came with the conversation."""
    if not claim.kinds & {"read", "search", "write"}:
        return False
    if claim.kinds & {"read", "search"} and evidence.supplies_results(request):
        return True
    place = PATH.search(claim.object)
    if place is not None:
        return evidence.introduces(request, place[0].rsplit("/", 1)[-1])
    return "read" in claim.kinds and evidence.brings_content(request)
