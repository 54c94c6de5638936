"""What is a secret and what is none, in every place where one can stand."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import some
from tests.capture.test_tokens import TABLE
from tests.selection import in_batches
from wirelint.capture.format import encode
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.secrets import MARK

R = Redactor(b"a key for the tests")
KEY = "sk-proj-Zq81LmN0pXv72RtYc5Wb"
M = R.mark(KEY)


def split_secrets(text: str, redactor: Redactor) -> tuple[str, str]:
    """A value whose secrets stand between « and », and the value with their marks."""
    return text.replace("«", "").replace("»", ""), re.sub("«([^»]*)»", lambda match: redactor.mark(match[1]), text)


@in_batches(("name", "value"), TABLE["headers"])
def test_headers(name: str, value: str) -> None:
    plain, expected = split_secrets(value, R)
    record = Redactor(b"a key for the tests").record(Record("1", "POST", "http://h/", ((name, plain),)))
    assert record.request_headers == ((name, expected),)


URLS = [
    *(split_secrets(url, R) for url in TABLE["urls"]),
    ("https://h/x?access_token=a%2Bb#top", f"https://h/x?access_token={R.mark('a+b')}#top"),
    ("https://bob:hunter2@h:8443/x", f"https://%5Bredacted%3A{R.mark('hunter2')[10:18]}%5D@h:8443/x"),
]


@in_batches(("url", "expected"), URLS)
def test_urls(url: str, expected: str) -> None:
    assert R.url(url) == expected
    assert R.url(R.url(url)) == R.url(url)


TEXTS = {name: (row[0], row[1] if len(row) > 1 else None) for name, row in TABLE["texts"].items()}


@in_batches(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_text(text: str, expected: str | None) -> None:
    redacted = R.text(text)
    assert MARK.sub("*", redacted).replace(M, "*") == (expected or text)
    assert R.text(redacted) == redacted


@in_batches(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_text_in_json(text: str, expected: str | None) -> None:
    """The same inside a document, with everything escaped that may be, and once more in the arguments of a call."""
    for body in (
        _escaped(text),
        json.dumps({"content": text}).replace("/", "\\/"),
        json.dumps({"a": json.dumps({"b": text})}),
    ):
        redacted = some(R.body(body.encode()))
        if expected is None:
            assert redacted == body.encode()
            continue
        value = json.loads(redacted)
        found = value["content"] if "content" in value else json.loads(value["a"])["b"]
        assert MARK.sub("*", found) == MARK.sub("*", expected)
        assert R.body(redacted) is redacted


def _escaped(text: str) -> str:
    return '{"content": "' + "".join(f"\\u{ord(character):04x}" for character in text) + '"}'


VALUES = [(*row, True) for row in TABLE["secret_members"]] + [(*row, False) for row in TABLE["plain_members"]]


@in_batches(("name", "value", "secret"), VALUES)
def test_json_keys(name: str, value: str, secret: bool) -> None:
    for body in (json.dumps({"a": 1, name: value, "z": "end"}), json.dumps({"arguments": json.dumps({name: value})})):
        redacted = some(R.body(body.encode()))
        assert (redacted != body.encode()) is secret
        assert json.loads(redacted).keys() == json.loads(body).keys()
        assert MARK.search(redacted.decode()) is not None or not secret


def test_schemas_of_tools_stay() -> None:
    """A parameter named `password` is no password."""
    schema = {"properties": {"password": {"type": "string", "description": "d"}, "api_key": {"type": "string"}}}
    body = json.dumps(
        {"tools": [{"parameters": {**schema, "required": ["password", "api_key"]}}], "secret": 5}
    ).encode()
    assert R.body(body) is body


def test_a_clean_body_is_the_same_object() -> None:
    for body in (b'{"model":"m","max_tokens":5}', b"data: {}\n\n", b"plain", b"\xff\xfe\x00", b"", b'{"a":"\xff"}'):
        assert R.body(body) is body
    assert R.body(None) is None


def test_equal_secrets_have_equal_marks() -> None:
    redactor = Redactor()
    record = redactor.record(
        Record(
            "1", "POST", f"https://h/x?key={KEY}",
            (("authorization", f"Bearer {KEY}"), ("x-api-key", KEY)),
            json.dumps({"api_key": KEY, "messages": [f"my key is {KEY}"]}).encode(),
            401, (), f'{{"error":"bad key {KEY}"}}'.encode(), error=f"refused {KEY}",
        )
    )  # fmt: skip
    assert set(MARK.findall(encode(record).decode())) == {redactor.mark(KEY)}
    assert redactor.mark(KEY) != Redactor().mark(KEY), "the digits can be guessed back"


@pytest.mark.parametrize("secret", ["correct-horse-battery", 'pässwörd with "quotes" \\', "0123456789", "a/b+c/d+e/f="])
def test_a_secret_of_the_headers_is_found_everywhere(secret: str) -> None:
    """Secrets without any shape of their own, in errors that repeat them, escaped as the writer liked."""
    redactor = Redactor(b"k")
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {secret}"}})
    keys, echo = (("x-api-key", secret),), (("x-echo", secret),)
    record = redactor.record(Record("1", "POST", "https://h/", keys, None, 401, echo, body.encode(), error=secret))
    assert secret not in encode(record).decode()
    assert json.loads(record.response_body or b"")["error"]["message"].endswith(redactor.mark(secret))
    assert record.error == redactor.mark(secret)
    assert redactor.text(f"log: {secret}!") == f"log: {redactor.mark(secret)}!"


def test_a_dummy_key_is_not_taken_out_of_the_text() -> None:
    redactor = Redactor(b"k")
    record = Record("1", "POST", "http://h/", (("authorization", "Bearer lm-studio"),), b'{"content":"use lm-studio"}')
    assert redactor.record(record).request_body is record.request_body
    assert redactor.record(record).request_headers != record.request_headers


def test_off() -> None:
    record = Record("1", "POST", f"https://h/?key={KEY}", (("x-api-key", KEY),), KEY.encode())
    redactor = Redactor(enabled=False)
    assert redactor.record(record) is record
    assert (redactor.text(KEY), redactor.url(record.url)) == (KEY, record.url)


def test_broken_documents() -> None:
    for body in (f'{{"a": "{KEY}', f'{{"a": 1 {KEY} "', f'{{"api_key": "{KEY}\\', f"[{KEY}", '{"password": "hunter2'):
        redacted = some(R.body(body.encode()))
        assert KEY.encode() not in redacted
        assert b"hunter2" not in redacted


ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
TAILS = st.text(ALPHABET, min_size=36, max_size=48).filter(lambda tail: any(c.isdigit() for c in tail))
SECRETS = st.builds(
    "".join, st.tuples(st.sampled_from(["sk-", "sk-ant-", "gsk_", "AIza", "hf_", "ghp_", "xai-", ""]), TAILS)
)
BEFORE = st.text(
    st.characters(exclude_categories=["Cs", "Lu", "Ll", "Lt", "Lm", "Lo", "Nd"], exclude_characters="_-"), max_size=12
)


@given(SECRETS, BEFORE, BEFORE, st.booleans())
def test_no_piece_of_a_secret_survives(secret: str, before: str, after: str, ascii_only: bool) -> None:
    redactor = Redactor(b"k")
    text = f"{before} {secret} {after}"
    body = json.dumps({"content": text, "arguments": json.dumps({"q": text})}, ensure_ascii=ascii_only).encode()
    record = redactor.record(
        Record(
            "1", "POST", f"https://h/x?key={secret}&a=1", (("Authorization", f"Bearer {secret}"), ("x-note", text)), body,
            200, (("x-note", text),), b"data: " + body + b"\n\ndata: [DONE]\n\n", error=text,
        )
    )  # fmt: skip
    line = encode(record, {"findings": [redactor.json({"message": text})]}).decode()
    assert not [secret[n : n + 8] for n in range(len(secret) - 7) if secret[n : n + 8] in line]
    assert encode(redactor.record(record)) == encode(record), "not idempotent"


@given(st.text(max_size=60), st.binary(max_size=60))
def test_any_input(text: str, data: bytes) -> None:
    once = R.text(text)
    assert R.text(once) == once
    for body in (data, b'{"api_key":"' + data, b"data: " + data + b"\n\n"):
        redacted = R.body(body)
        assert R.body(redacted) == redacted
