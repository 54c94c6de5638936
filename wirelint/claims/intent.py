"""What a user's words are after: an action, an account of what was done, or a text to be composed."""

from __future__ import annotations

import re

from wirelint.claims.actions import ASKED, BASE, Kind, alternatives

_BASES = alternatives(BASE)
_ASKS = re.compile(
    rf"(?:^|[.!?;,:\n]|\b(?:please|pls|can you|could you|would you|will you|and|then|to|now|just|also|kindly|"
    rf"let['’]s|sure|me)\b)[ ]*(?P<verb>{_BASES}|find|text|mail|remind|tell(?! me))\b",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"\b(?:how (?:do|can|to|would|should|does|did)|why (?:do|does|did|is|was)|what (?:does|happens|is the))\b[^.?!\n]*",
    re.IGNORECASE,
)
_EXTRA_ASKS: dict[str, frozenset[Kind]] = {
    "find": frozenset({"search"}),
    "mail": frozenset({"send"}),
    "tell": frozenset({"send"}),
    "remind": frozenset({"create", "book", "write"}),
}
_ASSENT = re.compile(
    r"\W*(?:yes|yep|yeah|sure|ok(?:ay)?|please do|go ahead|do it|correct|right|confirmed|that works|sounds good|ja|gern\w*|"
    r"oui|s[ií]|sim|claro|好的?|可以|はい)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    rf"\b(?:shall I|should I|may I|can I|do you want me to|would you like me to|want me to) (?:now |go ahead and )?"
    rf"(?P<verb>{_BASES})\b",
    re.IGNORECASE,
)
_LONGEST_ASSENT = 60
_FOREIGN_ASKS = tuple(re.compile(rf"\b(?:{alternatives(table)})\b", re.IGNORECASE) for table in ASKED[:-2])
_LOOKS_BACK = re.compile(
    r"\b(?:what|which|why|how|when|where|who)\b[^?.]{0,40}\b(?:did|have|had|was|were) (?:you|that|it|this)\b|"
    r"^\s*(?:did|have|were|are) you\b|\bhave you\b|"
    r"\b(?:recap|remind me (?:what|which|how)|so far|summari[sz]e (?:what|our|the (?:conversation|session|chat)|"
    r"everything)|what happened|what['’]s the status|"
    r"are you sure|is it done|where(?:['’]s| is) (?:that|it) from|what was|how come|you (?:said|told|"
    r"found|did))\b|"
    r"\bwas hast du\b|\bhast du\b|\bqu['’]as-tu\b|\bas-tu\b|\bavez-vous\b|\bqué (?:hiciste|has)\b|做了什么|"
    r"你(?:刚才|之前)",
    re.IGNORECASE,
)
_VOICED = (
    r"(?:haikus?|poems?|sonnet|limerick|ballad|lyrics|song|verses?|stor(?:y|ies)|tale|essay|monologue|dialog(?:ue)?s?|"
    r"novel|scene|diary(?: entry)?|journal entry|log ?book entry|joke|speech|toast|bio|testimonial|"
    r"stand-?up(?: (?:text|notes?|update))?|"
    r"out[- ]of[- ]office(?: \w+)?|auto-?(?:reply|replies|responder|response)|canned (?:reply|response|answer)|macros?|"
    r"(?:reply|e?-?mail|message|text|answer) templates?|templates? (?:for|text)|cover letter|bug reports?|release notes?|"
    r"change ?log(?: entry)?|commit messages?|star (?:answer|story|method|example)|interview answer|"
    r"(?:answer|story|example)[^.!?\n]{0,20}\bstar\b|blog post|tweet|newsletter|press release|apology|invitation|"
    r"memo|status update|post-?mortem|incident report|cover story|caption|slogan|headline|"
    r"gedicht|geschichte|abwesenheitsnotiz|poème|histoire|poema|cuento|poesia|俳句|诗)"
)
"""Kinds of texts in which "I" is whoever the text speaks for: to name one is to ask for it."""
_GENRE = _VOICED.replace("|scene|", "|scene (?:about|where|between|with|set|in which)|")
"""Of a bare phrase: "the night scene" is one of a home as well."""
_COMPOSES = re.compile(
    r"\b(?:write|draft|compose|rephrase|reword|translate|rewrite|proofread|generate|give me|tell|make|suggest|phrase|"
    r"formulate|polish|shorten|continue|come up with|prepare|"
    rf"summari[sz]e)\b[^.!?\n]{{0,60}}\b(?:{_VOICED}|"
    r"excuses?|phrases?|reasons?|wordings?|letter|post|script|article|message|e?-?mail|reply|response|note|notes|example|sentences?|lines?|quote|"
    r"transcript|conversation|report|paragraph|german|french|spanish|english|chinese|review|"
    r"announcement)\b|"
    r"\b(?:write|retell|tell|summari[sz]e|phrase|say)\b[^.!?\n]{0,60}\b(?:as (?:an?|if|though)|like an?|in the (?:voice|"
    r"style|role|person) of|from the (?:perspective|point of view|view) of)\b|"
    r"\bwrite (?:to|back|(?:it |this |that )?in my name)\b|"
    r"\b(?:rephrase|paraphrase|reword|rewrite|proofread|what would you (?:say|write|answer|reply)|"
    r"ways to (?:say|put|phrase|tell)|übersetze\w*|traduis\w*|traduce|translate|translation|traduza|"
    r"traduci|formuliere|reformule)\b|翻译|翻訳|訳して|改写|改得|润色|换个说法|言い換え",
    re.IGNORECASE,
)
_NAMES_GENRE = re.compile(
    rf"^\W*(?:(?!(?:{_BASES}|find|did|do|is|was|has|what|where|which|who|how|why|when|my last|the last)\b)[\w'’-]+ "
    rf"){{0,4}}?(?:{_GENRE}|"
    r"(?:short|quick|polite|friendly|formal|thank-you|sorry|follow-up|welcome|farewell|draft) (?:e?-?mail|reply|message|"
    r"letter|note|answer|response))\b",
    re.IGNORECASE,
)
"""A bare noun phrase: "short poem on lamps", "out-of-office reply"."""
_LONGEST_PHRASE = 160
_BESIDES = re.compile(
    rf"(?:\b(?:and|then|also|afterwards)|[,;.!&\n]) *(?:(?:and|then|also|please|just|now|directly|finally|can you|"
    rf"could you) )*(?P<verb>{_BASES}|mail|text)\b",
    re.IGNORECASE,
)
_PAYLOAD = re.compile(r"[:：]\s|[\"“„«「]")
_PLAYS = re.compile(
    r"\brole-?play\w*|\bpretend\b|\bin character\b|\bimpersonate\b|\bmock interview\b|\bfiction(?:al)?\b|"
    r"\bplay(?:ing)? (?:the (?:role|part)\b|(?:the |an? |my )(?:[\w-]+ ){0,2}?(?:\w+(?:er|or|ist|ee|ant|man|ian)|"
    r"candidate|student|patient|character|friend|boss|client|npc)\b)|"
    r"\b(?:act|answer|speak|talk|respond|reply|write) (?:as if you|like you|as though you)\b|"
    r"\b(?:imagine|suppose|assume|say) (?:that )?you(?:['’]re| are| were)\b|\byou(?:['’]re| are) (?:now )?(?:playing|"
    r"a character)\b|"
    r"\A\W*you(?:['’]re| are) an? (?![^.!?\n]*\b(?:assistant|agent|bot|ai|model|system|helper|expert|tool)\b)|"
    r"\b(?:about|describe|of) an? (?:time|situation|occasion|moment|day)(?: \w+)? (?:when |where |in which |"
    r"that )?you\b|"
    r"\b(?:spiel\w*|mim\w*|gib|sei) (?:mal |jetzt )?(?:einen?|die rolle|den|eine) \w+|\brollenspiel\b|\bstell "
    r"dir vor\b|"
    r"\btu so,? als\b|\bjoue\w* (?:le r[ôo]le|un|une|le|la) \w+|\bfais (?:comme si|semblant)\b|\bimagine que tu\b|"
    r"\b(?:haz|actúa|finge|interpreta|imagina)\w* (?:de|como|que|el papel)\b|\bjuego de rol\b|"
    r"\b(?:finja|aja como|faça o papel|imagine que você|fai finta|recita|interpreta il ruolo|immagina di)\b|"
    r"扮演|假装|角色扮演|假设你|になりきって|役を演じ|ロールプレイ|のふりを",
    re.IGNORECASE,
)


