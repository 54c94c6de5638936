"""A `Talk` written as a request of Gemini's `generateContent` with its reply, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, in_pieces

_FINISH = {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}
_MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
SIGNATURE = "c2lnbmVk"


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    reply = events(*streamed(talk)) if stream else whole(talk)
    return talk.answered(f"/v1beta/models/{talk.model}:{method}", request(talk), reply)


def events(*documents: Any) -> str:
    """The documents as Google's server-sent events."""
    return "".join(f"data: {json.dumps(document, ensure_ascii=False)}\r\n\r\n" for document in documents)


def array(*documents: Any) -> str:
    """The documents as Google streams them where no server-sent events are asked for."""
    return "[" + "\n,\n".join(json.dumps(document, indent=2, ensure_ascii=False) for document in documents) + "\n]\n"


def request(talk: Talk) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    names: dict[str | None, str] = {}
    for turn in talk.history:
        match turn:
            case User(text):
                contents.append({"role": "user", "parts": [{"text": text}]})
            case Assistant(text, calls, thought):
                names.update({call.id: call.name for call in calls})
                contents.append({"role": "model", "parts": parts(thought, text, calls)})
            case Result(call_id, text, is_error):
                said, last_name = {"error" if is_error else "output": text}, next(reversed(names.values()), "unknown")
                answer = {"name": names.get(call_id, last_name), "response": said}
                part = {"functionResponse": answer if call_id is None else {"id": call_id, **answer}}
                last = contents[-1] if contents else {}
                if last.get("role") == "user" and "functionResponse" in last["parts"][0]:
                    last["parts"].append(part)
                else:
                    contents.append({"role": "user", "parts": [part]})
    body: dict[str, Any] = {"contents": contents}
    if talk.system:
        body["systemInstruction"] = {"parts": [{"text": talk.system}]}
    if talk.tools:
        functions = [
            {"name": name, "description": described, "parametersJsonSchema": parameters}
            for name, described, parameters in talk.declared
        ]
        body["tools"] = [{"functionDeclarations": functions}]
    if talk.tool_choice is not None:
        choice = talk.tool_choice
        config = {"mode": _MODES[choice]} if isinstance(choice, str) else choice
        body["toolConfig"] = {"functionCallingConfig": config}
    return body


def parts(thought: str, text: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"text": thought, "thought": True}] if thought else []
    made += [{"text": text}] if text else []
    for number, call in enumerate(calls):
        named = {} if call.id is None else {"id": call.id}
        signed = {} if number else {"thoughtSignature": SIGNATURE}
        made.append({"functionCall": {**named, "name": call.name, "args": call.value}, **signed})
    return made


def reply(said: Sequence[Mapping[str, Any]], reason: str | None = None, **more: Any) -> dict[str, Any]:
    """A reply with one candidate, or an event of a streamed one."""
    content = {"parts": list(said), "role": "model"} if said else {"role": "model"}
    finish = {} if reason is None else {"finishReason": reason}
    head = {"modelVersion": "gemini-2.5-flash", "responseId": "kQ3vaP2wD4"}
    return {"candidates": [{"content": content, **finish, "index": 0}], "usageMetadata": USAGE, **head, **more}


def whole(talk: Talk) -> dict[str, Any]:
    return reply(parts(talk.reasoning, talk.text, talk.calls), talk.reason_in(_FINISH), modelVersion=talk.model)


def streamed(talk: Talk) -> Iterator[dict[str, Any]]:
    for name, text in (("thought", talk.reasoning), ("text", talk.text)):
        for piece in in_pieces(text, talk.step):
            thought = {"thought": True} if name == "thought" else {}
            yield reply([{"text": piece, **thought}], modelVersion=talk.model)
    for part in parts("", "", talk.calls):
        yield reply([part], modelVersion=talk.model)
    yield reply([{"text": ""}], talk.reason_in(_FINISH), modelVersion=talk.model)
