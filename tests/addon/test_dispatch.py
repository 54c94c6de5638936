"""Events on their way to addons: what an addon sees, and what is logged, is what it is without us."""

from __future__ import annotations

import asyncio
import copy
import logging
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from mitmproxy import addons, ctx, exceptions, hooks, http, log
from mitmproxy.addonmanager import AddonManager
from mitmproxy.addons.disable_h2c import DisableH2C
from mitmproxy.addons.keepserving import KeepServing
from mitmproxy.proxy.layers.http._hooks import HttpRequestHook, HttpResponseHook
from mitmproxy.test import taddons, tflow

from wirelint.addon.addon import Inspector
from wirelint.addon.dispatch import Dispatch, hears
from wirelint.addon.failures import Failures

Said = list[tuple[str, str]]
WAYS = ("trigger", "trigger_event")


class Hearing:
    """An addon with a hook that writes down what it hears."""

    def __init__(self, name: str, said: Said, *inside: object) -> None:
        self.name, self._said = name, said
        if inside:
            self.addons = list(inside)

    def __repr__(self) -> str:
        return self.name

    def request(self, flow: http.HTTPFlow) -> None:
        self._said.append((self.name, flow.request.path))


class Late(Hearing):
    """Its hook takes time."""

    async def request(self, flow: http.HTTPFlow) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().request(flow)


class Raising(Hearing):
    def __init__(self, name: str, said: Said, error: BaseException, *inside: object) -> None:
        super().__init__(name, said, *inside)
        self._error = error

    def request(self, flow: http.HTTPFlow) -> None:
        super().request(flow)
        raise copy.copy(self._error)


class RaisingLate(Hearing):
    """Its hook takes time, and fails then."""

    async def request(self, flow: http.HTTPFlow) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().request(flow)
        raise ValueError("of its own")


class Answering(Hearing):
    """Its hook gives something, which nobody asks for."""

    def __init__(self, name: str, said: Said, answer: object) -> None:
        super().__init__(name, said)
        self._answer = answer

    def request(self, flow: http.HTTPFlow) -> Any:
        super().request(flow)
        return self._answer


class Deaf:
    """It hears nothing that happens here."""

    def __init__(self, name: str, *inside: object) -> None:
        self.name = name
        if inside:
            self.addons = tuple(inside)

    def response(self, flow: http.HTTPFlow) -> None:
        raise AssertionError("nobody has answered")


class Learning(Hearing):
    """It has no hook until an event comes that it hears by another one; then it has one for the next."""

    def __init__(self, name: str, said: Said, pupil: Deaf) -> None:
        super().__init__(name, said)
        self._pupil = pupil

    def request(self, flow: http.HTTPFlow) -> None:
        super().request(flow)
        self._pupil.request = self._heard  # type: ignore[attr-defined]

    def _heard(self, flow: http.HTTPFlow) -> None:
        self._said.append(("pupil", flow.request.path))


class Joining(Hearing):
    """It puts another addon behind all that are there, when it first hears of anything."""

    def __init__(self, name: str, said: Said, other: object) -> None:
        super().__init__(name, said)
        self._others = [other]

    def request(self, flow: http.HTTPFlow) -> None:
        super().request(flow)
        if self._others:
            ctx.master.addons.chain.append(self._others.pop())


class Leaving(Hearing):
    """It takes others away when it hears of anything."""

    def __init__(self, name: str, said: Said, *others: object) -> None:
        super().__init__(name, said)
        self._others = others

    def request(self, flow: http.HTTPFlow) -> None:
        super().request(flow)
        manager = ctx.master.addons
        manager.chain = [one for one in manager.chain if one not in self._others]


class Made:
    """It is made of a hook that nobody can ask for."""

    name = "made"

    @property
    def request(self) -> object:
        raise ValueError("no")


class Once:
    """Its addons can be gone through, and are no list."""

    name = "once"

    def __init__(self, said: Said) -> None:
        self._inside = Hearing("inside once", said)

    @property
    def addons(self) -> Iterator[object]:
        return iter([self._inside])


class Odd:
    """Its hook is something else."""

    name = "odd"
    request = 7

    def __repr__(self) -> str:
        return self.name


