"""The wire formats of the mock server: bodies and events of each API. One class per API; `apis.json` has its facts."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from urllib.parse import parse_qs

from wirelint.apis.reading import text as text_of
from wirelint.mock.answer import Event, Tag, encode_message
from wirelint.mock.api import Api, Envelope, EventWriter, objects_in, usage_of
from wirelint.mock.plan import Ask, Call, Framing, Reply, decode_value, dump_json, mint_id, split_pieces, write_markup
from wirelint.model import Json

# --- OpenAI and alike -----------------------------------------------------------------------------------------------


def _head(envelope: Envelope, id_: str) -> dict[str, Json]:
    return {"id": id_, "created": envelope.created, "model": envelope.model}


def _usage(replies: tuple[Reply, ...], ask: Ask) -> dict[str, Json]:
    reasoning = sum(len(split_pieces(reply.reasoning)) for reply in replies)
    return {**usage_of(replies, ask), "reasoning": reasoning}


def _write_call(call: Call) -> dict[str, Json]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


class OpenAIChat(Api):
    """A chat stream opens with a chunk that has the role, then one delta per token, an empty delta with the finish reason,
    with `stream_options.include_usage` a chunk without choices that has the usage, and `[DONE]`. Reasoning is in
    `reasoning_content`, as with DeepSeek, Kimi and the open servers.
    https://platform.openai.com/docs/api-reference/chat/streaming
    """

    key = "openai_chat"

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        head = _head(envelope, self.mint(envelope))
        choices: list[Json] = [
            self.fill("choice", {"index": at, "message": self._message(reply), "finish": self._finish(reply, ask)})
            for at, reply in enumerate(replies)
        ]
        return self.fill("body", {**head, "choices": choices, "usage": self.fill("usage", _usage(replies, ask))})

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        head = self.fill("chunk", _head(envelope, self.mint(envelope)))

        def chunk(tag: Tag, choices: list[Json], usage: Json = None) -> Event:
            value = {**head, "choices": choices, **({"usage": usage} if ask.usage else {})}
            # Padding against traffic analysis: random text of varying length.
            value["obfuscation"] = mint_id(envelope.rng, f"{{alnum {envelope.rng.randrange(16)}}}")
            return Event(tag, dump_json(value))

        events = [Event("open", dump_json(self.templates["azure"]))] if envelope.options.azure else []
        # The choices of one answer take turns, as with the vendor.
        per_choice = (self._deltas(at, reply, ask) for at, reply in enumerate(replies))
        for row in zip_longest(*per_choice):
            events += [chunk(tag, [choice]) for tag, choice in filter(None, row)]
        if ask.usage:
            events.append(chunk("usage", [], self.fill("usage", _usage(replies, ask))))
        return [*events, *self.end_stream()]

    def _finish(self, reply: Reply, ask: Ask) -> str:
        # Documented: a forced function ends with `stop`.
        return self.finish["forced" if reply.finish == "tool_calls" and ask.forced else reply.finish]

    def _message(self, reply: Reply) -> Json:
        message: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
        if not (reply.text or reply.calls or reply.refusal):
            message["content"] = ""
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        message |= {"refusal": reply.refusal or None, "annotations": []}
        if reply.calls:
            message["tool_calls"] = [_write_call(call) for call in reply.calls]
        return message

    def _deltas(self, index: int, reply: Reply, ask: Ask) -> Iterator[tuple[Tag, Json]]:
        """Yield the choices of one index in order, each with the tag of its event."""
        opening: dict[str, Json] = {"role": "assistant", "content": "" if reply.text else None, "refusal": None}
        deltas: list[Json] = [{"reasoning_content": piece} for piece in split_pieces(reply.reasoning)]
        deltas += [{"content": piece} for piece in split_pieces(reply.text)]
        deltas += [{"refusal": piece} for piece in split_pieces(reply.refusal)]
        for position, call in enumerate(reply.calls):
            deltas += [{"tool_calls": [delta]} for delta in _write_call_deltas(position, call)]
        yield "open", self.fill("delta", {"index": index, "delta": opening, "finish": None})
        for delta in deltas:
            yield "delta", self.fill("delta", {"index": index, "delta": delta, "finish": None})
        yield "finish", self.fill("delta", {"index": index, "delta": {}, "finish": self._finish(reply, ask)})


def _write_call_deltas(position: int, call: Call) -> Iterator[Json]:
    place: dict[str, Json] = {} if call.place == "none" else {"index": position if call.place == "own" else 0}
    yield {**place, **_write_call(replace(call, arguments=""))}
    later: dict[str, Json] = {"id": call.later_id} if call.later_id else {}
    for piece in split_pieces(call.arguments):
        yield {**place, **later, "function": {"arguments": piece}}


class Mistral(OpenAIChat):
    """OpenAI's format with content lists for thinking, calls in one piece, and its own errors.

    The path is OpenAI's, so the host decides, or the name of the vendor's SDK. https://docs.mistral.ai/api/#tag/chat
    """

    key = "mistral"

    def serves(self, headers: Mapping[str, str]) -> bool:
        host = headers.get("host", "").partition(":")[0]
        return host.endswith("mistral.ai") or headers.get("user-agent", "").startswith(("mistral-client", "mistralai"))

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        model = text_of(body.get("model")) or text_of(body.get("agent_id"))
        return super().read_request({**body, "model": model}, target)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        head = self.fill("chunk", _head(envelope, self.mint(envelope)))
        events: list[Event] = []

        def add(tag: Tag, index: int, delta: Json, finish: str | None = None) -> None:
            choice: Json = {"index": index, "delta": delta, "finish_reason": finish}
            usage: dict[str, Json] = {"usage": self.fill("usage", usage_of(replies, ask))} if finish else {}
            events.append(Event(tag, dump_json(head | {"choices": [choice]} | usage)))

        for index, reply in enumerate(replies):
            add("open", index, {"role": "assistant", "content": ""})
            for piece in split_pieces(reply.reasoning):
                add("delta", index, {"content": [self.fill("thinking", {"text": piece})]})
            for piece in split_pieces(reply.shown):
                add("delta", index, {"content": piece})
            if reply.calls:
                calls: list[Json] = [_write_call(call) | {"index": at} for at, call in enumerate(reply.calls)]
                add("delta", index, {"content": "", "tool_calls": calls})
            add("finish", index, {"content": ""}, self.finish[reply.finish])
        return [*events, Event("done", "[DONE]")]

    def _message(self, reply: Reply) -> Json:
        content: Json = reply.shown
        if reply.reasoning:
            content = [self.fill("thinking", {"text": reply.reasoning}), {"type": "text", "text": reply.shown}]
        calls: list[Json] = [_write_call(call) for call in reply.calls]
        return {"role": "assistant", "content": content, "tool_calls": calls or None}


class OpenAIResponses(Api):
    """A stream has every item three times: `response.output_item.added`, its deltas with their end, and
    `response.output_item.done`; the last event has the whole response again. All its events are numbered.
    https://platform.openai.com/docs/api-reference/responses-streaming
    """

    key = "openai_responses"

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        return self._response(replies[0], ask, envelope)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        response = self._response(replies[0], ask, envelope)
        begun = response | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        writer = _ItemWriter(begun=self.templates["begun"])
        writer.add("open", "response.created", {"response": begun})
        writer.add("open", "response.in_progress", {"response": begun})
        for index, item in enumerate(objects_in(response["output"])):
            writer.add_item(index, item)
        writer.add("done", f"response.{response['status']}", {"response": response})
        return writer.events

    def _response(self, reply: Reply, ask: Ask, envelope: Envelope) -> dict[str, Json]:
        cut = reply.finish == "length"
        values: dict[str, Json] = _head(envelope, mint_id(envelope.rng, "resp_{hex 48}")) | _usage((reply,), ask)
        values["status"] = "incomplete" if cut else "completed"
        values["details"] = {"reason": "max_output_tokens"} if cut else None
        return self.fill("body", {**values, "output": list(self._items(reply, envelope))})

    def _items(self, reply: Reply, envelope: Envelope) -> Iterator[Json]:
        def mint(prefix: str) -> str:
            return mint_id(envelope.rng, f"{prefix}_{{hex 48}}")

        if reply.reasoning:
            yield self.fill("reasoning", {"id": mint("rs"), "text": reply.reasoning})
        if reply.shown or not reply.calls:
            part = self.fill("refusal" if reply.refusal else "text", {"text": reply.refusal or reply.text})
            yield self.fill("message", {"id": mint("msg"), "part": part})
        for call in reply.calls:
            named: dict[str, Json] = {"call_id": call.id, "name": call.name, "arguments": call.text}
            yield self.fill("function_call", {"id": mint("fc"), **named})


@dataclass(slots=True, kw_only=True)
class _ItemWriter(EventWriter):
    """Collects the events of a Responses stream. `begun` has the empty content of an item when it is added, by type."""

    begun: Mapping[str, dict[str, Json]]

    def add(self, tag: Tag, name: str, value: dict[str, Json]) -> None:
        EventWriter.add(self, tag, name, {"sequence_number": len(self.events), **value})

    def add_item(self, index: int, item: dict[str, Json]) -> None:
        at: dict[str, Json] = {"output_index": index}
        place: dict[str, Json] = {"item_id": item["id"], **at}
        first: dict[str, Json] = {**item, **self.begun[str(item["type"])]}
        if "status" in item:
            first["status"] = "in_progress"
        self.add("start", "response.output_item.added", {**at, "item": first})
        summary = "response.reasoning_summary"
        for number, part in enumerate(objects_in(item.get("summary"))):
            where = {**place, "summary_index": number}
            self._add_part(f"{summary}_part", f"{summary}_text", where, part, "text")
        for number, part in enumerate(objects_in(item.get("content"))):
            name = "refusal" if part["type"] == "refusal" else "text"
            where = {**place, "content_index": number}
            self._add_part("response.content_part", f"response.{part['type']}", where, part, name)
        if item["type"] == "function_call":
            self._add_text("response.function_call_arguments", place, "arguments", str(item["arguments"]))
        self.add("stop", "response.output_item.done", {**at, "item": item})

    def _add_part(self, stem: str, text_stem: str, place: dict[str, Json], part: dict[str, Json], name: str) -> None:
        self.add("start", f"{stem}.added", {**place, "part": {**part, name: ""}})
        self._add_text(text_stem, place, name, str(part[name]))
        self.add("stop", f"{stem}.done", {**place, "part": part})

    def _add_text(self, stem: str, place: dict[str, Json], name: str, text: str) -> None:
        for piece in split_pieces(text):
            self.add("delta", f"{stem}.delta", {**place, "delta": piece})
        self.add("stop", f"{stem}.done", {**place, name: text})


class OpenAICompletions(Api):
    """A prompt in, its continuation out. The endpoint has no tools: if a request declares some, the model writes
    markup."""

    key = "openai_completions"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """Parse a request. The last user turn of a prompt in the ChatML template is the user's text."""
        ask = super().read_request(body, target)
        _, marked, rest = ask.user_text.rpartition("<|im_start|>user\n")
        last = rest.partition("<|im_end|>")[0] if marked else ask.user_text.strip().rpartition("\n")[2]
        return replace(ask, user_text=last)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        choices = [self._choice(at, _write_text(reply), self.finish[reply.finish]) for at, reply in enumerate(replies)]
        head = self.fill("head", _head(envelope, self.mint(envelope)))
        return head | {"choices": choices, "usage": self.fill("usage", usage_of(replies, ask))}

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        head = self.fill("head", _head(envelope, self.mint(envelope)))
        events: list[Event] = []
        for at, reply in enumerate(replies):
            choices = [self._choice(at, piece) for piece in split_pieces(_write_text(reply))]
            events += [Event("delta", dump_json(head | {"choices": [choice]})) for choice in choices]
            end = self._choice(at, "", self.finish[reply.finish])
            events.append(Event("finish", dump_json(head | {"choices": [end]})))
        if ask.usage:
            usage = self.fill("usage", usage_of(replies, ask))
            events.append(Event("usage", dump_json(head | {"choices": [], "usage": usage})))
        return [*events, *self.end_stream()]

    def _choice(self, index: int, text: str, finish: str | None = None) -> Json:
        return self.fill("choice", {"text": text, "index": index, "finish": finish})


