"""`wirelint replay`: sends the requests of captures to another provider or build, captures the replies, compares both.

Theory of operation. Each captured request becomes a job per sample: the body as captured except for the model, the path
of its API below the target's base URL, the few headers that the API defines, and a key from the environment. Threads
take jobs at the allowed rate and send them; the main thread records the replies through the store of live captures. A job
has a name made of its URL, body and number, which its record carries in `replay`:

    "replay": {"job": "5e0c…", "of": "3f2a9c11", "sample": 1}

A later run with the same output folder skips the jobs whose records have a final answer there.
"""

from __future__ import annotations

import functools
import hashlib
import os
import queue
import re
import ssl
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wirelint import __version__
from wirelint.apis import channel_of, recognise
from wirelint.capture.format import encode, is_prior, read_lines
from wirelint.capture.offline import Checked, check_record
from wirelint.capture.readers import Problem, read
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin, respond
from wirelint.capture.secrets import is_secret_parameter
from wirelint.capture.store import Piece, Store
from wirelint.cli import guided
from wirelint.cli.judge import NoRedirect
from wirelint.cli.options import Selection, inform, inform_failure
from wirelint.cli.report import print_comparison
from wirelint.engine import Engine
from wirelint.fix import Edit
from wirelint.jsonvalues import decode_json, decode_object
from wirelint.launch.environment import AddressError, read_target
from wirelint.lexicon import load
from wirelint.model import Json, Timing
from wirelint.prices import Spending, Tokens, cost, dollars, spending_line
from wirelint.rewrite.edits import apply
from wirelint.rewrite.stream import arrived
from wirelint.rule import one_line
from wirelint.settings import Scopes
from wirelint.text.escaping import counted, listed, printable, shorten
from wirelint.view.findings import annotations_of
from wirelint.view.scores import usage_of
from wirelint.view.screen import Screen
from wirelint.wire.content_coding import Decoder

_TARGETS: Mapping[str, Any] = load("apis")["targets"]
_HEADERS = {"content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta", "http-referer", "x-title"}
"""Headers that are sent as captured. Others name the client, its network or its account."""
_OPENAI = {
    "openai.chat": "/chat/completions",
    "mistral.chat": "/chat/completions",
    "openai.completions": "/completions",
    "openai.responses": "/responses",
}
_ALIKE = frozenset({"openai.chat", "mistral.chat"})
"""APIs with one form of requests."""
_KEY_HEADERS = {"anthropic.messages": "x-api-key", "google.generate_content": "x-goog-api-key"}
_TAIL = re.compile(r"/(?:v\d\w*/(?!.*/v\d\w*/)|api/(?:chat|generate)$|model/).*")
"""The path of an API below a base URL: `/v1/messages`, `/v1beta/models/NAME:generateContent`, `/api/chat`."""
_ENDPOINT = re.compile(r"/(completions|responses|messages|chat|generate|converse(-stream)?)$|:\w*[gG]enerateContent$")
"""The end of a URL that is no base URL, since it names one API."""
_MODEL_IN_PATH = re.compile(r"(/(?:models?|deployments)/)([^/:]+)")
_MARK = b"[redacted:"
_UNTRUSTED = "its certificate is not trusted"
_MOST_BODY = 64 << 20
_PIECE = 1 << 16
_REASONS_SHOWN = 3
_TURN, _DISK = 0.2, 60.0
"""Seconds between two looks for a stopped run, and in which the last records must be written."""
_TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)})
"""Statuses that say nothing about the request: a later run sends it again."""
_GOOD, _MOVED = range(200, 300), frozenset(range(300, 400))
_REFUSED = frozenset({401, 403})
_UNSERVED = frozenset({404, 405})


@dataclass(frozen=True, slots=True)
class _Job:
    """A request to send. `of`: id of the captured exchange. `headers` hold the key."""

    name: str
    of: str
    sample: int
    api: str
    model: str
    url: str
    headers: dict[str, str]
    body: bytes


class _Budget(NamedTuple):
    """Most requests, and most US dollars; None for no limit."""

    requests: int | None = None
    money: float | None = None