class Imported:
    """What is called like a hook is a module."""

    name = "imported"
    request = types


class Heir(KeepServing):
    """One of mitmproxy's addons, with a hook that it does not have there."""

    name = "heir"

    def __init__(self, said: Said) -> None:
        super().__init__()
        self._said = said

    def request(self, flow: http.HTTPFlow) -> None:
        self._said.append((self.name, flow.request.path))


def _chains(said: Said) -> dict[str, list[object]]:
    pupil, inside, gone = Deaf("pupil"), Deaf("inside"), Hearing("gone", said)
    return {
        "some hear": [Deaf("a"), Hearing("b", said), Deaf("c"), Hearing("d", said)],
        "nobody hears": [Deaf("a"), Deaf("b", Deaf("c"))],
        "inside": [Deaf("a", Deaf("b", Hearing("c", said))), Hearing("d", said, Deaf("e"), Hearing("f", said))],
        "takes time": [Late("a", said), Deaf("b"), Late("c", said)],
        "raises": [Hearing("a", said), Raising("b", said, ValueError("of its own")), Hearing("c", said)],
        "raises, the ones inside hear nothing": [
            Raising("a", said, KeyError("k"), Hearing("b", said)),
            Late("c", said),
        ],
        "raises late": [Deaf("a", Late("b", said), Raising("c", said, OSError(5, "io"))), Hearing("d", said)],
        "raises in time": [RaisingLate("a", said), Hearing("b", said)],
        "answers": [Answering("a", said, 7), Answering("b", said, [None]), Hearing("c", said)],
        "halts": [Hearing("a", said), Raising("b", said, exceptions.AddonHalt()), Hearing("c", said)],
        "an option": [Raising("a", said, exceptions.OptionsError("no")), Hearing("b", said)],
        "is cancelled": [Raising("a", said, asyncio.CancelledError()), Hearing("b", said)],
        "inside, one behind the other": [Deaf("a", Hearing("b", said), Late("c", said), Hearing("d", said))],
        "inside, the second raises": [
            Deaf("a", Hearing("b", said), Raising("c", said, ValueError("of its own")), Hearing("d", said)),
            Hearing("e", said),
        ],
        "inside, learns": [Deaf("a", Learning("b", said, inside), inside)],
        "inside, a module": [Deaf("a", Imported(), Hearing("b", said))],
        "puts one behind": [Joining("a", said, Hearing("later", said)), Hearing("b", said)],
        "takes one away": [Leaving("a", said, gone), gone, Hearing("b", said)],
        "of mitmproxy": [KeepServing(), DisableH2C(), Hearing("a", said), Heir(said)],
        "learns": [Learning("a", said, pupil), pupil],
        "cannot be asked": [Made(), Hearing("b", said)],
        "only once": [Once(said), Hearing("b", said)],
        "no hook": [Odd(), Hearing("b", said), Imported()],
        "no addons": [types.SimpleNamespace(name="a", addons=None), Hearing("b", said)],
    }


KINDS = tuple(_chains([]))


