"""Which declared tool an undeclared name means."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirelint.arguments.schemas import match

TOOLS = ("bash", "Read", "get_weather", "list-files", "mcp__hub__find_issue", "calendar", "tools_index")

# written → the tool it means
CERTAIN = {
    "BASH": "bash",
    "read": "Read",
    "getWeather": "get_weather",
    "get-weather": "get_weather",
    "Get Weather": "get_weather",
    "list_files": "list-files",
    "ListFiles": "list-files",
    "functions.bash": "bash",
    "functions.functions.bash": "bash",
    "function.bash": "bash",
    "functions/bash": "bash",
    "functions:bash": "bash",
    "functions bash": "bash",
    "functions__bash": "bash",
    "functions.Bash": "bash",
    "functions.bash:3": "bash",
    "functionsbash": "bash",
    "functionsget_weather0": "get_weather",
    "bash json": "bash",
    "bash commentary json": "bash",
    "functions.bash in commentary": "bash",
    "to=functions.get_weather code": "get_weather",
    "Read</arg_value>": "Read",
    "Read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>": "Read",
    "bash:0": "bash",
    "default_api.get_weather": "get_weather",
    "default_api:get_weather": "get_weather",
    "tools.Read": "Read",
    "multi_tool_use.bash": "bash",
    "to=functions.bash": "bash",
    "mcp__local__Read": "Read",
    "mcp__local__read": "Read",
    "find_issue": "mcp__hub__find_issue",
    "hub.find_issue": "mcp__hub__find_issue",
    "mcp_hub_find_issue": "mcp__hub__find_issue",
    "functions.mcp__hub__find_issue": "mcp__hub__find_issue",
    "bashbash": "bash",
    "bash.bash": "bash",
    "bash bash": "bash",
    "calendar__calendar": "calendar",
    "get_weatherget_weather": "get_weather",
    "bash<|channel|>commentary": "bash",
    "bash<|channel|>json": "bash",
    "<|constrain|>bash": "bash",
    "assistant<|channel|>commentary to=functions.bash": "bash",
    "<|tool_call_begin|>functions.bash:0": "bash",
    "bash</tool_call>": "bash",
    "bash\n<arg_key>": "bash",
    'bash{"command": "ls"}': "bash",
    "bash(command='ls')": "bash",
    "[bash]": "bash",
    "`bash`": "bash",
    '"bash"': "bash",
    "**bash**": "bash",
    " bash\n": "bash",
    "index": None,
    "tool_index": None,
}
LIKELY = {"shell.bash": "bash", "weather.get_weather": "get_weather", "fs/Read": "Read"}
NONE = [
    "", " ", "\n", "functions", "functions.", "tool", "web_search", "bas", "bashful", "rebash", "get_weather_forecast",
    "weather",
    "mcp__other__find_issue", "mcp__hub__close_issue", "functions.web_search", "toolsbash", "toolbox.web.answer",
    "multi_tool_use.parallel", "{}", "<|im_end|>", "x" * 10_000, "bash" * 1_000, "a" * 500, "mcp__" * 100, "<" * 500,
]  # fmt: skip


@pytest.mark.parametrize(("written", "meant"), CERTAIN.items(), ids=map(repr, CERTAIN))
def test_certain(written: str, meant: str | None) -> None:
    found = match(written, TOOLS)
    assert (found and found.name) == meant
    assert found is None or (found.certain and found.why)


@pytest.mark.parametrize(("written", "meant"), LIKELY.items(), ids=LIKELY)
def test_likely(written: str, meant: str) -> None:
    found = match(written, TOOLS)
    assert found is not None
    assert (found.name, found.certain) == (meant, False)


@pytest.mark.parametrize("written", NONE, ids=lambda written: repr(written[:30]))
def test_none(written: str) -> None:
    assert match(written, TOOLS) is None


AMBIGUOUS = {
    "two cases": ("READ", ("read", "Read")),
    "two spellings": ("ReadFile", ("read_file", "read-file")),
    "two servers": ("find", ("mcp__a__find", "mcp__b__find")),
    "nothing declared": ("bash", ()),
    "an empty name declared": ("bash", ("",)),
}


@pytest.mark.parametrize(("written", "declared"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguous(written: str, declared: tuple[str, ...]) -> None:
    assert match(written, declared) is None


def test_exact_wins_over_folded() -> None:
    found = match("functions.read", ("Read", "read"))
    assert found is not None
    assert found.name == "read"


@settings(deadline=None)
@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=5))
def test_only_declared_names_are_given(written: str, declared: list[str]) -> None:
    found = match(written, declared)
    assert found is None or found.name in declared
