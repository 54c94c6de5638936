"""Failures of ours in a real process: every byte arrives, the exchange says so, the culprit is named once."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType

import pytest

from tests.build import FORMS, in_pieces
from tests.cuts import events_of
from tests.live.harness import Proxy, Upstream, replying, running
from tests.live.leaks import CALL, CALLED, CLEAN, LEAK, PROSE, ask, body_of, kind_of
from tests.live.scenes import Form
from tests.live.strict import assemble
from tests.selection import is_complete, rotated, sampled


def send(proxy: Proxy, upstream: Upstream, form: Form, test: str, fault: dict[str, str], *, leaks: bool) -> None:
    """Send an exchange during which something fails, and check what arrives.

    A clean reply arrives byte for byte. Of a reply that leaks, each word arrives once, as text or in a call.
    """
    record = LEAK[form] if leaks else CLEAN[form]
    body = body_of(record)
    pieces = events_of(body) if form[1] else list(in_pieces(body, 60))
    upstream.scripts[test] = replying(pieces, **kind_of(record))
    reply = ask(proxy, form[0], record, test, fault)
    assert (reply.status, reply.complete) == (200, True), test
    if not leaks:
        assert reply.body == body, test
        return
    seen = assemble(*form, reply.body)
    calls = [(name, arguments) for _, name, arguments in seen.calls]
    assert (seen.text.strip(), calls) in [(PROSE.strip(), CALLED), (PROSE + CALL, [])], test


def findings_of(proxy: Proxy, test: str) -> list[str]:
    found: list[str] = proxy.wait_for_probe(test)["metadata"]["wirelint.findings"]
    return found


_MODULES = (
    "wirelint.rewrite.pipeline", "wirelint.rewrite.edits", "wirelint.rewrite.stream", "wirelint.rewrite.request",
    "wirelint.addon.recorder", "wirelint.addon.streamed_reply",
    "wirelint.addon.exchange_fix", "wirelint.addon.mitm_compat",
    "wirelint.apis.anthropic", "wirelint.apis.openai_chat", "wirelint.engine",
    "wirelint.fixes.prefilter", "wirelint.fixes.promote_markup",
)  # fmt: skip
"""All that these modules define is made to fail."""
_OUTERMOST = {"HttpReply.__call__", "StreamedReply.due", "StreamedReply._feed", "StreamedReply._note"}
"""What catches the failures of the rest, and has nothing behind it."""
REPORTED = tuple(
    (module, name)
    for module, names in {
        "wirelint.engine": ["Session.begin", "Session.read_request", "Session.finish", "Engine.check"],
        "wirelint.state.ledger": ["Ledger.record"], "wirelint.capture.redact": ["Redactor.record"],
        "wirelint.capture.store": ["Store.put"], "wirelint.addon.annotate": ["annotate", "annotation"],
        "wirelint.addon.log": ["log_exchange"], "wirelint.capture.readers.flows": ["end_of"],
    }.items() for name in names
)  # fmt: skip
"""Every exchange runs these, so a failure of any of them is a finding of the exchange."""
_SABOTEUR = """
import importlib
import sys

current, after, count = "", 0, 0

def sabotaged(name, sound):
    def faulty(*args, **kwargs):
        global count
        if current == name:
            count += 1
            if count > after:
                raise RuntimeError("sabotage of " + name)
        return sound(*args, **kwargs)
    return faulty

def sabotage(module, path):
    owner, _, attribute = path.rpartition(".")
    name = module + "." + path
    if not owner:
        sound = getattr(sys.modules[module], path)
        faulty = sabotaged(name, sound)
        for user in [one for title, one in sys.modules.items() if title.startswith("wirelint")]:
            for title, value in list(vars(user).items()):
                if value is sound:
                    setattr(user, title, faulty)
        return
    cls = getattr(sys.modules[module], owner)
    sound = vars(cls)[attribute]
    if isinstance(sound, property):
        setattr(cls, attribute, property(sabotaged(name, sound.fget)))
    elif isinstance(sound, (classmethod, staticmethod)):
        setattr(cls, attribute, type(sound)(sabotaged(name, sound.__func__)))
    else:
        setattr(cls, attribute, sabotaged(name, sound))

