"""Traffic that looks like a model's or a tool's and is of no API that is read: which, and why nobody can judge it.

Theory of operation. Such an exchange passes untouched and is recorded with the reason, so that a gap in what is understood
can be seen. What is none of it (pages, pictures, other services) has to cost next to nothing: bytes are searched for a few
names before anything is decoded. Only what is posted counts. It shows itself by its path, where that is no other
service's; by a vendor's host together with a member that asks something of a model; elsewhere by members that only
inference has: a model and what it is asked, messages with roles, a prompt with the limits of its continuation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from wirelint.apis.reading import document_of, mapping, mappings
from wirelint.model import Json

__all__ = ["is_text", "unknown_because"]

_HOSTS = re.compile(
    r"(?:\A|\.)(?:openai\.com|openai\.azure\.com|services\.ai\.azure\.com|inference\.ai\.azure\.com|anthropic\.com|"
    r"generativelanguage\.googleapis\.com|aiplatform\.googleapis\.com|cloudcode-pa\.googleapis\.com|mistral\.ai|"
    r"cohere\.(?:com|ai)|deepinfra\.com|openrouter\.ai|groq\.com|together\.(?:xyz|ai)|fireworks\.ai|deepseek\.com|x\.ai|"
    r"moonshot\.(?:ai|cn)|dashscope(?:-intl)?\.aliyuncs\.com|bigmodel\.cn|z\.ai|minimaxi?\.(?:io|com|chat)|perplexity\.ai|"
    r"cerebras\.ai|huggingface\.co|replicate\.com|api\.nvidia\.com|models\.github\.ai|githubcopilot\.com|sambanova\.ai|"
    r"novita\.ai|hyperbolic\.xyz|ai21\.com|voyageai\.com|jina\.ai|ollama\.com)\Z|"
    r"\A(?:[\w-]+-)?(?:aiplatform\.googleapis\.com|bedrock-runtime\.)",
)
"""Hosts of vendors, and what ends in them."""
_PATHS = re.compile(
    r"/chat/completions\Z|/model/[^/]+/(?:invoke|converse)|"
    r":(?:(?:stream)?[gG]enerateContent|countTokens|(?:batchE|asyncBatchE|e)mbedContents?|(?:stream|server)?[rR]awPredict|"
    r"streamRawPredict|generateMessage|generateText)\Z|/messages/(?:count_tokens|batches)\Z"
)
"""Paths that no other service has."""
_ASKED = (
    "messages",
    "prompt",
    "prompts",
    "input",
    "inputs",
    "inputText",
    "contents",
    "texts",
    "chat_history",
    "instances",
)
"""Members in which a model is told what to do."""
_SAID = (*_ASKED, "message", "query", "documents", "content", "request")
"""Those that say so only where nothing but a model can be meant."""
_LIMITS = ("max_tokens", "max_new_tokens", "max_length", "n_predict", "temperature", "top_p", "top_k", "stop", "stream",
           "maxTokens", "max_gen_len", "max_tokens_to_sample", "textGenerationConfig", "parameters",
           "sampling_params")  # fmt: skip
_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "model", "function"})
_AGENTS = ("message/", "tasks/", "tools/", "agent/")
"""Methods of JSON-RPC with which agents speak to agents and to tools."""
_SIGNS = (b'"model', b'"messages"', b'"prompt', b'"input', b'"contents"', b'"jsonrpc"', b'"chat_history"')
_WAY = "no API that is understood has such a body"


def unknown_because(method: str, url: str, headers: Mapping[str, str], body: bytes) -> str:
    """Why a request that no API claims is still worth recording; empty for traffic that is none of ours.

    `body` is without content codings. `headers` are in lower case.
    """
    if method.upper() != "POST" or not body:
        return ""
    parts = urlsplit(url)
    path, host = parts.path.rstrip("/"), parts.hostname or ""
    by_path = _PATHS.search(path) is not None
    by_host = _HOSTS.search(host) is not None
    if not by_path and not by_host and not any(sign in body for sign in _SIGNS):
        return ""
    document = document_of(body)
    if not isinstance(document, dict):
        what = "a body that is no JSON object" if document is None else "a body that is a JSON array"
        return f"the path {path[-60:]} is that of a model's API, with {what}" if by_path else ""
    if by_path:
        return f"the path {path[-60:]} is that of a model's API, and {_WAY}"
    if by_host and any(document.get(name) for name in _SAID):
        return f"{host} serves models, and {_WAY}"
    return f"the body asks a model ({found}), and {_WAY}" if (found := _asks(document)) else ""


def _asks(document: Mapping[str, Json]) -> str:
    """By which members a body shows that it is for a model; empty when it does not."""
    told = [name for name in _ASKED if document.get(name)]
    if isinstance(document.get("model"), str) and told:
        return f"model, {told[0]}"
    messages = [one for _, one in mappings(document.get("messages"))]
    if messages and all(one.get("role") in _ROLES for one in messages):
        return "messages with roles"
    if isinstance(document.get("message"), str) and isinstance(document.get("chat_history"), list):
        return "message, chat_history"  # version 1 of Cohere's chat, which few still speak
    prompt = next((name for name in ("prompt", "inputs", "input", "inputText") if document.get(name)), "")
    limit = next((name for name in _LIMITS if name in document), "")
    if prompt and limit and limit != "stream" and limit != "stop":
        return f"{prompt}, {limit}"
    called = document.get("method")
    if document.get("jsonrpc") == "2.0" and isinstance(called, str) and called.startswith(_AGENTS):
        return f"JSON-RPC, {called[:40]}"
    inner = mapping(document.get("request"))
    return f"request.{found}" if inner and (found := _asks(inner)) else ""


def is_text(body: bytes) -> bool:
    """Whether a body can be read by a person: sounds, pictures and files are not worth keeping where nobody reads them."""
    if b"\0" in body[:4096]:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
