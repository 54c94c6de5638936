"""What is known of a reply that followed a form: its texts, and what of it is searched for secrets."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rewrite.test_following import PLAIN, events, known, started
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture import followed as module
from wirelint.capture.followed import Followed
from wirelint.capture.fragments import is_harmless_stream
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.model import Timing
from wirelint.rewrite.following import Following, Forms
from wirelint.rewrite.spoken import New, Spoken

KEY = "sk-proj-4f9Zq7LmT2xVb8NcR5wYd3Ke"
KNOWN = "correct-horse-battery-9"
FORMS = known()


def followed_by(pieces: Sequence[bytes], forms: Forms = FORMS) -> tuple[Record, Followed | None]:
    """What is recorded of a reply that has passed, and what is known of it."""
    delivery, visit = started(forms)
    for piece in pieces:
        delivery(piece)
    delivery(b"")
    delivery.settle()
    visit.catch_up()
    return _record(visit), visit.followed()


def _record(visit: ExchangeRecorder) -> Record:
    record = visit.record("complete", None, (), Timing(1.0))
    return dataclasses.replace(record, request_headers=(("authorization", f"Bearer {KNOWN}"),))


def redacted(pieces: Sequence[bytes], forms: Forms = FORMS) -> tuple[bytes | None, bytes | None, bool]:
    """A body without secrets, by what is known of it and by a search of everything, and whether there were none.

    Of a reply of one piece nothing is known: there is no event that says more of the text.
    """
    plain, by_form = followed_by(events(PLAIN, number=3), forms)
    record, of_it = followed_by(pieces, forms)
    assert by_form is not None
    assert (of_it is None) is (len(pieces) == 4)
    short, long = Redactor(b"key"), Redactor(b"key")
    short.record(plain, by_form)
    one, other = short.record(record, of_it), long.record(record)
    return one.response_body, other.response_body, one.response_body == record.response_body


def test_what_its_texts_say(followed: list[Following]) -> None:
    texts = ('He said "no",', " and then\n", "went \u2602.", " \\ ", "So.")
    delivery, _ = started(FORMS)
    for piece in events(("Well.", *texts), number=5):
        delivery(piece)
    delivery(b"")
    _, spoken = followed[-1].came()
    assert spoken is not None
    assert spoken.texts == [*texts]
    assert (spoken.first, spoken.last) == (2, 7)


def test_of_what_did_not_come_to_its_end_nothing_is_known(followed: list[Following]) -> None:
    delivery, visit = started(FORMS)
    for piece in events(number=5)[:4]:
        delivery(piece)
    assert followed[-1].came()[1] is None
    delivery.settle()
    visit.catch_up()
    assert visit.followed() is None


@pytest.mark.parametrize("text", ["", "half a surrogate \ud83d", "a tab\there"], ids=["nothing", "surrogate", "tab"])
def test_a_text_that_is_none(text: str, followed: list[Following]) -> None:
    pieces = events(number=5)
    started(FORMS)[0](pieces[0])
    form = followed[-1]._forms[0]
    broken = [(piece.replace(b" at nine, and", text.encode("utf-8", "surrogatepass")), 1.0) for piece in pieces]
    assert Spoken(form, broken).texts is None
    assert Spoken(form, broken).new() is None


SECRETS: dict[str, tuple[list[bytes], bool]] = {
    "nothing": (events(("The ferry", " leaves", " at nine"), number=9), True),
    "one piece": (events(("One.",), number=9), True),
    "a key": (events(("The key is", f" {KEY}", ", so."), number=9), False),
    "a key in pieces": (events(("The key is", " sk-proj-4f9Zq7", "LmT2xVb8NcR5", "wYd3Ke", ", so."), number=9), False),
    "a key from the first piece on": (events((KEY[:12], KEY[12:], " is it."), number=9), False),
    "a name and its value": (events(("Set", " api_", "key = ", '"Zq7LmT2xVb8NcR5w"', " there."), number=9), False),
    "a name without a value": (events(("Set", " your", " key", " there."), number=9), True),
    "a key that the request brought": (events(("It is", " correct-horse", "-battery-9", "."), number=9), False),
    "in an idle value": (events(("One", " two", " three"), number=9, head={"system_fingerprint": KEY}), False),
    "in a JSON escape": (events(("The key is", f' "{KEY}"', ", so."), number=9), False),
}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_found_as_by_a_search_of_everything(name: str) -> None:
    pieces, is_clear = SECRETS[name]
    one, other, same = redacted(pieces)
    assert one == other
    assert same is is_clear


def padded(texts: Sequence[str], pads: Sequence[str], number: int = 9) -> list[bytes]:
    """Events with a padding of their own each."""
    made = events(texts, number=number)
    return [
        piece.replace(b'"object"', b'"obfuscation": "%b", "object"' % pads[place % len(pads)].encode())
        if piece.startswith(b"data: {")
        else piece
        for place, piece in enumerate(made)
    ]


def test_secrets_in_a_padding_that_is_cut_over_events() -> None:
    forms = Forms()
    for number in (1, 2):
        followed_by(padded(PLAIN, ("ab", "cde", "f"), number), forms)
    plain, by_form = followed_by(padded(PLAIN, ("ab", "cde", "f"), 3), forms)
    assert by_form is not None
    assert "abcdef" in "".join(by_form.strings)
    record, of_it = followed_by(padded(PLAIN, ("sk-proj-4f9Zq7", "LmT2xVb8NcR5", "wYd3Ke"), 4), forms)
    short, long = Redactor(b"key"), Redactor(b"key")
    assert short.record(plain, by_form).response_body == plain.response_body
    assert short.record(record, of_it).response_body == long.record(record).response_body != record.response_body


def test_a_form_that_tells_a_secret_itself_is_searched_each_time() -> None:
    head = {"api_key": KEY}
    forms = known(head=head)
    for number in (3, 4):
        record, of_it = followed_by(events(PLAIN, number=number, head=head), forms)
        redactor = Redactor(b"key")
        body = redactor.record(record, of_it).response_body
        assert body == Redactor(b"key").record(record).response_body
        assert KEY.encode() not in (body or b"")


@given(
    words=st.lists(
        st.sampled_from(
            ("The ", "key ", "is ", "so", ". ", KEY, KNOWN, "api_key=", "token: ", '"', "\n", "\\", "\u00e9", "eyJ")
        ),
        min_size=1,
        max_size=8,
    ),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
def test_any_text_in_any_pieces(words: list[str], cuts: list[float]) -> None:
    text = "Well, " + "".join(words)
    edges = sorted({0, len(text), *(int(cut * len(text)) for cut in cuts)})
    pieces = events([text[start:end] for start, end in itertools.pairwise(edges)], number=9)
    plain, by_form = followed_by(events(PLAIN, number=3))
    record, of_it = followed_by(pieces)
    short, long = Redactor(b"key"), Redactor(b"key")
    short.record(plain, by_form)
    assert short.record(record, of_it).response_body == long.record(record).response_body


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with the bodies that are looked at as a whole because their form is not known."""
    bodies: list[str] = []

    def counted(body: str) -> bool:
        bodies.append(body)
        return is_harmless_stream(body)

    monkeypatch.setattr(module, "is_harmless_stream", counted)
    return bodies


