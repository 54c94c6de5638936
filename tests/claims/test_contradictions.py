from __future__ import annotations

import pytest

from wirelint.claims.contradictions import admits, contradictions
from wirelint.claims.evidence import Ran, facts
from wirelint.model import Arguments, Request, Tool, ToolCall, ToolResult
from wirelint.text import prose

REQUEST = Request(
    "openai.chat", "m", (), (Tool("search_docs", "", "Search documents."), Tool("send_mail", "", "Send mail.")), {}
)

CASES = {
    "denied": ("search_docs", '{"q": "tea"}', '{"total": 3}', "There are no results for tea.", True),
    "denied elsewhere": ("search_docs", '{"q": "tea"}', '{"total": 3}', "There are no results for coffee.", False),
    "agrees": ("search_docs", '{"q": "tea"}', '{"total": 0}', "There are no results for tea.", False),
    "error as nothing": ("search_docs", '{"q": "tea"}', "Error: index offline", "No results were found.", True),
    "error admitted": ("search_docs", '{"q": "tea"}', "Error: index offline", "The search failed: no results.", False),
    "error as success": ("send_mail", "{}", "Error: refused", "I've sent the mail.", True),
    "error as a state": ("send_mail", "{}", "Error: refused", "Your mail is sent.", True),
    "error as a plan": ("send_mail", "{}", "Error: refused", "Your mail will be sent.", False),
    "error as settled": ("send_mail", "{}", "Error: refused", "All set!", True),
    "error as no things": (
        "search_docs",
        '{"q": "tea"}',
        "Error: index offline",
        "There are no documents on tea.",
        True,
    ),
    "more things": ("search_docs", "{}", '{"total": 3}', "I found nine documents.", True),
    "as many things": ("search_docs", "{}", '{"total": 3}', "I found three documents.", False),
    "other things": ("search_docs", "{}", '{"total": 3}', "I found 3 documents by 9 authors.", False),
    "success": ("send_mail", "{}", "queued", "I've sent the mail.", False),
}


@pytest.mark.parametrize(("name", "arguments", "result", "text", "expected"), CASES.values(), ids=CASES)
def test_contradictions(name: str, arguments: str, result: str, text: str, expected: bool) -> None:
    ran = [Ran(ToolCall("1", name, Arguments(arguments), ""), ToolResult("1", result, ""))]
    assert bool(list(contradictions(prose.read(text), facts(REQUEST, ran), ran))) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The import failed.", True),
        ("It could not be saved.", True),
        ("It ran without any errors.", False),
        ("There were no errors, but it timed out.", True),
        ("Es lief ohne Fehler.", False),
        ("没有任何错误。", False),
        ("エラーはありません。", False),
        ("エラーが発生しました。抱歉", True),
        ("`error` is a name", False),
    ],
)
def test_admits(text: str, expected: bool) -> None:
    assert admits(prose.read(text)) is expected
