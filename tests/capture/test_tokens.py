"""Credentials of vendors in every place of a capture, and what looks like them and stays.

The values are made here from their formats, so that no scanner of secrets takes this file for a leak.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import tomllib
from pathlib import Path

from tests.build import some
from tests.selection import in_batches, is_complete, rotated
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.secrets import MARK, find_tokens, forms, harmless

_DIGITS, _SMALL = "0123456789", "abcdefghijklmnopqrstuvwxyz"
_WORD = _SMALL + _SMALL.upper() + _DIGITS
_SETS = {
    "x": "0123456789abcdef",
    "w": _WORD,
    "l": _SMALL + _DIGITS,
    "u": _SMALL.upper() + _DIGITS,
    "d": _DIGITS,
    "b": _WORD + "+/",
    "s": _WORD + "-_",
}

TABLE = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))
KINDS, ADDRESSES = TABLE["kinds"], TABLE["addresses"]


def made(kind: str) -> str:
    """One credential of this format; always the same one. Its runs hold a digit, as nearly all do."""
    chosen = random.Random(kind)

    def run(match: re.Match[str]) -> str:
        characters = "".join(chosen.choice(_SETS[match[1]]) for _ in range(int(match[2])))
        return characters[:-1] + "7" if int(match[2]) > 8 else characters

    return re.sub(r"\{([xwludbs])(\d+)\}", run, kind)


SECRETS = {name: made(kind) for name, kind in KINDS.items()}

PLACES: dict[str, str] = TABLE["places"]


def survives(secret: str, text: str) -> bool:
    """Return True if eight characters of a secret, behind what all of its kind begin with, are in a text."""
    tail = secret[len(secret) // 3 :]
    return any(tail[at : at + 8] in text for at in range(len(tail) - 7))


@in_batches("name", SECRETS)
def test_no_credential_survives_anywhere(name: str) -> None:
    redactor, secret = Redactor(b"k"), SECRETS[name]
    for place in dict.fromkeys(("full stop", *rotated(list(PLACES), name, 3))):
        text = PLACES[place].replace("%s", secret)
        assert not harmless(text), place
        assert not survives(secret, redactor.text(text)), place
        plain = json.dumps({"messages": [{"role": "tool", "content": text}]}, ensure_ascii=False)
        nested = json.dumps({"arguments": json.dumps({"q": json.dumps({"text": text})})})
        for document in (plain, nested):
            assert not harmless(document), place
            redacted = (redactor.body(document.encode()) or b"").decode()
            assert not survives(secret, redacted), place
            assert json.loads(redacted).keys() == json.loads(document).keys()
            assert redactor.body(redacted.encode()) == redacted.encode(), "redacted twice"
    assert not survives(secret, redactor.url(f"https://h.example/v1/{secret}/x?y={secret}"))
    record = Record("1", "POST", "http://h/", (("x-note", f"see {secret}"),))
    assert not survives(secret, str(redactor.record(record).request_headers))


def _stream(pieces: list[str]) -> bytes:
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


@in_batches("name", SECRETS)
def test_no_credential_survives_in_a_stream(name: str) -> None:
    """Whatever the cuts, what a client joins is the same, and the events and their framing stay."""
    text = f"So: {SECRETS[name]} it is"
    chosen, joined = random.Random(name), set[str]()
    whole = [text], [*text], [text[:20], text[20:]]
    for pieces in (*whole, *(_cut(text, chosen) for _ in range(3 if is_complete() else 1))):
        body = some(Redactor(b"k").body(_stream(["", *pieces, "."])))
        events = [json.loads(line[6:]) for line in body.decode().split("\n\n")[:-2]]
        assert len(events) == len(pieces) + 2
        joined.add("".join(event["choices"][0]["delta"]["content"] for event in events))
    assert len(joined) == 1
    assert not survives(SECRETS[name], joined.pop())


def _cut(text: str, chosen: random.Random) -> list[str]:
    cuts = [0, *sorted(chosen.sample(range(1, len(text)), 6)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


@in_batches("name", ADDRESSES)
def test_addresses_that_hold_a_credential(name: str) -> None:
    before, kind = ADDRESSES[name]
    secret, redactor = made(kind), Redactor(b"k")
    record = Record("1", "POST", before + secret, (), json.dumps({"a": f"post to {before}{secret} now"}).encode())
    redacted = redactor.record(record)
    for text in (redacted.url, (redacted.request_body or b"").decode(), redactor.text(f"see {before}{secret}.")):
        assert not survives(secret.partition("@")[0] if name == "user" else secret, text)
        assert name == "user" or before in text
        assert MARK.search(text) is not None or "%5Bredacted" in text


STAYS = {name: made(text) for name, text in TABLE["stays"].items()}


@in_batches("name", STAYS)
def test_what_is_no_credential_stays(name: str) -> None:
    text, redactor = STAYS[name], Redactor(b"k")
    assert redactor.text(text) == text
    for document in (json.dumps({"content": text}), json.dumps({"arguments": json.dumps({"id": text})})):
        assert redactor.body(document.encode()) == document.encode()
    pieces = [text[at : at + 11] for at in range(0, min(len(text), 2000), 11)]
    assert redactor.body(_stream(pieces)) == _stream(pieces)


def test_each_form_has_a_sign_and_is_looked_for_in_linear_time() -> None:
    """Beginnings, repeated: as many bytes of them take as long as others do."""
    took: dict[str, float] = {}
    for form in forms():
        begin = time.process_time()
        for text in ((form.prefix or f"a{form.anchor}") * 300, f"{form.prefix}{'a1' * 450} " * 2):
            list(find_tokens(text))
            harmless(text)
        took[form.name + form.prefix] = time.process_time() - begin
    usual = sorted(took.values())[len(took) // 2]
    assert max(took.values()) < max(40 * usual, 0.25)


def test_an_old_token_of_vault_may_end_a_sentence() -> None:
    """Its own prefix is a letter and a full stop; an attribute behind it (`s.a.b`) is what it must not be taken for."""
    token = made("s.{w10}aZ{w12}")
    assert not survives(token, Redactor(b"k").text(f"It is {token}. Use it."))
    assert token in Redactor(b"k").text(f"{token}.split()")
