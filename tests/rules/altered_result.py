from __future__ import annotations

import json
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, schema
from tests.rules.case import Fires
from tests.rules.mcp import RESPONSES, call, called, error, going_on, post, text

ORDERS = Call("count_orders", {"day": "monday"}, "call_7Qd2")
TOOLS = {"count_orders": ("Count orders.", schema(day="string"))}
ROWS = {"rows": [{"id": 1, "city": "Graz", "total": 12.5}, {"id": 2, "city": "Linz", "total": 3}], "open": None}
LONG = "\n".join(f"{n}: order {n * 37} of customer {n * 11}" for n in range(1, 60))


def back(told: str, *, is_error: bool | None = None, tool: Call = ORDERS) -> Talk:
    history = (User("Orders?"), Assistant("", (tool,)), Result(tool.id, told, is_error))
    return Talk(history, "Here.", tools=TOOLS)


def gave(answer: Any, id_: int = 2) -> dict[str, Any]:
    return called("count_orders", ORDERS.arguments, answer, id_)


FIRES = {
    "another number": Fires([gave("214 orders, 3 open"), back("14 orders, 3 open")], says="'14 orders, 3 open'", layer="client"),
    "another story, with a word of refusals": [
        gave("parcel 9 left Graz on Monday and comes today"),
        back("parcel 9 left Graz and was cancelled today"),
    ],
    "another word": [gave("the door is open"), back("the door is closed")],
    "nothing is left": Fires([gave("214 orders"), back("")], says="nothing is left"),
    "an empty object": Fires([gave("214 orders"), back("{}")], says="nothing is left"),
    "a placeholder of the client": [gave("214 orders"), back("(tool ran without output)")],
    "a value of a row": [gave(json.dumps(ROWS)), back(json.dumps(ROWS).replace("Graz", "Wien"))],
    "only the first block": Fires(
        [gave(text("page one", "page two of it")), back("page one")], says="a part of it is missing", severity="warning"
    ),
    "cut without a word": Fires([gave(LONG), back(LONG[:300])], severity="warning"),
    "behind a response that the provider keeps": Fires(
        [
            gave("214 orders"),
            Talk((User("Orders?"),), "", (ORDERS,), tools=TOOLS),
            going_on(ORDERS.id, "14 orders"),
        ],
        forms=RESPONSES,
    ),
    "behind a prefix": [gave("214 orders"), back("9 orders", tool=Call("mcp__shop__count_orders", ORDERS.arguments))],
    "something else altogether": [gave("214 orders"), back("Weather in Graz: sunny")],
    "none of two answers": [gave("214 orders"), gave("215 orders", 3), back("216 orders")],
}  # fmt: skip

SILENT = {
    "as it was": [gave("214 orders, 3 open"), back("214 orders, 3 open")],
    "other white space": [gave("214 orders,\n3 open\n"), back("214 orders, 3 open")],
    "in an object": [gave("214 orders"), back('{"output": "214 orders"}')],
    "as the whole result": [
        gave("214 orders"),
        back('{"content":[{"type":"text","text":"214 orders"}],"isError":false}'),
    ],
    "as a list of blocks": [
        gave(text("a 1", "b 2")),
        back('[{"type":"text","text":"a 1"},{"type":"text","text":"b 2"}]'),
    ],
    "a JSON text in a JSON text": [gave(json.dumps(ROWS)), back(json.dumps({"result": json.dumps(ROWS)}))],
    "printed as a table": [
        gave(json.dumps({"rows": [{"id": 1, "city": "Graz"}]})),
        back("rows\n| id | city |\n|---|---|\n| 1 | Graz |"),
    ],
    "printed by Python": [gave(json.dumps(ROWS)), back(str(ROWS))],
    "escaped for HTML": [gave("a < b & c"), back("a &lt; b &amp; c")],
    "a note of the client": [gave("214 orders"), back("Tool count_orders took 12 ms.\n214 orders")],
    "truncated, and said so": [gave(LONG), back(LONG[:300] + "\n[... 40 more lines truncated]")],
    "an ellipsis": [gave(LONG), back(LONG[:300] + "…")],
    "masked": [gave("token abcd1234 of ann"), back("token ******** of ann")],
    "stored elsewhere": [gave(LONG), back("Output too large; saved to /tmp/out.txt")],
    "cleared later": [gave("214 orders"), back("[Old tool result content cleared]")],
    "nothing, told so": [gave(""), back("(no output)")],
    "one of two answers": [gave("214 orders"), gave("215 orders", 3), back("214 orders")],
    "a failure of the client": [gave("214 orders"), back("Error: request timed out", is_error=True)],
    "an error of the server": [gave(text("no such day", is_error=True)), back("{}")],
    "a JSON-RPC error": [post(call("count_orders", ORDERS.arguments), error("busy", 2)), back("{}")],
    "an image": [
        gave(
            {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "text", "text": "see"}]}
        ),
        back("an image"),
    ],
    "other arguments": [called("count_orders", {"day": "tuesday"}, "9 orders"), back("214 orders")],
    "no answer known": [post(call("count_orders", ORDERS.arguments), "", status=202), back("214 orders")],
    "redacted": [gave("key [redacted:api-key 1] of ann"), back("key sk-1 of ann")],
    "no server": back("214 orders"),
}
