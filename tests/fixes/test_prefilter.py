"""The prefilter lets only text pass that no rewriter changes or holds back."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, REGISTRY, Talk, as_record, schema
from tests.fixes.drive import UNSAFE, open_session, run
from wirelint.capture.record import Record
from wirelint.dialects.views import cut_escape
from wirelint.fixes.prefilter import Prefilter, in_line, prefilter_for
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.pipeline import Pipeline
from wirelint.state.ledger import Ledger

TOOLS = {"find": schema(place="string"), "to": schema(place="string"), "call": schema(place="string")}
WORDS = (
    "the ", "ferry", " function", "s", ".find:0", " to", "=self", " analysis", "assistant", "final", " Observation", ":",
    "call", " count", " mm:", "antml:", "invoke", " think", "ing", '{"name": "find"', "`code`", "*", "#", " | ", "…", "語",
    "\n", ".\n", "\n\n", "Then", "\n- two", "\nObserved", "\nCalls", "\nHuman", "\n{", "\nfin", "## Return", "/think",
    "<b>", " < b", "<", "[", "[0]", "[1](", "<String>", "<=", " << 2", "<div class", "<a href=", "[i][j]", " x<y", ". ",
    "Here is my response:", " thought", "DSML", " 3 ", ", ",
)  # fmt: skip
MAY_START = prefilter_for(frozenset(TOOLS)).may_start
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=14)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All text goes through the rewriters at once."""
    monkeypatch.setattr(Pipeline, "may_pass", lambda self, block, text: False)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.usefixtures("impatient")
@given(texts=TEXTS)
def test_nobody_minds_it(texts: list[str], api: str) -> None:
    said, inside = ["It says"], True
    for text in texts:
        if text and not MAY_START(text, inside) and text.replace("\n", "").isprintable():
            said.append(text)
            inside = in_line(text, inside)
    talk = Talk(text="".join(said), tools=TOOLS, step=1)
    record = talk.record(api, True)
    body = record["response"]["body"].encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    edges = [sum(map(len, events[:number])) for number in range(1, len(events))]
    # The deltas of the record are cut otherwise: what counts is that none of them waits for the next.
    loud = [n for n in range(1, len(talk.text)) if MAY_START(talk.text[n], inside=False)]
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


@pytest.mark.parametrize(
    ("text", "inside", "starts"),
    [
        ("the ferry", True, False),
        ("it goes t", True, False),
        ("It goes. t", True, True),
        ("It goes. to=", True, True),
        ("t", True, True),
        ("a <b", True, True),
        ("a < b", True, False),
        ("x[0] = List<String>", True, False),
        ("see [1],", True, False),
        ("a </fin", True, True),
        ("a &", True, True),
        ("a &lt;b", True, True),
        (r"x \frac{a}{b}", True, False),
        (r"<b>\ntwo", True, True),
        (r"say \"one\"", True, True),
        ("so think>", True, True),
        ("</think>", True, True),
        ("a <find>", True, True),
        ("Obs", False, True),
        ("Obs", True, False),
        ("Observation:", False, True),
        ("one\nObserv", True, True),
        ("one\nObservation: two", True, True),
    ],
)
def test_what_has_to_wait(text: str, inside: bool, starts: bool) -> None:
    assert MAY_START(text, inside) is starts


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("varied", [False, True], ids=["alike", "each of its own"])
def test_a_word_that_waits_leaves_with_the_next(api: str, varied: bool) -> None:
    text = "One goes to it: there, too. the ferry as well.\n  And so (to it); then."
    record = Talk(text=text, tools=TOOLS, step=1).record(api, True)
    body = record["response"]["body"].encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    if varied:  # an event that says more than the one before it is read before it leaves
        events = [event.replace(b"{", b'{"obfuscation":"%d",' % number, 1) for number, event in enumerate(events)]
        record["response"]["body"] = b"".join(events).decode()
    rewriting = ReplyStream.begin(open_session(as_record(record)), REGISTRY.rules, Ledger(), UNSAFE)
    assert rewriting is not None
    steps = [rewriting.feed(event) for event in events]
    steps.append(rewriting.end())
    assert b"".join(itertools.chain(*steps)) == b"".join(events)
    assert not rewriting.faults
    assert not rewriting.changed
    told = [number for number, event in enumerate(events) if re.search(b'"(content|text)": ?".{1,2}"', event)]
    assert len(told) == len(text)
    waits = [told[found.start()] for found in re.finditer(r"(?<=[:.;] )t|(?<=\()t", text)]
    assert len(waits) == 4  # there, the, to, then: what goes on a sentence does not wait
    for number in waits:
        assert steps[number] == []
        assert next(filter(None, steps[number:]))[0] == events[number]


def test_blanks_without_end_are_not_waited_for_without_end() -> None:
    talk = Talk(text="One goes there.\n" + " " * 1200 + "x", tools=TOOLS, step=1)
    record = talk.record("openai.chat", True)
    body = record["response"]["body"].encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    rewriting = ReplyStream.begin(open_session(as_record(record)), REGISTRY.rules, Ledger(), UNSAFE)
    assert rewriting is not None
    longest = waits = 0
    out: list[bytes] = []
    for event in events:
        step = rewriting.feed(event)
        waits = 0 if step else waits + 1
        longest = max(longest, waits)
        out += step
    out += rewriting.end()
    assert b"".join(out) == body
    assert not rewriting.faults
    assert longest < 600


