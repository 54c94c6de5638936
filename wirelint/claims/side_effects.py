"""Whether a claimed action reaches outside of the conversation, so that only a tool could have done it.

"I've written a function", "I read your question", "I created an outline below" are acts of the reply itself: what
they speak of stands in the text, or was given by the user. "I've saved it to utils.py", "I read the log file", "I
sent the mail" are not. What decides is the object: a path, an address or a noun of the outside world reaches out; a
noun for a piece of text does not, and nothing reaches out that the user brought along.
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import pairwise

from wirelint.claims.actions import SOON, TOPIC_OF, Topic, words_of
from wirelint.claims.announcements import Announcement
from wirelint.claims.claims import Claim
from wirelint.claims.toolkinds import PATH, URL, Ability, name_words, names, topics_in
from wirelint.model import Tool
from wirelint.text.prose import Prose


class Reach(IntEnum):
    """How surely an action reaches outside."""

    NO = 0
    MAYBE = 1
    SURE = 2


_GIVEN = re.compile(
    r"\b(?:your|the|this|that|these|those) (?:[\w-]+ ){0,2}?(?:(?<!pull )request|messages?|questions?|prompt|"
    r"text|snippet|essay|draft|input|paragraph|"
    r"sentence|instructions?|requirements?|image|screenshot|photo|picture|attachment|conversation|error message|"
    r"stack trace|traceback|"
    r"options?|code|diff|résumé|resume|cv|poem|story|idea|plan|concern|feedback|situation|argument)\b|"
    r"\byou(?:['’]ve| have)? (?:just )?(?:pasted|shared|provided|gave|given|posted|attached|uploaded|included|"
    r"listed above)\b|"
    r"\b(?:above|below|attached|pasted|provided|following)\b|\bmy (?:own |internal )?(?:memory|knowledge|"
    r"training|notes|mind|head|reasoning|answer|response)\b|"
    r"\bin (?:the|your|this) (?:example|script|function|query|table|list|template|version|answer)\b|"
    r"\b(?:deine?n?|ihre?n?) (?:frage|nachricht|text|code|anfrage)\b|\b(?:votre|ta|ton) (?:question|message|"
    r"texte|code)\b|"
    r"\b(?:tu|su) (?:pregunta|mensaje|texto|código)\b|你的(?:问题|消息|代码)|您的(?:问题|消息|代码)",
    re.IGNORECASE,
)
_TEXTUAL = frozenset({
    "code", "function", "snippet", "poem", "story", "essay", "outline", "plan", "draft", "summary", "table", "list",
    "report", "letter", "text", "paragraph", "sentence", "script", "query", "example", "template", "diagram", "regex",
    "class", "method", "component", "section", "version", "response", "answer", "explanation", "message", "email",
    "mail", "e-mail", "document", "schedule", "itinerary", "recipe", "prompt", "title", "headline", "caption", "bug",
    "typo", "mistake", "problem", "error", "logic", "syntax", "import", "variable", "parameter", "comment", "formula",
    "schema", "page", "post", "article", "quiz", "exercise", "question", "joke", "slogan", "idea", "option", "note",
    "notes", "reply", "implementation", "solution", "program", "algorithm", "proof", "translation", "chart",
    "timeline", "overview", "guide", "checklist", "gedicht", "funktion", "liste", "tabelle", "zusammenfassung",
    "entwurf", "geschichte", "satz", "poème", "fonction", "texte", "tableau", "résumé", "histoire", "phrase",
    "cuento", "poema", "función", "texto", "lista", "tabla", "resumen", "historia", "frase",
})  # fmt: skip
_TEXTUAL_CJK = (
    "诗",
    "函数",
    "文章",
    "故事",
    "大纲",
    "计划",
    "列表",
    "表格",
    "总结",
    "摘要",
    "代码",
    "示例",
    "翻译",
    "方案",
)
_SAVES = re.compile(
    r"\b(?:saved?|stored?|uploaded?|gespeichert|enregistré|sauvegardé|guardado|committed)\b|\b(?:written|wrote) "
    r"(?:\w+ ){0,3}to\b|保存|写入",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"\bin (?:the|this|your|my) (?:[\w-]+ ){0,2}?(?:plan|schedule|timetable|table|list|outline|draft|itinerary)\b|"
    r"\b(?:below|as follows|in the following)\b",
    re.IGNORECASE,
)
"""Where the reply shows what was done: in a product of its own."""
_PRONOUN = re.compile(
    r"^\s*(?:it|them|these|those|this|that|both|the (?:two )?(?:lists?|arrays?|tables?|sets?))?\s*$", re.IGNORECASE
)
_RESHAPES = frozenset(["merged", "compiled"])
"""Verbs of programs that are as well done to what stands in a text."""
_TABLE = re.compile(r"^\s*\|.*\|\s*$", re.MULTILINE)
_ABOUT = re.compile(
    r"(?<!with )\b(?:an?|the|another|one more|your|this|that) (?:\w+ )?(?P<what>\w+) (?:about|on|regarding|concerning) "
)
_TABLED = re.compile(r"\s*\|.*\|")
_TARGET = re.compile(
    r"^\s*(?:for|through|across|in|on|the|our|your|all|this|these|using|via|and found|and there)\b|[`\"“«]",
    re.IGNORECASE,
)
_RECIPIENT = re.compile(r"\bto (?:[A-Z]\w+|the |your |our |them|him|her|all|\S+@)")
_ALONE = frozenset(
    [
        "committed",
        "pushed",
        "merged",
        "restarted",
        "deployed",
        "installed",
        "compiled",
        "booked",
        "reserved",
        "refunded",
        "purchased",
    ]
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_TELLING_ALONE = frozenset({
    "search", "searching", "look up", "looking up", "google", "googling", "query", "send", "sending", "email", "emailing",
    "e-mail", "book", "booking", "reserve", "reserving", "delete", "deleting", "cancel", "canceling", "cancelling",
    "refund", "refunding", "schedule", "scheduling", "notify", "notifying", "escalate", "escalating",
    *(word for table in SOON for word in table),
})  # fmt: skip
"""Verbs that announce an action outside whatever they are said of."""
_LOOKS = frozenset({
    "read", "open", "view", "inspect", "examine", "check", "list", "fetch", "retrieve", "download", "load", "scan",
    "grep", "search", "query", "look at", "look into", "pull up", "go through", "see", "take a look at",
    "have a look at", "investigate", "look up", "look for", "find", "locate", "reading", "opening", "checking",
    "fetching", "scanning", "listing", "searching", "inspecting", "looking at", "looking into",
})  # fmt: skip
"""Verbs by which something is looked at where it is."""
_LOOKED_AT: frozenset[Topic] = frozenset({"file", "knowledge", "web", "data", "run"})
_THING = re.compile(
    r"\s*(?:at |into |for |through |up )?(?:the|its|our|your|that|those|these|all|both|each|how|where)\b"
)
_THOUGHTS = re.compile(
    r"\b(?:math|maths|calculations?|arithmetic|logic|reasoning|steps?|numbers?|angles?|points?|possibilit\w+|facts?|"
    r"cases?|assumptions?|details?|alternatives?|way|ways|best|different|difference|understanding|meaning|sum|equation|"
    r"result|answer|problem|puzzle|riddle|words?|big picture|pattern|you|we|this means)\b",
    re.IGNORECASE,
)
_FETCHES = frozenset(
    {"fetch", "fetching", "retrieve", "retrieving", "download", "downloading", "load", "loading", "open", "opening"}
)
_FETCHED = re.compile(
    r"\s*(?:the|that|this|your|both) (?:[\w-]+ )?(?:pages?|sites?|articles?|posts?|documents?)\b", re.IGNORECASE
)
_NUMBERED = re.compile(
    r"\s*(?:the )?(?:doc(?:ument)?|page|record|article|ticket|order|issue|invoice|customer|file) "
    r"(?:no\. ?|number )?#?\d+\b",
    re.IGNORECASE,
)
_MENDS = frozenset(
    {"fix", "fixing", "patch", "patching", "correct", "correcting", "edit", "editing", "update", "updating"}
)
_MENDED_NOW = re.compile(
    r"\s*(?:it|this|that|them|both|the (?:bug|problem|issue|typo|error)) (?:right )?(?:now|right away|first)\b",
    re.IGNORECASE,
)
_NEEDS_NAME = frozenset(["used", "called", "invoked", "use", "call", "invoke", "using", "calling", "invoking"])
_CODE = re.compile(r"`[^`\n]+`")
_OUTER: frozenset[Topic] = frozenset({"calendar", "order", "travel", "ticket", "data", "mail"})


def reach(claim: Claim, prose: Prose, able: Ability) -> Reach:
    """How surely only a tool, `able`, could have done what is claimed."""
    if claim.form in ("outcome", "missed", "state") or names(able.tool, claim.object):
        return Reach.SURE
    if of_a_text(claim.object, able.tool) or ("send" not in claim.kinds and _TABLED.match(prose.text, claim.end)):
        return Reach.NO
    shared = words_of(claim.object) & words_of(able.tool.name.replace("_", " ").replace("-", " ")) & able.words
    if shared and not shared <= _TEXTUAL and not _GIVEN.search(claim.object):
        return Reach.SURE
    found = _GIVEN.search(claim.object)
    kinds = claim.kinds
    if shows(claim, prose):
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
    # A word of the tool's own name is worth something even where it may mean a text: create_report, submit_request.
    return Reach.MAYBE if own is Reach.NO and shared and not prose.fenced and prose.words < 400 else own


def shows(claim: Claim, prose: Prose) -> bool:
    """Return True if what was done stands in the reply: "put aside in the plan below", "I've merged them: [1, 2]"."""
    if "send" in claim.kinds:
        return False
    if _TABLED.match(prose.text, claim.end):
        return True
    if _SHOWN.search(claim.object) and "\n" in prose.text[claim.end :].rstrip():
        return not has_place(claim.object)
    at = prose.text.find(claim.object, claim.start) + len(claim.object)
    goes_on = prose.text[at : at + 1] == ":" and prose.text[at + 1 :].strip() != ""
    return claim.verb in _RESHAPES and goes_on and _PRONOUN.match(claim.object) is not None


def has_place(text: str) -> bool:
    """Return True if a text names a path or an address."""
    return PATH.search(text) is not None or URL.search(text) is not None


def heads_text(text: str) -> bool:
    """Return True if the first noun that is known names a piece of text."""
    for word in _WORD.findall(_CODE.sub(" ", text).lower()):
        singular = word[:-1] if word.endswith("s") else word
        if word in _TEXTUAL or singular in _TEXTUAL:
            return True
        if word in TOPIC_OF or singular in TOPIC_OF:
            return False
    return any(mark in text for mark in _TEXTUAL_CJK)


def of_a_text(text: str, tool: Tool) -> bool:
    """Return True if a word of a tool's name only tells which piece of a text is meant: its background paragraph."""
    own = set(name_words(tool.name))
    words = _WORD.findall(text.lower())
    about = _ABOUT.search(text.lower())
    if about is not None and about["what"] in _TEXTUAL and about["what"] not in own:
        return True
    return any(word in own and after in _TEXTUAL and after not in own for word, after in pairwise(words))


