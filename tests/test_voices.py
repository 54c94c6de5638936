"""What the three rules on claims and announcements make of texts in many voices."""

from __future__ import annotations

import pytest

from tests.build import Talk, User, lint
from tests.rules import trades
from tests.rules.voices import FIRE, QUIET, Voice

RULES = ("fabricated-call", "fabricated-result", "intent-without-call")


def _param(voice: Voice) -> object:
    return pytest.param(voice, id=(voice.text or voice.reasoning)[:50])


def _judge(voice: Voice) -> dict[str, str]:
    history = (User(voice.history),) if isinstance(voice.history, str) else voice.history
    talk = Talk(history, voice.text, reasoning=voice.reasoning, tools=voice.tools)
    return {
        finding.name: finding.message
        for finding in lint([talk.record("openai.chat", False)], RULES)
        if finding.severity != "info"
    }


@pytest.mark.parametrize("voice", [_param(voice) for voice in (*FIRE, *trades.FIRE)])
def test_is_reported(voice: Voice) -> None:
    assert voice.expected in _judge(voice)


@pytest.mark.parametrize("voice", [_param(voice) for voice in (*QUIET, *trades.QUIET)])
def test_is_left_alone(voice: Voice) -> None:
    assert _judge(voice) == {}
