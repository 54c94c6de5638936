"""English verbs by their stems, without a table of verbs: `dimmed`, `dims` and `dimming` are of one verb.

Stems are for comparison only; that `rating` and `rate` share one with `rat` does no harm beside a second link.
"""

from __future__ import annotations

from functools import lru_cache

_IRREGULAR_FORMS = """
begin began begun|bring brought|build built|buy bought|catch caught|choose chose chosen|cut|draw drew drawn|
drive drove driven|feed fed|fly flew flown|freeze froze frozen|get got gotten|give gave given|hang hung|hold held|keep kept|
leave left|light lit|make made|move moved|pay paid|put|read|ring rang rung|run ran|sell sold|send sent|set|shoot shot|
show shown|shut|spin spun|split|take took taken|tell told|throw threw thrown|wake woke woken|wind wound|withdraw withdrew
withdrawn|write wrote written|overwrite overwrote overwritten|rewrite rewrote rewritten|reset|undo undid undone|
do did done|go went gone|find found|rebuild rebuilt|rerun reran|pull pulled|lay laid|swap swapped
"""
PARTICIPLES: frozenset[str]
"""Finished forms that do not end in -ed."""
_BASE_OF: dict[str, str] = {}
for _forms in _IRREGULAR_FORMS.replace("\n", " ").split("|"):
    _base, *_past = _forms.split()
    _BASE_OF.update(dict.fromkeys((_base, *_past), _base))
    if not _past:
        _BASE_OF[_base] = _base
_UNCHANGED = ("cut", "put", "set", "shut", "split", "reset")
PARTICIPLES = frozenset(form for form, base in _BASE_OF.items() if form != base or form in _UNCHANGED) - {
    "began", "chose", "drew", "drove", "flew", "froze", "gave", "rang", "took", "threw", "woke", "withdrew", "wrote",
    "overwrote", "rewrote", "undid", "did", "went", "moved", "pulled", "swapped", "reran",
}  # fmt: skip
PASTS = frozenset(form for form, base in _BASE_OF.items() if form != base)
_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of a word in lower case."""
    if word in _BASE_OF:
        return _stripped(_BASE_OF[word])
    for ending, least in (("ing", 3), ("ied", 2), ("ed", 3), ("ies", 2), ("es", 3), ("s", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            cut = word[: -len(ending)]
            return _stripped(f"{cut}y" if ending in ("ied", "ies") else cut)
    return _stripped(word)


def _stripped(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in _VOWELS:
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
