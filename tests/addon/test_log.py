"""Lines of a run: one each, whatever stands on the wire."""

from __future__ import annotations

import io
import logging
import sys
from dataclasses import replace

import pytest

from tests.addon.build import CUT, result_of_record
from tests.build import Call, Talk, schema
from tests.tables import tables
from wirelint.addon import log
from wirelint.capture.redact import Redactor
from wirelint.rule import AppliedFix, Finding

CLEAN = result_of_record(
    Talk(calls=(Call("a"),), tools={"a": schema()}, request={"stream_options": {"include_usage": False}}).record(
        "openai.chat", True
    )
)
WHOLE = result_of_record(Talk(text="All is well.").record("anthropic.messages", False))
REFUSED = result_of_record(Talk(status=429).record("openai.chat", False), rules=("ST604",))
MIXED = replace(
    CLEAN,
    findings=tuple(
        Finding("XX901", "x", severity, "high", "model", "response", "m")
        for severity in ("info", "error", "error", "warning")
    ),
)

FIXES = (
    AppliedFix("LK101", "xml-leak", "unsafe", "response", "promoted to a call of get_weather"),
    AppliedFix("TC503", "finish-reason-mismatch", "safe", "response", "said tool_calls"),
)
MENDED = replace(MIXED, record=replace(MIXED.record, fixes=FIXES))

RESULTS = {
    "a stream": CLEAN,
    "a whole body": WHOLE,
    "findings": MIXED,
    "findings and fixes": replace(MENDED, findings=MIXED.findings[1:2]),
    "fixes alone": replace(MENDED, findings=()),
    "cut off": result_of_record(CUT, "upstream-died", "gone", rules=("ST604",)),
    "refused": REFUSED,
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_line_of_an_exchange(name: str) -> None:
    assert log.exchange_line(RESULTS[name]) == tables(__file__)["lines"][name]


def test_the_line_of_a_finding() -> None:
    finding = Finding(
        "LK101", "xml-leak", "error", "high", "gateway", "response", "markup", "/choices/0/message/content", 12
    )
    assert (
        log.finding_line(finding) == "  error xml-leak [gateway] response /choices/0/message/content, event 12: markup"
    )


def test_the_lines_of_fixes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "wirelint")
    log.log_exchange(replace(MENDED, findings=(), record=replace(MENDED.record, fixes=FIXES * 10)))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[1] == "  fixed xml-leak [unsafe] promoted to a call of get_weather"
    assert lines[2] == "  fixed finish-reason-mismatch [safe] said tool_calls"
    assert lines[-1] == "  … 8 more fixes: wirelint show 3f2a9c11"


def test_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "wirelint")
    log.log_exchange(MIXED)
    log.Failures().log("rule x", ValueError("two\nlines"))
    levels = [record.levelno for record in caplog.records]
    assert levels == [20, 20, 30, 30, 30, 30, 10]
    assert max(levels) < logging.ERROR, "mitmproxy would stop at one while it starts"
    assert all("\n" not in record.getMessage() for record in caplog.records)


def test_many_findings_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wirelint")
    log.log_exchange(replace(MIXED, findings=MIXED.findings * 20))
    assert len(caplog.records) == 14
    assert caplog.records[-1].getMessage() == "  … 68 more: wirelint show 3f2a9c11"


def test_an_output_that_cannot_show_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A pipe on Windows is often cp1252; an exception in logging would end up in the hook."""
    caplog.set_level(logging.INFO, "wirelint")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "cp1252"))
    log.say("漢 ü …")
    assert caplog.records[-1].getMessage() == "\\u6f22 ü …"


ADDRESSES = {
    "key in the query": "https://h.example/v1?key={}&alt=sse",
    "user": "https://me:{}@h.example/",
    "webhook": "https://hooks.slack.com/services/T01234567/B01234567/{}",
    "bot": "https://api.telegram.org/bot123456789:AA{}/sendMessage",
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES)
def test_addresses_in_lines_have_no_credential(address: str, caplog: pytest.LogCaptureFixture) -> None:
    token = ("Ab3dEf6hIj9l" * 3)[:33]
    log.set_redactor(Redactor())  # one addon before this test may have turned it off
    caplog.set_level(logging.INFO)
    log.say(f"wirelint: no answer from {address.format(token)}")
    log.Failures().log("the recorder", ValueError(address.format(token)))
    assert len(caplog.messages) == 2
    assert token not in caplog.text
    assert caplog.text.count("redacted") == 2
