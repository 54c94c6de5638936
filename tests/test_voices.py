"""Findings of the four rules on claims and announcements, on texts in many voices, trades and languages.

`voices.json` has the texts. `reported` names with `expects` the rule that must report a text; on a text of `quiet` no rule
may report more than `info`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.build import lint
from tests.rules.case import read, read_talk
from tests.selection import in_batches

RULES = ("fabricated-call", "fabricated-result", "intent-without-call", "ungrounded-answer")
VOICES = read(json.loads(Path(__file__).with_name("voices.json").read_text(encoding="utf-8")))
Voice = Mapping[str, Any]


def _params(voices: list[Voice]) -> Callable[[Callable[..., None]], Any]:
    ids = [(voice.get("text") or voice["reasoning"])[:50] for voice in voices]
    return in_batches("voice", voices, ids=ids)


def _judge(voice: Voice) -> dict[str, str]:
    turns = voice["turns"] if "turns" in voice else [{"user": voice["user"]}]
    talk = read_talk({**voice, "turns": turns})
    findings = lint([talk.record("openai.chat", False)], RULES)
    return {finding.name: finding.message for finding in findings if finding.severity != "info"}


@_params(VOICES["reported"])
def test_is_reported(voice: Voice) -> None:
    assert voice["expects"] in _judge(voice)


@_params(VOICES["quiet"])
def test_is_left_alone(voice: Voice) -> None:
    assert _judge(voice) == {}
