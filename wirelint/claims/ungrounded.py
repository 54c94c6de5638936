"""Answers that only a tool could give, in a turn in which no tool ran: "It is 22 °C in Oslo right now."

Theory of operation. The user orders the use of a tool, or asks what a declared tool is for: by the tool's subject, about
this moment, a day near today or one thing with a number. A statement of the reply with a value, a name or words that
nothing in the conversation gives then rests on nothing. What a model may know or compute by itself does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wirelint import lexicon
from wirelint.claims.announcements import announcement, asks_for_text
from wirelint.claims.derivation import as_datum, equals, is_said, words_in
from wirelint.claims.evidence import is_unseen, last_words
from wirelint.claims.grounding import (
    LONGEST_ORDER,
    LONGEST_REPLY,
    Given,
    is_admission,
    is_bound,
    nouns_of,
    numbers_of_things,
    scaled_values,
    stated,
    statements,
)
from wirelint.claims.order_check import HANDED_OVER
from wirelint.claims.rows import holds
from wirelint.claims.toolkinds import Ability, name_words, names
from wirelint.claims.values import clocks, dates, values
from wirelint.dialects.declared import properties_of
from wirelint.model import Request, Tool
from wirelint.text.asking import asks_about_calls
from wirelint.text.prose import Prose, Sentence

_PHRASES = lexicon.Phrases("grounding")

_MARKUP = re.compile(r"<(?!\w{1,20}>)")
"""Markup, but for a placeholder: `<city>`."""
_LABEL = re.compile(r"(?<![\w-])[A-Z]{1,4}-\d{1,3}(?![\w-])", re.ASCII)
"""The label of a machine or a room: `HK-03`. With "now", it is one of those that a tool knows."""
_LONGEST_NAMING = 200
_STEM = 6
"""Letters of a word that may be a part of another word: `energieverbruik` and `verbruikt`."""
_NEWS = 3
"""New words from which on a reply says something by itself."""


def ungrounded(prose: Prose, request: Request, able: Sequence[Ability]) -> tuple[Sentence, Tool] | None:
    """Return the first statement that only a tool could make, and the tool, if nothing ran in the turn.

    The user's message orders the use of a tool, or has words in common with its name.
    """
    words = last_words(request)
    if not words or len(words) > LONGEST_ORDER or len(prose.text) > LONGEST_REPLY:
        return None
    if is_unseen(request) or asks_about_calls(request) or (prose.sentences and prose.sentences[0].question):
        return None
    if _PHRASES["asks_meaning"].search(words) or _PHRASES["forbids"].search(words):
        return None
    found = _without_basis(prose, request, able, words)
    if found is None or is_admission(prose) or announcement(prose) is not None:
        return None
    # Last, because reading the whole order is slow.
    writes = asks_for_text(words) or _PHRASES["writes"].search(words)
    needs_tool = _PHRASES["use_tools"].search(words) or _tool_of_past(words, able) is not None
    return None if writes and not needs_tool else found


def _without_basis(prose: Prose, request: Request, able: Sequence[Ability], words: str) -> tuple[Sentence, Tool] | None:
    given = Given(request, [], prose)
    amounts = values(words)
    if len(amounts) + len(_COMPOUND.findall(words)) > 1:
        return None  # "310 km at about 90 on average": the model may compute from what the user gives
    measures = [value for value in amounts if value.unit is not None]
    if any(equals(told, value) and told.unit is not value.unit for told in values(prose.text) for value in measures):
        return None  # "350 °F is about 177 °C": the model converts what the user gives
    if scaled_values(stated(prose), [as_datum(value) for value in measures]):
        return None  # "510 g of flour and 127.5 g of butter", of the user's recipe for fewer people
    if (ordered := _ordered_tool(words, able) or _tool_of_past(words, able)) is not None:
        facts = list(statements(prose))
        news = [sentence for sentence in facts if given.has_news(sentence)]
        told = [sentence for sentence in facts if given.new_words(sentence)]
        if news or sum(len(given.new_words(sentence)) for sentence in told) >= _NEWS:
            return (news or told)[0], ordered
        return None
    handed = HANDED_OVER.search(words)
    if handed is not None and "?" in words[: handed.start()] and len(words) - handed.end() > _MATERIAL:
        return None  # a question about what the message brings: "What did she say? Log: 'Agent: …'"
    finders = [one for one in able if (not one.kinds or one.kinds & {"search", "read"}) and not names(one.tool, words)]
    asked_for, at_once = words_in(words), _PHRASES["now"].search(words) is not None
    if (another := _about_another(prose, request, words, finders)) is not None:
        return another
    things = [*_numbered(words, request), *(_LABEL.findall(words) if at_once else ())]
    things += [word for word in _sent_before(request) if word in words]
    shown = prose.text.casefold()
    told_things = [thing.casefold() for thing in things if thing.casefold() in shown]
    needs_tool = bool(told_things) or _PHRASES["at_present"].search(words) is not None or _asks_about_day(words)
    for sentence in statements(prose) if finders else ():
        if sentence.masked.startswith("|") and not any(map(str.isdigit, sentence.masked)):
            continue  # the heading of a table
        if _TIME_ZONE.search(sentence.masked):
            continue  # which a model knows
        found = _finder_for(sentence, finders, given, asked_for, at_once)
        of_thing = any(thing in sentence.masked.casefold() for thing in told_things)
        if found is None and ((needs_tool and given.has_measure(sentence)) or (of_thing and given.has_bound(sentence))):
            found = finders[0]
        if found is not None and not _defines(sentence):
            return sentence, found.tool
    record = _record(prose, given, request, words) if finders else None
    return (record, finders[0].tool) if record is not None else None


def _record(prose: Prose, given: Given, request: Request, words: str) -> Sentence | None:
    """Return the first statement of a record: several new values or times of a thing that the user's message names by a
    code, `VT-31`, or of the present; or new names in code of a thing of the user: "how does my branch look?".
    """
    texts = [*(message.text for message in request.messages), *(result.text for result in request.results)]
    told = list(statements(prose))
    known = [clock.minutes for text in texts for clock in clocks(text)]
    news = [one.sentence for one in stated(prose) if given.is_new(one.value) and not is_bound(one.value, prose.masked)]
    news += [one for one in told for clock in clocks(one.masked) if clock.possible.isdisjoint(known)]
    of_user = _PHRASES["own_thing_asked"].search(words) is not None and _PHRASES["advice_asked"].search(words) is None
    if of_user and len(news) < _VALUES:
        every = "\n".join(texts)
        news += [one for one in told for code in _NEW_CODE.findall(prose.text[slice(*one.span)]) if code not in every]
    named = any(holds(prose.text, code) for code in _THING.findall(words))
    present = any(_PHRASES["at_present"].search(text) for text in (words, prose.masked))
    coded = of_user and any(code not in words for code in _NEW_CODE.findall(prose.text))
    return news[0] if len(news) >= _VALUES and (named or present or coded) else None


_NEW_CODE = re.compile(r"(?<=`)[^`\s]*[./\d_-][^`\s]*(?=`)|(?<![\w.])v?\d+\.\d+\.\d+(?![\w.])|(?<!\w)#\d{2,}")
"""A name in code, a version, or the number of an issue."""
_THING = re.compile(
    r"(?a)(?<![\w-])(?:[A-Z]{1,4}-?\d{1,5}|(?!covid|top|type|level)[a-z]{2,8}-\d{1,2})(?![\w-])"
    r"|(?<![\w.,:/-])\d{4,5}(?![\w.,:/-])"
)
"""The code of a machine, a field, a flight or a train."""
_VALUES = 2
"""New values of a record."""


_COMPOUND = re.compile(r"(?<![\w-])\d[\d.,]*-[a-z]{3,}")
"""An amount before its noun: `1,950-word`."""


def _about_another(
    prose: Prose, request: Request, words: str, finders: Sequence[Ability]
) -> tuple[Sentence, Tool] | None:
    """Return a statement with numbers of a thing that only the user's last message names, after calls about others.

    "And what do they take at Quayside?", where a tool was asked about Mill Lane.
    """
    asked = {call.name for call in request.calls}
    if not asked or not finders:
        return None
    tool = next((one.tool for one in finders if one.tool.name in asked), finders[0].tool)
    told = [message.text for message in request.messages if message.text != words]
    earlier = [*told, *(call.arguments.text for call in request.calls), *(result.text for result in request.results)]
    known = "\n".join(earlier).casefold()
    named = _PROPER.findall(words) if any(one.tool.name in asked for one in finders) else []
    joined = known.replace(" ", "")
    new = [name for name in (*named, *_numbered(words, request)) if name.casefold().replace(" ", "") not in joined]
    for one in stated(prose) if new else ():
        about_it = any(holds(prose.text[slice(*one.sentence.span)], name) for name in new)
        if about_it and not is_said(one.value, prose.masked, [*earlier, words]):
            return one.sentence, tool
    return None


def _numbered(words: str, request: Request) -> Iterator[str]:
    """Yield the things that a message names by a number: an order's, or `tank 4` after a call with `{"tank": 2}`."""
    yield from numbers_of_things(words)
    keys = {name_words(key)[-1] for call in request.calls for key in call.arguments.mapping or {} if name_words(key)}
    declared = (name_words(key) for tool in request.tools for key in properties_of(tool.schema))
    keys |= {own[0] for own in declared if len(own) > 1}
    for key in keys:
        yield from re.findall(rf"(?i)(?<!\w){re.escape(key)} (?:\d{{1,6}}|[A-Z])(?!\w)", words)


