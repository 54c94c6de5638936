"""Configuration files: search, keys and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.build import REGISTRY, complaint
from tests.tables import rows, tables
from wirelint.settings import NO_CONFIG, find, load
from wirelint.tables import ConfigError

TABLES = tables(__file__)

ALL = Path(__file__).with_name("all_keys.toml").read_text(encoding="utf-8")


def test_all_keys(tmp_path: Path) -> None:
    (tmp_path / "wirelint.toml").write_text(ALL, encoding="utf-8")
    config = load(tmp_path / "wirelint.toml")
    config.check(REGISTRY)
    layer, (route,) = config.layer, config.routes
    assert (layer.select, layer.extend_select, layer.ignore) == (("LK", "ST"), ("ID301",), ("ST605",))
    assert (layer.fix, layer.fixable, layer.unfixable, layer.clean_history) == ("safe", ("LK",), ("LK103",), True)
    assert layer.severity == (("xml-leak", "warning"), ("ST", "off"))
    assert (route.host, route.model, route.path) == (("*.example.com",), ("kimi-*", "glm*"), ("/v1/*",))
    assert (route.layer.ignore, route.layer.fix, route.layer.select) == (("LK101",), "off", None)
    assert config.rules == (tmp_path / "mine",)
    assert (config.policy, config.baseline) == (tmp_path / "policies.toml", tmp_path / "known.json")
    assert config.times == (("stall", 12.0),)
    live = {"captures": str(tmp_path / "wire"), "max_body": "1m", "hold": "2.5", "redact": "off", "header": "off"}
    assert dict(config.live) == live


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "wirelint.toml").write_text('ignore = ["LK"]', encoding="utf-8")
    assert find(inner).layer.ignore == ("LK",)
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert find(inner).layer.ignore == ("LK",), "a project that says nothing of wirelint"
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.wirelint]\nignore = ["ST"]\n', encoding="utf-8")
    assert find(inner).layer.ignore == ("ST",)
    (tmp_path / "a" / "wirelint.toml").write_text('ignore = ["ID"]', encoding="utf-8")
    assert find(inner).layer.ignore == ("ID",)


def test_a_named_project_file(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[[tool.wirelint.route]]\nhost = "a"\nselect = ["LK"]\n', encoding="utf-8")
    assert [route.layer.select for route in load(path).routes] == [("LK",)]
    path.write_text("[tool.other]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: no table \[tool\.wirelint\]"):
        load(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")
    assert NO_CONFIG.source == ""


@rows(TABLES["wrong"])
def test_errors_are_one_line(text: Any, says: Any, tmp_path: Path) -> None:
    path = tmp_path / "wirelint.toml"
    path.write_bytes(text.encode("latin-1"))
    assert complaint(ConfigError, lambda: load(path).check(REGISTRY)).startswith(f"{path}: {says}")


def test_a_project_names_its_table(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text("[tool.wirelint]\nselect = ['xml-leek']\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: tool\.wirelint\.select: unknown rule"):
        load(path).check(REGISTRY)
    path.write_text("[[tool.wirelint.route]]\nhots = 'a'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: tool\.wirelint\.route\[1\]\.hots: no such key"):
        find(tmp_path)
    path.write_text("[tool]\nwirelint = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tool\.wirelint: 3 is not a table"):
        find(tmp_path)
