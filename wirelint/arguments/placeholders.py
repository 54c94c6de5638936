"""Values such as stand in for one that nobody knew: `default`, `null`, `your_api_key`, `/path/to/…`, `user@example.com`.

A model that has to fill a parameter and was not told what with writes what the documentation of such tools is full of.
Where a value of that kind may be real for its parameter, as `default` is for a namespace, the parameter's purpose decides,
and what stays uncertain has low confidence. Text, code, patterns and queries are not judged: there everything may be meant.
Whether somebody said the value is for `unsaid` to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from wirelint.model import Confidence, Json

# What a parameter of a tool is for, by its name: a path, a key, an id, a host, or text that somebody writes.
#
# Names are taken apart at underscores and capitals (`subWorkspace`, `file_path`), so that one list of words does for all
# spellings. A name says only so much: what is in no list is `other`.

Purpose = Literal["path", "secret", "id", "host", "address", "person", "prose", "command", "kind", "other"]
"""`prose`: text, code, queries, patterns, values of any sort: whatever stands there may be meant. `kind`: names a type."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KIND = _words("type types kind format datatype mimetype dtype")
_COMMAND = _words("command cmd commands cmdline shell")
_PROSE = _words(
    "content contents text texts body code query queries q prompt prompts message messages msg question questions"
    " description summary comment comments note notes instruction instructions task thought thoughts thinking reason"
    " reasoning explanation script source sql html css markdown pattern regex regexp glob replacement replace old"
    " new patch diff template input inputs output data answer answers caption subject expression search find keyword"
    " keywords term terms plan todo todos value values title headline label string str snippet selector xpath"
    " payload json yaml xml arguments args params parameters stdin response reply feedback objective goal context"
    " details rationale criteria filter filters where formula function test tests statement excerpt quote"
    " placeholder default fallback sentence paragraph letter words word tag tags header headers cookie cookies env"
    " environment symbol variable"
)
_SECRET = _words("secret secrets token password passwd passphrase credential credentials apikey bearer pat")
_KEYS = _words("api access secret private auth client service license")
_ID = _words("id ids uuid guid identifier")
_HOST = _words(
    "url urls uri uris href link links host hostname domain endpoint website site webhook server baseurl dsn"
)
_ADDRESS = _words("email emails mail recipient recipients sender to cc bcc from phone telephone mobile address street")
_PERSON = _words("person firstname lastname fullname surname customer author owner assignee contact employee patient")
_PARAMETERS_PATH = _words(
    "path paths file files filename filenames filepath dir dirs directory directories folder folders workspace workdir cwd"
    " root dirname basedir subdir subdirectory subfolder subpath repo repository checkout pwd"
)


@lru_cache(maxsize=1024)
def words_of(name: str) -> tuple[str, ...]:
    """`subWorkspace` → sub, workspace."""
    return tuple(word.lower() for word in _WORD.findall(name[:200]))


@lru_cache(maxsize=1024)
def purpose(name: str) -> Purpose:
    """What a parameter of this name is for. The last word says most: `file_content` is prose, `content_file` a path."""
    words = words_of(name)
    if not words:
        return "other"
    last = words[-1]
    if last == "string" and words[:-1] and words[-2] in ("connection", "conn"):
        return "host"
    found = _of_word(last, words)
    if found != "other" or last in ("name", "names", "number", "list", "array"):
        return found if found != "other" else _of_rest(words)
    return next((kind for word in reversed(words[:-1]) if (kind := _of_word(word, words)) == "prose"), "other")


def _of_rest(words: tuple[str, ...]) -> Purpose:
    """Of `file_name`, `user_names`, `path_list`: the word before."""
    if len(words) == 1:
        return "person" if words[0] == "name" else "other"
    found = _of_word(words[-2], words)
    return "person" if words[-1] == "name" and words[-2] in ("full", "first", "last", "user", "contact") else found


def _of_word(word: str, words: tuple[str, ...]) -> Purpose:
    if word in _ID:
        return "id"
    if word in _SECRET or (word in ("key", "keys") and not _KEYS.isdisjoint(words)):
        return "secret"
    for names, found in _LISTS:
        if word in names:
            return found
    return "other"


_LISTS: tuple[tuple[frozenset[str], Purpose], ...] = (
    (_KIND, "kind"),
    (_COMMAND, "command"),
    (_PARAMETERS_PATH, "path"),
    (_HOST, "host"),
    (_ADDRESS, "address"),
    (_PERSON, "person"),
    (_PROSE, "prose"),
)


LONGEST = 300
"""Characters of a value above which it is no stand-in."""

