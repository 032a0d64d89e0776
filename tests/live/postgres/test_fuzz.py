"""T8 on PostgreSQL: what it refuses and SQLite takes must not become a 500 (nor a 503).

Fewer examples for each operation than on SQLite: the server before the store is the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import live.fuzz
import pytest
from live.postgres.cluster import Cluster
from live.server import driver
from live.server.test_fuzz import DOCUMENT, OPERATIONS, SETTINGS, Town

from guardband.live.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

EXAMPLES = 30


@pytest.fixture(scope="module")
def town(cluster: Cluster, tmp_path_factory) -> Iterator[Town]:
    url = cluster.create("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live.fuzz, "EXAMPLES", EXAMPLES)
        patch.setattr(driver, "SqliteStore", lambda _: PostgresStore(url))
        with driver.served(tmp_path_factory.mktemp("fuzz"), SETTINGS, agents=50) as server:
            assert isinstance(server.service.store, PostgresStore)
            yield Town(server)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_in_the_document(town: Town, method: str, path: str) -> None:
    said = live.fuzz.fuzz(
        DOCUMENT,
        method,
        path,
        town.server.url,
        tokens=town.tokens,
        feed=town.feed(method, path),
    )
    assert sum(said.values()) >= EXAMPLES or "{" not in path, said
    assert max(said) < 500
    assert town.stored() == town.before
