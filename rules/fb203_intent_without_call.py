from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.apis.traits import ending, is_raw
from wirelint.claims import evidence
from wirelint.claims.actions import words_of
from wirelint.claims.announcements import (
    Announcement,
    announcement,
    asked,
    asks_for_text,
    decision,
    is_without_content,
    may_announce,
    orders_beside_text,
    plea,
)
from wirelint.claims.claims import shared_words
from wirelint.claims.evidence import Fact, facts
from wirelint.claims.order_check import announcement_by_name, meant
from wirelint.claims.side_effects import acts_outside, mends
from wirelint.claims.toolkinds import Ability, abilities, matching, name_words
from wirelint.history.origins import manglings
from wirelint.lexicon import Phrases
from wirelint.model import Choice, Exchange, Reasoning, Request, Text, Tool
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose

_PHRASES = Phrases("intent")
_BRIEF = 240
_LAST_WORDS = 400


class IntentWithoutCall(Rule):
    """The reply announces a call and ends without it.

    ## What it does
    Reports a reply whose text ends with the announcement of an immediate action ("Let me search …", "Now I will write
    …") of a declared tool, while the finish reason says that the turn is over and the reply has no call. A reply
    without text, or with no more than "One moment please.", is judged by the end of its reasoning. Without any text, a
    last sentence that decides to call a tool by name is enough ("Next: get_weather(…)"), declared or described in the
    prompt.

    ## Why is this bad?
    The agent's loop ends without a call to run, and the user is left with a promise. Typical causes are a model
    confused by a damaged history, a parser that dropped the call, and a turn cut between text and call.

    ## Example
    Tools: `read_file`. The reply is `I'll start by reading the config.`, with finish reason `stop` and no call.

    ## False positives
    Silent when the ending has a question, an offer or a condition, when the answer follows the announcement, when the
    user wanted a plan, when `tool_choice` is `none`, when the provider runs tools of its own, at raw endpoints, and
    when no declared tool could act so. Leaked call markup is `xml-leak`. Long replies have less confidence.

    ## Fix safety
    Reported only: the arguments were never written.

    ## References
    - OpenAI, Function calling; Anthropic, Handling stop reasons
    """

    severity = "warning"
    layer = "model"
    needs = frozenset({"finish"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or exchange.end == "client-left" or not reply.finished:
            return
        if request.hosted or request.tool_choice.mode == "none" or reply.error is not None:
            return
        if request.tools and not request.client_tools:
            return
        if is_raw(exchange.api, request):
            return
        for choice in reply.choices:
            if not choice.calls and not choice.hosted and ending(choice.finish_reason) == "ended":
                found = list(self._judge(exchange, request, choice, ledger)) if request.tools else []
                yield from found or self._decided(exchange, request, choice, ledger)

    def _decided(self, exchange: Exchange, request: Request, choice: Choice, ledger: Ledger) -> Iterator[Finding]:
        """Yield a finding on a reply of reasoning only, whose last sentence decides to call a tool by name."""
        part = _ending(choice)
        if (
            not isinstance(part, Reasoning)
            or choice.text.strip()
            or REDACTED in part.text
            or _PHRASES["markup"].search(part.text)
        ):
            return
        if _PHRASES["held_back"].search(evidence.last_words(request)):
            return
        tools = request.tools or tuple(_told_tools(request, part.text))
        able = {one.tool.name: one for one in abilities(tools)}
        found = decision(prose.read(part.text), able)
        if found is not None:
            yield self._report(part, found[0], able[found[1]], choice, exchange, ledger, sure=False)

    def _judge(self, exchange: Exchange, request: Request, choice: Choice, ledger: Ledger) -> Iterator[Finding]:
        part = _ending(choice)
        if part is None or REDACTED in part.text:
            return
        thought = isinstance(part, Reasoning)
        if not (may_announce(part.text, thought=thought) or len(part.text) < _BRIEF) or _PHRASES["markup"].search(
            part.text
        ):
            return
        read = prose.read(part.text)
        found = announcement(read, thought=thought)
        if found is not None and _PHRASES["no_need"].search(part.text, found.start, found.end):
            return
        words = evidence.last_words(request)
        if _PHRASES["held_back"].search(words) or (found is not None and _only_offers(found, part.text, words)):
            return
        able, waits = abilities(request.tools), plea(read)
        if found is None:
            named = None if thought else announcement_by_name(read, words, _spoken(request), able)
            if named is None and waits is not None and able and not thought and not asks_for_text(words):
                named = Announcement(frozenset(), "", "", waits.start, waits.end), able[0]
            if named is not None:
                yield self._report(part, *named, choice, exchange, ledger, sure=False)
            return
        if _belongs_to_text(found, words):
            return
        if found.bare and _PHRASES["asks_for_noun"].search(words):
            return
        fitting = next(matching(able, found.kinds, found.verb, found.object), None) or _named(found, able)
        loosely = fitting is None or not acts_outside(found, read, fitting)
        fitting = meant(found, read, words, able) if loosely else fitting
        if fitting is None and not thought and not asks_for_text(words):
            fitting = _called_so(found, able)
        if fitting is None and waits is not None:
            fitting = next(iter(able), None)
        if fitting is None and _PHRASES["tries"].match(found.verb):
            fitting = next((fact.able for fact in _failed(request)), None)
        if fitting is None:
            return
        brief = found.end - found.start > 0.3 * read.words or len(part.text) < 400
        yield self._report(part, found, fitting, choice, exchange, ledger, sure=brief and not thought and not loosely)

    def _report(
        self,
        part: Text | Reasoning,
        found: Announcement,
        fitting: Ability,
        choice: Choice,
        exchange: Exchange,
        ledger: Ledger,
        *,
        sure: bool,
    ) -> Finding:
        mangled = next((one.given for one in manglings(exchange, ledger)), "")
        why = f"; an id in the history looks mangled ({mangled}), which makes models stop here" if mangled else ""
        return self.text_finding(
            part,
            (found.start, found.end),
            (
                f"announces {excerpt(part.text[found.start : found.end], 90)!r}, then ends with "
                f"{choice.finish_reason} and no call "
                f"({fitting.tool.name} is {'declared' if fitting.tool.pointer else 'in the prompt'}){why}"
            ),
            confidence="high" if mangled or sure else "medium",
            layer="client" if mangled else "model",
        )


def _spoken(request: Request) -> str:
    return " ".join(message.text for message in request.messages if message.role != "system")


def _only_offers(found: Announcement, text: str, words: str) -> bool:
    """Return True if "I'll help you …" is about something that the user has not mentioned: a greeting."""
    return "help you" in text[found.start : found.end] and not shared_words(found.object, words)


def _told_tools(request: Request, thought: str) -> Iterator[Tool]:
    """Yield tools that a prompt describes in words: names at the end of a thought that the prompt holds too."""
    prompt = "\n".join(message.text for message in request.messages if message.role != "assistant")
    if _PHRASES["speaks_of_tools"].search(prompt) is None:
        return
    for name in dict.fromkeys(match[0] for match in _PHRASES["identifier"].finditer(thought[-_LAST_WORDS:])):
        if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", prompt):
            yield Tool(name, "")


def _belongs_to_text(found: Announcement, words: str) -> bool:
    """Return True if an announcement is part of an ordered text: the sender of a mail will look, not the model.

    A model that announces a search before it writes has not begun the text.
    """
    if not asks_for_text(words) or orders_beside_text(words) & found.kinds:
        return False
    researches = found.at_once and found.kinds & {"search", "read"}
    if researches and researches & asked(words):
        return False
    return not researches or _PHRASES["researched"].search(words) is None


def _ending(choice: Choice) -> Text | Reasoning | None:
    """Return the part at the end of a reply: its last text, or the reasoning if the text is missing or has no
    content."""
    shown = [part for part in choice.parts if isinstance(part, Text) and part.text.strip()]
    for part in shown:
        if len(part.text) >= 200 or not is_without_content(prose.read(part.text)):
            return shown[-1]
    thought = [part for part in choice.parts if isinstance(part, Reasoning) and part.text.strip() and not part.opaque]
    return thought[-1] if thought else None


def _called_so(found: Announcement, able: tuple[Ability, ...]) -> Ability | None:
    """Return the tool whose name has the verb of an announcement, or a noun of one that is to come at once."""
    said = words_of(found.object)
    for one in able:
        name = name_words(one.tool.name)
        if found.verb in name and (found.at_once or said & one.words or found.object.split()[:1] in _PRONOUNS):
            return one
    named = (one for one in able if said & words_of(" ".join(name_words(one.tool.name))))
    return next(named, None) if found.at_once else None


_PRONOUNS = (["it"], ["them"], ["this"], ["that"], ["both"])


def _failed(request: Request) -> Iterator[Fact]:
    """Yield the calls of the turn that failed, the last one first: another attempt is one at these."""
    return (fact for fact in reversed(facts(request, evidence.ran(request.turn))) if fact.outcome.error)


def _named(found: Announcement, able: tuple[Ability, ...]) -> Ability | None:
    """Return the tool that "I'll call web-browsing to look this up" refers to."""
    if mender := next((one for one in able if mends(found, one)), None):
        return mender
    if called := next((one for one in able if one.tool.name.lower() == found.verb), None):
        return called
    if found.verb not in ("call", "use", "invoke", "calling", "using", "invoking", "try"):
        return None
    words = set(re.findall(r"[a-z]+", found.object.lower()))
    if words & {"tool", "tools"}:
        return next(iter(able), None)
    return next((one for one in able if words & (one.words | one.topics | one.kinds)), None)
