"""What policies ask of a file system: whether there is a file or a directory under a name. Three answers, no errors."""

from __future__ import annotations

import os
import stat
from typing import Literal, Protocol

Kind = Literal["file", "dir", "other", "missing", "unknown"]
"""`unknown`: it cannot be told from here (no permission, no such machine)."""


class Disk(Protocol):
    """Asked with absolute paths. Never raises."""

    def kind(self, path: str) -> Kind: ...


class NoDisk:
    """Where no file system is to be asked, everything is unknown."""

    def kind(self, path: str) -> Kind:
        return "unknown"


class RealDisk:
    """The file system of this machine."""

    def kind(self, path: str) -> Kind:
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a name with a zero byte in it is none
            return "missing"
        except OSError:
            return "unknown"
        if stat.S_ISDIR(mode):
            return "dir"
        return "file" if stat.S_ISREG(mode) else "other"
