"""The command of the tests of `wirelint run`: clients of every kind, one after the other, each with its name as the model.

What they say goes to standard output as JSON: client → the text of the reply, or the error. Their base URL stands in
`TEST_BASE_URL`; the names of the clients are the arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

TOOL = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": [{"type": "function", "function": TOOL}],
}
HEADERS = {"x-wirelint-mock": "fault=xml-leak"}
URL = f"{os.environ.get('TEST_BASE_URL') or os.environ.get('OPENAI_BASE_URL', '')}/chat/completions"
FETCH = """
const [url, body, headers] = process.argv.slice(1);
const fields = {"content-type": "application/json", ...JSON.parse(headers)};
const reply = await fetch(url, {method: "POST", body, headers: fields});
console.log(await reply.text());
"""


def _text(body: str | bytes) -> str:
    return str(json.loads(body)["choices"][0]["message"]["content"])


def _spawn(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return _text(done.stdout) if not done.returncode else f"failed: {done.stderr.strip()[-300:]}"


def curl(model: str) -> str:
    fields = [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]
    data = json.dumps({"model": model, **BODY})
    return _spawn(["curl", "-sS", "-m", "10", *fields, "-H", "content-type: application/json", "-d", data, URL])


def node_fetch(model: str) -> str:
    data = json.dumps({"model": model, **BODY})
    return _spawn(["node", "--input-type=module", "-e", FETCH, URL, data, json.dumps(HEADERS)])


def urllib(model: str) -> str:
    import urllib.request

    data = json.dumps({"model": model, **BODY}).encode()
    request = urllib.request.Request(URL, data, {"content-type": "application/json", **HEADERS})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return _text(reply.read())


def requests(model: str) -> str:
    import requests

    return _text(requests.post(URL, json={"model": model, **BODY}, headers=HEADERS, timeout=10).content)


def httpx(model: str) -> str:
    import httpx

    return _text(httpx.post(URL, json={"model": model, **BODY}, headers=HEADERS, timeout=10).content)


def openai(model: str) -> str:
    import openai

    base = URL.removesuffix("/chat/completions")
    client = openai.OpenAI(base_url=base, api_key="sk-test", max_retries=0, default_headers=HEADERS)
    return str(client.chat.completions.create(model=model, **BODY).choices[0].message.content)


def anthropic(model: str) -> str:
    import anthropic

    base = URL.removesuffix("/v1/chat/completions")
    client = anthropic.Anthropic(base_url=base, api_key="sk-test", max_retries=0, default_headers=HEADERS)
    tools: Any = [{"name": TOOL["name"], "input_schema": TOOL["parameters"]}]
    message = client.messages.create(model=model, max_tokens=99, messages=BODY["messages"], tools=tools)
    return "".join(getattr(block, "text", "") for block in message.content)


CLIENTS: dict[str, Callable[[str], str]] = {
    "curl": curl,
    "urllib": urllib,
    "requests": requests,
    "httpx": httpx,
    "openai": openai,
    "anthropic": anthropic,
    "node-fetch": node_fetch,
}


def main() -> None:
    said = {}
    for name in sys.argv[1:]:
        try:
            said[name] = CLIENTS[name](name)
        except Exception as error:
            said[name] = f"failed: {type(error).__name__}: {error}"
    print(json.dumps(said))
    sys.exit(7)


if __name__ == "__main__":
    main()
