"""Findings are a function of what is written down."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

from tests.addon.build import judged, recorder_of, result_of_record
from tests.build import FORMS, REGISTRY, Call, Talk, User, as_record, schema, some
from tests.state.test_issues import mangled
from wirelint.addon.annotate import annotation
from wirelint.addon.log import exchange_line
from wirelint.capture.offline import Checked, check
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.fix import AppliedFix
from wirelint.rule import Finding
from wirelint.view.findings import annotations_of, flat

KEY = "sk-proj-Zq8Yw3Rt6Uv1Nm4Kc9Pd2Lf7Hb5Gx0S"
TALK = Talk(
    history=(User(f"The key is {KEY}."),),
    calls=(
        Call("deploy", {"api_key": KEY, "replicas": 3}),
        Call("nobody_declared_this", id="call_2Zr2kQmVw4TnXc1LbYd6HsPe"),
    ),
    tools={"deploy": schema(api_key="string", replicas="integer")},
)


def finding(name: str, severity: str, confidence: str = "high") -> Finding:
    return Finding("XX901", name, severity, confidence, "model", "response", "m")  # type: ignore[arg-type]


WARM = """
import re, sys
from wirelint import lexicon
from wirelint.addon.annotate import warm_up
from wirelint.registry import Registry
rules, lazy = Registry.load().rules, tuple(lexicon._UNCOMPILED)
assert len(lazy) > 500
assert "markdown_it" not in sys.modules
warm_up(rules)
assert all("search" in vars(pattern) for pattern in lazy)
assert all(re.compile(pattern.pattern, pattern.flags).flags == pattern.flags for pattern in lazy)
assert {"markdown_it", "json_repair"} <= set(sys.modules)
"""


def test_a_proxy_compiles_its_patterns_and_imports_its_libraries_at_the_start() -> None:
    run = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_with_a_secret_it_is_the_verdict_on_the_redacted_record() -> None:
    for api, stream in FORMS:
        result = result_of_record(TALK.record(api, stream))
        assert result.findings, (api, stream)
        assert KEY not in repr(result.record) + json.dumps(annotations_of(result))
        again = some(replay(result.record))
        assert Engine(REGISTRY.rules).check(again) == result.findings


def test_a_secret_in_a_header_or_the_address_only() -> None:
    record = Talk().record("anthropic.messages", False)
    record["request"]["url"] += f"?key={KEY}"
    record["request"]["headers"] |= {"x-api-key": KEY, "x-session-id": "s1"}
    result = result_of_record(record)
    assert result.exchange is not None
    assert KEY not in f"{result.exchange.url} {result.exchange.request_headers} {result.record}"
    again = some(replay(result.record))
    assert (again.conversation, again.url) == (result.exchange.conversation, result.exchange.url)


def test_no_answer_at_all() -> None:
    record = Talk().record("openai.chat", True)
    record["response"]["status"] = None
    recorder = recorder_of(record)
    result = judged(recorder, Engine(REGISTRY.rules), "upstream-died", "refused")
    assert (result.record.status, result.record.response_body, result.findings) == (None, None, ())
    assert replay(result.record) is not None


def test_failures_do_not_quote_secrets() -> None:
    recorder = recorder_of(Talk().record("openai.chat", True))
    recorder.fail("reading", ValueError(f"cannot read {KEY}"))
    result = judged(recorder, Engine(()))
    assert [item.name for item in result.findings] == ["internal-error"]
    assert KEY not in result.findings[0].message


def test_later_turns_are_quiet_about_a_known_fault_and_the_capture_has_all() -> None:
    engine, records = Engine(REGISTRY.select(("mangled-id",))), mangled(4)
    seen = [result_of_record(record, engine=engine, name=str(record["id"])) for record in records]
    assert [(len(result.findings), len(result.folded.findings), len(result.folded.known)) for result in seen] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 1, 1),
        (3, 1, 2),
    ]
    last = seen[-1]
    noted = annotation(last)
    assert noted.metadata["wirelint.findings"] == ["mangled-id"]
    assert noted.metadata["wirelint.known"] == 2
    assert "+2 known" in noted.comment
    fixes = [AppliedFix("ID301", "mangled-id", "safe", "request", "m", one.pointer) for one in last.findings]
    fixed = dataclasses.replace(last, record=last.record.but(fixes=tuple(fixes)))
    assert fixed.new_fixes == fixes[2:]
    quiet = dataclasses.replace(last, findings=last.findings[:2])
    elsewhere = dataclasses.replace(fixes[0], pointer="/messages")
    assert dataclasses.replace(quiet, record=last.record.but(fixes=(elsewhere,))).new_fixes == []
    assert dataclasses.replace(last, record=last.record.but(fixes=(elsewhere,))).new_fixes == [elsewhere]
    assert annotation(quiet).marker == ""
    assert "mangled-id" not in f"{annotation(quiet)}"
    assert "+ 2 known from earlier turns" in exchange_line(quiet)
    offline = list(check([as_record(record) for record in records], engine.rules.everywhere))
    for result, checked in zip(seen, offline, strict=True):
        assert isinstance(checked, Checked)
        again = [flat(checked, finding) for finding in checked.findings]
        assert annotations_of(result)["findings"] == again, "live and offline tell the same issues"
    captured = annotations_of(last)["findings"]
    assert isinstance(captured, list)
    assert [(one["first_seen"], one["last_seen"], one["count"]) for one in captured if isinstance(one, dict)] == [
        ("e1", "e3", 3),
        ("e2", "e3", 2),
        ("e3", "e3", 1),
    ]
