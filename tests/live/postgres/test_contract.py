"""The store in PostgreSQL keeps the contract of all stores, on every version that is here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from live.postgres.cluster import Cluster, installations
from live.protocol.store_contract import StoreContract

from guardband.live.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

numbers = itertools.count(1)
PLACES = installations() or [None]  # None: the set-up says what is missing


def version_of(programs: Path | None) -> str:
    return "none" if programs is None else "-".join(programs.parts[-3:-1])


@pytest.fixture(scope="module", params=PLACES, ids=version_of)
def server(request) -> Iterator[Cluster]:
    one = Cluster(request.param)
    try:
        one.start()
        yield one
    finally:
        one.remove()


class TestPostgres(StoreContract):
    """What every store must do."""

    @pytest.fixture
    def store(self, server: Cluster) -> Iterator[PostgresStore]:
        store = PostgresStore(server.create(f"contract_{next(numbers)}"))
        yield store
        store.close()