def _read_budgets(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> _Budget:
    """Return the limits of `--budget 200` and `--budget '$2.50'`. Raises click.BadParameter."""
    limits = _Budget()
    for text in values:
        is_money = text.startswith("$")
        try:
            amount = float(text[1:]) if is_money else int(text)
        except ValueError:
            amount = 0
        if not 0 < amount < float("inf"):
            raise click.BadParameter(f"{printable(text)}: give a number of requests, or dollars as in '$2.50'")
        limits = limits._replace(money=amount) if is_money else limits._replace(requests=int(amount))
    return limits


@guided("replay", limits={"callback": _read_budgets})
def replay(
    paths: tuple[str, ...],
    target: str,
    model: str | None,
    samples: int,
    rate: float | None,
    limits: _Budget,
    concurrency: int,
    timeout: float,
    key_env: str | None,
    output: Path | None,
    selection: Selection,
    side: str,
    output_format: str,
) -> int:
    """Send captured requests to another provider or build, and compare the replies with the captured ones.

    Requests are sent as captured, except for --model. Nothing is converted: the target must serve the API of the capture.
    Keys come from the environment. Redacted and incomplete requests are skipped and counted. The replies become a capture,
    and `wirelint compare` prints the scorecard. Interrupted or limited runs continue with the same command.
    """
    rules = selection.scopes()
    base = _base(target)
    plan = _Plan(base, model, samples, _key(base, key_env))
    jobs = plan.read(paths)
    if not jobs:
        return 2
    name = f"{urlsplit(base).netloc}{f'-{model}' if model else ''}"
    folder = output or Path("replays", re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:100])
    done = _finished(folder)
    left = [job for job in jobs if job.name not in done]
    if limits.money is not None:
        _require_prices(left)
    for reason, count in plan.skipped.items():
        inform(f"{counted(count, 'request')} skipped: {reason}")
    if len(left) < len(jobs):
        inform(f"{counted(len(jobs) - len(left), 'request')} answered by an earlier run: {folder}")
    run = _Run(folder, rules, limits, rate=rate, timeout=timeout)
    try:
        run.send(left, concurrency)
    except KeyboardInterrupt:
        run.close()
        run.tell(len(left))
        raise
    finally:
        run.close()
    run.tell(len(left))
    print_comparison(
        paths, (str(folder),), selection, side, output_format,
        candidates=lambda items: _latest(items, {job.name for job in jobs}),
    )  # fmt: skip
    return 2 if plan.problems else 1 if run.failures else 0


# --- the requests -----------------------------------------------------------------------------------------------------


def _base(target: str) -> str:
    """Return the base URL without a slash at its end. Raises click.UsageError."""
    try:
        read_target("--to", target)
    except AddressError as error:
        raise click.UsageError(str(error)) from error
    if "://" not in target or re.search(r"[^!-~]", target):
        raise click.UsageError(f"--to {printable(target)}: not a URL; write it as in --to https://api.openai.com/v1")
    return target.rstrip("/")


def _key(base: str, name: str | None) -> str:
    """Return the key for the target; empty for a host that may need none. Raises click.UsageError.

    The variable of a vendor is read for this vendor's own host only, so that no other host gets its key.
    """
    host = urlsplit(base).hostname or ""
    names = [name] if name is not None else [*_TARGETS.get(host, {}).get("keys", ())]
    found = next((value for one in names if (value := os.environ.get(one, "").strip())), "")
    if names and not found:
        other = f" or {' or '.join(names[1:])}" if len(names) > 1 else ""
        cure = "" if name is not None else ", or name another variable with --key-env"
        raise click.UsageError(f"{host} needs a key: set {printable(names[0])}{other}{cure}")
    if not found.isascii() or re.search(r"\s", found):
        raise click.UsageError(f"{printable(names[0])}: not a key; it holds blanks or other characters than ASCII")
    return found


