"""A command with a private proxy: the parts of `wirelint run`, `wirelint doctor` and `wirelint demo`.

This module has the messages about addresses that cannot be bound, in one line with the cure.
"""

from __future__ import annotations

import errno
import socket

_TAKEN = (errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", errno.EADDRINUSE))
_HIGHEST = 65535


def describe_bind_error(host: str, port: int, error: OSError, cure: str) -> str:
    """Return the message for an error of binding to an address. `cure` names the option that chooses another port."""
    where = f"port {port}" if host in ("", "0.0.0.0", "::") else f"{host} port {port}"
    if error.errno in _TAKEN:
        return f"{where} is taken by another program; choose another with {cure}, or stop that program"
    if error.errno == errno.EACCES:
        return f"{where} is not allowed to this user; choose one above 1023 with {cure}"
    return f"cannot listen at {where}: {error.strerror or error}"


def find_bind_error(host: str, port: int, cure: str) -> str | None:
    """Return a message if the address cannot be bound now; None if it can."""
    if not port:
        return None
    if not 0 < port <= _HIGHEST:
        return f"{port} is not a port; choose one from 1 to {_HIGHEST} with {cure}"
    try:
        family = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            # Like asyncio: a port whose last connections have just been closed is free.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host or "0.0.0.0", port))
    except OSError as error:
        return describe_bind_error(host, port, error, cure)
    return None
