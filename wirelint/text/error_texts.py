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
    r"\[?(?!(?:standard|mean|absolute|squared|margin|root|relative|percent\w*|rounding|sampling|measurement)\b)"
    r"(?!no\b|without\b|\d)(?:(?!(?:the|this|that|an?|your|each|any)\b)[\w/.-]+ ){0,4}"
    r"error(?! (?:rate|codes|types|logs?|levels?|margins?|budgets?|counts?|bars|statistics|reports?|summary)\b)"
    r"(?: [\w'\"`/.-]+){0,6}\]?\s*[:–-] ?(?=[^\d\s.-])|"
    r"(?:(?:internal|unknown|unexpected|server|system|network|api|database|fatal) ){0,2}error[.!]?\Z|"
    r"(?:[\w.]+\.)?\w+(?:Error|Exception)\b\s*[:(]|"
    r"(?:[a-z]\w*\.){1,6}[A-Z]\w+: |<error>|exception:|timeout: |(?:an )?(?:unexpected |internal )?error occurred\b|"
    r"something went wrong\b|(?:\w+ )?(?:internal server error|bad gateway|service unavailable|too many requests)\b|"
    r"(?:[\w ]{0,30} )?rate limit (?:exceeded|reached)\b|(?:failed|unable) to \w|(?:could not|couldn['’]t) \w|"
    r"(?:execution|operation|request|tool call|authentication|query|connection|upload|validation) failed\b|"
    r"(?:permission|access) denied\b|unauthori[sz]ed\b|forbidden\b|connection (?:refused|reset|timed out)|"
    r"(?:request|operation|connection|query) timed out\b|"
    r"(?:http |status )?[45]\d\d:? (?-i:[A-Z][a-z]+(?: [A-Z][a-z]+)*)[.:,]?\s*(?:\n|\Z|(?<=[.:,] ))|"
    r"\d+ validation errors? for \w|(?:input )?validation error|invalid request\b|(?:missing|invalid) (?:required )?"
    r"(?:argument|parameter|input|field|api key|credential|token)s?\b(?! (?:is|are|was|were)\b)|"
    r"(?:interner )?fehler(?: (?:bei|beim|im|in|mit|während)\b[^:\n]{0,60})?:|"
    r"erreur(?: (?:de|du|d['’]|en|lors|interne|pendant)[^:\n]{0,60})? ?:|"
    r"errore(?: (?:nel|nella|di|durante|interno)[^:\n]{0,60})?:|"
    r"erro (?:ao|na|no|de|interno)[^:\n]{0,60}:|(?:внутренняя )?ошибка(?: (?:при|в|во|сервера)[^:\n]{0,60})?:|"
    r"(?:操作|请求|执行|调用|连接|查询|更新|创建|删除|提交|保存|上传|下载|认证|授权|验证|系统|服务器?|网络|内部|数据库|发生)?"
    r"(?:失败|错误|异常|出错)(?:[:：]|了?[。!！]?\Z)|(?:内部|サーバー|接続|認証)?エラー(?:が発生しました)?(?:[:：]|。?\Z)|"
    r"(?:처리 중 |서버 |내부 )?오류(?:가 발생했습니다)?[:.]",
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
    r"[\w '\"`./:@-]{2,100} (?:(?:was |were |is |are |does |do |has |have )?(?:not found|not exist|not configured|"
    r"not initiali[sz]ed|not authenticated|not authorized|expired|been revoked)|(?:doesn|don)['’]t exist)"
    r"\W{0,3}(?:\s*\([^)]{0,80}\))?\s*\Z",
    re.IGNORECASE,
)
_SUBJECT_LACKS = re.compile(
    r"(?:no such|unknown|invalid) (?P<named>\w+)\b|(?:the )?(?P<noun>\w+)\b[^\n,;.]{0,60}? ?(?:(?:was |is )?not found|"
    r"does(?:n['’]t| not) exist|is (?:not known|not valid|not accessible|unknown|invalid))\b",
    re.IGNORECASE,
)
_SOUGHT = re.compile(r"query|search|text|pattern|keyword|term|filter|name$|^q$|^id$", re.IGNORECASE)
"""Parameters that say what is looked for: that it is not found is an answer."""
_QUERIES = re.compile(
    r"(?:^|[_./-])(?:sql|query|db|database|postgres\w*|mysql|sqlite|bigquery|snowflake)(?:$|[_./-])", re.IGNORECASE
)
_DATABASE = re.compile(
    r"ERROR:\s+[^\n]{1,200}\n\s*(?:LINE \d+:|HINT:|DETAIL:|SQL state)|ERROR \d{4} \(\w{5}\)|SQLSTATE\[|"
    r"(?:[\w.]*\.)?(?:Operational|Programming|Integrity|Database)Error\b|(?:near \"[^\"]+\": )?"
    r"syntax error(?: at or near)?\b"
)
"""How databases speak of their own errors."""
_TRACE = re.compile(
    r"Traceback \(most recent call last\):\s*\n|[^\n]{0,200}\n\s+at [\w.$<>]+ ?\([^)\n]+:\d+(?::\d+)?\)"
)
_WRITES = re.compile(
    r"(?:^|[_./-])(?:add|assign|book|cancel|close|create|delete|edit|insert|make|move|post|publish|put|remove|rename|save|"
    r"schedule|send|set|start|stop|update|upload|write)(?:$|[_./-])",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"(?:^|[_./-])(?:read|cat|fetch|scrape|browse|open|load|download|file|files|resource|document\w*|docs|page|pages)(?:$|[_./-])",
    re.IGNORECASE,
)
"""Tools that hand out one thing, which the call names."""
_READS = re.compile(
    r"(?:^|[_./-])(?:tail|head|logs?|journal|grep|errors?|issues?|exceptions?|trace|tracebacks?|events?|alerts?|incidents?|"
    r"lint|diagnos\w*|checks?|tests?|validate|verify|build|compile|run|exec\w*|bash|shell|command|eval|explain|"
    r"translate|summari\w*|generate|echo|say|chat|ask|messages?|mails?|comments?)(?:$|[_./-])",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"(?:^|[_./-])(?:search|find|lookup|query|list|exists?|resolve|match|is|has|count)(?:$|[_./-])", re.IGNORECASE
)
_LISTED = re.compile(r"(?:^|[_./-])(?:issues?|messages?|mails?|comments?)(?:$|[_./-])", re.IGNORECASE)
"""What has titles, one a line, where it is looked for."""
_ASKS = re.compile(r"(?:^|[_./-])(?:list|search|find|query|get|fetch|lookup)(?:$|[_./-])", re.IGNORECASE)
_OWN_VERB = re.compile(
    r"(?:error: )?(?:error|failed|unable|could not|couldn['’]t|cannot|can['’]t)(?: (?:to|while|when|in))? "
    r"(?P<verb>[a-z]{3,})(?P<rest>[\w ]*)[:.,]\s",
    re.IGNORECASE,
)
"""An error that tells what was being done."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REASONS = frozenset({
    "error", "errors", "message", "msg", "code", "detail", "details", "status", "statuscode", "status_code", "success",
    "ok", "hint", "type", "request_id", "requestid", "trace", "stack", "traceback", "reason", "path", "timestamp", "help",
    "iserror", "description",
})  # fmt: skip


def is_own_error(text: str, tool: str, arguments: Mapping[str, Json] | None = None) -> bool:
    """Return True if what a tool of this name gave, called with these arguments, is an error of its own."""
    stripped = text.strip()
    if not stripped:
        return False
    name = _CAMEL.sub("_", tool)
    writes = _WRITES.search(name) is not None
    reads = not writes and _READS.search(name) is not None
    opens = not writes and _OPENS.search(name) is not None
    if stripped.startswith("{"):
        return not reads and not opens and _says_error(stripped)
    bare = _DECORATION.sub("", stripped, count=1)
    if _UNCALLED.match(bare) and len(bare) <= _LONGEST:
        return True
    if (
        len(bare) <= _LONGEST
        and bare.count("\n") < _MOST_LINES
        and (_misses_argument(bare, arguments) or (_QUERIES.search(name) and _DATABASE.match(bare)))
    ):
        return True
    if reads:
        return _tells_own_deed(bare, name) or (
            _LOOKS.search(name) is not None and _LISTED.search(name) is not None and _TRACE.match(bare) is not None
        )
    if opens:
        return len(bare) <= _LONGEST_LACK * 2 and "\n" not in bare and _echoes(bare, arguments) and _fails(bare, name)
    if _TRACE.match(bare):
        return True
    return len(bare) <= _LONGEST and bare.count("\n") < _MOST_LINES and _fails(bare, name)


def _fails(text: str, name: str) -> bool:
    if "\n" in text and _LOOKS.search(name):
        return False  # a list, whatever its first line is
    if _START.match(text):
        return True
    return len(text) <= _LONGEST_LACK and not _LOOKS.search(name) and _LACK.match(text) is not None


def _tells_own_deed(text: str, name: str) -> bool:
    """Whether a text is one line that says that what the tool is called for failed: "failed to list issues: 401 …"."""
    found = _OWN_VERB.match(text) if "\n" not in text and len(text) <= _LONGEST and _ASKS.search(name) else None
    if found is None or "#" in text:  # a title has its number
        return False
    words = re.findall(r"[a-z]{3,}", name.casefold())
    verb = found["verb"].casefold()
    stem = verb.removesuffix("ing")
    acted = any(
        word.startswith(stem) and len(word) - len(stem) <= 1 for word in words
    )  # `fetching` has lost an e at most
    return acted and any(word in words for word in found["rest"].casefold().split())


def _misses_argument(text: str, arguments: Mapping[str, Json] | None) -> bool:
    """Whether a text says that what an argument names is not there: "Workspace not found: north" of a search in it."""
    subject = _SUBJECT_LACKS.match(text) if len(text) <= _LONGEST_LACK else None
    if subject is None:
        return False
    named = (subject["named"] or subject["noun"]).casefold()
    for name, value in (arguments or {}).items():
        words = re.findall(r"[a-z]+", _CAMEL.sub("_", name).casefold())
        if named in words and isinstance(value, str) and value and not _SOUGHT.search(name) and value in text:
            return True
    return False


def _echoes(text: str, arguments: Mapping[str, Json] | None) -> bool:
    """Return True if a text names what was asked for."""
    given = (value for value in (arguments or {}).values() if isinstance(value, str) and len(value) > 2)
    return any(value in text for value in given)


def _says_error(text: str) -> bool:
    """Return True if an object holds an error and nothing else."""
    try:
        document: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(document, dict):
        return False
    told = {name.lower(): value for name, value in document.items() if value not in (None, "", [], {})}
    if not told.keys() <= _REASONS:
        return False
    if told.get("error") or told.get("errors") or told.get("traceback") or told.get("iserror") is True:
        return True
    if told.get("ok") is False or told.get("success") is False:
        return True
    status = told.get("status") or told.get("statuscode") or told.get("status_code")
    if isinstance(status, int) and not isinstance(status, bool):
        return 400 <= status < 600
    return isinstance(status, str) and status.lower() in ("error", "failed", "failure", "fail") and len(told) > 1