def _search(claim: Claim) -> Reach:
    if topics_in(claim.object, claim.verb) or has_place(claim.object):
        return Reach.SURE
    if claim.verb in ("searched", "looked up", "searching", "looking up", "googled", "googling") and _TARGET.search(
        claim.object
    ):
        return Reach.SURE
    return Reach.MAYBE if claim.form == "terse" else Reach.NO


def _read(claim: Claim) -> Reach:
    if has_place(claim.object):
        return Reach.SURE
    if claim.verb in _FETCHES and _NUMBERED.match(claim.object):
        return Reach.SURE
    if claim.verb in _FETCHES and _FETCHED.match(claim.object):
        return Reach.MAYBE
    if claim.verb.startswith("list") and not words_of(claim.object) & {"directory", "folder", "content", "bucket"}:
        return Reach.NO
    if heads_text(claim.object) and not topics_in(claim.object) & {"mail", "file"}:
        return Reach.NO
    topics = topics_in(claim.object)
    return Reach.SURE if topics else Reach.NO


def _write(claim: Claim, prose: Prose) -> Reach:
    product = prose.fenced or _TABLE.search(prose.text) is not None
    if has_place(claim.object):
        if product and not _SAVES.search(f"{claim.verb} {claim.object}") and not claim.kinds & {"delete"}:
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
    return Reach.MAYBE if _CODE.search(claim.object) or claim.kinds == {"delete"} else Reach.NO


