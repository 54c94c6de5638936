"""A `Talk` written as a request of Ollama's generate with its reply, whole and as JSON lines."""

from __future__ import annotations

from typing import Any

from tests.apis.talk_ollama_chat import finished, pieces
from tests.build import Assistant, Talk, User


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    """History and results are one prompt; tools cannot be declared."""
    said = [turn.text for turn in talk.history if isinstance(turn, User | Assistant)]
    body: dict[str, Any] = {"model": talk.model, "prompt": "\n".join(said)}
    if talk.system:
        body["system"] = talk.system
    return finished(talk, "/api/generate", body, pieces(talk, "response"), stream, chat=False)
