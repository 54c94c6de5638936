"""The APIs that wirelint understands. To add one, write its module and list its `ApiSpec` in `APIS`."""

from __future__ import annotations

from collections.abc import Mapping

from wirelint.apis import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    mcp,
    ollama,
    openai_chat,
    openai_completions,
    openai_responses,
)
from wirelint.apis.reading import ApiSpec as ApiSpec
from wirelint.apis.reading import ReplyReader as ReplyReader
from wirelint.apis.reading import ReplyWriter as ReplyWriter
from wirelint.model import Json

APIS: tuple[ApiSpec, ...] = (
    anthropic.API,
    bedrock.API,
    openai_completions.API,
    openai_completions.DEEPINFRA,
    openai_responses.API,
    ollama.CHAT_API,
    ollama.GENERATE_API,
    cohere.API,
    gemini.API,
    openai_chat.MISTRAL,
    openai_chat.API,
    mcp.API,
)
"""In the order in which they are tried: those with narrow claims first."""

_BY_NAME = {api.name: api for api in APIS}


def by_name(name: str) -> ApiSpec | None:
    return _BY_NAME.get(name)


def channel_of(name: str) -> str:
    """Return the channel of an API: `model`, or `mcp` for a tool server (MCP)."""
    api = _BY_NAME.get(name)
    return api.channel if api is not None else "model"


def as_object(document: Json) -> dict[str, Json]:
    """Return a request's body as an object. An array's elements get their numbers as names, so that pointers stay valid."""
    if isinstance(document, list):
        return {str(number): item for number, item in enumerate(document)}
    return document if isinstance(document, dict) else {}


def recognise(method: str, path: str, headers: Mapping[str, str], body: Json, host: str = "") -> ApiSpec | None:
    """Return the API of a request; None for other traffic. `path` is without the query.

    `host` is that of the URL: HTTP/2 has no such header, and recordings leave it out.
    """
    path, method = path.rstrip("/"), method.upper()
    if method != "POST" or not isinstance(body, dict):
        return next((api for api in APIS if api.claims_other(method, path, headers, body)), None)
    if host and "host" not in headers:
        headers = {**headers, "host": host}
    return next((api for api in APIS if api.paths.search(path) and api.claims(path, headers, body)), None)


def recognise_reply(document: Json) -> ApiSpec | None:
    """Return the API of a reply whose request is lost."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return None
    return next((api for api in APIS if api.claims_reply(document)), None)
