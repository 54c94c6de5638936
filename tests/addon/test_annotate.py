"""What stands on a flow, and what does not get lost by it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from mitmproxy import flowfilter
from mitmproxy.test import tflow

from tests.addon.build import CUT, result_of_record, with_model
from tests.build import Call, Talk, schema
from tests.tables import pairs, tables
from wirelint.addon.annotate import annotate, annotation, mark_failure
from wirelint.capture.offline import Checked
from wirelint.capture.record import Sent
from wirelint.rule import AppliedFix, Finding, Severity

TABLES = tables(__file__)
"""`comments`: comment and marker of each result."""
CLEAN = result_of_record(
    Talk(
        calls=(Call("a"), Call("b", id="call_2aaaaaaaaaaaaaaaaaaaaaaa")),
        tools={"a": schema(), "b": schema()},
        request={"stream_options": {"include_usage": False}},
    ).record("openai.chat", True)
)


def with_findings(*findings: tuple[str, Severity], result: Checked = CLEAN) -> Checked:
    made = tuple(
        Finding("XX901", name, severity, "high", "model", "response", "it is so") for name, severity in findings
    )
    return replace(result, findings=made)


REFUSED = Talk(status=429).record("openai.chat", False)

MENDED = replace(
    CLEAN,
    record=replace(
        CLEAN.record,
        delivered=Sent((), b"other"),
        fixes=(AppliedFix("XX901", "bad", "unsafe", "response", "made good"),) * 2,
    ),
)

RESULTS: dict[str, Checked] = {
    "clean": CLEAN,
    "an error": result_of_record(CUT, rules=("ST604",)),
    "repaired": with_findings(("bad", "error"), result=MENDED),
    "the worst comes first": with_findings(("slight", "info"), ("bad", "error"), ("odd", "warning")),
    "the same twice": with_findings(("odd", "warning"), ("odd", "warning")),
    "an info is no alarm": with_findings(("slight", "info")),
    "refused": result_of_record(REFUSED, rules=("ST604",)),
    "the client left": result_of_record(CUT, "client-left", rules=("ST604",)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_comment_and_marker(name: str) -> None:
    flow = tflow.tflow(resp=True)
    annotate(flow, annotation(RESULTS[name]))
    assert [flow.comment, flow.marked] == TABLES["comments"][name]


@pairs(TABLES["filters"])
def test_filters(expression: str, matches: bool) -> None:
    flow = tflow.tflow(resp=True)
    annotate(flow, annotation(with_findings(("xml-leak", "error"))))
    assert bool(flowfilter.match(expression, flow)) is matches


def test_metadata_is_plain_and_small() -> None:
    result = with_findings(*((f"f{number}", "error") for number in range(500)))
    result = replace(result, findings=tuple(replace(item, message="m" * 5000) for item in result.findings))
    flow = tflow.tflow(resp=True)
    annotate(flow, annotation(result))
    assert json.loads(json.dumps(flow.metadata)) == flow.metadata
    assert len(json.dumps(flow.metadata)) < 40_000
    assert flow.copy().metadata == flow.metadata


def test_words_of_others_stay() -> None:
    flow = tflow.tflow(resp=True)
    flow.comment, flow.marked, flow.metadata["theirs"] = "mine", ":moneybag:", 1
    annotate(flow, annotation(with_findings(("bad", "error"))))
    assert flow.comment.startswith("bad · ")
    assert flow.comment.endswith(" | mine")
    assert (flow.marked, flow.metadata["theirs"]) == (":moneybag:", 1)


def test_what_stood_there_of_another_exchange_goes() -> None:
    """A flow that is played again brings the metadata of the first time."""
    flow = tflow.tflow(resp=True)
    annotate(flow, annotation(MENDED), MENDED.record)
    annotate(flow, annotation(CLEAN), CLEAN.record)
    assert not {"wirelint.received", "wirelint.fixes", "wirelint.fixed"} & flow.metadata.keys()


def test_control_characters_of_a_model_name() -> None:
    flow = tflow.tflow(resp=True)
    annotate(flow, annotation(with_model(CLEAN, "a\nb\x1b[31m")))
    assert flow.comment == "ok · a\\nb\\u001b[31m · 2 calls · openai.chat"


def test_a_failure_stands_beside_what_was_there() -> None:
    flow = tflow.tflow(resp=True)
    annotate(flow, annotation(with_findings(("bad", "error"))))
    mark_failure(flow, "the hook response")
    assert flow.metadata["wirelint.findings"] == ["bad", "internal-error"]
    assert flow.comment.startswith("internal-error · the hook response | bad")
    assert flow.metadata["wirelint.severity"] == "error"
