"""What can be seen without a request: each problem with its cure."""

from __future__ import annotations

import datetime
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build import some
from tests.live.certificates import make_authority
from tests.tables import rows, tables
from wirelint.launch import doctor
from wirelint.launch.doctor import Check, Trial, interpreter_of, judge
from wirelint.launch.environment import CA_FILE, without_proxies

TABLES = tables(__file__)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("confdir")
    made, _ = make_authority(folder)
    made.rename(folder / CA_FILE)
    return folder


@rows(TABLES["hidden"])
def test_hidden_hosts(given: dict[str, str], state: str, words: str) -> None:
    check = doctor.hidden_hosts(given)
    assert (check.state, words in check.found, bool(check.cure)) == (state, True, state == "problem")


@rows(TABLES["urls"])
def test_base_urls(given: dict[str, str], state: str, words: str) -> None:
    [check] = doctor.base_url_variables(given)
    assert (check.state, words in check.found) == (state, True), check


def test_proxies(taken: int, confdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_CONNECT", 0.2)

    def found(**given: str) -> dict[str, Check]:
        return {check.name: check for check in doctor.proxy_variables(given, confdir)}

    assert found()["proxy variables"].state == "ok"
    assert "not a mitmproxy" in found(https_proxy=f"http://127.0.0.1:{taken}")["HTTPS_PROXY"].found
    assert "nothing listens" in found(HTTP_PROXY="http://127.0.0.1:1")["HTTP_PROXY"].found
    assert found(HTTP_PROXY="http://[")["HTTP_PROXY"].state == "problem"
    assert "SOCKS" in found(ALL_PROXY="socks5://127.0.0.1:1")["ALL_PROXY"].found
    differ = found(HTTPS_PROXY="http://a:1", https_proxy=f"http://me:secret@127.0.0.1:{taken}")["HTTPS_PROXY"]
    assert "secret" not in differ.found


DEAD = "http://127.0.0.1:1"


@pytest.mark.parametrize("names", [("https_proxy",), ("HTTP_PROXY", "HTTPS_PROXY", "https_proxy"), ("ALL_PROXY",)])
def test_a_dead_proxy_is_one_problem_whose_cure_names_every_variable(names: tuple[str, ...], tmp_path: Path) -> None:
    [check] = doctor.proxy_variables(dict.fromkeys(names, DEAD), tmp_path)
    assert f"unset {' '.join(names)} and" in check.cure


def test_a_port(taken: int) -> None:
    assert doctor.port(taken, {}).state == "problem"
    assert doctor.port(taken, {"https_proxy": f"http://127.0.0.1:{taken}"}).state == "ok"


def test_the_authority_and_the_clock(tmp_path: Path, confdir: Path) -> None:
    def states(folder: Path, days: int) -> list[tuple[str, str]]:
        now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        return [(check.name, check.state) for check in doctor.authority(folder, now)]

    assert states(confdir, 0) == [("authority", "ok"), ("clock", "ok")]
    assert states(confdir, -9) == [("clock", "problem")]
    assert states(confdir, 4000) == [("authority", "problem")]
    assert states(tmp_path, 0) == [("authority", "problem")]
    (tmp_path / CA_FILE).write_text("nothing")
    assert states(tmp_path, 0) == [("authority", "problem")]


@rows(TABLES["shebangs"])
def test_who_runs_a_command(head: str, runner: str, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text(head)
    tool.chmod(0o755)
    found = some(interpreter_of("tool", f"{tmp_path}{os.pathsep}{os.environ['PATH']}"))
    assert Path(found).name == runner


REFUSED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"


def test_the_cure_for_a_lack_of_trust_keeps_who_was_trusted_and_works_a_second_time(tmp_path: Path) -> None:
    system, authority, bundle = (tmp_path / name for name in ("system.pem", "own.pem", "wirelint-bundle.pem"))
    system.write_text("SYSTEM\n")
    for trusted, begin in ((system, "OLD\n"), (bundle, "NEW\n")):
        authority.write_text(begin)
        check = judge("curl", "curl", REFUSED, Trial({"CURL_CA_BUNDLE": str(trusted)}, authority))
        command = check.cure.removesuffix(", or use wirelint run")
        subprocess.run(["sh", "-ec", command], check=True, timeout=10)
    assert bundle.read_text() == "SYSTEM\nOLD\nNEW\n"


def test_captures(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert doctor.captures(str(tmp_path / "new" / "deeper")).state == "ok"
    assert doctor.captures(str(tmp_path / "file")).state == "problem"
    assert doctor.captures("").state == "skipped"
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.geteuid():
        assert doctor.captures(str(tmp_path / "closed")).state == "problem"


def test_a_dead_proxy_is_no_longer_named_when_clients_are_tried() -> None:
    given = {"HTTPS_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1", "PATH": "/bin"}
    assert without_proxies(given) == {"PATH": "/bin"}