_PROPER = re.compile(
    r"(?<=\w )(?:[A-Z][\w-]*\d[\w-]*|[A-Z]{1,4}(?: \d{2,})+|[a-z]+-\d+|[A-ZÀ-ÖØ-Þ][^\W\d_]{2,}(?: [A-ZÀ-ÖØ-Þ0-9][\w-]*)*)"
)
"""A name within a sentence, or a code: `enc-08`."""
_TIME_ZONE = re.compile(
    r"\b(?:UTC|GMT)\b|(?i:\b(?:time zones?|daylight (?:saving )?time|zeitzonen?|fuseaux? horaires?|husos? horarios?"
    r"|fus[io] orari[oi]?|fusos? horários?|tijdzones?|stref[ay] czasow|часов\w+ пояс|saat dilim)|时区|時差|시차)"
)


def _defines(sentence: Sentence) -> bool:
    """Return True if a sentence is about all things of one name, which a model knows: "A troy ounce is 31.1 g"."""
    return _OF_KIND.match(sentence.masked) is not None


_OF_KIND = re.compile(r"\W*(?:An?|One) (?:[\w-]+ ){1,3}(?:is|are|has|equals|weighs|contains|makes|takes|holds)\b")


def _sent_before(request: Request) -> Iterator[str]:
    """Yield the names that earlier calls were about: a question about one of them needs a tool again."""
    for call in request.calls:
        for value in (call.arguments.mapping or {}).values():
            if isinstance(value, str) and _ENTITY.fullmatch(value):
                yield value