class _Lines(logging.Handler):
    """What is logged, with what is shown of tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, int, str, list[str]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        frames = []
        at = record.exc_info[2] if record.exc_info else None
        while at is not None:
            frames.append(at.tb_frame.f_code.co_name)
            at = at.tb_next
        self.lines.append((record.name, record.levelno, record.getMessage(), frames))


@contextmanager
def _listening() -> Iterator[_Lines]:
    lines = _Lines()
    logger = logging.getLogger("mitmproxy.addonmanager")
    logger.addHandler(lines)
    logger.propagate = False  # to a handler of mitmproxy's, which wants a loop that runs
    try:
        yield lines
    finally:
        logger.propagate = True
        logger.removeHandler(lines)


def _go(kind: str, opened: Callable[[], object], at_once: bool) -> tuple[Said, object, str]:
    """What is said and logged, and what comes out of it, when a request has come twice. `at_once`: by the way on which
    nothing can be waited for."""
    said: Said = []
    out = "done"

    async def go(manager: AddonManager) -> None:
        for path in ("/one", "/two"):
            flow = tflow.tflow()
            flow.request.path = path
            if at_once:
                manager.trigger(HttpRequestHook(flow))
            else:
                await manager.handle_lifecycle(HttpRequestHook(flow))

    try:
        with _listening() as lines, taddons.context(loadcore=False) as context:
            manager = context.master.addons
            manager.chain = _chains(said)[kind]
            opened()
            asyncio.run(go(manager))
    except BaseException as error:
        out = repr(error)
    return said, lines.lines, out


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_addons_hear_what_they_hear_without_us(kind: str, at_once: bool) -> None:
    dispatch = Dispatch()
    before = _go(kind, lambda: None, at_once)
    after = _go(kind, lambda: dispatch.open(Failures()), at_once)
    assert dispatch._changed is not None
    assert after == before


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("kind", "heard", "logged", "out"),
    [
        ("inside", ["c", "d", "f"] * 2, 0, "done"),
        ("raises", ["a", "b", "c"] * 2, 2, "done"),
        ("halts", ["a", "b"] * 2, 0, "done"),
        ("an option", ["a"], 0, "OptionsError('no')"),
        ("is cancelled", ["a"], 0, "CancelledError()"),
        ("learns", ["a", "pupil"] * 2, 0, "done"),
        ("only once", ["inside once", "b"] * 2, 0, "done"),
        ("cannot be asked", ["b", "b"], 2, "done"),
        ("no hook", ["b", "b"], 2, "done"),
        ("inside, learns", ["b", "pupil"] * 2, 0, "done"),
        ("puts one behind", ["a", "b", "later"] * 2, 0, "done"),
        ("takes one away", ["a", "gone", "b", "a", "b"], 0, "done"),
        ("of mitmproxy", ["a", "heir"] * 2, 0, "done"),
    ],
)
def test_what_they_hear(kind: str, heard: list[str], logged: int, out: str, at_once: bool) -> None:
    said, lines, came = _go(kind, lambda: Dispatch().open(Failures()), at_once)
    assert [name for name, _ in said] == heard
    assert isinstance(lines, list)
    assert (len(lines), came) == (logged, out)


def test_an_addon_that_is_equal_to_another_is_not_taken_for_it() -> None:
    class Equal(Hearing):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        def __hash__(self) -> int:
            return 7

    said: Said = []
    with taddons.context(loadcore=False) as context:
        manager = context.master.addons
        Dispatch().open(Failures())
        for name in ("a", "b", "c"):
            manager.chain[:] = [Equal(name, said)]
            asyncio.run(manager.trigger_event(HttpRequestHook(tflow.tflow())))
    assert [name for name, _ in said] == ["a", "b", "c"]


def test_an_odd_hook_inside_of_an_addon_is_told_of() -> None:
    said: Said = []
    with taddons.context(loadcore=False) as context:
        manager = context.master.addons
        manager.chain = [Deaf("a", Hearing("b", said), Odd(), Hearing("c", said)), Hearing("d", said)]
        Dispatch().open(Failures())
        with _listening() as lines:
            asyncio.run(manager.trigger_event(HttpRequestHook(tflow.tflow())))
    assert [name for name, _ in said] == ["b", "d"]
    assert ["request" in line and line.endswith("not callable") for _, _, line, _ in lines.lines] == [True]


@pytest.mark.parametrize("kind", ["takes time", "raises late"])
def test_a_hook_that_takes_time_is_not_called_where_nothing_can_be_waited_for(kind: str) -> None:
    _, lines, out = _go(kind, lambda: Dispatch().open(Failures()), at_once=True)
    assert out == "done"
    assert isinstance(lines, list)
    assert all("cannot be called from sync context" in text for _, _, text, _ in lines)
    assert len(lines) == 2 * kind.count("late") + 4 * kind.count("time")


@pytest.mark.parametrize(("kind", "at_once"), [("raises", False), ("raises", True), ("raises in time", False)])
def test_a_hook_that_raises_is_shown_from_its_own_lines_on(kind: str, at_once: bool) -> None:
    _, lines, _ = _go(kind, lambda: Dispatch().open(Failures()), at_once)
    assert lines == [("mitmproxy.addonmanager", logging.ERROR, "Addon error: of its own", ["request"])] * 2


def test_lines_of_the_log_are_handed_to_those_who_hear_them() -> None:
    """They come from mitmproxy's own handler of the log, by the way that was changed."""
    heard: list[str] = []

    class Reader:
        name = "reader"

        def add_log(self, entry: log.LogEntry) -> None:
            heard.append(entry.msg)

    async def go() -> None:
        with taddons.context(loadcore=False) as context:
            manager: Any = context.master.addons
            manager.chain = [Deaf("a"), Reader()]
            dispatch = Dispatch()
            dispatch.open(Failures())
            context.master.event_loop = asyncio.get_running_loop()
            log.LegacyLogEvents(context.master).emit(logging.makeLogRecord({"msg": "told", "levelno": logging.INFO}))
            await asyncio.sleep(0)

    asyncio.run(go())
    assert [one[-4:] for one in heard] == ["told"]


