"""Error texts of tools, as opposed to documents about errors.

Theory of operation. A text counts as an error only if it holds nothing else: short, with the error at its start, from a
tool that does not return texts by other authors. Tools that read, search, test or watch may return such a text as
content; their errors count only if they name the tool or its call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wirelint import lexicon
from wirelint.jsonvalues import decode_json
from wirelint.model import Json

_PHRASES = lexicon.Phrases("error_texts")

_LONGEST, _MOST_LINES = 600, 6
_LONGEST_LACK = 160
_FEWEST_RESULTS = 2
_DECORATION = re.compile(r"\A(?:[^\w\s{\[<(\"'`]|\ufe0f|\s){0,8}")
_SOUGHT = re.compile(r"query|search|text|pattern|keyword|term|filter|name$|^q$|^id$", re.IGNORECASE)
"""Parameters of a search: "not found" is an answer to it, no error."""
_LISTED = re.compile(r"(?:^|[_./-])(?:issues?|messages?|mails?|comments?)(?:$|[_./-])", re.IGNORECASE)
"""Names of tools that list things with titles, one per line."""
_ASKS = re.compile(r"(?:^|[_./-])(?:list|search|find|query|get|fetch|lookup)(?:$|[_./-])", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REASONS = frozenset(_PHRASES.words("reasons"))


def is_own_error(text: str, tool: str, arguments: Mapping[str, Json] | None = None) -> bool:
    """Return True if the output of a tool of this name, called with these arguments, is its own error."""
    stripped = text.strip()
    if not stripped:
        return False
    name = _CAMEL.sub("_", tool)
    writes = _PHRASES["writes"].search(name) is not None
    reads = not writes and _PHRASES["reads"].search(name) is not None
    opens = not writes and _PHRASES["opens"].search(name) is not None
    if stripped.startswith("{"):
        return not reads and not opens and _says_error(stripped)
    bare = _DECORATION.sub("", stripped, count=1)
    if _PHRASES["uncalled"].match(bare) and len(bare) <= _LONGEST:
        return True
    is_short = len(bare) <= _LONGEST and bare.count("\n") < _MOST_LINES
    queried = is_short and _PHRASES["queries"].search(name) and _PHRASES["database"].match(bare)
    if queried or (is_short and _misses_argument(bare, arguments)):
        return True
    if reads:
        return _reports_own_failure(bare, name) or (
            _PHRASES["looks"].search(name) is not None
            and _LISTED.search(name) is not None
            and _PHRASES["trace"].match(bare) is not None
        )
    if opens:
        given = (value for value in (arguments or {}).values() if isinstance(value, str) and len(value) > 2)
        is_line = len(bare) <= _LONGEST_LACK * 2 and "\n" not in bare
        return is_line and any(value in bare for value in given) and _fails(bare, name)
    return _PHRASES["trace"].match(bare) is not None or (is_short and _fails(bare, name))


def breaks_data(text: str, earlier: Iterable[str], arguments: Mapping[str, Json] | None) -> bool:
    """Return True if a text is an error where the tool usually returns data: all `earlier` results of the tool are
    objects with a common key. False for a tool that returns texts by other authors, which may be such errors."""
    foreign = arguments is None or any(_PHRASES["foreign"].search(name) for name in arguments)
    if foreign or text.lstrip().startswith(("{", "[")):
        return False
    keys = [_keys(one) for one in earlier]
    if len(keys) < _FEWEST_RESULTS or not frozenset.intersection(*keys):
        return False
    bare = _DECORATION.sub("", text.strip(), count=1)
    if _PHRASES["trace"].match(bare):
        return True
    is_short = len(bare) <= _LONGEST and bare.count("\n") < _MOST_LINES
    return is_short and (_PHRASES["start"].match(bare) or _PHRASES["denied"].search(bare)) is not None


def _keys(text: str) -> frozenset[str]:
    """Return the keys of a JSON object, or of the first one in an array; none of other texts."""
    value = decode_json(text)
    first = value[0] if isinstance(value, list) and value else value
    return frozenset(first) if isinstance(first, dict) else frozenset()


def _fails(text: str, name: str) -> bool:
    looks = _PHRASES["looks"].search(name) is not None
    if "\n" in text and looks:
        return False  # a list, even if its first line looks like an error
    lacks = len(text) <= _LONGEST_LACK and not looks and _PHRASES["lack"].match(text) is not None
    return lacks or _PHRASES["start"].match(text) is not None


def _reports_own_failure(text: str, name: str) -> bool:
    """Return True if a text is one line that says that the tool's own task failed: "failed to list issues: 401 …"."""
    found = (
        _PHRASES["own_verb"].match(text) if "\n" not in text and len(text) <= _LONGEST and _ASKS.search(name) else None
    )
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
    """Return True if a text says that the object named by an argument is missing: "Workspace not found: north"."""
    subject = _PHRASES["subject_lacks"].match(text) if len(text) <= _LONGEST_LACK else None
    if subject is None:
        return False
    named = (subject["named"] or subject["noun"]).casefold()
    for name, value in (arguments or {}).items():
        words = re.findall(r"[a-z]+", _CAMEL.sub("_", name).casefold())
        if named in words and isinstance(value, str) and value and not _SOUGHT.search(name) and value in text:
            return True
    return False


def _says_error(text: str) -> bool:
    document = decode_json(text)
    if not isinstance(document, dict):
        return False
    given = {name.lower(): value for name, value in document.items() if value not in (None, "", [], {})}
    if not given.keys() <= _REASONS:
        return False
    if given.get("error") or given.get("errors") or given.get("traceback") or given.get("iserror") is True:
        return True
    if given.get("ok") is False or given.get("success") is False:
        return True
    status = given.get("status") or given.get("statuscode") or given.get("status_code")
    if isinstance(status, int) and not isinstance(status, bool):
        return 400 <= status < 600
    return isinstance(status, str) and status.lower() in ("error", "failed", "failure", "fail") and len(given) > 1
