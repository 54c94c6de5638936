"""Signs that begin nothing: nobody minds them, and all goes as if every one of them were looked into."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import REGISTRY, Talk, as_record, schema
from tests.fixes.drive import UNSAFE, open_session
from wirelint.capture.record import Record
from wirelint.fixes.prefilter import LOUD, Quiet, look
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.pipeline import Chain
from wirelint.state.ledger import Ledger

NAMES = frozenset({"find", "T", "read_note"})
TOOLS = {"find": schema(place="string"), "read_note": schema(path="string")}

NOTHING = (
    *(
        "<in>",
        "< b &&",
        "<= 3",
        "<<= 2",
        "<- y",
        "<String>",
        "<div class",
        "<p>",
        "<br/>",
        "<int> x",
        "<!-- c",
        "<a href",
    ),
    *("<Array<T", "<thinkpad>", "<html>", "<Foo.Bar>", "<script>", "<jsonpath>", "<finder>", "<invoice>"),
    *("</div>", "</b>\n", "</li>x", "</x:y>", "</finder>", "</call>"),
    *("[0]", "[i]", "[ ]", "[]", "[text](", "[x for x", '["a"', "[1, 2]", "[^1]", "[[0]", "[/x]"),
)
SOMETHING = (
    *("<think>", "<tool_call>", "<function=x", "<call>", "<phonecall>", "<answer>", "<response>", "<tools>", "<json>"),
    *("<|x", "<｜t", "< |x", "<find>", "<T>", "< find >", "<xml>", "<<SYS>>", "<details type", "<tool_response>"),
    *("</tool_call>", "</parameter>", "</ invoke>", "</s>", "</think>", "</find>", "</response>", "</ |DSML"),
    *("[INST]", "[TOOL_CALLS]", "[{", "[/INST]", "[THINK]", "[unused16]", "<co: 1>", "<SPECIAL_12>"),
)
UNTOLD = ("<", "< ", "<Str", "<T", "<fin", "[", "[TOOL", "<div", "<<", "<tool_", "</", "</b", "</tool_cal", "</fin")


@pytest.mark.parametrize("text", NOTHING)
def test_what_begins_nothing(text: str) -> None:
    assert look(text, 0, NAMES) is False
    assert look(f"one {text} two", 4, NAMES) is False


@pytest.mark.parametrize("text", SOMETHING)
def test_what_may_begin_something(text: str) -> None:
    assert look(f"{text} ", 0, NAMES) is True


@pytest.mark.parametrize("text", UNTOLD)
def test_what_only_more_text_tells(text: str) -> None:
    assert look(text, 0, NAMES) is None


def test_a_word_without_end_is_looked_into() -> None:
    assert look(f"<{'x' * 80} y", 0, NAMES) is True


def test_names_count_where_they_stand_in_angle_brackets() -> None:
    assert look("<find>", 0, frozenset()) is False
    assert look("[find]", 0, NAMES) is False


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
def test_all_goes_as_if_everything_were_looked_into(parts: list[str], step: int, api: str, model: str) -> None:
    text = "".join(parts) or "So."
    record = as_record(Talk(text=text, tools=TOOLS, model=model, step=step).record(api, True), 1)
    told = _repaired(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Quiet, "__call__", lambda *_: LOUD)
        patch.setattr(Quiet, "may_hold", lambda *_: True)
        patch.setattr(Chain, "try_fast_path", lambda *_: False)
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
