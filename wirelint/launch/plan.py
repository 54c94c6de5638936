"""How a command is brought to send its traffic through us."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wirelint.launch.variables import Target, base_urls

Mode = Literal["auto", "proxy", "base-url"]

_READ_PROXIES = frozenset(
    {"claude", "codex", "gemini", "curl", "wget", "git", "pip", "uv", "uvx", "aider", "deno", "bun"}
)
"""Commands that take the proxy from the environment whatever Node there is, besides all that is Python."""
_ASK = 5.0


@dataclass(frozen=True, slots=True)
class Routes:
    """Whether proxy variables are set, and which base URLs."""

    proxied: bool
    bases: Mapping[str, Target]


def routes(mode: Mode, program: str, given: Mapping[str, str], asked: Mapping[str, str]) -> Routes:
    """`auto`: the proxy, and base URLs as well where the Node that a command may use knows no proxies.

    Raises AddressError.
    """
    everywhere = mode == "base-url" or (mode == "auto" and not reads_proxies(program, given))
    bases = (
        base_urls(given, asked, everywhere=everywhere) if mode != "proxy" else base_urls({}, asked, everywhere=False)
    )
    return Routes(mode != "base-url", bases)


def reads_proxies(program: str, given: Mapping[str, str]) -> bool:
    """Return True if a program, and what it may start, can be trusted to read proxy variables."""
    name = Path(program).name.lower().removesuffix(".exe")
    if name in _READ_PROXIES or re.match(r"(python|pypy|ipython|pytest)", name):
        return True
    version = node_version(given)
    return version is None or node_reads_proxies(version)


def node_version(given: Mapping[str, str], program: str = "node") -> tuple[int, int] | None:
    """(major, minor) of the Node on the PATH; None where there is none."""
    path = shutil.which(program, path=given.get("PATH", os.defpath))
    if path is None:
        return None
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_ASK, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.match(r"v(\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found else None


def node_reads_proxies(version: tuple[int, int]) -> bool:
    """`NODE_USE_ENV_PROXY` came with 24.0, and was carried back to 22.21. https://nodejs.org/api/cli.html"""
    return version >= (24, 0) or (22, 21) <= version < (23, 0)
