"""Whole replies that are written as those before them were: they are not read, and all is as if they had been."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, REGISTRY, Call, Talk, as_record, schema
from tests.fixes.drive import UNSAFE, open_session
from tests.fixes.test_prefilter import WORDS
from tests.rewrite.test_plain import FIRST, REST
from wirelint.apis import ahead
from wirelint.capture.record import Record
from wirelint.rewrite import pages as module
from wirelint.rewrite import rewrite_reply
from wirelint.rewrite.pages import Pages
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

TOOLS = {"find": schema(place="string"), "to": schema(place="string")}
REQUEST = as_record(Talk(text="x", tools=TOOLS, model="m").record("openai.chat", False), 1)


def page(text: Any = "The ferry leaves at nine.", *, number: int = 1, pretty: bool = False, **told: Any) -> bytes:
    """The body of a reply of OpenAI's form. `number` makes what differs from reply to reply; `told`: other members."""
    message = {"role": "assistant", "content": text, "refusal": None, **told.pop("message", {})}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": told.pop("reason", "stop")}
    body = {
        "id": f"chatcmpl-{number:08x}",
        "object": "chat.completion",
        "created": 1_770_000_000 + number,
        "model": "m",
        "choices": [choice, *told.pop("choices", [])],
        "usage": {
            "prompt_tokens": 90 + number,
            "completion_tokens": number,
            "details": {"cached": number * 7, "cost": 0.5 / number},
        },
        "service_tier": "default",
        "system_fingerprint": f"fp_{number * 977:06x}",
        **told,
    }
    return json.dumps(body, ensure_ascii=False, indent=2 if pretty else None).encode("utf-8", "surrogatepass")


class Passed:
    """A reply that was repaired, and what came of it. `fits`: nothing of it was read on the way."""

    def __init__(
        self, pages: Pages | None, record: Record, rules: tuple[Rule, ...] = REGISTRY.rules, cut: float = 1.0
    ) -> None:
        body = record.response_body or b""
        size = int(cut * len(body))
        session, pieces = open_session(record), list[tuple[bytes, float | None]]()
        read: list[int] = []
        real = ahead.ReadAhead.__init__

        def counted(*given: Any) -> None:
            read.append(1)
            real(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ahead.ReadAhead, "__init__", counted)
            self.made = rewrite_reply(
                session,
                body,
                rules,
                Ledger(),
                UNSAFE,
                chunks=((1.0, size), (2.0, len(body) - size)),
                later=pieces.extend,
                pages=pages,
            )
        self.fits = not read and bool(pieces)
        self.later = bool(pieces)
        assert b"".join(data for data, _ in pieces) in (b"", body)
        for data, at in pieces:
            session.feed(data, at)
        self.reply = repr(session.finish().reply)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Passed) and self._told() == other._told()

    def __hash__(self) -> int:
        return hash(self.reply)

    def _told(self) -> tuple[object, ...]:
        return self.made, self.later, self.reply


def reply(body: bytes, **headers: str) -> Record:
    fields = {"content-type": "application/json", **headers}
    return dataclasses.replace(REQUEST, response_body=body, response_headers=tuple(fields.items()))


def known(**told: Any) -> Pages:
    """What is known when two replies have passed."""
    pages = Pages()
    for number in (1, 2):
        assert not Passed(pages, reply(page(number=number, **told))).fits
    return pages


FITTING: dict[str, bytes] = {
    "as before": page(number=9),
    "another text": page("There are two of them.\tSo what?", number=10),
    "what JSON escapes": page('He said "no"\nand went ☂.', number=11),
    "escaped letters": page("Caf\ue000 closes.", number=12).replace("\ue000".encode(), b"\\u00e9"),
    "code": page("As you asked. " * 20 + "`if (a < b && x[0] > 1) f<T>(y, '\\\\d');` and so on.", number=13),
    "a long text": page("And so on. " * 2000, number=13),
    "a number of another kind": page(number=14).replace(b'"cached": 98', b'"cached": 1.5e-3'),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits(name: str) -> None:
    passed = Passed(known(), reply(FITTING[name]))
    assert passed.fits
    assert passed == Passed(None, reply(FITTING[name]))
    assert passed.made.body is not None


def test_a_body_that_is_indented_fits_as_well() -> None:
    third = reply(page("Another one.", number=9, pretty=True))
    passed = Passed(known(pretty=True), third)
    assert passed.fits
    assert passed == Passed(None, third)
    assert not Passed(known(), third).fits


def _call() -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"place": "Bergen"}'}}