def test_once_a_form_is_known_to_be_harmless_no_body_of_it_is_searched(looked: list[str]) -> None:
    redactor = Redactor(b"key")
    for number in range(3, 9):
        record, of_it = followed_by(events(PLAIN, number=number))
        assert of_it is not None
        assert redactor.record(record, of_it).response_body == record.response_body
    assert len(looked) == 1


def test_a_body_of_another_size_is_searched() -> None:
    record, of_it = followed_by(events(PLAIN, number=3))
    assert of_it is not None
    redactor = Redactor(b"key")
    redactor.record(record, of_it)
    longer = dataclasses.replace(record, response_body=(record.response_body or b"") + b"data: %b\n\n" % KEY.encode())
    assert KEY.encode() not in (redactor.record(longer, of_it).response_body or b"")


def test_as_many_forms_are_remembered_as_there_is_room_for() -> None:
    forms = module.Forms()
    for number in range(3 * module._MOST):
        form: Any = number
        told = New(form, "", (), 0)
        assert forms.clear('data: {"a": "b"}\n\n', told, ())
    assert len(forms._known) == module._MOST


def test_a_form_whose_body_was_not_harmless_is_not_looked_at_again(looked: list[str]) -> None:
    redactor = Redactor(b"key")
    for number in range(3, 9):
        record, of_it = followed_by(events(("The key is", f" {KEY}", ", so."), number=number))
        assert KEY.encode() not in (redactor.record(record, of_it).response_body or b"")
    assert len(looked) == 1
    record, of_it = followed_by(events(PLAIN, number=9))
    assert redactor.record(record, of_it).response_body == record.response_body