@pytest.mark.parametrize("name", sorted(hooks.all_hooks))
def test_every_addon_of_mitmproxy_is_handed_what_it_hears(name: str) -> None:
    """Told as mitmproxy tells it, of the addons that are there when it runs."""

    def has(addon: object) -> bool:
        return bool(getattr(addon, name, None)) or any(has(one) for one in getattr(addon, "addons", ()))

    for addon in [*addons.default_addons(), types.SimpleNamespace(addons=[Inspector()])]:
        assert hears(addon, name) == has(addon)


# --- who may come between ------------------------------------------------------------------------------------------------


def test_it_is_there_while_the_addon_runs() -> None:
    with taddons.context() as context:
        manager, inspector = context.master.addons, Inspector()
        inspector.running()
        ours = {name: vars(manager)[name] for name in WAYS}
        inspector.running()
        assert {name: vars(manager)[name] for name in WAYS} == ours
        inspector.done()
        assert vars(manager).keys().isdisjoint(WAYS)
        inspector.done()


def test_a_second_one_leaves_the_first_where_it_is() -> None:
    with taddons.context() as context:
        first, second = Dispatch(), Dispatch()
        first.open(Failures())
        manager = context.master.addons
        ours = {name: vars(manager)[name] for name in WAYS}
        second.open(Failures())
        second.close()
        assert {name: vars(manager)[name] for name in WAYS} == ours
        first.close()
        assert vars(manager).keys().isdisjoint(WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_what_somebody_else_has_put_there_stays(way: str) -> None:
    async def another(event: hooks.Hook) -> None:
        pass

    with taddons.context() as context:
        manager = context.master.addons
        setattr(manager, way, another)
        early = Dispatch()
        early.open(Failures())
        assert [(name, vars(manager).get(name)) for name in WAYS if name in vars(manager)] == [(way, another)]
        early.close()
        delattr(manager, way)
        late = Dispatch()
        late.open(Failures())
        setattr(manager, way, another)
        late.close()
        assert [(name, vars(manager).get(name)) for name in WAYS if name in vars(manager)] == [(way, another)]


@pytest.mark.parametrize("way", WAYS)
def test_a_manager_of_another_kind_is_left_alone(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    class Another(AddonManager):
        pass

    with taddons.context() as context:
        master: Any = context.master
        master.addons = Another(master)
        Dispatch().open(Failures())
        assert vars(master.addons).keys().isdisjoint(WAYS)

    async def patched(self: AddonManager, event: hooks.Hook) -> None:
        pass

    monkeypatch.setattr(AddonManager, way, patched)
    with taddons.context() as context:
        Dispatch().open(Failures())
        assert vars(context.master.addons).keys().isdisjoint(WAYS)


def test_where_it_cannot_be_opened_events_go_as_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> bool:
        raise RuntimeError("not today")

    monkeypatch.setattr("wirelint.addon.dispatch._is_known", fails)
    said: Said = []
    with taddons.context(loadcore=False) as context:
        manager = context.master.addons
        manager.chain = [Hearing("a", said)]
        dispatch = Dispatch()
        dispatch.open(Failures())
        asyncio.run(manager.trigger_event(HttpRequestHook(tflow.tflow())))
        asyncio.run(manager.trigger_event(HttpResponseHook(tflow.tflow(resp=True))))
        dispatch.close()
    assert [name for name, _ in said] == ["a"]
    assert "handing events to addons" in caplog.text
