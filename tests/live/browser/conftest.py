"""The browser, for all tests here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from live.browser.chromium import NAMES, QUIET


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, started once per module; skipped where there is none."""
    driver = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on the PATH")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()
