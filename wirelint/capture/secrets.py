"""Secrets: the names of headers, parameters and keys that hold one, vendors' credentials, and shapes that surround one.

Theory of operation. Names are compared in one spelling: `apiKey`, `API-Key` and `api_key` are the same name. Counts of
tokens, pagination tokens, log probabilities (`{"token": "Hello"}`) and the signatures of reasoning blocks look like
secrets by their names and are none.

Each shape has a `hint`, mostly a literal that a substring search finds at memory speed; the pattern runs only over text
that holds its hint. Look-behind assertions follow the literal, so that the pattern engine can skip to it, and every
repetition is over one character class, so that all patterns are linear. Patterns are in `lexicon/secrets.toml`.

A JSON document is not decoded as a whole. Each string literal is unescaped and searched as a text, and the spans are
mapped back to the raw characters. So a span never crosses a quotation mark, and a replacement keeps the document as valid
as before. A text that is JSON itself (the arguments of a tool call) is searched in this way, one level down. The `Scope`
of the whole document rules out shapes and names, and for most documents all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import orjson

from wirelint import lexicon
from wirelint.lexicon import Phrases

MARK = re.compile(r"\[redacted:[0-9a-f]{8}\]")
"""The mark of a secret. Equal secrets have equal digits."""

_MARKED = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9-]*\s+)?(?:\[redacted:[0-9a-f]{8}\]|%5Bredacted%3A[0-9a-f]{8}%5D)", re.IGNORECASE
)


class Span(NamedTuple):
    """Characters `start` to `end` of a text, which spell the secret `secret`."""

    start: int
    end: int
    secret: str


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = re.compile(r"[-. ]+")
_PATH = re.compile(r"[/~.]|[A-Za-z]:\\")
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)@")
_URL_QUERY = re.compile(r"\?[^#]*")
_PARAMETER = re.compile(r"[?&]([^=&]*)=([^&]+)")
_PHRASES = Phrases("secrets")
_SECRET_NAME, _PLACEHOLDER = _PHRASES["secret_name"], _PHRASES["placeholder"]
_SECRET_PARAMETERS = frozenset(_PHRASES.words("secret_parameters"))


def is_marked(value: str) -> bool:
    """Return True if a value is a mark, with or without a scheme word before it."""
    return _MARKED.fullmatch(value.strip()) is not None


def is_placeholder(value: str) -> bool:
    """Return True if a value is a placeholder for a secret: `null`, `your_api_key`, `${KEY}`."""
    return _PLACEHOLDER.fullmatch(value) is not None


def holds_secret(name: str, value: str) -> bool:
    """Return True if `value` under the JSON key `name` is a secret, and no placeholder such as `null` or `${KEY}`."""
    if is_marked(value) or is_placeholder(value):
        return False
    normal = _normal(name)
    if normal == "token":
        # Log probabilities have one word of text under this key; a credential is long and mixed.
        return _PHRASES["secret_token"].fullmatch(value) is not None
    if normal.endswith("pwd") and _PATH.match(value):
        return False
    return _SECRET_NAME.fullmatch(normal) is not None


def is_secret_parameter(name: str) -> bool:
    normal = _normal(name)
    if normal.startswith(("x_amz_", "x_goog_")):
        return _PHRASES["cloud_parameter"].fullmatch(normal) is not None
    return normal in _SECRET_PARAMETERS or _SECRET_NAME.fullmatch(normal) is not None


def find_in_url(url: str) -> Iterator[Span]:
    """Yield the user of a URL, whose secret is its password, and the values of its secret parameters, as written."""
    if match := _USERINFO.match(url):
        yield Span(*match.span(2), match[2].partition(":")[2] or match[2])
    if (query := _URL_QUERY.search(url)) is not None:
        for match in _PARAMETER.finditer(url, *query.span()):
            if is_secret_parameter(unquote_plus(match[1])):
                yield Span(*match.span(2), match[2])


def is_secret_header(name: str, value: str) -> bool:
    """Return True if a header holds a secret; rate limits and other counts of tokens do not."""
    word, value = _secret_word(name), value.strip()
    return bool(word and value) and not (word == "token" and _PHRASES["count"].fullmatch(value))


@lru_cache(maxsize=512)
def _secret_word(header: str) -> str:
    """Return the part of a header's name that shows that it holds a secret; empty if none does."""
    lower = header.lower()
    match = None if _PHRASES["plain_header"].search(lower) else _PHRASES["secret_header"].search(lower)
    return match.group() if match is not None else ""


