from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, schema
from tests.rules.case import Fires, Silent
from tests.rules.mcp import QUERY, RESPONSES, call, called, going_on, introduced, listed, post, text

SERVED = {"search_wiki": ("Search the wiki for pages.", QUERY), "add_page": ("Add a page.", schema(title="string"))}
LIST = listed(SERVED)
SEARCH = Call("search_wiki", {"query": "leave"}, "call_7Qd2")


def declared(*names: str, parameters: Any = QUERY, described: str = "Search the wiki for pages.") -> dict[str, Any]:
    return dict.fromkeys(names, (described, parameters))


def made(call: Call, **more: Any) -> Talk:
    """The reply in which the model makes the call."""
    return Talk((User("Leave?"),), "", (call,), tools=declared(call.name), **more)


def back(call: Call, told: str, *, is_error: bool | None = None, tools: Any = None, calls: Sequence[Call] = ()) -> Talk:
    """The request that brings the result."""
    history = (User("Leave?"), Assistant("", (*calls, call)), Result(call.id, told, is_error))
    return Talk(history, "See above.", tools=declared(call.name) if tools is None else tools)


def prefixed(name: str) -> Call:
    return Call(name, SEARCH.arguments, "call_7Qd2")


FIRES = {
    "nothing ran": Fires([LIST, made(SEARCH), back(SEARCH, "2 pages: Leave, Absence")], says="no call of search_wiki ever", layer="client"),
    "nothing ran, the call was not seen": [LIST, back(SEARCH, "2 pages: Leave, Absence")],
    "with the prefix of Claude Code": [LIST, back(prefixed("mcp__wiki__search_wiki"), "2 pages")],
    "with the server's name": [introduced("Wiki"), LIST, back(prefixed("wiki-search_wiki"), "2 pages")],
    "with any prefix, and the same description": [LIST, back(prefixed("docs.search_wiki"), "2 pages")],
    "behind a response that the provider keeps": Fires(
        [LIST, made(SEARCH), going_on(SEARCH.id, "2 pages")], forms=RESPONSES
    ),
    "an empty result": Fires([LIST, made(SEARCH), back(SEARCH, "")], says="an empty result"),
    "another tool was called": [LIST, called("add_page", {"title": "x"}, "ok"), made(SEARCH), back(SEARCH, "2 pages")],
    "it ran before, with other arguments": [
        LIST,
        called("search_wiki", {"query": "pay"}, "1 page"),
        made(SEARCH),
        back(SEARCH, "2 pages"),
    ],
    "another server was called": [
        LIST,
        called("search_web", {"query": "leave"}, "9 pages", url="http://127.0.0.1:9000/mcp"),
        made(SEARCH),
        back(SEARCH, "2 pages"),
    ],
}  # fmt: skip

SILENT = {
    "it ran": [LIST, made(SEARCH), called("search_wiki", {"query": "leave"}, "2 pages"), back(SEARCH, "2 pages")],
    "it ran, behind a response that the provider keeps": Silent(
        [LIST, made(SEARCH), called("search_wiki", {"query": "leave"}, "2 pages"), going_on(SEARCH.id, "2 pages")],
        forms=RESPONSES,
    ),
    "a result of a call that nobody saw": Silent([LIST, going_on("call_other", "2 pages")], forms=RESPONSES[:1]),
    "it ran under its prefix": [
        LIST,
        called("search_wiki", {"query": "leave"}, "2 pages"),
        back(prefixed("mcp__wiki__search_wiki"), "2 pages"),
    ],
    "it ran with a null left out": [
        LIST,
        called("search_wiki", {"query": "leave"}, "2 pages"),
        back(Call("search_wiki", {"query": "leave", "limit": None}, "c1"), "2 pages"),
    ],
    "it ran with arguments that were mended": [
        LIST,
        made(SEARCH),
        called("search_wiki", {"query": "leave", "limit": 5}, "2 pages"),
        back(SEARCH, "2 pages"),
    ],
    "it ran and failed": [
        LIST,
        called("search_wiki", {"query": "leave"}, text("offline", is_error=True)),
        back(SEARCH, "something"),
    ],
    "it ran without an answer": [
        LIST,
        post(call("search_wiki", {"query": "leave"}), "", status=202),
        back(SEARCH, "2 pages"),
    ],
    "no server is on this wire": back(SEARCH, "2 pages"),
    "a server without this tool": [listed({"add_page": ("Add a page.", QUERY)}), back(SEARCH, "2 pages")],
    "a server that has not listed its tools": [introduced("wiki"), back(SEARCH, "2 pages")],
    "a tool of the same name with other parameters": [
        LIST,
        back(SEARCH, "2 pages", tools=declared("search_wiki", parameters=schema(pattern="string", path="string"))),
    ],
    "a tool whose name ends alike": [
        LIST,
        back(prefixed("my_search_wiki"), "2 pages", tools=declared("my_search_wiki", described="Searches my notes.")),
    ],
    "the user refused": [LIST, back(SEARCH, "The user doesn't want to proceed with this tool use.")],
    "it was cancelled": [LIST, back(SEARCH, "Cancelled by user")],
    "the client timed out": [LIST, back(SEARCH, "MCP error -32001: Request timed out")],
    "an error of the client": [LIST, back(SEARCH, "InputValidationError: query is required")],
    "an error by its flag": [LIST, back(SEARCH, "no", is_error=True), back(SEARCH, "Error: not connected")],
    "not run, says the client": [LIST, back(SEARCH, "Tool call was skipped: a hook blocked it")],
    "an earlier turn": [
        LIST,
        Talk(
            (User("Leave?"), Assistant("", (SEARCH,)), Result(SEARCH.id, "2 pages"), Assistant("Two."), User("Thanks")),
            "Welcome.",
            tools=declared("search_wiki"),
        ),
    ],
    "listed after it ran": [
        called("search_wiki", {"query": "leave"}, "2 pages"),
        LIST,
        back(SEARCH, "2 pages"),
    ],
}
