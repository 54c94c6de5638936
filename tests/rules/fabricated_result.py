from __future__ import annotations

from tests.build import Assistant, Call, Result, Talk, User, schema
from tests.rules.case import Fires
from tests.rules.voices import CODER, FILES, HITS, KB, MAIL, SHELL, SHOP, WEATHER, ran

NOTHING = '{"total": 0, "hits": []}'
SCALE = {"scale": ("Scale a picture.", schema(width="integer"))}


def search(result: str, *, is_error: bool | None = None) -> tuple[object, ...]:
    return ran("Search proxies", "search_knowledge_base", {"query": "proxies"}, result, is_error=is_error)


def wrote(text: str, ask: str = "Weather in Graz?", **more: object) -> Talk:
    return Talk((User(ask),), text, tools=WEATHER, **more)  # type: ignore[arg-type]


FIRES = {
    "hermes tag": Fires(
        wrote('<tool_response>\n{"celsius": 4}\n</tool_response>\nIt is 4 °C.'),
        says="tool_response",
        fix="unsafe",
        severity="error",
    ),
    "call and result": wrote(
        '<tool_call>\n{"name": "get_weather"}\n</tool_call>\n<tool_response>{"c": 4}</tool_response>'
    ),
    "anthropic tag": wrote("Looking.\n\n<function_results>\n4 °C\n</function_results>\n\nFour degrees."),
    "mistral token": wrote('[TOOL_RESULTS]{"c": 4}[/TOOL_RESULTS] It is 4 °C.'),
    "deepseek tokens": wrote(
        "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>4<｜tool▁output▁end｜><｜tool▁outputs▁end｜>Four."
    ),
    "harmony message": wrote(
        "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>4<|end|>Four."
    ),
    "llama header": wrote("Wait.<|start_header_id|>ipython<|end_header_id|>\n\n4<|eot_id|>Four."),
    "kimi header": wrote("## Return of functions.get_weather:0\n4 °C\nFour degrees."),
    "react": wrote("Action: get_weather\nAction Input: Graz\nObservation: 4 °C\nThought: done\nFinal Answer: 4 °C"),
    "turn runs away": wrote("I'll look.\n\nHuman: [Tool result: 4 °C]\n\nIt is 4 °C."),
    "in the reasoning": Fires(
        wrote("It is 4 °C.", reasoning="Call it.\n<tool_response>\n4\n</tool_response>\nFour."),
        severity="warning",
        fix="none",
    ),
    "hits denied": Fires(
        Talk(search(HITS), "The search for proxies returned no results.", tools=KB),
        says="14",
        layer="model",
        fix="none",
    ),
    "error told as nothing": Fires(
        Talk(
            search("Error: workspace not found: default"), "I searched, but there are no results for proxies.", tools=KB
        ),
        says="the result is an error",
    ),
    "error told as success": Talk(
        ran("Mail Bo", "send_email", {"to": "bo@a.test"}, '{"error": {"code": 535}}'),
        "I have sent the email to Bo.",
        tools=MAIL,
    ),
    "success in passing": Talk(
        ran("commit", "bash", {"command": "git commit -m x"}, "fatal: not a git repository"),
        "Committed the change.",
        tools=SHELL,
    ),
    "failing tests": Talk(
        ran("test", "bash", {"command": "pytest"}, "2 failed, 9 passed"), "All tests pass.", tools=SHELL
    ),
    "other figures": Talk(
        ran("test", "bash", {"command": "pytest"}, "9 passed in 1s"), "Result: 12 passed.", tools=SHELL
    ),
    "too many hits": Fires(Talk(search(HITS), "The search returned 40 results.", tools=KB), severity="warning"),
    "another argument": Talk(
        ran("Scale to 300", "scale", {"width": 300}, '{"ok": true}'),
        "I called scale with width=3000 and it worked.",
        tools=SCALE,
    ),
    "details of what is not there": Fires(
        Talk(
            ran("Size?", "read_file", {"path": "data.csv"}, "Error: permission denied"),
            "data.csv holds 88 rows.",
            tools=FILES,
        ),
        severity="warning",
    ),
}

SILENT = {
    "inline code": wrote("Results stand between `<tool_response>` and `</tool_response>`."),
    "fence": wrote("Like so:\n\n```\n<tool_response>\n4\n</tool_response>\n```"),
    "block quote": wrote("> <tool_response>\n> 4\n> </tool_response>\n\nThat is the notation."),
    "quotation marks": wrote('The tag is called "<tool_response>" in Hermes prompts.'),
    "user speaks of it": wrote("A <tool_response> block holds it.", "What is <tool_response> for?"),
    "observation in prose": wrote("Observation: rain is likely. I would take a coat."),
    "react in a fence": wrote("```\nAction: x\nAction Input: y\nObservation: z\n```"),
    "no tools at all": Talk((User("Weather?"),), "<tool_response>4</tool_response>"),
    "healthy call": wrote("Let me look.", calls=(Call("get_weather", {"city": "Graz"}),)),
    "nothing, truly": Talk(search(NOTHING), "The search returned no results.", tools=KB),
    "one of two is empty": Talk(
        (
            *search(HITS),
            Assistant("", (Call("search_knowledge_base", {"query": "vpn"}, "call_2"),)),
            Result("call_2", NOTHING),
        ),
        "The search for vpn returned no results.",
        tools=KB,
    ),
    "narrowed": Talk(search(HITS), "There are no results that mention IPv6.", tools=KB),
    "another target": Talk(search(HITS), "I found no results for smart cards.", tools=KB),
    "partial listing": Talk(search(HITS), "Here are the 3 best results of 14.", tools=KB),
    "same count": Talk(search(HITS), "The search returned 14 results.", tools=KB),
    "error admitted": Talk(search("Error: index offline"), "The search failed, so there are no results yet.", tools=KB),
    "not found, told so": Talk(
        ran("Order 9?", "lookup_order", {"order_id": "9"}, '{"error": "order not found"}'),
        "There is no order with number 9.",
        tools=SHOP,
    ),
    "second try worked": Talk(
        (
            *ran("Fix x.py", "Edit", {"file_path": "x.py"}, "<tool_use_error>no match</tool_use_error>"),
            Assistant("", (Call("Edit", {"file_path": "x.py"}, "call_2"),)),
            Result("call_2", "The file x.py was updated."),
        ),
        "I've updated x.py.",
        tools=CODER,
    ),
    "sent": Talk(
        ran("Mail Bo", "send_email", {"to": "bo@a.test"}, '{"id": "m1", "error": null}'),
        "I've sent the email.",
        tools=MAIL,
    ),
    "grep found nothing": Talk(
        ran("grep", "bash", {"command": "grep -r foo src"}, "exit code: 1"),
        "There are no matches for foo in src.",
        tools=SHELL,
    ),
    "log about errors": Talk(
        ran("Log?", "read_file", {"path": "a.log"}, "10:00 started\n10:01 Error: disk\n10:02 ok"),
        "I read a.log: 3 lines.",
        tools=FILES,
    ),
    "failing tests, told so": Talk(
        ran("test", "bash", {"command": "pytest"}, "2 failed, 9 passed"), "9 passed and 2 failed.", tools=SHELL
    ),
    "count of another thing": Talk(search(HITS), "Article 3 lists 25 files to check.", tools=KB),
}
