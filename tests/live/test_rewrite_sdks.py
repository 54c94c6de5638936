"""Repaired replies in the hands of the real SDKs: calls, text and finish reason are what the vendor should have said.

Every scene is first read without wirelint, so that a scene which shows no fault cannot pass for a repaired one.
"""

from __future__ import annotations

import json
import ssl
from typing import Any

import anthropic
import openai
import pytest

from tests.live.harness import Proxy, Upstream
from tests.live.scenes import CASES, OPENAI, Case, Seen, judge
from tests.live.strict import assemble
from tests.selection import sampled

pytestmark = pytest.mark.live

TLS = ssl.create_default_context()
"""An SDK that is given no context loads all certificates for each client, which takes longer than the request."""
FAULTY = sampled([case for case in CASES if not case.scene.healthy], 16)
HEALTHY = sampled([case for case in CASES if case.scene.healthy], 6)


def see(case: Case, base_url: str) -> Seen:
    """One request with the SDK of the case's API, read with the SDK's own means."""
    return (_openai if case.api == OPENAI else _anthropic)(case, base_url)


def _openai(case: Case, base_url: str) -> Seen:
    request: dict[str, Any] = {**case.request, "extra_headers": case.headers}
    http = openai.DefaultHttpxClient(verify=TLS)
    with openai.OpenAI(base_url=f"{base_url}/v1", api_key="k", max_retries=0, http_client=http) as client:
        try:
            if case.stream:
                with client.chat.completions.stream(**request) as stream:
                    choice: Any = stream.get_final_completion().choices[0]
            else:
                choice = client.chat.completions.create(**request).choices[0]
        except Exception as error:  # an SDK that stumbles is what a fault looks like
            return Seen(error=f"{type(error).__name__}: {error}")
    message = choice.message
    calls = tuple((call.id, call.function.name, _decoded(call.function.arguments)) for call in message.tool_calls or ())
    reasoning = getattr(message, "reasoning_content", None)
    return Seen(message.content or "", reasoning or "", calls, choice.finish_reason)


def _anthropic(case: Case, base_url: str) -> Seen:
    request: dict[str, Any] = {**case.request, "extra_headers": case.headers}
    http = anthropic.DefaultHttpxClient(verify=TLS)
    with anthropic.Anthropic(base_url=base_url, api_key="k", max_retries=0, http_client=http) as client:
        try:
            if case.stream:
                with client.messages.stream(**request) as stream:
                    message: Any = stream.get_final_message()
            else:
                message = client.messages.create(**request)
        except Exception as error:  # an SDK that stumbles is what a fault looks like
            return Seen(error=f"{type(error).__name__}: {error}")
    blocks = message.content
    text = "".join(block.text for block in blocks if block.type == "text")
    reasoning = "".join(block.thinking for block in blocks if block.type == "thinking")
    calls = tuple((block.id, block.name, block.input) for block in blocks if block.type == "tool_use")
    return Seen(text, reasoning, calls, message.stop_reason)


def _decoded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except json.JSONDecodeError:
        return arguments


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.id)
def test_without_wirelint_the_fault_is_seen(vendor: Upstream, case: Case) -> None:
    immune = (case.api, case.stream) in case.scene.immune
    assert bool(judge(case, see(case, vendor.url))) is not immune


@pytest.mark.parametrize("case", FAULTY, ids=lambda case: case.id)
def test_a_repaired_reply_is_what_it_should_have_been(repairing: Proxy, case: Case) -> None:
    seen = see(case, repairing.url)
    assert judge(case, seen) == []
    record = repairing.wait_for_record(case.id)
    assert record["end"] == "complete"
    delivered = record["delivered"]["body"].encode()
    assert record["response"]["body"].encode() != delivered
    assert assemble(case.api, case.stream, delivered) == seen, "what a client that forgives nothing makes of it"


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.id)
def test_a_clean_reply_is_as_it_came(vendor: Upstream, repairing: Proxy, case: Case) -> None:
    direct, through = see(case, vendor.url), see(case, repairing.url)
    assert judge(case, through) == []
    assert through == direct
    record = repairing.wait_for_record(case.id)
    assert (record["findings"], "delivered" in record, "forwarded" in record) == ([], False, False)
