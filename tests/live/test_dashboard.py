"""The live page of a real proxy: what its events say, who is refused, and the page in a browser."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.addon.dashboard import LOW_CONTRAST, Page
from tests.build import Talk, User, chunk, sse
from tests.live.harness import CHUNKED, PATIENCE, SCRIPT, SHIM, Peer, Proxy, Upstream, post, replying, running, scripted
from tests.live.leaks import DAMAGED, ask, body_of, kind_of
from tests.live.scenes import OPENAI
from tests.view.html.browser import Tab, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>\u202eevil"
KEY = "sk-proj-Qk3zYw8Nn2VtLr6PsDfB4hXcQk3zYw8Nn2VtLr6PsDfB4hXc"
BEGUN = sse(chunk({"role": "assistant", "content": f"The key is {KEY}, and "}), done=False).encode()
REST = sse(
    chunk({"content": "that was all."}),
    chunk({}, "stop"),
    chunk({}, usage={"prompt_tokens": 21, "completion_tokens": 8, "total_tokens": 29}),
).encode()


def url_of(proxy: Proxy) -> str:
    return proxy.wait_for(r"dashboard at http")[0].split()[-1]


def start(proxy: Proxy, script: str) -> threading.Thread:
    """A request of its own thread, whose user says something evil."""
    body = Talk((User(EVIL),)).record(OPENAI, True)["request"]["body"].encode()
    headers = {SCRIPT: script, "x-test-id": script, "user-agent": "claude-cli/2.0.14 (external, cli)"}
    thread = threading.Thread(target=post, args=(proxy.port, "/v1/chat/completions", body, headers), daemon=True)
    thread.start()
    return thread


def leak(proxy: Proxy, upstream: Upstream) -> None:
    """An exchange with an error."""
    record = DAMAGED[OPENAI, True]
    upstream.scripts["leak"] = replying([body_of(record)], **kind_of(record))
    ask(proxy, OPENAI, record, "leak")


def test_events_while_a_reply_streams_and_after_it(upstream: Upstream, tmp_path: Path) -> None:
    go_on = threading.Event()
    upstream.scripts["slow"] = scripted(CHUNKED, BEGUN, go_on, REST, Peer.finish)
    with running(tmp_path, upstream.url, "wirelint_dashboard=on") as proxy:
        page = Page(url_of(proxy))
        states = page.states()
        assert next(states)["totals"]["exchanges"] == 0
        asking = start(proxy, "slow")
        now = next(state["open"][0] for state in states if state["open"] and state["open"][0]["text"])
        assert (now["client"], now["api"], now["text"][:11]) == ("claude-cli/2.0.14", OPENAI, "The key is ")
        assert KEY not in now["text"]
        go_on.set()
        asking.join(PATIENCE)
        done = next(state for state in states if state["rows"] and not state["open"])
        (row,) = done["rows"].values()
        assert (row["client"], row["in"], row["out"], row["exchanges"]) == ("claude-cli/2.0.14", 21, 8, 1)
        assert row["first"] <= row["took"]
        leak(proxy, upstream)
        state = next(state for state in states if state["issues"])
        assert "xml-leak" in [issue["name"] for issue in state["issues"].values()]
        status, text = page.get("/conversation", id=row["id"])
        assert status == 200
        assert KEY not in text
        name = re.search(r'"id":"([0-9a-f-]{36})"', text)
        assert name is not None
        status, text = page.get("/exchange", id=name[1])
        assert (status, KEY in text, "that was all." in text) == (200, False, True)
        assert page.get("/exchange", id="none")[0] == 404
        proxy.process.send_signal(signal.SIGINT)
        list(states)  # ends with the run
        proxy.process.wait(PATIENCE)
        assert "Traceback" not in proxy.log


def test_who_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    with running(tmp_path, upstream.url, "wirelint_dashboard=on") as proxy:
        page = Page(url_of(proxy))
        port = page.port
        for path in ("/", "/events", "/conversation", "/exchange", "/other"):
            assert page.get(path, token="")[0] == 403, path
            assert page.get(path, token=page.token[:-1] + "é")[0] == 403, path
            assert page.get(path, host=f"evil.example:{port}")[0] == 403, path
            assert page.get(path, host="127.0.0.1")[0] == 403, path
        assert page.get("/", host=f"localhost:{port}")[0] == 200
        assert page.get("/other")[0] == 404


def test_a_busy_port_is_told_in_one_line_and_traffic_goes_on(upstream: Upstream, tmp_path: Path) -> None:
    upstream.scripts["well"] = replying([BEGUN, REST], content_type="text/event-stream")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running(tmp_path, upstream.url, f"wirelint_dashboard={port}") as proxy:
            (line,) = proxy.wait_for("no dashboard")
            assert f"127.0.0.1 port {port} is taken by another program" in line
            assert "wirelint_dashboard=PORT" in line
            start(proxy, "well").join(PATIENCE)
            assert proxy.wait_for_record("well")["end"] == "complete"
            assert "Traceback" not in proxy.log


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("is_terminal", [True, pytest.param(False, marks=pytest.mark.complete)])
def test_the_table_of_a_proxy(upstream: Upstream, tmp_path: Path, is_terminal: bool) -> None:
    """On a terminal the table is drawn again after each exchange; elsewhere, the totals end the log."""
    upstream.scripts["well"] = replying([BEGUN, REST], content_type="text/event-stream")
    body = Talk((User("Good morning"),)).record(OPENAI, True)["request"]["body"].encode()
    command = [sys.executable, "-m", "wirelint", "proxy", "--live", "--upstream", upstream.url, "--port", "0"]
    ours, theirs = os.openpty() if is_terminal else os.pipe()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        "LINES": "30",
        "PYTHONPATH": str(SHIM.parents[1]),
    }
    process = subprocess.Popen(
        [*command, "--set", f"confdir={tmp_path / 'conf'}"], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
        stdout=theirs, stderr=subprocess.STDOUT,
    )  # fmt: skip
    os.close(theirs)
    said = b""

    def read() -> bool:
        nonlocal said
        with contextlib.suppress(OSError):  # the end of a terminal
            piece = os.read(ours, 65536)
            said += piece
            return bool(piece)
        return False

    try:
        while (port := re.search(rb"OPENAI_BASE_URL=http://127\.0\.0\.1:(\d+)", said)) is None:
            assert read(), said.decode()
        for count in (1, 2):
            post(int(port[1]), "/v1/chat/completions", body, {SCRIPT: "well"})
            while is_terminal and f", {count} exchange" not in said.decode(errors="replace"):
                assert read(), said.decode()
        while said.count(b"openai.chat") < 2:
            assert read(), said.decode()
        process.terminate()
        while read():
            pass
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    last = [line for line in said.decode().splitlines() if line.strip()][-4:]
    assert re.search(r" acme-1 +2 +42 +16 " if not is_terminal else r"acme-1\S* +2 +42 +16 ", "\n".join(last)), last
    assert (b"\x1b[" in said) == is_terminal
    assert b"client connect" not in said


# --- in a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running_browser:
        yield running_browser


TITLES = "[...document.querySelectorAll('#list > .box .title')].map((item) => item.textContent.slice(0, 9))"
PLACES = "[...document.querySelectorAll('#titles, .line')].map((row) => row.children[4].getBoundingClientRect().right)"
LOOKS = (("light", 1280), ("dark", 390))


def test_the_page_in_a_browser(browser: Browser, upstream: Upstream, tmp_path: Path) -> None:
    with running(tmp_path, upstream.url, "wirelint_dashboard=on") as proxy:
        url = url_of(proxy)
        leak(proxy, upstream)
        for scheme, width in LOOKS:
            tab = Tab(browser, url, scheme=scheme, width=width)
            tab.page.wait_for_selector("#list .box")
            go_on = threading.Event()
            upstream.scripts[scheme] = scripted(CHUNKED, BEGUN, go_on, REST, Peer.finish)
            asking = start(proxy, scheme)
            tab.page.wait_for_selector("#open .now .said-text")
            assert tab.run(LOW_CONTRAST) == []
            go_on.set()
            asking.join(PATIENCE)
            tab.until("document.querySelectorAll('#open .now').length", 0)
            tab.until("document.querySelectorAll('#list > .box').length", 2)
            assert width < 900 or len(set(tab.run(PLACES))) == 1, "cells are below their titles"
            assert tab.run("document.documentElement.scrollWidth") == width
            assert tab.run(TITLES)[0] == EVIL[:9]
            check_keys(tab)
            assert tab.run(LOW_CONTRAST) == []
            assert tab.run("document.documentElement.scrollWidth") == width
            tab.close()
        check_address(browser, url)
        tab = Tab(browser, url, scheme="light", width=1280)
        tab.page.wait_for_selector("#list .box")
        proxy.stop()
        tab.until("document.querySelector('#state').textContent.startsWith('the run has ended')", True)
        assert tab.run("document.querySelectorAll('#list .box').length") == 2
        tab.close()


def check_keys(tab: Tab) -> None:
    """j k g G Enter / Esc ?; an opened conversation has the path of its call and its exchanges."""
    press = tab.press
    press("g", "j", "k", "G")
    assert "leak" not in tab.run("document.querySelector('.chosen .title').textContent")
    height = tab.run("innerHeight")
    tab.page.set_viewport_size({"width": tab.run("innerWidth"), "height": 400})
    press("Enter")
    tab.page.wait_for_selector(".chosen > .body article")
    tab.until("document.querySelector('.chosen > .body').getBoundingClientRect().top < innerHeight")
    tab.page.set_viewport_size({"width": tab.run("innerWidth"), "height": height})
    tab.page.click(".chosen > .body article .title")
    tab.page.wait_for_selector(".chosen article .body .note")
    assert "xml-leak" in tab.run("document.querySelector('.chosen article .talk').textContent")
    page = "https://wirelint.readthedocs.io/en/latest/rules/xml-leak/"
    for link in ("#issues a", ".chosen .note a.rule"):
        assert page in tab.run(f"[...document.querySelectorAll('{link}')].map((item) => item.href)")
    assert tab.page.locator(".note button").count() == 0, "the manual is on the web"
    assert tab.run("location.hash").startswith("#open=")
    assert tab.page.locator(".chosen details.path").count() > 0
    press("Escape")
    tab.until("document.querySelectorAll('.chosen > .body').length", 0)
    press("/")
    tab.page.keyboard.type("evil")
    tab.until("document.querySelector('#clear').hidden", False)
    assert "q=evil" in tab.run("location.hash")
    press("Escape", "Escape")
    tab.until("document.querySelector('#clear').hidden", True)
    press("?")
    assert tab.page.is_visible("#keys")
    press("Escape")


def check_address(browser: Browser, url: str) -> None:
    """The filters are in the address: a link shows the same view."""
    tab = Tab(browser, url, scheme="dark", width=1280)
    tab.page.wait_for_selector("#list .box")
    tab.page.click(".issue")
    tab.until("document.querySelectorAll('#list > .box').length", 1)
    tab.page.select_option("select[data-filter=severity]", value="error")
    anchor = tab.run("location.hash")
    assert re.fullmatch(r"#severity=error&issue=[0-9a-f]{16}", anchor)
    tab.close()
    again = Tab(browser, url, scheme="dark", width=1280, anchor=anchor)
    again.until("document.querySelectorAll('#list > .box').length", 1)
    assert again.run("document.querySelector('.issue').getAttribute('aria-pressed')") == "true"
    again.close()
    refused = Tab(browser, url[:-1], scheme="dark", width=1280)
    assert "refused" in refused.run("document.body.textContent")
    refused.context.close()
