"""The telemetry of one exchange: names, errors, counts, and what hostile values become."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.addon.build import inspecting, result_of_record, with_model
from tests.addon.test_options import read
from tests.build import Talk, User
from tests.live.harness import wait_until
from tests.tables import pairs, rows, tables
from wirelint import lexicon
from wirelint.addon import options, otlp
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor

OPENAI = "https://api.openai.com/v1/chat/completions"
TABLES = tables(__file__)
METRICS = lexicon.load("telemetry")["metrics"]


def told(checked: Checked, *, content: bool = False) -> otlp.Span:
    span = otlp.describe(checked, Redactor(), content=content)
    assert span is not None
    return span


def exchange(body: Any, *, url: str = OPENAI, status: int = 200, request: dict[str, Any] | None = None) -> Checked:
    """A whole reply with this JSON body."""
    asked = {"model": "m-1", "messages": [{"role": "user", "content": "Hello"}], **(request or {})}
    sides = {
        "request": {"method": "POST", "url": url, "headers": {}, "body": json.dumps(asked)},
        "response": {"status": status, "headers": {"content-type": "application/json"}, "body": json.dumps(body)},
    }
    return result_of_record(sides)


def reply(**more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Hi"}
    return {"id": "r1", "model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **more}


@rows(TABLES["errors"])
def test_an_error_type_is_a_word_of_few_values(body: Any, status: int, expected: str | None) -> None:
    span = told(exchange(body or reply(), status=status))
    assert span.attributes.get("error.type") == expected
    assert (span.error is None) == (expected is None)
    ((_, _, point),) = [one for one in span.measurements if one[0] == "gen_ai.client.inference.duration"]
    assert point.get("error.type") == expected


@pytest.mark.parametrize("end", ["client-left", "upstream-died"])
def test_a_connection_that_ends_early_is_an_error(end: Any) -> None:
    record = Talk((User("Hello"),), text="Hi").record("openai.chat", True)
    record["response"]["body"] = record["response"]["body"][:-60]
    span = told(result_of_record(record, end, "the connection was reset"))
    assert span.attributes["error.type"] == end
    assert span.error == "the connection was reset"


@pairs(TABLES["providers"])
def test_a_provider_has_its_well_known_name(url: str, name: str) -> None:
    assert told(exchange(reply(), url=url)).attributes["gen_ai.provider.name"] == name


@rows(TABLES["usages"])
def test_tokens(usage: Any, expected: list[int | None]) -> None:
    span = told(exchange(reply(usage=usage)))
    assert [span.attributes.get(f"gen_ai.usage.{side}_tokens") for side in ("input", "output")] == expected
    counted = [value for metric, value, _ in span.measurements if metric == "gen_ai.client.token.usage"]
    assert counted == [count for count in expected if count is not None]


def test_hostile_values_are_bounded_and_can_be_encoded() -> None:
    nasty = "m\x1b[31m\u202e" + "x" * 10_000
    body = reply(id=nasty, model=nasty)
    call = {"id": nasty, "type": "function", "function": {"name": nasty, "arguments": '{"lone": "\\ud800"}'}}
    body["choices"][0]["message"] |= {"content": nasty, "tool_calls": [call]}
    span = told(with_model(exchange(body), nasty + "\ud800"), content=True)
    texts = [span.name, *(one for one in span.attributes.values() if isinstance(one, str))]
    assert all(len(text.encode()) < 70_000 and "\x1b" not in text for text in texts), "no surrogate, no escape code"
    assert len(f"{span.attributes['gen_ai.request.model']}") <= 120
    assert len(f"{span.attributes['gen_ai.response.id']}") <= 120
    assert '"lone":"' in f"{span.attributes['gen_ai.output.messages']}"


def test_of_a_long_conversation_the_end_is_exported() -> None:
    messages = [{"role": "user", "content": f"{number} " + "word " * 2_000} for number in range(40)]
    span = told(exchange(reply(), request={"messages": messages}), content=True)
    exported = json.loads(f"{span.attributes['gen_ai.input.messages']}")
    assert len(f"{span.attributes['gen_ai.input.messages']}") < 66_000
    numbers = [int(one["parts"][0]["content"].split()[0]) for one in exported]
    assert numbers == list(range(40 - len(numbers), 40))
    assert len(numbers) > 5


def test_a_known_finding_is_neither_an_event_nor_counted() -> None:
    checked = result_of_record(
        Talk((User("Hi"),), text="<think>Hm.</think>Hi").record("openai.chat", False), rules=("think-leak",)
    )
    (finding,) = checked.findings
    assert [name for name, _, _ in told(checked).measurements].count("wirelint.findings") == 1
    issue = type("Issue", (), {"known": True})
    again = told(dataclasses.replace(checked, findings=(dataclasses.replace(finding, issue=issue),)))  # type: ignore[arg-type]
    assert again.events == ()
    assert again.attributes["wirelint.findings.known"] == 1
    assert "wirelint.findings" not in [name for name, _, _ in again.measurements]


@pairs(TABLES["urls"])
def test_urls_of_collectors(given: str, url: str) -> None:
    assert read(otlp=given).otlp == url


@pytest.mark.parametrize("given", TABLES["no_urls"])
def test_what_is_no_url_of_a_collector_is_told_in_one_line(given: str) -> None:
    with pytest.raises(
        options.SettingError, match=r"^wirelint_otlp=.*write one such as http://127\.0\.0\.1:4318"
    ) as caught:
        read(otlp=given)
    assert "pw" not in str(caught.value)


def test_an_option_that_changes_leaves_nothing_behind() -> None:
    """Each value has its own thread and its own handler of the SDK's log, which is as before after the last one."""

    def threads() -> int:
        return sum(thread.name == "wirelint-otlp" for thread in threading.enumerate())

    log = logging.getLogger("opentelemetry")
    with inspecting(wirelint_otlp="http://127.0.0.1:9") as (inspector, context):
        wait_until(lambda: log.handlers, "the SDK")
        context.configure(inspector, wirelint_otlp_content="on")
        wait_until(lambda: threads() == 1, "the end of the first thread")
        assert not log.propagate
        context.configure(inspector, wirelint_otlp="")
        wait_until(lambda: threads() == 0, "the end of the second thread")
    assert (log.handlers, log.propagate) == ([], True)


def test_the_dashboard_asks_for_exported_metrics_only() -> None:
    """Names as Prometheus has them: dots become underscores, units and `_total` are appended."""
    dashboard = json.loads((Path(__file__).parents[2] / "docs" / "grafana.json").read_text())
    series = set()
    for name, row in METRICS.items():
        base = name.replace(".", "_")
        if row["kind"] == "counter":
            series.add(f"{base}_total")
        else:
            base += "_seconds" if row["unit"] == "s" else ""
            series |= {f"{base}_{part}" for part in ("bucket", "sum", "count")}
    asked = {
        word
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for word in re.findall(r"\b(?:gen_ai|wirelint|mcp)_\w+(?=\{|\[)", target["expr"])
    }
    assert len(asked) >= 6
    assert asked <= series
