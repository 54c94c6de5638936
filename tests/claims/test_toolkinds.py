from __future__ import annotations

import pytest

from wirelint.claims.toolkinds import PATH, ability, cannot, fits, names, reports
from wirelint.model import Tool

READ = Tool("read_file", "/tools/0", "Read a file.")
BASH = Tool("Bash", "/tools/1", "Executes a shell command.")
WEATHER = Tool("get_weather", "/tools/2", "Current weather.")
MAIL = Tool("sendEmail", "/tools/3", "Sends an e-mail.")
SEARCH = Tool("search", "/tools/4")
BOOK = Tool("create_record", "/tools/5", "Create a booking.")

FITS = {
    "read a path": (READ, {"read"}, "read", "src/a.c", True),
    "read something else": (READ, {"read"}, "checked", "the weather", False),
    "send with a reader": (READ, {"send"}, "sent", "the mail", False),
    "shell edits": (BASH, {"write"}, "updated", "a.c", True),
    "shell runs": (BASH, {"run"}, "ran", "`make`", True),
    "shell sends no mail": (BASH, {"send"}, "sent", "the email", False),
    "weather": (WEATHER, {"read"}, "checked", "the weather in Rome", True),
    "mail": (MAIL, {"send"}, "sent", "it", True),
    "search of no topic": (SEARCH, {"search"}, "searched", "the wiki", True),
    "described": (BOOK, {"create"}, "created", "the booking", True),
    "named": (WEATHER, {"run"}, "used", "get_weather", True),
}


@pytest.mark.parametrize(("tool", "kinds", "verb", "text", "expected"), FITS.values(), ids=FITS)
def test_fits(tool: Tool, kinds: set[str], verb: str, text: str, expected: bool) -> None:
    assert fits(ability(tool), frozenset(kinds), verb, text) is expected  # type: ignore[arg-type]


def test_a_plain_word_names_a_tool_only_as_code_or_with_its_kind() -> None:
    assert names(SEARCH, "with `search`")
    assert names(SEARCH, "with the search tool")
    assert not names(SEARCH, "a search for it")


@pytest.mark.parametrize("text", ["src/a.py", "/etc/hosts", "notes.md", "~/x", "Makefile", "a/b/c.txt"])
def test_paths(text: str) -> None:
    assert PATH.search(f"I read {text} now")


@pytest.mark.parametrize("text", ["and/or", "e.g. this", "3.5", "he/she", "it. Then"])
def test_no_paths(text: str) -> None:
    assert not PATH.search(f"I read {text} now")


CANNOT = {
    "lists mail": (Tool("list_mail", "", "Lists mail."), {"send"}, True),
    "reads": (Tool("read_file", "", "Reads a file."), {"delete"}, True),
    "writes, so it may create": (Tool("write_file", "", "Writes a file."), {"create"}, False),
    "tells of it": (Tool("read_task", "", "Reads a task and notifies its owner."), {"send"}, False),
    "any request": (Tool("http_get", "", "Gets a page."), {"send"}, False),
    "an agent": (Tool("task", "", "Reads files for you."), {"delete"}, False),
    "says nothing": (Tool("crm", ""), {"send"}, False),
    "a shell": (BASH, {"send"}, False),
}


@pytest.mark.parametrize(("tool", "kinds", "expected"), CANNOT.values(), ids=CANNOT)
def test_cannot(tool: Tool, kinds: set[str], expected: bool) -> None:
    assert cannot(ability(tool), frozenset(kinds)) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("invitations sent: 2", True),
        ("09:00 dentist", False),
        ("send it " * 60, False),
        (f"{'x ' * 300}was sent", True),
    ],
)
def test_reports(result: str, expected: bool) -> None:
    assert reports(result, frozenset({"send"})) is expected