def _normal(name: str) -> str:
    return _SEPARATORS.sub("_", _CAMEL.sub("_", name)).lower()


def split_scheme(value: str) -> tuple[str, str]:
    """Return the scheme word with its space, empty if there is none, and the secret."""
    match = _PHRASES["scheme"].match(value)
    end = match.end() if match is not None and match.end() < len(value) else 0
    return value[:end], value[end:]


# Credentials with a vendor's prefix or form, by the table `lexicon/secrets.toml`.
#
# Theory of operation. Hundreds of prefixes are not searched one by one: each contains one character that is rare in
# JSON (`-`, `_`, `.`, a capital letter), its *anchor*. All forms with the same anchor make one regular expression,
# which begins with that character and has assertions on those around it, so that the pattern engine skips to it at
# memory speed:
#
#     _(?=[A-Za-z0-9_+/=-]{12})(?<=[…]_)(?:(?<=ghp_)(?=…{12})|(?<=sbp_)(?=…{12})|(?<=v1_)…)
#
# These are the *signs*. There is a sign wherever a form matches, so a text without signs holds no form. The forms of an
# anchor are tried only at a sign, from at most a bounded number of characters before it, and a form does not try again
# the characters that it has matched. So the search is linear in any text.

_JOINS = "_-."
_RARE = "JZKAG/~p"
"""Anchors of prefixes without a separator, the best one first."""

_AHEAD = 12
"""Most characters after a prefix that its sign checks: enough to rule out nearly all text that is no credential. Five
times as many after a prefix without a separator, which is frequent in base64."""

_FOLLOWING = "A-Za-z0-9_+/=.-"
"""Characters that may follow a prefix."""

_FIRST_DIGIT = 64
"""In a form that requires a digit, the sign looks for one among this many characters after the prefix; a longer run
needs none."""


@dataclass
class Form:
    """One credential's form. `back`: the most characters of it before the anchor. `around`: an assertion right after
    the anchor."""

    name: str
    anchor: str
    around: str
    back: int
    pattern: str
    before: str = "A-Za-z0-9"
    prefix: str = ""
    digit: bool = False
    least: int = 0

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        begins = f"(?:(?<![{self.before}])|{_PHRASES.text('escaped')})" if self.before else ""
        return re.compile(self.around), re.compile(begins + self.pattern)

    def find(self, text: str, anchor: int) -> tuple[Span | None, int]:
        """Return the credential at an anchor (None without one), and the offset up to which the form has searched."""
        around, pattern = self._compiled
        last = anchor - self.back if self.prefix else anchor
        starts = range(max(anchor - self.back, 0), last + 1) if around.match(text, anchor + 1) is not None else ()
        match = next(filter(None, (pattern.match(text, start) for start in starts)), None)
        if match is None:
            return None, anchor
        start, end = match.span(match.re.groups and 1)
        secret = text[start:end]
        rest = secret[len(self.prefix) :]
        if is_marked(secret) or (self.digit and (not _has_digit(rest) or _PHRASES["css_class"].fullmatch(rest))):
            return None, match.end()
        return Span(start, end, secret), match.end()


@cache
def forms() -> tuple[Form, ...]:
    table = lexicon.load("secrets")
    alphabets: Mapping[str, str] = table["alphabets"]
    made: list[Form] = []
    for source in table["sources"].values():
        for row in source.get("tokens", ()):
            made += [_prefixed(row, prefix, alphabets[row["alphabet"]]) for prefix in row["prefixes"]]
        made += [Form(**row) for row in source.get("patterns", ())]
    return tuple(made)


