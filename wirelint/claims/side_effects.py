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
from wirelint.claims.actions import SOON, TOPIC_OF, Topic, words_of
from wirelint.claims.announcements import Announcement
from wirelint.claims.claims import Claim
from wirelint.claims.toolkinds import PATH, URL, Ability, name_words, names, topics_in
from wirelint.model import Tool
from wirelint.text.prose import Prose

_PHRASES = lexicon.Phrases("side_effects")


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
_LOOKS = frozenset(_PHRASES.words("looks"))
_LOOKED_AT: frozenset[Topic] = frozenset({"file", "knowledge", "web", "data", "run"})
_FETCHES = frozenset(_PHRASES.words("fetches"))
_MENDS = frozenset(_PHRASES.words("mends"))
_NEEDS_NAME = frozenset(["used", "called", "invoked", "use", "call", "invoke", "using", "calling", "invoking"])
_OUTER: frozenset[Topic] = frozenset({"calendar", "order", "travel", "ticket", "data", "mail"})


def reach(claim: Claim, prose: Prose, able: Ability) -> Reach:
    """Return the certainty that only a tool, `able`, can do the claimed action."""
    if claim.form in ("outcome", "missed", "state") or names(able.tool, claim.object):
        return Reach.SURE
    if qualifies_text(claim.object, able.tool) or (
        "send" not in claim.kinds and _PHRASES["tabled"].match(prose.text, claim.end)
    ):
        return Reach.NO
    shared = words_of(claim.object) & words_of(able.tool.name.replace("_", " ").replace("-", " ")) & able.words
    if shared and not shared <= _TEXTUAL and not _PHRASES["given"].search(claim.object):
        return Reach.SURE
    found = _PHRASES["given"].search(claim.object)
    kinds = claim.kinds
    if shows_product(claim, prose):
        return Reach.NO
    ranks = [Reach.NO]
    if not found:
        if "search" in kinds:
            ranks.append(_search(claim))
        if "read" in kinds:
            ranks.append(_read(claim))
        if kinds & {"write", "create", "delete"}:
            ranks.append(_write(claim, prose))
    if "send" in kinds:
        ranks.append(_send(claim, given=found is not None))
    if "run" in kinds:
        ranks.append(_run(claim))
    if "book" in kinds and not (found and claim.verb in ("processed", "issued", "placed", "made")):
        ranks.append(_book(claim))
    if "control" in kinds and topics_in(claim.object) & {"device"}:
        ranks.append(Reach.SURE)
    own = max(ranks)
    # A word of the tool's name counts a little even if it may name a text: create_report, submit_request.
    return Reach.MAYBE if own is Reach.NO and shared and not prose.fenced and prose.words < 400 else own


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


def _search(claim: Claim) -> Reach:
    if topics_in(claim.object, claim.verb) or has_place(claim.object):
        return Reach.SURE
    if claim.verb in ("searched", "looked up", "searching", "looking up", "googled", "googling") and _PHRASES[
        "target"
    ].search(claim.object):
        return Reach.SURE
    return Reach.MAYBE if claim.form == "terse" else Reach.NO


def _read(claim: Claim) -> Reach:
    if has_place(claim.object):
        return Reach.SURE
    if claim.verb in _FETCHES and _PHRASES["numbered"].match(claim.object):
        return Reach.SURE
    if claim.verb in _FETCHES and _PHRASES["fetched"].match(claim.object):
        return Reach.MAYBE
    if claim.verb.startswith("list") and not words_of(claim.object) & {"directory", "folder", "content", "bucket"}:
        return Reach.NO
    if heads_text(claim.object) and not topics_in(claim.object) & {"mail", "file"}:
        return Reach.NO
    topics = topics_in(claim.object)
    return Reach.SURE if topics else Reach.NO


def _write(claim: Claim, prose: Prose) -> Reach:
    product = prose.fenced or _PHRASES["table"].search(prose.text) is not None
    if has_place(claim.object):
        if product and not _PHRASES["saves"].search(f"{claim.verb} {claim.object}") and not claim.kinds & {"delete"}:
            return Reach.MAYBE
        return Reach.SURE
    if product:
        return Reach.NO
    if claim.form == "terse" and not claim.object.strip(" .!"):
        return Reach.MAYBE
    if heads_text(claim.object):
        return Reach.NO
    if topics_in(claim.object):
        return Reach.SURE
    return Reach.MAYBE if _PHRASES["code"].search(claim.object) or claim.kinds == {"delete"} else Reach.NO


def _send(claim: Claim, *, given: bool) -> Reach:
    topics = topics_in(claim.object, claim.verb)
    if topics & {"mail", "ticket", "order", "calendar"}:
        return Reach.MAYBE if given else Reach.SURE
    if given:
        return Reach.NO
    return (
        Reach.SURE if topics or _PHRASES["recipient"].search(claim.object) or has_place(claim.object) else Reach.MAYBE
    )


def _run(claim: Claim) -> Reach:
    if claim.verb in _NEEDS_NAME:
        return Reach.MAYBE  # the named tool decides
    if claim.verb in _ALONE or _PHRASES["code"].search(claim.object) or has_place(claim.object):
        return Reach.SURE
    return Reach.SURE if topics_in(claim.object) & {"run", "file", "data"} else Reach.NO


def _book(claim: Claim) -> Reach:
    if topics_in(claim.object, claim.verb) & _OUTER or claim.verb in _ALONE:
        return Reach.SURE
    return Reach.NO


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
    if has_place(found.object) or _PHRASES["code"].search(found.object):
        return True
    if (
        found.verb in _FETCHES
        and able.topics & {"web", "file", "knowledge"}
        and _PHRASES["fetched"].match(found.object)
    ):
        return True
    if mends(found, able):
        return not prose.fenced and prose.words < 400
    topics: frozenset[str] = topics_in(found.object)
    if found.kinds & {"write", "create"} and not found.kinds & {"book", "send"}:
        agentic = bool(found.kinds & {"write"}) and not prose.fenced and _then_acts(found.object)
        return agentic or (bool(topics) and not heads_text(found.object))
    topics |= words_of(found.object) & able.words
    if found.kinds & {"search", "send", "book", "delete"}:
        return found.verb in _TELLING_ALONE or bool(topics) or _PHRASES["recipient"].search(found.object) is not None
    if "read" in found.kinds and heads_text(found.object) and not topics & {"mail", "file"}:
        return False
    return bool(topics & able.topics or words_of(found.object) & able.words)


def acts_loosely(found: Announcement, able: Ability) -> bool:
    """Return True if an immediate action needs a tool though its noun is unknown.

    "Let me read the stylesheet first:" ends a reply. Reading is impossible in a reply, so it announces a tool that reads.
    """
    if not found.at_once or found.verb not in _LOOKS or not found.kinds & able.kinds & {"search", "read"}:
        return False
    if not (able.shell or able.topics & _LOOKED_AT) or not _PHRASES["thing"].match(found.object):
        return False
    return not (
        _PHRASES["given"].search(found.object) or heads_text(found.object) or _PHRASES["thoughts"].search(found.object)
    )


def mends(found: Announcement, able: Ability) -> bool:
    """Return True if a tool edits files, and the announcement is like "I'll fix it now"."""
    edits = bool(able.topics & {"file"}) and "write" in able.kinds and not able.shell
    return edits and found.verb in _MENDS and _PHRASES["mended_now"].match(found.object) is not None


def _then_acts(text: str) -> bool:
    """Return True if a sentence continues with work for tools: "write the module and then run the tests"."""
    return re.search(r"\b(?:module|tests?|file|component|script|class|fix|change|patch)\b", text) is not None