_REFERENCES: frozenset[Purpose] = frozenset({"path", "secret", "id", "host", "address"})
"""Parameters whose values name something that exists somewhere."""

_THINGS = (
    "api|access|secret|auth|project|user|username|name|file|path|repo|repository|org|organi[sz]ation|company|domain"
    "|website|site|server|host|app|account|bucket|database|db|token|key|password|email|id|tenant|workspace|directory|folder"
    "|channel|client|instance|cluster|region|zone|team|service|endpoint|url|subscription|resource|group|index|table|model"
    "|device|store|shop|business|phone|number|image|document|home|dir|webhook|slack|github|openai|customer|deployment|vault"
)


@dataclass(frozen=True, slots=True)
class Sign:
    """What gives a value away. `why` completes "… is": `no path but what documentation writes for one`.

    `void`: it spells that there is no value, so nothing is lost without it. `stem`: what somebody who meant it would say.
    """

    why: str
    confidence: Confidence = "high"
    void: bool = False
    stem: str = ""
    word: bool = False
    """An ordinary word: that it stands somewhere in a long prompt says nothing."""
    form: bool = False
    """The form that values have: that a declaration or a prompt describes it says nothing."""


_SLOTS: tuple[re.Pattern[str], ...] = (
    re.compile(r"^[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)*[_-]HERE$"),
    re.compile(
        r"^[<\[{]{1,2}\s*(?:(?:your|insert|enter|the|actual|some|replace|add|put|specify|provide)\b[^<>\[\]{}]{0,60}"
        rf"|(?:[a-z0-9]+[ _-])*(?:{_THINGS}|value|here|placeholder|date|location|city"
        r"|unknown|unspecified|missing|tbd)(?:[ _-][a-z0-9]+)*)"
        r"\s*[>\]}]{1,2}$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:(?:insert|enter|replace|put|fill)[_-](?:your|the|with|me|in|here|actual)\w*(?:[_-]\w+)*"
        r"|change[_-]?me|replace[_-]?(?:me|this)|placeholder|\.\.\.|…)$",
        re.IGNORECASE,
    ),
)
_YOURS = re.compile(rf"^<?your(?:[-_]?(?:{_THINGS})s?|(?:[-_][a-z0-9]+){{1,4}}| (?:{_THINGS}))>?$", re.IGNORECASE)
_DATE_PART = r"(?:y{2,4}|j{2,4}|a{4}|d{2}|t{2}|g{2}|m{2}|h{2}|s{2})"
_DATE_FORM = re.compile(rf"^[<\[{{]?{_DATE_PART}(?:[-/.:t ]{{1,2}}{_DATE_PART}){{1,5}}z?[>\]}}]?$")
_ABOUT_FORMS = frozenset({"format", "pattern", "mask", "style", "layout", "locale", "display", "spec"})
_STEPS = re.compile(r"[/\\@:?&=.,#]+")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?P<host>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)$", re.IGNORECASE)
_CODE_HOSTS = re.compile(
    r"github|gitlab|bitbucket|huggingface|docker|slack|notion|atlassian|azure|amazonaws", re.IGNORECASE
)
_PATH = re.compile(
    r"(?:^|[/\\:\s])(?:path[/\\]+to(?:[/\\]|$)|(?:absolute|full|actual|real|some|example)[/\\]+path(?:[/\\]|$)"
    r"|(?:home|Users)[/\\]+(?:user_?name|your_?name|<[^<>]+>|your_?user_?name)(?:[/\\]|$))",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"^[a-z][a-z0-9+.-]*://(?:user(?:_?name)?|admin|root|postgres|login|<[^<>]+>):(?:pass(?:word|wd)?|pwd|secret|changeme|<[^<>]+>)@",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"^(?:[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?|[^@\s]+@)?(?:[a-z0-9-]+\.)*"
    r"(?P<host>example\.(?:com|org|net)|example|test\.com|domain\.com|yourdomain\.com|somewhere\.com)(?::\d+)?(?:[/?#]\S*)?$",
    re.IGNORECASE,
)
_VOID = frozenset({"null", "undefined"})
_NOTHING = frozenset({"none", "nil", "nan"})
_UNKNOWN = frozenset(
    {"unknown", "unspecified", "not specified", "not provided", "not_provided", "not_specified", "not available"}
    | {"tbd", "to be determined", "n/a", "not applicable", "not known", "not given"}
)
_DUMMY_SECRET = re.compile(
    r"^(?:(?:dummy|fake|sample|test|example|my)[_-]?)?(?:api[_-]?key|token|secret|password|access[_-]?token)$|^(?:dummy|fake"
    r"|sample)(?:[_-]\w+)?$|^(?:sk|pk|ghp|xoxb)?[-_]?(?:x{3,}|\*{3,}|1234567890?|abc123|abcdefg?)\w{0,8}$",
    re.IGNORECASE,
)
_DUMMY_ID = re.compile(
    r"^(?:[a-z]{1,12}[_-]?)?(?:123|1234|12345|123456|1234567|12345678|123456789|1234567890)$", re.IGNORECASE
)
_LETTERED_ID = re.compile(r"^(?:[a-z]{1,12}[_-])?abc[_-]?123$|^x{3,}$", re.IGNORECASE)
_DUMMY_UUIDS = frozenset({"123e4567-e89b-12d3-a456-426614174000", "550e8400-e29b-41d4-a716-446655440000"})
_NIL_UUID = "00000000-0000-0000-0000-000000000000"
_DUMMY_PERSON = re.compile(r"^(?:john|jane|joe)[ ._](?:doe|smith|public)$", re.IGNORECASE)
_DUMMY_ADDRESS = re.compile(
    r"^\d{1,4} main st(?:reet)?\b|^\+?1?[-. ]?\(?555\)?[-. ]|^\+?1?234567890$|^\+?1?[-. ]?123[-. ]?456[-. ]?7890$",
    re.IGNORECASE,
)
_SUSPECT = re.compile(
    r"null|none|nil|nan|undefined|n/a|yyyy|jjjj|aaaa|hh:mm|not[ _]|unknown|unspecified|tbd|to be|default"
    r"|your|path|example|test\.com|here"
    r"|insert|enter|replace|change|placeholder|put|fill|\.\.\.|…|^[<\[{]|x{3}|\*{3}|123|abc|dummy|fake|sample|token|secret|password"
    r"|api|doe|pass|pwd|smith|public|main st|555|user_?name|somewhere|domain|^str(?:ing)?$|550e8400|^0{8}-0",
)


