from __future__ import annotations

import json
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, sse
from tests.rules.case import ELSEWHERE, Fires, Silent, without

CHAT = (("openai.chat", False), ("openai.chat", True))
CLAUDE = (("anthropic.messages", False), ("anthropic.messages", True))
TEXT: dict[str, Any] = {"text": "The bridge opens at six."}
ID = "call_Rw4kTz8QnXv2LbYc6MsPdHfG"
ONE = "[{'type': 'text', 'text': 'When does the bridge open?'}]"
TWO = "[{'type': 'text', 'text': 'Two boats: '}, {'type': 'text', 'text': \"the tug's first.\"}]"
NONE = "[{'type': 'text', 'text': ''}]"
PICTURE = (
    "[{'type': 'image_url', 'image_url': {'url': 'https://img.test/b.png', 'detail': 'low'}},"
    " {'type': 'text', 'text': 'Is it open?'}]"
)
DUMPED = json.dumps([{"type": "text", "text": "When does the “bridge” open? 🌉"}])
BLOCKS = "[TextBlock(citations=None, text='When does it open?\\n', type='text')]"


def asked(text: str, *before: Any, **more: Any) -> Talk:
    return Talk((*before, User(text)), **{**TEXT, **more})


def answered(text: str, *calls: Call, **more: Any) -> Talk:
    results = tuple(Result(call.id, "open") for call in calls)
    return Talk((User("Is the bridge open?"), Assistant(text, calls), *results, User("And now?")), **{**TEXT, **more})


def with_content(content: Any, role: str = "user") -> dict[str, Any]:
    """A request of OpenAI's chat with any content."""
    messages = [{"role": role, "content": content}, {"role": "user", "content": "Well?"}]
    return exchange("/v1/chat/completions", {"model": "acme-1", "messages": messages}, {"choices": []})


FIRES: dict[str, Fires] = {
    "all of the user's text": Fires(
        asked(ONE), says="printed as Python", fix="safe", layer="client", severity="warning"
    ),
    "two parts": Fires(asked(TWO), says="user message", fix="safe"),
    "blanks around it": Fires(asked(f"\n {ONE}\n"), fix="safe"),
    "members the other way round": Fires(asked("[{'text': 'When does it open?', 'type': 'text'}]"), fix="safe"),
    "one part without a list": Fires(asked("{'type': 'text', 'text': 'When does it open?'}"), fix="safe"),
    "the responses api's part": Fires(asked("[{'type': 'input_text', 'text': 'When does it open?'}]"), fix="safe"),
    "what a cache mark left": Fires(
        asked("[{'type': 'text', 'text': 'When?', 'cache_control': {'type': 'ephemeral'}}]"), fix="safe"
    ),
    "an sdk's class": Fires(asked(BLOCKS), says="TextBlock", fix="safe"),
    "json": Fires(asked(DUMPED), says="printed as JSON", fix="safe"),
    "a picture is in it": Fires(asked(PICTURE), fix="none"),
    "javascript": Fires(asked("[object Object]"), says="lost", fix="none"),
    "javascript, two of them": Fires(asked("[object Object],[object Object]"), fix="none"),
    "go": Fires(asked("[map[text:When does the bridge open? type:text]]"), says="printed as Go", fix="safe"),
    "go, two parts and a mark": Fires(
        asked("[map[text:Two boats: type:text] map[cache_control:map[type:ephemeral] text:a, b type:text]]"), fix="safe"
    ),
    "go, a picture too": Fires(
        asked("[map[text:Is it open? type:text] map[image_url:map[url:https://img.test/b.png] type:image_url]]"),
        fix="none",
    ),
    "ruby": Fires(asked('[{:type=>"text", :text=>"When does \\"it\\" open?"}]'), says="printed as Ruby", fix="safe"),
    "ruby, without rockets": Fires(asked('[{type: "text", text: "When?"}, {type: "text", text: "Now?"}]'), fix="safe"),
    "ruby, strings for keys": Fires(asked('[{"type" => "text", "text" => "When does it open?"}]'), fix="safe"),
    "javascript's inspection": Fires(asked("[ { type: 'text', text: 'When does it open?' } ]"), fix="safe"),
    "a message as a string": Fires(
        asked("content='When does it open?' additional_kwargs={} response_metadata={}"),
        says="printed as Python",
        fix="safe",
    ),
    "a message as its constructor": Fires(
        asked("HumanMessage(content=\"The tug's late\", additional_kwargs={}, response_metadata={}, id='a1')"),
        fix="safe",
    ),
    "an answer as its constructor": Fires(
        answered("ChatCompletionMessage(content='It is.', refusal=None, role='assistant', tool_calls=None)"), fix="safe"
    ),
    "two messages": Fires(
        asked("[AIMessage(content='a', additional_kwargs={}), HumanMessage(content='b', additional_kwargs={})]"),
        fix="none",
    ),
    "in the system prompt": Fires(asked("Open?", system=ONE), says="system message", fix="safe"),
    "the assistant's": Fires(answered("[{'type': 'text', 'text': 'It is.'}]"), says="assistant message", fix="safe"),
    "nothing, beside calls": Fires(answered(NONE, Call("look", {}, ID)), fix="safe"),
    "nothing, and nothing beside it": Fires(answered(NONE), fix="safe", forms=CHAT),
    "nothing, and nothing beside it, where that is refused": Fires(answered(NONE), fix="none", forms=CLAUDE),
    "wrapped twice": Fires(asked(repr([{"type": "text", "text": ONE}])), fix="safe"),
    "in two messages": Fires(Talk((User(ONE), Assistant("At six."), User(TWO)), **TEXT), count=2, fix="safe"),
    "in a part": Fires(with_content([{"type": "text", "text": ONE}]), pointer="/messages/0/content/0/text", fix="safe"),
    "behind a speaker's label": Fires(asked(f"User: {ONE}\nAssistant:"), fix="safe"),
    "in a prompt of turns": Fires(
        asked(f"<|im_start|>user\n{ONE}<|im_end|>\n<|im_start|>assistant\n{NONE}<|im_end|>\n"),
        says="2 times",
        fix="safe",
    ),
    "behind what a gateway put before it": Fires(asked(f"You are a harbour master.\n\n{ONE}"), fix="safe"),
}