def _prefixed(row: Mapping[str, Any], prefix: str, alphabet: str) -> Form:
    """Return the form of one prefix. A short prefix must begin a word, because base64 contains it by accident; a long
    one need not."""
    least, exact, digit = row["least"], row.get("exact", False), row.get("digit", False)
    at = _anchor(prefix)
    literal, skipped, characters = re.escape(prefix), re.escape(prefix[at + 1 :]), f"[{alphabet}]"
    separated = any(separator in prefix for separator in _JOINS)
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
    around = (f"(?<={re.escape(prefix[: at + 1])})" if at else "") + ahead
    return Form(row["name"], prefix[at], around, at, literal + rest, before, prefix, digit, least)


def _anchor(prefix: str) -> int:
    """Return the place of the character to search for: the last separator, or the rarest of the others."""
    if prefix[-1] in _JOINS:
        return len(prefix) - 1
    found = max(map(prefix.rfind, _JOINS))
    return found if found > 0 else next(prefix.rfind(character) for character in _RARE if character in prefix)


@cache
def signs(*others: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the anchors, each with a regular expression that matches its signs and those of `others`.

    Forms with characters before the anchor share assertions on the last of these and on the following characters, which
    most places of ordinary text fail.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    led: defaultdict[str, list[Form]] = defaultdict(list)
    for anchor, around in others:
        groups[anchor].append(around)
    for form in forms():
        if form.prefix[: form.back]:
            led[form.anchor].append(form)
        else:
            groups[form.anchor].append(form.around)
    for anchor, found in led.items():
        least = min(_AHEAD, *(form.least for form in found))
        front = f"(?=[{_FOLLOWING}]{{{least}}})" if anchor in _JOINS else ""
        lasts = "".join(sorted({re.escape(form.prefix[form.back - 1]) for form in found}))
        arounds = "|".join(dict.fromkeys(form.around for form in found))
        groups[anchor].append(f"{front}(?<=[{lasts}]{re.escape(anchor)})(?:{arounds})")
    fronts = dict.fromkeys(_JOINS, f"(?=[{_FOLLOWING}]{{3}})")
    return tuple(
        (anchor, f"{re.escape(anchor)}{fronts.get(anchor, '')}(?:{'|'.join(dict.fromkeys(around))})")
        for anchor, around in groups.items()
    )


@cache
def _scanners() -> tuple[tuple[str, re.Pattern[str], Sequence[Form]], ...]:
    return tuple(
        (anchor, re.compile(sign), [form for form in forms() if form.anchor == anchor]) for anchor, sign in signs()
    )


def find_tokens(text: str) -> Iterator[Span]:
    """Yield credentials of vendors in a text, in no particular order. Spans may overlap."""
    for anchor, sign, candidates in _scanners():
        if anchor not in text:
            continue
        looked: dict[int, int] = {}
        for match in sign.finditer(text):
            place = match.start()
            for form in candidates:
                # A form is compiled where its prefix is.
                if place >= looked.get(id(form), 0) and text.endswith(form.prefix[: form.back + 1], 0, place + 1):
                    span, looked[id(form)] = form.find(text, place)
                    if span is not None:
                        yield span


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _is_token(text: str) -> bool:
    """Return True if a text is no word of prose (`Bearer authentication`) and no placeholder."""
    if is_placeholder(text):
        return False
    return _has_digit(text) or (len(text) >= 20 and text.lower() != text and text.upper() != text)


def _is_variable_secret(text: str) -> bool:
    """Return True if the value of a variable is no name, path, date or placeholder."""
    if is_placeholder(text) or _PHRASES["css_class"].fullmatch(text) or text.startswith(("/", ".", "~")):
        return False
    return _has_digit(text) and any(map(str.isalpha, text))


def _any_of(*literals: str) -> Callable[[str], bool]:
    return lambda text: any(literal in text for literal in literals)


class Shape(NamedTuple):
    """A shape of secrets. `hint` is a quick test that is false for most texts, `find` yields the secrets."""

    hint: Callable[[str], object]
    find: Callable[[str], Iterator[Span]]


def _row(row: Mapping[str, Any]) -> Shape:
    pattern, group = _PHRASES[row["pattern"]], row.get("group", 0)
    check = _CHECKS[row["check"]] if "check" in row else None

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            secret = match.group(group)
            if (check is None or check(secret)) and not is_marked(secret):
                yield Span(*match.span(group), secret)

    if row.get("assigns"):
        return Shape(lambda text: _ASSIGNMENT.search(text.lower()) is not None, find)
    return Shape(_any_of(*row["hints"]), find)


_ASSIGNMENT = re.compile(r"(?:key|token|secret|password|passwd)[\"'\\]{0,8}\s{0,4}[:=]")

_AWS_REACH = 256


def _find_aws(text: str) -> Iterator[Span]:
    """Yield the ids of AWS keys, and the secret shortly after each, which alone has no shape; a SHA-1 is none."""
    for key in _PHRASES["aws_id"].finditer(text):
        yield Span(*key.span(), key.group())
        for match in _PHRASES["aws_secret"].finditer(text, key.end(), key.end() + _AWS_REACH):
            if not _PHRASES["hexadecimal"].fullmatch(match.group()):
                yield Span(*match.span(), match.group())
                break


def _find_private_keys(text: str) -> Iterator[Span]:
    """PEM and PGP private keys, also one that was cut off before its end line. The bare header is no secret."""
    begins = list(_PHRASES["pem_begin"].finditer(text))
    limits = [*(begin.start() for begin in begins[1:]), len(text)]
    for begin, limit in zip(begins, limits, strict=False):
        place = begin.end(), limit
        end = _PHRASES["pem_end"].search(text, *place) or _PHRASES["pem_body"].match(text, *place)
        stop = end.end() if end is not None else begin.end()
        if _PHRASES["pem_content"].search(text, begin.end(), stop):
            yield Span(begin.start(), stop, text[begin.start() : stop])


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "digit": _has_digit,
    "encoded": lambda text: not is_placeholder(text) and (_has_digit(text) or "=" in text or text.lower() != text),
    "masked": lambda text: text.startswith("sk-") or _has_digit(text),
    "mixed": lambda text: _has_digit(text) and not is_placeholder(text) and not _PHRASES["file_path"].fullmatch(text),
    "real": lambda text: not is_placeholder(text),
    "token": _is_token,
    "variable": _is_variable_secret,
}
SHAPES: tuple[Shape, ...] = (
    Shape(lambda text: any(anchor in text and sign.search(text) for anchor, sign, _ in _scanners()), find_tokens),
    Shape(_any_of("AKIA", "ASIA"), _find_aws),
    Shape(_any_of("-----BEGIN "), _find_private_keys),
    *map(_row, _PHRASES.table("shapes")),
)


