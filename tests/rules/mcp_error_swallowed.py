from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, schema
from tests.rules.case import Fires, Silent
from tests.rules.mcp import QUERY, called, error, post, text
from tests.rules.mcp import call as asked

TOOLS = {
    "get_repo": ("Get a repository.", schema(name="string")),
    "search_wiki": ("Search the wiki.", QUERY),
    "create_ticket": ("Create a ticket.", schema(title="string")),
}
REPO = Call("get_repo", {"name": "x"})
SEARCH = Call("search_wiki", {"query": "leave"})
TICKET = Call("create_ticket", {"title": "Printer"})
ENVELOPE = '{"isError":true,"content":[{"type":"text","text":"upstream said 503"}]}'


def turn(call: Call, told: str, reply: str = "", *, is_error: bool | None = None, ask: str = "Please do.") -> Talk:
    history = (User(ask), Assistant("", (call,)), Result(call.id, told, is_error))
    return Talk(history, reply or "Let me see.", tools=TOOLS)


def failed(call: Call, message: str) -> dict[str, Any]:
    return called(call.name, call.arguments, text(message, is_error=True))


def refused(call: Call, message: str) -> dict[str, Any]:
    return post(asked(call.name, call.arguments), error(message, 2))


FIRES = {
    "an error becomes an empty object": Fires(
        [failed(REPO, "404 Not Found"), turn(REPO, "{}")], says="404 Not Found", layer="client"
    ),
    "an error becomes nothing": Fires([failed(SEARCH, "index is offline"), turn(SEARCH, "")], says="an empty result"),
    "an error becomes an empty list": [failed(SEARCH, "Workspace 'a' does not exist"), turn(SEARCH, "[]")],
    "a JSON-RPC error becomes a result": [refused(SEARCH, "Unknown tool: search_wiki"), turn(SEARCH, "0 hits")],
    "an error becomes a success": [failed(TICKET, "quota exhausted"), turn(TICKET, '{"created": 1}')],
    "behind a prefix": [
        failed(SEARCH, "index is offline"),
        turn(Call("mcp__wiki__search_wiki", SEARCH.arguments), "no pages"),
    ],
    "the flag alone is lost": Fires(
        [failed(REPO, "Repository x is archived"), turn(REPO, "Repository x is archived")],
        says="without that flag",
        severity="warning",
        forms=[("anthropic.messages", False), ("anthropic.messages", True)],
    ),
    "retold as nothing found": Fires(
        turn(SEARCH, ENVELOPE, "I searched the wiki and found no results."), layer="model", says="error"
    ),
    "retold as nothing found, known from the wire": Fires(
        [
            failed(SEARCH, "Workspace is closed today"),
            turn(SEARCH, "Workspace is closed today", "The search found nothing."),
        ],
        layer="model",
        forms=[("openai.chat", False), ("openai.chat", True)],
    ),
    "retold as a success": Fires(turn(TICKET, ENVELOPE, "I've created the ticket."), layer="model"),
    "retold as a success, with a word of the error": Fires(
        [
            failed(TICKET, "board closed"),
            turn(TICKET, "board closed", "I've created the ticket on the board.", is_error=True),
        ],
        layer="model",
        forms=[("openai.chat", False), ("anthropic.messages", False)],
    ),
    "retold as a success, in Chinese": Fires(turn(TICKET, ENVELOPE, "已将工单登记到系统。"), layer="model"),
    "retold as a success, in Japanese": Fires(turn(TICKET, ENVELOPE, "チケットの登録が完了しました。"), layer="model"),
    "retold as nothing found, in Russian": Fires(turn(SEARCH, ENVELOPE, "Таких страниц в вики нет."), layer="model"),
}

SILENT = {
    "the error arrives": [failed(REPO, "404 Not Found"), turn(REPO, "404 Not Found", is_error=True)],
    "in other words, and few": [failed(REPO, "404 Not Found"), turn(REPO, "The lookup failed.")],
    "in other words": [failed(REPO, "404 Not Found"), turn(REPO, "Error: the tool failed")],
    "wrapped": [failed(REPO, "404 Not Found"), turn(REPO, "MCP tool error: 404 Not Found")],
    "as it is, where no flag exists": Silent(
        [failed(REPO, "Repository x is archived"), turn(REPO, "Repository x is archived")],
        forms=[("openai.chat", False), ("openai.chat", True)],
    ),
    "it worked the second time": [
        failed(REPO, "503 busy"),
        called("get_repo", REPO.arguments, "owner: ann", 3),
        turn(REPO, "owner: ann"),
    ],
    "a call with other arguments failed": [
        called("get_repo", {"name": "y"}, text("404", is_error=True)),
        turn(REPO, "{}"),
    ],
    "another tool failed": [called("get_repos", REPO.arguments, text("404", is_error=True)), turn(REPO, "{}")],
    "a tool with other parameters": [
        called("search_wiki", {"query": "leave"}, text("index is offline", is_error=True)),
        turn(Call("web_search_wiki", {"query": "leave"}), "0 hits"),
    ],
    "it was no error": [called("search_wiki", SEARCH.arguments, "[]"), turn(SEARCH, "[]", "I found no results.")],
    "the reply says it in the server's words": [
        failed(TICKET, "Error: the same ticket was created on Monday"),
        turn(
            TICKET,
            "Error: the same ticket was created on Monday",
            "The same ticket was created on Monday, so yours is a duplicate.",
            is_error=True,
        ),
    ],
    "the reply admits it, in Japanese": turn(TICKET, ENVELOPE, "申し訳ありません。登録は完了していません。"),
    "the reply admits it, in Russian": turn(SEARCH, ENVELOPE, "Вики не отвечает, поэтому ответа пока нет."),
    "nothing was found, in Russian": [
        called("search_wiki", SEARCH.arguments, "[]"),
        turn(SEARCH, "[]", "Таких страниц нет."),
    ],
    "the reply admits it": turn(SEARCH, ENVELOPE, "The search failed with a 503, so I cannot say."),
    "the reply asks again": turn(SEARCH, ENVELOPE, "The wiki gave an error. Shall I try again?"),
    "no answer is known": [post(asked("search_wiki", SEARCH.arguments), "", status=202), turn(SEARCH, "0 hits")],
    "nothing of MCP": turn(SEARCH, "0 hits", "I found no results."),
    "shortened": [
        failed(SEARCH, "index is offline: shard 3 of 12 has no replica"),
        turn(SEARCH, "index is offline"),
    ],
    "an older turn": [
        failed(SEARCH, "index is offline"),
        Talk(
            (User("a"), Assistant("", (SEARCH,)), Result(SEARCH.id, "{}"), Assistant("Hm."), User("b")),
            "Fine.",
            tools=TOOLS,
        ),
    ],
}
