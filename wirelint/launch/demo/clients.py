"""The steps of the demonstration, and the SDKs that play them as agents do."""

from __future__ import annotations

import contextlib
import functools
import importlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from wirelint.mock.scenario import HEADER

Json = dict[str, Any]

_KEY = "sk-demo-0000000000000000000000000000"
_MODEL = "acme-large"
_QUESTION = "Search my notes for the launch date."
TABLE: Json = tomllib.loads(resources.files(__package__).joinpath("steps.toml").read_text(encoding="utf-8"))
_SEARCH = TABLE["search"]


class MissingSdkError(RuntimeError):
    """An SDK that the demonstration drives is not installed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One or two requests of one client; `steps.toml` explains the fields."""

    title: str
    sdk: Literal["openai", "anthropic"]
    stream: bool
    scenario: str = ""
    finds: tuple[str, ...] = ()
    mangles: bool = False
    model: str = _MODEL
    patience: float = 20.0
    waits: bool = False
    repaired: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {HEADER: self.scenario} if self.scenario else {}


def load_steps() -> list[Step]:
    return [Step(**{**row, "finds": tuple(row.get("finds", ()))}) for row in TABLE["step"]]


def import_sdks() -> None:
    with contextlib.suppress(ImportError):  # a step reports it
        for name in ("openai", "anthropic"):
            importlib.import_module(name)


@functools.cache
def _client(sdk: str, base_url: str) -> Any:
    """Return one client for all steps, as agents have it: each new one reads the certificates of the system (0.1 s)."""
    if sdk == "openai":
        import openai

        return openai.OpenAI(base_url=f"{base_url}/v1", api_key=_KEY, max_retries=0)
    import anthropic

    return anthropic.Anthropic(base_url=base_url, api_key=_KEY, max_retries=0)


def drive(step: Step, base_url: str) -> str:
    """Run a step against a proxy. Return a short text of the result that the client got, or of the SDK's error."""
    try:
        text, calls = _openai(step, base_url) if step.sdk == "openai" else _anthropic(step, base_url)
    except ImportError as error:
        raise MissingSdkError(step.sdk) from error
    except Exception as error:
        return f"an exception of the SDK: {type(error).__name__}"
    words = " ".join(text.split())
    shown = f"“{words[:70]}{'…' if len(words) > 70 else ''}”" if words else ""
    return " and ".join(filter(None, (shown, *(f"a call of {name}" for name in calls)))) or "nothing"


def _request(step: Step) -> Json:
    """Return the arguments that both SDKs take."""
    messages: list[Json] = [{"role": "user", "content": _QUESTION}]
    return {"model": step.model, "messages": messages, "extra_headers": step.headers, "timeout": step.patience}


def _openai(step: Step, base_url: str) -> tuple[str, list[str]]:
    completions = _client("openai", base_url).chat.completions
    function = {"name": _SEARCH["name"], "description": _SEARCH["description"], "parameters": _SEARCH["schema"]}
    request = {**_request(step), "tools": [{"type": "function", "function": function}], "stream": step.stream}
    if step.stream:
        request["stream_options"] = {"include_usage": True}

    def complete() -> tuple[str, list[Json]]:
        answer = completions.create(**request)
        return read_chat(one.model_dump() for one in (answer if step.stream else [answer]))[:2]

    text, calls = complete()
    if step.mangles and calls:
        for call in calls:
            # Clients with a strict idea of ids keep only letters and digits.
            call["id"] = "".join(filter(str.isalnum, call["id"]))
        results = ({"role": "tool", "tool_call_id": call["id"], "content": "2 notes"} for call in calls)
        request["messages"] += [{"role": "assistant", "content": text or None, "tool_calls": calls}, *results]
        text, calls = complete()
    return text, [call["function"]["name"] for call in calls]


def read_chat(documents: Iterable[Json]) -> tuple[str, list[Json], str]:
    """Return text, calls and finish reason of a chat completion, or of its chunks, as clients of OpenAI read them."""
    text = finish = ""
    calls: dict[int, Json] = {}
    for choice in (choice for document in documents for choice in document["choices"]):
        said = choice.get("message") or choice["delta"]
        text += said.get("content") or ""
        finish = choice.get("finish_reason") or finish
        for number, piece in enumerate(said.get("tool_calls") or ()):
            blank = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            index = (piece.get("index") or 0) if "delta" in choice else number
            call, function = calls.setdefault(index, blank), piece["function"]
            call["id"] = call["id"] or piece.get("id") or ""
            call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
            call["function"]["arguments"] += function.get("arguments") or ""
    return text, list(calls.values()), finish


def _anthropic(step: Step, base_url: str) -> tuple[str, list[str]]:
    messages = _client("anthropic", base_url).messages
    tool = {"name": _SEARCH["name"], "description": _SEARCH["description"], "input_schema": _SEARCH["schema"]}
    request = {**_request(step), "tools": [tool], "max_tokens": 512}
    if step.stream:
        with messages.stream(**request) as stream:
            message = stream.get_final_message()
    else:
        message = messages.create(**request)
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [block.name for block in message.content if block.type == "tool_use"]