def _send(claim: Claim, *, given: bool) -> Reach:
    topics = topics_in(claim.object, claim.verb)
    if topics & {"mail", "ticket", "order", "calendar"}:
        return Reach.MAYBE if given else Reach.SURE
    if given:
        return Reach.NO
    return Reach.SURE if topics or _RECIPIENT.search(claim.object) or has_place(claim.object) else Reach.MAYBE


def _run(claim: Claim) -> Reach:
    if claim.verb in _NEEDS_NAME:
        return Reach.MAYBE  # as much as the tool that is named is worth
    if claim.verb in _ALONE or _CODE.search(claim.object) or has_place(claim.object):
        return Reach.SURE
    return Reach.SURE if topics_in(claim.object) & {"run", "file", "data"} else Reach.NO


def _book(claim: Claim) -> Reach:
    if topics_in(claim.object, claim.verb) & _OUTER or claim.verb in _ALONE:
        return Reach.SURE
    return Reach.NO


def is_given(text: str) -> bool:
    """Return True if a text speaks of what the user has handed over: a message, a snippet, what stands above."""
    return _GIVEN.search(text) is not None


def is_thought(text: str) -> bool:
    """Return True if a text speaks of what is thought over, not of what is looked at."""
    return _THOUGHTS.search(text) is not None


