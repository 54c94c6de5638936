"""Redaction of credentials in records, log lines and messages.

A mark such as `[redacted:1f3a9c2e]` replaces a whole secret. Its digits are an HMAC-SHA256 of the secret under a key of the
process: one key in a header, a query and a body gets one mark, and the secret cannot be found by guessing. The proxies of
a fleet share a key in WIRELINT_REDACTION_KEY, so that a client has one mark in all their captures. Every byte around a
secret stays. A second redaction changes nothing.

The redactor remembers some of the secrets in the headers and URLs of requests, and removes them from all other texts, such
as an error message that quotes the key.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hmac
import os
import secrets as randomness
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar
from urllib.parse import quote, unquote_plus

from wirelint.capture.record import Headers, Record, Sent
from wirelint.capture.secrets import Scope, find_in_text, find_in_url, is_marked, is_secret_header, split_scheme
from wirelint.capture.streams import Body, ByteEdit, StreamStrings, find_in_body, is_clean
from wirelint.fix import AppliedFix
from wirelint.jsonvalues import with_strings
from wirelint.model import Json

Other = TypeVar("Other")

_SHORTEST_KNOWN = 8
_SHORTEST_COOKIE = 16
_REMEMBERED = 64
_SHORTEST_TEXT = 6
_GAP = "…"
"""Replaces the middle of a long text in an excerpt. An excerpt may cut a secret in two."""
_SHORTEST_PIECE = 4
# Keys that users set for a local server that needs none. They are words of ordinary texts.
_DUMMIES = frozenset({"lm-studio", "not-needed", "notneeded", "no-key-required", "dummy-key", "anthropic", "openrouter",
                      "undefined", "placeholder", "anything", "localhost", "not-required", "vllm-local"})  # fmt: skip


def _header_secrets(name: str, value: str) -> list[str]:
    """Return the secrets in a header: each cookie, the key after its scheme (`Bearer …`), the password of `Basic`."""
    if "cookie" in name.lower():
        values = [crumb.partition("=")[2].strip() for crumb in value.split(";")]
        return [crumb for crumb in values if len(crumb) >= _SHORTEST_COOKIE]
    scheme, secret = split_scheme(value)
    secret = secret.strip()
    if scheme.strip().lower() != "basic":
        return [secret]
    try:
        plain = base64.b64decode(secret, validate=True).decode()
    except ValueError:
        return [secret]
    return [secret, plain.partition(":")[2]]


class Redactor:
    """Replaces secrets by marks. Safe to use from several threads. With `enabled=False` everything passes unchanged."""

    def __init__(self, key: bytes | None = None, enabled: bool = True) -> None:
        self.enabled = enabled
        self._key = key if key is not None else new_key()
        self._known: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def mark(self, secret: str) -> str:
        """Return the mark of a secret, equal for equal secrets of this process."""
        digest = hmac.digest(self._key, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"[redacted:{digest.hex()[:8]}]"

    def learn(self, headers: Headers, url: str = "") -> None:
        """Remember the secrets in the headers and the URL of a request, to find them in all later texts."""
        if not self.enabled:
            return
        found = [
            one for name, value in headers if is_secret_header(name, value) for one in _header_secrets(name, value)
        ]
        found += [spelling for _, _, secret in find_in_url(url) for spelling in (secret, unquote_plus(secret))]
        with self._lock:
            for secret in found:
                # Texts are not searched for short secrets, for words of prose, and for marks.
                if len(secret) >= _SHORTEST_KNOWN and secret.lower() not in _DUMMIES and not is_marked(secret):
                    spellings = dict.fromkeys((secret, quote(secret, safe="", errors="surrogatepass")))
                    new = [spelling for spelling in spellings if spelling not in self._known]
                    self._known = (*self._known, *new)[-_REMEMBERED:]

    def url(self, url: str) -> str:
        """Return a URL without its user, its secret parameters, and keys in its path."""
        return self.text(self._address(url)) if self.enabled else url

    def body(self, body: bytes | None) -> bytes | None:
        """Return a body without secrets; the same object if there are none."""
        return self._body(body, set())[0] if self.enabled else body

    def text(self, text: str) -> str:
        """Return a log line, an error message or a note without secrets."""
        if not self.enabled or len(text) < _SHORTEST_TEXT:
            return text
        pieces: list[str] = []
        position = 0
        for span in find_in_text(text, Scope.of(text, self._known)):
            pieces += text[position : span.start], self.mark(span.secret)
            position = span.end
        return "".join([*pieces, text[position:]]) if pieces else text

    def json(self, value: Json) -> Json:
        """Return a decoded value without secrets in its strings, for example findings that quote their evidence."""
        return with_strings(value, self.text)

    def record(
        self, record: Record, received: StreamStrings | None = None, delivered: StreamStrings | None = None
    ) -> Record:
        """Return a record without secrets. The sizes of its chunks add up to the redacted body.

        `received`, `delivered`: the strings of the received and of the delivered reply, from the sessions that have
        read them. Without them, or if they are incomplete, a body is parsed here.
        """
        if not self.enabled:
            return record
        self.learn(record.request_headers, record.url)
        url = self._address(record.url)
        sent = [side for side in (record.forwarded, record.delivered) if side is not None]
        fields = dict.fromkeys(
            [*record.request_headers, *record.response_headers, *(one for side in sent for one in side.headers)]
        )
        values = [value for name, value in fields if not is_secret_header(name, value)]
        # One quick search of all short texts together: searching each of 30 headers takes ten times as long.
        texts = [text for fix in record.fixes for text in (fix.title, fix.before, fix.after)]
        is_clear = not Scope.of("\n".join([url, *values, *texts]), self._known)

        secrets: set[str] = set()
        body, edits = self._body(record.response_body, secrets, received)
        chunks = record.chunks
        if edits and sum(size for _, size in chunks) == len(record.response_body or b""):
            chunks = _shift(chunks, edits)
        request_body, _ = self._body(record.request_body, secrets)
        forwarded = self._sent(record.forwarded, secrets, is_clear=is_clear)
        reply = self._sent(record.delivered, secrets, delivered, is_clear=is_clear)
        return record.but(
            url=url if is_clear else self.text(url),
            request_headers=self._fields(record.request_headers, is_clear=is_clear),
            request_body=request_body,
            response_headers=self._fields(record.response_headers, is_clear=is_clear),
            response_body=body,
            chunks=chunks,
            error=self.text(record.error) if record.error is not None else None,
            forwarded=forwarded,
            delivered=reply,
            fixes=record.fixes if is_clear and not secrets else self._fixes(record.fixes, secrets),
            annotations={name: self.json(value) for name, value in record.annotations.items()},
        )

    def _body(
        self, body: bytes | None, secrets: set[str], strings: StreamStrings | None = None
    ) -> tuple[bytes | None, list[ByteEdit]]:
        """Return the body without its secrets, and the places of the changes. The secrets are added to `secrets`."""
        if not body:
            return body, []
        if strings is not None and strings.covers(body) and is_clean(body, strings, self._known):
            return body, []
        parsed = Body(body)
        edits = find_in_body(parsed, self._known)
        secrets.update([edit.secret for edit in edits if edit.secret])
        return parsed.apply(edits, self.mark) if edits else (body, [])

    def _sent(
        self, sent: Sent | None, secrets: set[str], strings: StreamStrings | None = None, *, is_clear: bool
    ) -> Sent | None:
        if sent is None:
            return None
        return Sent(self._fields(sent.headers, is_clear=is_clear), self._body(sent.body, secrets, strings)[0])

    def _fixes(self, fixes: tuple[AppliedFix, ...], found: set[str]) -> tuple[AppliedFix, ...]:
        """Return fixes without the secrets of the bodies: a fix may quote a value without the name that shows it."""
        secrets = sorted(found, key=len, reverse=True)
        quoted = functools.partial(self._quoted, secrets=secrets)
        return tuple(
            dataclasses.replace(fix, title=quoted(fix.title), before=quoted(fix.before), after=quoted(fix.after))
            for fix in fixes
        )

    def _quoted(self, text: str, secrets: list[str]) -> str:
        """Return an excerpt of a body without the secrets of the body, also where the excerpt cuts one."""
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

    def _fields(self, headers: Headers, *, is_clear: bool) -> Headers:
        """Header fields without secrets. `is_clear`: only fields with names of secrets hold any."""
        fields: list[tuple[str, str]] = []
        for name, value in headers:
            if is_secret_header(name, value):
                scheme, secret = split_scheme(value) if "cookie" not in name.lower() else ("", value)
                fields.append((name, value if is_marked(secret) else scheme + self.mark(secret)))
            else:
                fields.append((name, value if is_clear else self.text(value)))
        return tuple(fields)

    def _address(self, url: str) -> str:
        """Return a URL without its user and its secret parameters."""
        pieces: list[str] = []
        position = 0
        for start, end, secret in find_in_url(url):
            if not is_marked(url[start:end]):
                mark = self.mark(unquote_plus(secret))
                # Brackets would make an IPv6 address of the mark.
                pieces += url[position:start], quote(mark, safe="") if url[end : end + 1] == "@" else mark
                position = end
        return "".join([*pieces, url[position:]])


def redacted(key: bytes, items: Iterable[Record | Other]) -> Iterator[Record | Other]:
    """Yield items of a reader, the records without secrets. Only secrets of these records are remembered."""
    redactor = Redactor(key)
    for item in items:
        yield redactor.record(item) if isinstance(item, Record) else item


def new_key() -> bytes:
    """Return the key for marks of a process: that of its fleet, else a random one."""
    return os.environ.get("WIRELINT_REDACTION_KEY", "").encode() or randomness.token_bytes(32)


def _shift(chunks: tuple[tuple[float, int], ...], edits: list[ByteEdit]) -> tuple[tuple[float, int], ...]:
    """Return the chunks with their sizes after the edits. A mark belongs to the chunk in which its secret begins."""
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
