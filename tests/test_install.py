"""The wheel: built, installed without the checkout, and used."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the dependencies are those of the environment that runs the tests."""
    home = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "build", "--wheel", "--outdir", home, ROOT, cwd=home)
    assert built.returncode == 0, built.stderr[-2000:]
    (wheel,) = home.glob("*.whl")
    venv.create(home / "env")
    python = home / "env" / "bin" / "python"
    # A path file in a path that was itself added by a path file is not read: the editable checkout stays out of sight.
    (found,) = (home / "env" / "lib").glob("python*/site-packages")
    (found / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    done = run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--force-reinstall",
        wheel,
        cwd=home,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return python


@pytest.mark.install
def test_the_wheel_brings_rules_addon_and_samples(installed: Path, tmp_path: Path) -> None:
    wirelint = installed.with_name("wirelint")
    where = run(wirelint, "where", "addon", cwd=tmp_path).stdout.strip()
    assert Path(where).is_file()
    assert not Path(where).is_relative_to(ROOT)
    listed = run(wirelint, "rules", "--output-format", "json", cwd=tmp_path)
    assert listed.stdout.count('"code"') == len(list((ROOT / "rules").glob("[a-z]*.py")))
    samples = Path(where).parents[1] / "captures" / "samples"
    checked = run(wirelint, "check", "--statistics", samples, cwd=tmp_path)
    assert checked.returncode == 1, checked.stderr
    assert "xml-leak" in checked.stdout


@pytest.mark.complete  # tests/live/test_shown.py runs the demo of the checkout
@pytest.mark.install
@pytest.mark.live
def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    ran = run(installed.with_name("wirelint"), "demo", "--captures", tmp_path / "captures", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]
    assert "live and offline agree" in ran.stdout
