"""The browser, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from live.browser.chromium import started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, started once per module."""
    with started() as browser:
        yield browser
