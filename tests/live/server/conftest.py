from __future__ import annotations

from collections.abc import Iterator

import pytest
from live.server.driver import SPACE, Served, served


@pytest.fixture
def server(tmp_path) -> Iterator[Served]:
    with served(tmp_path / "gb") as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Served]:
    """One server for all tests of a file that leave it as it was, with a second space."""
    with served(tmp_path_factory.mktemp("abuse"), agents=100) as server:
        with server.admin() as admin:
            other = SPACE.changed(name="elsewhere").as_json()
            assert admin.post("/v1/spaces", json=other).status_code == 201
        yield server