def _write_text(reply: Reply) -> str:
    thought = f"<think>\n{reply.reasoning}\n</think>\n\n" if reply.reasoning else ""
    return thought + reply.shown + (write_markup("hermes_json", reply.calls) if reply.calls else "")


class DeepInfra(OpenAICompletions):
    key = "deepinfra"

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        id_ = mint_id(envelope.rng, "{alnum 22}")
        return self.fill("body", {"id": id_, "text": _write_text(replies[0]), **usage_of(replies, ask)})

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        text = _write_text(replies[0])
        pieces = split_pieces(text)
        tokens = [self.fill("token", {"number": at, "text": one, "all": None}) for at, one in enumerate(pieces)]
        last = self.fill("token", {"number": len(pieces), "text": "", "all": text})
        last |= {"num_output_tokens": replies[0].tokens, "num_input_tokens": ask.prompt_tokens}
        events = [Event("delta", dump_json(token)) for token in tokens]
        return [*events, Event("finish", dump_json(last)), Event("done", "[DONE]")]


# --- content blocks: Anthropic, Bedrock, Cohere ---------------------------------------------------------------------


_PING = Event("ping", '{"type": "ping"}', "ping")


class Anthropic(Api):
    """A stream has `message_start`, each content block as `content_block_start`, deltas and `content_block_stop` (a `ping`
    after the first start), `message_delta` with the stop reason and the usage, and `message_stop`. The `input` of a started
    tool use is `{}`; its arguments come as `input_json_delta` text, the first one empty.
    https://docs.anthropic.com/en/docs/build-with-claude/streaming
    """

    key = "anthropic"
    ping = _PING.encode()

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: list[Json] = []
        if reply.reasoning:
            content.append({"type": "thinking", "thinking": reply.reasoning, "signature": _sign(envelope.rng)})
        if reply.shown:
            content.append({"type": "text", "text": reply.shown})
        content += [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.value} for one in reply.calls]
        return self._message(ask, envelope, reply.tokens, content, self.finish[reply.finish])

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        """Make the events; a ping follows the first start. JSON is padded against traffic analysis."""
        reply, rng = replies[0], envelope.rng
        writer = EventWriter(
            lambda name, value: f"{dump_json({'type': name, **value})[:-1]}{' ' * rng.randrange(12)}}}"
        )
        writer.add("open", "message_start", {"message": self._message(ask, envelope, 1, [], None)})
        blocks: list[tuple[list[Json], list[Json]]] = []
        if reply.reasoning:
            deltas: list[Json] = [{"type": "thinking_delta", "thinking": one} for one in split_pieces(reply.reasoning)]
            deltas.append({"type": "signature_delta", "signature": _sign(envelope.rng)})
            blocks.append(([{"type": "thinking", "thinking": "", "signature": ""}], deltas))
        if reply.shown:
            pieces: list[Json] = [{"type": "text_delta", "text": piece} for piece in split_pieces(reply.shown)]
            blocks.append(([{"type": "text", "text": ""}], pieces))
        first = len(blocks)
        blocks += [_write_tool_use(call) for call in reply.calls]
        for index, (starts, deltas) in enumerate(blocks):
            call = reply.calls[index - first] if index >= first else None
            place: dict[str, Json] = {"index": first if call is not None and call.place == "first" else index}
            begun: list[Json] = [{"content_block": block} for block in starts]
            writer.add_block(_BLOCK, {} if call is not None and call.place == "none" else place, begun, deltas)
        end: dict[str, Json] = {"finish": self.finish[reply.finish], "completion": reply.tokens}
        writer.add("finish", "message_delta", self.fill("end", end))
        writer.add("done", "message_stop", {})
        for at in [at for at, event in enumerate(writer.events, 1) if event.tag == "start"][:1]:
            writer.events.insert(at, _PING)
        return writer.events

    def _message(self, ask: Ask, envelope: Envelope, tokens: int, content: list[Json], finish: str | None) -> Json:
        values: dict[str, Json] = {"id": mint_id(envelope.rng, "msg_01{alnum 22}"), "model": envelope.model}
        values |= {"content": content, "finish": finish, **usage_of((), ask), "completion": tokens}
        return self.fill("message", values)


