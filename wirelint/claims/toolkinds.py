"""Which declared tool could have done a claimed or announced action, told from tool names and descriptions.

A tool is read as an *ability*: kinds of action (its verbs), topics (its nouns), and whether it is a shell, which can
do anything to files and programs. A claim and a tool meet when a kind fits and they share a topic or a word, or when
one of the two names no topic at all and the verb alone is telling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from wirelint.claims.actions import BASE, ELSEWHERE, VERB_TOPICS, Kind, Topic, bare, topics_of, words_of
from wirelint.model import Tool

PATH = re.compile(
    r"(?<![\w@:/])(?:~|\.{1,2})?/[\w.@-]+(?:/[\w.@-]+)*|(?<![\w@/])[\w.-]+(?:/[\w.-]+)+\.\w{1,5}\b|"
    r"(?<![\w@/])[\w-]+(?:\.[\w-]+)*\.(?:py|go|ts|js|tsx|jsx|mjs|json|jsonl|ya?ml|toml|md|txt|rst|rs|java|kt|c|h|"
    r"cc|cpp|hpp|cs|rb|php|sh|sql|"
    r"html?|css|scss|csv|tsv|xml|ini|cfg|conf|log|lock|env|pdf|docx?|xlsx?|ipynb|proto|swift|gradle|vue|svelte|"
    r"png|jpe?g|svg|zip|tex)\b"
    r"|\b(?:Dockerfile|Makefile|README|CHANGELOG|LICENSE)\b"
)
URL = re.compile(r"\bhttps?://\S+|\bwww\.\S+")
_CODE = re.compile(r"`([^`\n]+)`")

_EXTRA: Mapping[str, frozenset[Kind]] = MappingProxyType(
    {
        "get": frozenset({"read"}),
        "find": frozenset({"search"}),
        "lookup": frozenset({"search", "read"}),
        "glob": frozenset({"search", "read"}),
        "show": frozenset({"read"}),
        "cat": frozenset({"read"}),
        "describe": frozenset({"read"}),
        "current": frozenset({"read"}),
        "returns": frozenset({"read"}),
        "put": frozenset({"write"}),
        "str_replace": frozenset({"write"}),
        "replacement": frozenset({"write"}),
        "mail": frozenset({"send"}),
        "exec": frozenset({"run"}),
        "eval": frozenset({"run"}),
        "shell": frozenset({"run"}),
        "evaluate": frozenset({"run"}),
        "order": frozenset(),
        "test": frozenset({"run"}),
        "report": frozenset(),
        "file": frozenset(),
        "record": frozenset(),
        "log": frozenset(),
        "list": frozenset({"read"}),
        "set": frozenset({"control", "write"}),
        "store": frozenset({"write"}),
        "remember": frozenset({"write"}),
        "handoff": frozenset({"send"}),
        "handover": frozenset({"send"}),
        "cancel": frozenset({"delete", "book"}),
        "schedule": frozenset({"book", "create"}),
        "plus": frozenset(),
        "sql": frozenset({"search", "read"}),
    }
)
_NOUNS_TOO = frozenset({
    "email", "e-mail", "mail", "message", "text", "order", "record", "log", "post", "issue", "report", "file", "book",
    "schedule", "process", "share", "transfer", "reply",
})  # fmt: skip
_PARTS = re.compile(r"(?:aus|ein|an|ab|auf|um|zu|vor|weiter)(?=\w{5})| .*")
"""What comes off a German verb: `ausschalten`, `schalte ein`."""
_ELSEWHERE = {bare(_PARTS.sub("", word)): kinds for word, kinds in ELSEWHERE[0].items()}
_ELSEWHERE |= {bare(word): kinds for table in ELSEWHERE[:-2] for word, kinds in table.items() if " " not in word}
_ELSEWHERE_CJK = {word: kinds for table in ELSEWHERE[-2:] for word, kinds in table.items() if len(word) > 1}
_OPENING_CJK = 12
_FITTING: Mapping[Kind, frozenset[Kind]] = MappingProxyType(
    {
        "search": frozenset({"search", "read"}),
        "read": frozenset({"read", "search"}),
        "write": frozenset({"write", "create", "control"}),
        "create": frozenset({"create", "write", "book"}),
        "delete": frozenset({"delete"}),
        "send": frozenset({"send"}),
        "run": frozenset({"run"}),
        "book": frozenset({"book", "create", "delete"}),
        "control": frozenset({"control", "write", "run"}),
    }
)
_SHELL = re.compile(r"(?:^|_)(?:bash|shell|sh|zsh|terminal|powershell|pwsh|console|cmd|command|commands|exec)(?:$|_)")
_SHELL_SAYS = re.compile(
    r"\b(?:shell|bash|terminal|powershell|command[- ]line) (?:command|session|script)s?\b|\bin (?:a|the) "
    r"(?:shell|terminal|pty)\b",
    re.IGNORECASE,
)
_SHELL_KINDS: frozenset[Kind] = frozenset({"search", "read", "write", "create", "delete", "run"})
_INTERPRETER = re.compile(
    r"(?:^|_)(?:python|interpreter|jupyter|repl|ipython|execute_code|run_code|code_exec\w*|code_interpreter)(?:$|_)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STOP = frozenset({
    "the", "a", "an", "of", "and", "or", "to", "in", "on", "for", "by", "with", "from", "its", "it", "is", "are",
    "be", "as", "at", "this", "that", "these", "those", "use", "used", "using", "user", "users", "new", "tool",
    "tools", "all", "any", "one", "name", "id", "number", "string", "value", "values", "text", "data", "given",
    "specific", "current", "latest", "return", "returns", "result", "results", "action", "actions", "input", "output",
    "function", "api", "mcp", "server", "call", "out", "up", "down",
})  # fmt: skip
_OUTSIDE_TABLES: frozenset[Topic] = frozenset({"web", "file", "mail", "weather", "device", "calendar", "knowledge"})
_LONGEST_LEAD = 400
"""Characters of a description in which its first sentence is looked for."""
_TELLS_OF: frozenset[Kind] = frozenset({"search", "read"})
_TELLING: frozenset[Kind] = frozenset({"search", "send", "book", "delete"})
"""Kinds whose verbs say enough by themselves: nobody searches, sends, books or deletes inside a text."""


@dataclass(frozen=True, slots=True, eq=False)
class Ability:
    """What a declared tool can do. `shell`: runs commands; `words`: the nouns of its name and description."""

    tool: Tool
    kinds: frozenset[Kind]
    topics: frozenset[Topic]
    words: frozenset[str]
    shell: bool = False


def abilities(tools: Iterable[Tool]) -> tuple[Ability, ...]:
    """The abilities of the tools that the client runs."""
    return _abilities(tuple(tools))


@lru_cache(maxsize=8)
def _abilities(tools: tuple[Tool, ...]) -> tuple[Ability, ...]:
    """The same, told once for all the rules that ask about one request."""
    return tuple(ability(tool) for tool in tools if not tool.hosted)


def ability(tool: Tool) -> Ability:
    read = _read(tool.name, tool.description[:_LONGEST_LEAD].strip(), tool.type)
    return Ability(tool, *read)


@lru_cache(maxsize=4096)
def _read(name: str, description: str, type_: str) -> tuple[frozenset[Kind], frozenset[Topic], frozenset[str], bool]:
    """Kinds, topics, words and whether it is a shell: the same for every request that declares the tool so."""
    named = _CAMEL.sub("_", name).replace("-", "_").replace(".", "_").lower()
    parts = name_words(name)
    sentence = re.split(r"(?<=[.!?。])\s|\n", description, maxsplit=1)[0][:200]
    described = words_of(sentence)
    verbs = list(parts) + [" ".join(pair) for pair in pairwise(parts)]
    kinds = _kinds_of_all(verbs)
    kinds |= _kinds_of_all(word.lower() for word in re.findall(r"[A-Za-z-]+", sentence)[:4])
    kinds = kinds or _kinds_elsewhere(parts, sentence)
    shell = bool(_SHELL.search(named) or _SHELL_SAYS.search(sentence) or type_.startswith("bash_"))
    interpreter = not shell and bool(_INTERPRETER.search(named))
    topics = topics_of(f"{' '.join(parts)} {sentence}")
    if shell:
        kinds, topics = kinds | _SHELL_KINDS, topics | {"file", "run"}
    elif interpreter:
        kinds, topics = kinds | {"run"}, topics | {"run"}
    elif type_.startswith("text_editor"):
        kinds, topics = {"read", "write", "create"}, frozenset({"file"})
    words = (frozenset(parts) | described | words_of(" ".join(parts))) - _STOP - frozenset(BASE)
    return frozenset(kinds), topics, words, shell or interpreter


def name_words(name: str) -> list[str]:
    """The words of a tool's name, however it joins them."""
    return [word for word in _CAMEL.sub("_", name).replace("-", "_").replace(".", "_").lower().split("_") if word]


