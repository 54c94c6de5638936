"""Control tokens of chat templates, and their occurrences in text that should be free of them.

Theory of operation. A server removes these tokens from a reply. A token that is left shows an unconfigured stop token, the
template of another model, or a model that continues as the next speaker. There are three kinds. Only templates write
*sure* tokens. People write *edge* tokens too (`<s>` strikes text through in HTML, manuals mention `[INST]`): they count
only at the start or end of a text, or in a row with others. *Unknown* tokens have the shape `<|name|>`: the words that all
templates use decide.

Text is searched with its bars and underscores normalised one by one (`｜` → `|`, `▁` → `_`), so offsets stay true.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from wirelint import lexicon
from wirelint.dialects.openers import any_of, cut_at, is_cut
from wirelint.text.families import family
from wirelint.text.prose import Cues

_PHRASES = lexicon.Phrases("control_tokens")

_TABLES = lexicon.load("tokens")
_TEMPLATES: list[dict[str, list[str]]] = _TABLES["templates"]
"""The tokens of the model families' chat templates. `ends` close a turn, `opens` begin one or its header."""
_KINDS = ("opens", "ends", "others")
OPENS, ENDS, _OTHERS = (frozenset(token for one in _TEMPLATES for token in one.get(kind, ())) for kind in _KINDS)
SURE = OPENS | ENDS | _OTHERS
# Tokens that people write too: they count only at the edges, or in a row.
EDGE_OPENS, EDGE_ENDS, EDGE_OTHERS = (frozenset[str](_TABLES[f"edge_{kind}"]) for kind in _KINDS)
EDGES = EDGE_OPENS | EDGE_ENDS | EDGE_OTHERS
Strength = Literal["sure", "edge", "unknown"]
# Tokens that frame thinking: `thinking` reports them.
_THINKING = frozenset(_PHRASES.words("thinking"))
_BARS = str.maketrans("｜▁", "|_")
_UNBARRED = [token for token in SURE | EDGES if not re.fullmatch(r"<\|[^|]+\|>", token)]
TOKEN = re.compile(
    r"<\|{1,2} ?[^|<>\s]{1,40} ?\|{1,2}>|</?\|{1,2} ?(?:DSML|GCML) ?\|{1,2}|</?ifm\|[a-z_]{1,24}>"
    r"|<SPECIAL_\d{1,3}>|<mask:\d{1,3}>|</?co: ?\d{1,3}(?:[,:\[\]\d ]{0,40}\d\]?)?>|" + any_of(_UNBARRED)
)
TOKEN_FIRSTS = "<[]"
"""The characters that tokens begin with."""
may_hold_token = Cues("<", "｜", "[", "]~", "]<]").occur_in
# Kimi K3's tags are two tokens around a word: `<|close|>response<|sep|>`. Servers that lose the second one fuse the words.
_XTML = frozenset(_PHRASES.words("xtml"))
_XTML_WORD = re.compile(r"\s?(?P<role>response|tools|message|call|argument|think)(?:tools|message)?\b")
_HEADERS = frozenset(_PHRASES.words("headers"))
_OTHER_SPEAKERS = frozenset({"user", "system", "developer", "tool", "ipython", "function"})
_OTHERS_TURNS = frozenset(_PHRASES.words("others_turns"))
_NOT_SPEECH = re.compile(r"tool|TOOL|ACTION|python|DSML|GCML|function|recipient|constrain|ARGS|CALL_ID|^</?ifm")
_NO_ANSWER = frozenset({"analysis", "commentary", "tools", "call", "argument", "think"})
_NAME_MARK = re.compile(r"<\|?|\|>|\[(?:/?TOOL_CALLS|ARGS|CALL_ID)\]")
_GEMMA_RESIDUE = re.compile(r"model\n\s*(?=\S)")
_SPEAKER = "ASSISTANT:"
_LONGEST_BEGINNING = 200
_LONGEST_CUT = 48
MOST_TOKENS = 2048
"""Tokens of one text, beyond which it is a vocabulary or a loop, and none counts."""
_CUT = re.compile(r"<\|[^|<>\s]{2,40}\|?\Z")
_TOGETHER = tuple(frozenset(group.split()) for group in _PHRASES.words("together"))
_PAIRS = {"<s>": "</s>", "<bos>": "<eos>", "[BOS]": "[EOS]"}
PARTNERS = _PAIRS | {closer: opener for opener, closer in _PAIRS.items()}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A token in a text. `token` is its normalised spelling, `end` lies after the `role` that a header names."""

    token: str
    start: int
    end: int
    strength: Strength
    role: str = ""

    @property
    def ends_turn(self) -> bool:
        return self.token in ENDS or self.token in EDGE_ENDS

    @property
    def other_speaker(self) -> bool:
        """Return True if the turn of another speaker than the assistant begins here."""
        return self.role in _OTHER_SPEAKERS or (self.token in _OTHERS_TURNS and self.role != "assistant")

    @property
    def announces(self) -> bool:
        """Return True if the token begins a tool call, a result or reasoning, not the answer."""
        return self.role in _NO_ANSWER or _NOT_SPEECH.search(self.token) is not None


@dataclass(frozen=True, slots=True)
class Framing:
    """The tokens that frame a text, in order.

    `leading` is the end of the framing at the start of the text, `trailing` the start of the framing at its end.
    """

    tokens: tuple[Occurrence, ...]
    leading: int
    trailing: int

    @property
    def at_edges(self) -> bool:
        return all(token.end <= self.leading or token.start >= self.trailing for token in self.tokens)

    @property
    def overrun(self) -> Occurrence | None:
        """Return the first token that ends the turn before the text ends, or that begins the turn of another speaker."""
        for token in self.tokens:
            inside = self.leading < token.end and token.start < self.trailing
            if token.other_speaker or (token.ends_turn and inside):
                return token
        return None


def find(text: str) -> tuple[Occurrence, ...]:
    """Return all control tokens of a text, known and unknown, without those of reasoning."""
    if not may_hold_token(text):
        return ()
    shadow = _shadow(text)
    found = [_occurrence(shadow, match) for match in itertools.islice(TOKEN.finditer(shadow), MOST_TOKENS + 1)]
    if len(found) > MOST_TOKENS:
        return ()
    found = [one for one in found if one.token not in _THINKING]
    if cut := _cut_token(shadow):
        found.append(cut)
    return tuple(found)


def are_too_many(text: str) -> bool:
    """Return True if a text has more than `MOST_TOKENS` tokens; they are not checked."""
    firsts = sum(map(text.count, (*TOKEN_FIRSTS, "｜"))) if len(text) > MOST_TOKENS else 0
    return firsts > MOST_TOKENS and any(
        True for _ in itertools.islice(TOKEN.finditer(_shadow(text)), MOST_TOKENS, None)
    )


def frame(text: str, tokens: tuple[Occurrence, ...]) -> Framing | None:
    """Return the framing among `tokens` (from `find`, in order); None if no token counts."""
    leading, trailing = _edges(text, tokens)
    row = _Row(text, tokens, leading, trailing)
    counted = [token for position, token in enumerate(tokens) if row.counts(position)]
    if not counted:
        return None
    leading, trailing = _edges(text, tuple(counted))
    return Framing(tuple(counted), leading, trailing)


def in_name(name: str) -> int | None:
    """Return the offset of markup in the name of a tool; None without markup."""
    mark = _NAME_MARK.search(_shadow(name))
    return mark.start() if mark else None


def residue(text: str, model: str) -> int:
    """Return the length of a role's or channel's name at the start of a text, left without the tokens around it."""
    start = len(text) - len(text.lstrip())
    match = _PHRASES["residue"].match(text, start) or (family(model) == "gemma" and _GEMMA_RESIDUE.match(text, start))
    return match.end() if match else 0


def is_label(text: str) -> bool:
    """Return True if a text begins with the label of a speaker, whole or cut. Plays have labels too."""
    begun = text.lstrip()
    return begun.startswith(_SPEAKER) or bool(begun and _SPEAKER.startswith(begun))


def may_become_residue(text: str, model: str) -> bool:
    """Return True if a text that is still arriving may become the name of a role or channel."""
    begun = text.lstrip()
    if len(begun) > _LONGEST_BEGINNING or residue(text, model):
        return False
    if not begun or _SPEAKER.startswith(begun.rstrip()) or is_cut(_PHRASES["residue"], begun):
        return True
    return family(model) == "gemma" and is_cut(_GEMMA_RESIDUE, begun)


def cut_token_length(text: str) -> int:
    """Return the length of the cut token at the end of a text; 0 without one."""
    shadow = _shadow(text)
    place = cut_at(TOKEN, shadow, max(len(shadow) - _LONGEST_CUT, 0))
    return len(shadow) - place if place is not None else 0


def native(token: str, model: str) -> bool | None:
    """Return True if a token belongs to the template of the model's family; None if either is unknown."""
    known = family(model)
    having = (one for one in _TEMPLATES if any(token in one.get(kind, ()) for kind in _KINDS))
    users = {name for template in having for name in template["families"]}
    return known in users if known is not None and users else None


