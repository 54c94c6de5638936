"""Cases of the rules, read from `rules/<code>_<name>.json`. CONTRIBUTING.md describes the form of the files.

A case is a `Talk` (run in several APIs, whole and streamed), a record, or a sequence of these; the last one is judged.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.build import FORMS, REGISTRY, Assistant, Call, Result, Talk, Turn, User, as_record, chunk, exchange
from tests.rules import mcp
from wirelint.rule import Rule
from wirelint.wire import Sniffer

Case = Talk | Mapping[str, Any] | Sequence[Any]
Form = tuple[str, bool]
"""An API, and whether the reply is streamed."""

_EXPECTED = ("count", "says", "pointer", "severity", "layer", "fix")
_TALK = ("text", "reasoning", "finish", "system", "model", "tool_choice", "request", "status", "step")
_RECORD = ("id", "end", "timing")
"""Members of a record beside its request and response."""


@dataclass(frozen=True)
class Fires:
    """A case in which a rule reports. `says`: words of the message. `forms`: the forms in which a Talk is run."""

    case: Case
    count: int = 1
    says: str = ""
    pointer: str | None = None
    severity: str | None = None
    layer: str | None = None
    fix: str | None = None
    forms: Sequence[Form] = FORMS


@dataclass(frozen=True)
class Silent:
    """A case in which a rule reports nothing."""

    case: Case
    forms: Sequence[Form] = FORMS


def fires(rules: Sequence[Rule] = REGISTRY.rules) -> Iterator[tuple[str, Rule, Fires]]:
    """All cases in which a rule reports: id, rule, case."""
    for rule in rules:
        for id_, written in cases(rule)["fires"].items():
            expected = {name: written[name] for name in _EXPECTED if name in written}
            rest = {name: value for name, value in written.items() if name not in expected}
            case, forms = _case(rest, f"{rule.name}-{id_}")
            yield f"{rule.name}-{id_}", rule, Fires(case, forms=forms, **expected)


def silent(rules: Sequence[Rule] = REGISTRY.rules) -> Iterator[tuple[str, Rule, Silent]]:
    """All cases in which a rule reports nothing: id, rule, case."""
    for rule in rules:
        for id_, written in cases(rule)["silent"].items():
            yield f"{rule.name}-{id_}", rule, Silent(*_case(written, f"{rule.name}-{id_}"))


@functools.cache
def cases(rule: Rule) -> Mapping[str, Any]:
    """The JSON file of a rule, with its `shared` values in their places."""
    return read(json.loads(rule.case_file.read_text(encoding="utf-8")))


def read(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document whose `$use`, `$join` and `$params` are replaced by the values that they name."""
    shared = document.get("shared", {})
    return {name: _resolve(value, shared) for name, value in document.items()}


def _resolve(value: Any, shared: Mapping[str, Any]) -> Any:
    match value:
        case {"$use": name, **more}:
            base = _resolve(shared[name], shared)
            return {**base, **_resolve(more, shared)} if more else base
        case {"$join": parts}:
            return "".join(part if isinstance(part, str) else part["repeat"] * part["times"] for part in parts)
        case {"$params": properties, **more}:
            shaped = {
                name: {"type": kind} if isinstance(kind, str) else _resolve(kind, shared)
                for name, kind in properties.items()
            }
            return {"type": "object", "properties": shaped, "required": more.get("required", list(shaped))}
        case dict():
            return {name: _resolve(item, shared) for name, item in value.items()}
        case list():
            return [_resolve(item, shared) for item in value]
    return value