for module, path in PLACES:
    importlib.import_module(module)
    sabotage(module, path)

class Saboteur:
    def requestheaders(self, flow):
        global current, after, count
        current, after, count = flow.request.headers.get("x-fault", ""), int(flow.request.headers.get("x-after", "0")), 0

addons = [Saboteur()]
"""


def _places() -> list[tuple[str, str]]:
    """Functions and methods, by their modules."""
    found = []
    for name in _MODULES:
        module = importlib.import_module(name)
        own = [one for one in vars(module).values() if getattr(one, "__module__", None) == name]
        found += [(name, one.__name__) for one in own if inspect.isfunction(one)]
        for cls in filter(inspect.isclass, own):
            if not issubclass(cls, BaseException) and not getattr(cls, "_is_protocol", False):
                found += [(name, f"{cls.__name__}.{attribute}") for attribute in _methods(cls)]
    return [(module, path) for module, path in found if path not in _OUTERMOST]


def _methods(cls: type) -> list[str]:
    members = {name: one for name, one in vars(cls).items() if not (name.startswith("__") and name != "__init__")}
    kinds = (FunctionType, classmethod, staticmethod, property)
    return [
        name
        for name, one in members.items()
        if isinstance(one, kinds) and not getattr(one, "__isabstractmethod__", False)
    ]


PLACES = _places()
TRIED = sampled(PLACES, 32)
AFTER = (0, 1, 4, 9)
"""Calls of a function that succeed before it fails."""
_ASKED: list[str] = []


@pytest.fixture(scope="module")
def sabotaged(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("sabotaged")
    saboteur = folder / "saboteur.py"
    saboteur.write_text(f"PLACES = {list(dict.fromkeys([*PLACES, *REPORTED]))!r}\n{_SABOTEUR}")
    with running(folder, upstream.url, "wirelint_fix=unsafe", scripts=[saboteur]) as proxy:
        yield proxy


def _tries(place: tuple[str, str]) -> Iterator[tuple[Form, int]]:
    """Forms, and when the function fails; the default run tries one form, at once and later."""
    for form in rotated(FORMS, ".".join(place)):
        yield from ((form, after) for after in sorted({0, *rotated(AFTER, f"{form} {place}")}))


@pytest.mark.parametrize("place", TRIED, ids=".".join)
def test_a_failure_of_ours_costs_no_byte(sabotaged: Proxy, upstream: Upstream, place: tuple[str, str]) -> None:
    for form, after in _tries(place):
        for leaks in (False, True):
            test = f"{'leak' if leaks else 'clean'} {place} {after} {form}"
            _ASKED.append(test)
            fault = {"x-fault": ".".join(place), "x-after": str(after)}
            send(sabotaged, upstream, form, test, fault, leaks=leaks)
    assert sabotaged.process.poll() is None


@pytest.mark.parametrize("place", sampled(REPORTED, 6), ids=".".join)
def test_a_failure_of_ours_is_a_finding(sabotaged: Proxy, upstream: Upstream, place: tuple[str, str]) -> None:
    test, form = f"reported {place}", FORMS[1]
    send(sabotaged, upstream, form, test, {"x-fault": ".".join(place)}, leaks=False)
    assert "internal-error" in findings_of(sabotaged, test)
    assert "internal-error" in sabotaged.wait_for_probe(test)["comment"]
    send(sabotaged, upstream, form, f"after {place}", {}, leaks=False)
    assert findings_of(sabotaged, f"after {place}") == []


def test_all_exchanges_end_and_nothing_crashes(sabotaged: Proxy) -> None:
    """Runs after the others. A place is reached in some forms only, and the default run tries each in one."""
    sabotaged.wait_for_probe(_ASKED[-1])
    assert {probe["test"] for probe in sabotaged.probes()} >= set(_ASKED)
    assert len(set(re.findall(r"sabotage of ([\w.]+)", sabotaged.log))) > len(TRIED) / (4 if is_complete() else 10)
    assert "mitmproxy has crashed" not in sabotaged.log
    told = [line for line in sabotaged.log.splitlines() if "wirelint:" in line and "failed" in line]
    assert told
    assert len(told) == len({re.sub(r"^\[[^]]*\]", "", line) for line in told}), "a culprit is named once"
