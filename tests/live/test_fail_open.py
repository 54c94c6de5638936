"""Failures of ours in a real process: every byte arrives, the exchange says so, the culprit is named once."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from tests.build import FORMS, in_pieces
from tests.live.harness import Peer, Proxy, Upstream, refused, replying, running
from tests.live.leaks import (
    CALL,
    CALLED,
    CLEAN,
    LEAK,
    PROSE,
    ask,
    body_of,
    kind_of,
    split_events,
)
from tests.live.scenes import Form
from tests.live.strict import assemble
from tests.selection import is_complete, rotated, sampled
from tests.test_registry import draft

pytestmark = pytest.mark.live


def send(proxy: Proxy, upstream: Upstream, form: Form, test: str, fault: dict[str, str], *, leaks: bool) -> None:
    """Send an exchange during which something fails, and check what arrives.

    A clean reply arrives byte for byte. Of a reply that leaks, each word arrives once, as text or in a call.
    """
    record = LEAK[form] if leaks else CLEAN[form]
    body = body_of(record)
    pieces = split_events(body) if form[1] else list(in_pieces(body, 60))
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


# --- a rule of the user fails -----------------------------------------------------------------------------------------

_METHODS = """\
    def rewriter(self, situation):
        stage = situation.exchange.request_headers.get("x-fault-NAME", "")
        fail(stage == "rewriter")
        return Faulty(stage, situation.streamed) if stage and stage != "mend" else None

    def fix_request(self, exchange, ledger, permit):
        stage = exchange.request_headers.get("x-fault-NAME", "")
        fail(stage == "mend")
        if stage == "mend half done":
            repair = self.repair("request", "safe", "changed the model", "/model")
            yield [Edit("replace", "/model", "another")], repair
            fail(True)
        if stage == "mend nowhere":
            yield [Edit("replace", "/no/such/place", 1)], self.repair("request", "safe", "changed nothing", "/no")
"""
_REWRITER = """
from wirelint.events import Delta, Finish
from wirelint.rule import Edit

def fail(really):
    if really:
        raise SystemExit("as the test wants it")

class Faulty:
    phase = PHASE

    def __init__(self, stage, streamed):
        fail(stage == "construction")
        self._stage, self._third, self._waiting = stage, 3 if streamed else 1, []

    @property
    def held(self):
        fail(self._stage == "held")
        return self._waiting[0].frame.number if self._waiting else None

    def push(self, event):
        fail(self._stage == "push" or self._stage == "push at the end" and isinstance(event, Finish))
        if self._stage == "iteration":
            return self._yields(event)
        if not self._waiting and not isinstance(event, Delta):
            return [event]
        self._waiting.append(event)
        fail(self._stage == "push with text held" and len(self._waiting) == self._third)
        return self._drain() if isinstance(event, Finish) and self._stage != "release" else []

    def _yields(self, event):
        yield event
        fail(True)

    def _drain(self):
        drained, self._waiting = self._waiting, []
        return drained

    def release(self):
        fail(self._stage == "release")
        return self._drain()
"""
STAGES = (
    "rewriter", "construction", "push", "iteration", "push with text held", "push at the end", "held", "release",
)  # fmt: skip
MENDS = {"mend": ["internal-error"], "mend half done": ["internal-error"], "mend nowhere": []}
"""Stages of a repair of requests, and what is reported of its failure; an edit of a place that is not there is none."""


@pytest.fixture(scope="module")
def faulty(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("faulty")
    rules = folder / "own"
    rules.mkdir()
    for phase, code, name in ((0, "XX901", "early"), (5, "XX902", "late")):
        path = draft(rules, code, f"faulty-{name}")
        head = path.read_text().partition("    def check_reply")[0]
        path.write_text(head + _METHODS.replace("NAME", name) + _REWRITER.replace("PHASE", str(phase)))
    with running(folder, upstream.url, f"wirelint_rules={rules}", "wirelint_fix=unsafe") as proxy:
        yield proxy


STAGES_BY_FORM = [
    # Of a whole body nobody asks since when something of it is held.
    pytest.param(form, stage, id=f"{stage} {form[0]} {'stream' if form[1] else 'whole'}")
    for form in FORMS
    for stage in STAGES
    if form[1] or stage != "held"
]


@pytest.mark.parametrize("leaks", [False, True], ids=["clean", "leak"])
@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize(("form", "stage"), sampled(STAGES_BY_FORM, 10))
def test_a_rule_that_raises_costs_no_byte(
    faulty: Proxy, upstream: Upstream, form: Form, stage: str, when: str, leaks: bool
) -> None:
    test = f"{stage} {when} {form} {leaks}"
    send(faulty, upstream, form, test, {f"x-fault-{when}": stage}, leaks=leaks)
    assert "internal-error" in findings_of(faulty, test)
    assert faulty.process.poll() is None


@pytest.mark.parametrize("stage", MENDS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_repair_of_a_request_that_raises_changes_nothing(
    faulty: Proxy, upstream: Upstream, form: Form, stage: str
) -> None:
    record, test = CLEAN[form], f"{stage} {form}"
    sent: list[bytes] = []
    answer = replying([body_of(record)], **kind_of(record))

    def script(peer: Peer) -> None:
        sent.append(peer.body)
        answer(peer)

    upstream.scripts[test] = script
    reply = ask(faulty, form[0], record, test, {"x-fault-early": stage})
    assert (reply.complete, reply.body) == (True, body_of(record))
    assert sent == [record["request"]["body"].encode()]
    assert findings_of(faulty, test) == MENDS[stage]
    captured = faulty.wait_for_record(test)
    assert ("forwarded" in captured, captured.get("fixes", [])) == (False, [])


def test_a_culprit_is_named_once(faulty: Proxy) -> None:
    """Runs after the others: many failures, one line for each place."""
    told = [line for line in faulty.log.splitlines() if "wirelint:" in line and "failed" in line]
    assert told
    assert len(told) == len({re.sub(r"^\[[^]]*\]", "", line) for line in told})


def test_a_rule_that_cannot_be_loaded_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "xx902_broken.py").write_text("def half(\n")
    status, lines = refused(tmp_path, "wirelint_rules=own")
    assert status == 1
    assert len([line for line in lines if "xx902_broken.py:1" in line]) == 1
    assert "Traceback" not in " ".join(lines)


# --- our own code fails -----------------------------------------------------------------------------------------------

_MODULES = (
    "wirelint.rewrite.pipeline", "wirelint.rewrite.edits", "wirelint.rewrite.stream", "wirelint.rewrite.request",
    "wirelint.addon.recorder", "wirelint.addon.streamed_reply", "wirelint.addon.http_headers",
    "wirelint.addon.exchange_fix", "wirelint.addon.mitm_compat",
    "wirelint.apis.anthropic", "wirelint.apis.openai_chat", "wirelint.engine",
    "wirelint.fixes.prefilter",
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
