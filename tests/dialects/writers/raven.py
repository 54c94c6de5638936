"""NexusRaven and Gorilla."""

from __future__ import annotations

from tests.dialects.writers.pythonic import call


def write_raven(name: str, arguments: dict[str, str]) -> str:
    return f"Call: {call(name, arguments)}<bot_end>"


def write_gorilla(name: str, arguments: dict[str, str]) -> str:
    return f"<<function>>{call(name, arguments)}"


TEXT_WRITERS = [("nexus_raven", write_raven), ("gorilla_openfunctions", write_gorilla)]
SOUP = {
    "calls": "\nCall: x(",
    "whole-calls": "\nCall: x(y=1)",
    "strings": "\nCall: x(y='",
    "functions": "<<function>>x(",
    "function-strings": '<<function>>x(y="',
    "whole-functions": "<<function>>x(y=[1",
    "joined": "\nCall: " + "x(); " * 40,
}
