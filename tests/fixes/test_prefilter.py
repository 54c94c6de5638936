"""What is said to be quiet text is nothing to any rewriter: none changes it, and none holds it back."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.build import APIS, REGISTRY, Call, Talk, as_record, schema
from tests.fixes.drive import open_session, run
from wirelint.dialects.views import cut_escape
from wirelint.fix import FixPolicy
from wirelint.fixes.prefilter import CLEAR, LOUD, REACH, in_line, quiet, still
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.pipeline import Chain
from wirelint.state.ledger import Ledger

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
    *("<b>", " < b", "<", "[", "[0]", "[1](", "<String>", "<=", " << 2", "<div class", "<a href=", "[i][j]", " x<y"),
    *("Here is my response:", " thought", "/think", "DSML", " 3 ", ", ", ". "),
)
IS_QUIET = quiet(frozenset(TOOLS))
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=14)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All text goes through the rewriters at once."""
    monkeypatch.setattr(Chain, "glance", lambda self, block, text: LOUD)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.usefixtures("impatient")
@given(texts=TEXTS)
def test_nobody_minds_it(texts: list[str], api: str) -> None:
    said, inside = ["It says"], True
    for text in texts:
        if text and IS_QUIET(text, inside) == CLEAR and text.replace("\n", "").isprintable():
            said.append(text)
            inside = in_line(text, inside)
    talk = Talk(text="".join(said), tools=TOOLS, step=1)
    record = talk.record(api, True)
    body = record["response"]["body"].encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    edges = [sum(map(len, events[:number])) for number in range(1, len(events))]
    # The deltas of the record are cut otherwise: what counts is that none of them waits for the next.
    loud = [n for n in range(1, len(talk.text)) if IS_QUIET(talk.text[n], inside=False) != CLEAR]
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
    ("text", "inside", "place"),
    [
        ("the ferry", True, CLEAR),
        ("it goes t", True, CLEAR),
        ("it goes to=", True, CLEAR),
        ("It goes. t", True, 9),
        ("It goes. to", True, 9),
        ("It goes. to=", True, LOUD),
        ("an assistant t", True, 13),
        (" t", True, 1),
        ("t", True, 0),
        ("it goes to Bodø", True, CLEAR),
        ("a <b", True, 2),
        ("a <b to", True, CLEAR),
        ("a < b", True, CLEAR),
        ("a < b and", True, CLEAR),
        ("x[0] = List<Str", True, 11),
        ("x[0] = List<String>", True, CLEAR),
        ("see [", True, 4),
        ("see [1]", True, 6),
        ("see [1],", True, CLEAR),
        ("a <b></b>", True, CLEAR),
        ("a </fin", True, 2),
        ("a && b", True, CLEAR),
        ("a &", True, 2),
        ("a &amp", True, 2),
        ("a &amp; b", True, CLEAR),
        ("a &lt;b", True, LOUD),
        ("a &#6", True, LOUD),
        (r"x \frac{a}{b}", True, CLEAR),
        ("x \\", True, 2),
        (r"one\ntwo", True, CLEAR),
        (r"<b>\ntwo", True, LOUD),
        (r"<b>  \ntwo", True, LOUD),
        (r" \ntwo", True, LOUD),
        (r"say \"one\"", True, LOUD),
        (r"a \u003c", True, LOUD),
        ("so think>", True, LOUD),
        ("so pink>", True, CLEAR),
        ("</think>", True, LOUD),
        ("a <b, then <tool_call>", True, LOUD),
        ("a <fin", True, 2),
        ("a <find>", True, LOUD),
        ("one: m", True, 5),
        ("Obs", False, 0),
        ("Obs", True, CLEAR),
        ("Observation:", False, LOUD),
        ("   ", False, 0),
        ("one\n  ", True, 3),
        ("one\nObserv", True, 3),
        ("one\nObservation: two", True, LOUD),
        ("one\nfin", True, 3),
        ("one\nfinely", True, CLEAR),
        ("THINK]", True, LOUD),
        ("> and", True, LOUD),
        ("x >= y", True, CLEAR),
        ("d] e", True, CLEAR),
    ],
)
def test_what_has_to_wait(text: str, inside: bool, place: int) -> None:
    assert IS_QUIET(text, inside) == place


@pytest.mark.parametrize(
    ("before", "text", "place"),
    [
        ("The ferry goes", " to", CLEAR),
        ("The ferry goes ", "to", CLEAR),
        ("The ferry goes ", "to=", CLEAR),
        ("The ferry goes.", " to", 1),
        ("The ferry goes. ", "to=", LOUD),
        ("The assistant ", "to=", LOUD),
        ("The ferry stops at i", "t", CLEAR),
        ("The end of it: </think", "> and", LOUD),
        ("The end of it: list", "> and", CLEAR),
    ],
)
def test_what_has_gone_before_decides_on_what_waits(before: str, text: str, place: int) -> None:
    assert IS_QUIET(text, True, before[-REACH:]) == place


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
    rewriting = ReplyStream.begin(open_session(as_record(record)), REGISTRY.rules, Ledger(), FixPolicy("unsafe"))
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
    rewriting = ReplyStream.begin(open_session(as_record(record)), REGISTRY.rules, Ledger(), FixPolicy("unsafe"))
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
    assert 400 < longest < 600


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


