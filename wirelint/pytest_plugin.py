"""The plugin for pytest: `assert_clean`, and `wirelint_proxy`, a real proxy in front of an upstream.

pytest loads it in every run of an environment with wirelint, so it imports only pytest until a test uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from wirelint.rule import Severity
    from wirelint.testing import Process, Proxy, Rules, Subject

__all__ = ["ProxyFactory", "assert_clean"]

_INI = "wirelint_upstream"
_MARKER = "wirelint_proxy"


class ProxyFactory(Protocol):
    """Returns a proxy in front of an upstream. Options are the addon's without `wirelint_`: `fix="safe"`."""

    def __call__(self, upstream: str, **options: object) -> Proxy: ...


def assert_clean(
    subject: Subject, *, select: Rules = (), ignore: Rules = (), least: Severity = "warning", isolated: bool = False
) -> None:
    """Fail if a finding has the severity `least` or worse; see `wirelint.testing.assert_clean`."""
    __tracebackhide__ = True
    from wirelint import testing

    testing.assert_clean(subject, select=select, ignore=ignore, least=least, isolated=isolated)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_INI, "URL of the API behind the fixture wirelint_proxy", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f'{_MARKER}(upstream=None, **options): the upstream of wirelint_proxy, and options of the addon: fix="safe"',
    )


@pytest.fixture
def wirelint_upstream(request: pytest.FixtureRequest) -> str:
    """The URL of the API behind `wirelint_proxy`; by default that of the ini file. Override it in conftest.py."""
    return str(request.config.getini(_INI))


@pytest.fixture(scope="session")
def _wirelint_processes(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Callable[[str, tuple[tuple[str, str], ...]], Process]]:
    """Processes by upstream and options, shared by the tests of the session."""
    from wirelint.testing import Process

    processes: dict[tuple[str, tuple[tuple[str, str], ...]], Process] = {}
    folder = tmp_path_factory.mktemp("wirelint")

    def process(upstream: str, options: tuple[tuple[str, str], ...]) -> Process:
        key = upstream, options
        if key not in processes or not processes[key].alive:
            place = folder / f"proxy-{len(list(folder.iterdir()))}"
            processes[key] = Process(upstream, dict(options), place, folder / "confdir", Path(pytestconfig.rootpath))
        return processes[key]

    yield process
    for one in processes.values():
        one.stop()


@pytest.fixture
def wirelint_proxy_factory(_wirelint_processes: Callable[[str, tuple[tuple[str, str], ...]], Process]) -> ProxyFactory:
    """A function that returns a proxy in front of an upstream: `wirelint_proxy_factory(url, fix="safe")`."""
    from wirelint.testing import Proxy

    def begin(upstream: str, **options: object) -> Proxy:
        texts = tuple(sorted((name, _text(value)) for name, value in options.items()))
        return Proxy(_wirelint_processes(upstream, texts))

    return begin


@pytest.fixture
def wirelint_proxy(
    request: pytest.FixtureRequest, wirelint_upstream: str, wirelint_proxy_factory: ProxyFactory
) -> Proxy:
    """A proxy in front of the upstream of the marker, else of the fixture `wirelint_upstream`."""
    marker = request.node.get_closest_marker(_MARKER)
    options = dict(marker.kwargs) if marker is not None else {}
    named = options.pop("upstream", None) or (marker.args[0] if marker is not None and marker.args else "")
    upstream = str(named or wirelint_upstream)
    if not upstream:
        pytest.fail(
            f'wirelint_proxy: no upstream; mark the test with @pytest.mark.{_MARKER}(upstream="https://…"), or set {_INI} '
            "in the ini file",
            pytrace=False,
        )
    return wirelint_proxy_factory(upstream, **options)


def _text(value: object) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case list() | tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)
