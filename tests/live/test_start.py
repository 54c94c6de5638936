"""Starting: from anywhere, in every tool; a value that cannot be used stops the start in one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.harness import SHIM, Upstream, refused, replying, running
from tests.live.leaks import CLEAN, ask, body_of, kind_of
from tests.live.scenes import OPENAI
from tests.selection import sampled

BEARER = "Bearer x1y2z3w4v5"

WRONG = {
    "a rule that is none": (("wirelint_select=xml-leek",), "wirelint_select=xml-leek"),
    "given twice": (("wirelint_redact=on", "wirelint_redact=off"), "wirelint_redact is given 2 times"),
    "misspelt": (("wirelint_capture=x",), "did you mean wirelint_captures?"),
    "a rule that cannot be loaded": (("wirelint_rules=own",), "xx902_broken.py:1"),
}


@pytest.mark.parametrize("name", sampled(list(WRONG), 3))
def test_a_wrong_value_stops_the_start_in_one_line(name: str, tmp_path: Path) -> None:
    options, told = WRONG[name]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "xx902_broken.py").write_text("def half(\n")
    status, lines = refused(tmp_path, *options)
    assert status == 1
    others = [line for line in lines if told not in line]
    assert len(others) == len(lines) - 1
    assert not [line for line in others if "Traceback" in line or "Error:" in line]
    assert len(lines) <= 4, lines


def test_options_of_the_configuration_file(upstream: Upstream, tmp_path: Path) -> None:
    """YAML makes numbers and booleans of what is text for us."""
    (tmp_path / "conf").mkdir()
    settings = {"wirelint_redact": False, "wirelint_max_body": 2048, "wirelint_select": ["ST604", "ID"]}
    (tmp_path / "conf" / "config.yaml").write_text(json.dumps(settings))
    upstream.scripts["large"] = replying([b"x" * 3000], content_type="application/json")
    with running(tmp_path, upstream.url) as proxy:
        ask(proxy, OPENAI, CLEAN[OPENAI, False], "large", {"authorization": BEARER})
        record = proxy.wait_for_record("large")
    assert record["end"] == "unread"
    assert record["request"]["headers"]["authorization"] == BEARER


@pytest.mark.complete
def test_a_change_of_the_script_begins_anew(upstream: Upstream, tmp_path: Path) -> None:
    """mitmproxy loads a script again when its file changes: the new instance works, the old one's captures are closed."""
    checkout = tmp_path / "checkout"
    (checkout / "addons").mkdir(parents=True)
    (checkout / "wirelint").symlink_to(SHIM.parents[1] / "wirelint")
    shim = shutil.copy(SHIM, checkout / "addons")
    record = CLEAN[OPENAI, True]
    upstream.scripts |= dict.fromkeys(("before", "after"), replying([body_of(record)], **kind_of(record)))
    with running(tmp_path, upstream.url, shim=Path(shim)) as proxy:
        ask(proxy, OPENAI, record, "before")
        proxy.wait_for_record("before")
        Path(shim).write_text(Path(shim).read_text() + "# changed\n")
        proxy.wait_for("Loading script .*inspector.py", 2)
        ask(proxy, OPENAI, record, "after")
        proxy.wait_for_record("after")
        assert not [line for line in proxy.log.splitlines() if "rror" in line]


def make_checkout(folder: Path, addon: str) -> Path:
    """Make a checkout with this text as the module of the addon; return its shim."""
    package = folder / "checkout" / "wirelint" / "addon"
    package.mkdir(parents=True)
    for path in (package.parent, package):
        (path / "__init__.py").touch()
    (package / "addon.py").write_text(addon)
    (folder / "checkout" / "addons").mkdir()
    return Path(shutil.copy(SHIM, folder / "checkout" / "addons"))


def test_missing_dependencies_are_told_in_one_line(tmp_path: Path) -> None:
    """A mitmproxy of its own environment: everything of ours is missing there but the checkout."""
    status, lines = refused(tmp_path, shim=make_checkout(tmp_path, "import a_module_that_nobody_has\n"))
    assert status == 1
    said = [line for line in lines if "no module 'a_module_that_nobody_has'" in line and "pip install" in line]
    assert len(said) == 1
    assert not [line for line in lines if "Traceback" in line]


def test_the_shim_leaves_no_trace_on_the_path(tmp_path: Path) -> None:
    """The checkout's root holds `tests` and `rules`; on the path they would shadow modules of the same name."""
    shim = make_checkout(tmp_path, "class Inspector: ...\n")
    program = (
        "import runpy, sys; before = list(sys.path); "
        f"runpy.run_path({str(shim)!r}); assert sys.path == before, sys.path; "
        "import wirelint; print(wirelint.__file__)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).parent == shim.parents[1] / "wirelint"


def test_the_folder_of_the_shim_shadows_nothing() -> None:
    """mitmproxy puts it first on the path."""
    names = {path.stem for path in SHIM.parent.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert names == {"inspector"}
    assert not names & sys.stdlib_module_names
