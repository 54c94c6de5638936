"""Reasoning in visible text: its tags, and the residue of lost tags.

Theory of operation. Leaked reasoning has one of four kinds of evidence:

- `opened`: the text begins with the opening tag (or a tool block ends right before it);
- `closed`: a closing tag without an opening one, which was in the prompt: all text before it is reasoning;
- `inner`: a pair of tags, the opening one on a line of its own in the middle of the text;
- `residue`: the tags are missing, the channel's name or the sentences around the reasoning are left.

A tag in the middle of a sentence is no evidence. Models are trained on *native* tags; models without a reasoning channel
write *prompted* tags (`<thinking>`, `<scratchpad>`) too, as prose, and the caller decides about them by the model. Sources:
chat templates and reasoning parsers that the vendors publish.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wirelint import lexicon
from wirelint.dialects.openers import is_cut
from wirelint.text import control_tokens
from wirelint.text.families import family
from wirelint.text.prose import Cues
from wirelint.text.quoting import is_mention

# The delimiters of reasoning, from `lexicon/reasoning_tags.toml`. To add a notation, add its table there.

Place = Literal["edge", "inner", "orphan"]
"""`edge`: at the start of the text, or after a tool block. `inner`: a pair that opens on a line of its own. `orphan`: the
closer alone, whose opener was in the prompt."""


_TABLES = lexicon.load("reasoning_tags")
TAG_TABLES: list[dict[str, Any]] = _TABLES["tags"]
SENTENCE_HEADS: tuple[str, ...] = tuple(_TABLES["sentence_heads"])

FINAL_RESPONSE = re.compile(r"^\[BEGIN FINAL RESPONSE\]", re.MULTILINE)

CUT_TOKEN = re.compile(r"<(?:[|｜][^|｜<>\s]{0,40}[|｜]?)?\Z")
PLACE = re.compile(r"(?:\A|[\n>|\]])[ \t\r\n]*\Z")
"""Text before a tag in the middle: the start of its line, or the end of other markup."""
LONGEST_TAG = 128
"""Upper bound for the characters of a delimiter of reasoning."""
_SPACE = re.compile(r"\s+")
_PHRASES = lexicon.Phrases("thinking")

_GLUED_FINAL = "a" + _PHRASES.text("behind")
CUT_TAG = re.compile(rf"(?:(?:[<\[◁&]|to=)[^<>\[\]\n]{{0,64}}|{_GLUED_FINAL}[a-z\n]{{0,16}})\Z")
_FIRSTS = r"[<\[◁&\\]|to=|assistant"
"""Beginnings of all delimiters."""
MAY_OPEN = re.compile(rf"[<\[◁&]|to=|{_GLUED_FINAL}(?=s|\Z)")


Evidence = Literal["opened", "closed", "inner", "residue"]


@dataclass(frozen=True, slots=True)
class Tag:
    """One notation. `native`: models are trained on it; other models write prompted tags too.

    `closer` also matches those of other tags that models mix up with this one; `lone` counts without an opener.
    `loose_opener` matches attributes too, which mark an element of a document. `word`: a text without it in any case
    holds neither tag; a search for it takes a tenth of the time of the expressions in a text of many brackets.
    """

    name: str
    opener: re.Pattern[str]
    closer: re.Pattern[str]
    lone: re.Pattern[str]
    native: bool
    places: frozenset[Place]
    loose_opener: re.Pattern[str]
    word: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A span of reasoning. `start` and `end` include the delimiters, `body` does not. `whole`: both ends are known."""

    tag: str
    evidence: Evidence
    start: int
    end: int
    body: tuple[int, int]
    whole: bool
    native: bool

    @property
    def leaks(self) -> bool:
        """Return True if it is a leak for every model: a native tag, or the closer of a prompted tag without its opener."""
        return self.native or (self.evidence == "closed" and self.tag in _UNPROMPTED)


