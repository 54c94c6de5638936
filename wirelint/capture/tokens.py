r"""Credentials that a vendor's prefix or form tells, by the table `lexicon/secrets.toml`.

Theory of operation. Hundreds of prefixes are not looked for one by one: each contains one character that is rare in JSON
(`-`, `_`, `.`, a capital letter), its *anchor*. All forms with the same anchor make one regular expression, which begins
with that character and says by assertions what stands around it, so that the pattern engine skips to it at memory speed:

    _(?=[A-Za-z0-9_+/=-]{12})(?<=[…][…]_)(?:(?<=p_)(?:(?<=ghp_)(?=…{12})|(?<=sbp_)(?=…{12}))|(?<=v1_)…)

These are the *signs*. Wherever a form matches there is a sign: `probe` proves by them that a text holds none. Only at a
sign the forms of its anchor are tried, one character long or a bounded number of characters back; what one has matched is
not tried by the same one again. So the search is linear in any text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from wirelint import lexicon
from wirelint.capture.secrets import Span, is_marked

_SEPARATORS = "_-."
_RARE = "JZKAG/~p"
"""Anchors of prefixes without a separator, the best one first."""

_AHEAD = 12
"""As much of what follows a prefix is a part of its sign, at most: enough to leave out nearly all that is no credential.
Of what follows a prefix without a separator five times as much: such a prefix is frequent in base64."""

_FOLLOWING = "A-Za-z0-9_+/=.-"
"""All that may follow a prefix."""

_FIRST_DIGIT = 64
"""In a form that wants a digit, a sign looks this far for one, and takes a longer run as it is."""

_ESCAPED = r"(?<=%[0-9A-Fa-f][0-9A-Fa-f])"
"""Before a prefix: `?q=token%20ghp_…`."""


@dataclass(slots=True)
class Form:
    """One credential's form. `back`: how far before the anchor it can begin; `around` holds behind an anchor of it."""

    name: str
    anchor: str
    around: str
    back: int
    pattern: str
    before: str = "A-Za-z0-9"
    prefix: str = ""
    digit: bool = False
    least: int = 0
    compiled: tuple[re.Pattern[str], re.Pattern[str]] | None = field(default=None, compare=False)

    def find(self, text: str, anchor: int) -> tuple[Span | None, int]:
        """The credential that has its anchor there, if there is one, and the place up to which this form has looked."""
        if self.compiled is None:
            begins = f"(?:(?<![{self.before}])|{_ESCAPED})" if self.before else ""
            self.compiled = re.compile(self.around), re.compile(begins + self.pattern)
        around, pattern = self.compiled
        if around.match(text, anchor + 1) is None:
            return None, anchor
        last = anchor - self.back if self.prefix else anchor
        starts = range(max(anchor - self.back, 0), last + 1)
        match = next(filter(None, (pattern.match(text, start) for start in starts)), None)
        if match is None:
            return None, anchor
        start, end = match.span(match.re.groups and 1)
        secret = text[start:end]
        if is_marked(secret) or (self.digit and not any(map(str.isdigit, secret[len(self.prefix) :]))):
            return None, match.end()
        return Span(start, end, secret), match.end()


@cache
def forms() -> tuple[Form, ...]:
    """All forms of the table."""
    table = lexicon.load("secrets")
    alphabets: Mapping[str, str] = table["alphabets"]
    made: list[Form] = []
    for source in table["sources"].values():
        for row in source.get("tokens", ()):
            made += [_prefixed(row, prefix, alphabets[row["alphabet"]]) for prefix in row["prefixes"]]
        made += [Form(**row) for row in source.get("patterns", ())]
    return tuple(made)


def _prefixed(row: Mapping[str, Any], prefix: str, alphabet: str) -> Form:
    """The form of one prefix. A short prefix has to begin a word, also in base64; a long one is no accident there."""
    least, exact, digit = row["least"], row.get("exact", False), row.get("digit", False)
    at = _anchor(prefix)
    literal, skipped, characters = re.escape(prefix), re.escape(prefix[at + 1 :]), f"[{alphabet}]"
    separated = any(separator in prefix for separator in _SEPARATORS)
    before = "A-Za-z0-9" if separated and len(prefix) > 4 else "A-Za-z0-9_-" if separated else "A-Za-z0-9_+-"
    if exact:
        rest = f"{characters}{{{least}}}(?![A-Za-z0-9{alphabet if separated else '_+=-'}])"
        ahead = f"(?={skipped}{rest})"
    else:
        rest = f"{characters}{{{least},}}" + (r"(?<!\.)" if "." in alphabet else "")
        ahead = f"(?={skipped}{characters}{{{min(least, _AHEAD if separated else 5 * _AHEAD)}}})"
    if digit:
        others = f"[{alphabet.replace('0-9', '')}]"
        ahead += f"(?={skipped}(?:{others}{{0,{_FIRST_DIGIT - 1}}}[0-9]|{others}{{{_FIRST_DIGIT}}}))"
    return Form(
        row["name"], prefix[at], _behind(prefix[: at + 1]) + ahead, at, literal + rest, before, prefix, digit, least
    )


