"""What is special about the store in PostgreSQL; what all stores share is in test_contract."""

# ruff: noqa: PT012 - what raises is the end of a transaction, whatever was done in it

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from live.postgres.writers import SPACE, Writer, in_process

from guardband.live.protocol.messages import Refused
from guardband.live.store import (
    HeartbeatRow,
    SpaceRow,
    StoreError,
    StreamRow,
    TokenRow,
    postgres,
    postgres_connections,
)
from guardband.live.store.postgres import MIGRATIONS, PostgresStore
from guardband.live.store.rows import KEYS, TABLES, columns_of

pytestmark = pytest.mark.slow

HOME = SpaceRow("home", "{}", 1, 1, 0, 0, 0, None, None, 1.0, None)
BLANK = (0, "", 0, b"")
HEARTBEAT = HeartbeatRow("s", "home", "tv", 1.0, 0, 1, "{}", None, None)
WAIT = 30.0
FORMAT = len(MIGRATIONS)


def stream(name: str, space: str = "home") -> StreamRow:
    return StreamRow(name, space, "tv", "open", None, 1.0, "0", *BLANK, 0, *BLANK, 0, *BLANK)


def ask(database: str, question: str, *values: object) -> list[tuple]:
    with psycopg.connect(database, autocommit=True) as connection:
        answer = connection.execute(question, values)
        return answer.fetchall() if answer.description else []


def put(store: PostgresStore, *rows, space: str = "home") -> None:
    with store.transaction(space) as t:
        for row in rows:
            t.put(row)


def test_replicas_that_start_together_make_the_tables_once(database) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: PostgresStore(database), range(8)))
    assert ask(database, "select * from guardband.meta") == [("format", str(FORMAT), None)]
    put(stores[0], HOME)
    for store in stores:
        with store.reading() as t:
            assert t.spaces() == [HOME]
        store.close()


def test_the_tables_have_the_columns_of_the_rows(store, database) -> None:
    for kind, table in TABLES.items():
        columns = ask(
            database,
            "select column_name from information_schema.columns "
            "where table_schema = 'guardband' and table_name = %s order by ordinal_position",
            table,
        )
        assert tuple(name for (name,) in columns) == columns_of(kind)


def test_a_newer_format_is_refused(store, database) -> None:
    ask(database, "update guardband.meta set value = %s where key = 'format'", str(FORMAT + 1))
    said = rf"format {FORMAT + 1}.*up to {FORMAT}: upgrade guardband"
    with pytest.raises(StoreError, match=said):
        PostgresStore(database)


def test_an_older_format_takes_the_steps_that_it_lacks(store, database, monkeypatch) -> None:
    put(store, HOME)
    step = "alter table guardband.space add column colour text not null default 'red'"
    monkeypatch.setattr(postgres, "MIGRATIONS", (*postgres.MIGRATIONS, step))
    for _ in range(2):
        PostgresStore(database).close()
    found = ask(database, "select value from guardband.meta where key = 'format'")
    assert found == [(str(FORMAT + 1),)]
    assert ask(database, "select name, colour from guardband.space") == [("home", "red")]


def test_a_step_that_fails_leaves_the_tables_as_they_were(store, database, monkeypatch) -> None:
    put(store, HOME)
    steps = (*postgres.MIGRATIONS, "drop table guardband.space; select 1 / 0")
    monkeypatch.setattr(postgres, "MIGRATIONS", steps)
    with pytest.raises(StoreError, match="cannot be used: division by zero"):
        PostgresStore(database)
    assert ask(database, "select name from guardband.space") == [("home",)]


def test_somebody_elses_schema_is_left_alone(database) -> None:
    ask(database, "create schema guardband")
    ask(database, "create table guardband.meta (key text, value text)")
    with pytest.raises(StoreError, match="not guardband's"):
        PostgresStore(database)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://u@127.0.0.1:1/x", "refused"),
        ("postgresql://u@h/x?colour=red", "not an address"),
    ],
)
def test_an_address_that_does_not_work_says_why(address, said) -> None:
    with pytest.raises(StoreError, match=said):
        PostgresStore(address)


def test_text_is_ordered_by_its_bytes_whatever_the_database_thinks(store, database) -> None:
    put(store, *(stream(name) for name in ("b", "a", "B", "é", "A-", "A")))
    with store.reading() as t:
        assert [row.stream for row in t.streams("home")] == ["A", "A-", "B", "a", "b", "é"]
    found = ask(
        database,
        "select table_name, column_name, collation_name from information_schema.columns "
        "where table_schema = 'guardband' and data_type = 'text'",
    )
    collations = {(table, column): collation for table, column, collation in found}
    for kind, key in KEYS.items():
        for field in key:
            assert collations.get((TABLES[kind], field), "C") == "C"


def test_work_on_one_space_takes_turns_and_on_others_it_does_not(connect) -> None:
    one, two = connect(), connect()
    put(one, HOME)
    order: list[str] = []

    def other() -> None:
        with two.transaction("home") as t:
            order.append(f"second sees {t.space('home').epoch}")

    with one.transaction("home") as t:
        waiting = threading.Thread(target=other)
        waiting.start()
        with two.transaction("elsewhere"):
            order.append("elsewhere")
        with two.reading() as reader:  # and readers neither wait nor see what is not committed
            assert reader.space("home").epoch == 0
        time.sleep(0.3)
        t.put(HOME._replace(epoch=7))
        order.append("first ends")
    waiting.join(WAIT)
    assert order == ["elsewhere", "first ends", "second sees 7"]


def test_what_is_read_belongs_to_one_moment(connect) -> None:
    one, two = connect(), connect()
    put(one, HOME)
    with one.reading() as t:
        before = t.space("home")
        put(two, HOME._replace(epoch=1), stream("s"))
        assert (t.space("home"), t.streams("home")) == (before, [])


