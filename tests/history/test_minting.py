"""Ids for calls that a repair makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, read
from wirelint.fix import FixPolicy, RewriteContext
from wirelint.history.id_demands import mint
from wirelint.history.ids import form_of
from wirelint.state.ledger import Ledger

OPENAI, ANTHROPIC = "openai.chat", "anthropic.messages"
URLS = {"mistral": "https://api.mistral.ai/v1/chat/completions"}


def context(
    model: str,
    ids: Sequence[str] = (),
    *,
    api: str = OPENAI,
    url: str = "",
    passed: Sequence[str] = (),
    taken: Sequence[str] = (),
) -> RewriteContext:
    """A reply to a history in which `read` was called under each of `ids`; `passed` is what upstream had really given."""
    history: list[Any] = [User("Read on.")]
    for id_ in ids:
        history += [Assistant(calls=(Call("read", {"path": "a"}, id_),)), Result(id_, "text")]
    ledger = Ledger()
    if passed:
        calls = [Call("read", {"path": str(number)}, id_) for number, id_ in enumerate(passed)]
        ledger.record(read(Talk((User("Read on."),), calls=calls, model=model).record(api, False)))
    record = Talk(tuple(history), model=model, text="x").record(api, False)
    if url:
        record["request"]["url"] = url
    asked = replace(read(record), reply=None)
    return RewriteContext(asked, ledger, FixPolicy("unsafe"), streamed=False, taken=set(taken))


@pytest.mark.parametrize(
    ("model", "ids", "names", "expected"),
    [
        ("kimi-k2.5", (), ["read", "list", "read"], ["functions.read:0", "functions.list:1", "functions.read:2"]),
        ("kimi-k2.5", ("functions.read:0", "functions.read:1"), ["list"], ["functions.list:2"]),
        ("kimi-k2.5", ("functions.read:7",), ["list"], ["functions.list:8"]),  # a trimmed history
        ("moonshotai/Kimi-K2-Instruct", ("functionsread0", "functionsread1"), ["read"], ["functions.read:2"]),
        ("kimi-k2-thinking", ("read:0", "read:4"), ["read"], ["functions.read:5"]),
        ("kimi-k2.5", ("call_U7ZpbozYfIAQ0tyiqZ97HB65",), ["read"], ["functions.read:1"]),
        ("kimi-k3", (), ["read", "list"], ["read:0", "list:1"]),
        ("kimi-k3", ("read:0",), ["read"], ["read:1"]),
        ("house-model", ("functions.read:0",), ["list"], ["functions.list:1"]),
        ("house-model", ("read:0", "read:1"), ["list"], ["list:2"]),
    ],
)
def test_counted_ids_go_on_with_the_history(
    model: str, ids: Sequence[str], names: list[str], expected: list[str]
) -> None:
    here = context(model, ids)
    assert [mint(here, name) for name in names] == expected
    assert here.taken == set(expected)


def test_a_number_that_the_reply_has_is_not_given_again() -> None:
    here = context("kimi-k2.5", ("functions.read:0",), taken=["functions.list:1", "functions.list:2"])
    assert [mint(here, "read"), mint(here, "read")] == ["functions.read:3", "functions.read:4"]


def test_very_many_counted_ids() -> None:
    here = context("kimi-k2.5", taken=[f"functions.a:{number}" for number in range(300)])
    assert len({mint(here, "a") for _ in range(1000)} | here.taken) == 1300


@pytest.mark.parametrize(
    ("model", "ids", "api", "pattern"),
    [
        ("gpt-5.2", (), OPENAI, r"call_[A-Za-z0-9]{24}"),
        ("gpt-5.2", ("call_U7ZpbozYfIAQ0tyiqZ97HB65",), OPENAI, r"call_[A-Za-z0-9]{24}"),
        ("qwen3-32b", ("chatcmpl-tool-838a30ab75717374",), OPENAI, r"chatcmpl-tool-[0-9a-f]{16}"),
        ("qwen3-32b", ("call_838a30ab75717374838a30ab",), OPENAI, r"call_[0-9a-f]{24}"),
        ("qwen3:8b", ("call_lyywui55",), OPENAI, r"call_[0-9a-z]{8}"),
        ("deepseek-chat", ("call_00_O23BX3djLN8PztCY7Ish5244",), OPENAI, r"call_00_[A-Za-z0-9]{24}"),
        ("minimax-m2", ("call_function_z1pbgy47368b_1",), OPENAI, r"call_function_[0-9a-z]{12}_1"),
        ("glm-5", ("call_-8231168139794583938",), OPENAI, r"call_-[0-9]{19}"),
        (
            "command-a",
            ("8c0f3b1e-2c5d-4f7a-9b6e-0d1c2b3a4f5e",),
            OPENAI,
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        ),
        ("gemini-3-pro", ("function-call-1234567890",), OPENAI, r"call_[A-Za-z0-9]{24}"),
        ("house-model", ("undefined",), OPENAI, r"call_[A-Za-z0-9]{24}"),
        ("mistral-large", (), OPENAI, r"[A-Za-z0-9]{9}"),
        ("mistral-large", ("call_U7ZpbozYfIAQ0tyiqZ97HB65",), OPENAI, r"call_[A-Za-z0-9]{24}"),
        ("claude-opus-5", (), ANTHROPIC, r"toolu_01[A-Za-z0-9]{22}"),
        ("claude-opus-5", ("toolu_vrtx_01PTDKv6Qyw7d1FCjpYhj4Jm",), ANTHROPIC, r"toolu_vrtx_01[A-Za-z0-9]{22}"),
        ("claude-opus-5", ("tooluse_bpe71yCfRu2b5i-nKGDr5g",), ANTHROPIC, r"tooluse_[A-Za-z0-9-]{22}"),
        ("kimi-k2.5", (), ANTHROPIC, r"toolu_01[A-Za-z0-9]{22}"),
        ("kimi-k2.5", ("functions.read:0",), ANTHROPIC, r"functions\.read:1"),
    ],
)
def test_the_form_of_the_conversation(model: str, ids: Sequence[str], api: str, pattern: str) -> None:
    here = context(model, ids, api=api)
    new = mint(here, "read")
    assert re.fullmatch(pattern, new), new
    assert new not in ids
    assert form_of(new) is not None


def test_what_really_passed_decides_before_the_history() -> None:
    here = context("qwen3-32b", ("a1b2c3d4e",), passed=["chatcmpl-tool-838a30ab75717374"])
    assert re.fullmatch(r"chatcmpl-tool-[0-9a-f]{16}", mint(here, "read"))


def test_mistral_is_given_what_it_demands() -> None:
    here = context("mistral-large", ("call_U7ZpbozYfIAQ0tyiqZ97HB65",), url=URLS["mistral"])
    assert re.fullmatch(r"[A-Za-z0-9]{9}", mint(here, "read"))


@pytest.mark.parametrize("name", [None, "", "two words", "a:b"])
def test_a_name_that_no_id_can_hold(name: str | None) -> None:
    assert re.fullmatch(r"call_[A-Za-z0-9]{24}", mint(context("kimi-k2.5"), name))


def test_every_run_gives_the_same_ids_and_no_id_twice() -> None:
    one, two = (context("gpt-5.2", ("call_U7ZpbozYfIAQ0tyiqZ97HB65",)) for _ in range(2))
    made = [mint(one, "read") for _ in range(50)]
    assert made == [mint(two, "read") for _ in range(50)]
    assert len(set(made)) == 50


def test_few_possible_ids_do_not_collide() -> None:
    here = context("qwen3:8b", ("call_ab1z",))
    made = [mint(here, "read") for _ in range(500)]
    assert len(set(made)) == 500


def test_the_other_ids_of_the_reply_come_first() -> None:
    beside = context("house-model", passed=("functions.read:0",), taken=("call_U7ZpbozYfIAQ0tyiqZ97HB65",))
    assert re.fullmatch(r"call_[A-Za-z0-9]{24}", mint(beside, "read"))


def test_a_client_of_claude_gets_no_id_that_passed_elsewhere() -> None:
    """Two conversations that begin with the same words are taken for one; its ids may be none that Claude accepts."""
    elsewhere = context("house-model", api=ANTHROPIC, passed=("functions.read:0",))
    assert re.fullmatch(r"toolu_01[A-Za-z0-9]{22}", mint(elsewhere, "read"))
