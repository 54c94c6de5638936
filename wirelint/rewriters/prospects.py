"""Whether markup that has begun may still become a call, as more of its text comes.

Theory of operation. `dialects.find` reads what is there: as soon as an opener is followed by the name of a declared tool,
it gives a block, complete or cut off. Before that there are only a few characters in question: the header of the call. This
module knows what such a header looks like, one kind of opener at a time, and lets go of anything else at the first
character that does not fit, so that prose which speaks of tags is not held back.
"""

from __future__ import annotations

import re

from wirelint.dialects import Block
from wirelint.dialects.jsontext import decode_at

_REACH = 512
"""Characters after an opener in which a call must have shown its name, JSON aside: there the name may come last."""
_JSON_REACH = 4096

_CLOSER = re.compile(r"<\s{0,3}/|[^<]*</")
_ATTRIBUTE = re.compile(
    r"\s{0,2}[\"']?[^\"'<>\n\\]{0,128}(?:[\"'](?:\s{1,4}id(?:\s?=\s?(?:[\"'][^\"'<>\n]{0,128}[\"']?)?)?)?)?\s{0,4}/?\s{0,3}"
)
_NAME = re.compile(r"(?:functions?[ .]?)?[\w.:/$-]{0,128}\s{0,8}>?\s{0,8}")
_TAG_BEGUN = re.compile(r"<[^<>]{0,256}")
_OBJECT = re.compile(r"[\[{]\s*(?:[\[{]\s*)?(?:[\"']|\\|\Z)")
_AFTER_VALUE = re.compile(r"[\s}\],`]*(?:<[^<>]{0,64})?")
_HEADER = re.compile(r"\s*[^\n<{\[\"]{0,160}")
_PUNCTUATION = re.compile(r"(?:[\s}\],)\"'`*”’»]|\\[nrt]?)*")
_ENDS_CLOSED = re.compile(r"(?:<\s{0,3}/[^<>]{1,48}>|(?:end|END)[^<>]{0,12}>|(?:&lt;|\\u003[cC])\s{0,3}/.{1,48})\Z")
_TAIL = 64
_PARAMETERS = re.compile(r"<\s{0,3}(/?)\s{0,3}(?:antml:|mm:)?(?:parameter|param|argument|arg)\b")


def may_become_call(text: str, start: int, end: int) -> bool:
    """Whether the opener at `text[start:end]`, in which no call was found, may still begin one."""
    opener, size = text[start:end], len(text) - end
    if opener.startswith(("&", "\\")):
        return size <= _REACH  # escaped: what follows is too
    if "</" in opener or _CLOSER.match(opener):
        return False
    if opener.endswith(":"):  # an object whose tag was lost
        return _may_be_object(text, text.index("{", start))
    at = end
    if opener.endswith("="):
        header = _ATTRIBUTE.match(text, at)
        at = header.end() if header is not None else at
        if at == len(text) or text[at] in "\\&":
            return len(text) - end <= _REACH
        if text[at] not in ">\n":
            return False
        at += 1
    return _may_have_body(text, at)


def _may_have_body(text: str, start: int) -> bool:
    at = _skip_space(text, start)
    if at == len(text):
        return at - start <= _REACH
    size = len(text) - at
    match text[at]:
        case "{" | "[":
            return _may_be_object(text, at)
        case "<":
            tag = _TAG_BEGUN.match(text, at)
            if text.startswith("</", at):
                return False
            return size <= _REACH and tag is not None
        case "\\" | "&":
            return size <= _REACH
        case "`":
            return text.startswith("```"[:size], at) and size <= _JSON_REACH
        case _:
            name = _NAME.match(text, at)
            if name is None or name.end() == at:
                return False
            return name.end() == len(text) or (text[name.end()] in "<{[`" and size <= _REACH)


def _may_be_object(text: str, start: int) -> bool:
    if not _OBJECT.match(text, start):
        return False
    value = decode_at(text, start)
    if value.failed:
        quoted = text.startswith(('{"', '[{"'), start) or re.match(r"[\[{\s]*\"", text[start : start + 64]) is not None
        broken = value.end + 16 < len(text)
        return (quoted and not broken) or len(text) - start <= _JSON_REACH
    return _AFTER_VALUE.fullmatch(text, value.end) is not None


def is_settled(text: str, blocks: tuple[Block, ...], held: int) -> bool:
    """Whether nothing that may follow a run of blocks can change it.

    `held` is the length of the text's end that may begin another marker.
    """
    last = blocks[-1]
    after = _PUNCTUATION.match(text, last.end)
    if after is not None and after.end() >= len(text) - held:
        return False
    if last.complete and not last.malformed:
        return True
    if _is_open_json(text, last):
        return False
    if last.complete:
        return _is_closed(text, last)
    return last.end < len(text) and _HEADER.fullmatch(text, last.end, max(len(text) - held, last.end)) is None


def _is_open_json(text: str, block: Block) -> bool:
    """Whether the block's arguments may be a string that has not ended: what closed the block would be data in it."""
    brace = text.find("{", block.start, block.end)
    if brace < 0:
        return False
    value = decode_at(text, brace)
    return value.failed and value.end >= len(text)


def _is_closed(text: str, block: Block) -> bool:
    """Whether damaged markup has all the closers that tell where its values end; without them, values may go on."""
    if _ENDS_CLOSED.search(text, max(block.start, block.end - _TAIL), block.end) is None:
        return False
    openers = closers = 0
    for tag in _PARAMETERS.finditer(text, block.start, block.end):
        closers, openers = closers + bool(tag[1]), openers + (not tag[1])
    return openers <= closers


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