_ENTITY = re.compile(r"(?=.*[A-Z\d])[\w-]{3,40}")
_MATERIAL = 40
"""Characters after a colon or a quotation mark in a message that are material, and no question."""


def _asks_about_day(words: str) -> bool:
    """Return True if a question is about a date or a day near today: "How much did we feed in yesterday?"."""
    near = _RELATIVE_DAYS.search(words) is not None or bool(dates(words))
    return near and ("?" in words or "？" in words)


_RELATIVE_DAYS = lexicon.compiled(lexicon.load("dates")["relative"])


def _finder_for(
    sentence: Sentence, finders: Sequence[Ability], given: Given, asked: frozenset[str], at_once: bool
) -> Ability | None:
    """Return the tool that a sentence needs: it states a measure that only the tool gives, or news about its subject."""
    own, measured = words_in(sentence.masked), given.has_measure(sentence)
    for one in finders:
        nouns = nouns_of(one.tool)
        if measured:
            related = any(word[:_STEM] in noun for word in asked if len(word) >= _STEM for noun in nouns)
            if (
                related
                or nouns & asked
                or (nouns & own and asked & own and not given.repeats_value(sentence))
                or len(one.words & asked) > 1
            ):
                return one
        known = nouns & asked if one.kinds else nouns <= asked
        about_it = bool(known and own & nouns and given.new_words(sentence))
        about_it = about_it and not given.asks_back and not given.repeats_value(sentence)
        about_it = about_it and _PHRASES["done_in_english"].match(sentence.masked) is None  # an act is no answer
        if about_it and (at_once or _PHRASES["now"].search(sentence.masked)):
            return one
    return finders[0] if measured and _PHRASES["at_present"].search(sentence.masked) else None


def _ordered_tool(words: str, able: Sequence[Ability]) -> Tool | None:
    """Return the tool that the user's message orders to use; None if it only may be used, or is asked about."""
    order = _PHRASES["use_tools"].search(words)
    if _PHRASES["optional"].search(words) or _MARKUP.search(words):
        return None
    if order is not None:
        return able[0].tool if able else None
    if "?" in words or len(words) > _LONGEST_NAMING:
        return None
    return next((one.tool for one in able if names(one.tool, words)), None)


def _tool_of_past(words: str, able: Sequence[Ability]) -> Tool | None:
    """Return a tool that reads, whose whole name is in a short order about the past: `analyze_data` of "analyze the sales
    data from last quarter".
    """
    if len(words) > _LONGEST_NAMING or _PAST.search(words) is None:
        return None
    said = words_in(words)
    finders = (one.tool for one in able if not one.kinds or one.kinds & {"search", "read"})
    return next((tool for tool in finders if len(own := name_words(tool.name)) > 1 and said.issuperset(own)), None)


_PAST = lexicon.compiled(lexicon.load("dates")["past"])
