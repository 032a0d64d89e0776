"""Whatever the database says, the answer is 503 and never 500, and the next request works."""

# ruff: noqa: PT012 - what raises is the end of a transaction, whatever was done in it

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest
from live.postgres.cluster import Cluster
from live.postgres.replicas import Replica, admin_token
from live.postgres.writers import SPACE, USES, Writer, check, in_process, reconnect

from guardband.live.protocol.messages import Refused
from guardband.live.store import SpaceRow, StoreError, StreamRow, postgres, postgres_connections
from guardband.live.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

LEVELS = ("repeatable read", "serializable")
HOME = SpaceRow("home", "{}", 1, 1, 0, 0, 0, None, None, 1.0, None)
BLANK = (0, "", 0, b"")
STREAM = StreamRow("s", "home", "tv", "open", None, 1.0, "0", *BLANK, 0, *BLANK, 0, *BLANK)
WAIT = 60.0


@pytest.fixture(params=LEVELS)
def strict(request, cluster: Cluster, database: str) -> str:
    """A database whose transactions are stricter than ours unless we say what we want."""
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f"alter database {name} set default_transaction_isolation = '{request.param}'"
        )
    return database


def write(store: PostgresStore) -> str:
    """Do what an upload does: look, write two rows, commit; return how that ended."""
    try:
        with store.transaction("home") as t:
            t.space("home")
            t.put(HOME)
            t.put(STREAM)
            t.spaces()
    except Refused as problem:
        return problem.code
    return "stored"


def backend(store: PostgresStore) -> int:
    """Return the server's process that serves the store's connection."""
    assert write(store) == "stored"
    with store.reading() as t:
        ((process,),) = t.ask("select pg_backend_pid()")
    return process


def refuse(store: PostgresStore) -> None:
    """Look, write, and change one's mind."""
    with pytest.raises(Refused, match="no"), store.transaction("home") as t:
        t.space("home")
        t.put(HOME)
        t.spaces()
        raise Refused("no", 409, "no.")


@pytest.mark.parametrize("before", range(7))  # statements are prepared when used so often
def test_a_lock_timeout_after_refused_requests_spoils_nothing(
    connect, database, monkeypatch, before
) -> None:
    quick = postgres_connections.SESSION.replace("lock_timeout = '5s'", "lock_timeout = '200ms'")
    monkeypatch.setattr(postgres_connections, "SESSION", quick)
    store = connect()
    for _ in range(8):
        refuse(store)
    assert [write(store) for _ in range(before)] == ["stored"] * before
    with psycopg.connect(database) as other:
        other.execute("lock table guardband.stream")
        assert write(store) == "store_unavailable"
    assert [write(store) for _ in range(8)] == ["stored"] * 8


def test_a_connection_that_reported_an_error_is_not_used_again(store, caplog) -> None:
    before = backend(store)
    refuse(store)
    assert backend(store) == before  # nothing is wrong with it
    with pytest.raises(Refused) as refusal, store.transaction("home") as t:
        t.put(STREAM._replace(total=None))
    assert (refusal.value.code, refusal.value.status) == ("store_unavailable", 503)
    assert refusal.value.more["retry_after_s"] > 0
    assert isinstance(refusal.value.__cause__, psycopg.errors.NotNullViolation)
    assert backend(store) != before
    (said,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert said.fields["why"].startswith("NotNullViolation: null value")
    assert "Failing row" not in str(said.fields)  # logs hold no data


def test_an_error_that_the_caller_takes_for_its_own_spoils_nothing_either(store) -> None:
    before = backend(store)
    with pytest.raises(KeyError), store.transaction("home") as t:
        t.put(STREAM._replace(total=None))
        try:
            t.spaces()
        except psycopg.Error as error:
            raise KeyError("something else") from error
    assert backend(store) != before


def test_an_error_that_was_swallowed_spoils_nothing_either(store) -> None:
    before = backend(store)
    with pytest.raises(Refused), store.transaction("home") as t:
        t.put(STREAM._replace(total=None))
        with pytest.raises(psycopg.errors.NotNullViolation):
            t.spaces()
    assert backend(store) != before


def test_text_that_postgresql_cannot_hold_is_no_500(store) -> None:
    with pytest.raises(Refused, match="send the same"), store.transaction("home") as t:
        t.put(HOME._replace(paused="\x00"))
    assert write(store) == "stored"


def test_a_database_that_lost_its_tables_is_no_500(store, database) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter schema guardband rename to elsewhere")
        assert [write(store) for _ in range(3)] == ["store_unavailable"] * 3
        connection.execute("alter schema elsewhere rename to guardband")
    assert write(store) == "stored"


@pytest.mark.usefixtures("strict")
def test_stores_that_start_together_wait_for_each_other(connect) -> None:
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: connect(), range(6)))
    assert [write(store) for store in stores] == ["stored"] * 6


@pytest.mark.usefixtures("strict")
def test_writers_take_turns_whatever_the_databases_default_is(connect) -> None:
    """Each must see what the one before it committed, and none may be told to try again."""
    stores = [connect() for _ in range(3)]
    in_process(stores[0]).create_space(SPACE)
    writers = [Writer(task, in_process(*stores), seed=k) for k, task in enumerate(USES)]
    failures: list[BaseException] = []

    def run(writer: Writer) -> None:
        try:
            for k in range(25):
                writer.work(2, trigger=k % 4 == 0)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(writer,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert failures == []
    reconnect(writers)
    found = check(stores[0], writers)
    assert found["counted"] == sum(len(rows) for w in writers for rows in w.rows.values())


def test_replicas_never_answer_500(strict, tmp_path: Path) -> None:
    """Six people pause and resume the same space, at two replicas."""
    replicas = [Replica(strict, tmp_path / f"replica-{k}") for k in range(2)]
    try:
        for replica in replicas:
            replica.start()
        headers = {"Authorization": f"Bearer {admin_token(*replicas)}"}
        with httpx.Client(base_url=replicas[0].url, headers=headers, timeout=30.0) as admin:
            admin.post("/v1/spaces", json=SPACE.as_json()).raise_for_status()

        def switch(k: int) -> Counter[int]:
            said: Counter[int] = Counter()
            end = time.monotonic() + 3.0
            with httpx.Client(base_url=replicas[k % 2].url, headers=headers, timeout=30.0) as one:
                while time.monotonic() < end:
                    for verb, body in (("pause", {"reason": "test"}), ("resume", None)):
                        said[one.post(f"/v1/spaces/home/{verb}", json=body).status_code] += 1
            return said

        with ThreadPoolExecutor(6) as pool:
            said = sum(pool.map(switch, range(6)), Counter())
    finally:
        for replica in replicas:
            replica.end()
    assert set(said) == {200}, said


def test_a_step_that_fails_is_told_as_what_it_is(database, monkeypatch) -> None:
    monkeypatch.setattr(postgres, "MIGRATIONS", ("select 1 / 0",))
    with pytest.raises(StoreError, match="cannot be used: division by zero"):
        PostgresStore(database)
