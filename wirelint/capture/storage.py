"""Files and folders of captures, on the disk or in object storage: every input is listed and opened here, and captures
are uploaded.

A URL (`s3://bucket/folder`, `gs://`, `az://`, `https://`, …) is used through fsspec, which is optional
(`pip install 'wirelint[cloud]'`). Failures of storage are `StorageError`, an `OSError` whose message is one line.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any
from urllib.parse import unquote

from wirelint.text.escaping import printable, shorten

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?:::[A-Za-z][A-Za-z0-9+.\-]+)*://")
"""The beginning of a URL. One letter before the colon is a drive of Windows."""
_PARTS = re.compile(r"([^:]*(?:::[^:]+)*://)([^/?#]*@)?([^?#]*)([?#].*)?", re.DOTALL)
"""Scheme, user and password, host and path, query and fragment."""
_WEB = ("http://", "https://")
HEAD = 1 << 16
"""Bytes at the beginning of a file that tell its kind."""
_BLOCK = 4 << 20
"""Bytes of one request for a part of a file."""
_LONGEST = 160
_CREDENTIALS = {
    "s3": "set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; FSSPEC_S3_ANON=true for a public bucket",
    "gs": "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
    "az": "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME with a key",
}
_ALIASES = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "adl": "az"}


class Url(str):
    """A URL as it may be shown: without user, password, query and fragment. `full` has them."""

    full: str

    def __new__(cls, url: str, shown: str = "") -> Url:
        found = _PARTS.fullmatch(url)
        made = super().__new__(cls, shown or (f"{found[1]}{found[3]}" if found is not None else url))
        made.full = url
        return made


class StorageError(OSError):
    """Storage that cannot be used. `cure` is advice for the user."""

    def __init__(self, url: str, message: str, cure: str) -> None:
        super().__init__(0, f"{message} ({cure})", url)
        self.message, self.cure = message, cure


def place_of(path: str) -> str:
    """Return a path as given, or a URL whose credentials are not shown."""
    return Url(path) if is_url(path) else path


def is_url(path: str | os.PathLike[str]) -> bool:
    return isinstance(path, str) and _URL.match(path) is not None


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return True if a path is a folder. Raises StorageError; a web server has no folders."""
    if not is_url(path):
        return os.path.isdir(path)
    if str(path).startswith(_WEB):
        return False
    with _reported(path):
        files, root = filesystem_of(path)
        return bool(files.info(root)["type"] == "directory")


def size_of(path: str | os.PathLike[str]) -> int:
    """Return the size of a file in bytes, 0 if it is unknown. Raises OSError."""
    if not is_url(path):
        return os.path.getsize(path)
    with _reported(path):
        files, root = filesystem_of(path)
        return int(files.info(root).get("size") or 0)


