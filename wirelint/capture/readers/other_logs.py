"""Logs of other tools with bodies in JSON: LHAR of Context Lens, and results of K2-Vendor-Verifier.

LHAR consists of `{"type": "session", …}` and `{"type": "entry", …}`, a line each or in one document. An entry that was
exported in full has the bodies under `raw`: `request_body` a JSON value, `response_body` a JSON value or the text of
the stream. With other levels of privacy it has only counts, which cannot be checked. Source: schema/lhar.schema.json
and src/lhar of larsderidder/context-lens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from wirelint.capture.format import FormatError, body_of, dump, read_headers
from wirelint.capture.readers.source import LineReader, Problem, as_mapping, as_number, as_seconds
from wirelint.capture.record import Record
from wirelint.model import Json, MissingInfo, Timing

_LHAR_LACKS: frozenset[MissingInfo] = frozenset({"times"})
_PATHS = {
    "anthropic-messages": "/v1/messages",
    "chat-completions": "/v1/chat/completions",
    "responses": "/v1/responses",
}
"""Paths of APIs, for entries without an address."""


def is_lhar(value: Mapping[str, Json]) -> bool:
    kind = value.get("type")
    return "trace_id" in value and (kind == "session" or (kind == "entry" and "gen_ai" in value))


class LharLines(LineReader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._empty = self._entries = 0

    def add(self, value: Json, number: int, noun: str = "line") -> Iterator[Record]:
        """Yield the record of an entry. Raises FormatError."""
        if not isinstance(value, dict) or not is_lhar(value):
            raise FormatError("neither a session nor an entry")
        if value["type"] == "session":
            return
        self._entries += 1
        record = _entry(value, self._source, f"{noun} {number}")
        if record.request_body is None and record.response_body is None:
            self._empty += 1
        else:
            yield record

    def close(self) -> Iterator[Record | Problem]:
        if self._empty:
            some = f"{self._empty} of {self._entries} entries without bodies"
            cure = "nothing can be judged without them; export with privacy `full`"
            yield Problem(self._source, "", some, cure, fatal=self._empty == self._entries)


def read_lhar(document: Mapping[str, Json], source: str) -> Iterator[Record | Problem]:
    """Yield the records of the wrapped form, `{"lhar": {"entries": […]}}`."""
    entries = as_mapping(document.get("lhar")).get("entries")
    if not isinstance(entries, list):
        yield Problem(source, "", "LHAR without entries", "export it again", fatal=True)
        return
    lines = LharLines(source)
    for number, entry in enumerate(entries, 1):
        try:
            yield from lines.add(entry, number, "entry")
        except FormatError as error:
            yield Problem(source, f"entry {number}", str(error), "the others were read", fatal=False)
    yield from lines.close()


def _entry(value: Mapping[str, Json], source: str, place: str) -> Record:
    http, raw, timings = as_mapping(value.get("http")), as_mapping(value.get("raw")), as_mapping(value.get("timings"))
    status, url, method = http.get("status_code"), http.get("url"), http.get("method")
    if not isinstance(url, str):
        url = _PATHS.get(str(http.get("api_format")), "")
    asked = raw.get("request_body")
    id_ = value.get("id")
    answer = raw.get("response_body")
    answered = answer is not None or isinstance(status, int)
    send, wait = as_number(timings.get("send_ms")), as_number(timings.get("wait_ms"))
    return Record(
        id=id_ if isinstance(id_, str) and id_ else f"{source}:{place.rpartition(' ')[2]}",
        method=method if isinstance(method, str) and method else "POST",
        url=url,
        request_headers=read_headers(http.get("request_headers")),
        request_body=dump(asked) if asked is not None else None,
        status=int(status) if isinstance(status, int) and status > 0 else 200 if answered else None,
        response_headers=tuple(
            field for field in read_headers(http.get("response_headers")) if field[0].lower() != "content-encoding"
        ),
        response_body=_answer(answer),
        timing=Timing(
            as_seconds(value.get("timestamp")),
            send + wait if send is not None and wait is not None else None,
            None,
            as_number(timings.get("total_ms")),
        ),
        source=source,
        place=place,
        form="lhar",
        missing=_LHAR_LACKS,
    )


def _answer(body: Json) -> bytes | None:
    match body:
        case {"streaming": True, "chunks": str(text)} | {"raw": str(text)}:
            return body_of(text)
        case _:
            return body_of(body)


# Results of K2-Vendor-Verifier (tool_calls_eval.py of MoonshotAI/K2-Vendor-Verifier), a line per request:
#
#     {"data_index": 3, "request": {…}, "response": {…}, "status": "success", "finish_reason": "stop", …}
#
# The request is the sent body, the response the SDK's object. The verifier folds a stream into a body itself: it drops the
# reasoning, takes a call without an index for call 0, and writes `stop` for a missing finish reason. With a completions
# endpoint it parses calls out of the text and then says `tool_calls`. A failed request has only a message.

_WHOLE: frozenset[MissingInfo] = frozenset({"times", "headers"})
_FOLDED: frozenset[MissingInfo] = frozenset({*_WHOLE, "framing", "reasoning"})
_STATUS = re.compile(r"Error code: ([1-5][0-9]{2})\b")
_KEPT = ("data_index", "hash", "status", "finish_reason", "tool_calls_valid")


def is_k2vv(value: Mapping[str, Json]) -> bool:
    asked = value.get("request")
    return (
        "data_index" in value
        and isinstance(asked, dict)
        and ("messages" in asked or "prompt" in asked)
        and isinstance(value.get("status"), str)
    )


class K2vvLines(LineReader):
    def add(self, value: Json, number: int) -> Iterator[Record]:
        if not isinstance(value, dict) or not is_k2vv(value):
            raise FormatError("not the result of a request")
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
    """Return the reply of a completions endpoint, without the calls that the verifier parsed."""
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