def test_an_idle_connection_that_was_cut_is_replaced_unseen(store, database) -> None:
    put(store, HOME)
    cut(database)
    put(store, HOME._replace(epoch=1))
    with store.reading() as t:
        assert t.space("home").epoch == 1


def test_a_transaction_that_is_cut_is_refused_and_leaves_nothing(store, database) -> None:
    put(store, HOME)
    with pytest.raises(Refused) as refusal, store.transaction("home") as t:
        t.put(HOME._replace(epoch=1))
        cut(database)
        t.put(stream("s"))
    assert (refusal.value.code, refusal.value.status) == ("store_unavailable", 503)
    assert "postgres" not in refusal.value.detail  # who and where is for the log
    with store.reading() as t:
        assert (t.space("home"), t.streams("home")) == (HOME, [])


def test_a_commit_whose_fate_is_unknown_is_refused(store, database) -> None:
    with pytest.raises(Refused, match="send the same"), store.transaction("home") as t:
        t.put(stream("r"))
        cut(database)  # the next that is said is COMMIT
    put(store, stream("s"))


def test_an_error_that_was_swallowed_cannot_be_committed(store) -> None:
    """PostgreSQL answers COMMIT with a quiet ROLLBACK then; an acknowledgement would be a lie."""
    with pytest.raises(Refused), store.transaction("home") as t:
        t.put(stream("r"))
        t.put(stream("s")._replace(total=None))
        with pytest.raises(psycopg.errors.NotNullViolation):
            t.spaces()
    with store.reading() as t:
        assert t.streams("home") == []


def test_whoever_sleeps_in_a_transaction_loses_it(connect, monkeypatch) -> None:
    """A replica that is frozen while it holds a space's lock must not stop the others."""
    quick = postgres_connections.SESSION.replace("'15s'", "'500ms'")
    monkeypatch.setattr(postgres_connections, "SESSION", quick)
    frozen, other = connect(), connect()
    put(other, HOME)
    with pytest.raises(Refused), frozen.transaction("home") as t:
        t.put(HOME._replace(epoch=1))
        started = time.monotonic()
        put(other, HOME._replace(epoch=2))  # waits for the lock, and gets it
        assert time.monotonic() - started > 0.3
    with other.reading() as t:
        assert t.space("home").epoch == 2


def test_a_lock_that_is_not_free_in_time_is_refused(connect, monkeypatch) -> None:
    quick = postgres_connections.SESSION.replace("lock_timeout = '5s'", "lock_timeout = '200ms'")
    monkeypatch.setattr(postgres_connections, "SESSION", quick)
    one, two = connect(), connect()
    with one.transaction("home"), pytest.raises(Refused), two.transaction("home"):
        pass
    put(two, HOME)  # and the connection is none the worse


def test_commits_are_durable_where_the_database_would_not(store, cluster, database) -> None:
    name = database.split("/")[3].split("?")[0]
    ask(database, f"alter database {name} set synchronous_commit = off")
    fresh = PostgresStore(database)
    with fresh.transaction("home") as t:
        assert t.ask("show synchronous_commit") == [("on",)]
    fresh.close()


class Heard:
    """What a listener was told."""

    def __init__(self, store: PostgresStore) -> None:
        self.names: list[str] = []
        self.some = threading.Condition()
        self.stop = store.listen(self)
        self.wait_for("")

    def __call__(self, name: str) -> None:
        with self.some:
            self.names.append(name)
            self.some.notify_all()

    def wait_for(self, *names: str) -> None:
        """Return when exactly this was heard, and forget it."""
        with self.some:
            assert self.some.wait_for(lambda: len(self.names) >= len(names), WAIT), self.names
            assert self.names == list(names)
            self.names.clear()


def test_others_hear_of_a_change_when_it_is_committed_and_not_before(connect) -> None:
    one, heard = connect(), Heard(connect())
    with one.transaction("home") as t:
        t.put(HOME)
        t.put(HOME._replace(epoch=1))
        time.sleep(0.3)
        assert heard.names == []
    heard.wait_for("home")
    with pytest.raises(ZeroDivisionError), one.transaction("home") as t:
        t.put(HOME)
        _ = 1 / 0
    # Nobody waits for what a stream has stored, nor for its heartbeat.
    put(one, stream("s"), HEARTBEAT)
    put(one, TokenRow("t", "", "viewer", None, None, "", 1.0, None))
    heard.wait_for("")  # of tokens: anything may have changed
    heard.stop()


def test_a_listener_that_is_cut_off_comes_back_and_says_so(connect, database) -> None:
    one, heard = connect(), Heard(connect())
    cut(database)
    heard.wait_for("")
    put(one, HOME)
    heard.wait_for("home")
    heard.stop()


def test_a_changed_epoch_is_found(store, database) -> None:
    link = in_process(store)
    link.create_space(SPACE)
    writer = Writer("a", link, seed=1)
    writer.work(5, trigger=True)
    assert store.check() == []
    ask(database, "update guardband.epoch set sha256 = repeat('0', 64), seal = null")
    assert store.check() == ["epoch 1 of space home was altered"]
    ask(database, "update guardband.epoch set total = set_byte(total, 30, 200)")
    (wrong,) = store.check()
    assert "damaged at epoch 1 of space home" in wrong


def test_a_backup_is_postgresqls_own_business(store, tmp_path) -> None:
    with pytest.raises(StoreError, match="pg_dump --schema=guardband"):
        store.backup(tmp_path / "copy")


def cut(database: str) -> None:
    """End every other connection to the database, as an operator or a failover does."""
    ask(
        database,
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()",
    )
