"""A result waits while others are served, comes all the same and in order, and does not wait where it is needed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.addons import dumper, save, view
from mitmproxy.flow import Flow
from mitmproxy.test import taddons

from tests.addon.build import captured, ended, pass_through
from tests.build import Call, Talk, schema, some
from wirelint.addon import annotate
from wirelint.addon.addon import Inspector
from wirelint.addon.idle_queue import LARGE

RECORD = Talk(text="All is well.").record("openai.chat", True)
CALLING = Talk(calls=(Call("a"),), tools={"a": schema()}).record("openai.chat", True)

Scene = Callable[[Inspector], Coroutine[Any, Any, None]]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[taddons.context]:
    with taddons.context(save.Save(), dumper.Dumper()) as context:
        yield context


def play(context: taddons.context, tmp_path: Path, scene: Scene) -> list[dict[str, Any]]:
    """Plays a scene in a loop of its own; the captures that it left."""

    async def run() -> list[dict[str, Any]]:
        inspector = Inspector()
        context.master.addons.add(inspector)
        context.configure(inspector, wirelint_captures=str(tmp_path / "captures"))
        async with asyncio.timeout(20):
            await scene(inspector)
        return captured(inspector, tmp_path)

    return asyncio.run(run())


def is_judged(flow: http.HTTPFlow) -> bool:
    return "wirelint.end" in flow.metadata


def test_alone_it_is_there_at_once(context: taddons.context, tmp_path: Path) -> None:
    async def scene(inspector: Inspector) -> None:
        for _ in range(2):
            assert is_judged(ended(inspector, RECORD))

    assert len(play(context, tmp_path, scene)) == 2


def test_beside_others_it_waits_and_comes(context: taddons.context, tmp_path: Path) -> None:
    order: list[str] = []

    async def scene(inspector: Inspector) -> None:
        other, *flows = (pass_through(inspector, record) for record in (RECORD, RECORD, CALLING, RECORD))
        for flow in flows:
            order.append(flow.id)
            inspector.response(flow)
            assert not is_judged(flow)
            assert some(flow.response).raw_content, "the body is there at once"
        while not all(map(is_judged, flows)):
            await asyncio.sleep(0.001)
        assert not is_judged(other)
        order.append(other.id)
        inspector.response(other)
        assert is_judged(other)

    assert [line["id"] for line in play(context, tmp_path, scene)] == order


def test_what_waits_comes_before_what_ends_alone(context: taddons.context, tmp_path: Path) -> None:
    order: list[str] = []

    async def scene(inspector: Inspector) -> None:
        flows = [pass_through(inspector, RECORD) for _ in range(3)]
        for flow in flows:
            order.append(flow.id)
            inspector.response(flow)
        assert not any(map(is_judged, flows)), "also the last one, behind the others"

    assert [line["id"] for line in play(context, tmp_path, scene)] == order


@pytest.mark.parametrize("secret", ["", f"sk-{'proj'}-Qx7vN2mLk9TzR4bWc8HdPfYg"])
def test_a_large_one_is_read_by_a_thread_and_judged_on_the_loop(
    context: taddons.context, tmp_path: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"I could not find it {secret}. " * (LARGE // 20)
    record = Talk(text=text, calls=(Call("a"),), tools={"a": schema()}).record("openai.chat", False)
    where: dict[str, list[bool]] = {"read": [], "judge": []}
    here = threading.get_ident()

    def noting(name: str) -> None:
        sound = getattr(annotate, name)

        def noted(*args: Any) -> Any:
            where[name].append(threading.get_ident() == here)
            return sound(*args)

        monkeypatch.setattr(annotate, name, noted)

    noting("read")
    noting("judge")
    order: list[str] = []

    async def scene(inspector: Inspector) -> None:
        flow = ended(inspector, record)
        assert not is_judged(flow), "alone, and it waits"
        small = pass_through(inspector, RECORD)
        inspector.response(small)
        order.extend((flow.id, small.id))
        while not is_judged(small):
            await asyncio.sleep(0.001)
        assert is_judged(flow)

    large, small = play(context, tmp_path, scene)
    assert where == {"read": [False, True], "judge": [True, True]}
    assert [large["id"], small["id"]] == order
    assert not (secret and secret in json.dumps(large))


AT_ONCE = {"save_stream_file": "flows", "dumper_filter": "~meta xml-leak"}


@pytest.mark.parametrize("option", AT_ONCE)
def test_it_does_not_wait_where_flows_are_read_at_once(context: taddons.context, tmp_path: Path, option: str) -> None:
    value = AT_ONCE[option]

    async def scene(inspector: Inspector) -> None:
        context.options.update(**{option: str(tmp_path / value) if option == "save_stream_file" else value})
        pass_through(inspector, RECORD)
        flow = ended(inspector, RECORD)
        assert is_judged(flow)
        context.options.update(**{option: None})

    assert len(play(context, tmp_path, scene)) == 2


def test_whoever_shows_flows_is_told(context: taddons.context, tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []

    async def scene(inspector: Inspector) -> None:
        flows = view.View()
        context.master.addons.add(flows)
        flows.sig_view_update.connect(note)
        pass_through(inspector, RECORD)
        flow = pass_through(inspector, RECORD)
        flows.add([flow])
        inspector.response(flow)
        while not is_judged(flow):
            await asyncio.sleep(0.001)
        assert shown[-1] == (flow.id, flow.comment)

    def note(flow: Flow) -> None:
        shown.append((flow.id, flow.comment))

    play(context, tmp_path, scene)
    assert shown