def sign(value: str, name: str, described: str = "") -> Sign | None:
    """What gives a text away that stands in a parameter of this name. `described`: what the tool says of the parameter."""
    plain_value = value.strip()
    if not plain_value or len(value) > LONGEST:
        return None
    what = purpose(name)
    if what == "prose":
        return None
    if what == "command":
        return _in_command(value)
    folded = plain_value.casefold()
    if _SUSPECT.search(folded) is None:
        return _echo(plain_value, name, what)
    if (found := _word(plain_value, folded, what, words_of(name), described)) is not None:
        return found
    if _DATE_FORM.match(folded) and what != "kind" and _ABOUT_FORMS.isdisjoint(words_of(name)):
        return Sign("the form of a date or time, not one", "medium", form=True)
    if "your" in folded and (blank := _yours(plain_value)):
        return Sign("a blank to be filled in", "high", stem=blank)
    if any(pattern.search(plain_value) for pattern in _SLOTS):
        return Sign("a blank to be filled in", "high", stem=plain_value)
    if (match := _PATH.search(plain_value)) is not None and " " not in plain_value[: match.start()]:
        return Sign("what documentation writes for a path", "high", stem=match[0].strip("/\\: "))
    if (match := _LOGIN.match(plain_value)) is not None:
        return Sign("an address with a login of the documentation", "medium", stem=match[0])
    if (match := _EXAMPLE.match(plain_value)) is not None and _is_address(plain_value, what):
        return Sign("an address that is reserved for examples", "medium", stem=match["host"])
    return _dummy(plain_value, folded, what) or _echo(plain_value, name, what)


def _word(value: str, folded: str, what: Purpose, words: tuple[str, ...], described: str) -> Sign | None:
    """A word in the place of a value: for nothing at all, for what is not known, for whatever there is."""
    if folded in _VOID and what != "kind":
        return Sign("the word for nothing, not a value", "high", void=True, word=True)
    if folded in _NOTHING and what in _REFERENCES:
        return Sign("the word for nothing, not a value", "medium", void=True, word=True)
    if folded in _UNKNOWN:
        sure: Confidence = "medium" if what in _REFERENCES and what != "address" else "low"
        return Sign("what is said of a value that is not known", sure, word=True)
    if folded in ("default", "default_path", "default_workspace", "default_directory", "default_folder") and (
        what == "path" or (what == "id" and "session" not in words)
    ):
        if what == "id":
            return Sign("no id but the word for whatever is usual", "low", word=True)
        named = re.search(r"path|director|folder", described, re.IGNORECASE) is not None
        return Sign("no path but the word for whatever is usual", "high" if named else "medium", word=True)
    if folded in ("string", "str") and what != "kind" and "name" not in words:
        return Sign(
            "the name of its own type", "medium" if what in _REFERENCES and what != "address" else "low", word=True
        )
    return None


