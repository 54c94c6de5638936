r"""The reader of one view of a text, with the declared tools, and the calls and blocks that families of dialects return.

Theory of operation. Text may hold any number of openers without markup after them, so a reader must never look far
ahead twice over one stretch. Three means ensure this: `next` remembers the next occurrence of a pattern (or that there
is none), JSON is read in growing windows, and a family that gives up after reading on marks the stretch as `dead` for
further attempts.

This code also reads a stream before its text is over. `open` then says, after a family has read, whether the result
may change as more text comes: every look that reaches the end of the text sets it. So a family looks at the text through
the reader's methods, never at `shadow` directly.

Views. Gateways, detokenisers and models write markup in many ways: `｜`, `‖` or `|`; `▁` or `_`; with zero-width characters
inside; HTML-escaped; escaped once too often as a JSON string. Each *view* undoes one kind of escaping and maps its offsets
to the original. The `shadow` of a view is its text with look-alike characters replaced one by one, so offsets are equal.
Structure is found in the shadow; values are cut from the text, where every character is unchanged.

The plain view is the original (without zero-width spaces, which come back in values). The decoded views exist only when
a probe finds escaped angle brackets or bars, and only markup whose own opener was escaped is read from them: their
values are decoded, because the escaping covered the markup and its values alike.

The joined view exists if a turn token or a whole turn header is in the middle of a word or tag, or right after a tag
(`[TOOL_<|im_end|>CALLS]`, `<tool_<|im_start|>assistant\ncall>`, `<tool_call><|assistant|>`). It is the text without
them; a token in place of the end of a tag (`<tool_call<|assistant|>{`) becomes that end. Only markup whose own opener,
up to the name of its tool, holds or precedes such a token is read from it.
"""

from __future__ import annotations

import bisect
import html
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from wirelint import lexicon
from wirelint.dialects import declared, jsontext
from wirelint.dialects.jsontext import Decoded
from wirelint.dialects.openers import THOUGHT_ENDS, cut_at, is_cut, may_go_on
from wirelint.lexicon import lazy_pattern
from wirelint.model import Json, Tool

Pattern: TypeAlias = re.Pattern[str]
Match: TypeAlias = re.Match[str]

_NEAR = 64
_SPACE = re.compile(r"\s*")
CONTROL = re.compile(r"(?:\s|<[|｜][^|｜<>\s]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>|<start_function_response>)*+")
"""White space and tokens that end a turn."""
_ESCAPED_JSON = re.compile(r"\s*[{\[]\s*(?:[{\[]\s*)?&(?:quot|#34|#[xX]22);")
"""JSON whose quotes are HTML entities: `{&quot;name&quot;:…`."""
_WRITTEN_NAME = re.compile(r"[\w.:/$<>{}-][\w.:/$<>{} -]{0,127}")

Tier = Literal["sentinel", "generic", "weak"]
"""`sentinel`: special tokens, which count on sight. `generic`: tags that count if their body can be read. `weak`: shapes
that people write too; they count only as the whole message, with a declared tool and arguments that fit it."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call in a model's own notation.

    `name` is the declared name where one fits, else the written one without its framing. `arguments` are typed by the
    declared schema; None if the body is unreadable; a call that is cut off keeps the arguments that were closed. They can
    always be written as JSON. `id` is the native id as written (`functions.read:0`). `complete`: no argument is missing,
    whether or not the closing markup came.
    """

    name: str
    arguments: dict[str, Json] | None
    id: str | None
    complete: bool


class Block(NamedTuple):
    """A stretch of text with markup of one dialect, from the opener of its wrapper to the closer.

    `start` and `end` are offsets in the searched text, or in the view that is read. `calls` is empty for stray closers and
    for sentinels without a body. `dialect` is empty for markup that is not reported (documentation with placeholder names).
    """

    dialect: str
    start: int
    end: int
    calls: tuple[NativeCall, ...]
    tier: Tier

    @property
    def complete(self) -> bool:
        """Return True if there is a call and every call is complete."""
        return bool(self.calls) and all(call.complete for call in self.calls)


@dataclass(slots=True)
class Calls:
    """Consecutive calls; the text is read up to `end`."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return all(call.complete for call in self.calls)

    def add(self, call: NativeCall, end: int) -> bool:
        """Add a call that ends at an offset. Return False if it is cut off or unreadable, so that none follows."""
        self.calls.append(call)
        self.end = end
        return call.complete


class Arguments(NamedTuple):
    """The arguments of one call; `value` is None if it is unreadable."""

    value: Json
    end: int
    complete: bool


Reading: TypeAlias = Block | None
"""Result of a family's reader. None: these bytes belong to another family; the next family is tried."""


