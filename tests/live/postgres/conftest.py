"""A real PostgreSQL server for the session, and an empty database for every test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec

import pytest
from live.postgres.cluster import Cluster

if find_spec("psycopg") is None:  # `make full` brings it, for the slow tests
    collect_ignore_glob = ["test_*.py"]

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    server = Cluster()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A server that the test may kill."""
    server = Cluster()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def database(cluster: Cluster) -> str:
    return cluster.create(f"test_{next(numbers)}")


@pytest.fixture
def connect(database: str) -> Iterator[Callable]:
    """Opens one more store on the test's database."""
    from guardband.live.store.postgres import PostgresStore  # noqa: PLC0415 - see above

    opened = []

    def one(**options) -> PostgresStore:
        opened.append(PostgresStore(database, **options))
        return opened[-1]

    yield one
    for store in opened:
        store.close()


@pytest.fixture
def store(connect: Callable) -> Iterator:
    with closing(connect()) as one:
        yield one
