"""The tokens that the chat templates of model families put around turns, from `lexicon/tokens.toml`.

`control_tokens` searches for them. To add a family, add its table there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wirelint import lexicon


@dataclass(frozen=True, slots=True)
class Template:
    """The tokens of one chat template. `families`: who uses it. `ends` close a turn, `opens` begin one or its header."""

    families: tuple[str, ...]
    opens: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def _template(table: Mapping[str, Sequence[str]]) -> Template:
    return Template(*(tuple(table.get(field, ())) for field in ("families", "opens", "ends", "others")))


_TABLES = lexicon.load("tokens")
TEMPLATES: tuple[Template, ...] = tuple(map(_template, _TABLES["templates"]))

# What people write too: only at the edges, or in a row.
EDGE_OPENS, EDGE_ENDS, EDGE_OTHERS = (
    frozenset[str](_TABLES[name]) for name in ("edge_opens", "edge_ends", "edge_others")
)
EDGES = EDGE_OPENS | EDGE_ENDS | EDGE_OTHERS

OPENS = frozenset(token for template in TEMPLATES for token in template.opens)
ENDS = frozenset(token for template in TEMPLATES for token in template.ends)
SURE = OPENS | ENDS | frozenset(token for template in TEMPLATES for token in template.others)