def _sign(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(96)).decode()


_BLOCK = ("content_block_start", "content_block_delta", "content_block_stop")


def _write_tool_use(call: Call) -> tuple[list[Json], list[Json]]:
    """Return the starts and the deltas of a tool use. A second start of one block is a fault (`id-unstable`)."""
    block: dict[str, Json] = {"type": "tool_use", "id": call.id, "name": call.name}
    block["input"] = decode_value(call.start or "{}")
    starts: list[Json] = [block, block | {"id": call.later_id}] if call.later_id else [block]
    pieces = ("", *split_pieces(call.arguments))
    return starts, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


class VertexAnthropic(Anthropic):
    key = "vertex_anthropic"


class BedrockAnthropic(Anthropic):
    """Anthropic's events, each in a message of an AWS event stream, base64 in JSON.

    https://docs.anthropic.com/en/api/claude-on-amazon-bedrock
    """

    key = "bedrock_anthropic"
    ping = encode_message(Event("ping", "{}", "ping"))

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        return [
            Event(event.tag, dump_json({"bytes": base64.b64encode(event.data.encode()).decode()}), "chunk")
            for event in super().make_events(replies, ask, envelope)
        ]

    def make_error_events(self, status: int, message: str) -> list[Event]:
        kind = "throttlingException" if status == 429 else "modelStreamErrorException"
        return [Event("error", dump_json({"message": message}), kind)]


