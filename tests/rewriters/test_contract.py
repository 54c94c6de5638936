"""One harness for the repairs of all rules, over the cases that the rules themselves are tested with.

A finding that claims a fix gets it, of the safety it claims, and is gone then; fixing again changes nothing more. A fix
that is not permitted is not made, and where nothing claims one, not a byte is changed.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.build import REGISTRY, as_record
from tests.rewriters.drive import SAFE, UNSAFE, Result, run
from tests.rules.case import Fires, Silent, expand
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.conversation import Ledger
from wirelint.engine import Session, lower
from wirelint.model import Exchange
from wirelint.repair import NO_FIXES, Permit, Repair
from wirelint.rewrite.requests import Mended, mend_request
from wirelint.rule import Finding, Rule

Records = Sequence[Mapping[str, Any]]


def _repairs(rule: Rule) -> bool:
    return type(rule).rewriter is not Rule.rewriter or type(rule).mend is not Rule.mend


Forms = Sequence[tuple[str, Records]]
"""The runs of one case: the API and form, and the records that pass."""


def _runs(kind: str) -> Iterator[Any]:
    for rule in REGISTRY.rules:
        module = importlib.import_module(f"tests.rules.{rule.name.replace('-', '_')}")
        manual = {"the manual's example": rule.fires if kind == "FIRES" else rule.silent}
        for id_, case in {**manual, **getattr(module, kind)}.items():
            wrapped = case if isinstance(case, Fires | Silent) else (Fires if kind == "FIRES" else Silent)(case)
            yield pytest.param(rule, tuple(expand(wrapped.case, wrapped.forms)), id=f"{rule.name}-{id_}")


ALL_FIRES = list(_runs("FIRES"))
FIRES = [run_ for run_ in ALL_FIRES if _repairs(run_.values[0])]
SILENT = [run_ for run_ in _runs("SILENT") if _repairs(run_.values[0])]


def in_every_form(test: Callable[[Rule, Records], None]) -> Callable[[Rule, Forms], None]:
    """A test of one run made one of a case in all APIs and forms; a failure names the form."""

    def run_all(rule: Rule, forms: Forms) -> None:
        for label, records in forms:
            try:
                test(rule, records)
            except BaseException as failure:
                failure.add_note(f"in the form: {label or 'as given'}")
                raise

    run_all.__name__, run_all.__doc__ = test.__name__, test.__doc__
    return run_all


_DONE: dict[tuple[str, int, Permit], Result] = {}


def _repair(rule: Rule, records: Records, permit: Permit) -> Result:
    """The repair of the last of some records; made once for all tests that look at it."""
    key = rule.name, id(records), permit
    if key not in _DONE:
        _DONE[key] = run(records, [rule.name], permit, complete=_ended(records))
    return _DONE[key]


def _ended(records: Records) -> bool:
    return records[-1].get("end") not in ("client-left", "upstream-died")


def _body(records: Records) -> bytes:
    return as_record(records[-1]).response_body or b""


def _claims(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.side == "response" and finding.fix is not None]


def _safeties(found: Sequence[Finding] | Sequence[Repair]) -> set[str]:
    return {one.safety if isinstance(one, Repair) else one.fix.safety if one.fix else "none" for one in found}


def _again(rule: Rule, records: Records, delivered: bytes) -> Result:
    """The same repair, of what the client got."""
    last = dataclasses.replace(as_record(records[-1], len(records)), response_body=delivered)
    return run([*records[:-1], last], [rule.name], UNSAFE, complete=_ended(records))


@pytest.mark.parametrize(("rule", "forms"), ALL_FIRES)
@in_every_form
def test_a_claimed_fix_is_made(rule: Rule, records: Records) -> None:
    done = _repair(rule, records, UNSAFE)
    claimed = _claims(done.findings)
    assert done.faults == ()
    assert _safeties(done.repairs) == _safeties(claimed), done.delivered.decode("utf-8", "replace")
    assert _claims(done.left) == [], done.delivered.decode("utf-8", "replace")
    assert done.changed is bool(claimed)
    if not claimed:
        assert done.delivered == _body(records)


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_nothing_comes_in_the_place_of_what_was_fixed(rule: Rule, records: Records) -> None:
    """What is left to tell of a repaired reply was there to be told before."""
    done = _repair(rule, records, UNSAFE)
    before = [finding.message for finding in done.findings if finding.side == "response"]
    assert len([finding for finding in done.left if finding.side == "response"]) <= len(before)


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_fixing_twice_changes_nothing_more(rule: Rule, records: Records) -> None:
    done = _repair(rule, records, UNSAFE)
    again = _again(rule, records, done.delivered)
    assert again.repairs == ()
    assert again.delivered == done.delivered


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_a_safe_permit_makes_safe_fixes_alone(rule: Rule, records: Records) -> None:
    done = _repair(rule, records, SAFE)
    claimed = _claims(done.findings)
    safe = [finding for finding in claimed if finding.fix is not None and finding.fix.safety == "safe"]
    assert _safeties(done.repairs) == _safeties(safe)
    assert "safe" not in _safeties(_claims(done.left)), done.delivered.decode("utf-8", "replace")
    if not safe:
        assert done.delivered == _body(records)


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_no_permit_no_fix(rule: Rule, records: Records) -> None:
    assert _repair(rule, records, NO_FIXES).delivered == _body(records)


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_every_cut_gives_the_same_repair(rule: Rule, records: Records) -> None:
    done = _repair(rule, records, UNSAFE)
    size = len(_body(records))
    for cuts in (range(1, size), range(17, size, 17), (size // 2,) if size > 1 else ()):
        cut = run(records, [rule.name], UNSAFE, complete=_ended(records), cuts=cuts)
        assert (cut.delivered, cut.repairs) == (done.delivered, done.repairs)


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_records_of_repairs_can_be_shown(rule: Rule, records: Records) -> None:
    for repair in (*_repair(rule, records, UNSAFE).repairs, *_mend(rule, records, UNSAFE).repairs):
        assert (repair.code, repair.name) == (rule.code, rule.name)
        assert repair.title
        assert repair.title.isprintable()
        assert repair.patch or not (repair.before or repair.after)


@pytest.mark.parametrize(("rule", "forms"), SILENT)
@in_every_form
def test_what_is_right_is_left_alone(rule: Rule, records: Records) -> None:
    done = _repair(rule, records, UNSAFE)
    assert done.delivered == _body(records)
    assert (done.repairs, done.faults, done.changed) == ((), (), False)


def check_all(rule: Rule, records: Records) -> None:
    """All that is promised of the repair of one reply."""
    test_a_claimed_fix_is_made(rule, (("", records),))
    test_nothing_comes_in_the_place_of_what_was_fixed(rule, (("", records),))
    test_fixing_twice_changes_nothing_more(rule, (("", records),))
    test_a_safe_permit_makes_safe_fixes_alone(rule, (("", records),))
    test_no_permit_no_fix(rule, (("", records),))
    test_every_cut_gives_the_same_repair(rule, (("", records),))
    test_records_of_repairs_can_be_shown(rule, (("", records),))


# --- requests ---------------------------------------------------------------------------------------------------------


def _head(record: Record) -> Exchange | None:
    """An exchange before its reply: all that is known when a request is repaired."""
    session = Session.begin(
        id=record.id,
        method=record.method,
        url=record.url,
        headers=lower(record.request_headers),
        body=record.request_body or b"",
    )
    return session.head() if session is not None else None


def _ledger(records: Records) -> Ledger:
    ledger = Ledger()
    for number, record in enumerate(records[:-1], 1):
        if (exchange := replay(as_record(record, number))) is not None:
            ledger.record(ledger.place(exchange))
    return ledger


def _mend(rule: Rule, records: Records, permit: Permit, body: bytes | None = None) -> Mended:
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


@pytest.mark.parametrize(("rule", "forms"), ALL_FIRES)
@in_every_form
def test_a_request_gets_the_fix_that_is_claimed(rule: Rule, records: Records) -> None:
    body = as_record(records[-1]).request_body or b""
    claimed, done = _requested(rule, records), _mend(rule, records, UNSAFE)
    assert done.faults == ()
    assert _safeties(done.repairs) == _safeties(claimed)
    assert _requested(rule, records, done.body) == [], done.body.decode()
    assert (done.body is body) is not bool(claimed) or done.body == body
    assert (done.body == body) is not bool(claimed)


@pytest.mark.parametrize(("rule", "forms"), FIRES)
@in_every_form
def test_a_request_is_fixed_once_and_as_far_as_permitted(rule: Rule, records: Records) -> None:
    body = as_record(records[-1]).request_body or b""
    done = _mend(rule, records, UNSAFE)
    assert _mend(rule, records, UNSAFE, done.body).body == done.body
    safe = _mend(rule, records, SAFE)
    assert "unsafe" not in _safeties(safe.repairs)
    assert (safe.body == body) is not bool(safe.repairs)
    assert _mend(rule, records, NO_FIXES).body == body


@pytest.mark.parametrize(("rule", "forms"), SILENT)
@in_every_form
def test_a_right_request_is_left_alone(rule: Rule, records: Records) -> None:
    body = as_record(records[-1]).request_body or b""
    done = _mend(rule, records, UNSAFE)
    assert (done.body, done.repairs, done.faults) == (body, (), ())