def test_a_code_span_that_passed_by_still_quotes() -> None:
    talk = Talk(text='One writes `<tool_call>{"name": "find"}</tool_call>` there.', tools=TOOLS, step=4)
    record = talk.record("openai.chat", True)
    assert run(record, ["xml-leak"]).delivered == record["response"]["body"].encode()


@pytest.mark.parametrize("end", ["</think>", "</thinking>", "[/THINK]"])
def test_white_space_behind_a_thought_is_not_quiet(end: str) -> None:
    """There the text begins anew, and what may begin a text is looked for."""
    for step in range(1, 30):
        talk = Talk(text=f"<thinking>I have to find it, both times.{end}\n", tools=TOOLS, step=step)
        record = talk.record("openai.chat", True)
        assert run(record, ["xml-leak"]).faults == (), step


def test_a_line_may_begin_with_the_name_of_a_tool() -> None:
    may_start = prefilter_for(frozenset({"read_file", "Stra\u00dfe"})).may_start
    for line in ("read_file(", "- **READ_FILE**", "> read_f\u0130le", "STRASSE:"):
        assert may_start(line, inside=False), line
        assert may_start(f"so.\n{line}\nand on", inside=True), line
    for cut in ("re", "* read_fil", "str", "stra\u00df", "#", ""):
        assert may_start(f"so.\n{cut}", inside=True) is bool(cut), cut
    for line in ("read it", "a read_file", "stray"):
        assert not may_start(line, inside=False), line
        assert not may_start(f"so.\n{line}", inside=True), line
    assert not may_start("one\nre\nad_file", inside=True)


@given(st.text(alphabet='&\\\\#ulta03"n<> ', max_size=8))
def test_an_escape_that_is_cut_off_always_waits(text: str) -> None:
    if cut_escape(text):
        assert MAY_START(text, True)


SEARCH = {"find": schema(place="string"), "read_note": schema(path="string")}
MARKUP = (
    '<tool_call>\n{"name": "find", "arguments": {"place": "Bodø"}}\n</tool_call>',
    '<invoke name="find"><parameter name="place">Bodø</parameter></invoke>',
    '[TOOL_CALLS][{"name": "find", "arguments": {"place": "Bodø"}}]',
    "<find><place>Bodø</place></find>",
    "<|im_end|>", "[INST]", "<think>So.</think>", "<tool_response>Bodø</tool_response>", "</s>", "<answer>", "</find>",
)  # fmt: skip
CODE = (
    *("if (a < b && c <= d) ", "x[0] = y[i]; ", "List<String> l; ", '<div class="a">', "</div>", "<T>", "[1] ", "<<"),
    *("[text](url) ", "cout << x;\n", " <- ", "`<b>` ", "\n```tsx\n", "\n```\n", "a<b", "Array<", "<", "[", "[[", "< "),
    *("</b>", "</parameter></function>", "</", "a && b", "&amp;", "&", "&lt;b&gt;", "&lt;find&gt;", "think>", "king>"),
    *(r"\frac{a}{b}", "\\", r"\n", r"\"a\"", r"\u003cfind\u003e", ">\\n{", "*p = &q;"),
    *("[ ", "Promise<T[]>", "Well: ", "So.\n", "<json", "<function", "<response>", "[{", "]>", ">>", "find", "\n"),
)


@given(
    parts=st.lists(st.one_of(st.sampled_from(CODE), st.sampled_from(MARKUP), st.text(max_size=4)), max_size=8),
    step=st.sampled_from((1, 2, 3, 4, 5, 7, 11, 40)),
    api=st.sampled_from(("openai.chat", "anthropic.messages")),
    model=st.sampled_from(("m", "qwen3", "kimi-k2", "deepseek-r1", "gpt-oss-20b")),
)
def test_fixes_are_those_without_the_prefilter(parts: list[str], step: int, api: str, model: str) -> None:
    text = "".join(parts) or "So."
    record = as_record(Talk(text=text, tools=SEARCH, model=model, step=step).record(api, True), 1)
    told = _repaired(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prefilter, "may_start", lambda *_: True)
        patch.setattr(Pipeline, "may_pass", lambda *_: False)
        assert told == _repaired(record)


def _repaired(record: Record) -> tuple[object, ...]:
    """What the client gets of a reply, and what is said of it."""
    rewriting = ReplyStream.begin(open_session(record), REGISTRY.rules, Ledger(), UNSAFE)
    assert rewriting is not None
    events = [event + b"\n\n" for event in (record.response_body or b"").split(b"\n\n") if event]
    out = [piece for event in events for piece in rewriting.feed(event)]
    out += rewriting.end()
    assert rewriting.faults == []
    return b"".join(out), tuple(map(repr, rewriting.repairs)), tuple(rewriting.notes)
