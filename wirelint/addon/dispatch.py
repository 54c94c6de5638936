"""mitmproxy's events, handed to the addons that hear them and not offered to those that do not.

Theory of operation. For every event of every exchange mitmproxy enters a context and starts a coroutine for each of its
thirty addons, few of which have a hook for it: with a short exchange that is nearly half of what the proxy does. Each line
of its log is an event as well, goes by another way, and is heard by hardly anybody. So its manager of addons gets another
`trigger_event` and another `trigger` while we are loaded. An addon in which nothing has a hook of that name is passed over,
the hook of one that has no addons of its own is called, and all others are handed the event as before. What an addon hears
is looked up each time, so that hooks may come and go.

The manager is changed where it is the one that we know, and only that one object; otherwise all goes on as without this
module.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from mitmproxy import ctx, exceptions
from mitmproxy.addonmanager import AddonManager, safecall
from mitmproxy.hooks import Hook

from wirelint.addon.failures import Failures

_Ways: TypeAlias = "dict[str, Callable[[Hook], object]]"
"""What an event is given to, by its name in the manager."""

_NONE, _UNKNOWN = object(), object()


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


def _ways_of(manager: AddonManager) -> _Ways:
    async def trigger_event(event: Hook) -> None:
        name, args = event.name, None
        hook: Any
        for addon in manager.chain:
            try:
                hook = getattr(addon, name, None)
                if not hook and getattr(addon, "addons", _NONE) is _NONE:
                    continue  # most of them, as quickly as that can be told
                hook = _hook_of(addon, name, hook)
            except Exception:  # mitmproxy is to meet it, and to tell of it
                hook = _UNKNOWN
            try:
                if hook is None:
                    continue
                if hook is _UNKNOWN:
                    await manager.invoke_addon(addon, event)  # type: ignore[no-untyped-call, unused-ignore]
                    continue
                if args is None:
                    args = event.args()
                result = _AtOnce.invoke_addon(hook, args)
                if result is not None and inspect.isawaitable(result):
                    await _InTime.invoke_addon(result)
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception:
                _tell()

    def trigger(event: Hook) -> None:
        for addon in manager.chain:
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


def _hook_of(addon: object, name: str, hook: Any) -> Any:
    """The hook that an addon is to be called by for an event of a name, if `hook` is its attribute of that name. None where
    neither it nor one of those in it has one; `_UNKNOWN` where that is for mitmproxy to find out. Raises what they do."""
    inner = getattr(addon, "addons", _NONE)
    if inner is not _NONE:
        return _UNKNOWN if hook or _hears_inside(inner, name) else None
    if not hook:
        return None
    return hook if callable(hook) else _UNKNOWN


def _hears_inside(inner: object, name: str) -> bool:
    """Whether one of an addon's addons may have a hook of a name."""
    if type(inner) is not list and type(inner) is not tuple:
        return True  # perhaps they can be gone through only once
    return any(hears(one, name) for one in inner)


def hears(addon: object, name: str) -> bool:
    """Whether an addon, or one of those in it, may have a hook of a name. Never raises."""
    try:
        return _hook_of(addon, name, getattr(addon, name, None)) is not None
    except Exception:  # mitmproxy is to meet it, and to tell of it
        return True