class _Plan:
    """The jobs of captures. `skipped` counts requests by reason, `problems` inputs that could not be read."""

    def __init__(self, base: str, model: str | None, samples: int, key: str) -> None:
        self._base, self._model, self._samples, self._key = base, model, samples, key
        self._host = urlsplit(base).hostname or ""
        self._served: Sequence[str] | None = _TARGETS.get(self._host, {}).get("apis")
        self._seen = Counter[str]()
        self.skipped = Counter[str]()
        self.problems = 0

    def read(self, paths: Sequence[str]) -> list[_Job]:
        """Return the jobs. Raises click.ClickException if the captures have none."""
        jobs: list[_Job] = []
        unserved = Counter[str]()
        for item in read(paths):
            if isinstance(item, Problem):
                self.problems += 1
                inform(f"wirelint: {item}")
            elif not is_prior(item):
                try:
                    jobs += self._jobs(item)
                except _UnservedError as error:
                    unserved[str(error)] += 1
        shown = ", ".join(f"{api} ({count})" for api, count in unserved.items())
        if unserved and not jobs:
            served = f"it serves {', '.join(self._served)}" if self._served else f"{self._base} is of another API"
            lack = f"the requests are of {shown}, and {self._host} does not serve that; {served}"
            raise click.ClickException(f"{lack}: choose another --to, since requests are not converted")
        if unserved:
            self.skipped[f"of an API that {self._host} does not serve: {shown}"] += unserved.total()
        if not jobs and not self.problems:
            why = "; ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise click.ClickException(f"{', '.join(paths)}: no request to send{f': {why}' if why else ''}")
        return jobs

    def _jobs(self, record: Record) -> Iterator[_Job]:
        body = record.request_body or b""
        session = begin(record) if body else None
        request = session.request if session is not None else None
        if session is None or request is None or channel_of(session.api.name) != "model" or record.method != "POST":
            self.skipped["not a request to a model's API"] += 1
        elif _MARK in body:
            self.skipped["with redacted parts"] += 1
        elif record.missing & {"request", "tools"} or not decode_object(body):
            self.skipped["incomplete in the capture"] += 1
        elif request.is_partial:
            self.skipped["that continue a conversation stored on the server"] += 1
        else:
            yield from self._make(record, session.api.name, request.model, body)

    def _make(self, record: Record, api: str, model: str, body: bytes) -> Iterator[_Job]:
        url = self._url(record, api)
        if self._model is not None:
            body, url = _with_model(body, url, self._model)
            model = self._model
        headers = {name: value for name, value in record.request_headers if name.lower() in _HEADERS}
        headers = {name: value for name, value in headers.items() if "[redacted" not in value and value.isascii()}
        headers = {"content-type": "application/json"} | {name.lower(): value for name, value in headers.items()}
        headers |= {"accept-encoding": "identity", "user-agent": f"wirelint/{__version__}"}
        parts, base = urlsplit(url), urlsplit(self._base).path
        found = recognise("POST", parts.path, headers, decode_json(body), parts.netloc)
        is_alike = found is not None and (found.name == api or {found.name, api} <= _ALIKE)
        is_other = _ENDPOINT.search(base) is not None and parts.path != base  # the base URL belongs to another API
        if not is_alike or is_other or (self._served is not None and api not in self._served):
            raise _UnservedError(api)
        if self._key:
            name = "api-key" if self._host.endswith(".azure.com") else _KEY_HEADERS.get(api, "authorization")
            headers[name] = f"Bearer {self._key}" if name == "authorization" else self._key
        digest = hashlib.blake2b(url.encode() + b"\0" + body, digest_size=12).hexdigest()
        for sample in range(1, self._samples + 1):
            self._seen[digest] += 1
            yield _Job(f"{digest}.{self._seen[digest]}", record.id, sample, api, model, url, headers, body)

    def _url(self, record: Record, api: str) -> str:
        """Return the URL of an API below the base URL, with the captured query except for keys."""
        base, captured = urlsplit(self._base), urlsplit(record.url)
        if (suffix := _OPENAI.get(api)) is not None:
            tail = suffix
            root = base.path or "/v1"
        else:
            found = _TAIL.search(captured.path)
            tail, root = found.group() if found is not None else captured.path, base.path
            version = tail[: tail.index("/", 1)] if "/" in tail[1:] else ""
            tail = tail.removeprefix(version) if version and root.endswith(version) else tail
        path = root if root.endswith(tail) else root + tail
        pairs = [pair for pair in parse_qsl(captured.query, keep_blank_values=True) if not is_secret_parameter(pair[0])]
        query = "&".join(filter(None, (base.query, urlencode(pairs))))
        return urlunsplit((base.scheme, base.netloc, path, query, ""))


class _UnservedError(Exception):
    """The target does not serve an API, whose name is the argument."""


def _with_model(body: bytes, url: str, model: str) -> tuple[bytes, str]:
    """Return body and URL with another model, which some APIs name in the path."""
    parts = urlsplit(url)
    path = _MODEL_IN_PATH.sub(lambda found: found[1] + quote(model, safe=""), parts.path, count=1)
    if path != parts.path and "model" not in decode_object(body):
        return body, urlunsplit(parts._replace(path=path))
    return apply(body, [Edit("replace", "/model", model)]), url


def _require_prices(jobs: Sequence[_Job]) -> None:
    """Raise click.UsageError if a model has no price, so that money cannot be counted."""
    for model, url in dict.fromkeys((job.model, job.url) for job in jobs):
        if cost(Tokens(1, output=1), model, url) is None:
            where = urlsplit(url).hostname
            lack = f"no price is known for {printable(model)} at {where}"
            raise click.UsageError(f"--budget: {lack}; give a number of requests")


# --- earlier runs -----------------------------------------------------------------------------------------------------


