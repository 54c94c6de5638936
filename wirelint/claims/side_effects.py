"""Side effects: claimed actions that reach outside of the conversation, so that only a tool can do them.

"I've written a function", "I read your question", "I created an outline below" are actions of the reply itself: their
object is in the text, or the user provided it. "I've saved it to utils.py", "I read the log file", "I sent the mail" are
not. The object decides: a path, an address or a noun of the outside world reaches out. A noun for a piece of text does
not, and neither does an object that the user provided.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import pairwise

from wirelint import lexicon
from wirelint.claims.actions import SOON, TOPIC_OF, Kind, Topic, stem, words_of
from wirelint.claims.announcements import Announcement
from wirelint.claims.claims import Claim
from wirelint.claims.toolkinds import PATH, URL, Ability, does, name_words, names, topics_in
from wirelint.model import Tool
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("side_effects")


_ACTS: frozenset[Kind] = frozenset({"send", "book", "delete", "control", "run"})


_SORTED = re.compile(r"\bby \w+|alphabetically")
"""What the model orders by itself: "I ordered them by width"."""


class Reach(IntEnum):
    """Certainty that an action reaches outside."""

    NO = 0
    MAYBE = 1
    SURE = 2


_TEXTUAL = frozenset(_PHRASES.words("textual"))
_TEXTUAL_CJK = _PHRASES.words("textual_cjk")
_RESHAPES = frozenset(["merged", "compiled"])
"""Verbs of programs that also fit parts of a text."""
_ALONE = frozenset(_PHRASES.words("alone"))
_TELLING_ALONE = frozenset({
    "search", "searching", "look up", "looking up", "google", "googling", "query", "send", "sending", "email", "emailing",
    "e-mail", "book", "booking", "reserve", "reserving", "delete", "deleting", "cancel", "canceling", "cancelling",
    "refund", "refunding", "schedule", "scheduling", "notify", "notifying", "escalate", "escalating",
    *(word for table in SOON for word in table),
})  # fmt: skip
"""Verbs that announce an outside action with any object."""
_FETCHES = frozenset(_PHRASES.words("fetches"))
_MENDS = frozenset(_PHRASES.words("mends"))
_NEEDS_NAME = frozenset(["used", "called", "invoked", "use", "call", "invoke", "using", "calling", "invoking"])
_OUTER: frozenset[Topic] = frozenset({"calendar", "order", "travel", "ticket", "data", "mail"})


def reach(claim: Claim, prose: Prose, able: Ability) -> Reach:
    """Return the certainty that only a tool, `able`, can do the claimed action."""
    text, given = claim.object, is_given(claim.object)
    if claim.form in ("outcome", "state") or names(able.tool, text):
        return Reach.SURE
    if qualifies_text(text, able.tool) or (
        "send" not in claim.kinds and _PHRASES["tabled"].match(prose.text, claim.end)
    ):
        return Reach.NO
    shared = words_of(text) & words_of(" ".join(name_words(able.tool.name))) & able.words
    if shared and not shared <= _TEXTUAL and not given:
        return Reach.SURE
    # The tool's own verb: "I ordered 60 bags", with `place_order`
    by_itself = _PHRASES["pronoun"].match(text) is not None or _SORTED.search(text) is not None
    own = (
        claim.form == "said"
        and not by_itself
        and claim.kinds & _ACTS
        and stem(claim.verb) in map(stem, name_words(able.tool.name))
    )
    if own and not (given or ("send" not in claim.kinds and heads_text(text)) or prose.fenced):
        return Reach.SURE
    if shows_product(claim, prose):
        return Reach.NO
    reached = max((_reach_of(kind, claim, prose, given=given) for kind in claim.kinds), default=Reach.NO)
    # A word of the tool's name counts a little even if it may name a text: create_report, submit_request.
    return Reach.MAYBE if reached is Reach.NO and shared else reached


def _reach_of(kind: Kind, claim: Claim, prose: Prose, *, given: bool) -> Reach:
    """Return the certainty for one kind of the claimed action. `given`: its object is material of the user."""
    text, topics = claim.object, topics_in(claim.object, claim.verb)
    code = _PHRASES["code"].search(text) is not None
    textual = heads_text(text) and not topics & {"mail", "file"}
    match kind:
        case "send" if given:
            return Reach.MAYBE if topics & {"mail", "ticket", "order", "calendar"} else Reach.NO
        case "send":
            return Reach.SURE if topics or _PHRASES["recipient"].search(text) else Reach.MAYBE
        case "run":
            return Reach.SURE if claim.verb in _ALONE or code or topics & {"run", "file", "data"} else Reach.NO
        case _ if given:
            return Reach.NO
        case "book":
            return Reach.SURE if claim.verb in _ALONE or topics & _OUTER else Reach.NO
        case "control":
            return Reach.SURE
        case "search":
            if topics or _PHRASES["target"].search(text):
                return Reach.SURE
            return Reach.MAYBE if claim.form == "terse" else Reach.NO
        case "read":
            return Reach.SURE if topics and not textual else Reach.NO
        case _:
            if has_place(text):
                return Reach.SURE
            if prose.fenced or heads_text(text):
                return Reach.NO
            return Reach.SURE if topics_in(text) else Reach.MAYBE if code or claim.kinds == {"delete"} else Reach.NO


def shows_product(claim: Claim, prose: Prose) -> bool:
    """Return True if the reply shows the product: "put aside in the plan below", "I've merged them: [1, 2]"."""
    if "send" in claim.kinds:
        return False
    if _PHRASES["tabled"].match(prose.text, claim.end):
        return True
    if _PHRASES["shown"].search(claim.object) and "\n" in prose.text[claim.end :].rstrip():
        return not has_place(claim.object)
    at = prose.text.find(claim.object, claim.start) + len(claim.object)
    goes_on = prose.text[at : at + 1] == ":" and prose.text[at + 1 :].strip() != ""
    return claim.verb in _RESHAPES and goes_on and _PHRASES["pronoun"].match(claim.object) is not None


def has_place(text: str) -> bool:
    """Return True if a text names a path or an address."""
    return PATH.search(text) is not None or URL.search(text) is not None


def heads_text(text: str) -> bool:
    """Return True if the first known noun names a piece of text."""
    for word in _PHRASES["word"].findall(_PHRASES["code"].sub(" ", text).lower()):
        singular = word[:-1] if word.endswith("s") else word
        if word in _TEXTUAL or singular in _TEXTUAL:
            return True
        if word in TOPIC_OF or singular in TOPIC_OF:
            return False
    return any(mark in text for mark in _TEXTUAL_CJK)


def qualifies_text(text: str, tool: Tool) -> bool:
    """Return True if a word of a tool's name only qualifies a piece of text: the background paragraph."""
    own = set(name_words(tool.name))
    words = _PHRASES["word"].findall(text.lower())
    about = _PHRASES["about"].search(text.lower())
    if about is not None and about["what"] in _TEXTUAL and about["what"] not in own:
        return True
    return any(word in own and after in _TEXTUAL and after not in own for word, after in pairwise(words))


