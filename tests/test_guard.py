"""Rules of a user that raise what is no `Exception`: neither the proxy nor the command ends, and no reply is lost."""

from __future__ import annotations

import json
import signal
import tomllib
from pathlib import Path
from textwrap import indent

import pytest

from tests.build import chunk, complaint, exchange, read, sse
from tests.command import Wirelint
from tests.fixes.drive import run
from tests.test_registry import draft
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.guard import RuleAbortError, as_exception
from wirelint.registry import RuleError, _load_file
from wirelint.rewrite.request import answer_request, mend_request
from wirelint.rule import Rule
from wirelint.state.ledger import Ledger

RAISED = (
    "KeyboardInterrupt()",
    "__import__('asyncio').CancelledError()",
    "GeneratorExit()",
    "type('Gone', (BaseException,), {})('gone')",
)
METHODS: dict[str, str] = tomllib.loads(Path(__file__).with_name("guard.toml").read_text("utf-8"))
EVENTS = "text/event-stream"
STREAM = sse(chunk({"content": "Yes."}), chunk({}, "stop")).encode()
ASKED = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": False},
    "messages": [{"role": "user", "content": "Say yes."}],
}
RECORD = exchange("/v1/chat/completions", ASKED, STREAM.decode(), content_type=EVENTS)


@pytest.fixture(autouse=True)
def _as_in_mitmproxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is handled by the event loop, as in a proxy; then no KeyboardInterrupt is the user's."""
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)


def rule_that(folder: Path, raises: str, method: str) -> Rule:
    lines = METHODS[method].format(raises).replace("boom()", f"[(_ for _ in ()).throw({raises})]")
    body, _, rest = lines.partition("\nclass ")
    path = draft(folder)
    text = path.read_text()
    start = text.index("    def check_reply")
    path.write_text(text[:start] + indent(body, "    ") + "\n" + (f"\n\nclass {rest}\n" if rest else ""))
    return _load_file(path, own=True)


@pytest.mark.parametrize(
    ("method", "raises"),
    [(method, "SystemExit(3)") for method in METHODS] + [(m, r) for m in ("check_reply", "push") for r in RAISED],
)
def test_whatever_a_rule_raises_the_traffic_passes_as_it_came(tmp_path: Path, raises: str, method: str) -> None:
    rule = rule_that(tmp_path, raises, method)
    permit = FixPolicy("unsafe")
    made = read(RECORD)
    head = made.but(reply=None, status=None, end="unknown")
    body = json.dumps(ASKED).encode()

    assert mend_request(head, body, [rule], Ledger(), permit).body is body
    assert answer_request(head, [rule], Ledger(), permit).answer is None
    assert run(RECORD, [rule]).delivered == STREAM
    assert run(RECORD, [rule], cuts=range(1, len(STREAM))).delivered == STREAM
    told: list[str] = []
    findings = Engine([rule], report=lambda name, _: told.append(name)).check(made)
    assert told == (["odd-reply"] if "check" in method else [])
    assert [f.name for f in findings] == (["internal-error"] if "check" in method else [])


def test_a_rule_may_give_several_rewriters(tmp_path: Path) -> None:
    path = draft(tmp_path)
    head = path.read_text().partition("    def check_reply")[0]
    path.write_text(
        head + "    def rewriter(self, context):\n        return [Doubled(), Doubled()]\n\n\n"
        "class Doubled:\n    held = None\n\n    def push(self, event):\n"
        "        return [event._replace(text=event.text * 2) if hasattr(event, 'text') else event]\n\n"
        "    def release(self):\n        return ()\n"
    )
    assert run(RECORD, [_load_file(path, own=True)]).delivered.count(b"Yes.") == 4


def test_ctrl_c_of_the_user_is_not_taken_for_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores the signal
    try:
        with pytest.raises(KeyboardInterrupt):
            as_exception(KeyboardInterrupt())
        assert isinstance(as_exception(SystemExit(1)), RuleAbortError)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("place", ["at import", "in the constructor"])
@pytest.mark.parametrize("raises", ["SystemExit(0)", "SystemExit('no')", "GeneratorExit()"])
def test_a_file_that_raises_is_told_in_one_line(tmp_path: Path, raises: str, place: str) -> None:
    path = draft(tmp_path)
    text = path.read_text()
    if place == "at import":
        text += f"\nraise {raises}\n"
    else:
        text = text.replace(
            "    def check_reply", f"    def __init__(self):\n        raise {raises}\n\n    def check_reply"
        )
    path.write_text(text)
    said = complaint(RuleError, lambda: _load_file(path, own=True))
    assert said.startswith(f"{path}:")
    assert raises.partition("(")[0] in said


def test_check_goes_on_when_a_rule_exits(tmp_path: Path, wirelint: Wirelint) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    rule_that(rules, "SystemExit(0)", "check_reply")
    records = tmp_path / "records.jsonl"
    cut = exchange("/v1/chat/completions", ASKED, sse(chunk({"content": "Ye"}), done=False), content_type=EVENTS)
    records.write_text("".join(json.dumps(record) + "\n" for record in (RECORD, cut)))
    said = wirelint("check", records, "--rules", rules, "--output-format", "concise")
    assert said.status == 1
    assert "truncated-stream" in said.out
    assert said.err.count("odd-reply failed: RuleAbortError: it raised SystemExit: 0") == 1, said.err
    assert "Traceback" not in said.err
