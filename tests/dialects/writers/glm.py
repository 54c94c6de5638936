"""GLM's pairs of tags, with and without line ends, and iQuest's."""

from __future__ import annotations


def write_lined(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{text}</arg_value>\n" for key, text in arguments.items())
    return f"<tool_call>{name}\n{inside}</tool_call>"


def write_compact(name: str, arguments: dict[str, str], tag: str = "tool_call") -> str:
    inside = "".join(f"<arg_key>{key}</arg_key><arg_value>{text}</arg_value>" for key, text in arguments.items())
    return f"<{tag}>{name}{inside}</{tag}>"


def write_iquest(name: str, arguments: dict[str, str]) -> str:
    return write_compact(name, arguments, "iquest_tool_call")


TEXT_WRITERS = [("glm45", write_lined), ("glm47", write_compact), ("iquest_q1", write_iquest)]
SOUP = {
    "names": "<tool_call>x",
    "names-lined": "<tool_call>x\n",
    "keys": "<tool_call>x<arg_key>y",
    "keys-closed": "<tool_call>x<arg_key>y</arg_key>",
    "pairs": "<tool_call>x<arg_key>y</arg_key><arg_value>z",
    "headless": "x\n<arg_key>y</arg_key>",
    "headless-pairs": "x<arg_key>q</arg_key><arg_value>z</arg_value>",
    "lone-keys": "<arg_key>",
    "line-ends-escaped": "<tool_call>x\\n\\n\\n",
    "closers": "<tool_call>x</tool_call></arg_value>",
    "braces": "<tool_call>x{",
    "python": "<tool_call>x(y='",
    "python-open": "<tool_call>x(y=1, ",
    "doubled": "<tool_call><tool_call>x",
    "strays": "<tool_call>x</function>",
}
