"""Configuration of the test suite: the switch `--all` and the profiles of the property tests.

Property tests try the same examples every time, so that a red run means a change, not a die: `ci` is the default, `full`
goes with `--all`, and `pytest --hypothesis-profile=explore` looks for new ones.
"""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests import selection

pytest_plugins = ["tests.command"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="Run every test in every form (see tests/selection.py)")


def pytest_configure(config: pytest.Config) -> None:
    selection.select_everything(config.getoption("--all"))
    # A job in the background ignores the signal, and the processes under test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if selection.is_complete() and config.getoption("--hypothesis-profile") is None:
        settings.load_profile("full")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """For `-n auto` one more than there are processors: tests that talk with processes wait much of their time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without `--all`, deselect tests that carry the marker `complete`. Spread the files that wait for processes."""
    items[:] = _spread(items)
    if selection.is_complete():
        return
    left_out = [item for item in items if item.get_closest_marker("complete")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("complete")]


def _spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the files that wait for processes between the others: side by side they leave processors
    idle, and so they would at the end of the run."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    waiting = [path for path in files if path.startswith(("tests/live/", "tests/view/html/"))]
    others = [path for path in files if path not in waiting]
    places = {path: (number + 0.5) / len(others) for number, path in enumerate(others)}
    places |= {path: 0.8 * (number + 0.5) / len(waiting) for number, path in enumerate(waiting)}
    return [item for path in sorted(files, key=places.__getitem__) for item in files[path]]


_STEADY = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", _STEADY, max_examples=25)
settings.register_profile("full", _STEADY, max_examples=300)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("ci")
