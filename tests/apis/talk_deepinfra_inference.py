"""A `Talk` written for DeepInfra's own inference API: a prompt, and the text that continues it."""

from __future__ import annotations

from typing import Any

from tests.apis.talk_openai_completions import prompt, written
from tests.build import Talk, functions, in_pieces, sse


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    body = {"input": prompt(talk), "max_new_tokens": 512, "stream": stream, **functions(talk)}
    text = written(talk.reasoning, talk.text, talk.calls)
    reply = streamed(text, talk.step) if stream else whole(text)
    return talk.answered(f"/v1/inference/acme/{talk.model}", body, reply)


def whole(*texts: str, **more: Any) -> dict[str, Any]:
    status = {"status": "succeeded", "runtime_ms": 41, "cost": 0.0001, "tokens_generated": 7, "tokens_input": 11}
    results = [{"generated_text": text} for text in texts]
    return {"results": results, "num_tokens": 7, "num_input_tokens": 11, "inference_status": status, **more}


def token(text: str, **more: Any) -> dict[str, Any]:
    made = {"id": 1, "text": text, "logprob": 0.0, "special": False}
    return {"token": made, "generated_text": None, "details": None, **more}


def streamed(text: str, step: int) -> str:
    last = token("", generated_text=text, num_output_tokens=7, num_input_tokens=11)
    return sse(*map(token, in_pieces(text, step)), last)