_PADDING = string.ascii_letters + string.digits


class Bedrock(Api):
    """Converse. A content block is an object with one member, whose name is its kind. In a stream only the block of a tool
    has a start; `messageStop` has the reason and `metadata` the usage. Every event has padding `p` of varying length.
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
    """

    key = "bedrock"
    ping = encode_message(Event("ping", "{}", "ping"))

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: list[Json] = []
        if reply.reasoning:
            content.append({"reasoningContent": {"reasoningText": {"text": reply.reasoning, "signature": "c2lnbmVk"}}})
        if reply.shown:
            content.append({"text": reply.shown})
        for call in reply.calls:
            content += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.value}}]
        values: dict[str, Json] = {"content": content, "finish": self.finish[reply.finish]}
        return self.fill("body", values | usage_of(replies, ask))

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply, rng = replies[0], envelope.rng
        writer = EventWriter(lambda _, value: dump_json({**value, "p": _PADDING[: rng.randrange(1, len(_PADDING))]}))
        writer.add("open", "messageStart", {"role": "assistant"})
        blocks: list[tuple[list[Json], list[Json]]] = []
        if reply.reasoning:
            thoughts: list[Json] = [{"reasoningContent": {"text": piece}} for piece in split_pieces(reply.reasoning)]
            blocks.append(([], [*thoughts, {"reasoningContent": {"signature": "c2lnbmVk"}}]))
        if reply.shown:
            blocks.append(([], [{"text": piece} for piece in split_pieces(reply.shown)]))
        for call in reply.calls:
            start: Json = {"start": {"toolUse": {"toolUseId": call.id, "name": call.name}}}
            blocks.append(([start], [{"toolUse": {"input": piece}} for piece in split_pieces(call.text)]))
        names = ("contentBlockStart", "contentBlockDelta", "contentBlockStop")
        for index, (starts, deltas) in enumerate(blocks):
            writer.add_block(names, {"contentBlockIndex": index}, starts, deltas)
        writer.add("finish", "messageStop", {"stopReason": self.finish[reply.finish]})
        writer.add("done", "metadata", self.fill("end", usage_of(replies, ask)))
        return writer.events


