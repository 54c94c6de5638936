"""What a parameter of a tool is for, by its name: a path, a key, an id, a host, or text that somebody writes.

Names are taken apart at underscores and capitals (`subWorkspace`, `file_path`), so that one list of words does for all
spellings. A name says only so much: what is in no list is `other`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

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
_PATH = _words(
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
    (_PATH, "path"),
    (_HOST, "host"),
    (_ADDRESS, "address"),
    (_PERSON, "person"),
    (_PROSE, "prose"),
)
