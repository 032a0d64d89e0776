from __future__ import annotations

from collections.abc import Iterator

import pytest
from live.operators import world


@pytest.fixture(autouse=True)
def close_agents() -> Iterator[None]:
    """Let no agent of one test be in the way of the next."""
    yield
    world.close_agents()