def expand(case: Case, forms: Sequence[Form]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The runs of a case: a label, and the records that pass."""
    items = list(case) if isinstance(case, Sequence) else [case]
    records = [item for item in items if not isinstance(item, Talk)]
    if len(records) == len(items):
        yield "", records
        return
    for api, stream in forms:
        label = f"{api}{' streamed' if stream else ''}"
        yield label, [item.record(api, stream) if isinstance(item, Talk) else item for item in items]


@contextmanager
def in_form(label: str) -> Iterator[None]:
    """Name the API and form of a run, or another label, in its failures."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"in the form: {label or 'as given'}")
        raise


def write_example(rule: Path) -> None:
    """Write the JSON file of a rule that a test made, with an example of two empty requests."""
    text = '{"example": {"fires": {"request": {}}, "silent": {"request": {}}}}'
    rule.with_suffix(".json").write_text(text, encoding="utf-8")


# --- from JSON --------------------------------------------------------------------------------------------------------


def _case(written: Mapping[str, Any], id_: str) -> tuple[Case, Sequence[Form]]:
    left = dict(written)
    apis = left.pop("apis", None)
    forms = FORMS if apis is None else tuple(form for name in apis for form in forms_of(name))
    sequence = left.pop("sequence", None)
    case: Case = read_item(left) if sequence is None else [read_item(dict(item)) for item in sequence]
    assert not left, f"{id_}: unknown members {', '.join(left)}"
    return case, forms


def forms_of(name: str) -> tuple[Form, ...]:
    """`openai.chat` names both forms, `openai.chat whole` and `openai.chat streamed` one each."""
    api, _, form = name.partition(" ")
    return ((api, False), (api, True)) if not form else ((api, form == "streamed"),)


def read_item(left: dict[str, Any]) -> Talk | dict[str, Any]:
    """What a case says of one exchange. Takes the members that it understands out of `left`."""
    if "record" in left:
        return _raw(left.pop("record"))
    if "mcp" in left:
        made = _mcp(left)
    elif "path" in left:
        made = _exchange(left)
    else:
        talk = read_talk(left)
        if "api" not in left:
            return talk
        ((api, stream),) = forms_of(left.pop("api"))
        made = paced(talk, api, stream, **left.pop("paced")) if "paced" in left else talk.record(api, stream)
    made.update({name: left.pop(name) for name in _RECORD if name in left})
    return made


def read_talk(left: dict[str, Any]) -> Talk:
    """A Talk from its JSON form. Takes the members that it understands out of `left`."""
    members = {name: left.pop(name) for name in _TALK if name in left}
    if "turns" in left:
        members["history"] = tuple(read_turn(turn) for turn in left.pop("turns"))
    if "calls" in left:
        members["calls"] = tuple(Call(**call) for call in left.pop("calls"))
    if "tools" in left:
        tools = left.pop("tools")
        members["tools"] = {name: tuple(tool) if isinstance(tool, list) else tool for name, tool in tools.items()}
    return Talk(**members)


def read_turn(turn: Mapping[str, Any]) -> Turn:
    if "user" in turn:
        return User(turn["user"])
    if "result" in turn:
        return Result(turn.get("id", Call("").id), turn["result"], turn.get("is_error"))
    calls = tuple(Call(**call) for call in turn.get("calls", ()))
    return Assistant(turn.get("assistant", ""), calls, turn.get("reasoning", ""))


def _raw(written: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: dict(value) if isinstance(value, dict) else value for name, value in written.items()}
    for side in (made.get("request", {}), made.get("response", {})):
        if "stream" in side:
            side["body"] = "".join(_pieces(side.pop("stream"), named=side.pop("named", False)))
        elif isinstance(side.get("body"), (dict, list)):
            side["body"] = json.dumps(side["body"], ensure_ascii=False)
    return made


def _exchange(left: dict[str, Any]) -> dict[str, Any]:
    path = left.pop("path")
    pieces = _pieces(left.pop("stream"), named=left.pop("named", False)) if "stream" in left else None
    reply = "".join(pieces) if pieces is not None else left.pop("reply")
    made = exchange(
        path,
        left.pop("body"),
        reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False),
        request_headers=left.pop("headers", None),
        content_type=left.pop("content_type", "application/json" if pieces is None else "text/event-stream"),
        status=left.pop("status", 200),
    )
    if path.startswith("http"):
        made["request"]["url"] = path
    if reply is None:
        made["response"] = {"status": None}
    if "at" in left and pieces is not None:
        sizes = [len(piece.encode()) for piece in pieces]
        made["response"]["chunks"] = [list(pair) for pair in zip(left.pop("at"), sizes, strict=True)]
    elif "chunks" in left:
        made["response"]["chunks"] = left.pop("chunks")
    return made


def _pieces(stream: Sequence[Any], *, named: bool) -> list[str]:
    """The texts of a stream's chunks. An item is an event's document, text as it is, or a list of both in one chunk."""
    return [
        "".join(_event(one, named=named) for one in item) if isinstance(item, list) else _event(item, named=named)
        for item in stream
    ]


def _event(item: Any, *, named: bool) -> str:
    if isinstance(item, str):
        return item
    if "chunk" in item:
        more = {name: value for name, value in item.items() if name not in ("chunk", "finish")}
        item = chunk(item["chunk"], item.get("finish"), **more)
    head = f"event: {item.get('type')}\n" if named else ""
    return f"{head}data: {json.dumps(item, ensure_ascii=False)}\n\n"


def _mcp(left: dict[str, Any]) -> dict[str, Any]:
    stream = "stream" in left
    answer = left.pop("stream") if stream else left.pop("answer", None)
    reply = left.pop("reply", "") if answer is None else _message(answer)
    names = {"url": "url", "status": "status", "headers": "headers", "end": "end", "method": "method"}
    more = {name: left.pop(key) for name, key in (names | {"kind": "content_type"}).items() if key in left}
    return mcp.post(_message(left.pop("mcp")), reply, stream=stream, **more)


def _message(written: Any) -> Any:
    """A JSON-RPC message from its short form."""
    match written:
        case list():
            return [_message(one) for one in written]
        case {"raw": message}:
            return message
        case {"call": name}:
            return mcp.call(name, written.get("arguments"), written.get("id", 2))
        case {"method": method, "id": id_}:
            return {"jsonrpc": "2.0", "id": id_, "method": method, "params": written.get("params", {})}
        case {"notification": method}:
            return mcp.note(method, **written.get("params", {}))
        case {"text": text}:
            texts = [text] if isinstance(text, str) else text
            return mcp.result(mcp.text(*texts, is_error=written.get("is_error")), written.get("id", 2))
        case {"result": result, "id": id_}:
            return mcp.result(result, id_)
        case {"error": message, "id": id_}:
            return mcp.error(message, id_, written.get("code", -32602))
    return written


def paced(talk: Talk, api: str, stream: bool, *, first: float, step: float = 20, gap: float = 0) -> dict[str, Any]:
    """A talk in an API: events from `first` on, one each `step` milliseconds, with a `gap` in the middle."""
    made = talk.record(api, stream)
    record = as_record(made)
    sniffer = Sniffer({name.lower(): value for name, value in record.response_headers})
    frames = [*sniffer.feed(record.response_body or b""), *sniffer.close()]
    middle = len(frames) // 2
    times = [first + step * number + (gap if number >= middle else 0) for number in range(len(frames))]
    made["response"]["chunks"] = [[at, len(frame.raw)] for at, frame in zip(times, frames, strict=True)]
    made["timing"] = {"duration_ms": times[-1] + 1}
    return made