def acts_outside(found: Announcement, prose: Prose, able: Ability) -> bool:
    """Return True if an announced action is one for a tool: "let me read the file", not "let me write the introduction"."""
    if names(able.tool, found.object) or found.verb in _NEEDS_NAME:
        return True
    given = _GIVEN.search(found.object)
    if given is not None and given[0].lower() == "following" and prose.text.rstrip(" *\n").endswith((":", "：")):
        given = _GIVEN.search(found.object, given.end())  # and nothing follows
    if given is not None and not given[0].endswith(("the code", "this code")) and not PATH.search(found.object):
        return False
    if has_place(found.object) or _CODE.search(found.object):
        return True
    if found.verb in _FETCHES and able.topics & {"web", "file", "knowledge"} and _FETCHED.match(found.object):
        return True
    if mends(found, able):
        return not prose.fenced and prose.words < 400
    topics: frozenset[str] = topics_in(found.object)
    if found.kinds & {"write", "create"} and not found.kinds & {"book", "send"}:
        agentic = bool(found.kinds & {"write"}) and not prose.fenced and _then_acts(found.object)
        return agentic or (bool(topics) and not heads_text(found.object))
    topics |= words_of(found.object) & able.words
    if found.kinds & {"search", "send", "book", "delete"}:
        return found.verb in _TELLING_ALONE or bool(topics) or _RECIPIENT.search(found.object) is not None
    if "read" in found.kinds and heads_text(found.object) and not topics & {"mail", "file"}:
        return False
    return bool(topics & able.topics or words_of(found.object) & able.words)


def acts_loosely(found: Announcement, able: Ability) -> bool:
    """Return True if an action that is about to happen can only be one for a tool, though no noun of it is known.

    "Let me read the stylesheet first:" ends a reply; nobody reads in a reply, so a tool that reads was meant.
    """
    if not found.at_once or found.verb not in _LOOKS or not found.kinds & able.kinds & {"search", "read"}:
        return False
    if not (able.shell or able.topics & _LOOKED_AT) or not _THING.match(found.object):
        return False
    return not (_GIVEN.search(found.object) or heads_text(found.object) or _THOUGHTS.search(found.object))


def mends(found: Announcement, able: Ability) -> bool:
    """Return True if a tool that edits files is what "I'll fix it now" can only mean."""
    edits = bool(able.topics & {"file"}) and "write" in able.kinds and not able.shell
    return edits and found.verb in _MENDS and _MENDED_NOW.match(found.object) is not None


def _then_acts(text: str) -> bool:
    """Return True if what follows in the sentence is the work of tools: "write the module and then run the tests"."""
    return re.search(r"\b(?:module|tests?|file|component|script|class|fix|change|patch)\b", text) is not None
