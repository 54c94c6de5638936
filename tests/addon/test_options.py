"""What users write, and what they are told when it cannot be used."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy import exceptions

from tests.addon.build import inspecting
from tests.build import complaint
from tests.tables import rows, tables
from wirelint.addon import options
from wirelint.fix import SAFETIES

TABLES = tables(__file__)
DEFAULTS = {option.name: option.default for option in options.OPTIONS}


def read(**given: str) -> options.Settings:
    return options.read({**DEFAULTS, **{f"wirelint_{name}": value for name, value in given.items()}})


VALUES: dict[str, dict[str, object]] = {
    "max_body": {"1024": 1024, "4k": 4096, "4K": 4096, "32m": 32 << 20, "1 GiB": 1 << 30, "2mb": 2 << 20},
    "redact": {"on": True, "ON": True, "true": True, "yes": True, "off": False, "false": False, "no": False},
    "dashboard": {"": None, "off": None, "on": 0, "9000": 9000, "65535": 65535},
    "keep_flows": {"7": 7, "all": None, "ALL": None, "5000": read().keep_flows},
}


@pytest.mark.parametrize("option", VALUES)
def test_values(option: str) -> None:
    assert {text: getattr(read(**{option: text}), option) for text in VALUES[option]} == VALUES[option]


def test_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = read()
    assert (settings.redact, settings.max_body, settings.captures) == (True, 32 << 20, tmp_path / "captures")
    assert settings.rules
    assert not (tmp_path / "captures").exists(), "made when there is something to put into it"


def test_selectors_and_folders(tmp_path: Path) -> None:
    assert [rule.code for rule in read(select="truncated-stream, ID301").rules] == ["ID301", "ST604"]
    assert not [rule for rule in read(ignore="ID,st604").rules if rule.code == "ST604" or rule.code.startswith("ID")]
    assert read(captures="").captures is None
    assert read(rules=f" {tmp_path} ,").rules


@rows(TABLES["permits"])
def test_permits(given: dict[str, str], allowed: list[str]) -> None:
    permit = read(**given).rules.default.permit
    assert bool(permit) == (given.get("fix", "off") != "off")
    found = {f"{code} {safety}" for code in ("LK101", "ID301") for safety in SAFETIES if permit.allows(code, safety)}
    assert found == set(allowed)
    assert permit.clean_history is True


def test_what_else_repairs_need() -> None:
    settings = read(fix="unsafe", clean_history="off", header="off", hold="2.5 s")
    assert (settings.rules.default.permit.clean_history, settings.header, settings.hold) == (False, False, 2.5)
    assert (read().header, read().hold) == (True, 30.0)


def test_policies(tmp_path: Path) -> None:
    path = tmp_path / "policies.toml"
    path.write_text('[[policy]]\narguments = "path"\nabsolute-path = true\n')
    (rule,) = [rule for rule in read(policy=str(path)).rules if rule.code == "AR404"]
    assert [policy.arguments for policy in rule.policies.policies] == [("path",)]  # type: ignore[attr-defined]
    path.write_text('[[policy]]\narguments = "path"\nabsolut-path = true\n')
    with pytest.raises(options.SettingError, match=r"policies\.toml: policy\[1\]: absolut-path: .* absolute-path\?"):
        read(policy=str(path))


@rows(TABLES["wrong"])
def test_what_cannot_be_used_is_told_in_one_line(option: str, value: str) -> None:
    value = value.replace("FILE", __file__).replace("NINES", "9" * 400)
    message = complaint(options.SettingError, lambda: read(**{option: value}))
    assert message.startswith(f"wirelint_{option}={value}: ")
    assert len(message.removeprefix(f"wirelint_{option}={value}")) > 20, "the cure is missing"


SETTLED: dict[str, tuple[Any, str]] = {
    "of the command line": (SimpleNamespace(val=["a"]), "a"),
    "given twice": (SimpleNamespace(val=["a", "b"]), "a,b"),
    "without a value": (SimpleNamespace(val=[]), ""),
    "a list of YAML": (["a", "b"], "a,b"),
    "a number": (7, "7"),
    "a truth": (True, "on"),
    "a falsehood": (False, "off"),
    "null": (None, ""),
}


@pytest.mark.parametrize("name", SETTLED)
def test_values_that_wait_become_text(name: str) -> None:
    given, text = SETTLED[name]
    deferred: dict[str, object] = {"wirelint_select": given, "other": 1}
    assert options.settle(deferred) is None
    assert deferred == {"wirelint_select": text, "other": 1}


def test_a_single_value_given_twice() -> None:
    deferred: dict[str, object] = {"wirelint_redact": SimpleNamespace(val=["on", "off"])}
    assert options.settle(deferred) == "wirelint_redact is given 2 times (on, off); give it once"
    assert deferred["wirelint_redact"] == "off", "mitmproxy would drop the addon for a list"


def test_a_name_that_looks_like_ours() -> None:
    assert (
        options.misspelt({"other": 1, "wirelint_capture": "x"})
        == "unknown option wirelint_capture; did you mean wirelint_captures?"
    )
    assert options.misspelt({"other": 1, "wirelint_select": "x"}) is None


def test_a_running_proxy_keeps_the_value_it_had() -> None:
    with inspecting(wirelint_max_body="4k") as (inspector, context):
        with pytest.raises(exceptions.OptionsError, match="wirelint_max_body=lots: "):
            context.configure(inspector, wirelint_max_body="lots")
        assert context.options.wirelint_max_body == "4k"
