"""Results of K2-Vendor-Verifier: a line per request, `{"data_index", "request", "response", "status", "finish_reason", …}`.

The request is the sent body, the response the SDK's object. The verifier folds a stream into a body itself: it drops the
reasoning, takes a call without an index for call 0, and writes `stop` for a missing finish reason. With a completions
endpoint it parses calls out of the text and then says `tool_calls`. A failed request has only a message.

Source: MoonshotAI/K2-Vendor-Verifier, tool_calls_eval.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from wirelint.capture.format import FormatError, dump
from wirelint.capture.readers.source import LineReader, as_mapping, as_number
from wirelint.capture.record import Record
from wirelint.model import Json, MissingInfo, Timing

_WHOLE: frozenset[MissingInfo] = frozenset({"times", "headers"})
_FOLDED: frozenset[MissingInfo] = frozenset({*_WHOLE, "framing", "reasoning"})
_STATUS = re.compile(r"Error code: ([1-5][0-9]{2})\b")
_KEPT = ("data_index", "hash", "status", "finish_reason", "tool_calls_valid")


def is_line(value: Mapping[str, Json]) -> bool:
    asked = value.get("request")
    return (
        "data_index" in value
        and isinstance(asked, dict)
        and ("messages" in asked or "prompt" in asked)
        and isinstance(value.get("status"), str)
    )


class Lines(LineReader):
    def add(self, value: Json, number: int) -> Iterator[Record]:
        if not isinstance(value, dict) or not is_line(value):
            raise FormatError("no result of a request")
        yield _result(value, self._source, number)


def _result(value: Mapping[str, Json], source: str, number: int) -> Record:
    asked, answer = as_mapping(value.get("request")), as_mapping(value.get("response"))
    raw = "prompt" in asked
    folded = asked.get("stream") is True
    error = answer.get("error")
    failed = value.get("status") != "success" or "choices" not in answer
    status = _STATUS.search(error) if isinstance(error, str) else None
    code = int(status[1]) if status is not None else None
    return Record(
        id=f"{source}:{value.get('data_index', number)}",
        method="POST",
        url="/v1/completions" if raw else "/v1/chat/completions",
        request_body=dump(dict(asked)),
        status=code if failed else 200,
        response_body=None if failed else dump(_as_completion(answer) if raw else dict(answer)),
        timing=Timing(_started(value), None, None, as_number(value.get("duration_ms"))),
        end="unknown" if failed else "complete",
        error=str(error) if failed and error is not None else None,
        source=source,
        place=f"line {number}",
        annotations={"k2vv": {name: value[name] for name in _KEPT if name in value}},
        form="k2vv",
        missing=_lacks(answer, folded=folded, raw=raw),
    )


def _lacks(answer: Mapping[str, Json], *, folded: bool, raw: bool) -> frozenset[MissingInfo]:
    if not folded:
        return _WHOLE
    choices = answer.get("choices")
    first = as_mapping(choices[0] if isinstance(choices, list) and choices else None)
    unsure = raw or first.get("finish_reason") == "stop"
    return _FOLDED | {"finish"} if unsure else _FOLDED


def _as_completion(answer: Mapping[str, Json]) -> dict[str, Json]:
    """The reply of a completions endpoint, without the calls that the verifier parsed."""
    choices = answer.get("choices")
    made: list[Json] = []
    for choice in choices if isinstance(choices, list) else ():
        said = as_mapping(as_mapping(choice).get("message")).get("content")
        if isinstance(said, str):
            kept = {name: item for name, item in as_mapping(choice).items() if name != "message"}
            made.append({**kept, "text": said})
        else:
            made.append(choice)
    return {**answer, "object": "text_completion", "choices": made}


def _started(value: Mapping[str, Json]) -> float | None:
    ended, lasted = value.get("last_run_at"), as_number(value.get("duration_ms"))
    try:
        moment = datetime.fromisoformat(ended).timestamp() if isinstance(ended, str) else None
    except (ValueError, OverflowError):
        return None
    return moment - lasted / 1000 if moment is not None and lasted is not None else None
