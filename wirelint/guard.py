"""Guard around rules from a user's folder: an exception of any class that they raise becomes an `Exception`.

The engine and the rewriter fail open on `Exception`. A rule that calls `sys.exit()` raises `SystemExit`, which is not an
`Exception`: it would end the proxy, or leave a client without the end of its reply. So this module wraps the methods that
wirelint calls, and the rewriters that a rule returns, once at loading. Shipped rules are not wrapped.
"""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

from wirelint.events import Event
from wirelint.fix import RewriteContext, Rewriter
from wirelint.rule import Rule

_STREAMS = ("check_request", "check_reply", "check_course", "fix_request")
"""Methods that return an iterable, whose iteration may run code of the rule."""
_VALUES = ("answer", "due", "under", "within", "as_severe_as")
_PROPERTIES = ("is_timed", "patience")

P = ParamSpec("P")
T = TypeVar("T")


class RuleAbortError(RuntimeError):
    """Replacement for an exception of a rule that is not an `Exception`, such as `SystemExit`."""


def as_exception(error: BaseException) -> Exception:
    """Return the exception to handle instead of one that a rule raised. Raises `error` if the user pressed Ctrl-C.

    Rules never await, so `asyncio.CancelledError` and `GeneratorExit` in a rule come from the rule.
    """
    if isinstance(error, Exception):
        return error
    if isinstance(error, KeyboardInterrupt) and _may_be_interrupted():
        raise error
    said = f": {error}" if str(error) else ""
    return RuleAbortError(f"it raised {type(error).__name__}{said}")


def _may_be_interrupted() -> bool:
    """Return True if Ctrl-C raises KeyboardInterrupt here: not where an event loop handles it, as in mitmproxy."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def guarded(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap a callable so that it raises nothing but `Exception`."""

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            raise as_exception(error) from error

    return run


def _guarded_stream(call: Callable[P, Iterable[T]]) -> Callable[P, Iterator[T]]:
    """Wrap a callable that returns an iterable. Items before an exception are yielded."""

    def run(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from call(*args, **kwargs)
        except BaseException as error:
            raise as_exception(error) from error

    return run


def guard(kind: type[Rule]) -> None:
    """Wrap the methods and properties that a user's rule overrides."""
    wraps: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(_STREAMS, _guarded_stream),
        **dict.fromkeys(_VALUES, guarded),
        "rewriter": _making,
    }
    for name in (*wraps, *_PROPERTIES):
        member = inspect.getattr_static(kind, name)
        if member is inspect.getattr_static(Rule, name):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(kind, name, property(guarded(member.fget)))
        elif inspect.isfunction(member):
            setattr(kind, name, wraps[name](member))


def _making(make: Callable[..., Rewriter | Sequence[Rewriter] | None]) -> Callable[..., Sequence[Rewriter]]:
    def run(rule: Rule, context: RewriteContext) -> Sequence[Rewriter]:
        made = guarded(make)(rule, context) or ()
        each = guarded(lambda: tuple(made) if isinstance(made, Sequence) else (made,))()
        return [_GuardedRewriter(one) for one in each]

    return run


class _GuardedRewriter:
    """Wrapper of a user's rewriter, whose members and the items that its methods yield are read under guard."""

    held: int | None
    push: Callable[[Event], Iterable[Event]]
    release: Callable[[], Iterable[Event]]

    def __init__(self, inner: Rewriter) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        value = guarded(lambda: getattr(self._inner, name))()
        return guarded(lambda *args: _read(value(*args))) if callable(value) else value


def _read(result: Iterable[Event] | None) -> Sequence[Event] | None:
    return list(result) if result is not None else None