class Reader:
    """One pass over one view. `floor` is the end of the last block: nothing before it may be claimed again.

    `over`: no more text will come. `open`: the result may change when more text comes (never set when `over`).
    `strangers`: a name of an undeclared tool was read. `dead`: per dialect, the end of a stretch that was read in vain.
    """

    def __init__(self, view: View, tools: Sequence[Tool], *, over: bool = True) -> None:
        self.view = view
        self.shadow = view.shadow
        self.size = len(view.shadow)
        self.tools = {tool.name: tool for tool in tools}
        self.over = over
        self.open = False
        self.strangers = False
        self.floor = 0
        self.dead: defaultdict[object, int] = defaultdict(int)
        self._found: dict[Pattern, tuple[int, Match | None]] = {}
        self._names: dict[str, str] = {}

    def match(self, pattern: Pattern, position: int) -> Match | None:
        """Return the match of a pattern at a position."""
        match = pattern.match(self.shadow, position)
        if not (self.over or self.open) and may_go_on(pattern, self.shadow, position):
            self.open = True
        return match

    def is_cut(self, pattern: Pattern, position: int) -> bool:
        """Return True if the end of the text cuts off a match of a pattern at a position."""
        return self.over and is_cut(pattern, self.shadow, position)

    def certain(self, pattern: Pattern, position: int) -> Match | None:
        """Return the match of a pattern that ends in a delimiter, so that no later text can change a match."""
        match = pattern.match(self.shadow, position)
        if match is not None and match.end() == self.size:
            self.open = self.open or not self.over
        return match

    def next(self, position: int, *patterns: Pattern) -> Match | None:
        """Return the first match of any pattern at or after a position; at one place the first pattern wins.

        A missing match may still come.
        """
        found: Match | None = None
        for pattern in patterns:
            match = self.seek(pattern, position)
            if match is not None and (found is None or match.start() < found.start()):
                found = match
        if found is None or found.end() == self.size:
            self.open = self.open or not self.over
        return found

    def seek(self, pattern: Pattern, position: int) -> Match | None:
        """Return the first match at or after a position. A missing match does not set `open`."""
        known = self._found.get(pattern)
        if known is not None and known[0] <= position and (known[1] is None or known[1].start() >= position):
            return known[1]
        match = pattern.search(self.shadow, position)
        self._found[pattern] = (position, match)
        return match

    def after(self, pattern: Pattern, position: int) -> int:
        """Return the offset after the match of a pattern at a position; the position itself without a match."""
        match = self.match(pattern, position)
        return match.end() if match is not None else position

    def follow(self, pattern: Pattern, position: int) -> Match | None:
        """Return the match of a pattern after the white space at a position."""
        return self.match(pattern, self.space(position))

    def past(self, position: int, *patterns: Pattern) -> int:
        """Return the offset after white space and the first pattern that matches; the position itself without a match."""
        at = self.space(position)
        matches = (self.match(pattern, at) for pattern in patterns)
        return next((match.end() for match in matches if match is not None), position)

    def stop(self, match: Match | None) -> int:
        """Return the start of a match; the end of the text without one."""
        return match.start() if match is not None else self.size

    def ended(self, position: int) -> bool:
        """Return True if the text ends at a position."""
        if position < self.size:
            return False
        self.open = self.open or not self.over
        return True

    def char(self, position: int) -> str:
        """Return the character of the shadow at a position; empty at the end of the text."""
        return "" if self.ended(position) else self.shadow[position]

    def begins(self, position: int) -> bool:
        """Return True if only white space precedes a position in the text, or in what follows its reasoning."""
        before = self.shadow[max(position - _NEAR, 0) : position].rstrip()
        return before.endswith(THOUGHT_ENDS) if before else position <= _NEAR

    def concludes(self, position: int) -> bool:
        """Return True if only white space and control tokens follow a position."""
        return self.ended(self.after(CONTROL, position))

    def is_whole(self, start: int, end: int) -> bool:
        """Return True if a stretch is the whole message, except for white space, control tokens and reasoning before it."""
        return self.begins(start) and self.concludes(end)

    def space(self, position: int) -> int:
        """Return the offset after white space."""
        match = _SPACE.match(self.shadow, position)
        end = match.end() if match else position
        self.ended(end)
        return end

    def json(self, position: int) -> Decoded:
        """Decode the JSON value at a position; `failed` if there is none, or if it is not whole."""
        decoded = jsontext.decode_at(self.view.text, position)
        if not self.over and decoded.end >= self.size and (decoded.failed or self.shadow[-1:] not in '}]"'):
            self.open = True
        if decoded.failed or not self.view.starts or self.view.decoded:
            return decoded
        # Zero-width characters inside strings belong to the values: decode the original bytes once more.
        again = jsontext.decode_at(self.view.cut(position, decoded.end), 0)
        return decoded if again.failed else Decoded(again.value, decoded.end, again.healthy)

    def repair(self, start: int, end: int) -> Decoded | None:
        """Read the damaged JSON value between two offsets."""
        self.ended(end)
        text = self.view.text[start:end]
        if _ESCAPED_JSON.match(text) and not (plain := jsontext.decode_at(html.unescape(text), 0)).failed:
            return Decoded(plain.value, start + len(text.rstrip()), healthy=False)
        repaired = jsontext.repair(text)
        if repaired is None:
            return None
        return Decoded(repaired.value, start + repaired.end, healthy=False, missing=repaired.missing)

    def read_json(self, position: int, *stops: Pattern, to_stop: bool = False) -> Arguments:
        """Read the JSON value at a position, a damaged one up to a stop, or whole up to the end of the text.

        `to_stop`: a damaged value reaches to the stop.
        """
        decoded = self.json(position)
        if decoded.failed:
            return self.rescue(position, *stops, to_stop=to_stop)
        return Arguments(decoded.value, decoded.end, complete=True)

    def rescue(self, position: int, *stops: Pattern, to_stop: bool = False) -> Arguments:
        """Read the damaged JSON value at a position, as `read_json` does."""
        stop = self.next(position, *stops)
        end = self.stop(stop)
        repaired = self.repair(position, end)
        if repaired is None or (stop is None and repaired.missing):
            return Arguments(None, end, complete=False)
        return Arguments(repaired.value, end if to_stop and stop is not None else repaired.end, complete=True)

    def value(self, start: int, end: int) -> str:
        """Return the text between two offsets as the model wrote it."""
        return self.view.cut(start, end)

    def resolve(self, written: str) -> str:
        """Return the declared name for a written one. A looping text calls one tool thousands of times."""
        name = self._names.get(written)
        if name is None:
            name = self._names[written] = declared.resolve(written, self.tools)
        return name

    @cached_property
    def names_and_keys(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the declared tools, and of their parameters, in order."""
        keys = {key for tool in self.tools.values() for key in declared.properties_of(tool.schema)}
        return tuple(sorted(self.tools)), tuple(sorted(keys))

    def tool(self, written: str) -> Tool | None:
        """Return the declared tool for a written name."""
        tool = self.tools.get(self.resolve(written))
        self.strangers = self.strangers or tool is None
        return tool

    def call(self, written: str, arguments: Json, *, complete: bool, native_id: str | None = None) -> NativeCall:
        """Make a call. Arguments that are no object, or that JSON cannot hold, count as unreadable."""
        name = self.resolve(written)
        self.strangers = self.strangers or name not in self.tools
        if not isinstance(arguments, dict) or not jsontext.writable(arguments):
            return NativeCall(name, None, native_id, False)
        return NativeCall(name, arguments, native_id, complete)

    def fits(self, call: NativeCall) -> bool:
        """Return True if a call is of a declared tool and has only its parameters, as weak shapes must."""
        return declared.fits(self.tool(call.name), call.arguments)

    def declares_any(self, calls: Iterable[NativeCall]) -> bool:
        """Return True if one of the calls is of a declared tool."""
        return any(call.name in self.tools for call in calls)

    def stand_ins(self, calls: Sequence[NativeCall]) -> bool:
        """Return True if all calls name placeholders, as in documentation."""
        return bool(calls) and all(call.name not in self.tools and declared.is_stand_in(call.name) for call in calls)

    def block(
        self, dialect: str, start: int, end: int, calls: Sequence[NativeCall] = (), tier: Tier = "sentinel"
    ) -> Block:
        """Make a block; a block of placeholder calls is not reported."""
        if self.stand_ins(calls):
            dialect, calls = "", ()
        return Block(dialect, start, end, tuple(calls), tier)

    def generic_block(self, dialect: str, start: int, end: int, calls: Sequence[NativeCall], *, sure: bool) -> Reading:
        """Make a block of generic tags. It counts if the caller is `sure`, or if it calls a declared tool."""
        if sure or self.declares_any(calls):
            return self.block(dialect, start, end, calls, "generic")
        self.dead[dialect] = max(end, self.dead[dialect])
        return None


def is_name(text: str) -> bool:
    """Return True if a text can be the name of a tool."""
    return _WRITTEN_NAME.fullmatch(text) is not None


# -- views -------------------------------------------------------------------------------------------------------------

_LOOKALIKES = {ord("｜"): "|", ord("‖"): "|", ord("▁"): "_"}
ZERO_WIDTH = "\u200b\u2060\ufeff"
_ZERO_WIDTH = re.compile(f"[{ZERO_WIDTH}]+")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,6});")
_ESCAPED_START = re.compile(r'\s{0,8}[{\[]\s{0,8}(?:[{\[]\s{0,8})?(?:&(?:quot|#34|#[xX]22);|\\["nrt])')
"""The beginning of JSON that was escaped as a whole: `{\\"name`, `[{&quot;name`."""
_ENTITY_PROBE = re.compile(r"&(?:lt|#0{0,4}60|#[xX]0{0,4}3[cC]);")
_JSON_ESCAPE = re.compile(
    r'\\(?:u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})|(["\\/bfnrt]))'
)
# `<` or `|` as \\u003c / \\u007c; a tag whose attribute quotes are escaped; a tag, then a newline written as two
# characters, then more markup or a JSON body.
_JSON_PROBE = re.compile(
    r'\\u00(?:3[cC]|7[cC])|\\uff5[cC]|=\\"[\w.:/ -]{1,128}\\"\s{0,4}/?>'
    r'|>\s{0,4}\\n(?:\\n|\s){0,8}[{\[<"\\]|:\s?\\"[\w.:/-]{1,128}\\"'
)
_CUT_ESCAPE = re.compile(r"(?:&(?:#?[0-9a-zA-Z]{0,7})?|\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_LONGEST_CUT = 9
_TEMPLATES = lexicon.load("templates")["templates"]
_TURN_ENDS = {end for template in _TEMPLATES for end in template.get("ends", ())} | {
    *("<|endoftext|>", "<|end_of_text|>", "<|assistant_end|>", "<|return|>", "<|end_of_sentence|>", "</s>"),
}
_HEADERS = [re.findall(r"<[^<>]+>", template["header"]) for template in _TEMPLATES]
_TURN_STARTS = {tokens[0] for tokens in _HEADERS if tokens} | {"<|assistant|>", "<|CHATBOT_TOKEN|>"}
_SECOND = {tokens[1] for tokens in _HEADERS if len(tokens) > 1} | {"<|message|>"}


def _any_token(tokens: Iterable[str]) -> str:
    """Return the pattern source of any of some tokens without their bracket, in all spellings."""
    plain = sorted({token[1:].translate(_LOOKALIKES) for token in tokens if token[0] == "<"})
    return "|".join(re.escape(token).replace(r"\|", "[|｜]").replace("_", "[_▁]") for token in plain)


_ENDS, _STARTS, _MIDDLES = map(_any_token, (_TURN_ENDS, _TURN_STARTS, _SECOND))
_HEADER = rf"(?:{_STARTS})(?:(?:assistant|model)(?=\s)|(?:assistant|model)?<(?:{_MIDDLES}))?\s{{0,4}}"
_TURN = rf"<(?<=[\w<\[|:/▁>\]\"']<)(?:(?:{_ENDS})(?:\s{{0,4}}<{_HEADER})?|{_HEADER})"
_TURN_TOKEN = lazy_pattern(_TURN)
"""The end of a turn, the beginning of one, or both: `<|im_end|>\\n<|im_start|>assistant\\n`."""
_LONGEST_TURN = 96
_OPEN_TAG = lazy_pattern(r"<([|｜]?)[a-zA-Z][\w:=.▁\"' -]{1,64}\Z")
_LONGEST_OPEN_TAG = 67
_TAG_BODY = lazy_pattern(r"\s{0,8}[{\[<]")
_REST = r"(?:(?: to=)?[\w.:=\"'-]{1,128}+[>\]]?|<[|｜]?[\w:=.▁-]{1,64}[|｜]?>|\[[A-Z_]{1,24}\]){0,3}"
OPENER_REST = lazy_pattern(_REST)
"""Text after an opener that belongs to it: the name of the tool, and further opening tags."""
TURN_AFTER = lazy_pattern(_REST + _TURN)


@dataclass(frozen=True, slots=True)
class View:
    """One reading of `source`. `starts[i]` in the text is `places[i]` in the source, and so on to the next."""

    source: str
    text: str
    shadow: str
    starts: tuple[int, ...] = field(default=(), repr=False)
    places: tuple[int, ...] = field(default=(), repr=False)
    decoded: bool = False
    joined: bool = False

    def origin(self, offset: int) -> int:
        """Return the offset in the source of an offset in the text."""
        if not self.starts:
            return offset
        index = bisect.bisect_right(self.starts, offset) - 1
        return min(self.places[index] + offset - self.starts[index], len(self.source))

    def end_origin(self, offset: int) -> int:
        """Return the offset in the source of the end of a stretch: before a token that follows it there."""
        return self.origin(offset - 1) + 1 if self.joined and offset else self.origin(offset)

    def cut(self, start: int, end: int) -> str:
        """Return the value between two offsets: as it was written, or decoded if the markup itself was escaped."""
        if self.decoded or not self.starts:
            return self.text[start:end]
        if self.joined:
            return self.source[self.origin(start) : self.end_origin(end)]
        # From right after the character before, so that zero-width characters at the value's edges stay in it.
        return self.source[self.origin(start - 1) + 1 if start else 0 : self.origin(end)]


def views(text: str, *, over: bool = True) -> Iterator[View]:
    """Yield the plain view, then decoded and joined views if the text needs them.

    In a text that is not `over`, they lack the escape that is cut off at its end.
    """
    yield plain_view(text)
    text = text if over else text[: len(text) - cut_escape(text)]
    begins = _ESCAPED_START.match(text) is not None
    if "&" in text and (begins or _ENTITY_PROBE.search(text)):
        yield _rewritten(text, _ENTITY, _entity, decoded=True)
    if "\\" in text and (begins or _JSON_PROBE.search(text)):
        yield _rewritten(text, _JSON_ESCAPE, jsontext.unescape, decoded=True)
    if "<" in text and _TURN_TOKEN.search(text):
        yield _rewritten(text, _TURN_TOKEN, _tag_end, joined=True)


def _entity(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _tag_end(token: re.Match[str]) -> str:
    """Return the end of a tag for a turn token in its place, before the body; else nothing."""
    text, start = token.string, token.start()
    tag = _OPEN_TAG.search(text, max(start - _LONGEST_OPEN_TAG, 0), start)
    return f"{tag[1]}>" if tag is not None and _TAG_BODY.match(text, token.end()) else ""


def _nothing(_: re.Match[str]) -> str:
    return ""


def plain_view(text: str) -> View:
    if any(character in text for character in ZERO_WIDTH):
        return _rewritten(text, _ZERO_WIDTH, _nothing)
    return View(text, text, _shadow(text))


def tail_views(text: str) -> Iterator[View]:
    """Yield further views of the end of a text that is not over, without the escape or token that is cut off there."""
    kept = text[: len(text) - cut_escape(text)]
    if len(kept) < len(text):
        yield plain_view(kept)
    if "&" in kept and _ENTITY_PROBE.search(kept):
        yield _rewritten(kept, _ENTITY, _entity, decoded=True)
    if "\\u" in kept or _ESCAPED_START.match(kept):
        yield _rewritten(kept, _JSON_ESCAPE, jsontext.unescape, decoded=True)
    cut = cut_at(_TURN_TOKEN, text, max(0, len(text) - _LONGEST_TURN), whole=True)
    kept = text if cut is None else text[:cut]
    if cut is not None or _TURN_TOKEN.search(kept):
        yield _rewritten(kept, _TURN_TOKEN, _tag_end, joined=True)


def cut_escape(text: str) -> int:
    """Return the length of an escape that the end of a text cuts off: `&l`, `\\u00`."""
    cut = _CUT_ESCAPE.search(text, max(0, len(text) - _LONGEST_CUT))
    return len(text) - cut.start() if cut else 0


def _shadow(text: str) -> str:
    # str.translate is slow on non-ASCII text, and almost no text has these characters.
    if text.isascii() or not any(character in text for character in "｜‖▁"):
        return text
    return text.translate(_LOOKALIKES)


@lru_cache(maxsize=8)
def _rewritten(
    text: str,
    pattern: re.Pattern[str],
    replace: Callable[[re.Match[str]], str],
    *,
    decoded: bool = False,
    joined: bool = False,
) -> View:
    """Return the view with replacements, cached because several rules read one text."""
    parts: list[str] = []
    starts, places = [0], [0]
    place, size = 0, 0
    for match in pattern.finditer(text):
        replacement = replace(match)
        parts += (text[place : match.start()], replacement)
        size += match.start() - place
        if replacement:
            starts.append(size)
            places.append(match.start())
        size += len(replacement)
        place = match.end()
        starts.append(size)
        places.append(place)
    parts.append(text[place:])
    rewritten = "".join(parts)
    return View(text, rewritten, _shadow(rewritten), tuple(starts), tuple(places), decoded, joined)
