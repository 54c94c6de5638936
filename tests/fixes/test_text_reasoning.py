"""Reasoning in the visible text moves to the API's own field, and framing goes from the edges, however a stream is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.build import FORMS, Assistant, Call, Talk, User, as_record, schema
from tests.fixes.drive import Result, run
from tests.fixes.passing import ANTHROPIC, OPENAI, send
from tests.selection import sampled
from wirelint.apis import APIS, channel_of
from wirelint.apis.traits import is_raw
from wirelint.events import Delta, Start
from wirelint.fix import FixPolicy

TOOLS = {"find_ferry": schema(harbour="string")}
MARKUP = '<tool_call>\n{"name": "find_ferry", "arguments": {"harbour": "Bodø"}}\n</tool_call>'


@dataclass(frozen=True)
class Case:
    """`text` as it came; what is left of it, and what is reasoning then. `live`: streams are repaired at every cut."""

    text: str
    left: str
    thought: str = ""
    rules: Sequence[str] = ("think-leak",)
    talk: Talk = field(default_factory=lambda: Talk(tools=TOOLS))
    live: bool = True
    most: str = "unsafe"

    @property
    def changes(self) -> bool:
        return self.left != self.text


def same(text: str, **more: object) -> Case:
    return Case(text, text, **more)  # type: ignore[arg-type]


TOKENS = ("control-token-leak",)
HARMONY = (
    "<|channel|>analysis<|message|>They greet.<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|return|>"
)
CASES = {
    "a pair": Case("<think>\nThey greet me.\n</think>\n\nHello!", "Hello!", "They greet me.\n"),
    "white space before": Case("\n\n<think>Hm.</think>Hello!", "Hello!", "Hm."),
    "empty": Case("<think>\n</think>\n\nHello!", "Hello!"),
    "two": Case("<think>One.</think>\n<think>Two.</think>\nHello!", "Hello!", "One.\n\nTwo."),
    "never closed": Case("<think>I go on and on", "", "I go on and on"),
    "brackets": Case("[THINK]Hm.[/THINK]Hello!", "Hello!", "Hm."),
    "glyphs": Case("◁think▷Hm.◁/think▷Hello!", "Hello!", "Hm."),
    "harmony": Case(HARMONY, "<|start|>assistant<|channel|>final<|message|>Hello!<|return|>", "They greet."),
    "harmony, all rules": Case(HARMONY, "Hello!", "They greet.", ("think-leak", *TOKENS)),
    "the closer only": Case("</think>\n\nHello!", "Hello!"),
    "the opener missing": Case("They greet me.\n</think>\n\nHello!", "Hello!", "They greet me.", live=False),
    "in the middle": Case("Hello.\n<think>\nWhat else?\n</think>\nBye.", "Hello.\nBye.", "What else?\n"),
    "channels without tokens": Case("analysisThe user greets.assistantfinalHello!", "Hello!", "The user greets."),
    "a header before it": Case(
        "<|im_start|>assistant\n<think>Hm.</think>Hello!", "Hello!", "Hm.", ("think-leak", *TOKENS)
    ),
    "after a tool block": Case(f"{MARKUP}\n<think>I wait.</think>\nDone.", f"{MARKUP}\nDone.", "I wait."),
    "spoken of": same("<think> tags hold what a model thinks."),
    "spoken of, closed": same("The <think> tag opens it. The </think> tag ends it."),
    "in inline code": same("`<think>` and `</think>` are tags."),
    "in a fence": same("So:\n```\n<think>\nHm.\n</think>\n```\nThat is it."),
    "introduced": same("Like this:\n<think>\nHm.\n</think>\nSee?"),
    "prompted, no channel": same("<thinking>Hm.</thinking>Hello!"),
    "prompted, a channel": Case(
        "<thinking>Hm.</thinking>Hello!", "Hello!", "Hm.", talk=Talk(tools=TOOLS, model="qwen3-32b")
    ),
    "html": same("<div><b>x</b></div> <thing>"),
    "asked for": same("<think>Hm.</think>Hello!", talk=Talk((User("Think in <think> first."),))),
    "raw wanted": same("<think>Hm.</think>Hello!", talk=Talk(request={"reasoning_format": "raw"})),
    "words": same("analysis of the data\nthought it over, a nice day"),
    "one bracket": same("<"),
    "safe only": same("<think>Hm.</think>Hello!", most="safe"),
    "the opener twice": Case("<think>\n<think>\nThey greet.</think>Hello!", "Hello!", "They greet."),
    "the closer twice": Case("<think>They greet.</think></think>\nHello!", "Hello!", "They greet."),
    "escaped brackets": Case("&lt;think&gt;They greet.&lt;/think&gt;Hello!", "Hello!", "They greet."),
    "full-width bars": Case("<｜inner_prefix｜>Hm.<｜inner_suffix｜>Hello!", "Hello!", "Hm."),
    "a tag around the answer": Case(
        "<think>Hm.</think>\n<answer>\nHello <b>you</b>!\n</answer>", "Hello <b>you</b>!", "Hm."
    ),
    "a tag around the answer, cut": Case("<think>Hm.</think>\n<response>\nHello!</resp", "Hello!</resp", "Hm."),
    "a tag around the answer, asked for": Case(
        "<think>Hm.</think>\n<answer>Hello!</answer>",
        "<answer>Hello!</answer>",
        "Hm.",
        talk=Talk((User("Put it into <answer>."),)),
    ),
    "an answer about answers": same("<answer>Hello!</answer>"),
    "an empty thought and an answer": Case("<think>\n\n</think>\n\n<answer>Hello!</answer>", "Hello!"),
    "a channel with blanks": Case(
        "<|channel|> analysis<|message|> They greet.<|end|> <|start|> assistant<|channel|> final<|message|> Hello!",
        "Hello!",
        "They greet.",
        ("think-leak", "control-token-leak"),
    ),
    "a recipient": Case(
        "<|start|>assistant to=self<|message|>They greet.<|eom|><|start|>assistant to=user<|message|>Hello!<|eot|>",
        "Hello!",
        "They greet.",
        ("think-leak", "control-token-leak"),
    ),
    "kimi's tokens": Case(
        "<|open|>think<|sep|>They greet.<|close|>think<|sep|><|open|>response<|sep|>Hello!<|close|>response<|sep|>",
        "Hello!",
        "They greet.",
        ("think-leak", "control-token-leak"),
    ),
    "cohere's tokens": Case(
        "<|START_THINKING|>They greet.<|END_THINKING|><|START_RESPONSE|>Hello!<|END_RESPONSE|>",
        "Hello!",
        "They greet.",
        ("think-leak", "control-token-leak"),
    ),
    "open web ui": Case(
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought for 2 seconds</summary>\n> Hm.\n</details>'
        "\nHello!",
        "Hello!",
        "<summary>Thought for 2 seconds</summary>\n> Hm.\n",
    ),
    "a call in a channel": same('<|channel|>analysis to=functions.other <|constrain|>json<|message|>{"a": 1}<|call|>'),
    "any word after the channel's name": Case(
        "analysisGreetings ask for greetings.assistantfinalHello!",
        "Hello!",
        "Greetings ask for greetings.",
        talk=Talk(model="gpt-oss-120b"),
    ),
    "a variable's name": same("analysisResults holds the final values.", talk=Talk(model="gpt-oss-120b")),
    "a tag with attributes": same(
        '<plan><reasoning kind="a">Hm.</reasoning>\n\nGo on.</plan>', talk=Talk(model="qwen3-32b")
    ),
    # --- tokens ---
    "an end": Case("Hello!<|im_end|>", "Hello!", rules=TOKENS, most="safe"),
    "ends in a row": Case("Hello!<|im_end|>\n<|im_end|>\n", "Hello!", rules=TOKENS),
    "a beginning": Case("<|im_start|>assistant\nHello my friend!", "Hello my friend!", rules=TOKENS, most="safe"),
    "both": Case("<|im_start|>assistant\nHello my friend!<|im_end|>", "Hello my friend!", rules=TOKENS, most="safe"),
    "other bars": Case("Lima.<｜end▁of▁sentence｜>", "Lima.", rules=TOKENS, most="safe"),
    "a role's name": Case("assistant\nHello my dear friend", "Hello my dear friend", rules=TOKENS, most="safe"),
    "the next speaker": Case("Hi.<|im_end|>\n<|im_start|>user\nThanks a lot", "Hi.", rules=TOKENS),
    "a call behind the end": Case("Hi.<|im_end|> I call [TOOL_CALLS] now, and that is all", "Hi.", rules=TOKENS),
    "a call behind the beginning": Case(
        "<|im_end|> [TOOL_CALLS] , now nine and ten", "[TOOL_CALLS] , now nine and ten", rules=TOKENS, most="safe"
    ),
    "ends in a row, and the next speaker": Case(
        "Hi.<|id|><|start_header_id|>user for that reason", "Hi.", rules=TOKENS
    ),
    "an end in code": same("We write ``` I<|im_end|>I and then more of it ``` and go on", rules=TOKENS),
    "an end in code that is none": Case(
        "We write ` I<|im_end|>I and then more of it and go on", "We write ` I", rules=TOKENS
    ),
    "a call before the end": same("Hi. [TOOL_CALLS] I call now <|im_end|> and that is all", rules=TOKENS),
    "the next speaker, safe": same("Hi.<|im_end|>\n<|im_start|>user\nThanks a lot", rules=TOKENS, most="safe"),
    "a beginning and the next speaker, safe": Case(
        "<|im_start|>assistant\nHi you.<|im_end|>\n<|im_start|>user\nThanks a lot",
        "Hi you.<|im_end|>\n<|im_start|>user\nThanks a lot",
        rules=TOKENS,
        most="safe",
    ),
    "a token spoken of": same("The `<|im_end|>` token ends it. Use <|im_end|> tokens.", rules=TOKENS),
    "nothing but a token": same("<|im_end|>", rules=TOKENS),
    "half a token": same("x <|im_", rules=TOKENS),
    "struck out": same("<s>old</s> and new", rules=TOKENS),
    "generics": same("List<String> x = a[1]; if (a < b) {}", rules=TOKENS),
    "tokens of a call": same("<|tool_call_begin|>functions.find_ferry:0<|tool_call_argument_begin|>{}", rules=TOKENS),
    # --- together ---
    "a thought and a call": Case(f"<think>A ferry.</think>\n\n{MARKUP}<|im_end|>", "", "A ferry.", ("LK",)),
    "a call in a thought that never ends": Case(f"<think>A ferry.\n{MARKUP}", "", "A ferry.\n", ("LK101", "LK103")),
    "a draft in a thought": Case(
        f"<think>Maybe {MARKUP}?</think>None.", "None.", f"Maybe {MARKUP}?", ("LK101", "LK103")
    ),
}


@pytest.mark.parametrize("api", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_whole_and_at_every_cut(case: Case, api: str) -> None:
    permit = FixPolicy("safe" if case.most == "safe" else "unsafe")
    cuts = [list(case.text), *([case.text[:at], case.text[at:]] for at in sampled(range(1, len(case.text))))]
    reason = "stop" if api == OPENAI else "end_turn"
    for pieces in (None, *(cuts if case.live else ())):
        parts = [("text", pieces or [case.text])]
        streamed = pieces is not None
        passed = send(case.talk, parts, case.rules, api=api, streamed=streamed, reason=reason, permit=permit)  # type: ignore[arg-type]
        assert (passed.choice.text.strip(), passed.choice.reasoning) == (case.left.strip(), case.thought), pieces
        assert passed.untouched == (not case.changes)
        assert bool(passed.context.repairs) == case.changes


@pytest.mark.parametrize(("api", "stream"), FORMS)
@pytest.mark.parametrize("name", ["a pair", "in the middle", "two", "both", "a thought and a call"])
def test_on_the_wire(name: str, api: str, stream: bool) -> None:
    case = CASES[name]
    talk = Talk(text=case.text, tools=TOOLS, step=4)
    done = run(talk.record(api, stream), case.rules)
    assert done.after.reply is not None
    choice = done.after.reply.choices[0]
    assert (choice.text.strip(), choice.reasoning.strip()) == (case.left.strip(), case.thought.strip())
    assert not done.after.reply.faults
    assert not [finding for finding in done.left if finding.fix is not None]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_comes_before_text_and_no_block_is_empty(stream: bool) -> None:
    talk = Talk(text="<think>Hm, hm.</think>\n\nHello!", step=3)
    done = run(talk.record(ANTHROPIC, stream), ["think-leak"])
    assert done.after.reply is not None
    assert [type(part).__name__ for part in done.after.reply.choices[0].parts] == ["Reasoning", "Text"]
    assert done.delivered.count(b'"type": "text"') + done.delivered.count(b'"type":"text"') == 1


def test_a_thought_is_passed_on_while_it_comes() -> None:
    pieces = ["<think>", "Okay, ", "they ", "greet", " me", "</think>", "Hi"]
    passed = send(Talk(), [("text", pieces)], ["think-leak"])
    started = next(
        place for place, event in enumerate(passed.out) if isinstance(event, Start) and event.kind == "reasoning"
    )
    thought = [event.text for event in passed.out[started:] if isinstance(event, Delta)]
    assert thought == ["Okay, ", "they ", "greet", " me", "Hi"]
    assert [frame is not None for frame in passed.waits[1:6]] == [False, False, False, False, False]


@pytest.mark.parametrize(("api", "stream"), FORMS)
def test_a_name_of_a_channel_before_calls(api: str, stream: bool) -> None:
    said = "thought\nThe user wants the ferry of tomorrow, so I look."
    talk = Talk(text=said, calls=[Call("find_ferry", {"harbour": "Bodø"})], tools=TOOLS, model="gemma-4-26b")
    done = run(talk.record(api, stream), ["think-leak"])
    assert done.after.reply is not None
    choice = done.after.reply.choices[0]
    assert (choice.text, choice.reasoning) == ("", said.removeprefix("thought\n"))


@pytest.mark.parametrize(
    "text", ["a <|im_end|> " * 3_000, "hi\n<think>\n" * 3_000, "<|im_start|>" * 3_000], ids=range(3)
)
def test_text_full_of_tags_is_linear_and_leaves_as_it_came(text: str) -> None:
    pieces = [text[at : at + 11] for at in range(0, len(text), 11)]
    talk = Talk((User("What are special tokens and think tags?"),))
    assert send(talk, [("text", pieces)], ["think-leak", "control-token-leak"]).untouched


SENTENCE = "They greet me, so I greet."
LONE = f"{SENTENCE}\n</think>\n\nHello, friend!"
STREAMS = [api.name for api in APIS if channel_of(api.name) == "model" and not is_raw(api.name, None)]


@pytest.mark.parametrize("step", [1, 3, 7])
@pytest.mark.parametrize("api", STREAMS)
def test_a_lone_closing_tag_goes_from_a_stream_and_the_next_reply_waits_for_it(api: str, step: int) -> None:
    first, plain = (Talk(text=text, step=step).record(api, True) for text in (LONE, "Hello!"))
    alone = run(first, ["think-leak"])
    assert _said(alone) == (f"{SENTENCE}\n\n\nHello, friend!", "")
    assert alone.left == ()
    assert [finding.fix is not None for finding in alone.findings] == [True]
    known = run([first, first], ["think-leak"])
    assert _said(known) == ("Hello, friend!", SENTENCE)
    assert known.left == ()
    # A reply without such a tag leaves as it came, and nothing waits any more.
    assert run([first, plain], ["think-leak"]).delivered == as_record(plain, 1).response_body
    assert _said(run([first, plain, first], ["think-leak"]))[1] == ""


@pytest.mark.parametrize(
    "text",
    [
        "The tags are <think> and </think>, as you know.",
        "Write `</think>` at the end.",
        "In HTML </b> ends what <b> begins.",
        "```\nHm.\n</think>\nHello!\n```\n",
    ],
)
@pytest.mark.parametrize("step", [1, 5])
def test_no_lone_closing_tag(text: str, step: int) -> None:
    first, spoken = (Talk(text=said, step=step).record(OPENAI, True) for said in (LONE, text))
    for records in ([spoken], [first, spoken]):
        assert run(records, ["think-leak"]).delivered == as_record(spoken, 1).response_body


def test_a_thought_that_takes_too_long_leaves_as_text_and_its_tag_goes() -> None:
    record = Talk(text=LONE, step=3).record(OPENAI, True)
    body = as_record(record, 1).response_body or b""
    done = run([record, record], ["think-leak"], cuts=range(40, len(body), 40), step=100.0, longest_hold=2_500.0)
    assert _said(done) == (f"{SENTENCE}\n\n\nHello, friend!", "")


def test_text_before_a_call_does_not_wait_for_a_closing_tag_for_ever() -> None:
    first = Talk(text=LONE, step=3).record(OPENAI, True)
    called = Talk(text="I look.", calls=[Call("find_ferry", {"harbour": "Bodø"})], tools=TOOLS, step=3)
    record = called.record(OPENAI, True)
    assert run([first, record], ["think-leak"]).delivered == as_record(record, 1).response_body


def _said(done: Result) -> tuple[str, str]:
    assert done.after.reply is not None
    choice = done.after.reply.choices[0]
    return choice.text, choice.reasoning.strip()


def test_another_conversation_does_not_say_how_this_one_goes_on() -> None:
    def turn(*said: str, text: str) -> dict[str, object]:
        history = [User("Hi"), *(turn for one in said for turn in (Assistant(one), User("And?")))]
        return Talk(history, text=text, step=3).record(OPENAI, True)

    first, other = turn(text=LONE), Talk((User("Who?"),), text="Me.", step=3).record(OPENAI, True)
    later = turn(LONE, text=LONE)
    assert _said(run([first, other, later], ["think-leak"])) == ("Hello, friend!", SENTENCE)
