"""The labelled cases and recordings that may lie beside a checkout; skipped where they do not.

`python -m tests.score` prints the same as figures.
"""

from __future__ import annotations

import pytest

from tests.build import REGISTRY
from tests.score import APIS, judge
from tests.shared import SHARED, Case, cases, some_traffic, traffic_labels
from wirelint.capture.replay import replay

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no labelled cases beside this checkout")

NAMES = {rule.name for rule in REGISTRY.rules}
OLD = "https://api.cohere.com/v1/"
"""Endpoints of a version that is not read."""
RIGHTLY = {"real-11351f80ed9c1799": "the API refused the request for its order, and says so"}
"""Recordings in which something is found though no label calls it an anomaly."""


def _anomalies() -> list[Case]:
    return [case for case in cases("anomalies", APIS) if case.kind in NAMES] if SHARED.is_dir() else []


def _clean() -> list[Case]:
    return list(cases("clean", APIS)) if SHARED.is_dir() else []


@pytest.mark.parametrize("case", _anomalies(), ids=lambda case: case.id)
def test_labelled_fault_is_found_alone(case: Case) -> None:
    found = judge(case.records, REGISTRY.rules)
    assert case.kind in {finding.name for finding in found}
    others = [
        finding for finding in found if finding.name not in {case.kind} | case.also and finding.severity != "info"
    ]
    assert others == []


@pytest.mark.parametrize("case", _clean(), ids=lambda case: case.id)
def test_look_alike_is_left_alone(case: Case) -> None:
    assert judge(case.records, REGISTRY.rules) == ()


def test_every_recording_is_understood_and_only_real_anomalies_are_blamed() -> None:
    labels = traffic_labels()
    blamed = []
    count = 0
    for _, record in some_traffic(APIS):
        count += 1
        exchange = replay(record)
        if exchange is None and record.url.startswith(OLD):
            continue
        assert exchange is not None, (record.id, record.url)
        assert exchange.request is not None
        assert exchange.reply is not None or not record.response_body, record.id
        verdict = labels.get(record.id, {}).get("verdict")
        findings = judge([record], REGISTRY.rules)
        blamed += [
            (record.id, f.name, f.message)
            for f in findings
            if f.severity != "info" and verdict != "real anomaly" and record.id not in RIGHTLY
        ]
    assert count > 300
    assert blamed == []
