r"""Text in which nothing that any rewriter looks for can begin.

Nearly all text of nearly all replies is prose in the middle of a line. A rewriter has to know of it, for what it decides
later, but not now: no marker stands in it, its end is the beginning of none, and it opens no line. The chain hands such
text to the rewriters later, in one piece. What counts as quiet is said here, once; whoever makes a rewriter of text that
acts on anything else has to say so here.
"""

from __future__ import annotations

import re

from wirelint.repair import Rewriter

_LOUD = re.compile(
    # brackets of tags and tokens, and what stands for them in a detokeniser's spelling or in an escape
    "[<>\\[\\]&\\\\|｜‖▁◁▷\u200b\u2060\ufeff"
    # line ends: labels, headers and bare JSON begin lines
    "\n\r\x0b\x0c\x85\u2028\u2029]"
    # the one word that begins a call, and what may become it
    r"|functions|(?<![\w.=/-])f(?:u(?:n(?:c(?:t(?:i(?:on?)?)?)?)?)?)?\Z"
)


def is_quiet(text: str) -> bool:
    """Whether text that goes on in the middle of a line can wait."""
    return _LOUD.search(text) is None


def in_line(text: str, before: bool) -> bool:
    """Whether a line has begun with more than white space, after `text`; `before` says whether one had."""
    line = text.rpartition("\n")[2]
    return bool(line.strip()) or (before and line is text)


def is_patient(rewriter: Rewriter) -> bool:
    """Whether a rewriter may get quiet text late: it says so, or text is nothing to it at all."""
    return getattr(rewriter, "patient", False) or not getattr(rewriter, "heeds_text", True)