def files_below(folder: str | os.PathLike[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield the files of a folder, then of each folder in it, as (name, path), sorted. Raises StorageError."""
    if is_url(folder):
        yield from _stored_below(folder)
        return
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = ((name, os.path.join(parent, name)) for name in sorted(names) if not name.startswith("."))
        yield [(name, path) for name, path in paths if os.path.isfile(path)]


def _stored_below(folder: str | os.PathLike[str]) -> Iterator[list[tuple[str, str]]]:
    with _reported(folder):
        files, root = filesystem_of(folder)
        stored = [str(path) for path in files.find(root)]
    start = len(root.rstrip("/")) + 1
    folders: dict[tuple[str, ...], list[str]] = {}
    for path in stored:
        *parents, name = path[start:].split("/")
        if name and not any(part.startswith(".") for part in (*parents, name)):
            folders.setdefault(tuple(parents), []).append(name)
    for inner, names in sorted(folders.items()):
        yield [(name, joined(folder, "/".join((*inner, name)))) for name in sorted(names)]


def joined(folder: str | os.PathLike[str], name: str) -> str:
    """Return the path of a file or folder below a folder."""
    if not is_url(folder):
        return os.path.join(folder, name)
    shown, full = str(folder), getattr(folder, "full", str(folder))
    query = (found[4] or "") if (found := _PARTS.fullmatch(full)) is not None else ""
    return Url(f"{full.removesuffix(query).rstrip('/')}/{name}{query}", f"{shown.rstrip('/')}/{name}")


def relative(path: str, folder: str) -> str:
    """Return the path of a file below a folder."""
    return path[len(folder.rstrip("/")) + 1 :] if is_url(path) else os.path.relpath(path, folder)


def read_head(path: str) -> bytes:
    """Return the first bytes of a file. Raises OSError."""
    if not is_url(path):
        with open(path, "rb") as file:
            return file.read(HEAD)
    with _reported(path):
        files, root = filesystem_of(path)
        return bytes(files.cat_file(root, start=0, end=HEAD))


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open a file for reading, or standard input for `-`. Its first `peek` returns `HEAD` bytes, fewer only at the end.

    Opening and reading raise OSError.
    """
    with contextlib.ExitStack() as stack:
        if str(path) == "-":
            file: Any = sys.stdin.buffer
        elif not is_url(path):
            file = stack.enter_context(open(path, "rb"))
        else:
            with _reported(path):
                files, root = filesystem_of(path)
                file = files.open(root, "rb", block_size=_BLOCK) if files.info(root).get("size") else BytesIO()
            stack.enter_context(contextlib.closing(file))
        yield BufferedReader(_Filled(path, file), HEAD)


class _Filled(RawIOBase):
    """A stream whose first read returns all that is wanted, also from a pipe; the others return what is there.

    Failures of storage are `StorageError`.
    """

    def __init__(self, path: str | os.PathLike[str], file: Any) -> None:
        self._path, self._file = path, file
        self._read = file.read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _reported(self._path) if is_url(self._path) else contextlib.nullcontext():
            data = self._read(len(buffer))
        self._read = getattr(self._file, "read1", self._file.read)
        buffer[: len(data)] = data
        return len(data)


# --- uploads ----------------------------------------------------------------------------------------------------------

_WHOLE = frozenset({"s3", "gs", "az", "memory"})
"""Storage in which an object appears when all of it has arrived."""


def check_target(url: str) -> None:
    """Raise StorageError if no file can be uploaded to a URL, without a connection."""
    if str(url).startswith(_WEB):
        raise StorageError(str(url), "a web server takes no files", "name a bucket, such as s3://bucket/captures")
    with _reported(url):
        from fsspec import get_filesystem_class

        get_filesystem_class(str(url).partition("://")[0].partition("::")[0])


def upload(path: str | os.PathLike[str], url: str, name: str) -> None:
    """Upload a file as `name` below a URL, over an earlier one; it appears there as a whole.

    Raises StorageError, and OSError if the file itself cannot be read.
    """
    open(path, "rb").close()
    with _reported(url):
        files, root = filesystem_of(url)
        target = f"{root.rstrip('/')}/{name}"
        if _scheme(url) in _WHOLE:
            files.put_file(os.fspath(path), target)
            return
        folder, _, last = target.rpartition("/")
        files.makedirs(folder, exist_ok=True)
        files.put_file(os.fspath(path), f"{folder}/.{last}")
        files.mv(f"{folder}/.{last}", target)


def filesystem_of(url: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. Raises ImportError, ValueError."""
    from fsspec.core import url_to_fs

    files, root = url_to_fs(getattr(url, "full", str(url)))
    return files, str(root)


# --- failures ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reported(url: str | os.PathLike[str]) -> Iterator[None]:
    """Turn every failure of a client library into a `StorageError`: the libraries share no base class."""
    try:
        yield
    except Exception as error:
        raise StorageError(str(url), *_described(str(url), error, getattr(url, "full", str(url)))) from error


def _described(url: str, error: Exception, full: str) -> tuple[str, str]:
    """Return a message for a failure, and its cure."""
    scheme = _scheme(url)
    kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
    text = _plain(str(error) or type(error).__name__, full)
    if isinstance(error, ImportError):
        if error.name in ("fsspec", "fsspec.core") or scheme == "s3":
            return f"{scheme}:// needs fsspec and its storage", "pip install 'wirelint[cloud]'"
        return f"{scheme}:// cannot be used", text
    if isinstance(error, FileNotFoundError):
        return "no such file, folder or bucket", "check the URL"
    if "Credential" in kinds or "credential" in text.lower():
        return "no credentials", _CREDENTIALS.get(scheme, "give the storage's credentials")
    if isinstance(error, PermissionError):
        return f"access denied: {text}", "check the rights of the credentials"
    if isinstance(error, TimeoutError) or any(word in kinds for word in ("Timeout", "Connect", "Endpoint")):
        return f"cannot be reached: {text}", "check the network, the region and the endpoint"
    if isinstance(error, ValueError) and "rotocol" in text:
        return "unknown kind of storage", "use s3://, gs://, az:// or another scheme of fsspec"
    return f"cannot be used: {text}", "check the URL and the storage"


def _scheme(url: str) -> str:
    scheme = url.partition("://")[0].rpartition("::")[2].lower()
    return _ALIASES.get(scheme, scheme)


def _plain(text: str, full: str) -> str:
    """Return the text of an error in one line of bounded length, without the credentials of the URL."""
    if (found := _PARTS.fullmatch(full)) is not None:
        words: list[str] = (found[2] or "").rstrip("@").split(":")
        words += [word.partition("=")[2] or word for word in re.split("[?&#]", found[4] or "")]
        for secret in sorted({*words, *map(unquote, words)}, key=len, reverse=True):
            text = text.replace(secret, "…") if len(secret) > 2 else text
    return shorten(printable(" ".join(text.split())), _LONGEST)
