"""Faulty replies, and what a client must see of each once it is repaired: one table for the SDKs of both languages.

A scene is asked of the mock server by the name of its fault, or played by a script where the mock has no such fault.
`Case` is a scene in one API, whole or streamed; `judge` compares what a client saw with what it should have seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.build import FORMS, Assistant, Call, Result, Talk, User, schema
from tests.cuts import events_of
from tests.fixes.argument_streams import anthropic, block, openai, piece
from tests.live.harness import SCRIPT, Peer, Script, replying
from wirelint.mock.answer import Pause
from wirelint.mock.scenario import HEADER
from wirelint.mock.service import Service

OPENAI, ANTHROPIC = "openai.chat", "anthropic.messages"
Form = tuple[str, bool]
Calls = tuple[tuple[str, Any], ...]

STREAMED: tuple[Form, ...] = ((OPENAI, True), (ANTHROPIC, True))
WHOLE: tuple[Form, ...] = ((OPENAI, False), (ANTHROPIC, False))
OF_OPENAI: tuple[Form, ...] = ((OPENAI, False), (OPENAI, True))

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


def talks(talk: Talk, forms: Iterable[Form] = FORMS) -> dict[Form, bytes]:
    return {form: talk.record(*form)["response"]["body"].encode() for form in forms}


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


_ONE = json.dumps({"query": "Search notes launch date", "limit": 5})
_OTHER = json.dumps({"query": "budget", "limit": 2})
_BOTH: Calls = (("search_notes", FOUND), ("search_notes", {"query": "budget", "limit": 2}))
_PROSE = Talk(
    text=(
        "First the notes.\n\n"
        '<invoke name="search_notes"><arg name="query">launch date</arg><arg name="limit">3</arg>'
        '<arg name="folder">null</arg></invoke>\n\n'
        "Then the plan itself.\n\n"
        '<invoke name="read_note"><arg name="path">plans/2026.md</arg></invoke>\n\n'
        "That should do."
    )
)
_KIMI = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
_KIMI_CALL = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
_NATIVE = "functions.search_notes:0"

SCRIPTED: dict[str, Scene] = {
    "calls among prose": Scene(
        replies=talks(_PROSE),
        text=None,
        says=("First the notes.", "Then the plan itself.", "That should do."),
        calls=(
            ("search_notes", {"query": "launch date", "limit": 3, "folder": None}),
            ("read_note", {"path": "plans/2026.md"}),
        ),
    ),
    "a call after thinking": Scene(
        replies=talks(
            Talk(
                reasoning="The plan has it.",
                text='<tool_call>\n{"name": "read_note", "arguments": {"path": "plans/2026.md"}}\n</tool_call>',
            )
        ),
        text="",
        reasoning="The plan has it.",
        calls=(("read_note", {"path": "plans/2026.md"}),),
    ),
    "the counter of the history goes on": Scene(
        replies=talks(Talk(text=_KIMI.format(_KIMI_CALL.format("functions.read_note:1", '{"path": "a.md"}')))),
        history=(QUESTION, Assistant(calls=(Call("search_notes", FOUND, _NATIVE),)), Result(_NATIVE, "a.md")),
        model="moonshotai/kimi-k2.5",
        forms=OF_OPENAI,
        text="",
        calls=(("read_note", {"path": "a.md"}),),
        ids=r"functions\.read_note:1",
    ),
    "two native calls": Scene(
        replies=talks(
            Talk(
                text=_KIMI.format(
                    _KIMI_CALL.format("functions.search_notes:0", _ONE) + _KIMI_CALL.format("search_notes:1", _OTHER)
                )
            )
        ),
        model="kimi-k2-0905",
        forms=OF_OPENAI,
        text="",
        calls=_BOTH,
        ids=r"functions\.search_notes:[01]",
    ),
    "start only": Scene(replies=shapes((_ONE, "")), forms=STREAMED, text="", healthy=True),
    "delta only": Scene(replies=shapes(("", _ONE)), forms=((OPENAI, True),), text="", healthy=True),
    "empty start and delta": Scene(replies=shapes(("{}", _ONE)), forms=((OPENAI, True),), text=""),
    "empty start and delta, as the vendor has it": Scene(
        replies=shapes(("{}", _ONE)), forms=((ANTHROPIC, True),), text="", healthy=True
    ),
    "null start and delta": Scene(replies=shapes((None, _ONE)), forms=STREAMED, text="", healthy=True),
    "start and the same": Scene(replies=shapes((_ONE, _ONE)), forms=STREAMED, text="", immune=((ANTHROPIC, True),)),
    "start and its rest": Scene(
        replies=shapes(('{"query": "Search notes launch date"}', ', "limit": 5}')),
        forms=STREAMED,
        text="",
    ),
    "start and the same, in parallel": Scene(
        replies=shapes((_ONE, _ONE), (_OTHER, _OTHER)),
        forms=STREAMED,
        text="",
        calls=_BOTH,
        immune=((ANTHROPIC, True),),
    ),
    "two calls glued, one alone": Scene(
        replies=shapes(("", _ONE + _OTHER), (None, '{"path": "a.md"}', "read_note")),
        forms=STREAMED,
        text="",
        calls=(*_BOTH, ("read_note", {"path": "a.md"})),
    ),
    "null where nothing was said": Scene(
        replies=talks(Talk(calls=(Call("search_notes", {"query": "x", "limit": "3", "folder": "null"}),))),
        text="",
        calls=(("search_notes", {"query": "x", "limit": 3, "folder": None}),),
        ids=r".+",
    ),
    "one call declared, one not": Scene(
        replies=talks(
            Talk(
                calls=(
                    Call("read_note", {"path": "a.md"}, "call_declared1"),
                    Call("img_gen", {"p": "x"}, "call_not1234"),
                )
            )
        ),
        text=None,
        says=("img_gen",),
        calls=(("read_note", {"path": "a.md"}),),
        ids=r".+",
    ),
    "a prefix that some servers add": Scene(
        replies=talks(Talk(calls=(Call("functions.read_note", {"path": "a.md"}, "call_prefixed1"),))),
        text="",
        calls=(("read_note", {"path": "a.md"}),),
    ),
}

# --- the mock's faults by name ----------------------------------------------------------------------------------------

_THOUGHT = "The user wants to know about Search notes launch date. Keep it short."
_ANSWER = "There is nothing to look up for this one."
_DIALECTS = (
    "kimi_invoke_arg", "kimi_k2", "anthropic_xml", "anthropic_antml", "hermes_json", "qwen3_coder_xml", "deepseek_v3",
    "deepseek_v3_1",
)  # fmt: skip
_TWICE: Calls = (*SEARCHED, ("search_notes", {"limit": 6, "query": "Search notes launch date part 2"}))
_COLLIDED: Calls = (*SEARCHED, ("read_note", {"path": "docs/setup.md"}))


def _fault(name: str, **more: Any) -> Scene:
    return Scene(f"fault={name}", **more)


MOCKED: dict[str, Scene] = {
    "healthy": Scene(healthy=True),
    "healthy, in chunks of 5 bytes": Scene("chunk=5;encoding=br", healthy=True),
    "healthy, with comments and a BOM": Scene("comments=1;bom=1;crlf=1", healthy=True, forms=STREAMED),
    "healthy, with reasoning and two calls": Scene(
        "reasoning=1;calls=2", calls=_COLLIDED, healthy=True, text=None, reasoning=None
    ),
    **{f"xml-leak {dialect}": _fault(f"xml-leak;dialect={dialect}", text=PREAMBLE) for dialect in _DIALECTS},
    **{
        f"xml-leak {dialect} of two calls": _fault(
            f"xml-leak;dialect={dialect};calls=2", text=PREAMBLE, calls=_COLLIDED, forms=OF_OPENAI
        )
        for dialect in _DIALECTS
    },
    "xml-leak in chunks of 7 bytes": _fault("xml-leak;dialect=hermes_json;chunk=7", text=PREAMBLE, forms=STREAMED),
    "xml-leak, compressed": _fault("xml-leak;dialect=kimi_k2;encoding=gzip;chunk=11", text=PREAMBLE),
    "xml-leak with CRLF, BOM and comments": _fault(
        "xml-leak;dialect=anthropic_xml;crlf=1;bom=1;comments=1", text=PREAMBLE, forms=STREAMED
    ),
    "xml-leak in the reasoning": _fault("xml-leak;place=reasoning", text=None, reasoning=None),
    "xml-leak after reasoning": _fault(
        "xml-leak;reasoning=1",
        text=PREAMBLE,
        reasoning="The user asks about Search notes launch date. A short and direct answer will do.",
    ),
    **{
        f"control-token-leak {mode}": _fault(
            f"control-token-leak;mode={mode}", text={OPENAI: "One moment.", ANTHROPIC: PREAMBLE}
        )
        for mode in ("end", "eot", "deepseek", "turn")
    },
    "control-token-leak name": _fault("control-token-leak;mode=name"),
    "think-leak pair": _fault("think-leak", reasoning=_THOUGHT),
    "think-leak orphan": _fault("think-leak;mode=orphan", reasoning=_THOUGHT, forms=WHOLE),
    "id-unstable": _fault("id-unstable", forms=((OPENAI, True),)),
    "concatenated-json same": _fault("concatenated-json", immune=((ANTHROPIC, True),)),
    "concatenated-json start-and-delta": _fault("concatenated-json;mode=start-and-delta", immune=((ANTHROPIC, True),)),
    "concatenated-json continuation": _fault("concatenated-json;mode=continuation", forms=(*STREAMED, (OPENAI, False))),
    "concatenated-json differing": _fault("concatenated-json;mode=differing", calls=_TWICE),
    **{
        f"invalid-json-arguments {mode}": _fault(f"invalid-json-arguments;mode={mode}")
        for mode in ("quotes", "comma", "twice")
    },
    "schema-violation": _fault("schema-violation"),
    "undeclared-tool case": _fault("undeclared-tool;mode=case"),
    "undeclared-tool": _fault("undeclared-tool", calls=(), text=None, finish="stop", says=("open_browser",)),
    "finish-reason-mismatch stop": _fault("finish-reason-mismatch;mode=stop"),
    "finish-reason-mismatch calls": _fault(
        "finish-reason-mismatch;mode=calls", calls=(), finish="stop", text={OPENAI: _ANSWER, ANTHROPIC: PREAMBLE}
    ),
    **{
        f"tool-index-collision {mode}": _fault(
            f"tool-index-collision;mode={mode}",
            calls=_COLLIDED,
            forms=STREAMED,
            text={OPENAI: "", ANTHROPIC: "One moment, I am checking."},
        )
        for mode in ("shared", "missing")
    },
    **{
        f"sse-framing {mode}": _fault(f"sse-framing;mode={mode}", forms=STREAMED)
        for mode in ("single-newline", "leading-space", "split-json")
    },
    "sse-framing after-done": _fault("sse-framing;mode=after-done", forms=STREAMED, immune=((OPENAI, True),)),
    "sse-framing no-done": _fault("sse-framing;mode=no-done", forms=STREAMED, immune=STREAMED),
}


def _cases(scenes: Mapping[str, Scene]) -> Iterator[Case]:
    for name, scene in scenes.items():
        for api, stream in scene.forms:
            yield Case(name, scene, api, stream)


CASES: tuple[Case, ...] = (*_cases(MOCKED), *_cases(SCRIPTED))
