"""Faulty replies, and what a client must see of each once it is repaired: one table for the SDKs of both languages.

A scene is asked of the mock server by the name of its fault, or played by a script where the mock has no such fault.
`Case` is a scene in one API, whole or streamed; `judge` compares what a client saw with what it should have seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.build import FORMS, Talk, User, schema
from tests.cuts import events_of
from tests.fixes.argument_streams import anthropic, block, openai, piece
from tests.live.harness import SCRIPT, Peer, Script, replying
from tests.rules.case import forms_of, read, read_talk, read_turn
from tests.tables import tables
from wirelint.mock.answer import Pause
from wirelint.mock.scenario import HEADER
from wirelint.mock.service import Service

OPENAI, ANTHROPIC = "openai.chat", "anthropic.messages"
Form = tuple[str, bool]
Calls = tuple[tuple[str, Any], ...]


QUESTION = User("Search my notes for the launch date.")
TOOLS: Mapping[str, Any] = {
    "search_notes": schema(("limit", "query"), limit="integer", query="string", folder={"type": ["string", "null"]}),
    "read_note": schema(path="string"),
}
FOUND: dict[str, Any] = {"limit": 5, "query": "Search notes launch date"}
"""What the mock searches for when it is asked QUESTION."""
SEARCHED: Calls = (("search_notes", FOUND),)
PREAMBLE = "Let me look that up."
_FINISH = {"tool": ("tool_calls", "tool_use"), "stop": ("stop", "end_turn")}


@dataclass(frozen=True)
class Scene:
    """`text` may differ from API to API, since the mock announces calls in one of them. None: not compared.

    `ids` is a pattern that each id must match. `immune` are forms in which the SDKs do not notice the fault.
    `says` are words that the text must have, where its wording is ours to choose.
    """

    scenario: str = ""
    calls: Calls = SEARCHED
    text: str | Mapping[str, str] | None = field(default_factory=lambda: {OPENAI: "", ANTHROPIC: PREAMBLE})
    reasoning: str | None = ""
    finish: str = "tool"
    forms: tuple[Form, ...] = FORMS
    replies: Mapping[Form, bytes] = field(default_factory=dict)
    history: tuple[Any, ...] = (QUESTION,)
    model: str = "acme-1"
    ids: str = r"(call_|toolu_)[A-Za-z0-9]{8,32}"
    immune: tuple[Form, ...] = ()
    says: tuple[str, ...] = ()
    healthy: bool = False


@dataclass(frozen=True)
class Case:
    name: str
    scene: Scene
    api: str
    stream: bool

    @property
    def id(self) -> str:
        return f"{self.name} {self.api} {'stream' if self.stream else 'whole'}"

    @property
    def headers(self) -> dict[str, str]:
        """What an SDK is to send besides its own headers. Each scene is a session, to which the others are nothing."""
        made = {"x-test-id": self.id, "session_id": self.id}
        if self.scene.replies:
            return {**made, SCRIPT: self.id}
        return {**made, HEADER: self.scene.scenario} if self.scene.scenario else made

    @property
    def request(self) -> dict[str, Any]:
        """The body, without `stream`: SDKs set it themselves."""
        record = Talk(history=self.scene.history, tools=TOOLS, model=self.scene.model).record(self.api, False)
        body: dict[str, Any] = json.loads(record["request"]["body"])
        if self.stream and self.api == "openai.chat":  # no scene counts tokens
            body["stream_options"] = {"include_usage": False}
        return body

    @property
    def script(self) -> Script:
        kind = "text/event-stream" if self.stream else "application/json"
        body = self.scene.replies[self.api, self.stream]
        pieces = events_of(body) if self.stream else [body]
        return replying(pieces, content_type=kind)


@dataclass(frozen=True)
class Seen:
    """What a client made of a reply. `calls` are (id, name, arguments), `error` what its SDK raised."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    finish: str | None = None
    error: str | None = None


def expected(case: Case) -> Seen:
    scene = case.scene
    text = scene.text[case.api] if isinstance(scene.text, Mapping) else scene.text
    column = 0 if case.api == OPENAI else 1
    return Seen(
        text or "", scene.reasoning or "", tuple(("", *call) for call in scene.calls), _FINISH[scene.finish][column]
    )