def _kinds_of_all(words: Iterable[str]) -> set[Kind]:
    """The kinds of a tool's verbs. A word that is a noun as well is one behind a verb: "list mail", "search posts"."""
    kinds: set[Kind] = set()
    before = ""
    for word in words:
        stem = word.removesuffix("s")
        if not kinds or stem not in _NOUNS_TOO or before in ("and", "or", "to"):
            kinds |= _kinds_of(word) | _kinds_of(stem) | _kinds_of(word.removesuffix("es"))
        before = word
    return kinds


def _kinds_elsewhere(parts: list[str], sentence: str) -> set[Kind]:
    """The kinds of a tool that is named or described in another language than English: `crear_pedido`."""
    said = {bare(word) for word in (*parts[:2], *re.findall(r"[^\W\d_]+", sentence.lower())[:2])}
    spelled = (word if word in _ELSEWHERE else word.removesuffix("t") for word in said)
    kinds = {kind for word in spelled for kind in _ELSEWHERE.get(word, ())}
    if not sentence.isascii():
        opening = sentence[:_OPENING_CJK]
        kinds |= {kind for word, found in _ELSEWHERE_CJK.items() if word in opening for kind in found}
    return kinds


def _kinds_of(word: str) -> frozenset[Kind]:
    found = _EXTRA.get(word)
    return BASE.get(word, frozenset()) if found is None else found


