"""The quick look may cost a second one, and never a secret: with it and without it the same bytes come out."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.test_tokens import TABLE
from tests.selection import in_batches, rotated, sampled
from wirelint.capture import secrets as search
from wirelint.capture import streams
from wirelint.capture.redact import Redactor
from wirelint.capture.secrets import Scope, find_in_json, find_in_text, harmless

BASE62 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_ALPHABETS = {"base62": BASE62, "url": BASE62 + "_-", "hex": "0123456789abcdef"}
SHAPES: dict[str, tuple[str, str, int, str]] = {
    name: (begin, _ALPHABETS.get(alphabet, alphabet), least, end)
    for name, (begin, alphabet, least, end) in TABLE["shapes"].items()
}
PROSE = ("", " ", "a ", "The key is ", "task-", "see\n", "\u00fc", "\u4f60\u597d ", '"', "\\", "/x?", "(", "x=", "*")


def sample(name: str) -> str:
    begin, alphabet, least, end = SHAPES[name]
    return begin + (alphabet * 3)[5 : 5 + least] + end


@st.composite
def secrets(draw: st.DrawFn) -> str:
    begin, alphabet, least, end = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    size = draw(st.sampled_from((max(least - 1, 0), least, least + 1, least + 9)))
    return begin + draw(st.text(alphabet, min_size=size, max_size=size)) + end


@st.composite
def texts(draw: st.DrawFn) -> str:
    around = st.one_of(st.sampled_from(PROSE), st.text(max_size=6))
    return draw(around) + draw(secrets()) + draw(around)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """JSON with the text in it, nested now and then, some characters escaped that need not be."""
    text = draw(texts())
    for _ in range(draw(st.integers(1, 3))):
        text = json.dumps({draw(st.sampled_from(("a", "content", "password"))): text}, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        escaped = draw(st.sampled_from("sk-_:=/@")), draw(st.sampled_from(("\\u{:04x}", "\\u{:04X}")))
        text = text.replace(escaped[0], escaped[1].format(ord(escaped[0])))
    return text


FORMS = {
    "openai": 'data: {"id": "chatcmpl-1", "created": %number, "choices": [{"index": 0, "delta": {"content": %ascii}}]}\n\n',
    "anthropic": "event: content_block_delta\n"
    'data:{"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": %text}}\n\n',
    "two channels": ': note\ndata: {"a": %ascii, "list": [{"index": 7, "b": "%number "}], "n": null}\n\n',
    "carriage returns": 'data: {"delta": %ascii}\r\n\r\n',
    "lines": '{"response": %ascii}\n',
}
"""Events: `%text` and `%ascii` stand for the piece of text in JSON."""


def stream(pieces: list[str], form: str) -> bytes:
    def event(number: int, piece: str) -> str:
        texts = {"number": str(number), "text": json.dumps(piece, ensure_ascii=False), "ascii": json.dumps(piece)}
        return re.sub("%(number|text|ascii)", lambda name: texts[name[1]], FORMS[form])

    body = "".join(itertools.starmap(event, enumerate(pieces)))
    return (body + ("" if form == "lines" else "data: [DONE]\n\n")).encode("utf-8", "surrogatepass")


@contextmanager
def without_quick_look() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "harmless", lambda _: False)
        patch.setattr(streams, "harmless", lambda _: False)
        yield


def redacted(body: bytes) -> bytes | None:
    redactor = Redactor(key=b"k")
    redactor.learn((("authorization", "Bearer known-to-all-of-us"),))
    return redactor.body(body)


def check_quick_look(body: bytes, why: object = None) -> None:
    """With and without the quick look, a body is redacted to the same bytes."""
    quick = redacted(body)
    with without_quick_look():
        assert quick == redacted(body), why


@in_batches("name", SHAPES)
def test_sees_every_shape(name: str) -> None:
    text = sample(name)
    assert find_in_text(text, Scope(search.SHAPES, (), True)), "the sample is a secret"
    assert not harmless(text)
    assert not harmless(json.dumps({"content": json.dumps({"inner": text})}))


@given(st.one_of(texts(), documents()))
def test_harmless_means_nothing_to_find(text: str) -> None:
    if harmless(text):
        assert find_in_text(text, Scope(search.SHAPES, (), True)) == []
        assert find_in_json(text, Scope(search.SHAPES, (), True)) == []


@in_batches("name", [*SHAPES, "known"])
def test_a_secret_cut_in_two_at_every_place(name: str) -> None:
    text = "it is known-to-all-of-us!" if name == "known" else f"it is {sample(name)} "
    for form in rotated(list(FORMS), name):
        for cut in sampled(range(1, len(text)), 5):
            check_quick_look(stream(["So, ", text[:cut], text[cut:], "and so on"], form), (form, text[:cut]))


PLACES: dict[str, str] = {
    "a string that changes": 'data: {{"c":{{"id":"1"}},"d":"{}"}}\n\n',
    "one that is the same in all": 'data: {{"c":{{"d":"{}"}},"t":"word %d"}}\n\n',
    "two strings that change": 'data: {{"a":"{}","t":"word %d"}}\n\n',
    "a comment": ': {}\ndata: {{"t":"word %d"}}\n\n',
    "an identifier": 'id: {}\ndata: {{"t":"word %d"}}\n\n',
    "beside a name that is a secret's": 'data: {{"access_token":"{}"}}\n\n',
    "before a string that begins like a value": 'data: {{"t":": {}","u":"password"}}\n\n',
}


@in_batches("name", [*SHAPES, "known"])
def test_a_secret_in_one_event_of_many(name: str) -> None:
    secret = "known-to-all-of-us" if name == "known" else sample(name)
    for place in rotated(tuple(PLACES), name, 2):
        for written in (json.dumps(f"it is {secret} ")[1:-1], json.dumps(f"{secret}\n")[1:-1].replace("e", "\\u0065")):
            said = ["one", "two", "three", written, "five", written, "seven"]
            events = [PLACES[place].format(text).replace("%d", str(number)) for number, text in enumerate(said)]
            check_quick_look("".join(events).encode("utf-8", "surrogatepass"), place)


def test_a_large_body_is_looked_at_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_BLOCK", 200)
    for name in SHAPES:
        events = [
            stream([f"{sample(name)} " if number == 3 else f"word {number} "], "anthropic") for number in range(9)
        ]
        other = stream([sample(name)], "openai")
        for body in (b"".join(events), b"".join([*events[:3], other, *events[4:]])):
            check_quick_look(body, name)


@given(st.lists(texts(), min_size=1, max_size=3), st.sampled_from(list(FORMS)), st.data())
def test_secrets_cut_anywhere(written: list[str], form: str, data: st.DataObject) -> None:
    text = "".join(written)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    check_quick_look(stream(pieces, form))
