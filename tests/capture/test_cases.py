"""Minimal reproducers: small, silent about people, the same every time, and still showing what they were made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import REGISTRY, Talk, User, as_record, checked
from tests.capture.shouts import write
from tests.command import Wirelint
from wirelint.capture.cases import (
    Budget,
    NoFindingError,
    Shrinker,
    at,
    disappointed,
    encode_case,
    expected,
    minimise,
    neutral,
    put,
    reproduce,
)
from wirelint.capture.format import decode_all
from wirelint.capture.record import Record
from wirelint.jsonvalues import strings
from wirelint.model import Json

ROOT = Path(__file__).resolve().parents[2]
RULES = REGISTRY.select([])
FAULTY = [json.loads(line) for line in (ROOT / "tests" / "corpus" / "anomalies.jsonl").read_text("utf-8").splitlines()]
ONE_EACH = {line["label"]: line for line in reversed(FAULTY)}
KEY = "sk-proj-Zq8vKx2LmTn4Rw6YpBdFhJcGs1Eu3Ao5Xi7Vk9MtQw"


# --- shrinking --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 30), max_size=30), st.sets(st.integers(0, 30), max_size=4))
def test_minimise_is_minimal(items: list[int], needed: set[int]) -> None:
    wanted = needed & set(items)

    def test(left: Any) -> bool:
        return wanted <= set(left)

    assert sorted(minimise(items, test)) == sorted(wanted)


values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abcXY12 .", max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(values, values)
def test_shrinking_keeps_what_it_has_to(inner: Json, beside: Json) -> None:
    """A needle in a haystack: all else goes, and what may stay says nothing."""
    value: Json = {"keep": [beside, {"deep": [inner, "needle in here"]}], "other": beside}

    def test(made: Json) -> bool:
        return any("needle" in text for _, text in strings(made))

    shrinker = Shrinker(value, test, Budget(3000, 30.0))
    shrinker.drop((), frozenset({"keep"}))
    for path in shrinker.plain(lambda path, text: False):
        shrinker.shorten(path)
    assert [text for _, text in strings(shrinker.value) if neutral(text) != text] == ["needle "]
    assert test(shrinker.value)


@given(values)
def test_places(value: Json) -> None:
    for path, text in strings(value):
        assert at(value, path) == text
        assert put(value, path, text) == value
        assert at(put(value, path, "other"), path) == "other"


SHAPES = {
    "Hello, Wörld 42!": "Xxxxx, Xxxxx 00!",
    "a\n[redacted:1f3a9c2e]b": "x\n[redacted:1f3a9c2e]x",
    "": "",
}


@pytest.mark.parametrize(("text", "made"), SHAPES.items(), ids=["words", "a mark", "nothing"])
def test_neutral(text: str, made: str) -> None:
    assert neutral(text) == made
    assert neutral(made) == made


def test_the_budget_ends_it() -> None:
    asked = 0

    def test(made: Json) -> bool:
        nonlocal asked
        asked += 1
        return False

    shrinker = Shrinker({"a": [{"b": "c"}] * 50}, test, Budget(7, 30.0))
    shrinker.drop()
    shrinker.plain(lambda path, text: False)
    assert asked == 7
    assert shrinker.budget.spent


# --- cases ------------------------------------------------------------------------------------------------------------


def _records(line: dict[str, Any]) -> list[Record]:
    return [as_record({"id": "before", **one}) for one in line.get("prior", ())] + [as_record(line)]


@pytest.mark.parametrize("line", ONE_EACH.values(), ids=ONE_EACH)
def test_a_case_of_every_rule(line: dict[str, Any]) -> None:
    *prior, record = _records(line)
    made = reproduce(record, RULES, names=[line["label"]], prior=prior, seconds=600)
    assert made.complete
    encoded = encode_case(made)
    assert len(made.record.request_body or b"") <= len(record.request_body or b"")
    records = decode_all(json.loads(encoded), "case", "line 1")
    last = checked(records, RULES)[-1]
    assert line["label"] in {finding.name for finding in last.findings}
    assert disappointed(records[-1], last.findings) == []
    assert {item["rule"] for item in expected(records[-1]) or ()} >= {line["label"]}


def _chat(content: str, answer: str, *, stream: bool = False) -> dict[str, Any]:
    tools = {name: (f"does {name}", {"type": "object"}) for name in ("read_file", "send_mail", "list_people")}
    talk = Talk((User(content),), answer, tools=tools, system="You help Doris Musterfrau.", step=5)
    made = talk.record("openai.chat", stream)
    made["request"] |= {
        "url": "https://llm.corp.example/v1/chat/completions?key=abcdefghijkl",
        "headers": {"authorization": f"Bearer {KEY}", "user-agent": "Agent of Doris"},
    }
    return made


LEAK = 'Of course, Doris!\n\n<invoke name="read_file">\n<arg name="path">/home/doris/taxes.txt</arg>\n</invoke>'


def test_nothing_is_said_about_people() -> None:
    record = as_record(_chat(f"Doris here, {KEY}, read my taxes " * 20, LEAK))
    made = reproduce(record, RULES, names=["xml-leak"])
    encoded = encode_case(made).decode()
    for word in ("Doris", "doris", "taxes", "corp", "Musterfrau", "send_mail", KEY):
        assert word not in encoded
    assert "read_file" in encoded
    assert len(encoded) < 1500
    assert made.plain == ("/response/choices/0/message/content",)
    assert encode_case(reproduce(record, RULES, names=["xml-leak"])).decode() == encoded


def test_a_stream_that_was_cut_into_pieces() -> None:
    """The pieces of a text are put together first: what is left of it is what the model said, and not a shred."""
    record = _chat("Read it", LEAK, stream=True)
    body = record["response"]["body"]
    for number in range(body.count('"created"')):  # what makes every event another
        body = body.replace('"created": 1767225600', f'"obfuscation": "{"x" * number}"', 1)
    record["response"]["body"] = body
    made = reproduce(as_record(record), RULES, names=["xml-leak"])
    body = (made.record.response_body or b"").decode()
    assert '<invoke name=\\"read_file\\">' in body
    assert body.count("data: ") <= 3


def test_no_finding_no_case() -> None:
    record = as_record(_chat("Hello", "Hello! How can I help?"))
    with pytest.raises(NoFindingError, match="no finding to reproduce"):
        reproduce(record, RULES)
    with pytest.raises(NoFindingError, match="no finding of think-leak"):
        reproduce(as_record(_chat("Read it", LEAK)), RULES, names=["think-leak"])


def test_little_time_gives_a_larger_case() -> None:
    record = as_record(_chat("Read it", LEAK))
    hasty = reproduce(record, RULES, names=["xml-leak"], steps=6)
    assert not hasty.complete
    assert hasty.steps <= 6
    assert [finding.name for finding in hasty.expect] == ["xml-leak"]


# --- the commands -----------------------------------------------------------------------------------------------------


def test_the_command_makes_what_check_confirms(tmp_path: Path, wirelint: Wirelint) -> None:
    source = write(tmp_path / "in.jsonl", _chat("Hello", "Hello!"), {**_chat("Read it", LEAK), "id": "leak"})
    out = tmp_path / "case.jsonl"
    made = wirelint("case", source, "-o", out)
    assert made.status == 0
    assert "xml-leak" in made.err
    assert "review before sharing" in made.err
    assert wirelint("check", out, "--expect").status == 0
    assert wirelint("check", out).status == 1
    broken = out.read_text(encoding="utf-8").replace("<", "(")
    out.write_text(broken, encoding="utf-8")
    judged = wirelint("check", out, "--expect")
    assert judged.status == 1
    assert "case: expected xml-leak response /choices/0/message/content" in judged.out


EXPECT = {
    "as it says": ([{"rule": "xml-leak", "side": "response"}], 0),
    "not what it says": ([{"rule": "think-leak"}], 1),
    "nothing, and there is something": ([], 1),
}


@pytest.mark.parametrize(("expect", "status"), EXPECT.values(), ids=EXPECT)
def test_cases_made_by_hand(tmp_path: Path, wirelint: Wirelint, expect: list[Any], status: int) -> None:
    path = write(tmp_path / "cases.jsonl", {**_chat("Read it", LEAK), "expect": expect}, _chat("Hi", "Hi!"))
    assert wirelint("check", path, "--expect").status == status


PROBLEMS: dict[str, tuple[Callable[[Path], list[Any]], str]] = {
    "no such exchange": (lambda path: [path, "nobody"], "no exchange nobody"),
    "two are meant": (lambda path: [path], "2 exchanges match; name one: a, b"),
    "nothing is found": (lambda path: [path, "c"], "c: no finding to reproduce"),
    "not found": (lambda path: [path.with_name("none")], "no such file or folder (check the path)\n"),
}


@pytest.mark.parametrize(("arguments", "says"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_no_case(tmp_path: Path, wirelint: Wirelint, arguments: Callable[[Path], list[Any]], says: str) -> None:
    path = write(
        tmp_path / "in.jsonl",
        {**_chat("Read it", LEAK), "id": "a"},
        {**_chat("Read that", LEAK), "id": "b"},
        {**_chat("Hi", "Hi!"), "id": "c"},
    )
    refused = wirelint("case", *arguments(path))
    assert (refused.status, refused.out) == (2, "")
    assert says in refused.err
    assert refused.err.count("\n") == 1
    wirelint("check", path, "--expect").refuses("no cases; `wirelint case` makes them")