def topics_in(text: str, verb: str = "") -> frozenset[Topic]:
    """The topics of what an action is done to: its nouns, and `file` and `web` for paths and addresses."""
    topics = set(topics_of(_CODE.sub(" ", text)))
    if verb in VERB_TOPICS:
        topics.add(VERB_TOPICS[verb])
    if URL.search(text):
        topics.add("web")
    if PATH.search(URL.sub(" ", text)):
        topics.add("file")
    return frozenset(topics)


def does(able: Ability, kinds: frozenset[Kind]) -> bool:
    """Return True if a tool does anything of these kinds, whatever it does it to. One without a verb tells of its noun."""
    return any(_FITTING[kind] & (able.kinds or _TELLS_OF) for kind in kinds)


def fits(able: Ability, kinds: frozenset[Kind], verb: str, text: str) -> bool:
    """Return True if a tool could do an action of one of `kinds` to what `text` speaks of."""
    if names(able.tool, text):
        return True
    if not does(able, kinds):
        return False
    topics = topics_in(text, verb)
    shared = (
        topics & able.topics or words_of(text) & able.words or (not text.isascii() and shares_signs(text, able.tool))
    )
    if shared:
        return True
    if "sql" in able.words and "search" in kinds and not topics & _OUTSIDE_TABLES:
        return True  # tables hold whatever the user speaks of
    if able.shell:
        return not topics and bool(kinds & {"run", "delete"}) and _CODE.search(text) is not None
    if topics:
        return not able.topics and not able.words
    return bool(kinds & _TELLING & able.kinds)


_SIGNS = re.compile("[\u4e00-\u9fff]{2,}")


def shares_signs(text: str, tool: Tool) -> bool:
    """Return True if a text has a word of Chinese in common with a description, beside the verb with which that begins."""
    described = tool.description[:_LONGEST_LEAD]
    pairs = {run[at : at + 2] for run in _SIGNS.findall(described) for at in range(2, len(run) - 1)}
    return any(pair in text for pair in pairs)


_TOOL_NOUN = re.compile(
    r"\s*(?:the|your|our|my|an?) (?:[\w-]+ ){0,3}?(?:tool|function|api|calculator|converter|engine|service|"
    r"plugin|integration|"
    r"lookup|endpoint|finder|checker|search|connector|extension)\b",
    re.IGNORECASE,
)


def spoken_of(able: Iterable[Ability], text: str) -> Ability | None:
    """The tool that a text speaks of by the words of its name: "the currency converter" of `convert_currency`."""
    noun = _TOOL_NOUN.match(text)
    words = words_of(noun[0]) - _STOP - {"service", "search", "lookup", "engine"} if noun else frozenset()
    return next((one for one in able if words & words_of(" ".join(name_words(one.tool.name)))), None)