def _anchor(prefix: str) -> int:
    """The place of the character to search for: the last separator, or the rarest of the others."""
    if prefix[-1] in _SEPARATORS:
        return len(prefix) - 1
    found = max(map(prefix.rfind, _SEPARATORS))
    return found if found > 0 else next(prefix.rfind(character) for character in _RARE if character in prefix)


def _behind(text: str) -> str:
    return f"(?<={re.escape(text)})" if len(text) > 1 else ""


@cache
def signs(*others: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """The characters to search for, and for each the regular expression of all that can be a form, and of `others`."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    ends: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    least: dict[str, int] = {}
    for anchor, around in others:
        groups[anchor].append(around)
    for form in forms():
        lead = _behind(form.prefix[: form.back + 1]) if form.prefix else ""
        if lead:
            ends[form.anchor].append((form.prefix[: form.back], form.around.removeprefix(lead)))
            least[form.anchor] = min(form.least, least.get(form.anchor, _AHEAD))
        else:
            groups[form.anchor].append(form.around)
    for anchor, found in ends.items():
        front = f"(?=[{_FOLLOWING}]{{{least[anchor]}}})" if anchor in _SEPARATORS else ""
        groups[anchor].append(front + _trie(anchor, found, ""))
    return tuple(
        (anchor, re.escape(anchor) + _front(anchor) + f"(?:{'|'.join(dict.fromkeys(around))})")
        for anchor, around in groups.items()
    )


def _front(anchor: str) -> str:
    """What follows a separator in any form: most separators of ordinary text fail here."""
    return f"(?=[{_FOLLOWING}]{{3}})" if anchor in _SEPARATORS else ""


def _trie(anchor: str, found: Iterable[tuple[str, str]], known: str) -> str:
    """An assertion that one of some prefixes ends in `known` and the anchor, and what has to follow it.

    The prefixes are told apart from their ends on: most places fail at the first two characters.
    """
    nodes: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    leaves: list[str] = []
    for prefix, ahead in found:
        left = prefix[: len(prefix) - len(known)]
        if left:
            nodes[left[-1]].append((prefix, ahead))
        else:
            leaves.append(ahead)
    parts = list(dict.fromkeys(leaves))
    for last, below in nodes.items():
        if len(below) == 1:
            prefix, ahead = below[0]
            parts.append(f"(?<={re.escape(prefix + anchor)}){ahead}")
        else:
            ending = last + known
            parts.append(f"(?<={re.escape(ending + anchor)}){_trie(anchor, below, ending)}")
    made = parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    if known or not nodes:
        return made
    return f"(?<=[{''.join(map(re.escape, nodes))}]{re.escape(anchor)}){made}"


@dataclass(frozen=True, slots=True)
class _Scanner:
    """The forms of one anchor. Those with a prefix stand by the last two characters of it, up to the anchor; `shortest`
    are those whose prefix begins with the anchor.

    `any_other` says whether one of the others can be behind an anchor: text with many anchors is asked once for each.
    """

    anchor: str
    sign: re.Pattern[str]
    prefixed: Mapping[str, Sequence[tuple[str, Form]]]
    shortest: Sequence[Form]
    others: Sequence[Form]
    any_other: re.Pattern[str] | None

    @classmethod
    def of(cls, anchor: str, sign: str) -> _Scanner:
        mine = [form for form in forms() if form.anchor == anchor]
        prefixed: defaultdict[str, list[tuple[str, Form]]] = defaultdict(list)
        for form in mine:
            if form.prefix:
                begun = form.prefix[: form.back + 1]
                prefixed[begun[-2:]].append((begun, form))
        shortest = [form for _, form in prefixed.pop(anchor, ())]
        others = [form for form in mine if not form.prefix]
        any_other = re.compile("|".join(f"(?:{form.around})" for form in others)) if others else None
        return cls(anchor, re.compile(sign), dict(prefixed), shortest, others, any_other)

    def at(self, text: str, anchor: int) -> list[Form]:
        """The forms that a credential with this anchor can have."""
        end = anchor + 1
        ending = self.prefixed.get(text[anchor - 1 : end]) if anchor else None
        found = [form for begun, form in ending if text.endswith(begun, 0, end)] if ending else []
        if self.shortest:
            found += self.shortest
        if self.any_other is not None and self.any_other.match(text, end) is not None:
            found += self.others
        return found


@cache
def _scanners() -> tuple[_Scanner, ...]:
    return tuple(_Scanner.of(anchor, sign) for anchor, sign in signs())


def may_hold_tokens(text: str) -> bool:
    """Return True if a credential of the table can be in a text."""
    return any(scanner.anchor in text and scanner.sign.search(text) is not None for scanner in _scanners())


def find_tokens(text: str) -> Iterator[Span]:
    """The credentials of the table in a text, in no particular order; spans may overlap."""
    for scanner in _scanners():
        if scanner.anchor not in text:
            continue
        looked: dict[int, int] = {}
        for match in scanner.sign.finditer(text):
            place = match.start()
            for form in scanner.at(text, place):
                if place < looked.get(id(form), 0):
                    continue
                span, looked[id(form)] = form.find(text, place)
                if span is not None:
                    yield span