def _finished(folder: Path) -> set[str]:
    names = set()
    for file in sorted(folder.glob("*/exchanges.jsonl")):
        for line in read_lines(file):
            match line:
                case {"replay": {"job": str(name)}, "response": {"status": int(status)}, "end": "complete"}:
                    if status not in _TRANSIENT:
                        names.add(name)
    return names


def _latest(items: Iterator[Checked], names: set[str]) -> Iterator[Checked]:
    found: dict[str, Checked] = {}
    for item in items:
        match item.record.annotations.get("replay"):
            case {"job": str(name)} if name in names:
                found[name] = item
    yield from found.values()


# --- sending ----------------------------------------------------------------------------------------------------------


def send(job: _Job, timeout: float) -> Record:
    """Send a request and return the exchange, with errors of the connection. Sample 2 of exchange `a` has the id `a.2`."""
    id_, headers = job.of if job.sample == 1 else f"{job.of}.{job.sample}", tuple(job.headers.items())
    made = Record(id_, "POST", job.url, headers, job.body, end="complete")
    body, chunks, first = bytearray(), list[tuple[float, int]](), None
    started, clock = time.time(), time.monotonic()

    def now() -> float:
        return round((time.monotonic() - clock) * 1000, 3)

    try:
        request = urllib.request.Request(job.url, job.body, job.headers, method="POST")
        try:
            response = urllib.request.build_opener(NoRedirect).open(request, timeout=timeout)
        except HTTPError as error:
            response = error
        with response:
            made = replace(made, status=response.status, response_headers=tuple(response.headers.items()))
            first, plain = now(), Decoder(response.headers.get("content-encoding"), _MOST_BODY)
            while data := response.read1(_PIECE):
                piece = plain.feed(data)
                chunks.append((now(), len(piece)))
                body += piece
            if response.length:  # the connection ended before the announced length
                raise ConnectionError(f"{response.length} bytes of the reply are missing")
    except (OSError, HTTPException, ValueError) as error:  # also of codings and headers
        reason = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
        words = getattr(reason, "strerror", None) or f"{reason}" or type(reason).__name__
        if isinstance(reason, ssl.SSLCertVerificationError):
            words = f"{_UNTRUSTED}: {reason.verify_message}"
        words = f"no byte for {timeout:g} s" if isinstance(reason, TimeoutError) else words
        made = replace(made, error=words, end="upstream-died")
    received = bytes(body) if made.status is not None else None
    return replace(made, response_body=received, chunks=tuple(chunks), timing=Timing(started, first, None, now()))