def asked(text: str) -> frozenset[Kind]:
    """The kinds of action that a user's words ask for."""
    kinds: set[Kind] = set()
    text = _HOW_TO.sub(" ", text)
    for match in _ASKS.finditer(text):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    for table, pattern in zip(ASKED, _FOREIGN_ASKS, strict=False):
        for found in pattern.finditer(text):
            kinds |= table.get(found[0].lower(), frozenset())
    for table in ASKED[-2:]:
        kinds.update(kind for word, found_kinds in table.items() if word in text for kind in found_kinds)
    return frozenset(kinds)


def assented(words: str, before: str) -> frozenset[Kind]:
    """The kinds of action that a reply has offered and the user has agreed to: "Shall I refund it?" "Yes please"."""
    if len(words) > _LONGEST_ASSENT or not _ASSENT.match(words):
        return frozenset()
    return frozenset(kind for match in _OFFER.finditer(before[-600:]) for kind in BASE.get(match["verb"].lower(), ()))


def looks_back(text: str) -> bool:
    """Whether a user asks about what was done before, not for something to be done."""
    return _LOOKS_BACK.search(text) is not None


def composes(text: str) -> bool:
    """Whether a user asks for a text, in which "I" is whoever the text speaks for."""
    if _COMPOSES.search(text) is not None:
        return True
    return len(text) <= _LONGEST_PHRASE and "?" not in text and _NAMES_GENRE.match(text) is not None


def besides(text: str) -> frozenset[Kind]:
    """The kinds of action that are ordered beside a text to be composed: "draft a note and send it to Ann"."""
    payload = _PAYLOAD.search(text)
    order = text[: payload.start()] if payload else text
    kinds: set[Kind] = set()
    for match in _BESIDES.finditer(order):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    return frozenset(kinds)


def plays(text: str) -> bool:
    """Whether a text asks for a part to be played: what its "I" has done is fiction, or somebody's past."""
    return _PLAYS.search(text) is not None
