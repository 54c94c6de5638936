"""Tests of rows: the tables in the JSON file beside a test module, and the parameters that their rows become."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.selection import in_batches

Test = TypeVar("Test", bound=Callable[..., None])


def tables(module: str) -> dict[str, Any]:
    """The tables of a test module: for `tests/wire/test_sse.py` those in `tests/wire/sse.json`."""
    path = Path(module)
    made: dict[str, Any] = json.loads(path.with_name(f"{path.stem.removeprefix('test_')}.json").read_text("utf-8"))
    return made


def rows(table: Any) -> Callable[[Test], Test]:
    """Run a test for each row of a table (a list, or rows by their ids). A row has the first arguments of the test.

    Rows of a test without fixtures share one test, as in `in_batches`.
    """
    found, ids = (list(table.values()), list(table)) if isinstance(table, Mapping) else (list(table), None)

    def decorate(test: Test) -> Test:
        arguments = list(inspect.signature(test).parameters)
        names = arguments[: len(found[0])]
        parametrize = in_batches if names == arguments else pytest.mark.parametrize
        decorated: Test = parametrize(names, found, ids=ids)(test)
        return decorated

    return decorate


def pairs(table: Mapping[str, Any]) -> Callable[[Test], Test]:
    """Run a test for each key of a table and its value, which are the first two arguments of the test."""
    return rows({repr(key)[:40]: (key, value) for key, value in table.items()})