def test_a_line_may_begin_with_the_name_of_a_tool() -> None:
    is_quiet = quiet(frozenset({"read_file", "Stra\u00dfe"}))
    for line in ("read_file(", "- **READ_FILE**", "> read_f\u0130le", "STRASSE:"):
        assert is_quiet(line, inside=False) == LOUD, line
        assert is_quiet(f"so.\n{line}\nand on", inside=True) == LOUD, line
    for cut in ("re", "* read_fil", "str", "stra\u00df", "#", ""):
        assert is_quiet(f"so.\n{cut}", inside=True) == (3 if cut else CLEAR), cut
    for line in ("read it", "a read_file", "stray"):
        assert is_quiet(line, inside=False) == CLEAR, line
        assert is_quiet(f"so.\n{line}", inside=True) == CLEAR, line
    assert is_quiet("one\nre\nad_file", inside=True) == CLEAR


def test_names_of_one_request_are_no_names_of_the_next() -> None:
    assert quiet(frozenset({"read_file"}))("read_file", inside=False) == LOUD
    assert quiet(frozenset())("read_file", inside=False) == CLEAR


@given(texts=TEXTS)
def test_what_is_loud_is_in_a_whole_text_as_well(texts: list[str]) -> None:
    """The quick look at a whole text passes over nothing that the other one sees, nor what a line of it begins with."""
    text = "".join(texts)
    if text and IS_QUIET(text, False) == LOUD:
        assert IS_QUIET.may_hold(text)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("The ferry leaves at nine, and comes back.", False),
        ("The ferry leaves.\n\n- at nine\n- at two, to Bod\u00f8", False),
        ("The ferry leaves.\nObservation: it left", True),
        ("The ferry leaves.\n  > find", True),
        ("The ferry to=self", True),
        ("find(", True),
        ("a < b", False),
        ("a <b", True),
        ("a <b>c</b> [1]", False),
        ("a <find>", True),
        ("see [TOOL_CALLS]", True),
        ("a && b &amp; c", False),
        ("a &lt;b&gt;", True),
        (r"x \in \mathbb{R}, say \nu", False),
        (r"say \"one\"", True),
        (r"<b> \none", True),
        (r"\none", True),
        ("a</think>", True),
        ("so think>", True),
        ("> quoted", True),
    ],
)
def test_whether_a_whole_text_may_hold_anything(text: str, holds: bool) -> None:
    assert IS_QUIET.may_hold(text) is holds


@given(st.text(alphabet='&\\\\#ulta03"n<> ', max_size=8))
def test_an_escape_that_is_cut_off_always_waits(text: str) -> None:
    if cut_escape(text):
        assert IS_QUIET(text, True) != CLEAR


STILL = re.compile(b'"(?>%b)"' % still())
TEXTS = st.one_of(
    st.text(alphabet="abcdefgmnotu .,(=>]<&A", max_size=10),
    st.lists(
        st.sampled_from(("assistant", "final", "t", "to", "to=", "func", "f", " ", "the", ", ", ".", "Act")), max_size=5
    ).map("".join),
)


@given(before=TEXTS, text=TEXTS.filter(bool))
@example(before="analy", text="sis to=find")
@example(before="the assistant", text=" to")
@example(before="so ", text="to=find")
@example(before="a <", text="b")
def test_text_that_is_still_is_quiet_whatever_stood_before_it(before: str, text: str) -> None:
    if STILL.fullmatch(json.dumps(text).encode()) is None:
        return
    whole = (f"{'.' * REACH}{before}")[-REACH:]
    assert IS_QUIET.may_begin(whole + text, REACH) is None
    assert IS_QUIET(text, True, whole) == CLEAR


@pytest.mark.parametrize(
    "text", ["the ferry", " leaves at nine.", "for it", " that is it", ", of all", " a most", "A way", "so t"]
)
def test_prose_is_still(text: str) -> None:
    assert STILL.fullmatch(json.dumps(text).encode())


@pytest.mark.parametrize(
    "text", [" t", " to", "to=", "func", "a\nb", "caf\u00e9", "\\", "<", "x > y", "`a`", "nt to", "see ["]
)
def test_what_is_not_still(text: str) -> None:
    assert STILL.fullmatch(json.dumps(text, ensure_ascii=False).encode()) is None
