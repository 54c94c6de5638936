"""The tag that some models put around the answer after a thought: `<think>…</think><answer>…</answer>`."""

from __future__ import annotations

import re
from typing import Literal

from wirelint.text.thinking import ANSWER_CLOSER, ANSWER_OPENER, CUT_ANSWER_CLOSER, CUT_ANSWER_OPENER

_LONGEST_TAG = 16


class AnswerTag:
    """Where such a tag may open (`awaited`, right after a thought), or that one has and its end is to come (`open`)."""

    __slots__ = ("_sought", "state")

    def __init__(self) -> None:
        self.state: Literal["none", "awaited", "open"] = "none"
        self._sought = 0

    def after_thought(self, *, at_beginning: bool) -> None:
        """A thought is gone, and the text begins anew, or goes on."""
        self._sought = 0
        if at_beginning:
            self.state = "awaited"

    def opener(self, text: str, *, final: bool) -> re.Match[str] | None:
        """The tag, if the text begins with it. The state tells whether it may still come."""
        opener = ANSWER_OPENER.match(text)
        if opener is not None or (text and (final or not CUT_ANSWER_OPENER.match(text))):
            self.state = "none"
        return opener

    def opened(self) -> None:
        self.state, self._sought = "open", 0

    def closer(self, text: str) -> re.Match[str] | None:
        closer = ANSWER_CLOSER.search(text, self._sought)
        if closer is not None:
            self.state = "none"
        return closer

    def cut_closer(self, text: str) -> int | None:
        """Where the end of a text may begin the closing tag."""
        self._sought = max(len(text) - _LONGEST_TAG, 0)
        place = text.rfind("<", self._sought)
        return place if place >= 0 and CUT_ANSWER_CLOSER.match(text, place) else None
