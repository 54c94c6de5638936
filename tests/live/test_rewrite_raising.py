"""Rules whose repairs fail, in a real process: the traffic passes as it came, and the exchange says so."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType

import pytest

from tests.build import FORMS
from tests.live.harness import Peer, Proxy, Upstream, replying, running
from tests.live.leaks import (
    CALL,
    CALLED,
    CLEAN,
    LEAK,
    PROSE,
    ask,
    body_of,
    kind_of,
    pieces_of,
    split_events,
)
from tests.live.scenes import Form
from tests.live.strict import assemble
from tests.rules.case import write_example
from tests.selection import is_complete, rotated, sampled

pytestmark = pytest.mark.live


_RULE = '''
from __future__ import annotations
from wirelint.events import Delta, Finish
from wirelint.rule import Edit, Rule

class _Faulty:
    phase = {phase}

    def __init__(self, stage, streamed):
        self._stage = stage
        self._third = 3 if streamed else 1
        self._waiting = []
        if stage == "construction":
            raise SystemExit("raised at construction")

    @property
    def held(self):
        if self._stage == "held":
            raise SystemExit("raised in held")
        return self._waiting[0].frame.number if self._waiting else None

    def push(self, event):
        if self._stage == "push":
            raise SystemExit("raised in push")
        if self._stage == "iteration":
            return self._yields(event)
        if isinstance(event, Delta):
            self._waiting.append(event)
            if self._stage == "push with text held" and len(self._waiting) == self._third:
                raise SystemExit("raised in push with text held")
            return []
        if isinstance(event, Finish) and self._stage == "push at the end":
            raise SystemExit("raised in push at the end")
        if isinstance(event, Finish) and self._stage not in ("release",):
            return [*self._drain(), event]
        return [event] if not self._waiting else self._keep(event)

    def _keep(self, event):
        self._waiting.append(event)
        return []

    def _yields(self, event):
        yield event
        raise SystemExit("raised in iteration")

    def _drain(self):
        drained, self._waiting = self._waiting, []
        return drained

    def release(self):
        if self._stage == "release":
            raise SystemExit("raised in release")
        return self._drain()


class Faulty{phase}(Rule):
    """A rule whose repairs fail.

    ## What it does
    Raises.
    ## Why is this bad?
    It is.
    ## Example
    None.
    ## False positives
    None.
    ## Fix safety
    None.
    """

    code = "XX{code}"
    name = "faulty-{name}"
    severity = "error"
    layer = "model"

    def rewriter(self, situation):
        stage = situation.exchange.request_headers.get("x-fault-{name}", "")
        if stage == "rewriter":
            raise SystemExit("raised in rewriter")
        return _Faulty(stage, situation.streamed) if stage and stage != "mend" else None

    def fix_request(self, exchange, ledger, permit):
        stage = exchange.request_headers.get("x-fault-{name}", "")
        if stage == "mend":
            raise SystemExit("raised in mend")
        if stage == "mend half done":
            repair = self.repair("request", "safe", "changed the model", "/model")
            yield [Edit("replace", "/model", "another")], repair
            raise SystemExit("raised in mend half done")
        if stage == "mend nowhere":
            yield [Edit("replace", "/no/such/place", 1)], self.repair("request", "safe", "changed nothing", "/no")
'''

STAGES = (
    "rewriter", "construction", "push", "iteration", "push with text held", "push at the end", "held", "release",
)  # fmt: skip
MENDS = {"mend": ["internal-error"], "mend half done": ["internal-error"], "mend nowhere": []}
"""Stages of a repair of requests, and what is told of its failure; an edit of a place that is not there is none."""


@pytest.fixture(scope="module")
def faulty(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("faulty")
    rules = folder / "own"
    rules.mkdir()
    for phase, code, name in ((0, 901, "early"), (5, 902, "late")):
        made = _RULE.format(phase=phase, code=code, name=name)
        (rules / f"xx{code}_faulty_{name}.py").write_text(made)
        write_example(rules / f"xx{code}_faulty_{name}.py")
    with running(folder, upstream.url, f"wirelint_rules={rules}", "wirelint_fix=unsafe") as proxy:
        yield proxy


STAGES_BY_FORM = [
    # Of a whole body nobody asks since when something of it is held.
    pytest.param(form, stage, id=f"{stage} {form[0]} {'stream' if form[1] else 'whole'}")
    for form in FORMS
    for stage in STAGES
    if form[1] or stage != "held"
]


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize(("form", "stage"), sampled(STAGES_BY_FORM, 10))
def test_a_rewriter_that_raises(faulty: Proxy, upstream: Upstream, form: Form, stage: str, when: str) -> None:
    record = CLEAN[form]
    body = body_of(record)
    test = f"{stage} {when} {form}"
    pieces = split_events(body) if form[1] else list(pieces_of(body, 60))
    upstream.scripts[test] = replying(pieces, **kind_of(record))
    reply = ask(faulty, form[0], record, test, {f"x-fault-{when}": stage})
    assert (reply.status, reply.complete, reply.body) == (200, True, body)
    probe = faulty.wait_for_probe(test)
    assert "internal-error" in probe["metadata"]["wirelint.findings"]
    assert faulty.process.poll() is None


@pytest.mark.parametrize(("form", "stage"), sampled(STAGES_BY_FORM, 10))
def test_a_rewriter_that_raises_beside_one_that_repairs(
    faulty: Proxy, upstream: Upstream, form: Form, stage: str
) -> None:
    """The leak is repaired or stands in the text; nothing is lost and nothing comes twice."""
    record = LEAK[form]
    test = f"leak {stage} {form}"
    pieces = split_events(body_of(record)) if form[1] else list(pieces_of(body_of(record), 60))
    upstream.scripts[test] = replying(pieces, **kind_of(record))
    reply = ask(faulty, form[0], record, test, {"x-fault-late": stage})
    assert reply.complete
    seen = assemble(*form, reply.body)
    if seen.calls:
        assert [(name, arguments) for _, name, arguments in seen.calls] == CALLED
        assert seen.text.strip() == PROSE.strip()
    else:
        assert seen.text == PROSE + CALL
    assert "internal-error" in faulty.wait_for_probe(test)["metadata"]["wirelint.findings"]


@pytest.mark.parametrize("stage", MENDS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_mend_that_raises(faulty: Proxy, upstream: Upstream, form: Form, stage: str) -> None:
    record = CLEAN[form]
    sent: list[bytes] = []
    test = f"{stage} {form}"
    answer = replying([body_of(record)], **kind_of(record))

    def script(peer: Peer) -> None:
        sent.append(peer.body)
        answer(peer)

    upstream.scripts[test] = script
    reply = ask(faulty, form[0], record, test, {"x-fault-early": stage})
    assert (reply.complete, reply.body) == (True, body_of(record))
    assert sent == [record["request"]["body"].encode()]
    probe = faulty.wait_for_probe(test)
    assert probe["metadata"]["wirelint.findings"] == MENDS[stage]
    captured = faulty.wait_for_record(test)
    assert ("forwarded" in captured, captured.get("fixes", [])) == (False, [])


def test_a_culprit_is_told_of_once(faulty: Proxy) -> None:
    """Ran after the others: many failures, one line for each place."""
    told = [line for line in faulty.log.splitlines() if "wirelint:" in line and "failed" in line]
    assert told
    assert len(told) == len({re.sub(r"^\[[^]]*\]", "", line) for line in told})


# --- what carries the repairs out fails -------------------------------------------------------------------------------

_MODULES = (
    "wirelint.rewrite.pipeline", "wirelint.rewrite.edits",
    "wirelint.rewrite.pipeline_factory", "wirelint.rewrite.whole_reply",
    "wirelint.rewrite.stream",
    "wirelint.rewrite.request", "wirelint.rewrite.frame_queue",
    "wirelint.addon.recorder", "wirelint.addon.reply_fix", "wirelint.addon.http_headers", "wirelint.addon.exchange_fix",
    "wirelint.addon.mitm_compat",
    "wirelint.apis.anthropic", "wirelint.apis.openai_chat", "wirelint.apis.delta_pattern", "wirelint.engine",
    "wirelint.fixes.prefilter",
)  # fmt: skip
"""All that these modules define is made to fail."""
_OUTERMOST = {"HttpReplyFixer.__call__", "ReplyFixer.due", "ReplyFixer._feed", "ReplyFixer._note"}
"""What catches the failures of the rest, and has nothing behind it."""

_SABOTEUR = """
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
    if not owner:
        sound = getattr(sys.modules[module], path)
        faulty = sabotaged(module + "." + path, sound)
        for user in [one for name, one in sys.modules.items() if name.startswith("wirelint")]:
            for name, value in list(vars(user).items()):
                if value is sound:
                    setattr(user, name, faulty)
        return
    cls = getattr(sys.modules[module], owner)
    sound = vars(cls)[attribute]
    if isinstance(sound, property):
        setattr(cls, attribute, property(sabotaged(module + "." + path, sound.fget)))
    elif isinstance(sound, (classmethod, staticmethod)):
        setattr(cls, attribute, type(sound)(sabotaged(module + "." + path, sound.__func__)))
    else:
        setattr(cls, attribute, sabotaged(module + "." + path, sound))

