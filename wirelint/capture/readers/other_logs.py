"""Logs of other tools in lines of JSON: LHAR of Context Lens, results of K2-Vendor-Verifier, sessions of Claude Code.

LHAR consists of `{"type": "session", …}` and `{"type": "entry", …}`, a line each or in one document. An entry that was
exported in full has the bodies under `raw`: `request_body` a JSON value, `response_body` a JSON value or the text of
the stream. With other levels of privacy it has only counts, which cannot be checked. Source: schema/lhar.schema.json
and src/lhar of larsderidder/context-lens.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field

from wirelint.capture.format import FormatError, as_number, body_of, dump, read_headers
from wirelint.capture.readers.source import Close, Problem, Take, as_seconds, as_string, read_parts
from wirelint.capture.record import Record
from wirelint.jsonvalues import mapping
from wirelint.model import Json, MissingInfo, Timing

_LHAR_LACKS: frozenset[MissingInfo] = frozenset({"times"})
_PATHS = {
    "anthropic-messages": "/v1/messages",
    "chat-completions": "/v1/chat/completions",
    "responses": "/v1/responses",
}
"""Paths of APIs, for entries without an address."""


def _is_lhar(value: Mapping[str, Json]) -> bool:
    kind = value.get("type")
    return "trace_id" in value and (kind == "session" or (kind == "entry" and "gen_ai" in value))


class _LharLines:
    def __init__(self, source: str) -> None:
        self._source = source
        self._empty = self._entries = 0

    def add(self, value: Json, number: int) -> Iterator[Record]:
        if not isinstance(value, dict) or not _is_lhar(value):
            raise FormatError("neither a session nor an entry")
        if value["type"] == "session":
            return
        self._entries += 1
        record = _entry(value)
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
    entries = mapping(document.get("lhar")).get("entries")
    if not isinstance(entries, list):
        yield Problem(source, "", "LHAR without entries", "export it again", fatal=True)
        return
    lines = _LharLines(source)
    yield from read_parts(enumerate(entries, 1), source, "entry", lines.add, lines.close)


def _entry(value: Mapping[str, Json]) -> Record:
    http, raw, timings = mapping(value.get("http")), mapping(value.get("raw")), mapping(value.get("timings"))
    asked, answer = raw.get("request_body"), raw.get("response_body")
    status, url = http.get("status_code"), http.get("url")
    answered = answer is not None or isinstance(status, int)
    match answer:
        case {"streaming": True, "chunks": str(text)} | {"raw": str(text)}:
            answer = text
    send, wait = as_number(timings.get("send_ms")), as_number(timings.get("wait_ms"))
    return Record(
        id=as_string(value.get("id")),
        method=as_string(http.get("method")) or "POST",
        url=url if isinstance(url, str) else _PATHS.get(str(http.get("api_format")), ""),
        request_headers=read_headers(http.get("request_headers")),
        request_body=dump(asked) if asked is not None else None,
        status=int(status) if isinstance(status, int) and status > 0 else 200 if answered else None,
        response_headers=tuple(
            field for field in read_headers(http.get("response_headers")) if field[0].lower() != "content-encoding"
        ),
        response_body=body_of(answer),
        timing=Timing(
            as_seconds(value.get("timestamp")),
            send + wait if send is not None and wait is not None else None,
            None,
            as_number(timings.get("total_ms")),
        ),
        form="lhar",
        missing=_LHAR_LACKS,
    )


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


def _is_k2vv(value: Mapping[str, Json]) -> bool:
    asked = value.get("request")
    return (
        "data_index" in value
        and isinstance(asked, dict)
        and ("messages" in asked or "prompt" in asked)
        and isinstance(value.get("status"), str)
    )


def _read_k2vv(source: str, value: Json, number: int) -> Iterator[Record]:
    if not isinstance(value, dict) or not _is_k2vv(value):
        raise FormatError("not the result of a request")
    asked, answer = mapping(value.get("request")), mapping(value.get("response"))
    raw, error, choices = "prompt" in asked, answer.get("error"), answer.get("choices")
    choices = choices if isinstance(choices, list) else []
    failed = value.get("status") != "success" or "choices" not in answer
    status = _STATUS.search(error) if isinstance(error, str) else None
    code = int(status[1]) if status is not None else None
    ended, lasted = as_seconds(value.get("last_run_at")), as_number(value.get("duration_ms"))
    started = ended - lasted / 1000 if ended is not None and lasted is not None else None
    missing = _FOLDED if asked.get("stream") is True else _WHOLE
    if missing is _FOLDED and (raw or mapping(choices[0] if choices else None).get("finish_reason") == "stop"):
        missing |= {"finish"}
    yield Record(
        id=f"{source}:{value.get('data_index', number)}",
        method="POST",
        url="/v1/completions" if raw else "/v1/chat/completions",
        request_body=dump(dict(asked)),
        status=code if failed else 200,
        response_body=None if failed else dump(_as_completion(answer, choices) if raw else dict(answer)),
        timing=Timing(started, duration=lasted),
        end="unknown" if failed else "complete",
        error=str(error) if failed and error is not None else None,
        annotations={"k2vv": {name: value[name] for name in _KEPT if name in value}},
        form="k2vv",
        missing=missing,
    )


def _as_completion(answer: Mapping[str, Json], choices: list[Json]) -> dict[str, Json]:
    """Return the reply of a completions endpoint, without the calls that the verifier parsed."""
    made: list[Json] = []
    for choice in choices:
        kept = dict(mapping(choice))
        said = mapping(kept.pop("message", None)).get("content")
        made.append({**kept, "text": said} if isinstance(said, str) else choice)
    return {**answer, "object": "text_completion", "choices": made}


# Session logs of Claude Code (`~/.claude/projects`), with a part of a message on each line:
#
#     {"type": "user",      "uuid": …, "parentUuid": …, "message": {"role": "user", "content": …}}
#     {"type": "assistant", "uuid": …, "parentUuid": …, "message": {"id": "msg_…", "content": [<one block>], …}}
#
# Every message of the model becomes an exchange: the request is the logged conversation before it, the reply is the
# message. A message is spread over lines with the same `message.id`; results of its first calls may come between these
# lines. Each line names the line before it (`parentUuid`), so the lines form trees: two lines after one line are
# branches, and a line without a parent (a compaction, a sub-agent with `isSidechain`) begins a new tree. Lines of other
# types only link their parent to the next line.
#
# The log lacks the system prompt and the declared tools, so the request has no system prompt, and only the tools that the
# model has called in the session so far; other tools are unknown. Messages that the client wrote instead of the model
# (`<synthetic>`) are no exchanges. There is no documentation of the format; this follows public logs of versions 1.0 to
# 2.1.

_LACKS: frozenset[MissingInfo] = frozenset({"request", "tools", "arguments", "framing", "times", "headers"})
_SPOKEN = frozenset({"user", "assistant"})
_ENTRIES = frozenset(
    {*_SPOKEN, "system", "summary", "file-history-snapshot", "queue-operation", "attachment", "progress"}
)
_SIGNS = ("sessionId", "parentUuid", "leafUuid", "snapshot", "isSidechain")
_VERSION = ("anthropic-version", "2023-06-01")
_INTERRUPTED = "[Request interrupted by user"
_LONGEST = 1 << 20
"""Most bytes of a history. A longer one is cut at a user message; whole histories would grow with the square of the
log."""

Block = dict[str, Json]


@dataclass(slots=True, eq=False)
class _Asked:
    """What the model gets after a reply: its tool results, and what the user writes. It is the place of a line."""

    reply: _Reply | None = None
    blocks: list[Block] = field(default_factory=list)
    is_prompt: bool = False
    """True if a text of the user is among the blocks."""
    at: float | None = None


@dataclass(slots=True, eq=False)
class _Reply:
    """A message of the model. `results` gets its tool results, which may arrive before its last block."""

    asked: _Asked
    id: str
    line: int
    model: str
    session: str
    blocks: list[Block] = field(default_factory=list)
    stop_reason: Json = None
    usage: Json = None
    results: _Asked = field(init=False)
    is_done: bool = False

    def __post_init__(self) -> None:
        self.results = _Asked(self, at=self.asked.at)


class _SessionLines:
    def __init__(self) -> None:
        self._places: dict[str, _Asked] = {}
        self._last: dict[tuple[bool, str], _Asked] = {}
        self._replies: list[_Reply] = []
        self._tools: dict[str, None] = {}
        self._ids: set[str] = set()

    def add(self, value: Json, number: int) -> Iterator[Record]:
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise FormatError("not an entry of a session log")
        uuid, parent = value.get("uuid"), value.get("parentUuid")
        if not isinstance(uuid, str) or uuid in self._places:
            return  # a summary, a snapshot; or a copy from the session that this one continues
        key = (value.get("isSidechain") is True, str(value.get("agentId") or ""))
        place = self._places.get(parent) or self._last.get(key) if isinstance(parent, str) else None
        place, message = place or _Asked(), value.get("message")
        is_spoken = value["type"] in _SPOKEN and value.get("isApiErrorMessage") is not True
        if is_spoken and isinstance(message, dict) and message.get("model") != "<synthetic>":
            take = self._hear if value["type"] == "assistant" else self._say
            place = yield from take(place, value, _blocks(message.get("content")), number)
        self._places[uuid] = self._last[key] = place

    def close(self) -> Iterator[Record]:
        for reply in self._replies:
            yield from self._finish(reply)

    def _hear(
        self, place: _Asked, value: Mapping[str, Json], blocks: list[Block], number: int
    ) -> Generator[Record, None, _Asked]:
        message, reply = mapping(value.get("message")), place.reply
        named = str(message.get("id") or value.get("requestId") or value.get("uuid"))
        if reply is None or reply.id != named or reply.is_done:
            yield from self._finish(reply)
            reply = _Reply(place, named, number, str(message.get("model") or ""), str(value.get("sessionId") or ""))
            self._replies.append(reply)
        reply.blocks += [block for block in blocks if block not in reply.blocks]
        reply.stop_reason = message.get("stop_reason") or reply.stop_reason
        reply.usage = message.get("usage") or reply.usage
        for block in blocks:
            if block.get("type") == "tool_use" and isinstance(name := block.get("name"), str):
                self._tools[name] = None
        return reply.results

    def _say(
        self, place: _Asked, value: Mapping[str, Json], blocks: list[Block], _: int
    ) -> Generator[Record, None, _Asked]:
        reply, at = place.reply, as_seconds(value.get("timestamp"))
        returned = any(block.get("type") == "tool_result" for block in blocks)
        if returned and reply is not None and place is reply.results:
            place.blocks += blocks
            place.at = at
            return place
        yield from self._finish(
            reply, interrupted=any(str(one.get("text", "")).startswith(_INTERRUPTED) for one in blocks)
        )
        is_prompt = not returned and value.get("isMeta") is not True
        return _Asked(reply, [*place.blocks, *blocks], place.is_prompt or is_prompt, at)

    def _finish(self, reply: _Reply | None, *, interrupted: bool = False) -> Iterator[Record]:
        """Yield the exchange of a reply, unless there is none or it was yielded before."""
        if reply is None or reply.is_done:
            return
        reply.is_done = True
        id_ = reply.id if reply.id not in self._ids else f"{reply.id}:{reply.line}"
        self._ids.add(id_)
        asked: dict[str, Json] = {"model": reply.model, "messages": _history(reply.asked)}
        if self._tools:
            asked["tools"] = [{"name": name} for name in self._tools]
        answer: dict[str, Json] = {
            "id": reply.id,
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": list[Json](reply.blocks),
            "stop_reason": reply.stop_reason,
            **({"usage": reply.usage} if reply.usage else {}),
        }
        yield Record(
            id=id_,
            method="POST",
            url="/v1/messages",
            request_headers=(_VERSION, *([("x-claude-code-session-id", reply.session)] if reply.session else ())),
            request_body=dump(asked),
            status=200,
            response_body=dump(answer),
            timing=Timing(reply.asked.at),
            end="client-left" if interrupted else "complete",
            place=f"line {reply.line}",
            form="claude-code",
            missing=_LACKS if reply.stop_reason is not None else _LACKS | {"finish"},
        )


def _history(asked: _Asked) -> list[Json]:
    """Return the messages up to a place. Consecutive messages of one role become one."""
    parts: list[tuple[str, list[Block]]] = []
    size = start = 0
    place: _Asked | None = asked
    while place is not None and (size <= _LONGEST or not start):
        reply = place.reply
        size += len(dump(list[Json](place.blocks)))
        parts.append(("user", place.blocks))
        if place.is_prompt and (size <= _LONGEST or not start):
            start = len(parts)
        if reply is not None:
            size += len(dump(list[Json](reply.blocks)))
            parts.append(("assistant", reply.blocks))
        place = reply.asked if reply is not None else None
    if size > _LONGEST and start:
        del parts[start:]
    spoken = itertools.groupby((part for part in reversed(parts) if part[1]), key=lambda part: part[0])
    return [{"role": role, "content": [block for _, blocks in group for block in blocks]} for role, group in spoken]


def _blocks(content: Json) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def reader_of(value: Mapping[str, Json], source: str) -> tuple[Take[Json], Close] | None:
    """Return the reader of a log by its first line; None for other files."""
    if value.get("type") in _ENTRIES and not value.keys().isdisjoint(_SIGNS):
        session = _SessionLines()
        return session.add, session.close
    if _is_lhar(value):
        lhar = _LharLines(source)
        return lhar.add, lhar.close
    return (functools.partial(_read_k2vv, source), tuple) if _is_k2vv(value) else None
