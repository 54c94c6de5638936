"""Tool-call ids: forms of vendors, ways in which clients mangle them, and matching.

Theory of operation. An id is opaque to an honest client: it comes with a call and goes back, unchanged, on the call and
on its result. Three pure functions over strings follow from that.

- `form_of` returns the vendor that makes such ids, which separates foreign ids from broken ones.
- `match` compares the id of a result with that of a call, from the mildest alteration (white space) to the hardest (a
  digest). The letters and digits in one case, the `key`, survive nearly all alterations.
- `restore` returns the original of an id by its form alone, if only one original is possible:
  `functions<own name><digits>` comes from `functions.NAME:N`, and two ids joined by a bar were two.

The form of a cut, hashed or replaced id does not show its original; the ledger has the ids that passed.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from wirelint import lexicon
from wirelint.model import Confidence
from wirelint.text.remembered import remembered

_PHRASES = lexicon.Phrases("ids")

_LONGEST = 1024
"""Greatest length of an id."""


_UUID = _PHRASES.text("uuid")
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (maker, re.compile(pattern.replace("{uuid}", _UUID))) for maker, pattern in _PHRASES.table("forms")
)
"""Makers of ids and the pattern of their ids, which is a fingerprint, not a promise."""


class Match(NamedTuple):
    """An alteration between two ids: how, in words that follow "with", and how certain."""

    how: str
    certainty: Confidence


class Origin(NamedTuple):
    """The original of an altered id. `id` is None if the form shows the damage but not the original."""

    id: str | None
    how: str
    certainty: Confidence


_BETWEEN = bytes(code for code in range(0x80) if not chr(code).isalnum())


@remembered
def form_of(id_: str) -> str | None:
    """Return the maker of ids of this form, or None."""
    forms = _FORMS if len(id_) <= _LONGEST else ()
    return next((maker for maker, pattern in forms if pattern.fullmatch(id_)), None)


def key(id_: str) -> str:
    """Return the letters and digits of an id in one case: they survive every known mangling but cutting."""
    if id_.isascii():
        return id_.encode().translate(None, _BETWEEN).lower().decode()
    return "".join(filter(str.isalnum, id_)).casefold()


_DRAWN = 12
"""Least number of letters and digits of an id that two calls cannot share by accident."""


def is_drawn(id_: str, name: str | None) -> bool:
    """Return True if no two calls share an id: it was drawn, not made of the function's name and a number."""
    plain = key(id_)
    named = name is not None and key(name) in plain
    return len(plain) >= _DRAWN and not named and not plain.rstrip("0123456789").isalpha()


# --- altered ids ----------------------------------------------------------------------------------------------------

_PREFIX = re.compile(r"\A(?:chatcmpl-?tool|functions?|tooluse|toolu|call|tool|fc)[^A-Za-z0-9]?")
_OTHER_PREFIX = re.compile(r"(?:call|toolu|tooluse|tool|fc)[_-](?=functions)")
_COUNTED = re.compile(r":\d+$")
_LETTER = re.compile(r"[^\W_]")
"""A letter or digit. Splitting an id at them gives the other characters, in one string for each place."""
_SHORTEST_CUT = 9
"""Letters and digits that the rest of a cut id must have; Mistral's nine are the shortest that clients cut to."""
_SAFE_CUT = 16
_HEX = re.compile(r"[0-9a-f]{8,64}$")
_DIGEST_LENGTHS = (8, 9, 10, 12, 16, 20, 24, 32, 40, 64)
_MOST_QUOTED = 4
_UNJOINED = {
    "a second id joined to it": "the second id in it removed",
    "a second id joined to it and the separators removed": "the second id in it removed and the separators put in",
    "an editor's suffix": "an editor's suffix removed",
}
"""Alterations whose result is the shorter form."""


def _bare(id_: str) -> str:
    return key(_PREFIX.sub("", id_.strip()))


_EQUAL: tuple[tuple[Confidence, Callable[[str], str]], ...] = (
    ("high", str.strip),
    ("high", unquote),
    ("high", key),
    ("medium", _bare),
)
"""Foldings under which an id and its altered form are equal."""


def match(call_id: str, other: str, name: str | None = None) -> Match | None:
    """Return the alteration if `other` is the altered id of a call of `name`; None for equal and for unrelated ids."""
    if call_id == other or not call_id or not other or max(len(call_id), len(other)) > _LONGEST:
        return None
    for certainty, normal in _EQUAL:
        plain = normal(call_id)
        if plain and plain == normal(other):
            return Match(alteration(call_id, other), certainty)
    joined, origin = _split(other), _split(call_id)
    if joined is not None and joined.id == call_id:
        return Match(joined.how, "high")
    if origin is not None and origin.id == other:
        return Match(_UNJOINED.get(origin.how, origin.how), "high")
    found = _match_cut(call_id, other) or _match_other(call_id, other, name)
    if found is None and origin is not None and origin.id:
        return match(origin.id, other, name)  # `call_1|fc_1` and a result with the rest of `call_1`
    return found


