"""Captures in object storage: every command reads a URL like a path, and failures of storage are one line.

A server of moto on loopback speaks S3. Other file systems of fsspec are its memory, and HTTP from a server on loopback.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

from tests.build import Talk, User
from tests.cli.test_check import CLEAN, CUT, write
from tests.command import Ran, Wirelint
from tests.live.harness import Peer, Upstream, free_port
from tests.selection import sampled
from tests.tables import tables
from wirelint.capture import storage
from wirelint.capture.readers import Problem, captures_below, read

LEAK = {**Talk((User("Hello"),), text="Hello.<|im_end|>").record("openai.chat", False), "id": "leak"}
SECRET = "Zq8vKx2LmTn4"
RUN = "".join(json.dumps(one) + "\n" for one in (CLEAN, LEAK)).encode()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of captures, copies, hidden files and other files."""
    folder = tmp_path_factory.mktemp("captures") / "run"
    for name in ("b", "a/z", ".hidden"):
        (folder / name).mkdir(parents=True)
    write(folder / "last.jsonl", CLEAN, {**LEAK, "id": "leak"})
    write(folder / "b" / "exchanges.jsonl", {**CUT, "id": "cut"})
    (folder / "b" / "flows.mitm").write_bytes(b"1:x,")
    write(folder / "a" / "z" / "deep.jsonl", CLEAN)
    write(folder / ".hidden" / "no.jsonl", CUT)
    (folder / "package.json").write_text('{"name": "no capture"}', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def account(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Credentials and the endpoint, as a user sets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        values = {"ENDPOINT_URL": endpoint, "DEFAULT_REGION": "us-east-1", "EC2_METADATA_DISABLED": "true"}
        for name, value in {**values, "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "mine"}.items():
            patch.setenv(f"AWS_{name}", value)
        S3FileSystem.clear_instance_cache()
        yield endpoint
    S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def bucket(account: str, local: Path) -> str:
    """The URL of the folder in a bucket."""
    files = S3FileSystem()
    files.mkdir("traffic")
    for path in local.rglob("*"):
        if path.is_file():
            files.pipe(f"traffic/team/run/{path.relative_to(local).as_posix()}", path.read_bytes())
    S3FileSystem.clear_instance_cache()
    return "s3://traffic/team/run"


@pytest.fixture
def new_clients() -> Iterator[None]:
    """Clients of the bucket are kept for the whole file; a test with another environment gets its own."""
    S3FileSystem.clear_instance_cache()
    yield
    S3FileSystem.clear_instance_cache()


COMMANDS = [
    ["check", "{}", "--output-format", "concise"],
    ["check", "{}/last.jsonl", "--statistics"],
    ["show", "{}"],
    ["show", "{}", "leak", "--wire"],
    ["stats", "{}", "--output-format", "json"],
    ["compare", "{}", "{}/last.jsonl", "--output-format", "json"],
    ["case", "{}/last.jsonl", "leak"],
    ["fix", "{}/last.jsonl", "--diff"],
    ["fix", "{}/last.jsonl", "-o", "-"],
    ["fix", "{}", "-o", "out"],
    ["fix", "{}/last.jsonl", "{}/b", "-o", "out"],
    ["export", "{}", "-o", "out.jsonl"],
    ["report", "{}", "-o", "out.html", "--title", "run"],
]


@pytest.mark.parametrize("words", sampled(COMMANDS, 5), ids=lambda words: " ".join(words))
def test_every_command_reads_a_url_like_a_path(
    wirelint: Wirelint, local: Path, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    results = []
    for place in ("p" * len(bucket), bucket):  # of one length, because lists are aligned
        home = tmp_path / ("url" if place == bucket else "path")
        home.mkdir()
        monkeypatch.chdir(home)
        if place != bucket:
            Path(place).symlink_to(local)
        ran = wirelint(*(word.replace("{}", place) for word in words))
        made = {
            path.relative_to(home).as_posix(): path.read_text(encoding="utf-8").replace(place, "PLACE")
            for path in home.rglob("*")
            if path.is_file() and path.suffix != ".html"
        }
        assert (words[0] == "report") == (home / "out.html").is_file()
        results.append((ran.status, ran.out.replace(place, "PLACE"), _counts(ran, place), made))
    expected, seen = results
    assert seen == expected
    assert expected[0] in (0, 1), expected


def _counts(ran: Ran, place: str) -> str:
    """The messages, without sizes of pages and numbers of other files, which differ."""
    text = ran.err.replace(place, "PLACE")
    return "\n".join(line.partition(" (")[0].partition("; ")[0] for line in text.splitlines())


def test_a_folder_has_the_order_of_the_disk(local: Path, bucket: str) -> None:
    below = [(storage.relative(path, str(local)), counts) for path, counts in captures_below(local)]
    assert [(storage.relative(path, bucket), counts) for path, counts in captures_below(bucket)] == below
    assert below == [
        ("last.jsonl", True),
        ("a/z/deep.jsonl", True),
        ("b/exchanges.jsonl", True),
        ("b/flows.mitm", False),
    ]


def test_memory(wirelint: Wirelint) -> None:
    fsspec.filesystem("memory").pipe("/store/run.jsonl", RUN)
    ran = wirelint("check", "memory://store", "--output-format", "concise")
    assert ran.status == 1
    assert ran.out.startswith("memory://store/run.jsonl:leak: LK102")


@pytest.mark.parametrize("words", [["export"], ["export", "--format", "parquet"], ["fix"]], ids=" ".join)
def test_output_goes_to_the_disk(
    wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = wirelint(*words, write(tmp_path / "run.jsonl", CLEAN), "-o", "s3://traffic/out.jsonl")
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert "output goes to the disk; name a file or folder there" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


@pytest.mark.parametrize("url", ["memory://uploads", "file://{}/uploads"])
def test_an_upload_appears_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """A file system without whole objects gets them under a hidden name first."""
    place = storage.place_of(url.format(tmp_path))
    made = tmp_path / "run.jsonl"
    for content in (RUN, RUN * 2):
        made.write_bytes(content)
        storage.upload(made, place, "host/part/run.jsonl")
    ((file,),) = storage.files_below(place)
    assert storage.read_head(file[1]) == RUN * 2
    if url.startswith("file"):

        def break_off(_: object, source: str, target: str) -> None:
            Path(target).write_bytes(Path(source).read_bytes()[:9])
            raise ConnectionError("gone")

        monkeypatch.setattr(LocalFileSystem, "put_file", break_off)
        with pytest.raises(storage.StorageError, match="cannot be reached: gone"):
            storage.upload(made, place, "host/part/other.jsonl")
        assert list(storage.files_below(place)) == [[file]]


# --- failures ---------------------------------------------------------------------------------------------------------

FAILURES = tables(__file__)["failures"]
"""URL, environment, what is said of it (None: nothing)."""


@pytest.mark.parametrize(
    ("name", "command"),
    [(name, "check") for name in FAILURES]
    + [("no such bucket", command) for command in sampled(("show", "stats", "export", "fix", "case", "report"), 2)],
)
@pytest.mark.usefixtures("bucket", "new_clients")
def test_a_failure_is_one_line(
    wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str
) -> None:
    url, environment, says = FAILURES[name]
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value.format(port=free_port())) if value else monkeypatch.delenv(variable)
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    monkeypatch.chdir(tmp_path)
    output = {"export": ["-o", "x.jsonl"], "fix": ["-o", "x.jsonl"], "report": ["-o", "x.html"]}
    ran = wirelint(command, url, *output.get(command, ()))
    if says is None:
        assert ran.status == 1
        return
    first, *more = ran.err.splitlines()
    assert (ran.status, ran.out) == (2, "")
    assert first.startswith(f"wirelint: {url}: {says}"), ran.err
    assert not [line for line in more if url in line and "no exchange" not in line]
    assert list(tmp_path.glob("x.*")) == []


@pytest.mark.parametrize("missing", ["fsspec.core", "s3fs"])
def test_without_the_packages(wirelint: Wirelint, bucket: str, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, "s3", raising=False)
    ran = wirelint("check", bucket)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines()[0].endswith("s3:// needs fsspec and its storage (pip install 'wirelint[cloud]')")


# --- credentials in URLs ----------------------------------------------------------------------------------------------


@pytest.fixture
def web() -> Iterator[tuple[str, list[str]]]:
    """A web server on loopback with `/run.jsonl`, and with `/broken.jsonl`, which ends early; and the requests it got."""
    seen: list[str] = []

    def serve(peer: Peer) -> None:
        seen.append(peer.target)
        is_broken = peer.target.startswith("/broken")
        is_found = is_broken or peer.target.startswith("/run")
        peer.head(200 if is_found else 403, content_length=str(len(RUN) + 9 * is_broken))
        if peer.method == "GET":
            peer.send(RUN)
        peer.close()

    upstream = Upstream(serve)
    yield f"127.0.0.1:{upstream.port}", seen
    upstream.close()


@pytest.mark.parametrize("words", [["check"], ["show"], ["show", "nothing"], ["case"], ["fix", "--diff"]], ids=" ".join)
@pytest.mark.parametrize("name", ["run", "none", "broken"])
def test_credentials_are_used_and_not_shown(
    wirelint: Wirelint, web: tuple[str, list[str]], words: list[str], name: str
) -> None:
    host, seen = web
    url = f"http://{SECRET}:{SECRET}pw@{host}/{name}.jsonl?sig={SECRET}sig"
    ran = wirelint(words[0], url, *words[1:])
    assert f"/{name}.jsonl?sig={SECRET}sig" in seen
    assert SECRET not in ran.out + ran.err
    assert f"http://{host}/{name}.jsonl" in ran.out + ran.err or (name, *words) == ("run", "case")
    assert (ran.status == 2) == (name != "run" or words == ["show", "nothing"]), ran.err


def test_a_file_that_ends_early(web: tuple[str, list[str]]) -> None:
    *_, problem = read([f"http://{web[0]}/broken.jsonl"])
    assert isinstance(problem, Problem)
    assert str(problem).startswith(f"http://{web[0]}/broken.jsonl: ")
    assert "\n" not in str(problem)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sftp://me:p@w@host/a?b=c#d", "sftp://host/a"),
        ("simplecache::https://me@host/a", "simplecache::https://host/a"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
    ],
)
def test_a_url_keeps_what_it_hides(url: str, shown: str) -> None:
    place = pickle.loads(pickle.dumps(storage.place_of(url)))
    assert isinstance(place, storage.Url)
    assert (str(place), place.full) == (shown, url)


@pytest.mark.parametrize("path", ["c://d", "a/s3://b", "-", "s3:/b", "run.jsonl"])
def test_a_path_is_no_url(path: str) -> None:
    assert not isinstance(storage.place_of(path), storage.Url)


def test_signs_of_urls_in_names() -> None:
    """A key in a bucket may hold any character."""
    names = ["a#1.jsonl", "a#2.jsonl", "b?c.jsonl", "d%20e.jsonl"]
    for name in names:
        fsspec.filesystem("memory").pipe(f"/signs/{name}", RUN)
    found = [item for item in read(["memory://signs"]) if not isinstance(item, Problem)]
    assert [record.source for record in found] == [f"memory://signs/{name}" for name in names for _ in range(2)]


def test_errors_hide_the_credentials_that_libraries_quote(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("login of me:p=a/ss word at\nmemory://x?sig=Ab12==&t=1 failed")

    monkeypatch.setattr(MemoryFileSystem, "info", fail)
    (problem,) = read([storage.place_of("memory://me:p=a%2Fss%20word@x?sig=Ab12==&t=1")])
    assert isinstance(problem, Problem)
    assert str(problem).startswith("memory://x: cannot be used: login of me:… at memory://x?sig=…&t=1 failed (")


def test_other_files_are_not_fetched(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the beginning of a file decides whether it is a capture."""
    fsspec.filesystem("memory").pipe("/big/other.json", b'{"name": "x"}' + b" " * (1 << 20))
    taken: list[int] = []
    before = MemoryFileSystem.cat_file

    def cat_file(self: MemoryFileSystem, path: str, start: int | None = None, end: int | None = None) -> bytes:
        made = bytes(before(self, path, start=start, end=end))
        taken.append(len(made))
        return made

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)
    assert list(captures_below("memory://big")) == []
    assert taken == [1 << 16]