class _Run:
    """Sends jobs and records the replies. `failures` counts requests without a good answer, by reason."""

    def __init__(self, folder: Path, rules: Scopes, budget: _Budget, *, rate: float | None, timeout: float) -> None:
        self._folder, self._budget, self._timeout = folder, budget, timeout
        self._pause = 60 / rate if rate is not None else 0.0
        self._redactor = Redactor()
        self._store = Store(folder, self._redactor, report=lambda line: inform(f"wirelint: {line}"))
        self._engine = Engine(rules, report=inform_failure)
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._sent = 0
        self._due = 0.0
        self.answered = 0
        self.spending = Spending()
        self.failures = Counter[str]()
        self._limit = ""

    def send(self, jobs: Sequence[_Job], concurrency: int) -> None:
        """Send the jobs. Raises click.ClickException if the target answers none, KeyboardInterrupt."""
        waiting = iter(jobs)
        replies: queue.Queue[tuple[_Job, Record, threading.Event] | None] = queue.Queue()

        def work() -> None:
            try:
                while (job := self._next(waiting)) is not None:
                    taken = threading.Event()
                    replies.put((job, send(job, self._timeout), taken))
                    while not taken.wait(_TURN) and not self._stop.is_set():
                        pass  # the next request waits for the cost of this reply
            finally:
                replies.put(None)

        # Daemons: an interrupted run does not wait for open requests.
        workers = [threading.Thread(target=work, daemon=True) for _ in range(min(concurrency, len(jobs)))]
        console = Screen(sys.stderr)
        with Progress(
            TextColumn("replaying"), BarColumn(20, complete_style="cyan", finished_style="cyan"), MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"), TimeRemainingColumn(), console=console, transient=True,
            disable=not console.is_terminal or console.is_dumb_terminal,
            redirect_stdout=False, redirect_stderr=False,
        ) as progress:  # fmt: skip
            task = progress.add_task("", total=len(jobs), text="")
            for worker in workers:
                worker.start()
            running = len(workers)
            while running:
                item = replies.get()
                if item is None:
                    running -= 1
                    continue
                job, reply, taken = item
                self._take(job, reply)
                taken.set()
                text = dollars(self.spending.cost) if self.spending.priced else ""
                progress.update(task, advance=1, text=text)

    def close(self) -> None:
        """Stop sending and write what is recorded. Raises click.ClickException if something could not be written."""
        self._stop.set()
        self._store.close(_DISK)
        if lost := self._store.counts.dropped + self._store.counts.failed:
            raise click.ClickException(f"{self._folder}: {counted(lost, 'reply')} not written; name a writable -o DIR")

    def tell(self, wanted: int) -> None:
        """Print what was sent, what it cost and what is left of the `wanted` jobs."""
        if wanted:
            shown = [f"{count} × {reason}" for reason, count in self.failures.most_common()]
            failed = f", failed: {listed(shown, _REASONS_SHOWN)}" if shown else ""
            inform(f"{counted(self.answered, 'request')} answered{failed}")
        if self.spending.counted:
            inform(f"tokens: {spending_line(self.spending)}")
        if rest := wanted - self.answered - self.failures.total():
            inform(f"{self._limit or 'stopped'}: {counted(rest, 'request')} left; the same command continues")
        elif self.failures:
            inform("the same command sends those again that timed out, broke off or met a busy server")
        inform(f"capture: {self._folder}")

    def _next(self, waiting: Iterator[_Job]) -> _Job | None:
        """Return the next job when its time has come; None if no more may be sent."""
        with self._lock:
            if self._stop.is_set() or self._is_spent():
                return None
            job = next(waiting, None)
            if job is None:
                return None
            self._sent += 1
            due = self._due = max(self._due + self._pause, time.monotonic())
        return None if self._stop.wait(max(due - time.monotonic(), 0)) else job

    def _is_spent(self) -> bool:
        requests, money = self._budget.requests, self._budget.money
        if requests is not None and self._sent >= requests:
            self._limit = f"the budget of {counted(requests, 'request')} is used up"
        elif money is not None and self.spending.cost >= money:
            self._limit = f"the budget of {dollars(money)} is used up"
        return bool(self._limit)

    def _take(self, job: _Job, reply: Record) -> None:
        """Record a reply. Raises click.ClickException if the target refuses the first requests."""
        good = reply.end == "complete" and reply.status in _GOOD
        if not good:
            why = self._redactor.text(_reason(reply))
            if not self.answered and (reply.status is None or reply.status in _REFUSED | _UNSERVED | _MOVED):
                self._stop.set()
                raise click.ClickException(f"{self._redactor.url(job.url)}: {why}; {_cure(reply, job)}")
            self.failures[why] += 1
        checked = check_record(self._record(reply), self._engine, inform_failure)
        tokens, spent = usage_of(checked)
        if good:
            self.answered += 1
            self.spending.add(tokens, spent)
        note: dict[str, Json] = {"replay": {"job": job.name, "of": job.of, "sample": job.sample}}
        make = functools.partial(encode, checked.record, {**annotations_of(checked), **note})
        size = len(reply.response_body or b"") + len(job.body) + 4096
        while not self._store.put(Piece("exchanges.jsonl", make), size=size):
            time.sleep(0.1)  # the disk is slower than the network

    def _record(self, made: Record) -> Record:
        """Return the redacted record of an exchange, with the time of its first token."""
        made = replace(made, source=str(self._folder))
        session = begin(made)
        if session is not None and made.response_body:
            respond(session, made)
            for data, at in arrived(made.response_body, made.chunks):
                session.feed(data, at)
            first = session.finish(made.end).timing.first_token
            made = replace(made, timing=replace(made.timing, first_token=first))
        return self._redactor.record(made)


def _reason(reply: Record) -> str:
    if reply.error is not None:
        return printable(reply.error)
    document = decode_object(reply.response_body or b"")
    error = document.get("error", document)
    said = error.get("message") if isinstance(error, dict) else error
    return f"status {reply.status}{f' ({shorten(printable(one_line(said)), 120)})' if isinstance(said, str) else ''}"


def _cure(reply: Record, job: _Job) -> str:
    if reply.status in _REFUSED:
        return "set the variable of its key (--key-env NAME) to one that it accepts"
    if reply.status in _UNSERVED:
        return f"the target does not serve {job.api} there, or has no model {printable(job.model)}: correct --to or --model"
    if reply.status in _MOVED:
        place = next((value for name, value in reply.response_headers if name.lower() == "location"), "another place")
        return f"it redirects to {printable(place)}, and redirects are not followed: correct --to"
    if (reply.error or "").startswith(_UNTRUSTED):
        return "name the file of its authority in SSL_CERT_FILE"
    return "start the server, or correct --to"
