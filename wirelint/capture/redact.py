"""Takes credentials out of what is written to disk or logged, and keeps equal ones recognisable as equal.

A secret is replaced as a whole by `[redacted:1f3a9c2e]`. The digits are an HMAC-SHA256 of the secret under a key that
lives as long as the process: the same key in a header, a query and a body gets the same mark, and nobody can find it
by trying. Everything around a secret stays as it was, to the byte. Redacting twice changes nothing.

Secrets that a request carries in its headers or its URL are remembered (a bounded number of them) and are taken out
wherever else they turn up, such as the error message that repeats the key it refuses.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hmac
import re
import secrets as randomness
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from wirelint.capture.fragments import Edit, array_edits, lines_edits, looks_like_lines, stream_edits
from wirelint.capture.literals import Scope, find_in_json, find_in_text, is_json, is_near, merge
from wirelint.capture.messages import as_events, is_messages, put_back
from wirelint.capture.record import Headers, Record, Sent
from wirelint.capture.repeats import Repeats
from wirelint.capture.secrets import is_marked, is_secret_header, is_secret_parameter, split_scheme
from wirelint.fix import AppliedFix
from wirelint.model import Json
from wirelint.wire import looks_like_events
from wirelint.wire.json_array import looks_like_array

# The secrets that a request carries in its headers and its URL, to be known wherever else they turn up.

_SHORTEST_KNOWN = 8
_SHORTEST_COOKIE = 16
# What people give a local server that wants no key; words of ordinary text, not worth taking out of it.
_DUMMIES = frozenset({"lm-studio", "not-needed", "notneeded", "no-key-required", "dummy-key", "anthropic", "openrouter",
                      "undefined", "placeholder", "anything", "localhost", "not-required", "vllm-local"})  # fmt: skip
USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)@")


@lru_cache(maxsize=64)
def carried(name: str, value: str) -> list[str]:
    """The secrets in one header of a request that holds some, each by itself."""
    if "cookie" in name.lower():
        values = [crumb.partition("=")[2].strip() for crumb in value.split(";")]
        return [crumb for crumb in values if len(crumb) >= _SHORTEST_COOKIE]
    scheme, secret = split_scheme(value)
    secret = secret.strip()
    if scheme.strip().lower() != "basic":
        return [secret]
    try:
        plain = base64.b64decode(secret, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return [secret]
    return [secret, plain.partition(":")[2]]


def carried_by_url(url: str) -> list[str]:
    """The secrets in a URL: of its user, and of its parameters, as they stand there and as they are meant."""
    if "@" not in url and "?" not in url:
        return []
    found: list[str] = []
    if match := USERINFO.match(url):
        found.append(match[2].partition(":")[2] or match[2])
    for parameter in url.partition("?")[2].partition("#")[0].split("&"):
        name, _, value = parameter.partition("=")
        if is_secret_parameter(unquote_plus(name)):
            found.append(value)
    plain = [unquote_plus(secret) for secret in found]
    return found + [secret for secret in plain if secret not in found]


def is_worth_knowing(secret: str) -> bool:
    """Return True if a secret is to be looked for in texts: it is not too short, not a word of prose, and not a mark."""
    return len(secret) >= _SHORTEST_KNOWN and secret.lower() not in _DUMMIES and not is_marked(secret)


_REMEMBERED = 64
_SHORTEST_TEXT = 6
_GAP = "…"
"""Where `excerpt` left out the middle of a text, and may have cut a secret in two."""
_SHORTEST_PIECE = 4


class _ByteEdit(NamedTuple):
    """Bytes `start` to `end` of a body were replaced by `size` bytes."""

    start: int
    end: int
    size: int


_Field = tuple[str, str]


class _Heads(NamedTuple):
    """A URL without secrets, what each field of some headers is without, and whether there were none but in the values of
    headers whose names tell of them."""

    url: str
    made: dict[_Field, _Field]
    clear: bool

    def of(self, headers: Headers) -> Headers:
        return tuple([self.made[field] for field in headers])


class Redactor:
    """Replaces secrets by marks. Safe to use from several threads. `enabled=False` passes everything on as it is."""

    def __init__(self, key: bytes | None = None, enabled: bool = True) -> None:
        self.enabled = enabled
        self._key = key if key is not None else randomness.token_bytes(32)
        self._known: tuple[str, ...] = ()
        self._repeats = Repeats()
        self._made: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def mark(self, secret: str) -> str:
        """What stands for `secret` in this run."""
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"[redacted:{digest.hex()[:8]}]"

    def learn(self, headers: Headers, url: str = "") -> None:
        """Remembers the secrets that a request carries, to take them out wherever they turn up from now on."""
        if not self.enabled:
            return
        found = [secret for name, value in headers if is_secret_header(name, value) for secret in carried(name, value)]
        found += carried_by_url(url)
        news = [secret for secret in found if secret not in self._known and is_worth_knowing(secret)]
        if not news:
            return
        with self._lock:
            for secret in news:
                spellings = {secret: None, quote(secret, safe="", errors="surrogatepass"): None}
                new = tuple(spelling for spelling in spellings if spelling not in self._known)
                self._known = (*self._known, *new)[-_REMEMBERED:]

    def headers(self, headers: Headers) -> Headers:
        if not self.enabled:
            return headers
        self.learn(headers)
        return self._headers(headers)

    def url(self, url: str) -> str:
        """A URL without its user, its secret parameters, and what looks like a key in its path."""
        return self._plain(self._address(url)) if self.enabled else url

    def _address(self, url: str) -> str:
        """A URL without its user and its secret parameters."""
        if "@" not in url and "?" not in url:
            return url
        if (match := USERINFO.match(url)) and not is_marked(match[2]):
            secret = unquote_plus(match[2].partition(":")[2] or match[2])
            # Brackets in this place would make an IPv6 address of it.
            mark = quote(self.mark(secret), safe="")
            url = f"{match[1]}{mark}@{url[match.end() :]}"
        head, question, tail = url.partition("?")
        query, sharp, fragment = tail.partition("#")
        if question:
            query = "&".join(self._parameter(parameter) for parameter in query.split("&"))
        return f"{head}{question}{query}{sharp}{fragment}"

    def body(self, body: bytes | None, streamed: bool | None = None) -> bytes | None:
        """A body without secrets; the very same object when there was none. `streamed` None: told by its first bytes."""
        if not body or not self.enabled:
            return body
        return self._redacted(body, streamed)[0]

    def text(self, text: str) -> str:
        """A log line, an error message, a note."""
        return self._plain(text) if self.enabled else text

    def json(self, value: Json) -> Json:
        """A decoded value with all its strings redacted, such as the findings that quote their evidence."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {name: self.json(item) for name, item in value.items()}
            case list():
                return [self.json(item) for item in value]
            case _:
                return value

    def record(self, record: Record) -> Record:
        """All of an exchange. The chunks go on adding up to the body."""
        if not self.enabled:
            return record
        self.learn(record.request_headers, record.url)
        heads = self._heads(record)
        body, chunks = record.response_body, record.chunks
        secrets: set[str] = set()
        if body:
            body, edits = self._redacted(body, None, secrets)
            if edits and sum(size for _, size in chunks) == len(record.response_body or b""):
                chunks = _shift(chunks, edits)
        annotations = {name: self.json(value) for name, value in record.annotations.items()}
        return record.but(
            url=heads.url,
            request_headers=heads.of(record.request_headers),
            request_body=self._body(record.request_body, secrets, streamed=False),
            response_headers=heads.of(record.response_headers),
            response_body=body,
            chunks=chunks,
            error=self.text(record.error) if record.error is not None else None,
            forwarded=self._sent(record.forwarded, heads, secrets, streamed=False),
            delivered=self._sent(record.delivered, heads, secrets, streamed=None),
            fixes=record.fixes if heads.clear and not secrets else self._repairs(record.fixes, secrets),
            annotations=annotations,
        )

    def _body(self, body: bytes | None, secrets: set[str], *, streamed: bool | None) -> bytes | None:
        return self._redacted(body, streamed, secrets)[0] if body else body

    def _sent(self, sent: Sent | None, heads: _Heads, secrets: set[str], *, streamed: bool | None) -> Sent | None:
        if sent is None:
            return None
        return Sent(heads.of(sent.headers), self._body(sent.body, secrets, streamed=streamed))

    def _repairs(self, repairs: tuple[AppliedFix, ...], found: set[str]) -> tuple[AppliedFix, ...]:
        """Fixes without the secrets of the bodies, whole or cut short. A fix may leave out what names a secret there."""
        if not found and not Scope.of("\n".join(_said(repairs)), self._known):
            return repairs
        secrets = sorted(found, key=len, reverse=True)
        fixes: list[AppliedFix] = []
        for fix in repairs:
            title, before, after = (self._clean(text, secrets) for text in (fix.title, fix.before, fix.after))
            fixes.append(dataclasses.replace(fix, title=title, before=before, after=after))
        return tuple(fixes)

    def _clean(self, text: str, secrets: list[str]) -> str:
        for secret in secrets:
            text = text.replace(secret, self.mark(secret))
        head, gap, tail = text.partition(_GAP)
        if gap:
            for secret in secrets:
                for size in range(len(secret) - 1, _SHORTEST_PIECE - 1, -1):
                    if head.endswith(secret[:size]):
                        head = head[:-size] + self.mark(secret)
                    if tail.startswith(secret[-size:]):
                        tail = self.mark(secret) + tail[size:]
        return self.text(head + gap + tail)

    def _heads(self, record: Record) -> _Heads:
        """The URL and the headers of all sides, which are looked at in one go, and with them what was said of repairs."""
        fields = dict.fromkeys([*record.request_headers, *record.response_headers])
        for sent in (record.forwarded, record.delivered):
            if sent is not None:
                fields.update(dict.fromkeys(sent.headers))
        url = self._address(record.url)
        made, clear = self._marked(fields, url, *_said(record.fixes))
        return _Heads(url if clear else self._plain(url), made, clear)

    def _headers(self, headers: Headers) -> Headers:
        made, _ = self._marked(headers)
        return tuple([made[field] for field in headers])

    def _marked(self, fields: Iterable[_Field], *others: str) -> tuple[dict[_Field, _Field], bool]:
        """What fields are without secrets, and whether there are none in these and in other texts but those that a header's
        name tells."""
        secret = {field: is_secret_header(*field) for field in fields}
        said = [*others, *[field[1] for field, named in secret.items() if not named]]
        clear = not Scope.of("\n".join(said), self._known)
        made: dict[_Field, _Field] = {}
        for field, named in secret.items():
            name, value = field
            if named:
                made[field] = name, self._secret_header(name, value)
            else:
                made[field] = field if clear else (name, self._plain(value))
        return made, clear

    def _secret_header(self, name: str, value: str) -> str:
        """A header that holds a secret, without it. The same ones come with every request."""
        made = self._made.get((name, value))
        if made is None:
            scheme, secret = split_scheme(value) if "cookie" not in name.lower() else ("", value)
            made = value if is_marked(secret) else scheme + self.mark(secret)
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[name, value] = made
        return made

    def _parameter(self, parameter: str) -> str:
        name, equals, value = parameter.partition("=")
        if not value or not is_secret_parameter(unquote_plus(name)) or is_marked(value):
            return parameter
        return f"{name}{equals}{self.mark(unquote_plus(value))}"

    def _plain(self, text: str) -> str:
        if len(text) < _SHORTEST_TEXT:
            return text
        spans = find_in_text(text, Scope.of(text, self._known))
        if not spans:
            return text
        pieces: list[str] = []
        position = 0
        for span in spans:
            pieces += text[position : span.start], self.mark(span.secret)
            position = span.end
        return "".join([*pieces, text[position:]])

    def _redacted(
        self, body: bytes, streamed: bool | None, secrets: set[str] | None = None
    ) -> tuple[bytes, list[_ByteEdit]]:
        """A body without its secrets, and where they were. They are added to `secrets`."""
        edits = self._edits(body, streamed)
        if secrets is not None:
            secrets.update([edit.secret for edit in edits if edit.secret])
        if not edits:
            return body, []
        if not is_messages(body):
            return _apply(body, edits, self.mark)
        events, _ = _apply(as_events(body), edits, self.mark)
        made, place = [], 0
        pieces: list[bytes] = []
        for before, after in put_back(body, events):
            if after is not before:
                made.append(_ByteEdit(place, place + len(before), len(after)))
            place += len(before)
            pieces.append(after)
        return b"".join(pieces), made

    def _edits(self, body: bytes, streamed: bool | None) -> list[Edit]:
        """What is to be changed in the text of a body: of its events, where it is a stream of messages."""
        if is_messages(body):
            return stream_edits(as_events(body).decode("utf-8", "surrogateescape"), self._known)
        text = body.decode("utf-8", "surrogateescape")
        known = self._known
        start = text.lstrip("\ufeff \t\r\n")[:1]
        if start in ("{", "["):
            if streamed is False:  # replies do not repeat each other
                if self._repeats.harmless(text) and not [secret for secret in known if is_near(secret, text)]:
                    return []
            elif looks_like_array(body[:256]):
                return array_edits(text, known)
            elif looks_like_lines(text):
                return lines_edits(text, known)
            return _document_edits(text, known)
        if streamed or (streamed is None and looks_like_events(body[:64])):
            return stream_edits(text, known)
        scope = Scope.of(text, known)
        return [Edit(*span) for span in find_in_text(text, scope)] if scope else []


