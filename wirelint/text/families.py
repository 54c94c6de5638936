"""Model families: the family of a model and its provider by their names on the wire, and the chat template of a prompt.

Served names differ by host (`moonshotai/kimi-k2.5`, `accounts/fireworks/models/kimi-k2p6`), so the search is only for
the part that no host changes. Names of fine-tunes, aliases and deployments have no family.

A prompt made by a chat template shows it by the token of its first turn. Its last turn names its role: if that is a user, a
tool or the system, and the turn is over, the header of the assistant is missing. In Mistral's template the close of the
user's turn is the cue by itself, and so is DeepSeek's close of a tool's output: nothing is missing there. The names are in
`lexicon/models.toml`, the templates in `lexicon/templates.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from wirelint import lexicon
from wirelint.model import Json

_PHRASES = lexicon.Phrases("families")

_BLANK = " \t\r\n"
_HOSTS: dict[str, str] = lexicon.load("models")["providers"]
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_MOST_ASKED = 16


def provider_of(host: str) -> str:
    """Return the provider at a host: its name, `local` for this machine, else the host itself."""
    host = host.lower().rstrip(".")
    if host in _LOCAL:
        return "local"
    labels = host.split(".")
    tails = (".".join(labels[start:]) for start in range(len(labels)))
    return next((_HOSTS[tail] for tail in tails if tail in _HOSTS), host)


def providers_of(url: str, body: Mapping[str, Json] | None = None) -> tuple[str, ...]:
    """Return the provider at a URL by name and host, and the providers requested of a router (`provider.only`, `order`)."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    wanted = body.get("provider") if body is not None else None
    names: list[str] = []
    if isinstance(wanted, dict):
        for key in ("only", "order"):
            listed = wanted.get(key)
            names += [name for name in (listed if isinstance(listed, list) else []) if isinstance(name, str)]
    return tuple(dict.fromkeys((provider_of(host), host.lower(), *(name.lower() for name in names[:_MOST_ASKED]))))


_FAMILIES: tuple[tuple[str, str], ...] = tuple((name, pattern) for name, pattern in lexicon.load("models")["families"])
_PATTERN = lexicon.lazy_pattern("|".join(f"(?P<f{n}>{pattern})" for n, (_, pattern) in enumerate(_FAMILIES)))
_THINKERS = re.compile("|".join(lexicon.load("models")["thinkers"]))


@lru_cache(maxsize=256)
def family(model: str) -> str | None:
    """Return the short name of a model's family; None if the name of the model shows none."""
    name = model.lower()
    found = [match.lastgroup or "" for match in _PATTERN.finditer(name)]
    return _FAMILIES[min(int(group[1:]) for group in found)][0] if found else None


@lru_cache(maxsize=256)
def thinks(model: str) -> bool:
    return _THINKERS.search(model.lower()) is not None


# --- chat templates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """The chat template of one family.

    `turn` matches the header of a turn, with the group `role`; `assistant` are the roles of the model. `ends` close a turn;
    without them a turn lasts until the next one. `header` begins the model's turn, `glue` separates turns. `anywhere`:
    text may precede the first turn (DeepSeek's system prompt).
    """

    family: str
    turn: re.Pattern[str]
    assistant: frozenset[str]
    ends: tuple[str, ...]
    header: str
    glue: str = ""
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A prompt that ends after the turn of `role` without the header of the model's turn. `text` must be appended."""

    template: ChatTemplate
    role: str
    text: str

    @property
    def sure(self) -> bool:
        return bool(self.template.ends)


def _template(table: Mapping[str, Any]) -> ChatTemplate:
    assistant, ends = frozenset(table.get("assistant", ("assistant",))), tuple(table.get("ends", ()))
    return ChatTemplate(**{**table, "turn": re.compile(table["turn"]), "assistant": assistant, "ends": ends})


TEMPLATES: tuple[ChatTemplate, ...] = tuple(map(_template, lexicon.load("templates")["templates"]))
_PHI3, _PHI4_MINI, _ZEPHYR, _GLM, _TULU = map(_template, lexicon.load("templates")["bar_templates"])

_USERS = frozenset({"user", "USER", "User", "human"})


def template_of(prompt: str, family: str | None = None) -> ChatTemplate | None:
    """Return the template that made a prompt; None for plain text. `family`: the family of the model, if known."""
    begin = _PHRASES["beginnings"].match(prompt)
    start = begin.end() if begin is not None else 0
    if not prompt.startswith(("<|user|>", "<|system|>"), start):
        for template in TEMPLATES:
            if template.turn.match(prompt, start) or (template.anywhere and template.turn.search(prompt, start)):
                return template
        return None
    # Four families use `<|user|>`.
    if "[gMASK]" in prompt[:40] or family == "glm":
        return _GLM
    if "<|end|>" in prompt:
        return _PHI4_MINI if family == "phi" and "<|end|>\n" not in prompt else _PHI3
    return _ZEPHYR if "</s>" in prompt else _TULU


def missing_header(prompt: str, family: str | None = None) -> Missing | None:
    """Return the missing header of a templated prompt; None if it is there or the template is unknown."""
    template = template_of(prompt, family)
    if template is None or _PHRASES["filling"].search(prompt) is not None:
        return None
    roles: list[str] = []
    place = 0
    for turn in template.turn.finditer(prompt):
        roles.append(turn["role"])
        place = turn.end()
    last = roles[-1]
    if last in template.assistant or _USERS.isdisjoint(roles):
        return None
    said = prompt[place:]
    bare = said.rstrip(_BLANK)
    if not _is_over(template, bare):
        return None
    return Missing(template, last, template.header if bare != said else f"{template.glue}{template.header}")


def _is_over(template: ChatTemplate, said: str) -> bool:
    """Return True if the last turn is closed, or if it has words and the template closes no turns."""
    if template.ends:
        return said.endswith(template.ends)
    if template.family == "DeepSeek" and said.endswith(("<｜tool▁outputs▁end｜>", "<｜tool▁output▁end｜>")):
        return False
    return said.endswith("</tool_response>") or (bool(said) and not said.endswith((">", "<")))
