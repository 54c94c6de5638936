"""A `Talk` written as a raw completion: the whole conversation is the prompt, calls and thinking are the model's markup."""

from __future__ import annotations

import json
from typing import Any

from tests.build import Assistant, Result, Talk, User, functions, in_pieces, sse

_STATUS = {"stop": "stop", "tool": "stop", "length": "length", "filter": "content_filter"}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    """Tools are declared as somebody does who does not know that nothing reads them here."""
    body = {"model": talk.model, "prompt": prompt(talk), "max_tokens": 512, **functions(talk)}
    streamed = {"stream": True} if stream else {}
    return talk.answered("/v1/completions", body | streamed, _stream(talk) if stream else _whole(talk))


def prompt(talk: Talk) -> str:
    """The history under the template of ChatML."""
    said = [("system", talk.system)] if talk.system else []
    for turn in talk.history:
        match turn:
            case User(text):
                said.append(("user", text))
            case Assistant(text, calls, reasoning):
                said.append(("assistant", written(reasoning, text, calls)))
            case Result(_, text, _):
                said.append(("tool", text))
    turns = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in said)
    return f"{turns}<|im_start|>assistant\n"


def written(reasoning: str, text: str, calls: Any) -> str:
    """What a model writes to say this."""
    thought = f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""
    called = "".join(
        f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": {call.text}}}\n</tool_call>' for call in calls
    )
    return thought + text + called


def completion(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A completion, or an event of one."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    head = {"id": "cmpl-7f", "object": "text_completion", "created": 1767225600, "model": "acme-1"}
    return {**head, "choices": [choice], **more}


def _whole(talk: Talk) -> dict[str, Any]:
    text = written(talk.reasoning, talk.text, talk.calls)
    return completion(text, talk.reason_in(_STATUS), model=talk.model, usage=USAGE)


def _stream(talk: Talk) -> str:
    text = written(talk.reasoning, talk.text, talk.calls)
    return sse(*map(completion, in_pieces(text, talk.step)), completion("", talk.reason_in(_STATUS)))
