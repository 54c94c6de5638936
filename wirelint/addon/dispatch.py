"""mitmproxy's events, handed to the addons that hear them and not offered to those that do not.

Theory of operation. For every event of every exchange mitmproxy enters a context and starts a coroutine for each of its
thirty addons, few of which have a hook for it: with a short exchange that is nearly half of what the proxy does. Each line
of its log is an event as well, goes by another way, and is heard by hardly anybody. So its manager of addons gets another
`trigger_event` and another `trigger` while we are loaded. An addon in which nothing has a hook of that name is passed over,
and the hooks of all others are called. What an addon hears is looked up each time, so that hooks may come and go; but of
mitmproxy's own addons, most of which hear little, those that do not hear an event are remembered as long as the manager has
the same addons.

The manager is changed where it is the one that we know, and only that one object; otherwise all goes on as without this
module.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import types
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

from mitmproxy import ctx, exceptions
from mitmproxy.addonmanager import AddonManager, safecall
from mitmproxy.hooks import Hook

from wirelint.addon.failures import Failures

_Ways: TypeAlias = "dict[str, Callable[[Hook], object]]"
"""What an event is given to, by its name in the manager."""

_NONE = object()
_NO_MORE: Iterator[Any] = iter(())


class Dispatch:
    """The way of this proxy's events to its addons, while it is `open`. Nothing in here raises."""

    def __init__(self) -> None:
        self._changed: tuple[AddonManager, _Ways] | None = None

    def open(self, failures: Failures) -> None:
        """Goes between the events and the addons. Whoever did so before stays there alone."""
        try:
            manager = ctx.master.addons
            ways = _ways_of(manager)
            if self._changed is None and _is_known(manager, ways):
                self._changed = manager, ways
                vars(manager).update(ways)
        except Exception as error:  # fail open: events go the way that they went
            failures.tell("handing events to addons", error)

    def close(self) -> None:
        """Puts the events back on their way, unless somebody else has put them on another one since."""
        if self._changed is None:
            return
        (manager, ways), self._changed = self._changed, None
        for name, way in ways.items():
            if vars(manager).get(name) is way:
                delattr(manager, name)


def _is_known(manager: AddonManager, ways: _Ways) -> bool:
    """Whether a manager of addons does as mitmproxy's own does."""
    if type(manager) is not AddonManager or not vars(manager).keys().isdisjoint(ways):
        return False
    return all(getattr(AddonManager, name).__module__ == AddonManager.__module__ for name in ways)


_Heard: TypeAlias = "tuple[object, bool]"
"""An addon, and whether it is known to have no addons of its own."""


class _Chain:
    """The addons of a manager, in their order."""

    def __init__(self, manager: AddonManager) -> None:
        self._manager = manager
        self._known: list[object] = []
        self._tells_apart = True
        """Whether those that are known are equal to themselves alone: then one look tells whether they are still there."""
        self._hearing: dict[str, tuple[_Heard, ...]] = {}

    def hearing(self, name: str) -> Iterable[_Heard]:
        """Those that may have a hook of a name; and those that are put behind the others while these are gone through."""
        chain: list[object] = self._manager.chain
        if chain != self._known or not (self._tells_apart or all(map(operator.is_, chain, self._known))):
            self._known, self._hearing = [*chain], {}
            self._tells_apart = all(type(addon).__eq__ is object.__eq__ for addon in chain)
        found = self._hearing.get(name)
        if found is None:
            heard = [(addon, _is_simple(addon)) for addon in chain if not _is_deaf(addon, name)]
            found = self._hearing[name] = tuple(heard)
        return itertools.chain(found, _put_behind(chain, len(chain)))


def _put_behind(chain: Sequence[object], size: int) -> Iterator[_Heard]:
    """The addons that stand behind so many by now."""
    while size < len(chain):
        yield chain[size], False
        size += 1


def _is_simple(addon: object) -> bool:
    """Whether an addon is mitmproxy's own, and has no addons of its own."""
    kind = type(addon)
    return (
        kind.__module__.partition(".")[0] == "mitmproxy"
        and kind.__getattribute__ is object.__getattribute__
        and not hasattr(kind, "__getattr__")
        and getattr(addon, "addons", _NONE) is _NONE
    )


def _is_deaf(addon: object, name: str) -> bool:
    """Whether such an addon has no hook of a name."""
    return _is_simple(addon) and getattr(addon, name, None) is None


def _ways_of(manager: AddonManager) -> _Ways:
    chain = _Chain(manager)

    async def trigger_event(event: Hook) -> None:
        name, args = event.name, None
        more: Iterator[Any]
        for addon, is_simple in chain.hearing(name):
            try:
                more = _NO_MORE if is_simple or getattr(addon, "addons", _NONE) is _NONE else _hooks_of(addon, name)
                hook = getattr(addon, name, None) if more is _NO_MORE else next(more, None)
            except Exception:  # mitmproxy is to meet it, and to tell of it
                hook = _NONE
            try:
                if not hook:
                    continue
                if not callable(hook):
                    await manager.invoke_addon(addon, event)  # type: ignore[no-untyped-call, unused-ignore]
                    continue
                if args is None:
                    args = event.args()
                while hook is not None:
                    result = _AtOnce.invoke_addon(hook, args)
                    if result is not None and inspect.isawaitable(result):
                        await _InTime.invoke_addon(result)
                    hook = next(more, None)
                    if hook is not None and not callable(hook):
                        _refuse(name, addon)
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception:
                _tell()

    def trigger(event: Hook) -> None:
        for addon, _ in chain.hearing(event.name):
            try:
                if hears(addon, event.name):
                    manager.invoke_addon_sync(addon, event)  # type: ignore[no-untyped-call, unused-ignore]
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception:
                _tell()

    return {"trigger_event": trigger_event, "trigger": trigger}


# Of a traceback mitmproxy shows what stands behind the function that called a hook. It knows that function by its name.


class _AtOnce:
    @staticmethod
    def invoke_addon(hook: Callable[..., object], args: Sequence[object]) -> object:
        return hook(*args)


class _InTime:
    @staticmethod
    async def invoke_addon(result: Awaitable[object]) -> None:
        await result


def _tell() -> None:
    """Tells of an addon's exception, which is being handled, as mitmproxy tells of it."""
    with safecall():  # type: ignore[no-untyped-call, unused-ignore]
        raise


def _refuse(name: str, addon: object) -> NoReturn:
    """What mitmproxy says of a hook that cannot be called."""
    raise exceptions.AddonManagerError(f"Addon handler {name} ({addon}) not callable")  # type: ignore[no-untyped-call, unused-ignore]


def _hooks_of(addon: object, name: str) -> Iterator[Any]:
    """The hooks of a name of an addon and of those in it, each looked up when the one before it has been called."""
    levels = [iter((addon,))]
    while levels:
        for one in levels[-1]:
            hook = getattr(one, name, None)
            if hook and not isinstance(hook, types.ModuleType):  # a module may happen to have its name
                yield hook
            inner = getattr(one, "addons", _NONE)
            if inner is not _NONE:
                levels.append(iter(inner))  # type: ignore[call-overload]
                break
        else:
            levels.pop()


def hears(addon: object, name: str) -> bool:
    """Whether an addon, or one of those in it, may have a hook of a name. Never raises."""
    try:
        return next(_hooks_of(addon, name), None) is not None
    except Exception:  # mitmproxy is to meet it, and to tell of it
        return True
