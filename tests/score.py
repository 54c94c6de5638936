"""How the rules do on the labelled cases: `python -m tests.score [RULE …]` prints misses, false alarms and surprises."""

from __future__ import annotations

import sys
from collections import Counter

import wirelint.apis
from tests.build import REGISTRY
from tests.shared import SHARED, cases, traffic, traffic_labels
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.rule import Finding

APIS = tuple(api.name for api in wirelint.apis.APIS)


def judge(records, rules) -> tuple[Finding, ...]:  # type: ignore[no-untyped-def]
    engine = Engine(rules)
    found: tuple[Finding, ...] = ()
    for record in records:
        exchange = replay(record)
        found = engine.check(exchange) if exchange is not None else ()
    return found


def main() -> None:
    if not SHARED.is_dir():
        sys.exit("no ../shared beside this checkout")
    rules = REGISTRY.select(sys.argv[1:])
    names = {rule.name for rule in rules}
    hit: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in cases("anomalies", APIS):
        found = judge(case.records, rules)
        got = {finding.name for finding in found}
        if case.kind in names:
            total[case.kind] += 1
            hit[case.kind] += case.kind in got
            if case.kind not in got:
                print(f"MISS {case.id}")
        for finding in found:
            if finding.name not in {case.kind} | case.also and finding.severity != "info":
                print(f"EXTRA {case.id} (also {sorted(case.also)}): {finding.name}: {finding.message}")
    for case in cases("clean", APIS):
        for finding in judge(case.records, rules):
            print(f"FALSE {case.id}: {finding.severity} {finding.name}: {finding.message}")
    labels = traffic_labels()
    for _, record in traffic(APIS):
        label = labels.get(record.id, {})
        for finding in judge([record], rules):
            if finding.severity != "info":
                anomalies = [item["kind"] for item in label.get("anomalies", ())]
                print(
                    f"TRAFFIC {record.id} {finding.name}: {finding.message} | label {label.get('verdict')} {anomalies}"
                )
    for name in sorted(total):
        print(f"{name}: {hit[name]}/{total[name]}")


if __name__ == "__main__":
    main()
