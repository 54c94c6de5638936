"""Reports of a finished order in any language, found by the words that the report repeats from the order.

Theory of operation. Grammar alone finds the finished form of a verb. It is a claim if the reply repeats particulars of the
user's order, nothing ran in the turn that could have done it, and a declared tool could have. No table of verbs is needed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from wirelint import lexicon
from wirelint.claims.actions import DONE, PARTICIPLE, PAST, Kind, stem, words_of
from wirelint.claims.announcements import asked, asks_about_past, asks_for_text, is_english
from wirelint.claims.claims import Claim, claims, is_foreign
from wirelint.claims.derivation import STOP, words_in
from wirelint.claims.evidence import last_words
from wirelint.claims.grounding import (
    ECHO,
    LONGEST_ORDER,
    LONGEST_REPORT,
    is_about_this_case,
    negates,
    nouns_of,
    particulars,
)
from wirelint.claims.order_check import HANDED_OVER, is_order, is_polite
from wirelint.claims.side_effects import heads_text, shows_product
from wirelint.claims.toolkinds import Ability, ability, fits, may_also, name_words, reads_only, told_by
from wirelint.claims.values import FIRST_UNSPACED
from wirelint.model import Request, Tool, ToolCall
from wirelint.text.prose import Prose, Sentence

_PHRASES = lexicon.Phrases("grounding")


def reported_done(
    prose: Prose, request: Request, able: Sequence[Ability], used: Sequence[Ability] = ()
) -> tuple[Claim, Ability] | None:
    """Return the report of a finished action that repeats particulars of the user's order, and a tool for it.

    Nothing ran in the turn, or only tools (`used`) whose names and results are about other things.
    """
    words, ran = last_words(request), {one.tool.name for one in used}
    idle = [one for one in able if one.tool.name not in ran and (one.kinds - {"search", "read"} or not one.kinds)]
    if not idle or len(prose.text) > LONGEST_ORDER or prose.fenced:
        return None
    english, told = is_english(prose.masked), list(prose.sentences)
    completed = None if english or not told else _PHRASES["done"].match(told[0].masked.lstrip("*"))
    if told and told[-1].question and (english or (completed is not None and " " not in completed[0])):
        del told[-1]  # "Shall I tell the others?"
    if any(sentence.question for sentence in told) or _PHRASES["not_yet"].search(prose.masked):
        return None
    if not english and "\n>" in prose.text:
        return None  # a text that the reply wrote
    if not is_order(words) if english else used or any(map(_denies_act, told)):
        return None  # "I have written it, and sent nothing"
    given, least = particulars(words), ECHO
    if not english and _is_brief_order(prose, request):
        given, least = given | particulars(_last_answer(request)), 2
    for place, sentence in enumerate(told):
        before = told[place - 1] if place else sentence
        start = before.start if before.masked.strip(".!").isalpha() else sentence.start  # "Pronto! Aluguei o filme."
        line = prose.masked[start : sentence.end]
        if not english and place and _denies(before):
            return None
        done = _PHRASES["done_in_english"].search(line) if english else _finished(line)
        if done is None or sentence.bullet or negates(sentence) or not is_about_this_case(sentence):
            continue
        if not english and line.rstrip("* ").endswith((":", "：")) and prose.text[sentence.end :].strip():
            return None  # "Ik heb er drie zinnen van gemaakt:", and the product
        forms = done[0].casefold().split()
        if not english and {forms[-1], forms[0] if "?" in words else forms[-1]} <= set(_WORD.findall(words.casefold())):
            return None  # the user said or asked it: "Ist der Termin verschoben?"
        own = sentence.masked if used else prose.text
        echo = len(particulars(own) & given) + (not english and _has_participle(own, given))
        if echo < least or (echo < ECHO and _SHOWS.search(line, done.end())):
            continue
        if not english and _PHRASES["own_acts"].search(line):
            continue
        if english and heads_text(line[done.end() :]):
            continue
        one = next((one for one in idle if not english or _is_act_of(done["verb"], one, used, request)), None)
        if one is not None:
            return Claim(one.kinds, "", "said", sentence.masked, sentence.start, sentence.end), one
    return None


_SPEAKER = re.compile(r"^(?:> ?)?(?:\*\*|__)?([^\W\d_]{3,15}):[ *_]", re.MULTILINE)


def is_dialogue(text: str) -> bool:
    """Return True if lines begin with the names of speakers, of which one speaks twice; fields are named once."""
    names = _SPEAKER.findall(text)
    return 1 < len(set(names)) < len(names)


def _finished(text: str) -> re.Match[str] | None:
    return _PHRASES["done"].search(text) or _PHRASES["done_by_me"].search(text)


def _denies(sentence: Sentence) -> bool:
    """Return True if a sentence has a negation, other than of a fault or a worry: "geen probleem"."""
    return _PHRASES["negates"].search(_PHRASES["no_fault"].sub(" ", sentence.masked)) is not None


def _denies_act(sentence: Sentence) -> bool:
    """Return True if a sentence has a negation beside a finished action: "Ik heb niets geplaatst".

    In Chinese, Japanese and Korean the negation changes the form of the verb, and any negation counts.
    """
    told = sentence.masked
    return _denies(sentence) and (_finished(told) is not None or max(told) >= FIRST_UNSPACED)


def reported_beside_lookups(
    prose: Prose, request: Request, able: Sequence[Ability], used: Sequence[Ability]
) -> tuple[Claim, Ability] | None:
    """Return the report of an action with two particulars of the order that no call sent and no result has.

    All calls of the turn only looked something up, so that none of them did it.
    """
    words, called = last_words(request), {call.name for message in request.turn for call in message.calls}
    idle = [one for one in able if one.tool.name not in called and (one.kinds - {"search", "read"} or not one.kinds)]
    if not idle or not _has_only_looked_up(request):
        return None
    if not used or _only_asks(words) or len(words) > LONGEST_ORDER:
        return None
    sent = " ".join(call.arguments.text for call in request.calls)
    given = particulars(words) - particulars(f"{sent} {' '.join(result.text for result in request.results)}")
    english = is_english(prose.masked)
    for act in claims(prose):
        kinds = act.kinds - {"search", "read"}
        if act.form != "said" or act.earlier or not kinds or _is_by_itself(act, words):
            continue
        if _NOTHING.match(act.object) is None:
            one = next((one for one in idle if _is_of_subject(act, kinds, one)), None)
            if one is not None:
                return act, one
    for sentence in prose.sentences:
        if sentence.question or len(sentence.masked) > LONGEST_ORDER or not is_about_this_case(sentence):
            continue
        told = particulars(prose.text[sentence.start : sentence.end])
        by_me = _PHRASES["i_did"].search(sentence.masked) or _PHRASES["done_by_me"].search(sentence.masked)
        done = by_me
        if done is None and not english and len(told & given) >= ECHO:
            done = _finished(sentence.masked)  # "Het ticket is aangemaakt"
        if done is None or _PHRASES["own_acts"].search(sentence.masked) or _is_lookup(done[0]):
            continue
        main = _SUBORDINATE.split(sentence.masked, maxsplit=1)[0]
        end = _COMMA.search(main, done.end())  # "J'ai prolongé tout, vous n'avez plus rien à faire"
        if _PHRASES["negates"].search(main[: end.start()] if end is not None else main):
            continue
        # "turn it off": "I turned it off"
        ordered = by_me is not None and not _roots(by_me[0]).isdisjoint(_roots(words))
        if sentence.masked.rstrip("* ").endswith((":", "：")) and (not ordered or _PHRASES["writes"].search(words)):
            continue  # the product follows
        named = (
            one
            for one in idle
            if _names_act(one, done[0], told, told & given)
            or (by_me and is_named_apart(one, used, sentence.masked, least=1 if told & given else 2))
        )
        figure = by_me is not None and any(word.isdigit() and len(word) > 1 for word in told & given)
        one = idle[0] if len(told & given) > 1 or ordered or figure else next(named, None)
        if one is not None:
            return Claim(one.kinds, "", "said", sentence.masked, *sentence.span), one
    return None


def _is_of_subject(act: Claim, kinds: frozenset[Kind], one: Ability) -> bool:
    """Return True if a finished act is one of a tool, on the thing that the tool's name has: "I've opened a ticket" of
    `create_ticket`.
    """
    return not nouns_of(one.tool).isdisjoint(words_in(act.object)) and fits(one, kinds, act.verb, act.object)


def _only_asks(words: str) -> bool:
    """Return True for a question that is no order: "Did you move it?", not "Could you move it?"."""
    return words.rstrip().endswith(("?", "？")) and not is_polite(words)


_COMMA = re.compile(r",(?!\d)")
_SUBORDINATE = re.compile(r",? (?:that|dass|que|che|dat|że|att) ")
"""The beginning of what was said or written: "I have told her that he cannot come"."""


def acted_by_name(
    prose: Prose, request: Request, able: Sequence[Ability], used: Sequence[Ability] = ()
) -> tuple[Claim, Ability] | None:
    """Return a finished act of a tool that was never called, as its name and the user's order tell it.

    "Pushed to origin" has the verb of `git_push`, "the recall is set" the verb of the order and the noun of
    `create_recall`. `used`: the tools of the turn, of which none could do it.
    """
    said = [act for act in claims(prose) if act.form == "said"]
    if not said and not used:
        return None
    words, called = last_words(request), {call.name for call in request.calls}
    if _only_asks(words) or asks_about_past(words) or _PHRASES["not_yet"].search(prose.masked):
        return None
    # A result may tell of it.
    returned = _roots(" ".join(result.text for message in request.turn for result in message.results))
    acting = [one for one in able if not (one.kinds and one.kinds <= {"search", "read"})]
    now = {call.name for message in request.turn for call in message.calls}
    own = frozenset[str]().union(*(_roots(told_by(other.tool)) for other in used))
    for act in itertools.chain(said, _acts_by_form(prose) if used else ()):
        if not used and _is_of_text(act, prose, words):
            continue
        if act.earlier or (act.kinds and act.kinds <= {"search", "read"}) or _is_by_itself(act, words):
            continue
        verb = _roots(act.verb) - returned
        if not verb or verb & own or _NOTHING.match(act.object):
            continue  # "I've run no tests"
        if any(may_also(other, act.kinds & _OUTSIDE) for other in used):
            continue
        sentence = prose.text[act.start : act.end]
        # What the user orders now, no call of an earlier turn has done.
        idle = [one for one in acting if one.tool.name not in (now if verb & _roots(words) else called)]
        one = next((one for one in idle if _is_told(act, one.tool, sentence, words)), None)
        if one is not None:
            return act, one
    return None


def _is_of_text(act: Claim, prose: Prose, words: str) -> bool:
    """Return True for an act that the user told, or that may be one on a text in a turn in which nothing ran."""
    if act.verb.endswith("ed") and act.verb in words_of(words):
        return True
    if act.kinds & {"send", "book"}:
        return False
    handed = HANDED_OVER.search(words.strip()) is not None
    shown = _SHOWS.search(prose.text, act.start, act.end) is not None  # "I renamed it: `count = 1`"
    return not is_order(words) or handed or shown or shows_product(act, prose) or heads_text(act.object)


def _is_told(act: Claim, tool: Tool, sentence: str, words: str) -> bool:
    """Return True if a finished act is that of a tool: by the verb of its name, which the order has or repeats, or by the
    verb of the order and a noun of its name.
    """
    verb, told, order = _roots(act.verb), _roots(sentence), _roots(words)
    name = [_roots(word) for word in name_words(tool.name)]
    if not any(verb & word for word in name):
        said_so = act.verb.endswith("ed") and act.verb in words_of(words)  # "delete merged branches"
        return bool(verb & order and not said_so) and any(word & told & order for word in name)
    whole = len(name) > 1 and all(word & told for word in name)
    echo = len(particulars(sentence) & particulars(words)) > 1
    return whole or echo or bool(verb & order or act.kinds & asked(words))


def _is_by_itself(act: Claim, words: str) -> bool:
    """Return True for an act that a reply may do within itself: it has written a text."""
    return stem(act.verb) in _WRITES or (act.kinds <= {"write", "create"} and bool(act.kinds) and asks_for_text(words))


def _acts_by_form(prose: Prose) -> Iterator[Claim]:
    """Yield the finished verbs of English sentences, whoever is their subject: "committed and pushed", "is logged"."""
    for sentence in () if is_foreign(prose.masked) else prose.sentences:
        if (
            sentence.question
            or negates(sentence)
            or not is_about_this_case(sentence)
            or _LONG_AGO.search(sentence.masked)
        ):
            continue
        for found in _ACTED.finditer(sentence.masked):
            verb = found["verb"].rpartition("-")[2].casefold()
            kinds = PARTICIPLE.get(verb, PAST.get(verb, frozenset()))
            yield Claim(kinds, verb, "passive", sentence.masked[found.end() :], *sentence.span)


_LONG_AGO = re.compile(r"(?i)\b(?:already|previously|earlier|yesterday|ago|last (?:week|month|year|time))\b")
_OUTSIDE: frozenset[Kind] = frozenset({"send", "book", "delete"})
_NOTHING = re.compile(r" (?:no|none|nothing)\b")
_ACTED = re.compile(
    r"(?i)(?:\b(?:I|I['’]ve|have|is|are|been|and|now|also|just|then|successfully)\s|^\W*|[:,–—]\s?\W{0,2})"
    r"(?P<verb>(?:[a-z]+-)?(?:[a-z]{2,}ed|sent|set|put|paid|run|ran))\b"
)
_WRITES = frozenset(map(stem, _PHRASES.words("by_itself")))


@lru_cache(maxsize=1024)
def _roots(text: str) -> frozenset[str]:
    """Return the stems of the English words of a text, and the beginnings of all longer ones.

    Cached, since each act of a reply is compared with each tool.
    """
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset(map(stem, words)) | frozenset(word[:_ROOT] for word in words if len(word) > _ROOT)


_ROOT = 5


def is_named_apart(one: Ability, used: Sequence[Ability], text: str, least: int = 1) -> bool:
    """Return True if a text has words of a tool's name that no used tool has in its name or description, or, with `least`,
    that many words of its name and description.
    """
    others = words_in(" ".join(told_by(other.tool) for other in used))
    own = told_by(one.tool) if least > 1 else " ".join(name_words(one.tool.name))
    return len(_stems(words_in(own) - others - STOP) & _stems(words_in(text))) >= least


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


def _names_act(one: Ability, done: str, told: frozenset[str], echo: frozenset[str]) -> bool:
    """Return True if a finished action has the verb of a tool's name, and its sentence a noun of it: "I've issued a refund"
    of `issue_refund`, "la he apagado" of `apagar`. Of `place_order`, "I ordered" is both if it repeats the order.
    """
    words = [particulars(word) for word in name_words(one.tool.name) if word not in _OF_DOING or not echo]
    acts = particulars(" ".join(stem(word.lower()) for word in _WORD.findall(done))) | particulars(done)
    nouns = [word for word in words if word and word.isdisjoint(acts)]
    return len(nouns) < len([word for word in words if word]) and (not nouns or any(word <= told for word in nouns))


_OF_DOING = frozenset(_PHRASES.words("of_doing"))
_LOOKUPS = frozenset(
    verb for table in (*DONE, PAST, PARTICIPLE) for verb, kinds in table.items() if kinds <= {"search", "read"}
)


def _is_lookup(done: str) -> bool:
    """Return True if a finished action is one of those that look something up, as the calls did."""
    return not _LOOKUPS.isdisjoint(word.casefold() for word in _WORD.findall(done)) or bool(
        _PHRASES["looked"].search(done)
    )


def _is_brief_order(prose: Prose, request: Request) -> bool:
    """Return True if a short reply follows an order without material, and all earlier calls only looked something up.

    The words of such an order are few, and may point at the last answer: "Renueva ese". A reply with new figures may be
    a calculation.
    """
    words = last_words(request)
    if len(prose.text) > LONGEST_REPORT or "?" in words or HANDED_OVER.search(words.strip()):
        return False
    if _PHRASES["done"].search(words):
        return False  # a report of the user: "Ya he reiniciado el router"
    if not _has_only_looked_up(request):
        return False
    opening = next((one.masked for one in prose.sentences), "")
    if opening.strip(" .!").isalpha() and _PHRASES["done"].search(opening):
        return True  # "Fatto!"
    known = [*(one.text for one in request.messages), *(one.text for one in request.results)]
    known += [call.arguments.text for call in request.calls]
    figures = _FIGURE.findall(prose.text)
    return len(figures) <= _MOST_FIGURES and all(any(figure in text for text in known) for figure in figures)


def _has_only_looked_up(request: Request) -> bool:
    """Return True if all calls of the turn are of declared tools that search or read, or commands that only read."""
    able = {tool.name: ability(tool) for tool in request.tools}
    calls = [call for message in request.turn for call in message.calls]
    return all(call.name in able and _looks_up(call, able[call.name]) for call in calls)


def _looks_up(call: ToolCall, one: Ability) -> bool:
    if not one.shell:
        return bool(one.kinds) and one.kinds <= {"search", "read"}
    commands = [cell for cell in (call.arguments.mapping or {}).values() if isinstance(cell, str)]
    return bool(commands) and any(map(reads_only, commands))


def _last_answer(request: Request) -> str:
    return next((one.text for one in reversed(request.messages) if one.role == "assistant" and one.text), "")


_MOST_FIGURES = 16
_FIGURE = re.compile(r"\d\d+")
_SHOWS = re.compile(r"[:：]\s*\S")
"""What follows may be the product, which the model made by itself."""
_WORD = re.compile(r"\w+")


def _has_participle(text: str, given: frozenset[str]) -> bool:
    """Return True if a text has a word of an order behind a prefix: `geannuleerd` of `annuleer`."""
    return any(re.search(rf"(?i)\b[^\W\d_]{{2,3}}{re.escape(word)}", text) for word in given if word.isalpha())


def _is_act_of(verb: str, one: Ability, used: Sequence[Ability], request: Request) -> bool:
    """Return True if a finished verb is that of a tool's name, or of an order about its subject, and of no used tool."""
    words, said = last_words(request), stem(verb.lower())
    parts, order = [stem(part) for part in name_words(one.tool.name)], {stem(word) for word in words_of(words)}
    subject = frozenset(noun for noun in nouns_of(one.tool) if stem(noun) != said)
    if not (said in order or asked(words)) or subject.isdisjoint(words_in(words)):
        return False  # the user ordered nothing
    if not (said in parts or said in order or verb.lower() in _STATES):
        return False
    if not used:
        return True
    if any(other.shell or "run" in other.kinds or _PHRASES["anything"].search(other.tool.name) for other in used):
        return False
    names = words_in(" ".join(" ".join(name_words(other.tool.name)) for other in used))
    returned = words_in(" ".join(result.text for message in request.turn for result in message.results))
    return said not in {stem(name) for name in names} and subject.isdisjoint(names) and not subject <= returned


_STATES = frozenset({"done", "live", "out", "complete", "set"})