def is_given(text: str) -> bool:
    """Return True if a text is about material of the user: a message, a snippet, the text above."""
    return _PHRASES["given"].search(text) is not None


def is_thought(text: str) -> bool:
    """Return True if a text is about a thought, not about a thing that can be read."""
    return _PHRASES["thoughts"].search(text) is not None


def acts_outside(found: Announcement, prose: Prose, able: Ability) -> bool:
    """Return True if an announced action needs a tool: "let me read the file", not "let me write the introduction"."""
    if names(able.tool, found.object) or found.verb in _NEEDS_NAME:
        return True
    given = _PHRASES["given"].search(found.object)
    if given is not None and given[0].lower() == "following" and prose.text.rstrip(" *\n").endswith((":", "：")):
        given = _PHRASES["given"].search(found.object, given.end())  # and nothing follows
    if given is not None and not given[0].endswith(("the code", "this code")) and not PATH.search(found.object):
        return False
    if has_place(found.object) or _PHRASES["code"].search(found.object) or mends(found, able):
        return True
    if found.verb in _FETCHES and _PHRASES["fetched"].match(found.object):
        return True
    topics: frozenset[str] = topics_in(found.object)
    if found.kinds & {"write", "create"} and not found.kinds & {"book", "send"}:
        return ("write" in found.kinds and not prose.fenced) or (bool(topics) and not heads_text(found.object))
    topics |= words_of(found.object) & able.words
    if does(able, found.kinds & {"search", "read"}) and topics & words_of(" ".join(name_words(able.tool.name))):
        return True
    if "read" in found.kinds and heads_text(found.object) and not topics & {"mail", "file"}:
        return False
    if found.kinds & {"search", "send", "book", "delete"}:
        return found.verb in _TELLING_ALONE or bool(topics)
    return bool(topics & able.topics or words_of(found.object) & able.words)


def mends(found: Announcement, able: Ability) -> bool:
    """Return True if a tool edits files, and the announcement is like "I'll fix it now"."""
    edits = "file" in able.topics and "write" in able.kinds
    return edits and found.verb in _MENDS and _PHRASES["mended_now"].match(found.object) is not None
