"""How many flows stay in a long run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mitmproxy import http
from mitmproxy.addons.view import View
from mitmproxy.test import tflow

from tests.addon.build import inspecting
from wirelint.addon.addon import Inspector


@pytest.fixture
def seat() -> Iterator[tuple[Inspector, View]]:
    view = View()
    with inspecting(view, wirelint_keep_flows="3") as (inspector, _):
        yield inspector, view


def begins(seat: tuple[Inspector, View], *, live: bool = True) -> http.HTTPFlow:
    inspector, view = seat
    flow = tflow.tflow()
    flow.live = live
    inspector.requestheaders(flow)
    view.add([flow])
    return flow


def test_the_oldest_leave_but_not_what_is_under_way_or_came_from_a_file(seat: tuple[Inspector, View]) -> None:
    opened = [begins(seat, live=False) for _ in range(5)]
    open_ = begins(seat)
    passed = []
    for _ in range(6):
        passed.append(begins(seat))
        passed[-1].live = False
    assert list(seat[1]._store) == [flow.id for flow in (*opened, open_, *passed[-2:])]
    open_.live = False
    for _ in range(3):
        begins(seat).live = False
    assert open_.id not in seat[1]._store


def test_flows_that_were_removed_by_hand(seat: tuple[Inspector, View]) -> None:
    for _ in range(3):
        begins(seat).live = False
    seat[1].clear()
    for _ in range(5):
        begins(seat).live = False
    assert len(seat[1]._store) == 3
