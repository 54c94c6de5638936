r"""The delimiters that models put around their reasoning, as data: who writes which, and where each of them counts.

`thinking` looks for them. To add a notation, add its row. A name in angle brackets is an XML-like tag and needs no
expressions; for all others `opener` and `closer` are regular expressions of literals, classes, bounded repetition, groups
without nesting and positive look-ahead, from which the beginnings that a stream holds back are derived. A bar stands for
the full-width one too. Sources: the chat templates that vendors publish, the reasoning parsers of vLLM and SGLang.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Place = Literal["edge", "inner", "orphan"]
"""`edge`: at the beginning of what is said, or after a tool block. `inner`: a pair that opens on a line of its own.
`orphan`: the closer alone, whose opener stood in the prompt."""


@dataclass(frozen=True, slots=True)
class ReasoningTag:
    """One notation. `families`: who is trained on it, by our own short words; empty for what prompts ask for.

    `native` tags are never prose; prompted ones are written by models without a reasoning channel too.
    """

    name: str
    families: tuple[str, ...]
    opener: str = ""
    closer: str = ""
    places: frozenset[Place] = frozenset({"edge", "inner", "orphan"})
    native: bool = True


# Closers that end other things too tell nothing without their opener.
_PAIRED: frozenset[Place] = frozenset({"edge", "inner"})
_PROMPTED: frozenset[Place] = frozenset({"edge", "orphan"})

_THINKERS = (
    "deepseek", "qwen", "glm", "kimi", "minimax", "hunyuan", "ernie", "step", "mimo", "nemotron", "granite", "phi",
    "magistral", "exaone", "smollm", "ling", "hermes", "olmo",
)  # fmt: skip
_NAMESPACE = "antml:"
_HARMONY_END = r"<\|end\|>|<\|start\|>\s?assistant(?=\s?<\|channel\|>)|(?=<\|channel\|>\s?(?:final|commentary))"

REASONING_TAGS: tuple[ReasoningTag, ...] = (
    ReasoningTag("<think>", _THINKERS),
    ReasoningTag(f"<{_NAMESPACE}thinking>", ("claude",)),
    ReasoningTag("<thought>", ("exaone", "gemini")),
    ReasoningTag("<longcat_think>", ("longcat",)),
    ReasoningTag("<seed:think>", ("seed",)),
    ReasoningTag("<mm:think>", ("minimax",)),
    # The tokenizers of these add a suffix of their own to every marker.
    ReasoningTag("<think:…>", ("hunyuan",), r"<think:[^\s<>]{1,32}>", r"</think:[^\s<>]{1,32}>"),
    # One for each effort.
    ReasoningTag("<ifm|think>", ("k2-horizon",), r"<ifm\|think(?:_fast|_faster)?>", r"</ifm\|think(?:_fast|_faster)?>"),
    ReasoningTag("◁think▷", ("kimi",), "◁think▷", "◁/think▷"),
    ReasoningTag("[THINK]", ("magistral", "mistral"), r"\[THINK\]", r"\[/THINK\]"),
    ReasoningTag("[unused16]", ("pangu",), r"\[unused16\]", r"\[unused17\]"),
    ReasoningTag("<|think|>", ("solar",), r"<\|think\|>", r"<\|/think\|>|<\|end\|>(?=\s?<\|begin\|>)"),
    ReasoningTag("<|begin_of_thought|>", ("sky",), r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    ReasoningTag(
        "<|open|>think<|sep|>", ("kimi",), r"<\|open\|>\s?think\s?<\|sep\|>", r"<\|close\|>\s?think\s?<\|sep\|>"
    ),
    ReasoningTag("<|channel>thought", ("gemma",), r"<\|channel>thought\n?", r"<channel\|>", _PAIRED),
    ReasoningTag("<ctrl94>thought", ("gemini",), r"<ctrl94>(?:thought\n?)?", r"<ctrl95>"),
    # What goes on with a recipient or a type is a call that is written in this channel.
    ReasoningTag(
        "<|channel|>analysis",
        ("gpt-oss", "gpt"),
        r"<\|channel\|>\s?analysis(?:\s?<\|message\|>|\n|(?=[^\s<]))",
        _HARMONY_END,
        _PAIRED,
    ),
    ReasoningTag("<|START_THINKING|>", ("cohere",), r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    ReasoningTag("<|inner_prefix|>", ("apertus",), r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    ReasoningTag(
        "<|content_thinking|>",
        ("inkling",),
        r"(?:<\|message_model\|>)?<\|content_thinking\|>",
        r"<\|end_message\|>",
        _PAIRED,
    ),
    ReasoningTag(
        "<|plamo:begin_think:plamo|>", ("plamo",), r"<\|plamo:begin_think:plamo\|>", r"<\|plamo:end_think:plamo\|>"
    ),
    ReasoningTag("to=self<|message|>", ("muse",), r"to=self\s?<\|message\|>", r"<\|eom\|>", _PAIRED),
    # Open WebUI shows reasoning so; a model that reads its own history there imitates it.
    ReasoningTag(
        '<details type="reasoning">', (), r'<details type="reasoning"[^>\n]{0,80}>', r"</details>", _PAIRED
    ),
    *(
        ReasoningTag(f"<{name}>", families, places=_PROMPTED, native=False)
        for name, families in (
            ("thinking", ("claude", "apriel", "minimax")),
            ("reasoning", ()),
            ("scratchpad", ()),
            ("reflection", ()),
            ("antthinking", ("claude",)),
            ("inner_monologue", ()),
            ("chain_of_thought", ()),
        )
    ),
)  # fmt: skip

ANSWER_TAGS = ("answer", "response")
"""What Hunyuan, ERNIE and Granite put around the answer that follows a thought. Those made of tokens are framing."""

SENTENCES = (
    ("granite", r"here(?: is|['’]s) my thought process:", r"^\W{0,3}here(?: is|['’]s) my response:\W{0,3}"),
    ("apriel", r"here are my reasoning steps:", r"^\[BEGIN FINAL RESPONSE\]"),
)
"""Frames made of words, in any case: family, what begins one, what ends it at the beginning of a line."""

SENTENCE_HEADS = (
    "here is my thought process:",
    "here's my thought process:",
    "here’s my thought process:",
    "here are my reasoning steps:",
)
"""All that the expressions of `SENTENCES` begin with, written out."""

FINAL_RESPONSE = re.compile(r"^\[BEGIN FINAL RESPONSE\]", re.MULTILINE)

CUT_TOKEN = re.compile(r"<(?:[|｜][^|｜<>\s]{0,40}[|｜]?)?\Z")
PLACE = re.compile(r"(?:\A|[\n>|\]])[ \t\r\n]*\Z")
"""What stands before a tag that opens in the middle: the beginning of its line, or the end of other markup."""
CUT_TAG = re.compile(r"(?:[<\[◁&]|to=)[^<>\[\]\n]{0,64}\Z")
MAY_OPEN = re.compile(r"[<\[◁]|to=")