def _document_edits(text: str, known: tuple[str, ...]) -> list[Edit]:
    scope = Scope.of(text, known)
    if not scope:
        return []
    spans = find_in_json(text, scope)
    if not is_json(text):
        # Not a document after all, or one that was cut off: what stands between its literals counts as well.
        spans = merge([*spans, *find_in_text(text, scope)])
    return [Edit(*span) for span in spans]


def _apply(body: bytes, edits: list[Edit], mark: Callable[[str], str]) -> tuple[bytes, list[_ByteEdit]]:
    """The body with its edits made, and where they were."""
    text = body.decode("utf-8", "surrogateescape")
    pieces: list[bytes] = []
    made: list[_ByteEdit] = []
    position = place = 0
    for edit in edits:
        between = text[position : edit.start].encode("utf-8", "surrogateescape")
        removed = len(text[edit.start : edit.end].encode("utf-8", "surrogateescape"))
        replacement = mark(edit.secret).encode() if edit.secret is not None else b""
        pieces += between, replacement
        place += len(between)
        made.append(_ByteEdit(place, place + removed, len(replacement)))
        place += removed
        position = edit.end
    pieces.append(text[position:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces), made


def _shift(chunks: tuple[tuple[float, int], ...], edits: list[_ByteEdit]) -> tuple[tuple[float, int], ...]:
    """Sizes of the chunks after the edits. A mark belongs to the chunk in which its secret began."""
    shifted: list[tuple[float, int]] = []
    end = before = grown = 0
    number = 0
    for time, size in chunks:
        end += size
        while number < len(edits) and edits[number].end <= end:
            grown += edits[number].size - (edits[number].end - edits[number].start)
            number += 1
        after = end + grown
        if number < len(edits) and edits[number].start < end:
            after = edits[number].start + grown + edits[number].size
        shifted.append((time, after - before))
        before = after
    return tuple(shifted)


def _said(repairs: Iterable[AppliedFix]) -> list[str]:
    """The texts of repairs."""
    return [text for fix in repairs for text in (fix.title, fix.before, fix.after)]