import importlib
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
    return [name for name, one in members.items() if isinstance(one, kinds) and not _is_abstract(one)]


def _is_abstract(member: object) -> bool:
    return bool(getattr(member, "__isabstractmethod__", False))


PLACES = _places()
TRIED = sampled(PLACES, 32)
_ASKED: list[str] = []


@pytest.fixture(scope="module")
def sabotaged(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("sabotaged")
    saboteur = folder / "saboteur.py"
    saboteur.write_text(f"PLACES = {PLACES!r}\n{_SABOTEUR}")
    with running(folder, upstream.url, "wirelint_fix=unsafe", scripts=[saboteur]) as proxy:
        yield proxy


AFTER = (0, 1, 4, 9)
"""Calls of a function that succeed before it fails."""


def _tries(place: tuple[str, str]) -> Iterator[tuple[Form, int]]:
    """Forms, and when the function fails; the default run tries one form, at once and later."""
    for form in rotated(FORMS, ".".join(place)):
        yield from ((form, after) for after in sorted({0, *rotated(AFTER, f"{form} {place}")}))


@pytest.mark.parametrize("place", TRIED, ids=".".join)
def test_what_carries_repairs_out_raises(sabotaged: Proxy, upstream: Upstream, place: tuple[str, str]) -> None:
    """A clean reply arrives as it came; of one that leaks every word arrives, as text or as a call, and once."""
    for form, after in _tries(place):
        for what, record in {"clean": CLEAN[form], "leak": LEAK[form]}.items():
            body = body_of(record)
            test = f"{what} {place} {after} {form}"
            pieces = split_events(body) if form[1] else list(pieces_of(body, 60))
            upstream.scripts[test] = replying(pieces, **kind_of(record))
            _ASKED.append(test)
            reply = ask(sabotaged, form[0], record, test, {"x-fault": ".".join(place), "x-after": str(after)})
            assert (reply.status, reply.complete) == (200, True), test
            if what == "clean":
                assert reply.body == body, test
            else:
                seen = assemble(*form, reply.body)
                calls = [(name, arguments) for _, name, arguments in seen.calls]
                assert (seen.text.strip(), calls) in [(PROSE.strip(), CALLED), (PROSE + CALL, [])], test
    assert sabotaged.process.poll() is None


def test_all_of_this_ends_and_is_told_and_nothing_crashed(sabotaged: Proxy) -> None:
    """Ran after the others. A place is reached in some forms only, and the default run tries each in one."""
    sabotaged.wait_for_probe(_ASKED[-1])
    assert {probe["test"] for probe in sabotaged.probes()} >= set(_ASKED)
    assert len(set(re.findall(r"sabotage of ([\w.]+)", sabotaged.log))) > len(TRIED) / (4 if is_complete() else 10)
    assert "mitmproxy has crashed" not in sabotaged.log
