"""Contract of all fixes, tested with the cases of all rules.

A finding that claims a fix gets it, of the safety it claims, and is gone then; fixing again changes nothing more. A fix
that is not permitted is not made, and where nothing claims one, not a byte is changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.build import REGISTRY, as_record
from tests.fixes.drive import SAFE, UNSAFE, Result, run
from tests.rules.case import Fires, Silent, expand, fires, in_form, silent
from tests.selection import rotated, sampled
from wirelint.capture.record import Record
from wirelint.capture.replay import begin, replay
from wirelint.fix import NO_FIXES, AppliedFix, FixPolicy
from wirelint.model import Exchange
from wirelint.rewrite.request import Mended, mend_request
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger

Records = Sequence[Mapping[str, Any]]


def _repairs(rule: Rule) -> bool:
    return type(rule).rewriter is not Rule.rewriter or type(rule).fix_request is not Rule.fix_request


def _ended(records: Records) -> bool:
    return records[-1].get("end") not in ("client-left", "upstream-died")


def _body(records: Records) -> bytes:
    return as_record(records[-1]).response_body or b""


def _claims(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.side == "response" and finding.fix is not None]


def _safeties(found: Sequence[Finding] | Sequence[AppliedFix]) -> set[str]:
    return {one.safety if isinstance(one, AppliedFix) else one.fix.safety if one.fix else "none" for one in found}


# --- replies ----------------------------------------------------------------------------------------------------------


def check_reply(rule: Rule, records: Records, *, cut_often: bool) -> Result:
    """Checks all that is promised of the repair of one reply; what the unsafe permit makes of it."""
    came = _body(records)
    unsafe = _check_claims(rule, records)
    if not _repairs(rule):
        return unsafe
    ended = _ended(records)
    if not unsafe.changed:
        assert run(records, [rule], complete=ended, cuts=range(7, len(came), 7)).sent == (came, ())
        return unsafe
    # What is left to tell of a repaired reply was there to be told before.
    before = [finding for finding in unsafe.findings if finding.side == "response"]
    assert len([finding for finding in unsafe.left if finding.side == "response"]) <= len(before)
    # Fixing twice changes nothing more.
    last = dataclasses.replace(as_record(records[-1], len(records)), response_body=unsafe.delivered)
    assert run([*records[:-1], last], [rule], complete=ended).sent == (unsafe.delivered, ())
    # No permit, no fix.
    assert run(records, [rule], NO_FIXES, complete=ended).delivered == came
    # Every cut gives the same repair.
    size = len(came)
    often = (range(1, size), range(17, size, 17), (size // 2,) if size > 1 else ())
    for cuts in often if cut_often else (range(7, size, 7),):
        assert run(records, [rule], complete=ended, cuts=cuts).sent == (unsafe.delivered, unsafe.repairs)
    _check_safe(rule, records)
    _check_shown(rule, unsafe.repairs)
    return unsafe


def _check_claims(rule: Rule, records: Records) -> Result:
    """A claimed fix is made, and where none is claimed every byte stays."""
    done = run(records, [rule], UNSAFE, complete=_ended(records))
    claimed = _claims(done.findings)
    assert done.faults == ()
    assert _safeties(done.repairs) == _safeties(claimed), done.delivered.decode("utf-8", "replace")
    assert _claims(done.left) == [], done.delivered.decode("utf-8", "replace")
    assert done.changed is bool(claimed)
    if not claimed:
        assert done.delivered == _body(records)
    return done


def _check_safe(rule: Rule, records: Records) -> None:
    """A safe permit makes safe fixes alone."""
    done = run(records, [rule], SAFE, complete=_ended(records))
    claimed = _claims(done.findings)
    safe = [finding for finding in claimed if finding.fix is not None and finding.fix.safety == "safe"]
    assert _safeties(done.repairs) == _safeties(safe)
    assert "safe" not in _safeties(_claims(done.left)), done.delivered.decode("utf-8", "replace")
    if not safe:
        assert done.delivered == _body(records)


def _check_shown(rule: Rule, repairs: Sequence[AppliedFix]) -> None:
    """Records of repairs can be shown."""
    for repair in repairs:
        assert (repair.code, repair.name) == (rule.code, rule.name)
        assert repair.title
        assert repair.title.isprintable()
        assert repair.patch or not (repair.before or repair.after)


# --- requests ---------------------------------------------------------------------------------------------------------


def _head(record: Record) -> Exchange | None:
    """An exchange before its reply: all that is known when a request is repaired."""
    session = begin(record)
    return session.head() if session is not None else None


def _ledger(records: Records) -> Ledger:
    ledger = Ledger()
    for number, record in enumerate(records[:-1], 1):
        if (exchange := replay(as_record(record, number))) is not None:
            ledger.record(ledger.place(exchange))
    return ledger


def _mend(rule: Rule, records: Records, permit: FixPolicy, body: bytes | None = None) -> Mended:
    record = as_record(records[-1], len(records))
    body = record.request_body or b"" if body is None else body
    head = _head(dataclasses.replace(record, request_body=body))
    return Mended(body, None) if head is None else mend_request(head, body, [rule], _ledger(records), permit)


def _requested(rule: Rule, records: Records, body: bytes | None = None) -> list[Finding]:
    record = as_record(records[-1], len(records))
    head = _head(record if body is None else dataclasses.replace(record, request_body=body))
    if head is None or head.request is None:
        return []
    ledger = _ledger(records)
    return [finding for finding in rule.check_request(ledger.place(head), ledger) if finding.fix is not None]


def check_request(rule: Rule, records: Records) -> None:
    """All that is promised of the repair of one request."""
    body = as_record(records[-1]).request_body or b""
    claimed, done = _requested(rule, records), _mend(rule, records, UNSAFE)
    assert done.faults == ()
    assert _safeties(done.repairs) == _safeties(claimed)
    assert _requested(rule, records, done.body) == [], done.body.decode()
    assert (done.body is body) is not bool(claimed) or done.body == body
    assert (done.body == body) is not bool(claimed)
    if not _repairs(rule):
        return
    assert _mend(rule, records, UNSAFE, done.body).body == done.body
    safe = _mend(rule, records, SAFE)
    assert "unsafe" not in _safeties(safe.repairs)
    assert (safe.body == body) is not bool(safe.repairs)
    assert _mend(rule, records, NO_FIXES).body == body
    _check_shown(rule, done.repairs)


# --- the cases --------------------------------------------------------------------------------------------------------


def _each(rules: Sequence[Rule]) -> pytest.MarkDecorator:
    """One test for all cases of a rule, so that the number of tests stays small; a failure names the case."""
    return pytest.mark.parametrize("rule", rules, ids=lambda rule: rule.name)


@_each(REGISTRY.rules)
def test_claimed_fixes_are_made(rule: Rule) -> None:
    cases = [("the manual's example", rule, Fires(rule.example.fires)), *sampled([*fires([rule])], 14)]
    cut_often = {id_ for id_, _, _ in sampled(cases, 3)}
    for id_, _, case in cases:
        for label, records in expand(case.case, rotated(case.forms, id_)):
            with in_form(f"{id_}: {label}"):
                check_reply(rule, records, cut_often=id_ in cut_often)
                check_request(rule, records)


@_each([rule for rule in REGISTRY.rules if _repairs(rule)])
def test_silent_cases_stay_unchanged(rule: Rule) -> None:
    cases = [("the manual's example", rule, Silent(rule.example.silent)), *sampled([*silent([rule])], 20)]
    runs = [(id_, run) for id_, _, case in cases for run in expand(case.case, rotated(case.forms, id_))]
    for id_, (label, records) in runs:
        with in_form(f"{id_}: {label}"):
            done = run(records, [rule], UNSAFE, complete=_ended(records))
            assert done.delivered == _body(records)
            assert (done.repairs, done.faults, done.changed) == ((), (), False)
            body = as_record(records[-1]).request_body or b""
            mended = _mend(rule, records, UNSAFE)
            assert (mended.body, mended.repairs, mended.faults) == (body, (), ())
