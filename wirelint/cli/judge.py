"""The judge of `wirelint check`, `report` and `stats`: findings of a language model on replies that the rules leave open.

Theory of operation. An OpenAI-compatible endpoint (`--judge URL`) gets the conversation and a reply that rests on tools,
redacted and shortened, and answers `{"verdict": "fabricated-result", "quote": "It is 25 °C.", "evidence": "/messages/2"}`.
An answer counts if the verdict names a rule in force, the quote occurs in the reply, and the evidence is a place of the
request that the endpoint was shown. A finding needs two such answers with one verdict and overlapping quotes. It says
`source: judge` and has the severity `info`, which never counts for the exit status, unless the user wants that of the rule.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http.client import HTTPException
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit

import click
import orjson

from wirelint import __version__
from wirelint.apis import channel_of
from wirelint.apis.traits import is_raw
from wirelint.capture.offline import Checked
from wirelint.capture.readers import Problem
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import replay
from wirelint.claims.evidence import was_summarised
from wirelint.cli.options import JUDGE_KEY
from wirelint.jsonvalues import decode_json
from wirelint.model import Choice, Json, Part, Request, Text, ToolCall, ToolResult
from wirelint.registry import summary
from wirelint.rule import Finding, Rule, excerpt, one_line
from wirelint.settings import Scopes
from wirelint.text.escaping import counted, printable, shorten
from wirelint.text.pointers import at

if TYPE_CHECKING:
    from wirelint.cli.jobs import Bar

_CLAIMS = {"fabricated-call", "fabricated-result", "intent-without-call", "ungrounded-answer", "mcp-error-swallowed"}
_SAMPLES, _TIMEOUT = 2, 120.0
_MOST_TEXT, _MOST_ALL, _MOST_REPLY, _MOST_TOOLS = 3_000, 24_000, 12_000, 40
"""Most characters of one text of the conversation, of all its texts and of the reply; most declared tools."""
_MOST_ANSWER = 1 << 20
_SHORTEST_QUOTE = 4
_Answer = tuple[str, str, str]
"""Verdict, quote, evidence."""
_MARK = re.compile(r"\[redacted:[0-9a-f]+\]")
_ORDER = Path(__file__).with_name("templates").joinpath("judge.txt").read_text(encoding="utf-8")


class _NotJudgedError(Exception):
    """A reply is not judged. The message has the reason and the cure."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: a key and a conversation are for the named host only."""


