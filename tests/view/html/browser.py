"""A headless Chromium for the tests, the system's own; where there is none they are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Request

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_TRIES = 500
_SHOWN = (
    "[...document.querySelectorAll('#list [data-entry]')]"
    ".map((entry) => entry.querySelector('.id')?.textContent ?? entry.textContent)"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page that is open. `requests` to other addresses, `errors` and `dialogs` are what should not happen in it."""

    def __init__(
        self, browser: Browser, url: str, *, width: int = 1280, scheme: Any = "light", anchor: str = ""
    ) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("request", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text))
        self.page.on("dialog", self._dismiss)
        self._own = (url.partition("/?")[0], "data:")
        self.page.goto(url + anchor)

    def _note(self, request: Request) -> None:
        if not request.url.startswith(self._own):
            self.requests.append(request.url)

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.page.evaluate(expression)

    def until(self, expression: str, expected: Any = True) -> None:
        """Waits for an expression to have a value; the page's policy forbids playwright's own way."""
        for _ in range(_TRIES):
            if (value := self.run(expression)) == expected:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"{expression} is {value!r}, not {expected!r}")

    def quiet(self) -> bool:
        """Return True if nothing was asked of a network, nothing failed, and nothing was blocked."""
        return not (self.errors or self.dialogs or self.requests)

    def close(self) -> None:
        """Ends it; it was quiet, and no script of a captured exchange ran."""
        assert self.quiet(), (self.errors, self.dialogs, self.requests)
        assert self.run("typeof window.owned") == "undefined"
        self.context.close()


class Report(Tab):
    """The page of a report."""

    def __init__(self, browser: Browser, path: Path, **look: Any) -> None:
        super().__init__(browser, path.as_uri(), **look)
        self.page.wait_for_selector("#list [data-entry]")

    def choose(self, kind: str, value: str) -> None:
        self.page.select_option(f"select[data-filter={kind}]", value=value)

    def search(self, text: str) -> None:
        self.page.fill("#search", text)

    @property
    def shown(self) -> list[str]:
        """The entries of the list: ids of exchanges, and the texts of folds."""
        return [*self.run(_SHOWN)]

    def shows(self, *entries: str) -> None:
        """Waits until the list is like that."""
        self.until(_SHOWN, list(entries))

    @property
    def elements(self) -> int:
        return int(self.run("document.querySelectorAll('*').length"))
