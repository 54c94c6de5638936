"""What stays the same about a finding when the same traffic is recorded again.

The rule, whom it blames, the kind of place, and the evidence without all that changes from run to run: ids, numbers,
times, the words of a model. So the second of two calls with the same fault has the fingerprint of the first, and a fault of
another tool has one of its own.
"""

from __future__ import annotations

import hashlib
import re

from wirelint.rule import Finding

_PASSAGE = re.compile(r"'[^']*\s[^']*'|\"[^\"]*\s[^\"]*\"")
"""Quoted text of several words: what a model or a person said."""
_STRUCTURE = re.compile(r"[{\[].*", re.DOTALL)
"""What is quoted of JSON and of Python, up to the end: it may be shortened anywhere."""
_MINTED = re.compile(r"(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9]+[A-Za-z0-9_-]{7,}")
"""Words with a digit in them, long enough to be an id."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_STEP = re.compile(r"/\d+(?=/|$)")
_LENGTH = 16


def fingerprint(finding: Finding) -> str:
    """Sixteen hexadecimal digits."""
    said = "\n".join((finding.code, finding.layer, finding.side, place_pattern(finding), evidence(finding)))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def place_pattern(finding: Finding) -> str:
    """The place with `*` for the numbers of messages, calls and choices: `/messages/*/tool_calls/*`."""
    return _STEP.sub("/*", finding.pointer or "")


def evidence(finding: Finding) -> str:
    """The message without what is different in every run."""
    text = _STRUCTURE.sub("…", _PASSAGE.sub("…", finding.message))
    return " ".join(_NUMBER.sub("#", _MINTED.sub("#", text)).split())
