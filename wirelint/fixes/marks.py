"""What stands at a bracket: most of them begin nothing that any rewriter looks for.

Theory of operation. Code, HTML and Markdown are full of brackets, and so is markup that leaks. What follows a bracket, up
to the end of the first word, tells nearly all of the former from all of the latter. Whether it does is asked of the very
patterns by which the rewriters find their markers, as a beginning of which that little text may stand or not; and since
the same few words stand behind the brackets of a text again and again, it is seldom asked twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from wirelint.dialects import OPENERS, may_begin
from wirelint.dialects.openers import has_name, heads
from wirelint.dialects.views import plain_view
from wirelint.text.control_tokens import may_become_token
from wirelint.text.fabricated_results import may_become_marker
from wirelint.text.thinking import may_become_tag

MARKS = "<["
"""The brackets that are told so."""
_PIECE = re.compile(r"[<\[][<\[ \t/]{0,3}([\w:.-]{0,64})(?![\w:.-])[\s\S]?")
"""As much of a text as is looked at: blanks, or the sign of an end, a word, and the character behind it."""
_BEFORE_NAMES = {head[0] for opener in OPENERS.kinds["literal"] if has_name(opener) for head in heads(opener)}


def look(text: str, at: int, names: Collection[str]) -> bool | None:
    """Whether something may begin at a bracket, where tools of certain names are declared. None: more text will tell."""
    piece = _PIECE.match(text, at)
    if piece is None:
        return True
    word, end = piece[1], piece.end()
    cut = end == len(text) and end == piece.end(1)
    named = text[at] in _BEFORE_NAMES and (word in names or (cut and any(name.startswith(word) for name in names)))
    if not named and _begins_nothing(piece[0]):
        return False
    return None if cut else True


@lru_cache(maxsize=4096)
def _begins_nothing(piece: str) -> bool:
    shadow = plain_view(piece).shadow
    if may_begin(shadow):
        return False
    return not (may_become_token(shadow) or may_become_tag(shadow) or may_become_marker(shadow))
