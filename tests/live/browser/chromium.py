"""A headless Chromium that notes what went wrong on a page, and what it asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

WIDTHS = [(360, 740), (1280, 800), (3840, 2160)]
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000


@contextmanager
def started() -> Iterator[Any]:
    """Start the browser; the test is skipped where there is none."""
    driver = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on the PATH")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Watched:
    """A page, the errors on it, and the origins it asked; leaving the block, both must be clean."""

    def __init__(self, context: Any, page: Any, origin: str) -> None:
        self.context, self.page, self.origin = context, page, origin
        self.errors: list[str] = []
        self.strangers: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _request(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.strangers.append(request.url)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert self.errors == []
            assert self.strangers == []


def opened(
    chromium: Any, url: str, *, size: tuple[int, int] = (1280, 800), scheme: str = "light"
) -> Watched:
    """Open a page of its own; use it as a context manager."""
    viewport = {"width": size[0], "height": size[1]}
    context = chromium.new_context(viewport=viewport, color_scheme=scheme)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    parts = urlsplit(url)
    watched = Watched(context, page, f"{parts.scheme}://{parts.netloc}")
    page.goto(url)
    return watched


def overflow(page: Any) -> int:
    """By how many pixels the page is wider than the window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return max(0, wider)