# --- a quick search ----------------------------------------------------------------------------------------------------
#
# Theory of operation. Every secret with a form, a shape or a name (`api_key`) has a few bytes beside it that are rare
# in ordinary traffic: a prefix before a long run of letters, a name before a colon. `harmless` searches only for those
# bytes. Each of its searches begins with one literal byte, which the pattern engine skips to at memory speed.
#
# False positives of these searches cost time, and a miss would leak a secret. So a harmless text holds no secret in itself,
# in a part of it, or in a JSON literal that it holds, at any depth. No search looks at the characters before a prefix or
# after a run, where an escape or the end of a fragment would make a difference. Names are searched in the text without
# white space, quotation marks, backslashes and non-ASCII characters: `"api_key": "`, `api_key = '` and `\"apiKey\":\"` are
# the same there.

# Characters that a pattern without regard to case takes for an ASCII letter (Unicode, CaseFolding and SpecialCasing).
_FOLDED = (("\u212a", b"k"), ("\u017f", b"s"), ("\u0130", b"i"), ("\u0131", b"i"))

_PLAIN = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ=", b"abcdefghijklmnopqrstuvwxyz:")
_BETWEEN = b" \t\n\v\f\r\x1c\x1d\x1e\x1f\"'\\" + bytes(range(0x80, 0x100))

