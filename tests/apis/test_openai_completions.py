"""OpenAI's raw completions: what belongs to them, what their requests say, and replies that are written again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import openai
import pytest

from tests.apis.rewriting import BLOCK, Change, instead, rewrite, the, unchanged
from tests.apis.shapes_completions import COMPLETIONS, choice, choices
from tests.apis.talk_openai_completions import USAGE, completion
from tests.apis.test_contract import essence, understood
from tests.build import exchange, read, sse
from wirelint.apis import recognise
from wirelint.apis.openai_completions import FormError
from wirelint.events import Delta, Event, Finish, Start
from wirelint.model import Opaque, Text

ASK = {"model": "acme-1", "prompt": "Once"}

PATHS: dict[str, tuple[str, Any, bool]] = {
    "vendor": ("/v1/completions", ASK, True),
    "Azure": ("/openai/deployments/acme/completions", ASK, True),
    "engines": ("/v1/engines/acme/completions", ASK, True),
    "no model": ("/v1/completions", {"prompt": "Once"}, True),
    "chat": ("/v1/chat/completions", {"model": "a", "messages": [{"role": "user", "content": "Hi"}]}, False),
    "chat's path with a prompt": ("/v1/chat/completions", ASK, False),
    "Mistral's fill-in": ("/v1/fim/completions", ASK, False),
    "llama.cpp's own": ("/completion", ASK, False),
    "images": ("/v1/images/generations", ASK, False),
    "no prompt": ("/v1/completions", {"model": "acme-1"}, False),
}


@pytest.mark.parametrize(("path", "body", "ours"), PATHS.values(), ids=PATHS)
def test_whose_it_is(path: str, body: Any, ours: bool) -> None:
    found = recognise("POST", path, {}, body)
    assert (found is not None and found.name == "openai.completions") == ours


PROMPTS: dict[str, tuple[Any, tuple[Text | Opaque, ...], str]] = {
    "a text": ("Once", (Text("Once", "/prompt"),), "/prompt"),
    "several": (["Once", "Twice"], (Text("Once", "/prompt/0"), Text("Twice", "/prompt/1")), "/prompt"),
    "one in a list": (["Once"], (Text("Once", "/prompt/0"),), "/prompt/0"),
    "tokens": ([1, 2, 3], (Opaque("tokens", "/prompt"),), "/prompt"),
    "several in tokens": ([[1, 2], [3]], (Opaque("tokens", "/prompt/0"), Opaque("tokens", "/prompt/1")), "/prompt"),
    "a list of nothing": ([], (), ""),
    "empty": ("", (), ""),
    "of no known form": ({"text": "Once"}, (), ""),
    "a mixture": (["Once", None, 3, True, [4]], (Text("Once", "/prompt/0"), Opaque("tokens", "/prompt/4")), "/prompt"),
}


@pytest.mark.parametrize(("prompt", "parts", "place"), PROMPTS.values(), ids=PROMPTS)
def test_a_prompt_is_what_a_user_says(prompt: Any, parts: tuple[Text | Opaque, ...], place: str) -> None:
    request = the("openai.completions").read_request({"model": "acme-1", "prompt": prompt, "stream": True})
    assert [message.parts for message in request.messages] == ([parts] if parts else [])
    assert [(message.role, message.pointer) for message in request.messages] == ([("user", place)] if parts else [])
    assert (request.model, request.stream) == ("acme-1", True)


def test_tools_that_nothing_will_read_are_seen() -> None:
    tool: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    request = the("openai.completions").read_request({**ASK, "tools": [tool], "tool_choice": "required"})
    assert [tool.name for tool in request.tools] == ["look"]
    assert request.tool_choice.mode == "required"


def test_candidates_of_several_prompts_have_places_of_their_own() -> None:
    reply = choices(*(choice(str(number), "stop", number) for number in range(4)))
    record = exchange("/v1/completions", {**ASK, "prompt": ["Once", "Twice"], "n": 2}, reply)
    found = read(record).reply
    assert found is not None
    assert [one.parts[0].pointer for one in found.choices] == [f"/choices/{number}/text" for number in range(4)]
    assert found.choices[3].finish_pointer == "/choices/3/finish_reason"


# --- written again ----------------------------------------------------------------------------------------------------


def finish(event: Event) -> Iterable[Event]:
    return [event._replace(reason="length")] if isinstance(event, Finish) else [event]


def held_to_the_end(event: Event) -> Iterable[Event]:
    """What a rewriter does that takes a text out, and gives another one back when the candidate ends."""
    if isinstance(event, Delta):
        return []
    return [Delta(0, "Hi", event.frame), event] if isinstance(event, Finish) else [event]


TWO = choices(choice("Hello", "stop"), choice("Bye", "stop", 1))
CHANGES: dict[str, tuple[Any, str, Change, list[list[tuple[str, str]]], list[str]]] = {
    "a text cut": (
        completion("lo", "stop", usage=USAGE),
        sse(completion("lo"), completion("!"), completion("", "stop", usage=USAGE)),
        lambda event: [one for x in instead("lo", "l")(event) for one in instead("!", "")(x)],
        [[("text", "l")]],
        ["stop"],
    ),
    "a reason": (
        completion("Hello", "stop", usage=USAGE),
        sse(completion("Hello", "stop", usage=USAGE)),
        finish,
        [[("text", "Hello")]],
        ["length"],
    ),
    "a text given back late": (
        completion("Hello", "stop", usage=USAGE),
        sse(completion("Hel"), completion("lo"), completion("", "stop"), choices(usage=USAGE)),
        held_to_the_end,
        [[("text", "Hi")]],
        ["stop"],
    ),
    "one of two": (
        {**TWO, "usage": USAGE},
        sse(TWO, choices(usage=USAGE)),
        instead("Bye", "By"),
        [[("text", "Hello")], [("text", "By")]],
        ["stop", "stop"],
    ),
    "thoughts gone": (
        choices(choice("Hello", "stop", reasoning="Greet."), usage=USAGE),
        sse(choices(choice("", reasoning="Greet.")), choices(choice("Hello", "stop")), choices(usage=USAGE)),
        instead("Greet.", ""),
        [[("text", "Hello")]],
        ["stop"],
    ),
}


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(("whole", "stream", "change", "parts", "reasons"), CHANGES.values(), ids=CHANGES)
def test_changes(whole: Any, stream: str, change: Change, parts: Any, reasons: Any, form: str) -> None:
    raw = (json.dumps(whole) if form == "whole" else stream).encode()
    made = rewrite("openai.completions", raw, change)
    _, _, reply = understood(the("openai.completions"), [made])
    assert reply is not None
    assert essence(reply) == parts
    assert [one.finish_reason for one in reply.choices] == reasons
    assert reply.usage == USAGE
    assert reply.id == "cmpl-7f"
    assert not reply.faults
    assert as_the_sdk_reads(made, form == "stream") == [
        "".join(w for kind, w in one if kind == "text") for one in parts
    ]


def as_the_sdk_reads(made: bytes, stream: bool) -> list[str]:
    """The texts of the candidates for a client of the vendor's SDK."""
    kind = "text/event-stream" if stream else "application/json"
    texts: dict[int, str] = {}
    with answering(made, kind) as url, openai.OpenAI(api_key="x", base_url=url, max_retries=0, timeout=10) as client:
        if stream:
            for event in client.completions.create(model="acme-1", prompt="Once", stream=True):
                for one in event.choices:
                    texts[one.index] = texts.get(one.index, "") + one.text
        else:
            for one in client.completions.create(model="acme-1", prompt="Once").choices:
                texts[one.index] = one.text
    return [texts[index] for index in sorted(texts)]


@contextmanager
def answering(body: bytes, kind: str) -> Iterator[str]:
    """A server on the loopback interface that gives one answer."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.timeout = 10
        thread = Thread(target=server.handle_request, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        thread.join(10)


HEALTHY = [pytest.param(shape.stream, id=name) for name, shape in COMPLETIONS.items() if shape.stream]


@pytest.mark.parametrize("raw", HEALTHY)
def test_what_nobody_changes_stays(raw: str) -> None:
    assert rewrite("openai.completions", raw.encode(), unchanged) == raw.encode()


@pytest.mark.parametrize("form", ["whole", "stream"])
def test_a_call_has_no_form_here(form: str) -> None:
    def change(event: Event) -> Iterable[Event]:
        made = Start(BLOCK, "tool_call", "", 0, event.frame, None, "c", "look")
        return [made, event] if isinstance(event, Finish) else [event]

    raw = json.dumps(completion("Hello", "stop")) if form == "whole" else sse(completion("Hello", "stop"))
    with pytest.raises(FormError, match="no tool_call"):
        rewrite("openai.completions", raw.encode(), change)