class Judge:
    """A model behind an endpoint, with a cache of its answers and a budget of calls. Raises click.UsageError for a URL.

    `fails`: findings keep the severity of their rule.
    """

    def __init__(self, url: str, model: str, budget: int, *, fails: bool = False) -> None:
        self._url, self._model, self._budget, self._fails = _address(url), printable(model), budget, fails
        self._headers = {"content-type": "application/json", "user-agent": f"wirelint/{__version__}"}
        if key := os.environ.get(JUDGE_KEY, "").strip():
            self._headers["authorization"] = f"Bearer {key}"
        self._opener = urllib.request.build_opener(NoRedirect)
        self._redactor = Redactor()
        self._calls = 0
        self._failure = ""
        self._notes = Counter[str]()

    def judged(
        self, items: Iterable[Checked | Problem], rules: Sequence[Rule], bar: Bar
    ) -> Iterator[Checked | Problem]:
        """Yield the items with the findings of the judge. At the end, print how many replies are not judged, and why."""
        scopes = Scopes.over(rules)
        for item in items:
            try:
                if isinstance(item, Checked) and _is_open(item):
                    item = replace(item, findings=(*item.findings, *self._findings(item, scopes, bar)))
            except Exception as error:  # fail open: the findings of the rules stay
                bar.inform_failure("the judge", error)
            yield item
        for note, count in (+self._notes).items():
            bar.inform(one_line(f"wirelint: judge: {count} {'reply' if count == 1 else 'replies'} {note}"))

    def _findings(self, checked: Checked, scopes: Scopes, bar: Bar) -> Iterator[Finding]:
        exchange, shown = checked.exchange, replay(self._redactor.record(checked.record))
        if exchange is None or exchange.reply is None or shown is None or shown.request is None or shown.reply is None:
            return
        able = scopes.of(exchange).applicable("model", exchange)
        rules = {rule.name: rule for rule, _ in able if rule.name in _CLAIMS}
        system = _ORDER.format(verdicts="".join(f"- {name}: {summary(rule)}.\n" for name, rule in rules.items()))
        for choice, redacted in zip(exchange.reply.choices, shown.reply.choices, strict=True):
            if not rules or choice.calls or choice.hosted or not choice.text.strip():
                continue
            document, is_place = _document(shown.request, redacted.text)
            answers = self._answers(system, document, bar)
            try:
                found = list(takewhile(bool, (_verified(answer, choice, rules, is_place) for answer in answers)))
            except _NotJudgedError as error:
                self._notes[f"not judged: {error}"] += 1
                continue
            if len(found) == _SAMPLES and (agreed := _agreed(*found)) is not None:
                yield agreed if self._fails else replace(agreed, severity="info")

    def _answers(self, system: str, document: str, bar: Bar) -> Iterator[_Answer]:
        """Yield the samples of the model, those of the cache first. Raises _NotJudgedError."""
        name = hashlib.sha256("\0".join((self._model, system, document)).encode()).hexdigest()
        path = _cache_folder() / f"{name}.json"
        texts = self._cached(path)
        for number in range(_SAMPLES):
            is_new = number == len(texts)
            texts += [self._ask(system, document, bar)] if is_new else []
            answer = _read_answer(texts[number])
            if answer is None:
                raise _NotJudgedError("the answer is not the requested JSON; name another model with --judge-model")
            if is_new:
                try:
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    with click.open_file(str(path), "wb", atomic=True) as file:
                        file.write(orjson.dumps(texts))
                except OSError as error:
                    why = f"not cached: {path.parent}: {error.strerror or error}; make it writable"
                    self._notes[why] += len(texts) == 1
            yield answer

    def _ask(self, system: str, document: str, bar: Bar) -> str:
        """Return the text of a chat completion. Raises _NotJudgedError. An endpoint that failed is not called again."""
        if self._failure:
            raise _NotJudgedError(self._failure)
        if self._calls == self._budget:
            raise _NotJudgedError(f"the budget of {counted(self._budget, 'call')} is used up; raise --judge-budget")
        self._calls += 1
        bar.note(f"judge {self._calls}/{self._budget}")
        messages: list[Json] = [{"role": "system", "content": system}, {"role": "user", "content": document}]
        body = orjson.dumps({"model": self._model, "messages": messages, "stream": False})
        try:
            request = urllib.request.Request(self._url, body, self._headers)
            with self._opener.open(request, timeout=_TIMEOUT) as reply:
                match decode_json(reply.read(_MOST_ANSWER)):
                    case {"choices": [{"message": {"content": content}}, *_]}:
                        return content if isinstance(content, str) else ""  # null for a refusal
            why = "the answer is not a chat completion; correct the URL"
        except (OSError, HTTPException, ValueError) as error:
            why = _explain(error)
        self._failure = f"{self._redactor.url(self._url)}: {why}"
        raise _NotJudgedError(self._failure)

    def _cached(self, path: Path) -> list[str]:
        try:
            texts: Json = orjson.loads(path.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, ValueError):
            texts = None
        found = [str(text) for text in texts if _read_answer(str(text))] if isinstance(texts, list) else []
        self._notes[f"asked again: damaged files in {path.parent}; new answers replace them"] += not found
        return found


def _address(url: str) -> str:
    """Return the URL of chat completions below a base URL. Raises click.UsageError."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or re.search(r"[^!-~]", url) or "@" in parts.netloc:
        raise click.UsageError("--judge: not a base URL of an API; name one such as http://127.0.0.1:11434/v1")
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/') or '/v1'}/chat/completions", fragment=""))


def _cache_folder() -> Path:
    """Return the folder of the answers in the user's standard folder for caches."""
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    default = {"win32": "~/AppData/Local", "darwin": "~/Library/Caches"}.get(sys.platform, "~/.cache")
    return Path(base or os.path.expanduser(default), "wirelint", "judge")


def _explain(error: Exception) -> str:
    match error:
        case HTTPError(code=401 | 403):
            return f"status {error.code}; set {JUDGE_KEY} to a key that it accepts"
        case HTTPError():
            return f"status {error.code}; correct the URL or --judge-model, or try again later"
        case TimeoutError() | URLError(reason=TimeoutError()):
            return f"no answer within {_TIMEOUT:g} s; name a faster model with --judge-model"
    why = error.reason if isinstance(error, URLError) else error
    return f"{getattr(why, 'strerror', None) or type(why).__name__}; start the server, or correct the URL"


