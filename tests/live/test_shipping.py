"""Captures that real proxies upload to a bucket: a server of moto on loopback speaks S3."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("moto", reason="needs moto, of the extra `dev`")
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

from tests.live.forked import WITHOUT
from tests.live.harness import Proxy, free_port, post, refused, running, wait_until
from tests.mock.client import make_body
from tests.tables import rows, tables
from wirelint.capture.readers import Problem, read
from wirelint.mock import MockServer

EVERY = "wirelint_ship_every=1"


class Bucket:
    """A bucket at a port of loopback, which can be reached in `serving()` only. The objects of moto outlive its server."""

    def __init__(self) -> None:
        self.port = free_port()
        self.name = f"fleet-{self.port}"
        self.url = f"s3://{self.name}/captures"
        self.option = f"wirelint_ship={self.url}"

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        server = ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        server.start()
        try:
            S3FileSystem.clear_instance_cache()
            S3FileSystem().mkdirs(self.name, exist_ok=True)
            yield
        finally:
            server.stop()

    def objects(self) -> dict[str, bytes]:
        """The contents by the name below the folder."""
        files = S3FileSystem()
        files.invalidate_cache()
        root = f"{self.name}/captures/"
        # While the first object arrives, the folder itself may be in the list.
        return {path.removeprefix(root): files.cat_file(path) for path in files.find(root) if path.startswith(root)}

    def wait_for(self, proxy: Proxy, count: int) -> dict[str, bytes]:
        def found() -> dict[str, bytes]:
            made = self.objects()
            return made if len(made) >= count else {}

        return wait_until(found, f"{count} objects", proxy)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket()
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    values = {"ENDPOINT_URL": f"http://127.0.0.1:{made.port}", "DEFAULT_REGION": "us-east-1", "MAX_ATTEMPTS": "1"}
    keys = {"ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "mine", "EC2_METADATA_DISABLED": "true"}
    for name, value in {**values, **keys}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    return made


@pytest.fixture(scope="module")
def vendor() -> Iterator[str]:
    with MockServer(seed=7) as server:
        yield server.url


def ask(proxy: Proxy, name: str) -> None:
    reply = post(proxy.port, "/v1/chat/completions", make_body("openai", stream=True), {"x-test-id": name})
    assert (reply.status, reply.complete) == (200, True)
    proxy.wait_for_record(name)


def on_disk(*folders: Path) -> dict[str, bytes]:
    """The files of captures by part and name."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes() for one in folders for path in one.glob("captures/*/[ef]*")
    }


def without_host(objects: dict[str, bytes]) -> dict[str, bytes]:
    return {name.partition("/")[2]: data for name, data in objects.items()}


def marks(folder: Path) -> list[Path]:
    return list(folder.glob("captures/*/.ship"))


def test_two_proxies_ship_to_one_bucket(bucket: Bucket, vendor: str, tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    with bucket.serving():
        with (
            running(folders[0], vendor, bucket.option, EVERY) as first,
            running(folders[1], vendor, bucket.option, EVERY) as second,
        ):
            for number in range(2):
                ask(first, f"first {number}")
                bucket.wait_for(first, 2 * number + 2)  # a part for each exchange, while the proxy runs
            ask(second, "second")
            logs = first.stop() + second.stop()
        stored = bucket.objects()
        assert without_host(stored) == on_disk(*folders)
        assert {name.partition("/")[0] for name in stored} == {socket.gethostname()}
        assert len({name.rpartition("/")[0] for name in stored}) == 3
        found = list(read([bucket.url]))
        assert [item for item in found if isinstance(item, Problem)] == []
        assert len(found) == 3
    assert not marks(folders[0]) + marks(folders[1])
    assert not [word for word in ("shipped", "Traceback", "Unclosed", "unclosed") if word in logs], logs


def test_a_bucket_that_is_away_and_comes_back(bucket: Bucket, vendor: str, tmp_path: Path) -> None:
    with running(tmp_path, vendor, bucket.option, EVERY) as proxy:
        ask(proxy, "1")
        proxy.wait_for(f"captures are not shipped to {bucket.url}: cannot be reached: .*; they stay in ")
        ask(proxy, "2")
        with bucket.serving():
            proxy.wait_for(f"captures are shipped to {bucket.url} again")
            ask(proxy, "3")
            log = proxy.stop()
            assert without_host(bucket.objects()) == on_disk(tmp_path)
    assert log.count("shipped") == 2, log
    assert len(proxy.records()) == 3
    assert not marks(tmp_path)


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_the_next_start_ships_what_is_left(bucket: Bucket, vendor: str, tmp_path: Path, end: str) -> None:
    with running(tmp_path, vendor, bucket.option) as proxy:
        ask(proxy, "1")
        if end == "killed":
            proxy.kill()
        else:
            log = proxy.stop()
            assert proxy.process.returncode == 0
            assert "1 folder of captures in " in log
            assert "not shipped yet; the next start ships them" in log
    assert len(marks(tmp_path)) == 1
    left = on_disk(tmp_path)  # a proxy that is killed may not have written the flow file yet
    assert left
    with bucket.serving(), running(tmp_path, vendor, bucket.option) as proxy:
        bucket.wait_for(proxy, len(left))
        ask(proxy, "2")
        assert without_host(bucket.objects()) == left, "the part that is written to is not shipped"
        proxy.stop()
        assert without_host(bucket.objects()) == on_disk(tmp_path)
        assert len(bucket.objects()) == len(left) + 2
    assert not marks(tmp_path)


@rows(tables(__file__)["wrong"])
def test_an_option_that_cannot_work_stops_the_start(
    options: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "wirelint[cloud]" in says:
        monkeypatch.setenv(WITHOUT, "s3fs")
    status, lines = refused(tmp_path, *options)
    assert status == 1
    (line,) = [line for line in lines if "wirelint_ship" in line]
    assert says in line
    assert "secret" not in line