_QUERY, _NAMES, _PACKAGE_KEYS, _USER = (
    re.compile(_PHRASES.text(name).encode()) for name in ("near_query", "near_name", "package_keys", "near_user")
)
_ZEROS = b"A" * 18


@cache
def _signs() -> tuple[tuple[bytes, re.Pattern[bytes]], ...]:
    structures = ((anchor, around) for anchor, around in _PHRASES.table("structures"))
    return tuple((anchor.encode(), re.compile(sign.encode())) for anchor, sign in signs(*structures))


def harmless(text: str) -> bool:
    """Return True if `text` surely holds no secret with a shape or under a name of secrets."""
    raw = text.encode("utf-8", "surrogatepass")
    for first, sign in _signs():
        if first in raw and sign.search(raw) is not None:
            return False
    if len(raw) != len(text):
        for character, letter in _FOLDED:
            if character in text:
                raw = raw.replace(character.encode(), letter)
    if b"@" in raw and _USER.search(raw) is not None:
        return False
    if b"=" in raw and _QUERY.search(raw) is not None:
        return False
    if (b"oy2" in raw or b"cio" in raw) and _PACKAGE_KEYS.search(raw) is not None:
        return False
    if b"SSWS" in raw or b"key-data" in raw or _ZEROS in raw:
        return False
    if b"machine" in raw and b"login" in raw and b"password" in raw:
        return False
    plain = raw.translate(_PLAIN, _BETWEEN)
    return b"bearer" not in plain and _NAMES.search(plain) is None


