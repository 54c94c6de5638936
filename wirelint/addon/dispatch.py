"""mitmproxy's events, handed to the addons that hear them and not offered to those that do not.

Theory of operation. For every event of every exchange mitmproxy enters a context and starts a coroutine for each of its
thirty addons, few of which have a hook for it: with a short exchange that is nearly half of what the proxy does. Each line
of its log is an event as well, goes by another way, and is heard by hardly anybody. So its manager of addons gets another
`trigger_event` and another `trigger` while we are loaded: an addon in which nothing has a hook of that name is passed over,
and to all others happens what would have. What an addon hears is looked up each time, as before, so that hooks may come and
go. An addon that is made in a way of its own is handed every event.

The manager is changed where it is the one that we know, and only that one object; otherwise all goes on as without this
module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from mitmproxy import ctx, exceptions
from mitmproxy.addonmanager import AddonManager, safecall
from mitmproxy.hooks import Hook

from wirelint.addon.failures import Failures

_Ways: TypeAlias = "dict[str, Callable[[Hook], object]]"
"""What an event is given to, by its name in the manager."""

_NONE = object()


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
    def hearing(name: str) -> Iterator[object]:
        return (addon for addon in manager.chain if hears(addon, name))

    async def trigger_event(event: Hook) -> None:
        for addon in hearing(event.name):
            try:
                await manager.invoke_addon(addon, event)  # type: ignore[no-untyped-call, unused-ignore]
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception:
                _tell()

    def trigger(event: Hook) -> None:
        for addon in hearing(event.name):
            try:
                manager.invoke_addon_sync(addon, event)  # type: ignore[no-untyped-call, unused-ignore]
            except exceptions.AddonHalt:
                return
            except exceptions.OptionsError:
                raise
            except Exception:
                _tell()

    return {"trigger_event": trigger_event, "trigger": trigger}


def _tell() -> None:
    """Tells of an addon's exception, which is being handled, as mitmproxy tells of it."""
    with safecall():  # type: ignore[no-untyped-call, unused-ignore]
        raise


def hears(addon: object, name: str) -> bool:
    """Whether an addon, or one of those in it, may have a hook of a name. Never raises."""
    try:
        if getattr(addon, name, None):
            return True
        inner = getattr(addon, "addons", _NONE)
        if inner is _NONE:
            return False
        if type(inner) is not list and type(inner) is not tuple:
            return True  # perhaps they can be gone through only once
        return any(hears(one, name) for one in inner)
    except Exception:  # mitmproxy is to meet it, and to tell of it
        return True