def _shadow(text: str) -> str:
    return text if text.isascii() else text.translate(_BARS)


def _occurrence(shadow: str, match: re.Match[str]) -> Occurrence:
    token, strength = _known(match[0])
    end, role = match.end(), ""
    word = _XTML_WORD if token in _XTML else _PHRASES["header_word"] if token in _HEADERS else None
    if word is not None and (header := word.match(shadow, end)):
        end, role = header.end(), header["role"]
    return Occurrence(token, match.start(), end, strength, role)


@lru_cache(maxsize=1024)
def _known(written: str) -> tuple[str, Strength]:
    """Return the normalised spelling of a token, and its strength. A looping text repeats few tokens thousands of times."""
    bars = _BARRED.fullmatch(written)
    token = f"<|{bars[1]}|>" if bars is not None else written
    # Blanks inside are a spelling of known tokens only; `<| x |>` is an operator of more than one language.
    token = written if " " in written and token not in SURE else token
    if token in EDGES:
        return token, "edge"
    if token in SURE or not token.startswith("<|") or token.startswith(("<|DSML", "<|GCML")):
        return token, "sure"
    return token, "sure" if " " not in token and _PHRASES["template_words"].search(token[2:-2]) else "unknown"


_BARRED = re.compile(r"<\|{1,2} ?([^|<>\s]+) ?\|{1,2}>")