SILENT = {
    "go, a picture alone": asked("[map[image_url:map[url:https://img.test/b.png] type:image_url]]"),
    "go, asked about": asked("Why does it print [map[text:hi type:text]] here?"),
    "go, another map": asked("[map[name:Oslo text:hi]]"),
    "a map of go that ends early": asked("[map[text:hi type:text"),
    "ruby, another hash": asked('[{type: "boat", text: "Tug"}]'),
    "a keyword argument": asked("content='index' additional words"),
    "a message that a programmer writes": asked("HumanMessage(content='Hi')"),
    "a message in a sentence": asked("I got content='Hi' additional_kwargs={} response_metadata={}, what is it?"),
    "a placeholder for content": asked("content=None additional_kwargs={}"),
    "parts as parts": with_content([{"type": "text", "text": "When does the bridge open?"}]),
    "asks about it": asked(f"Why does my log say {ONE}?"),
    "asks about it, on a line of its own": asked(f"Our bot shows this, what is wrong:\n\n{ONE}"),
    "asks about it, with the structure last": asked(f"Turn this into a plain list of dicts.\n\n{ONE}"),
    "asked first, pasted then": asked(
        ONE, User("I send you the repr of a message, say what is in it."), Assistant("Go.")
    ),
    "shown in another message": asked(ONE, User(f"What is {ONE} in Go?"), Assistant("A slice of maps.")),
    "in inline code": asked(f"`{ONE}`"),
    "in a fence": asked(f"```python\n{ONE}\n```"),
    "in quotation marks": asked(f'"{ONE}"'),
    "assigned": asked(f"content = {ONE}"),
    "a call": asked(f"print({ONE})"),
    "in a document": asked(f"<doc>\n{ONE}\n</doc>\nSum it up."),
    "a log in a question": asked(f"It logs:\nuser: {ONE}\nassistant: At six."),
    "in a tool's result": Talk((User("Read it."), Assistant(calls=(Call("read", {}, ID),)), Result(ID, ONE)), **TEXT),
    "in a tool's arguments": Talk(
        (User("Write it."), Assistant(calls=(Call("write", {"content": ONE}, ID),)), Result(ID, "ok")), **TEXT
    ),
    "messages, not parts": asked("[{'role': 'user', 'content': 'When does it open?'}]"),
    "other types": asked("[{'type': 'bridge', 'text': 'opens at six'}]"),
    "a list of other things": asked("[{'name': 'tug', 'text': 'first'}]"),
    "a type without a text": asked("[{'type': 'text'}]"),
    "other members": asked("[{'type': 'text', 'text': 'six', 'x': 10, 'y': 20}]"),
    "only a picture": asked("[{'type': 'image_url', 'image_url': {'url': 'https://img.test/b.png'}}]"),
    "not closed": asked(ONE[:-1]),
    "more behind it": asked(f"{ONE} or {ONE}"),
    "one object of json": asked('{"type": "text", "text": "hello"}'),
    "json that was spoken of": asked(DUMPED, system="Your input is JSON from a queue."),
    "json that was asked for": answered(DUMPED, request={"response_format": {"type": "json_object"}}),
    "a markdown link": asked("[text](https://img.test/b.png) {'type': 'text'}"),
    "a word for it": asked("Why does the page show [object Object] there?"),
    "redacted": asked("[{'type': 'text', 'text': '[redacted:key] is mine'}]"),
    "empty": with_content(""),
    "in a reply": Silent(Talk((User("Is it open?"),), text=ONE)),
}