def alteration(before: str, after: str) -> str:
    """Describe the alteration between two forms with the same letters and digits, prefixes aside.

    >>> alteration("functions.read_map:3", "functionsread_map3")
    '`.` and `:` removed'
    >>> alteration("functions.read_map:3", "functions_read_map_3")
    '`.` and `:` replaced by `_`'
    """
    if after.strip() == before:
        return "white space around it"
    if before.strip() == after:
        return "the white space around it removed"
    if unquote(before) == unquote(after):
        return "its percent escapes undone" if unquote(before) == after else "percent escapes"
    if key(before) == key(after):
        return _series([*_between(before, after), *_letters(before, after)]) or "other characters"
    return _series(_prefixes(before.strip(), after.strip())) or "other characters"


def _between(before: str, after: str) -> Iterator[str]:
    """Describe the change of the characters between the letters and digits, which are equal."""
    were, are = _LETTER.split(before), _LETTER.split(after)
    if len(were) != len(are):  # letters that fold to two
        return
    removed, added = list[str](), list[str]()
    replaced: dict[str, list[str]] = {}
    for old, new in zip(were, are, strict=True):
        if old and not new:
            removed.append(old)
        elif new and not old:
            added.append(new)
        elif old != new:
            replaced.setdefault(new, []).append(old)
    if removed and not any(are):
        yield "everything but letters and digits removed"
    elif removed:
        yield f"{_quoted(removed)} removed"
    for new, old_ones in replaced.items():
        yield f"{_quoted(old_ones)} replaced by `{new}`"
    if added:
        yield f"{_quoted(added)} put in"


def _letters(before: str, after: str) -> Iterator[str]:
    was, now = ("".join(filter(str.isalnum, id_)) for id_ in (before, after))
    if was != now:
        ways = {was.upper(): "its letters upper-cased", was.lower(): "its letters lower-cased"}
        yield ways.get(now, "the case of its letters changed")


def _prefixes(before: str, after: str) -> Iterator[str]:
    """Describe the change of the prefix of an id that is equal without it, and of the rest."""
    old, new = (found[0] if (found := _PREFIX.match(id_)) else "" for id_ in (before, after))
    if old and new:
        yield f"its prefix `{old}` replaced by `{new}`"
    elif old:
        yield f"its prefix `{old}` removed"
    elif new:
        yield f"the prefix `{new}` put before it"
    rest, left = before[len(old) :], after[len(new) :]
    yield from _between(rest, left)
    yield from _letters(rest, left)


def _quoted(pieces: Sequence[str]) -> str:
    different = [f"`{piece}`" for piece in dict.fromkeys(pieces)]
    return _series(different) if len(different) <= _MOST_QUOTED else "its other characters"


def _series(phrases: Iterable[str]) -> str:
    *before, last = list(phrases) or [""]
    return f"{', '.join(before)} and {last}" if before else last


def _match_cut(call_id: str, other: str) -> Match | None:
    short, long = sorted((key(call_id), key(other)), key=len)
    if len(short) < _SHORTEST_CUT or len(short) == len(long):
        return None
    if _COUNTED.search(call_id) and _COUNTED.search(other):
        return None  # read:1 and read:10 are two calls
    if long.startswith(short):
        between = long[len(short) - 1 : len(short) + 1]
        counters = len(short) < _SAFE_CUT or _COUNTED.search(call_id) or _COUNTED.search(other)
        if between.isdigit() and counters:
            return None
        if len(key(other)) == len(long):
            return Match("something added to its end", "high")
        beginning = re.match(rf"(?:[\W_]*[^\W_]){{{len(short)}}}", call_id)
        return Match(_series(["its end cut off", *_between(beginning[0] if beginning else call_id, other)]), "high")
    if long.endswith(short):
        cut = len(key(other)) < len(key(call_id))
        return Match("its beginning cut off" if cut else "something put before it", "medium")
    return None


def _match_other(call_id: str, other: str, name: str | None) -> Match | None:
    if name and other == name:
        return Match("the function's name in its place", "medium")
    if (tail := _HEX.search(other)) is not None:
        ends = [tail[0][-length:] for length in _DIGEST_LENGTHS if length <= len(tail[0])]
        if any(digest.startswith(end) for digest in _digests(call_id) for end in ends):
            return Match("a digest in its place", "high")
    data = call_id.encode("utf-8", "surrogatepass")
    encoded = (base64.b64encode(data), base64.urlsafe_b64encode(data), data.hex().encode())
    if len(other) > len(call_id) and other.rstrip("=") in [one.decode().rstrip("=") for one in encoded]:
        return Match("an encoding of it in its place", "high")
    return None