def _tag(table: Mapping[str, Any]) -> Tag:
    """Compile a notation. Tags without expressions come in any case, native ones with the brackets of HTML escaped."""
    name, native = table["name"], table.get("native", True)
    plain = not {"opener", "closer"} & table.keys()
    flags = re.IGNORECASE if plain else re.NOFLAG
    bare = re.escape(name[1:-1])
    some = f"(?:{'|'.join([bare, *table.get('others', ())])})"
    before, after = ("(?:<|&lt;)", "(?:>|&gt;)") if native else ("<", ">")
    opener = table.get("opener", rf"{before}\s?{bare}\s?{after}").replace(r"\|", "[|｜]")
    closer = table.get("closer", rf"{before}\s?/\s?{some}\s?{after}").replace(r"\|", "[|｜]")
    lone = closer if "closer" in table else rf"{before}\s?/\s?{bare}\s?{after}"
    loose = opener if "opener" in table else rf"<\s?{some}(?:\s[^<>]{{0,200}})?>|&lt;{some}&gt;"
    begins, ends, alone, loosely = (lexicon.lazy_pattern(one, flags) for one in (opener, closer, lone, loose))
    places = frozenset(table.get("places", ("edge", "inner", "orphan")))
    word = name[1:-1] if native and plain else ""
    return Tag(name, begins, ends, alone, native, places, loosely, word)