def judge(case: Case, seen: Seen) -> list[str]:
    """What differs from what should have been seen; nothing when all is well."""
    wanted, scene = expected(case), case.scene
    ids = [id_ for id_, _, _ in seen.calls]
    calls = [(name, arguments) for _, name, arguments in seen.calls]
    checks: list[tuple[str, Any, Any]] = [
        ("error", seen.error, None),
        ("calls", calls, [(name, arguments) for _, name, arguments in wanted.calls]),
        ("finish reason", seen.finish, wanted.finish),
        ("unique ids", len(set(ids)), len(ids)),
        ("form of the ids", [id_ for id_ in ids if not re.fullmatch(scene.ids, id_)], []),
        ("words missing in the text", [word for word in scene.says if word not in seen.text], []),
    ]
    if scene.text is not None:
        checks.append(("text", seen.text.strip(), wanted.text.strip()))
    if scene.reasoning is not None:
        checks.append(("reasoning", seen.reasoning.strip(), wanted.reasoning.strip()))
    return [f"{what}: {got!r}, not {should!r}" for what, got, should in checks if got != should]


class Playing:
    """A script that answers as the mock server does: the same to the same request, whatever passed before.

    `heard` and `said` are the last requests and replies, by `x-test-id`.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.heard: dict[str, Peer] = {}
        self.said: dict[str, bytes] = {}

    def __call__(self, peer: Peer) -> None:
        answer = self._service.answer(1, "POST", peer.target, peer.headers, peer.body)
        steps = [step for step in answer.steps if not isinstance(step, Pause)]
        test = peer.headers.get("x-test-id", "")
        self.heard[test], self.said[test] = peer, b"".join(steps)
        fields = {name.replace("-", "_"): value for name, value in answer.headers}
        replying(steps, answer.status, **fields)(peer)


# --- scripted replies -------------------------------------------------------------------------------------------------


def talks(talk: Talk) -> dict[Form, bytes]:
    return {form: talk.record(*form)["response"]["body"].encode() for form in FORMS}


Given = tuple[str | None, str] | tuple[str | None, str, str]
"""Arguments of a call as a faulty adapter sends them: those of the start, those of the deltas, and the tool if another."""


def shapes(*calls: Given) -> dict[Form, bytes]:
    documents: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    for index, (start, deltas, *name) in enumerate(calls):
        tool = name[0] if name else "search_notes"
        pieces = [deltas[at : at + 9] for at in range(0, len(deltas), 9)]
        documents += [piece(start, index, first=True, name=tool), *(piece(text, index) for text in pieces)]
        blocks += block(json.loads(start or "null"), *pieces, index=index, name=tool)
    replies = {(OPENAI, True): openai(*documents), (ANTHROPIC, True): anthropic(*blocks)}
    return {form: record["response"]["body"].encode() for form, record in replies.items()}


def _scene(written: Mapping[str, Any]) -> Scene:
    """A scene from its JSON form. `talk` or `shapes` are the replies of one that is scripted, `turns` is its history."""
    made: dict[str, Any] = {name: tuple(value) if name == "says" else value for name, value in written.items()}
    for name in made.keys() & {"forms", "immune"}:
        made[name] = tuple(form for one in made[name] for form in forms_of(one))
    if "calls" in made:
        made["calls"] = tuple((name, arguments) for name, arguments in made["calls"])
    if "turns" in made:
        made["history"] = tuple(map(read_turn, made.pop("turns")))
    if "talk" in made:
        made["replies"] = talks(read_talk(dict(made.pop("talk"))))
    if "shapes" in made:
        made["replies"] = shapes(*made.pop("shapes"))
    return Scene(**made)


_TABLES = read(tables(__file__))
CASES: tuple[Case, ...] = tuple(
    Case(name, scene, api, stream)
    for name, scene in {name: _scene(one) for name, one in {**_TABLES["mocked"], **_TABLES["scripted"]}.items()}.items()
    for api, stream in scene.forms
)
"""`scenes.json` has the mock's faults by name, then those that are scripted."""
