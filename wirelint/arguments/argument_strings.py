"""The strings in the arguments of a call, with their names, and which of them are data that a tool takes as it is."""

from __future__ import annotations

from collections.abc import Iterator

from wirelint.model import Json

_DATA = frozenset({
    "code", "command", "cmd", "content", "contents", "data", "diff", "file_text", "html", "input_text", "insert_text",
    "markdown", "new_content", "new_str", "new_string", "newstring", "old_str", "old_string", "oldstring", "patch",
    "pattern", "regex", "replacement", "script", "source", "template", "xml",
})  # fmt: skip
_PLACES = frozenset({
    "path", "file_path", "filepath", "file", "filename", "file_name", "target_file", "uri", "notebook_path",
})  # fmt: skip


def strings(value: Json) -> Iterator[tuple[str, str]]:
    """All strings in a JSON value in order, keys too, each with the dotted name it stands under."""
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        path, item = waiting.pop()
        match item:
            case str():
                yield path, item
            case list():
                waiting += [(path, element) for element in reversed(item)]
            case dict():
                for key, element in reversed(item.items()):
                    below = f"{path}.{key}" if path else key
                    waiting += ((below, element), (below, key))
            case _:
                pass


def is_data(path: str) -> bool:
    """Whether a value is by its name something that the tool stores, runs or searches for as it is."""
    return path.rsplit(".", 1)[-1].lower() in _DATA


def writes_file(arguments: Json) -> bool:
    """Whether a call names a place to write to or read from: its texts are then the text of a file."""
    return isinstance(arguments, dict) and any(key.lower() in _PLACES for key in arguments)