def _dummy(value: str, folded: str, what: Purpose) -> Sign | None:
    match what:
        case "secret" if _DUMMY_SECRET.match(value):
            return Sign("what documentation writes for a key", "medium", word=True)
        case "id" if folded in _DUMMY_UUIDS:
            return Sign("an id that documentation is full of", "medium")
        case "id" if folded == _NIL_UUID:
            return Sign("the id of nothing", "medium")
        case "id" | "secret" if _DUMMY_ID.match(value) or _LETTERED_ID.match(value):
            return Sign("an id such as examples have", "low")
        case "person" if _DUMMY_PERSON.match(value):
            return Sign("a name such as examples have", "low")
        case "address" if _DUMMY_ADDRESS.match(value):
            return Sign("an address such as examples have", "low")
        case _:
            return None


def _echo(value: str, name: str, what: Purpose) -> Sign | None:
    """A parameter's own name in the place of its value: `file_path` for file_path."""
    words = words_of(name)
    if len(words) > 1 and what in _REFERENCES and words_of(value) == words and value.replace("_", "").isalnum():
        return Sign("the name of its own parameter", "medium", word=True)
    return None


def _in_command(value: str) -> Sign | None:
    """A path of the documentation among the words of a command; what is quoted or piped in may be text."""
    if any(mark in value for mark in ("'", '"', "<<", "`", "\n", "echo", "printf", "grep", "sed ")):
        return None
    for word in value.split():
        if (match := _PATH.search(word)) is not None:
            return Sign("a command on what documentation writes for a path", "medium", stem=match[0].strip("/\\: "))
    return None


def _yours(value: str) -> str:
    """What is left to be filled in of a value, `your-domain` of `https://your-domain.com/`; empty when nothing is.

    Pages have names with `your` in them (`/help/reset-your-password`), so it has to begin a step, and in the paths of most
    sites it has to be spelt as no page is.
    """
    url = _URL.match(value)
    if url is None:
        own = re.search(r"(?:^|[/\\])your[/\\]\w+", value, re.IGNORECASE)
        return next(filter(_YOURS.match, _STEPS.split(value)), own[0].strip("/\\") if own is not None else "")
    steps = _STEPS.split(f"{url['host']}{url['rest']}")
    path = _STEPS.split(url["path"])
    steps += path if _CODE_HOSTS.search(url["host"]) else [step for step in path if "_" in step or step.isupper()]
    return next((step for step in steps if _YOURS.match(step)), "")


def _is_address(value: str, what: Purpose) -> bool:
    return "@" in value or "://" in value or what in ("host", "address")


# Arguments of a call that the error of its tool names: `Unknown workspace: 'default'` for `{"workspace": "default"}`.
#
# A value counts as named where the error quotes it, or has it as a word beside a word of its parameter's name. An
# error that
# refuses a value without repeating it names the parameter alone, in quotes or before a colon.

_LONGEST_ERROR = 1000
_LONGEST_VALUE = 200
_SHORTEST_VALUE = 2
_REFUSES = re.compile(
    r"\b(?:unknown|invalid|no such|not found|not valid|not a|not an|unrecogni[sz]ed|unsupported|must be|must match|expected"
    r"|does not exist|doesn['’]t exist|not exist|not allowed|not available|no \w+ (?:named|called|with))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refused:
    """An argument that an error refuses. `sign`: what gives the value away as a stand-in, if anything does."""

    name: str
    value: str
    sign: Sign | None


def refused(arguments: Mapping[str, Json], error: str) -> Iterator[Refused]:
    """Yield the arguments that an error of the tool refuses by name."""
    error = error[:_LONGEST_ERROR]
    if not _REFUSES.search(error):
        return
    said = set(re.findall(r"[a-z]+", error.lower()))
    for name, value in arguments.items():
        if not isinstance(value, str) or not _SHORTEST_VALUE <= len(value) <= _LONGEST_VALUE:
            continue
        quoted = re.search(rf"(['\"`‘“«<]){re.escape(value)}['\"`’”»>]", error)
        about = any(len(word) > 2 and word in said for word in words_of(name))
        beside = about and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", error) is not None
        parameter = re.search(rf"(?:['\"`]{re.escape(name)}['\"`]|(?<!\w){re.escape(name)}\s*:)", error)
        if quoted or beside or parameter:
            yield Refused(name, value, sign(value, name))