class Cohere(Api):
    """Content blocks and calls have separate numbers, each with a start, deltas and an end event; a plan before the calls
    comes as `tool-plan-delta`. `message-end` has the finish reason and the usage; `[DONE]` follows.
    https://docs.cohere.com/v2/docs/streaming
    """

    key = "cohere"

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        message: dict[str, Json] = {"role": "assistant"}
        if reply.calls:
            message["tool_plan"] = reply.reasoning
            message["tool_calls"] = [_write_call(call) for call in reply.calls]
        content: list[Json] = []
        if reply.reasoning and not reply.calls:
            content.append({"type": "thinking", "thinking": reply.reasoning})
        if reply.shown:
            content.append({"type": "text", "text": reply.shown})
        if content or not reply.calls:
            message["content"] = content
        head: dict[str, Json] = {"id": self.mint(envelope), "message": message}
        return head | self._end(replies, ask)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        writer = EventWriter()
        writer.add("open", "message-start", {"id": self.mint(envelope), "delta": self.fill("start", {})})
        if reply.calls:
            for piece in split_pieces(reply.reasoning):
                writer.add("delta", "tool-plan-delta", {"delta": {"message": {"tool_plan": piece}}})
        texts = {"thinking": "" if reply.calls else reply.reasoning, "text": reply.shown}
        for index, (kind, text) in enumerate((kind, text) for kind, text in texts.items() if text):
            begun: Json = {"delta": {"message": {"content": {"type": kind, kind: ""}}}}
            deltas: list[Json] = [{"message": {"content": {kind: piece}}} for piece in split_pieces(text)]
            writer.add_block(("content-start", "content-delta", "content-end"), {"index": index}, [begun], deltas)
        for index, call in enumerate(reply.calls):
            begun = {"delta": {"message": {"tool_calls": _write_call(replace(call, start="", arguments=""))}}}
            deltas = [{"message": {"tool_calls": {"function": {"arguments": one}}}} for one in split_pieces(call.text)]
            names = ("tool-call-start", "tool-call-delta", "tool-call-end")
            writer.add_block(names, {"index": index}, [begun], deltas)
        writer.add("finish", "message-end", {"delta": self._end(replies, ask)})
        return [*writer.events, Event("done", "[DONE]")]

    def _end(self, replies: tuple[Reply, ...], ask: Ask) -> dict[str, Json]:
        return self.fill("end", {"finish": self.finish[replies[0].finish], **usage_of(replies, ask)})


