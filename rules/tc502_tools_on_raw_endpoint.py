from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence

from wirelint.apis.traits import ended_by_itself
from wirelint.claims.actions import ASKED, BASE, GERUND, TOPIC_OF, Kind, topics_of, words_of
from wirelint.claims.toolkinds import abilities, does
from wirelint.jsonvalues import mappings
from wirelint.lexicon import Phrases
from wirelint.model import Choice, Exchange, Json, Request, Text, Tool
from wirelint.rule import Finding, Rule, excerpt, listed
from wirelint.state.ledger import Ledger
from wirelint.text.prose import Cues, unquoted

_CHAT = {
    "openai.completions": "/v1/chat/completions",
    "deepinfra.inference": "/v1/openai/chat/completions",
    "ollama.generate": "/api/chat",
}
"""Endpoints that take one text without tools, and the counterpart of each with tools."""
_TEXT = 1000
"""Characters of a reply to search: a model denies having a tool early."""

_HEADER = 400
"""Characters of a header's value to search."""
_PHRASES = Phrases("tool_denials")
_NOTHING = frozenset({"", "0", "false", "no", "none", "null", "[]", "{}"})


class ToolsOnRawEndpoint(Rule):
    """Tools go to an endpoint that drops them, or are lost on the way to the model.

    ## What it does
    Reports tool declarations, and messages with calls or tool results, in a request to an endpoint that takes one text:
    `/v1/completions`, DeepInfra's `/v1/inference/{model}`, Ollama's `/api/generate`. These ignore tools without an
    error. Reports a reply without a call whose response header says that tools were dropped, removed, ignored or are
    unsupported (`Ngrok-AIG-Removed-Params: tools, tool_choice`). With low confidence it reports a reply in which the
    model denies having the declared tools although it may call them: then something on the way dropped them.

    ## Why is this bad?
    The model answers from memory, says that it cannot, or invents an action, and nothing looks like a failure.

    ## Example
    `POST /v1/inference/moonshotai/Kimi-K2.5` with `{"input": "<|im_user|>…", "tools": [{"type": "function", …}]}`.

    ## False positives
    Silent on a refused raw request. A denial differs from an honest answer by its subject: "I have no tool for booking
    flights" is true of a model that only has a weather tool. Silent where `tool_choice` forbids calls, where the
    history has tool results, beside calls, and in quotations. A model may also just overlook its tools.

    ## Fix safety
    Reported only: the request needs another endpoint and shape.

    ## References
    - DeepInfra, Native API and OpenAI API
    - OpenAI, Completions API (legacy)
    - ngrok, AI Gateway: response headers
    - Ollama, API: generate and chat
    """

    severity = "error"
    layer = "client"
    needs = frozenset({"tools"})
    requires_in_reply = frozenset({"tools"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or exchange.api not in _CHAT or (exchange.status or 0) >= 400:
            return
        takes, accepts = "this endpoint takes one text and", f"; {_CHAT[exchange.api]} accepts them"
        if request.tools:
            names = listed([f"`{excerpt(tool.name, 40)}`" for tool in request.tools], 3)
            place = request.tools[0].pointer.rpartition("/")[0]
            yield self.finding("request", f"{takes} silently drops the declared tools {names}{accepts}", place)
        for place, what in itertools.islice(_lost(request.body.get("messages")), 1):
            yield self.finding("request", f"{takes} drops the messages beside it, {what} among them{accepts}", place)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or exchange.api in _CHAT or not exchange.succeeded or not _may_call(request):
            return
        dropped = _dropped(exchange)
        if dropped is not None and not exchange.calls:
            declared = f"{len(request.client_tools)} tools were declared"
            message = f"{declared}, and a header says that they were dropped: {excerpt(dropped, 90)}"
            yield self.finding("response", message, layer="gateway")
            return
        for choice in exchange.choices:
            yield from self._denials(request, choice)

    def _denials(self, request: Request, choice: Choice) -> Iterator[Finding]:
        if choice.calls or choice.hosted or not ended_by_itself(choice):
            return
        names = ", ".join(f"`{excerpt(tool.name, 40)}`" for tool in request.client_tools[:3])
        for part in choice.parts:
            if not isinstance(part, Text) or not _may_deny(part.text[:_TEXT]):
                continue
            words = request.last_user.words if request.last_user is not None else ""
            for said, start, outright in _denials(unquoted(part.text[:_TEXT]), words, request.client_tools):
                yield self.finding(
                    "response",
                    f"the model was given {names} and says {excerpt(said, 90)!r}: they may have been lost on the way",
                    part.pointer,
                    event=part.event_at(start),
                    severity="warning" if outright else "info",
                    confidence="low",
                    layer="gateway",
                )
                return


def _may_call(request: Request) -> bool:
    """Return True if the model had tools, may call them, and has not shown that it knows them."""
    if request.tool_choice.mode == "none" or not request.client_tools:
        return False
    return not request.has_history or not any(message.calls or message.results for message in request.messages)


def _dropped(exchange: Exchange) -> str | None:
    """Return the response header that lists tools among dropped parameters."""
    for name, value in exchange.response_headers.items():
        header = f"{name}: {value[:_HEADER]}"
        names_tools = _PHRASES["dropped"].search(header) and _PHRASES["header"].search(header)
        if names_tools and value.strip().lower() not in _NOTHING:
            return header
    return None


def _lost(messages: Json) -> Iterator[tuple[str, str]]:
    """Yield the messages beside a prompt that hold calls or a result."""
    for place, message in mappings(messages):
        if message.get("tool_calls"):
            yield f"/messages/{place}", "calls"
        elif message.get("role") in ("tool", "function"):
            yield f"/messages/{place}", "tool results"


# --- denials of tools --------------------------------------------------------------------------------------------------

# "I don't have any search tool" from a model with a declared one. A denial with a purpose counts only if a declared tool
# serves that purpose: "I have no tool that books flights" is true of a model with a weather tool.

_NOT = _PHRASES.text("not")
_NEGATED = re.compile(rf"\b(?:{_NOT}|no|not|lack|without|wasn['’]t)(?=\W|\Z)", re.IGNORECASE)
_ONE_TOOL = re.compile(r"\b(?:an?|the|this|that) (?:\w+ )?(?:tool|function|plugin)\b|\bfor (?:that|this|it)\b")
_BETWEEN = re.compile(r"(?<=[a-z])(?=[A-Z])|[_.:/-]+")
_VERBS = frozenset(_PHRASES.words("verbs"))
_EMPTY = frozenset(_PHRASES.words("empty"))
_TAILS = ("tail", "use_tail", "none_tail", "no_tail", "need_tail")
_FINDS: frozenset[Kind] = frozenset({"search", "read"})
_NEGATIONS = Cues("n't", "n’t", " not ", "no ", "unable", "lack", "cannot")
_THINGS = Cues(*_PHRASES.words("things"))
_ABROAD = Cues("kein", "werkzeug", "outil", "herramient", "ferrament", "strument", "geen", "nie mam", "yok")
"""Plain words that are searched first: nearly every reply has none of them."""


def _may_deny(text: str) -> bool:
    """Return True if a text has words of a denial. Cheaper than the search."""
    lowered = text.lower()
    here = _NEGATIONS.occur_in(lowered) and _THINGS.occur_in(lowered)
    return here or not text.isascii() or _ABROAD.occur_in(lowered)


def _denials(text: str, asked: str, tools: Sequence[Tool]) -> Iterator[tuple[str, int, bool]]:
    """Yield the denials of abilities that declared tools have: sentence, place, True if it denies tools outright.

    `asked`: the user's last message.
    """

    def is_supposed(match: re.Match[str]) -> bool:
        return _PHRASES["if"].search(text[max(match.start() - 40, 0) : match.start()]) is not None

    for match in _PHRASES["denied"].finditer(text):
        if is_supposed(match) or not _NEGATED.search(match[0]):
            continue
        if any(_is_undone(match[name] or "", tools) for name in _TAILS):
            continue
        about = _about(" ".join(words for name, words in match.groupdict().items() if name != "tools" and words))
        # "any tools" and "no functions" are all tools, "a tool for that" is one.
        means_any = not about and not _ONE_TOOL.search(" ".join(match[0].lower().split()))
        if means_any or _names(about or _about(asked), tools, purpose=True):
            yield match[0].strip(), match.start(), True
    foreign = _PHRASES["foreign"].search(text)
    if foreign is not None and not _is_for_another(foreign, text, tools):
        yield foreign[0].strip(), foreign.start(), True
    for match in _PHRASES["able"].finditer(text):
        about = _about(next(words for words in match.groupdict().values() if words))
        acts = _PHRASES["acts"].match(match["unable"] or match["cannot"] or "") is not None
        known = _names(about, tools) or (acts and _names(about, tools, purpose=True))
        if not known or is_supposed(match) or _is_undone(match["object"] or match["unable"] or "", tools):
            continue
        if not _PHRASES["until"].search(match[0]) and not _PHRASES["wanted"].search(text, match.start()):
            yield match[0].strip(), match.start(), False


def _is_undone(deed: str, tools: Sequence[Tool]) -> bool:
    """Return True if no declared tool does the denied deed: "to delete files" where a tool reads files."""
    found = _PHRASES["deed"].match(deed)
    verb = found["verb"].lower() if found is not None else ""
    kinds = BASE.get(verb) or GERUND.get(verb) or BASE.get(verb.removesuffix("s")) or frozenset()
    return not kinds <= _FINDS and _none_does(tools, kinds)


def _is_for_another(match: re.Match[str], text: str, tools: Sequence[Tool]) -> bool:
    """Return True if a denial in another language is about a deed of no tool: "kein Werkzeug, um zu löschen"."""
    words = _PHRASES["to_the_end"].match(text, match.end())
    plain = [_plain(word) for word in _PHRASES["word"].findall(words[0])] if words is not None else []
    kinds = {kind for word in plain for stem, kinds in _STEMS.items() if word.startswith(stem) for kind in kinds}
    return not kinds <= _FINDS and _none_does(tools, frozenset(kinds - _FINDS))


def _none_does(tools: Sequence[Tool], kinds: frozenset[Kind]) -> bool:
    return not any(does(able, kinds) or able.shell or not able.kinds for able in abilities(tools))


def _about(text: str) -> frozenset[str]:
    """Return the content words of a text."""
    return words_of(" ".join(word for word in _PHRASES["word"].findall(text.lower()) if word not in _EMPTY))


def _names(about: frozenset[str], tools: Sequence[Tool], *, purpose: bool = False) -> bool:
    """Return True if words name a declared tool: by a shared topic, or by a word of its name but common verbs.

    `purpose`: by any word of its name and description.
    """
    topics = {topic for word in about for topic in TOPIC_OF.get(word, ())}
    for tool in tools if about else ():
        name = _BETWEEN.sub(" ", tool.name)
        words = _about(f"{name} {tool.description[:400]}") if purpose else _about(name) - _VERBS
        if about & words or topics & topics_of(name):
            return True
    return False


def _plain(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word.lower()) if letter.isalpha())


_STEMS = {
    _plain(word)[:-1]: kinds
    for table in ASKED
    for word, kinds in table.items()
    if len(_plain(word)) >= 5 and " " not in word
}
"""Verbs of orders without their endings, which are beginnings of their other forms."""
