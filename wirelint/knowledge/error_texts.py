"""Texts that are an error of the tool that gave them, not a document about errors.

Theory of operation. A text is taken for an error only if it is nothing else: short, with the error at its very beginning,
from a tool that does not hand out texts of others. Tools that read, search, test or watch may well give such a text as
what they found; of them only errors count that name the tool or its call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from wirelint.model import Json

_LONGEST, _MOST_LINES = 600, 6
_LONGEST_LACK = 160
_DECORATION = re.compile(r"\A(?:[^\w\s{\[<(\"'`]|\ufe0f|\s){0,8}")
_START = re.compile(
    r"(?:[\w/.-]+ ){0,4}(?:error|exception)(?: [\w'\"`/.-]+){0,6}\s*[:\-–(]|\w+(?:Error|Exception)\b\s*[:(]|"
    r"(?:\w+ )?(?:internal server error|bad gateway|service unavailable|rate limit(?:ed)?|too many requests)\b|"
    r"(?:failed|unable) to \w|(?:could not|couldn['’]t|cannot|can['’]t) \w|"
    r"(?:execution|operation|request|tool call) failed\b|"
    r"(?:permission|access) denied\b|unauthori[sz]ed\b|forbidden\b|connection (?:refused|reset|timed out)|"
    r"(?:request|operation|connection|query) timed out\b|(?:http |status )?[45]\d\d:? (?-i:[A-Z][a-z]+)|\[?fatal\]?:|"
    r"\d+ validation errors? for \w|(?:input )?validation (?:error|failed)|(?:missing|invalid) (?:required )?"
    r"(?:argument|parameter|input|field|api key|credential|token)s?\b|fehler:|erreur ?:|errore:|错误[:：]|エラー[:：]",
    re.IGNORECASE,
)
_UNCALLED = re.compile(
    r"(?:[\w ]{0,40}: ?)?(?:unknown|no such|unsupported|unrecognized) (?:tool|function|method|command|action)\b|"
    r"(?:[\w ]{0,40}: ?)?(?:tool|function|method) ['\"`]?[\w.-]+['\"`]? (?:was |is )?"
    r"(?:not found|unknown|does not exist|not available)|"
    r"error (?:executing|calling|running|invoking) (?:tool|function)?",
    re.IGNORECASE,
)
"""Errors that are the call's own, whatever the tool does."""
_LACK = re.compile(
    r"[\w '\"`./:@-]{2,100} (?:was |were |is |are |does |do |has |have )?(?:not found|not exist|n['’]t exist|"
    r"not configured|not initiali[sz]ed|not authenticated|not authorized|required|expired|been revoked|"
    r"not supported|not allowed|not accessible)\W{0,3}(?:\s*\([^)]{0,80}\))?\s*\Z",
    re.IGNORECASE,
)
_TRACE = re.compile(
    r"Traceback \(most recent call last\):\s*\n|[^\n]{0,200}\n\s+at [\w.$<>]+ ?\([^)\n]+:\d+(?::\d+)?\)"
)
_READS = re.compile(
    r"(?:^|[_./-])(?:read|cat|tail|head|logs?|journal|fetch|scrape|browse|grep|errors?|issues?|exceptions?|trace|tracebacks?|events?|"
    r"alerts?|incidents?|lint|diagnos\w*|checks?|tests?|validate|verify|build|compile|run|exec\w*|bash|shell|command|eval|explain|"
    r"translate|summari\w*|generate|echo|say|chat|ask|messages?|mails?|comments?|document\w*|docs|page|pages|file|resource)(?:$|[_./-])",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"(?:^|[_./-])(?:search|find|lookup|query|list|exists?|resolve|match|is|has|count)(?:$|[_./-])", re.IGNORECASE
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REASONS = frozenset({
    "error", "errors", "message", "msg", "code", "detail", "details", "status", "statuscode", "status_code", "success",
    "ok", "hint", "type", "request_id", "requestid", "trace", "stack", "traceback", "reason", "path", "timestamp", "help",
})  # fmt: skip


def is_own_error(text: str, tool: str) -> bool:
    """Whether what a tool of this name gave is an error of its own."""
    stripped = text.strip()
    if not stripped:
        return False
    name = _CAMEL.sub("_", tool)
    if stripped.startswith("{"):
        return not _READS.search(name) and _says_error(stripped)
    bare = _DECORATION.sub("", stripped, count=1)
    if _UNCALLED.match(bare) and len(bare) <= _LONGEST:
        return True
    if _READS.search(name):
        return False
    if _TRACE.match(bare):
        return True
    if len(bare) > _LONGEST or bare.count("\n") >= _MOST_LINES:
        return False
    if _START.match(bare):
        return True
    return len(bare) <= _LONGEST_LACK and not _LOOKS.search(name) and _LACK.match(bare) is not None


def _says_error(text: str) -> bool:
    try:
        document: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(document, dict):
        return False
    told: Mapping[str, Json] = {name.lower(): value for name, value in document.items()}
    if not told.keys() <= _REASONS:
        return False
    failed = told.get("error") or told.get("errors") or told.get("traceback")
    return bool(failed) or told.get("ok") is False or told.get("success") is False