# --- calls that come whole: Gemini, Ollama --------------------------------------------------------------------------


class Gemini(Api):
    """A stream is server-sent events with `?alt=sse` and one JSON array without; every event is a reply of its own with
    more parts. Calls come whole, arguments as a value, without ids. Only the finish reason ends a stream.
    https://ai.google.dev/api/generate-content
    """

    key = "gemini"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        query = target.partition("?")[2]
        framed: Framing = "events" if parse_qs(query).get("alt") == ["sse"] else "array"
        return replace(super().read_request(body, target), framing=framed)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        parts: list[Json] = [{"text": reply.reasoning, "thought": True}] if reply.reasoning else []
        if reply.shown or not reply.calls:
            parts.append({"text": reply.shown})
        return self._reply(
            [*parts, *_write_function_calls(reply, envelope)], reply, ask, self._head(envelope), ends=True
        )

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply, head = replies[0], self._head(envelope)

        def event(tag: Tag, part: Json) -> Event:
            return Event(tag, dump_json(self._reply([part], reply, ask, head, ends=tag == "finish")))

        parts: list[Json] = [{"text": piece, "thought": True} for piece in split_pieces(reply.reasoning)]
        parts += [{"text": piece} for piece in split_pieces(reply.shown)]
        parts += _write_function_calls(reply, envelope)
        return [*(event("delta", part) for part in parts), event("finish", {"text": ""})]

    def _head(self, envelope: Envelope) -> dict[str, Json]:
        return self.fill("head", {"model": envelope.model, "id": mint_id(envelope.rng, "{alnum 22}")})

    def _reply(self, parts: list[Json], reply: Reply, ask: Ask, head: dict[str, Json], *, ends: bool) -> Json:
        counts = usage_of((reply,), ask)
        usage: dict[str, Json] = {"promptTokenCount": counts["prompt"], "totalTokenCount": counts["total"]}
        finish: dict[str, Json] = {}
        if ends:
            usage["candidatesTokenCount"] = counts["completion"]
            finish["finishReason"] = self.finish[reply.finish]
        content: Json = {"parts": parts, "role": "model"}
        return {"candidates": [{"content": content, **finish, "index": 0}], "usageMetadata": usage, **head}