# --- other APIs --------------------------------------------------------------------------------------------------------

IN_BLOCKS = (("bedrock.converse", False), ("google.generate_content", False))


def spoken(content: object, path: str = "/v1/chat/completions", *, stream: bool = False) -> dict[str, object]:
    """A reply with this content."""
    asked = {"model": "acme-1", "messages": [{"role": "user", "content": "Open?"}]}
    said = {"role": "assistant", "content": content}
    match path:
        case "/v1/messages":
            return exchange(path, {**asked, "max_tokens": 9}, {"type": "message", **said, "stop_reason": "end_turn"})
        case "/api/chat":
            return exchange(path, {**asked, "stream": False}, {"message": said, "done": True, "done_reason": "stop"})
        case _ if stream:
            events = sse(chunk(said), chunk({}, "stop"))
            return exchange(path, {**asked, "stream": True}, events, content_type="text/event-stream")
        case _:
            return exchange(path, asked, {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}]})


PART = {"type": "text", "text": "At six."}


def told(text: object) -> dict[str, dict[str, object]]:
    """A reply of each API that has text in parts, or in the choice itself, with this in the place of the text."""
    asked = {"model": "acme-1", "messages": [{"role": "user", "content": "Open?"}]}
    part, message = {"type": "text", "text": text}, {"role": "assistant", "content": [{"type": "text", "text": text}]}
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {
        "completions": exchange(
            "/v1/completions", {"prompt": "Open?"}, {"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]}
        ),
        "messages": exchange(
            "/v1/messages",
            {**asked, "max_tokens": 9},
            {"type": "message", "role": "assistant", "content": [part], "stop_reason": "end_turn"},
        ),
        "responses": exchange(
            "/v1/responses", {"model": "acme-1", "input": "Open?"}, {"status": "completed", "output": [item]}
        ),
        "cohere": exchange("/v2/chat", asked, {"id": "c", "finish_reason": "COMPLETE", "message": message}),
        "gemini": exchange(
            "/v1beta/models/acme-1:generateContent",
            {"contents": [{"role": "user", "parts": [{"text": "Open?"}]}]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]},
        ),
        "converse": exchange(
            "/model/acme-1/converse",
            {"messages": [{"role": "user", "content": [{"text": "Open?"}]}]},
            {"output": {"message": {"role": "assistant", "content": [{"text": text}]}}, "stopReason": "end_turn"},
        ),
    }


