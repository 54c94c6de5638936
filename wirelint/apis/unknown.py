"""Requests to models or agents that no supported API claims, and the reason why they are recorded unchecked.

Theory of operation. Such an exchange passes unchanged and is recorded with the reason, so that gaps in the supported APIs
are visible. Other traffic (pages, pictures, other services) must cost next to nothing: the body is searched for a few names
before it is decoded. Only posted bodies count. Signs: a path that no other service has; a vendor's host with a member that
has input for a model; anywhere, members that only inference has, such as a model and its input, messages with roles, or a
prompt and a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from wirelint.jsonvalues import decode_json, mapping, mappings
from wirelint.lexicon import load
from wirelint.model import Json

_NOT_SUPPORTED = "no supported API has such a body"


@cache
def _signs() -> dict[str, Any]:
    """Return the table `inference` with its expressions compiled."""
    table = load("inference")
    hosts = rf"(?:\A|\.)(?:{'|'.join(table['hosts'])})\Z|\A(?:{'|'.join(table['prefixes'])})"
    return {
        **table,
        "hosts": re.compile(hosts),
        "paths": re.compile("|".join(table["paths"])),
        "bytes": tuple(name.encode() for name in table["bytes"]),
        "agents": tuple(table["agents"]),
    }


def unknown_because(method: str, url: str, body: bytes) -> str:
    """Return why an unclaimed request is worth recording; an empty string for other traffic.

    `body` is without content codings.
    """
    if method.upper() != "POST" or not body:
        return ""
    parts, signs = urlsplit(url), _signs()
    path, host = parts.path.rstrip("/"), parts.hostname or ""
    by_path = signs["paths"].search(path) is not None
    by_host = signs["hosts"].search(host) is not None
    if not by_path and not by_host and not any(sign in body for sign in signs["bytes"]):
        return ""
    document = decode_json(body)
    if not isinstance(document, dict):
        what = "is no JSON object" if document is None else "is a JSON array"
        return f"the path {path[-60:]} belongs to a model's API, and the body {what}" if by_path else ""
    if by_path:
        return f"the path {path[-60:]} belongs to a model's API, and {_NOT_SUPPORTED}"
    if by_host and any(document.get(name) for name in (*signs["asking"], *signs["beside_host"])):
        return f"{host} serves models, and {_NOT_SUPPORTED}"
    return f"the body is for a model ({found}), and {_NOT_SUPPORTED}" if (found := _found(document)) else ""


def _found(document: Mapping[str, Json]) -> str:
    """Return the members that show that a body is for a model; an empty string for other bodies."""
    signs = _signs()
    asking = next((name for name in signs["asking"] if document.get(name)), "")
    if isinstance(document.get("model"), str) and asking:
        return f"model, {asking}"
    messages = [one for _, one in mappings(document.get("messages"))]
    if messages and all(one.get("role") in signs["roles"] for one in messages):
        return "messages with roles"
    if isinstance(document.get("message"), str) and isinstance(document.get("chat_history"), list):
        return "message, chat_history"  # version 1 of Cohere's chat, which few servers still have
    prompt = next((name for name in ("prompt", "inputs", "input", "inputText") if document.get(name)), "")
    limit = next((name for name in signs["limits"] if name in document), "")
    if prompt and limit:
        return f"{prompt}, {limit}"
    called = document.get("method")
    if document.get("jsonrpc") == "2.0" and isinstance(called, str) and called.startswith(signs["agents"]):
        return f"JSON-RPC, {called[:40]}"
    inner = mapping(document.get("request"))
    return f"request.{found}" if inner and (found := _found(inner)) else ""


def is_text(body: bytes) -> bool:
    """Return True if a body is text. Sounds, pictures and files of unchecked exchanges are not kept."""
    if b"\0" in body[:4096]:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
