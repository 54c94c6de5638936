"""One exchange in which everything acts on terminals: no command and no format lets it through."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from tests.build import Call, Result, Talk, User, as_record, schema
from tests.fakes import Terminal
from tests.tables import rows, tables
from wirelint import DOCUMENTATION
from wirelint.capture.format import encode
from wirelint.capture.record import Record
from wirelint.cli import main
from wirelint.text.escaping import Guard, printable
from wirelint.view.screen import Screen

ACTIVE = (
    "\x1b[2J\x1b]0;title\x07\x9b31m\x90\x85\x00\x08\r\x0b\x0c\x7f"
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
    "\u200b\u2060\ufeff\U000e0041\U000e007f"
)
_ANY = re.compile(f"[{re.escape(''.join(set(ACTIVE) - set('[]0;title2J31m')))}]")
HOSTILE = f"ab{ACTIVE}[red]c"

ORDINARY = (
    "مرحبا بالعالم — שלום עולם — 你好，世界　（全角） — привет — नमस्ते क्‍ष — می‌خواهم — ไทย — 한국어 "
    "👩‍👩‍👧 👍🏽 ❤️ ½ é e\u0301 «naïve»\u00a0! ●▲ → ✓"
)

LINK = rf"\x1b\]8;(id=\d+)?;({re.escape(DOCUMENTATION)}rules/[a-z-]+/)?\x1b\\"
"""A link of the terminal to a rule's page, or its end."""


def _record(said: str, id_: str = "1", tool: str = "", host: str = "h.example") -> Record:
    leak = f'<tool_call>{{"name": "search", "arguments": {{"x": 1}}}}</tool_call> {said}'
    calls = (Call(tool or said, {"q": said}, said), Call("search", '{"q": "' + said, f"{said}2"))
    tools = {"search": (said, schema(**{said: "string"}))}
    talk = Talk((User(said), Result(said, said)), leak, calls, said, tools, "stop", said, said)
    made = as_record(talk.record("openai.chat", False))
    reply = {**json.loads(made.response_body or b""), "id": said}
    return dataclasses.replace(
        made, id=id_, url=f"https://{host}/v1/chat/completions?x={said}",
        request_headers=(("x-note", said), ("user-agent", said)),
        response_headers=(*made.response_headers, ("server", said)),
        response_body=json.dumps(reply, ensure_ascii=False).encode(), error=said,
    )  # fmt: skip


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hostile exchange twice, in a file whose name is hostile as far as a file system allows."""
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / f"x{ACTIVE}.jsonl".replace("\x00", "")
    path.write_bytes(encode(_record(HOSTILE, f"id{HOSTILE}")) + encode(_record(HOSTILE, f"two{HOSTILE}")))
    return path


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool = False) -> tuple[str, str]:
    """What the program writes to its two outputs."""
    out, err = (Terminal() if terminal else io.StringIO() for _ in range(2))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "argv", ["wirelint", *arguments])
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit):
            main()
    return out.getvalue(), err.getvalue()


FORMS: dict[str, Callable[[str], object]] = {
    "json": orjson.loads,
    "lines": lambda text: [orjson.loads(line) for line in text.splitlines()],
    "one each": lambda text: all(line.startswith(("::", "/")) for line in text.splitlines()),
    "xml": lambda text: list(ElementTree.fromstring(text)),
    "some": str.strip,
    "anything": lambda _: True,
}
"""Readers of the forms of outputs, each of which gives something."""


@rows(tables(__file__)["commands"])
def test_nothing_of_the_wire_acts(
    words: list[str], form: str, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"PATH": str(capture), "OUT": str(tmp_path / "report.html"), "HOSTILE": HOSTILE.replace("\x00", "")}
    arguments = [functools.reduce(lambda text, name: text.replace(name, given[name]), given, word) for word in words]
    out, err = run(arguments, monkeypatch)
    assert not _ANY.search(out + err), repr(_ANY.search(out + err))
    assert out or err
    assert FORMS[form](out)
    monkeypatch.setattr("wirelint.cli.jobs._PATIENCE", 60.0)  # a bar moves the cursor
    drawn, told = run(arguments, monkeypatch, terminal=True)
    colours = re.compile(r"\x1b\[[0-9;]*m|" + LINK)
    assert not _ANY.search(colours.sub("", drawn + told)), repr(_ANY.search(colours.sub("", drawn + told)))


@pytest.mark.parametrize("words", [["case", "PATH", "id"], ["fix", "PATH", "-o", "-"]], ids=["case", "fix"])
def test_a_capture_on_a_terminal_is_escaped(words: list[str], capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = run([word.replace("PATH", str(capture)) for word in words], monkeypatch, terminal=True)
    assert not _ANY.search(out), repr(_ANY.search(out))
    assert FORMS["lines"](out)


@pytest.mark.parametrize("form", ["full", "concise", "github", "junit", "json", "jsonl", "sarif", "gitlab"])
def test_files_of_results_are_guarded_too(
    form: str, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["check", str(capture), "--output-format", form, "-o", str(tmp_path / "out")], monkeypatch)
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert written
    assert not _ANY.search(written)


def test_a_new_message_cannot_forget_it() -> None:
    """What nobody has escaped, the sinks escape: a plain output, and rich's console with its colours."""
    for terminal in (False, True):
        below = Terminal() if terminal else io.StringIO()
        Guard(below).write(f"{HOSTILE}\n\tnext")
        assert not _ANY.search(below.getvalue())
        assert below.getvalue().endswith("\n\tnext")
        screen = Screen(below, force_terminal=terminal, width=200)
        screen.print(HOSTILE, style="red")
        assert not _ANY.search(re.sub(r"\x1b\[[0-9;]*m", "", below.getvalue()))
        assert below.getvalue().count("[red]") == 2


@pytest.mark.parametrize("arguments", [["check", "--output-format", "concise"], ["show", "--full"], ["stats"]])
def test_ordinary_text_stays(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [word for word in ORDINARY.split() if word.isprintable() or "\u200c" in word or "\u200d" in word]
    assert printable(ORDINARY) == ORDINARY
    for number in range(2):  # at most seven, because `stats` folds what comes after
        path, some = tmp_path / f"{number}.jsonl", (words[:6] + words[-8:])[number::2]
        path.write_bytes(b"".join(encode(_record(word, str(n))) for n, word in enumerate(some)))
        out, _ = run([arguments[0], str(path), *arguments[1:]], monkeypatch)
        assert [word for word in some if word not in out] == []