def _cut_token(shadow: str) -> Occurrence | None:
    """Return a known token that the end of the text cuts off. Only one can be cut: of `<|im<|im_` none counts."""
    cut = _search_cut(shadow)
    if cut is None or _search_cut(shadow[: cut.start()]) is not None:
        return None
    return Occurrence(cut[0], cut.start(), cut.end(), "unknown")


def _search_cut(shadow: str) -> re.Match[str] | None:
    end = len(shadow.rstrip())
    cut = _CUT.search(shadow, max(end - 44, 0), end)
    known = cut is not None and any(token.startswith(cut[0]) and token != cut[0] for token in SURE)
    return cut if known else None


def end_of_lead(text: str, tokens: tuple[Occurrence, ...]) -> int:
    """Return the end of the tokens at the beginning of a text."""
    end = 0
    for token in tokens:
        if text[end : token.start].strip():
            break
        end = token.end
    return end


def _edges(text: str, tokens: tuple[Occurrence, ...]) -> tuple[int, int]:
    trailing = len(text)
    for token in reversed(tokens):
        if text[token.end : trailing].strip():
            break
        trailing = token.start
    return end_of_lead(text, tokens), trailing


class _Row:
    """The tokens of one text; whether a token counts depends on the others."""

    def __init__(self, text: str, tokens: tuple[Occurrence, ...], leading: int, trailing: int) -> None:
        self.text, self.tokens, self.leading, self.trailing = text, tokens, leading, trailing
        self.last = {token.token: position for position, token in enumerate(tokens)}
        self.first = {token.token: position for position, token in reversed(list(enumerate(tokens)))}

    def counts(self, position: int) -> bool:
        token = self.tokens[position]
        leading, trailing = token.end <= self.leading, token.start >= self.trailing
        spaced = self.text[token.end : token.end + 1].isspace()
        if token.strength == "sure":
            return True
        if token.strength == "unknown":  # with a blank between, it may be a placeholder of a letter or a template
            return (leading and not spaced) or (trailing and not _apart(self.text, token))
        name, partner = token.token, PARTNERS.get(token.token, "")
        if name == "[INST]":
            begins = self.last.get("[/INST]", -1) > position
        else:  # airports and cameras have names in brackets; in templates the first word follows directly
            named = name.startswith("[") and spaced
            begins = name in EDGE_OPENS and not named and self.last.get(partner, -1) < position
        ends = name in EDGE_ENDS and self.first.get(partner, position) >= position
        ends = ends and not (_apart(self.text, token) and self.text[token.start - 1] == " ")
        # A turn ends before one began, and another begins: the text continues as both speakers. Explanations of the
        # template write `[INST]` first.
        opens = self.first.get("[INST]", -1) if name in ("[INST]", "[/INST]") else -1
        inside_out = self.first.get("[/INST]", opens) < opens
        return self._in_a_row(position) or inside_out or (leading and begins) or (trailing and ends)

    def _in_a_row(self, position: int) -> bool:
        """Return True if the token is next to another one that only a template puts there."""
        token = self.tokens[position]
        for other in self.tokens[max(position - 1, 0) : position + 2]:
            between = self.text[min(token.end, other.end) : max(token.start, other.start)]
            if other.token == token.token or between.strip() or {token.token, other.token} == {"<s>", "</s>"}:
                continue
            if other.strength == "sure" or fits(token.token, other.token):
                return True
        return False


def _apart(text: str, token: Occurrence) -> bool:
    """Return True if a blank separates the token from words that do not end a sentence."""
    before = text[max(token.start - 64, 0) : token.start]
    return before[-1:].isspace() and before.rstrip()[-1:] not in tuple(".!?)\"'”…:;}]>|")


def fits(one: str, other: str) -> bool:
    """Return True for edge tokens of one template: `<s>[INST]`, `[/INST]</s>`, `[gMASK]<sop>`, `[INST] <<SYS>>`."""
    return any(one in group and other in group for group in _TOGETHER)
