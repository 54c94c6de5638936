"""OpenAI's Chat Completions, Responses and Completions, Mistral's variant of the first, DeepInfra's of the last.

A chat stream opens with a chunk that has the role, then one delta per token, an empty delta with the finish reason, with
`stream_options.include_usage` a chunk without choices that has the usage, and `[DONE]`. Reasoning is in
`reasoning_content`, as with DeepSeek, Kimi and the open servers. A Responses stream has every item three times:
`response.output_item.added`, its deltas with their end, and `response.output_item.done`; the last event has the whole
response again. All its events are numbered.
https://platform.openai.com/docs/api-reference/chat/streaming
https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest

from wirelint.mock.answer import Event, Tag
from wirelint.mock.api import (
    Api,
    Envelope,
    EventWriter,
    RequestError,
    count_of,
    last_user_text,
    messages_of,
    object_of,
    objects_in,
    read_results,
    read_tools,
    string_of,
    text_of,
    usage_of,
)
from wirelint.mock.plan import Ask, Call, Reply, dump_json, mint_id, split_pieces, write_markup
from wirelint.model import Json


def _head(envelope: Envelope, id_: str) -> dict[str, Json]:
    return {"id": id_, "created": envelope.created, "model": envelope.model}


def _usage(replies: tuple[Reply, ...], ask: Ask) -> dict[str, Json]:
    reasoning = sum(len(split_pieces(reply.reasoning)) for reply in replies)
    return {**usage_of(replies, ask), "reasoning": reasoning}


def _functions(body: dict[str, Json]) -> list[dict[str, Json]]:
    return [object_of(tool.get("function")) for tool in objects_in(body.get("tools"))]


def _text_of_result(message: dict[str, Json]) -> str:
    return text_of(message.get("content"))


def _write_call(call: Call) -> dict[str, Json]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


class OpenAIChat(Api):
    key = "openai_chat"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        calls = [call for message in messages for call in objects_in(message.get("tool_calls"))]
        at_end = [*takewhile(lambda one: one.get("role") in ("tool", "function"), reversed(messages))][::-1]
        return self.ask(
            body,
            string_of(body.get("model")),
            tools=read_tools([*_functions(body), *objects_in(body.get("functions"))], "parameters"),
            user_text=last_user_text(messages),
            choices=min(count_of(body.get("n")) or 1, 16),
            **read_results(at_end, calls, _text_of_result, id_member="tool_call_id", name="function.name"),
        )

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
        return "stop" if reply.finish == "tool_calls" and ask.forced else self.finish[reply.finish]

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
        model = string_of(body.get("model")) or string_of(body.get("agent_id"))
        return super().read_request({**body, "model": model}, target)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        choices: list[Json] = [
            {"index": index, "message": self._message(reply), "finish_reason": self.finish[reply.finish]}
            for index, reply in enumerate(replies)
        ]
        head = self._open(envelope, "chat.completion")
        return head | {"choices": choices, "usage": self.fill("usage", usage_of(replies, ask))}

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        head = self._open(envelope, "chat.completion.chunk")
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

    def _open(self, envelope: Envelope, kind: str) -> dict[str, Json]:
        return self.fill("head", {**_head(envelope, mint_id(envelope.rng, "{hex 32}")), "object": kind})

    def _message(self, reply: Reply) -> Json:
        content: Json = reply.shown
        if reply.reasoning:
            content = [self.fill("thinking", {"text": reply.reasoning}), {"type": "text", "text": reply.shown}]
        calls: list[Json] = [_write_call(call) for call in reply.calls]
        return {"role": "assistant", "content": content, "tool_calls": calls or None}


class OpenAIResponses(Api):
    key = "openai_responses"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        given = body.get("input")
        items = objects_in(given)
        calls = [item for item in items if item.get("type") == "function_call"]
        at_end = [*takewhile(lambda one: one.get("type") == "function_call_output", reversed(items))][::-1]
        declared = (one for one in objects_in(body.get("tools")) if one.get("type") == "function")
        users = [item for item in items if item.get("role") == "user"]
        ask = self.ask(
            body,
            string_of(body.get("model")),
            tools=read_tools(declared, "parameters"),
            user_text=given if isinstance(given, str) else last_user_text(users),
            **read_results(
                at_end, calls, lambda one: text_of(one.get("output")), id_member="call_id", call_id="call_id"
            ),
        )
        if not items and not isinstance(given, str):
            raise RequestError("Missing required parameter: 'input'.")
        return ask

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
        first: dict[str, Json] = {**item, **self.begun[string_of(item["type"])]}
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
            self._add_text("response.function_call_arguments", place, "arguments", string_of(item["arguments"]))
        self.add("stop", "response.output_item.done", {**at, "item": item})

    def _add_part(self, stem: str, text_stem: str, place: dict[str, Json], part: dict[str, Json], name: str) -> None:
        self.add("start", f"{stem}.added", {**place, "part": {**part, name: ""}})
        self._add_text(text_stem, place, name, string_of(part[name]))
        self.add("stop", f"{stem}.done", {**place, "part": part})

    def _add_text(self, stem: str, place: dict[str, Json], name: str, text: str) -> None:
        for piece in split_pieces(text):
            self.add("delta", f"{stem}.delta", {**place, "delta": piece})
        self.add("stop", f"{stem}.done", {**place, name: text})


class OpenAICompletions(Api):
    """A prompt in, its continuation out. The endpoint has no tools: if a request declares some, the model writes
    markup."""

    key = "openai_completions"
    prompt_member = "prompt"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        prompt = string_of(body.get(self.prompt_member))
        if not prompt:
            raise RequestError(f"{self.prompt_member}: text is required")
        model = string_of(body.get("model")) or self.model_in(target)[0]
        # The last user turn of a prompt in the ChatML template.
        _, marked, rest = prompt.rpartition("<|im_start|>user\n")
        return self.ask(
            body,
            model,
            tools=read_tools(_functions(body), "parameters"),
            user_text=rest.partition("<|im_end|>")[0] if marked else prompt.strip().rpartition("\n")[2],
            choices=min(count_of(body.get("n")) or 1, 16),
            prompt_tokens=max(len(prompt) // 4, 1),
        )

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
    prompt_member = "input"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        return replace(super().read_request({**body, "model": ""}, target), choices=1)

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