# --- questions and answers --------------------------------------------------------------------------------------------


def _is_open(checked: Checked) -> bool:
    """Return True if a reply rests on tools, nothing of its turn is unknown, and no finding above `info` explains it."""
    exchange, explaining = checked.exchange, {*_CLAIMS, "xml-leak"}
    if exchange is None or exchange.request is None or not exchange.ok or channel_of(exchange.api) != "model":
        return False
    request = exchange.request
    if is_raw(exchange.api, request) or request.hosted or not request.tools_known or was_summarised(request):
        return False
    found = {one.name for one in checked.findings if one.side == "response" and one.severity != "info"}
    rests = request.client_tools or any(message.calls or message.results for message in request.turn)
    return bool(rests) and not found & explaining


def _document(request: Request, reply: str) -> tuple[str, Callable[[str], bool]]:
    """Return the JSON that the model is shown, and a function that returns True for places in it."""
    parts = [(message.role, part) for message in request.messages for part in message.parts]
    items: list[Json] = []
    while parts and len(orjson.dumps(items)) < _MOST_ALL:
        items.insert(0, _item(*parts.pop()))
    tools: list[Json] = [{"path": tool.pointer, "tool": _short(tool.name), "about": _short(tool.description, 200)}
                         for tool in request.client_tools[:_MOST_TOOLS]]  # fmt: skip
    last = request.last_user
    order: dict[str, Json] = {"path": last.pointer, "text": _short(last.words)} if last is not None else {}
    places = {str(item["path"]) for item in (order, *tools, *items) if isinstance(item, dict) and item.get("path")}
    shown: dict[str, Json] = {"order": order, "tools": tools, "left_out": len(parts), "conversation": items}
    shown["reply"] = shorten(printable(reply, "\n\t"), _MOST_REPLY)

    def is_place(path: str) -> bool:
        is_shown = any(path == place or path.startswith(f"{place}/") for place in places)
        return is_shown and len(path) < _MOST_TEXT and at(request.body, path) is not None

    return _MARK.sub("[redacted]", orjson.dumps(shown).decode()), is_place  # marks differ in every process


def _item(role: str, part: Part) -> dict[str, Json]:
    """Return a part of the conversation as the model is shown it. Images and the like are only named."""
    match part:
        case Text():
            said: dict[str, Json] = {"role": role, "text": _short(part.text)}
        case ToolCall():
            texts = {"call": part.name or "", "id": part.id or "", "arguments": part.arguments.text}
            said = {name: _short(text) for name, text in texts.items()}
        case ToolResult():
            of = _short(part.call_id or part.name or "")
            said = {"result_of": of, "is_error": part.is_error, "text": _short(part.text)}
        case _:
            said = {"role": role, "not_shown": type(part).__name__}
    return {"path": part.pointer, **said}


def _short(text: str, limit: int = _MOST_TEXT) -> str:
    return printable(excerpt(text, limit))


def _read_answer(text: str) -> _Answer | None:
    """Return verdict, quote and evidence of the JSON object that ends a text; None without one."""
    text = text[: text.rfind("}") + 1][-_MOST_REPLY:]
    for brace in re.finditer(r"\{", text):
        match decode_json(text[brace.start() :]):
            case {"verdict": str(verdict), **rest}:
                return verdict, str(rest.get("quote")), str(rest.get("evidence"))
    return None


def _verified(
    answer: _Answer, choice: Choice, rules: Mapping[str, Rule], is_place: Callable[[str], bool]
) -> Finding | None:
    """Return the finding of an answer; None if it names no fault, or if quote or evidence are not there."""
    verdict, quote, evidence = answer
    if verdict not in rules or len(quote.strip()) < _SHORTEST_QUOTE or not is_place(evidence):
        return None
    for part in choice.parts:
        if isinstance(part, Text) and (start := part.text.find(quote)) >= 0:
            message = f"(source: judge) says {excerpt(quote, 90)!r}; evidence: request {evidence}"
            span = start, start + len(quote)
            found = rules[verdict].text_finding(part, span, message, confidence="low", layer="model")
            return replace(found, source="judge")
    return None


def _agreed(one: Finding | None, other: Finding | None) -> Finding | None:
    """Return the first of two findings if they have one rule, one text, and spans that overlap."""
    if one is None or other is None or (one.name, one.pointer) != (other.name, other.pointer):
        return None
    (start, end), (first, last) = one.span or (0, 0), other.span or (0, 0)
    return one if start < last and first < end else None
