from __future__ import annotations

from collections.abc import Iterator

import pytest
from live.server.driver import Served, served


@pytest.fixture
def server(tmp_path) -> Iterator[Served]:
    with served(tmp_path / "gb") as running:
        yield running
