"""The one switch of the test suite: the default run, or everything (`pytest --all`, which is `make test-all`).

The default run keeps every contract and every case of a rule. It leaves out repetitions: a case runs in its home API and
in one other, a body is cut at a few places, a property is tried on 25 examples, and of long lists of texts that are tried
in the same way some are taken, the same in every run. `--all` runs a case in every API, cuts a body at every place, and
tries 300 examples and every text. A test that has no short form carries the marker `complete` and runs with `--all` only.
"""

from __future__ import annotations

import functools
import inspect
import random
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

_everything = False


def select_everything(everything: bool) -> None:
    """Set the switch. `tests/conftest.py` does so before any test module is imported."""
    global _everything
    _everything = everything


def is_complete() -> bool:
    """Return True if this run is the complete one."""
    return _everything


def rotated(options: Sequence[T], id_: str, count: int = 1) -> Sequence[T]:
    """`count` of the options, chosen by the id of a case, so that many cases together meet every option. `--all`: all."""
    if _everything or len(options) <= count:
        return options
    start = zlib.crc32(id_.encode()) % len(options)
    return [options[(start + step) % len(options)] for step in range(count)]


def sampled(options: Sequence[T], count: int = 8) -> Sequence[T]:
    """`count` of the options: random ones, the same in every run, in their order. `--all`: all."""
    if _everything or len(options) <= count:
        return options
    return [options[place] for place in sorted(random.Random(len(options)).sample(range(len(options)), count))]


def in_batches(
    names: str | Sequence[str],
    cases: Collection[Any],
    ids: Iterable[object] | Callable[[Any], str] | None = None,
    size: int = 40,
) -> Callable[[Callable[..., None]], Any]:
    """`pytest.mark.parametrize` for many small cases: `size` of them are one test, whose failure names its case.
    A case that is skipped does not keep the others from running.

    A test by itself costs 6 ms before it does anything. `--all`: one test for each case.
    """
    if _everything:
        return pytest.mark.parametrize(names, cases, ids=ids)  # type: ignore[arg-type]
    keys = [names] if isinstance(names, str) else list(names)
    written = [ids(case) for case in cases] if callable(ids) else list(ids or range(len(cases)))
    rows: list[tuple[str, dict[str, Any]]] = []
    for case, id_ in zip(cases, written, strict=True):
        given = hasattr(case, "marks")  # made by `pytest.param`
        values = case.values if given else (case,) if isinstance(names, str) else case
        rows.append((str(case.id if given else id_), dict(zip(keys, values, strict=True))))
    batches = [rows[at : at + size] for at in range(0, len(rows), size)]

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def run(batch: Sequence[tuple[str, dict[str, Any]]], **others: Any) -> None:
            skipped: list[str] = []
            for id_, values in batch:
                try:
                    test(**values, **others)
                except pytest.skip.Exception as skip:
                    skipped.append(f"{id_}: {skip}")
                except BaseException as error:
                    error.add_note(f"in the case {id_}")
                    raise
            if skipped:
                pytest.skip("; ".join(skipped))

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in keys]
        batch = inspect.Parameter("batch", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = signature.replace(parameters=[batch, *others])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("batch", batches, ids=[f"from {rows[0][0]}" for rows in batches])(run)

    return decorate