ANOTHER = {"index": 1, "message": {"role": "assistant", "content": "Or so."}, "finish_reason": "stop"}
UNFIT: dict[str, bytes] = {
    "no text": page(None, number=9),
    "an empty text": page("", number=9),
    "another reason": page(number=9, reason="length"),
    "a reason of calls": page(number=9, reason="tool_calls"),
    "a call": page(number=9, message={"tool_calls": [_call()]}),
    "reasoning": page(number=9, message={"reasoning": "So."}),
    "another choice": page(number=9, choices=[ANOTHER]),
    "another member": page(number=9, error={"message": "no"}),
    "a usage with another member": page(number=9).replace(b'"cached"', b'"hidden"'),
    "a usage with a text": page(number=9).replace(b'"cached": 63', b'"cached": "63"'),
    "an id that is no string": page(number=9).replace(b'"chatcmpl-00000009"', b"12"),
    "an empty id": page(number=9).replace(b"chatcmpl-00000009", b""),
    "two texts": page(number=9).replace(b'"content"', b'"content": "Or so.", "content"'),
    "a text cut short": page(number=9).partition(b" nine")[0],
    "more behind it": page(number=9) + b"\n{}",
    "no UTF-8": page(number=9).replace(b"nine", b"n\xffne"),
    "a control character": page(number=9).replace(b" nine", b"\x01nine"),
    "an escape of none": page(number=9).replace(b" nine", b"\\qnine"),
    "half a pair": page(number=9).replace(b" nine", b"\\ud83dnine"),
    "markup": page('Well: <invoke name="find"><parameter name="place">x</parameter></invoke>', number=9),
    "markup that escapes hide": page(number=9).replace(b" nine", b"\\u003ctool_call> nine"),
    "an escaped quote": page('Yes: \\" is one.', number=9),
    "a thought": page("<think>Hm.</think> Yes.", number=9),
    "a token": page("Yes.<|im_end|>", number=9),
    "white space first": page(" Yes.", number=9),
    "a longer one": page("And so on. " * 6000, number=9),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_read(name: str) -> None:
    pages = known()
    passed = Passed(pages, reply(UNFIT[name]))
    assert not passed.fits
    assert passed == Passed(None, reply(UNFIT[name]))
    assert Passed(pages, reply(page("As before.", number=20))).fits


def test_one_reply_alone_makes_no_form() -> None:
    pages = Pages()
    assert not Passed(pages, reply(page(number=1))).fits
    assert not Passed(pages, reply(page(number=2, reason="length"))).fits
    assert not Passed(pages, reply(page(number=3))).fits
    assert Passed(pages, reply(page(number=4))).fits


def test_a_server_may_write_in_several_ways() -> None:
    pages = Pages()
    for number in range(1, 5):
        passed = Passed(pages, reply(page(number=number, reason=("stop", "length")[number % 2])))
        assert not passed.fits
    for number in range(5, 13):
        told = reply(page("Said otherwise.", number=number, reason=("stop", "length")[number % 2]))
        passed = Passed(pages, told)
        assert passed.fits
        assert passed == Passed(None, told)


@pytest.mark.parametrize(("size", "fits"), [(7_000, True), (9_000, False)])
def test_what_is_long_around_its_text_makes_no_form(size: int, fits: bool) -> None:
    instructions = "Be brief. " * (size // 10)
    passed = Passed(known(instructions=instructions), reply(page("Yes.", number=9, instructions=instructions)))
    assert passed.fits is fits


def test_a_type_of_another_kind_is_another_kind() -> None:
    third = reply(page(number=9), **{"content-type": "application/json; charset=utf-8"})
    assert not Passed(known(), third).fits


def test_another_url_is_another_kind() -> None:
    third = dataclasses.replace(reply(page(number=9)), url="https://other.example/v1/chat/completions")
    assert not Passed(known(), third).fits


def test_a_rule_of_the_users_own_sees_every_reply() -> None:
    class Own(Rule):
        code, name = "XX001", "own"

        def rewriter(self, context: Any) -> None:
            return None

    assert not Passed(known(), reply(page(number=9)), (*REGISTRY.rules, Own())).fits


def test_replies_that_fit_no_form_do_not_end_it() -> None:
    pages = known()
    for number in range(100):
        assert not Passed(pages, reply(page("So: <b>", number=10 + number))).fits
    assert Passed(pages, reply(page(number=200))).fits


def test_a_server_that_keeps_to_no_form_is_learnt_from_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    real = module._source

    def counted(*given: Any) -> Any:
        looked.append(1)
        return real(*given)

    monkeypatch.setattr(module, "_source", counted)
    pages = Pages()
    for number in range(400):
        assert not Passed(pages, reply(page(number=number + 1, mood=f"m{number}"))).fits
    assert 10 < len(looked) < 60
    fits = [Passed(pages, reply(page(number=number))).fits for number in range(31, 120)]
    assert any(fits), "it is learnt from again"
    assert all(fits[fits.index(True) :])


@pytest.mark.parametrize("api", APIS)
@given(
    first=st.sampled_from(FIRST),
    more=st.lists(st.one_of(st.sampled_from((*WORDS, *REST)), st.text(max_size=6)), max_size=8),
    called=st.booleans(),
    finish=st.sampled_from(("", None, "stop", "length", "nonsense")),
    model=st.sampled_from(("m", "gemma-3", "gpt-oss-20b", "qwen3", "deepseek-r1", "kimi-k2")),
    cut=st.floats(0, 1),
)
def test_a_reply_that_may_fit_is_as_if_it_had_been_read(
    api: str, first: str, more: list[str], called: bool, finish: str | None, model: str, cut: float
) -> None:
    pages = Pages()
    for text in ("The ferry leaves at nine.", "It comes back at two."):
        Passed(pages, as_record(Talk(text=text, tools=TOOLS, model=model).record(api, False), 1))
    calls = (Call("find", {"place": "Bodø"}),) if called else ()
    talk = Talk(text=first + "".join(more), calls=calls, tools=TOOLS, finish=finish or None, model=model)
    record = as_record(talk.record(api, False), 1)
    assert Passed(pages, record, cut=cut) == Passed(None, record, cut=cut)


@pytest.mark.parametrize("api", APIS)
def test_which_apis_have_such_replies(api: str) -> None:
    pages, passed = Pages(), list[bool]()
    for text in ("The ferry leaves at nine.", "It comes back at two.", "Nobody knows."):
        passed.append(Passed(pages, as_record(Talk(text=text, tools=TOOLS, model="m").record(api, False), 1)).fits)
    assert passed == [False, False, True]