def _digests(id_: str) -> tuple[str, ...]:
    data = [text.encode("utf-8", "surrogatepass") for text in (id_, key(id_))]
    makers = (hashlib.sha256, hashlib.sha1, hashlib.md5)
    return tuple(make(text, usedforsecurity=False).hexdigest() for make in makers for text in data)


# --- originals of ids -----------------------------------------------------------------------------------------------

_OTHER_KIND = re.compile(r"(?:fco?|ctco?|msg|rs|item|resp|gen|req|chatcmpl)[_-](?!tool)[A-Za-z0-9]")
_JOINED_BARE = re.compile(r"call(?P<id>[A-Za-z0-9]{24})fc[0-9a-f]{6,}")
_EDITOR_SUFFIX = re.compile(r"(?P<id>.{4,}?)__vscode-\d+")
_STRIPPED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), original) for pattern, original in _PHRASES.table("stripped")
)
_INDEX = re.compile(r"([0-9]{1,6})(?:x[0-9]{1,3}|t[0-9]{13})?")
_DIGEST_SUFFIX = re.compile(r"_[0-9a-f]{8}$")


def is_other_kind(id_: str) -> bool:
    """Return True if the prefix of an id belongs to an output item, a message or a reply, never to a call."""
    return _OTHER_KIND.match(id_) is not None


def is_placeholder(id_: str) -> bool:
    """Return True for a placeholder that programs write without an id: `undefined`, `null`, `defaulttoolid`."""
    return _PHRASES["placeholder"].fullmatch(id_.strip()) is not None


@remembered
def restore(id_: str, name: str | None) -> Origin | None:
    """Return the original of an id before a known alteration, by its form and the function's name; None without a sign.

    >>> restore("functions_web_fetch_0", "web_fetch").id
    'functions.web_fetch:0'
    """
    if not id_ or len(id_) > _LONGEST or len(name or "") > _LONGEST:
        return None
    native = native_id(id_, name) or native_id(_OTHER_PREFIX.sub("", id_, count=1), name)
    if native is not None:
        altered = match(native, id_) if native != id_ else None
        how = altered.how if altered is not None else "other characters"
        return Origin(native, how, "high") if native != id_ else None
    if is_placeholder(id_):
        return Origin(None, "the word for no value in its place", "high")
    plain = id_.strip().strip("\"'").strip()
    if plain not in (id_, ""):
        return restore(plain, name) or Origin(plain, "white space or quotes around it", "high")
    if "%" in id_ and form_of(unquote(id_)) is not None:
        return Origin(unquote(id_), "percent escapes", "high")
    if (joined := _split(id_)) is not None:
        return joined
    for pattern, original in _STRIPPED:
        if found := pattern.fullmatch(id_):
            before = found.expand(original)
            return Origin(before, alteration(before, id_), "medium")
    return None


def native_id(id_: str, name: str | None) -> str | None:
    """Return `functions.NAME:N` for an id that is this or can only come from this: prefix, own name, number."""
    if not name or not key(name):
        return None
    name = name.strip()  # another rule reports a name with a blank; the id is correct
    written = _DIGEST_SUFFIX.sub("", id_)
    for candidate in dict.fromkeys((id_, written)):
        folded, stem = key(unquote(candidate)), "functions" + key(name)
        index = _INDEX.fullmatch(folded[len(stem) :]) if folded.startswith(stem) else None
        if index is not None:
            native = f"functions.{name}:{index[1]}"
            if candidate == id_ or id_[-8:] in {digest[:8] for digest in _digests(native)}:
                return native
    return None


def restore_counted(id_: str, name: str | None, prefix: str) -> Origin | None:
    """Return the original of `read0` or `read_0` on a call of `read` where the model's ids are `read:0` with a prefix.

    Only for a known model: clients make ids of this form too, with longer numbers.
    """
    if not name or ":" in id_ or not id_[-1:].isdecimal() or not key(name):
        return None
    bare = key(_PREFIX.sub("", id_))
    digits = bare[len(key(name)) :]
    if not bare.startswith(key(name)) or not re.fullmatch(r"[0-9]{1,3}", digits):
        return None
    before = f"{prefix}{name}:{digits}"
    return Origin(before, alteration(before, id_), "medium")


def _split(id_: str) -> Origin | None:
    if joined := _PHRASES["joined"].fullmatch(id_):
        return Origin(joined["id"], "a second id joined to it", "high")
    if bare := _JOINED_BARE.fullmatch(id_):
        return Origin(f"call_{bare['id']}", "a second id joined to it and the separators removed", "medium")
    if suffixed := _EDITOR_SUFFIX.fullmatch(id_):
        return Origin(suffixed["id"], "an editor's suffix", "high")
    return None