def _any_tag(tags: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """Return a pattern that matches any of some delimiters, after a look-ahead for their first characters.

    Without the look-ahead all delimiters are tried at each character: 100,000 characters take 70 ms instead of 2.
    """
    found = [(one.flags & re.IGNORECASE, one) for one in tags]
    options = (f"(?{'i' if insensitive else ''}:{one.pattern})" for insensitive, one in found)
    return lexicon.lazy_pattern(f"(?={_FIRSTS})(?:{'|'.join(options)})")


def _spelt(pattern: re.Pattern[str]) -> re.Pattern[str]:
    source = pattern.pattern.replace("(?:<|&lt;)", r"(?:<|&lt;|\\u003c|\\u003C)").replace(r"\s?/", r"\s?\\?/")
    return lexicon.lazy_pattern(source.replace("(?:>|&gt;)", r"(?:>|&gt;|\\u003e|\\u003E)"), pattern.flags)


TAGS: tuple[Tag, ...] = tuple(map(_tag, TAG_TABLES))
_ANY_OPENER = _any_tag(tag.opener for tag in TAGS)
ANY_TAG = _any_tag(end for tag in TAGS for end in (tag.opener, tag.closer))
NATIVE = tuple(tag for tag in TAGS if tag.native)
NATIVE_OPENER = _any_tag(tag.opener for tag in NATIVE)
NATIVE_TAG = _any_tag(pattern for tag in NATIVE for pattern in (tag.opener, tag.closer))
SPELT_OPENER = _any_tag(_spelt(tag.opener) for tag in NATIVE)
SPELT_TAG = _any_tag(_spelt(pattern) for tag in NATIVE for pattern in (tag.opener, tag.closer))
"""Native tags in JSON text, in which servers escape brackets and slashes: `\\u003cthink\\u003e`, `<\\/think>`."""
_UNPROMPTED = ("<thinking>", "<antthinking>")
_ORPHANS = tuple(tag for tag in TAGS if "orphan" in tag.places)
_FINAL_ALONE = _PHRASES["alone"]
_GLUED = lexicon.lazy_pattern(_GLUED_FINAL + _FINAL_ALONE.pattern[1:])
LONE_CLOSER = _any_tag([*(tag.lone for tag in _ORPHANS), _FINAL_ALONE])
_INNER = tuple(tag for tag in TAGS if "inner" in tag.places)
may_hold_thinking = Cues(*_PHRASES.words("probes")).occur_in
_FEWEST_WORDS = 3
"""Least words of reasoning in a value without a pair of tags at its start."""
_CLOSING_MARKS = ("/", "|>", "unused17", "ctrl95")
_SENTENCE_END = tuple(".!?…:)]}\"'`”*>|")
_PROSE_END = tuple(".!?…。！？)\"'”’」")

_SENTENCES = tuple(
    (lexicon.lazy_pattern(begins, re.IGNORECASE), lexicon.lazy_pattern(ends, re.IGNORECASE | re.MULTILINE))
    for _, begins, ends in _TABLES["sentences"]
)
_SENTENCE_FAMILIES = frozenset(name for name, _, _ in _TABLES["sentences"])
# `analysis` before any other word counts only together with the end.
_ANALYSIS_LOOSE = re.compile(r"(?:assistant\s?)?analysis(?=[\"'“(*]?[^\W\d_a-z])")
_CHANNEL_HEADS = tuple(f"{who}{name}" for name in ("analysis", "commentary") for who in ("", "assistant", "assistant "))
_ANALYSIS_HEADS = 3
_LONGEST_VOICE = 16
CHANNEL_LINES = "analysis … final"
"""The names of channels on lines of their own, as the tag of a frame."""
# A channel's name on the first line, followed by whole sentences, unlike a list of words.
_THOUGHT_BEGUN = r"thought\n[^\n]{25}"
_THOUGHT = re.compile(r"thought\n(?=[^\n]{24})(?=\S+(?: \S+){3})")


def find(text: str, after: Iterable[int] = ()) -> Thinking | None:
    """Return the first reasoning in a visible text.

    `after`: offsets at which native tool markup ends, read only if the text does not begin with reasoning.
    """
    if not may_hold_thinking(text):
        return None
    start = beginning(text)
    starts = itertools.chain((start,), (_skip_space(text, offset) for offset in after))
    tagged = any(mark in text for mark in _CLOSING_MARKS)
    return _opened(text, starts) or ((_closed(text) or _inner(text)) if tagged else None) or _residue(text, start)


def begins_inside(text: str) -> bool:
    """Return True if a text begins inside reasoning: a template put the opening tag into the prompt."""
    found = find(text)
    return found is not None and found.evidence == "closed" and found.native and found.body[0] < found.body[1]


def find_in_argument(text: str) -> Thinking | None:
    """Return reasoning at an edge of a value: a pair, sentences after an opener, or the text before a closing tag."""
    if not may_hold_thinking(text):
        return None
    opened = _opened(text, [_skip_space(text, 0)])
    if opened is not None:
        words = _has_words(text, opened)
        return opened if (opened.whole or words) and (opened.native or (opened.whole and words)) else None
    if (behind := _behind(text)) is not None:
        return behind
    closed = _closed(text, tuple(tag for tag in _ORPHANS if tag.native))
    if closed is None or (closed.body[0] == closed.body[1] and text[closed.end : closed.end + 1] in ("", " ")):
        return None  # ` </think> means …`
    return closed


def _behind(text: str) -> Thinking | None:
    """Return reasoning at the end of a value: a pair, or words after an opener without white space before it."""
    for tag in NATIVE:
        opener = tag.opener.search(text)
        if opener is None or not opener.start() or is_mention(text, opener.start(), opener.end()):
            continue
        closer = tag.closer.search(text, opener.end())
        glued = not text[opener.start() - 1].isspace() or text[opener.start() - 1] == "\n"
        if (closer is None and not glued) or (closer is not None and text[closer.end() :].strip()):
            continue
        found = _paired(tag, "inner", opener, closer, len(text))
        if _has_words(text, found):
            return found
    return None


def ends_sentences(text: str, found: Thinking) -> bool:
    """Return True if a lone closing tag follows whole sentences or no text, or a line end follows it."""
    before, tag = text[: found.body[1]], text[found.body[1] : found.end]
    parted = "\n" in tag or text.startswith("\n\n", found.end)
    return not before.strip() or (_has_words(text, found) and (parted or before.endswith(_SENTENCE_END)))


def _has_words(text: str, found: Thinking) -> bool:
    return len(text[slice(*found.body)].split()) >= _FEWEST_WORDS


def literals(thinking: Thinking) -> tuple[str, ...]:
    """Return the literals of a frame that a request for it would hold; none for a channel's name, an ordinary word."""
    if thinking.evidence == "residue":
        return (thinking.tag,) if " " in thinking.tag else ()
    bare = thinking.tag.strip("<>")
    if thinking.tag != f"<{bare}>" or "|" in bare:
        return (thinking.tag,)
    return (f"<{bare}", f"</{bare}", f"&lt;{bare}", f"&lt;/{bare}", f"<{bare.capitalize()}", f"<{bare.upper()}")


def _opened(text: str, starts: Iterable[int]) -> Thinking | None:
    for start in starts:
        for tag, opener in openers_at(text, start):
            closer = tag.closer.search(text, opener.end())
            if closer is not None or not _PHRASES["spoken_of"].match(text, opener.end()):
                return _paired(tag, "opened", opener, closer, len(text))
    return None


def _closed(text: str, tags: tuple[Tag, ...] = _ORPHANS) -> Thinking | None:
    lower = text.lower()
    for tag in tags:
        closer = tag.lone.search(text) if tag.word in lower else None
        if closer is None or _is_document(closer) or tag.loose_opener.search(text, 0, closer.start()):
            continue
        if _ends_a_thought(text, closer):
            start = beginning(text)
            body = (start, max(start, len(text[: closer.start()].rstrip())))
            return Thinking(tag.name, "closed", min(start, closer.start()), closer.end(), body, True, tag.native)
    return None


def _inner(text: str) -> Thinking | None:
    """Return a pair in the middle that opens at a line start, unless a colon before it introduces an example."""
    lower = text.lower()
    for tag in _INNER:
        opener = tag.opener.search(text) if tag.word in lower else None
        if opener is None or _is_document(opener) or text[: opener.start()].rstrip(" \t")[-1:] != "\n":
            continue
        closer = tag.closer.search(text, opener.end())
        introduced = text[: opener.start()].rstrip().endswith((":", "："))
        if closer is None or introduced or is_mention(text, opener.start(), opener.end()):
            continue
        if text[opener.end() : closer.start()].strip(" .…\n"):
            return _paired(tag, "inner", opener, closer, len(text))
    return None


def _is_document(tag: re.Match[str]) -> bool:
    """Return True if an escaped tag is part of a document: `<b>&lt;/think&gt;</b>`, `The end:\n&lt;/think&gt;`.

    A server that escapes a reply escapes all of it, so no bracket precedes a leaked tag.
    """
    lead = tag.string[: tag.start()].rstrip() if tag[0].startswith("&") else ""
    return bool(lead) and ("<" in lead or not lead.endswith(_PROSE_END))


def _residue(text: str, start: int) -> Thinking | None:
    for begins, ends in _SENTENCES:
        if (head := begins.match(text, start)) and (tail := ends.search(text, head.end())):
            return _bare(head[0], head, tail)
    if final := FINAL_RESPONSE.search(text):
        body = (start, final.start())
        return Thinking(final[0], "residue", start, final.end(), body, True, True)
    if found := _channels(text, start):
        return found
    if (head := _PHRASES["analysis"].match(text, start)) and not head[0].endswith("\n") and text[head.end()].isupper():
        return _bare("analysis", head, None)
    if head := _THOUGHT.match(text, start):
        return _bare("thought", head, None)
    return None


def _bare(name: str, head: re.Match[str], tail: re.Match[str] | None) -> Thinking:
    stop, end = tail.span() if tail is not None else (len(head.string),) * 2
    return Thinking(name, "residue", head.start(), end, (head.end(), stop), tail is not None, True)


def _channels(text: str, start: int) -> Thinking | None:
    """Return reasoning or a preamble between the names of channels.

    A preamble between both, `analysis…assistantcommentary…assistantfinal`, is left for the next search.
    """
    lines = _PHRASES["lines"].match(text, start)
    head = lines or _PHRASES["analysis"].match(text, start) or _ANALYSIS_LOOSE.match(text, start)
    first = head or _PHRASES["preamble"].match(text, start)
    if first is None:  # perhaps the name of the last channel alone, whose first one was in the prompt
        last = _GLUED.search(text, start) if _FINAL_ALONE.search(text, start) else None
        if last is None or is_mention(text, *last.span()):
            return None
        body = start, max(start, len(text[: last.start()].rstrip()))
        return Thinking("assistantfinal", "closed", start, last.end(), body, True, True)
    tail = _PHRASES["final"].search(text, first.end())
    if lines and (last := _PHRASES["last_line"].search(text, lines.end(), tail.start() if tail else len(text))):
        return _bare(CHANNEL_LINES, lines, last)
    stop = tail.start() if tail is not None else len(text)
    if head and (again := _PHRASES["again"].search(text, head.end(), stop)):
        is_next = tail is not None and _PHRASES["preamble"].match(text, again.end()) is not None
        end = again.end() if is_next else again.end("channel")
        return Thinking("analysis", "residue", head.start(), end, (head.end(), again.start()), True, True)
    return _bare("analysis", first, tail) if tail is not None else None


def _paired(tag: Tag, evidence: Evidence, opener: re.Match[str], closer: re.Match[str] | None, size: int) -> Thinking:
    stop, end = (closer.start(), closer.end()) if closer is not None else (size, size)
    start = min(repeated(opener.string, tag, opener.end()), stop)
    return Thinking(tag.name, evidence, opener.start(), end, (start, stop), closer is not None, tag.native)


def repeated(text: str, tag: Tag, end: int) -> int:
    """Return the offset after repeated openers: one was in the prompt, and the model wrote its own."""
    while again := tag.opener.match(text, _skip_space(text, end)):
        if again.end() <= end:
            break
        end = again.end()
    return end


def _ends_a_thought(text: str, closer: re.Match[str]) -> bool:
    """Return True if a lone closing tag is at the edge of a line or after the end of a sentence."""
    if is_mention(text, closer.start(), closer.end()):
        return False
    before, after = text[max(closer.start() - 64, 0) : closer.start()], text[closer.end() : closer.end() + 1]
    if not before.strip() or before.rstrip(" \t").endswith("\n"):
        return True
    return after in ("", "\n", "\r") or after.isalnum() or before.rstrip().endswith(_SENTENCE_END)


def openers_at(text: str, start: int) -> Iterator[tuple[Tag, re.Match[str]]]:
    """Yield the tags that open at an offset, with their openers; none of a mention."""
    for tag in TAGS if _ANY_OPENER.match(text, start) else ():
        opener = tag.opener.match(text, start)
        if opener is not None and not is_mention(text, start, opener.end()):
            yield tag, opener


def residue_head(text: str, start: int, model: str) -> bool | None:
    """Return True if a frame of words begins here, whose end must be awaited; None if it may begin.

    Every model writes such sentences; they count only for families that are trained on them.
    """
    rest = text[start : start + 48]
    if any(one.match(text, start) for one in (_PHRASES["analysis"], _PHRASES["lines"], _THOUGHT)):
        return True
    if is_cut(_THOUGHT_BEGUN, rest):
        return None
    harmony = family(model) == "gpt-oss"
    heads = _CHANNEL_HEADS if harmony else _CHANNEL_HEADS[:_ANALYSIS_HEADS]
    begun = _SPACE.sub(" ", rest)
    if begun and any(head.startswith(begun[: len(head)]) and len(begun) < len(head) + _LONGEST_VOICE for head in heads):
        return None
    if harmony and (_ANALYSIS_LOOSE.match(text, start) or _PHRASES["preamble"].match(text, start)):
        return True
    if family(model) in _SENTENCE_FAMILIES:
        if any(begins.match(text, start) for begins, _ in _SENTENCES):
            return True
        if rest and any(head.startswith(rest.lower()) for head in SENTENCE_HEADS):
            return None
    return False


def ends_residue(text: str) -> bool:
    """Return True if a text may hold the end of a frame of words."""
    ends = (_PHRASES["final"], _PHRASES["last_line"], FINAL_RESPONSE, *(end for _, end in _SENTENCES))
    return any(end.search(text) for end in ends)


def beginning(text: str) -> int:
    """Return the offset of the first word after white space and the framing of a turn."""
    start = _skip_space(text, 0)
    for token in control_tokens.find(text[: start + 256]):
        if token.start > start or _ANY_OPENER.match(text, start):
            break
        start = _skip_space(text, token.end)
    return start


ANSWER_OPENER = re.compile(rf"<(?:{'|'.join(_TABLES['answers'])})>", re.IGNORECASE)
ANSWER_CLOSER = re.compile(rf"</(?:{'|'.join(_TABLES['answers'])})>", re.IGNORECASE)


def _skip_space(text: str, offset: int) -> int:
    while offset < len(text) and text[offset].isspace():
        offset += 1
    return offset
