"""Anthropic's invoke markup, as Claude writes it when its calls come out as text, and as others imitate it.

Lineage: Claude's tool use in XML (2023) → the prefixed tags of the current template, whose prefix servers strip →
imitations by models that learned it from prompts and transcripts (DeepSeek V4, GLM, Grok, MiniMax with `mm:`).

    <function_calls>
    <invoke name="lookup">
    <parameter name="city">Graz</parameter>
    </invoke>
    </function_calls>

Values are text; the declared schema types them, else JSON that is not a string. No ids. Long contexts wear the markup
down: the wrapper's opener becomes a lone word (`count`, `court`, `call`), tags lose letters or their `<`, closers go
missing.
"""

from __future__ import annotations

from wirelint.dialects import invoke
from wirelint.dialects.family import Family, Reading
from wirelint.dialects.reader import Reader

_GRAMMAR = invoke.Grammar(
    dialect="anthropic_xml",
    prefixed="anthropic_antml",
    parameters=("parameter", "param", "argument"),
    other_bodies=True,
    bare=False,
)


def _read(reader: Reader, position: int) -> Reading:
    return invoke.read(reader, position, _GRAMMAR)


FAMILY = Family(
    "anthropic",
    rank=3,
    speakers={"anthropic_xml": frozenset({"claude"}), "anthropic_antml": frozenset({"claude"})},
    openers=invoke.CALL_OPENERS + invoke.WRAPPER_OPENERS,
    read=_read,
    closers={
        r"antml:(?:parameter|invoke|function_calls)": "anthropic_antml",
        r"(?:invoke|function_calls)": "anthropic_xml",
    },
    lone=frozenset({"antml:invoke", "antml:function_calls", "invoke", "function_calls"}),
)
