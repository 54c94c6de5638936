"""What is said to be quiet text is nothing to any rewriter: none changes it, and none holds it back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, Call, Talk, schema
from tests.rewriters.drive import run
from wirelint.rewrite.chain import Chain
from wirelint.rewriters.quiet import in_line, quiet

TOOLS = {"find": schema(place="string"), "to": schema(place="string"), "call": schema(place="string")}
WORDS = (
    *(
        "the ",
        "ferry",
        " function",
        "s",
        ".find:0",
        " to",
        "=self",
        " analysis",
        "assistant",
        "final",
        " Observation",
        ":",
    ),
    *(
        "call",
        " count",
        " mm:",
        "antml:",
        "invoke",
        " think",
        "ing",
        '{"name": "find"',
        "`code`",
        "*",
        "#",
        " | ",
        "…",
        "語",
    ),
    *("\n", ".\n", "\n\n", "Then", "\n- two", "\nObserved", "\nCalls", "\nHuman", "\n{", "\nfin", "## Return"),
    *("Here is my response:", " thought", "/think", "DSML", " 3 ", ", ", ". "),
)
IS_QUIET = quiet(frozenset(TOOLS))
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=14)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All text goes through the rewriters at once."""
    monkeypatch.setattr(Chain, "passes", lambda self, events: False)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.usefixtures("impatient")
@given(texts=TEXTS)
def test_nobody_minds_it(texts: list[str], api: str) -> None:
    said, inside = ["It says"], True
    for text in texts:
        if text and IS_QUIET(text, inside) and text.replace("\n", "").isprintable():
            said.append(text)
            inside = in_line(text, inside)
    talk = Talk(text="".join(said), tools=TOOLS, step=1)
    record = talk.record(api, True)
    body = record["response"]["body"].encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    edges = [sum(map(len, events[:number])) for number in range(1, len(events))]
    # The deltas of the record are cut otherwise: what counts is that none of them waits for the next.
    loud = [n for n in range(1, len(talk.text)) if not IS_QUIET(talk.text[n], inside=False)]
    result = run(record, cuts=edges)
    assert result.delivered == body
    if not loud:
        assert len(result.pieces) >= len(events) - 2


def test_quiet_text_reaches_the_rewriters_before_what_follows_it() -> None:
    markup = '<tool_call>\n{"name": "find", "arguments": {"place": "Bodø"}}\n</tool_call>'
    talk = Talk(text=f"Let me see where that may be. {markup}", tools=TOOLS, step=3)
    for api in APIS:
        result = run(talk.record(api, True))
        assert result.after.reply is not None
        choice = result.after.reply.choices[0]
        assert choice.text.strip() == "Let me see where that may be."
        assert [(call.name, call.arguments.value) for call in choice.calls] == [("find", {"place": "Bodø"})]
        assert result.faults == ()


def test_a_code_span_that_passed_by_still_quotes() -> None:
    talk = Talk(text='One writes `<tool_call>{"name": "find"}</tool_call>` there.', tools=TOOLS, step=4)
    record = talk.record("openai.chat", True)
    assert run(record, ["xml-leak"]).delivered == record["response"]["body"].encode()


def test_calls_are_never_quiet() -> None:
    talk = Talk(text="Wait.", calls=[Call("find", {"place": "Bodø"})], tools=TOOLS, step=2)
    record = talk.record("openai.chat", True)
    assert run(record).delivered == record["response"]["body"].encode()


@pytest.mark.parametrize(
    ("text", "before", "inside"),
    [
        ("a", False, True),
        (" ", False, False),
        (" ", True, True),
        ("a\n", True, False),
        ("a\n ", True, False),
        ("\nb", False, True),
    ],
)
def test_whether_a_line_has_begun(text: str, before: bool, inside: bool) -> None:
    assert in_line(text, before) is inside