RAW = tuple((api, False) for api in ("openai.completions", "deepinfra.inference", "ollama.generate"))
FIRES |= {
    f"{id_}, elsewhere": Fires(FIRES[id_].case, says=FIRES[id_].says, fix=FIRES[id_].fix, forms=ELSEWHERE)
    for id_ in (
        "all of the user's text", "two parts", "an sdk's class", "json", "a picture is in it", "javascript",
        "in the system prompt", "the assistant's", "nothing, beside calls",
    )
} | {
    "nothing, and nothing beside it, elsewhere": Fires(FIRES["nothing, and nothing beside it"].case, fix="none", forms=IN_BLOCKS),
    "nothing, and nothing beside it, in a row": Fires(
        FIRES["nothing, and nothing beside it"].case, fix="safe", forms=without("bedrock.converse", "google.generate_content")
    ),
    "all of a prompt": Fires(FIRES["all of the user's text"].case, fix="safe", forms=RAW),
    "parts without a type": Fires(asked("[{'text': 'When does it open?'}]"), fix="safe", forms=IN_BLOCKS),
    "two of them": Fires(asked("[{'text': 'Two boats: '}, {'text': \"the tug's first.\"}]"), fix="safe", forms=IN_BLOCKS),
    "mistral's chunks": Fires(asked("[TextChunk(text='Opens at six?', type='text')]"), fix="safe"),
    "an sdk's parts": Fires(
        asked("[Part(video_metadata=None, thought=None, text='When does it open?')]"), fix="safe", forms=IN_BLOCKS
    ),
    "reply: a part in the place of text": Fires(
        spoken(PART),
        says="an object with type, text",
        layer="gateway",
        pointer="/choices/0/message/content",
        fix="none",
    ),
    "reply: a part in the place of text, streamed": Fires(spoken(PART, stream=True)),
    "reply: an answer as JSON": Fires(spoken({"opens": 6})),
    "reply: a number": Fires(spoken(6), says="a number"),
    "reply: a part in the place of Anthropic's list": Fires(spoken(PART, "/v1/messages"), pointer="/content"),
    "reply: text in the place of Anthropic's list": Fires(spoken("At six.", "/v1/messages"), says="a string"),
    "reply: parts in the place of Ollama's text": Fires(spoken([PART], "/api/chat"), says="an array"),
    **{
        f"reply: an object in the place of a part's text, {api}": Fires(
            case, says="an object with opens", layer="gateway", fix="none"
        )
        for api, case in told({"opens": 6}).items()
    },
    "responses: all of the input": Fires(
        exchange("/v1/responses", {"model": "acme-1", "input": ONE}, {"output": []}), pointer="/input", fix="safe"
    ),
}  # fmt: skip
SILENT |= {
    f"{id_}, elsewhere": Silent(case.case if isinstance(case, Silent) else case, ELSEWHERE)
    for id_, case in SILENT.items()
    if isinstance(case, Talk)
} | {
    "reply: text": spoken("At six."),
    "reply: parts": spoken([PART]),
    "reply: parts, streamed": spoken([PART], stream=True),
    "reply: nothing": spoken(None),
    **{f"reply: a part's text, {api}": case for api, case in told("At six.").items()},
    **{f"reply: a part without text, {api}": case for api, case in told(None).items()},
    "reply: an empty object": spoken({}),
    "reply: blocks": spoken([PART], "/v1/messages"),
    "reply: Ollama's text": spoken("At six.", "/api/chat"),
    "parts without a type, where parts have one": Silent(
        asked("[{'text': 'When does it open?'}]"), without("bedrock.converse", "google.generate_content")
    ),
    "objects that say more": Silent(asked("[{'text': 'When?', 'label': 'question'}]"), IN_BLOCKS),
    "a list in a sentence": Silent(asked("[{'text': 'When?'}] is what I typed"), IN_BLOCKS),
    "data in json": Silent(asked('[{"text": "When?"}]'), IN_BLOCKS),
    "a file of a user's": Silent(
        Talk((User("Sort this list of dicts."), Assistant("Which?"), User("[{'text': 'b'}, {'text': 'a'}]")), **TEXT),
        IN_BLOCKS,
    ),
    "gemini: json was asked for": Silent(
        answered(DUMPED, request={"generationConfig": {"responseMimeType": "application/json"}}), IN_BLOCKS[1:]
    ),
    "ollama: json was asked for": Silent(answered(DUMPED, request={"format": "json"}), (("ollama.chat", False),)),
    "responses: json was asked for": Silent(
        answered(DUMPED, request={"text": {"format": {"type": "json_object"}}}), (("openai.responses", False),)
    ),
    "what a tool gave, elsewhere": Silent(
        Talk((User("Open?"), Assistant("", (Call("look", {}, ID),)), Result(ID, ONE), User("So?")), **TEXT), ELSEWHERE
    ),
}