_ANYTHING = re.compile(
    r"(?:^|_)(?:mcp|call_tool|use_tool|run_tool|invoke|execute|exec|eval|batch|multi|parallel|task|tasks|agent|"
    r"subagent|agents|"
    r"delegate|handoff|transfer|dispatch|workflow|workflows|skill|skills|plugin|action|actions|request|http|api|"
    r"fetch|curl|"
    r"browser|browse|computer|playwright|puppeteer|automation|script|code|notebook|process|submit|perform|do|"
    r"run)(?:$|_)"
)
_SIDE_EFFECT: Mapping[Kind, str] = MappingProxyType(
    {
        "send": r"send|sent\b|notif|publish|deliver|inform|alert|forward|repl(?:y|ies)\b|queued|posts? (?:a|the|to)\b",
        "delete": r"delet|remov|eras|clear|purg|drop|cancel|clean|replac|overwrit|mov(?:e|ing)",
        "book": r"book(?:s|ed|ing)?\b|reserv|schedul|ordered|plac(?:e|ing)|purchas|buy|refund|pay|charg|cancel|confirm",
        "run": r"run|ran\b|execut|test|build|compil|install|deploy|start|launch|lint|format|commit|push|hook|verif|pass",
        "write": r"writ|wrote|updat|edit|chang|modif|patch|replac|sav|add|set|stor|record|creat|fix|format|appl|insert",
        "create": r"creat|add|generat|mak|made|open|writ|wrote|regist|new|insert|log|set|stor|record|sav|issu",
        "control": r"turn|switch|set|adjust|enabl|disabl|activ|lock|dim|on\b|off\b",
    }
)
"""Beginnings of words that show that a tool, or a result, has to do with an action of the kind."""
_SIDE_EFFECTS = {kind: re.compile(rf"(?<![a-z])(?:{stems})", re.IGNORECASE) for kind, stems in _SIDE_EFFECT.items()}
_REPORTED: Mapping[Kind, str] = MappingProxyType(
    {
        "send": r"sent|notified|e?-?mailed|posted|delivered|published|forwarded|submitted",
        "delete": r"deleted|removed|erased|cleared|purged|dropped|cancell?ed",
        "book": r"booked|reserved|scheduled|ordered|refunded|paid|purchased|confirmed|cancell?ed|issued",
        "run": r"passed|failed|executed|installed|deployed|compiled|started|restarted|pushed|committed|merged|exit(?:ed)?",
        "write": r"written|wrote|updated|edited|changed|modified|saved|replaced|added|created|applied|inserted",
        "create": r"created|added|opened|generated|registered|inserted|saved",
        "control": r"turned|switched|enabled|disabled|activated|set to",
    }
)
_REPORTS = {kind: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for kind, words in _REPORTED.items()}
_SHORT_RESULT = 300


def cannot(able: Ability, kinds: frozenset[Kind]) -> bool:
    """Return True if it is certain that a tool does nothing of the kinds: all it says of itself is of other kinds.

    A tool that says nothing, runs commands, or passes on what it is given can do anything; so can a side effect that its
    description speaks of.
    """
    named = _CAMEL.sub("_", able.tool.name).replace("-", "_").replace(".", "_").lower()
    if able.shell or not able.kinds or able.kinds & {"run"} or _ANYTHING.search(named):
        return False
    if does(able, kinds):
        return False
    return not _tells(_SIDE_EFFECTS, f"{named.replace('_', ' ')} {able.tool.description}", kinds)


def reports(result: str, kinds: frozenset[Kind]) -> bool:
    """Whether a result may report an action of the kinds: by a finished form in a long text, by any word in a short one."""
    return _tells(_SIDE_EFFECTS if len(result) <= _SHORT_RESULT else _REPORTS, result, kinds)


def _tells(patterns: Mapping[Kind, re.Pattern[str]], text: str, kinds: frozenset[Kind]) -> bool:
    return any(kind not in patterns or patterns[kind].search(text) is not None for kind in kinds)


def names(tool: Tool, text: str) -> bool:
    """Return True if a text names the tool: `search_orders`, in code or plain, with or without its case."""
    name = tool.name
    if len(name) < 3 or name.lower() not in text.lower():
        return False
    spelled = re.escape(name)
    if "_" in name or "-" in name or "." in name or _CAMEL.search(name):
        return re.search(rf"(?<![\w/]){spelled}(?!\w)", text, re.IGNORECASE) is not None
    return re.search(rf"`{spelled}(?:\(\))?`|\b{spelled} (?:tool|function)\b", text, re.IGNORECASE) is not None


def matching(able: Iterable[Ability], kinds: frozenset[Kind], verb: str, text: str) -> Iterator[Ability]:
    return (one for one in able if fits(one, kinds, verb, text))