def _write_function_calls(reply: Reply, envelope: Envelope) -> list[Json]:
    """Return the parts with calls; the first one carries the signature of the thought before them."""
    parts: list[Json] = []
    for call in reply.calls:
        part: dict[str, Json] = {"functionCall": {"name": call.name, "args": call.value}}
        if not parts:
            part["thoughtSignature"] = base64.b64encode(envelope.rng.randbytes(48)).decode()
        parts.append(part)
    return parts


class OllamaChat(Api):
    """JSON lines unless the request declines the stream. A call comes whole, in a separate line, its arguments as a value;
    a reply with calls ends with `stop`. The last line has `done: true`, the reason and the counts. An error is a string.
    https://github.com/ollama/ollama/blob/main/docs/api.md
    """

    key = "ollama_chat"
    text_member = "content"

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: dict[str, Json] = {self.text_member: reply.shown}
        if reply.reasoning:
            content["thinking"] = reply.reasoning
        if reply.calls:
            content["tool_calls"] = _write_whole_calls(reply)
        return self._line(content, envelope) | self._end(reply, ask)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        content: list[dict[str, Json]] = [{"thinking": piece} for piece in split_pieces(reply.reasoning)]
        content += [{self.text_member: piece} for piece in split_pieces(reply.shown)]
        content += [{"tool_calls": [call]} for call in _write_whole_calls(reply)]
        lines = [self._line({self.text_member: "", **one}, envelope) for one in content]
        last = self._line({self.text_member: ""}, envelope) | self._end(reply, ask)
        return [*(Event("delta", dump_json(line)) for line in lines), Event("done", dump_json(last))]

    def _line(self, content: dict[str, Json], envelope: Envelope) -> dict[str, Json]:
        created = datetime.fromtimestamp(envelope.created, UTC).isoformat().replace("+00:00", "Z")
        message: Json = {"role": "assistant", **content}
        return self.fill("line", {"model": envelope.model, "time": created, "content": message})

    def _end(self, reply: Reply, ask: Ask) -> dict[str, Json]:
        return self.fill("end", {"finish": self.finish[reply.finish], **usage_of((reply,), ask)})


class OllamaGenerate(OllamaChat):
    key = "ollama_generate"
    text_member = "response"

    def _line(self, content: dict[str, Json], envelope: Envelope) -> dict[str, Json]:
        line = super()._line({}, envelope)
        done = {"done": line.pop("done")}
        line.pop("message")
        return line | content | done


def _write_whole_calls(reply: Reply) -> list[Json]:
    return [
        {"function": {"index": at, "name": call.name, "arguments": call.value}} for at, call in enumerate(reply.calls)
    ]