_DEEPEST = 5
LITERAL = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+(?:\\\Z)?)(?:"|\Z)', re.DOTALL)
"""A JSON string; the last one of a truncated document may lack its end."""

_COLON = re.compile(r"\s*:\s*")
_PAIR = re.compile(r"""(["'])([\w.-]{2,64})\1\s{0,8}:\s{0,8}(["'])""")
_VALUES = {mark: re.compile(rf"(?:[^{mark}\\\r\n]|\\.|\\\Z)*+", re.DOTALL) for mark in "\"'"}
"""The rest of a quoted value after its quotation mark, up to the next one or to the end of the line."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Scope(NamedTuple):
    """The parts of a search: shapes, known secrets, and values under names of secrets (`api_key`)."""

    shapes: tuple[Shape, ...]
    known: tuple[str, ...]
    pairs: bool

    def __bool__(self) -> bool:
        return bool(self.shapes or self.known or self.pairs)

    @classmethod
    def of(cls, text: str, known: tuple[str, ...]) -> Scope:
        """Return the scope of a document, by quick searches in its raw text."""
        nothing = harmless(text)
        if not nothing and _PHRASES["hiding"].search(text):
            return cls(SHAPES, known, True)
        nearby = tuple([secret for secret in known if is_near(secret, text)])
        if nothing:
            return cls((), nearby, False)
        shapes = tuple(shape for shape in SHAPES if shape.hint(text))
        return cls(shapes, nearby, _PHRASES["pair_hint"].search(text.lower()) is not None)


def find_in_text(text: str, scope: Scope, depth: int = 0) -> list[Span]:
    """Return secrets in a text: sorted spans that do not overlap."""
    spans = [span for hint, find in scope.shapes if hint(text) for span in find(text)]
    for secret in scope.known:
        spans += _find_known(text, secret)
    if depth < _DEEPEST and text.lstrip()[:1] in ("{", "["):
        spans += _literal_spans(text, scope, depth + 1)
    if scope.pairs:
        spans += _find_pairs(text)
    return merge(spans)


def find_in_json(text: str, scope: Scope) -> list[Span]:
    """Return secrets in a JSON document, whole or cut off: sorted spans inside of literals, without overlaps."""
    return merge(_literal_spans(text, scope, 0))


def merge(spans: list[Span]) -> list[Span]:
    """Return spans sorted and without overlaps: the first of two that overlap grows to cover both."""
    if len(spans) < 2:
        return spans
    spans.sort(key=lambda span: (span.start, -span.end))
    merged = [spans[0]]
    for span in spans[1:]:
        last = merged[-1]
        if span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            merged[-1] = Span(last.start, span.end, last.secret + span.secret[last.end - span.end :])
    return merged


def _literal_spans(text: str, scope: Scope, depth: int) -> list[Span]:
    spans: list[Span] = []
    name, value_start = "", -1
    for literal in LITERAL.finditer(text):
        start, end = literal.span(1)
        named = name if start == value_start else ""
        colon = _COLON.match(text, literal.end()) if end < literal.end() else None
        if colon is not None:
            name, value_start = text[start:end], colon.end() + 1
        if named or end - start > 2:
            spans += _in_literal(text[start:end], start, named, scope, depth)
    return spans


def _in_literal(raw: str, offset: int, name: str, scope: Scope, depth: int) -> Iterator[Span]:
    plain = unescape(raw)
    if not (found := _in_value(plain, name, scope, depth)):
        return
    mapped, places = unescape_mapped(raw)
    for span in found if mapped == plain else _in_value(mapped, name, scope, depth):
        yield Span(offset + places[span.start], offset + places[span.end], span.secret)


def _in_value(plain: str, name: str, scope: Scope, depth: int) -> list[Span]:
    span = _secret_value(name, plain, 0) if name and scope.pairs else None
    return [span] if span is not None else find_in_text(plain, scope, depth)


def _secret_value(name: str, value: str, offset: int) -> Span | None:
    """Return the secret in the value of the key `name`: the value without its scheme word."""
    scheme, secret = split_scheme(value)
    return Span(offset + len(scheme), offset + len(value), secret) if holds_secret(name, secret) else None


def _find_pairs(text: str) -> Iterator[Span]:
    """Yield secrets in pairs like `"api_key": "…"`: in prose, in code, in a Python dictionary, in broken JSON."""
    position = 0
    while (match := _PAIR.search(text, position)) is not None:
        # The quotation mark that opens the value may also open the next key of a broken document.
        position = match.end() - 1
        if _SECRET_NAME.fullmatch(_normal(match[2])) is None and match[2] != "token":
            continue
        value = _VALUES[match[3]].match(text, match.end())
        if value is not None and (span := _secret_value(match[2], value[0], value.start())) is not None:
            yield span
        position = value.end() if value is not None else match.end()


def _find_known(text: str, secret: str) -> Iterator[Span]:
    """Yield the places of a header's secret; without digits it may be a word (`ollama-local`) and must stand apart."""
    word = secret.replace("-", "").replace("_", "").isalpha()
    position = text.find(secret)
    while position >= 0:
        end = position + len(secret)
        if not word or not (text[position - 1 : position].isalnum() or text[end : end + 1].isalnum()):
            yield Span(position, end, secret)
        position = text.find(secret, end)


def is_near(secret: str, text: str) -> bool:
    """Return True if a known secret may be in a text or in its decoded JSON literals."""
    return secret in text or not secret.isascii() or '"' in secret or "\\" in secret


def unescape(raw: str) -> str:
    """Return the text of a JSON literal without its quotation marks; the same object if nothing is escaped."""
    if "\\" not in raw:
        return raw
    try:
        return str(orjson.loads(f'"{raw}"'))
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return unescape_mapped(raw)[0]


def unescape_mapped(raw: str) -> tuple[str, list[int]]:
    """Return the text of a JSON literal, and the offset in `raw` of each of its characters and of its end.

    An invalid escape is kept. Two halves of a surrogate pair are one character.
    """
    characters: list[str] = []
    places: list[int] = []
    position = 0
    for match in _ESCAPE.finditer(raw):
        characters += raw[position : match.start()]
        places += range(position, match.start())
        position = match.end()
        code, simple = match[1], match[2]
        character = chr(int(code, 16)) if code else _ESCAPED.get(simple, simple or "\\")
        if characters and code and "\udc00" <= character <= "\udfff" and "\ud800" <= characters[-1] <= "\udbff":
            characters[-1] = (characters[-1] + character).encode("utf-16", "surrogatepass").decode("utf-16")
            continue
        characters.append(character)
        places.append(match.start())
    characters += raw[position:]
    places += range(position, len(raw) + 1)
    return "".join(characters), places
