"""Secrets in a reply that is streamed as the elements of one array."""

from __future__ import annotations

import json
import re

import pytest

from tests.apis.talk_google_generate_content import array, reply
from tests.build import as_record, exchange
from wirelint.capture.redact import Redactor

SECRET = "sk-ant-api03-Zx81mQv7LtPw29KdRs64HbYc0NfJe35GuAoIq7"


@pytest.mark.parametrize("step", [5, 17, 200])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut off"])
def test_a_secret_over_several_elements(step: int, cut: bool) -> None:
    said = f"The key is {SECRET}, keep it. 鍵 " + "x" * 40
    pieces = [said[start : start + step] for start in range(0, len(said), step)]
    body = array(*(reply([{"text": piece}]) for piece in pieces))
    body = body[:-30] if cut else body
    url = "/v1beta/models/gemini-2.5-pro:streamGenerateContent"
    record = as_record(exchange(url, {"contents": [{"parts": [{"text": "Which?"}]}]}, body))
    kept = (Redactor().record(record).response_body or b"").decode()
    texts = re.findall(r'"text": "([^"]*)"', kept)
    joined = "".join(texts)
    assert SECRET not in joined
    assert "[redacted:" in joined
    assert joined.startswith("The key is ")
    assert cut or [len(json.loads(kept)), "".join(texts)[-3:]] == [len(pieces), "xxx"]


def test_nothing_to_take_out() -> None:
    body = array(*(reply([{"text": word}]) for word in ("All", " is", " well")))
    record = as_record(exchange("/v1beta/models/m:streamGenerateContent", {}, body))
    assert Redactor().record(record).response_body == body.encode()
