"""The stores keep the contract; SQLite's file keeps it across processes, crashes and versions."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap

import apsw
import pytest
from live.memory_store import MemoryStore
from live.protocol.store_contract import SPACE, STREAM, StoreContract

from guardband.live.store import StoreError
from guardband.live.store.sqlite import FORMAT, SqliteStore


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self):
        return MemoryStore()

    def test_it_can_go_back(self, store):
        self.put(store, SPACE)
        before = store.snapshot()
        self.put(store, SPACE._replace(epoch=99), STREAM)
        store.restore(before)
        with store.reading() as t:
            assert t.space("home") == SPACE
            assert t.stream("s1") is None


class TestSqlite(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = SqliteStore(tmp_path / "deep" / "coordinator.db")
        yield store
        store.close()

    def test_it_is_durable_and_private(self, store):
        assert store.connection.pragma("journal_mode") == "wal"
        assert store.connection.pragma("synchronous") == 2
        assert stat.S_IMODE(store.path.stat().st_mode) == 0o600

    def test_what_was_written_is_there_after_reopening(self, store):
        self.put(store, SPACE, STREAM)
        store.close()
        again = SqliteStore(store.path)
        with again.reading() as t:
            assert t.space("home") == SPACE
            assert t.stream("s1") == STREAM
        again.close()

    def test_a_committed_row_survives_kill_9(self, store):
        program = """
            import os, signal, sys
            from guardband.live.store.sqlite import SqliteStore
            from live.protocol.store_contract import SPACE
            store = SqliteStore(sys.argv[1])
            with store.transaction("home") as t:
                t.put(SPACE)
            with store.transaction("home") as t:
                t.put(SPACE._replace(epoch=99))
                os.kill(os.getpid(), signal.SIGKILL)
        """
        done = run(program, store.path)
        assert done.returncode == -9, done.stderr
        with store.reading() as t:
            assert t.space("home") == SPACE
        assert store.check() == []

    def test_processes_take_turns(self, store):
        self.put(store, SPACE._replace(epoch=0))
        program = """
            import sys
            from guardband.live.store.sqlite import SqliteStore
            store = SqliteStore(sys.argv[1])
            for _ in range(30):
                with store.transaction("home") as t:
                    row = t.space("home")
                    t.put(row._replace(epoch=row.epoch + 1))
        """
        children = [start(program, store.path) for _ in range(2)]
        for _ in range(30):
            with store.transaction("home") as t:
                row = t.space("home")
                t.put(row._replace(epoch=row.epoch + 1))
        assert [child.wait(60) for child in children] == [0, 0]
        with store.reading() as t:
            assert t.space("home").epoch == 90

    def test_a_forked_child_opens_the_file_itself(self, store):
        self.put(store, SPACE)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with store.transaction("home") as t:
                    t.put(SPACE._replace(epoch=50))
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        with store.reading() as t:
            assert t.space("home").epoch == 50

    def test_a_backup_is_a_whole_store(self, store, tmp_path):
        self.put(store, SPACE, STREAM)
        copy = tmp_path / "backups" / "b.db"
        store.backup(copy)
        self.put(store, SPACE._replace(epoch=99))
        other = SqliteStore(copy)
        with other.reading() as t:
            assert t.space("home") == SPACE
        assert other.check() == []
        other.close()
        with pytest.raises(FileExistsError, match="name a new file"):
            store.backup(copy)

    def test_transactions_do_not_nest(self, store):
        with store.transaction("home"), pytest.raises(RuntimeError, match="already open"):
            store.transaction("home").__enter__()
        self.put(store, SPACE)  # and the store still works

    def test_a_newer_format_is_refused(self, store):
        store.connection.pragma("user_version", FORMAT + 1)
        store.close()
        with pytest.raises(StoreError, match="upgrade guardband"):
            SqliteStore(store.path)

    def test_a_foreign_file_is_refused_and_left_alone(self, tmp_path):
        path = tmp_path / "theirs.db"
        theirs = apsw.Connection(str(path))
        theirs.execute("create table notes (text)")
        theirs.close()
        with pytest.raises(StoreError, match="another program"):
            SqliteStore(path)
        theirs = apsw.Connection(str(path))
        assert theirs.execute("select name from sqlite_schema").get == "notes"
        theirs.close()

    def test_junk_is_refused(self, tmp_path):
        path = tmp_path / "junk.db"
        path.write_bytes(b"not a database, but long enough to be looked at" * 100)
        with pytest.raises(StoreError, match="damaged"):
            SqliteStore(path)

    def test_damage_is_found(self, store):
        self.put(store, SPACE, *(STREAM._replace(stream=f"{k:04}") for k in range(200)))
        store.connection.pragma("wal_checkpoint(truncate)")
        store.close()
        raw = bytearray(store.path.read_bytes())
        raw[5 * 4096 : 12 * 4096] = b"\x5a" * (7 * 4096)
        store.path.write_bytes(raw)
        damaged = SqliteStore(store.path)
        assert damaged.check() != []
        damaged.close()


def start(program: str, *words: object) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", textwrap.dedent(program), *map(str, words)]
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(line, env={**os.environ, "PYTHONPATH": paths}, text=True)


def run(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", textwrap.dedent(program), *map(str, words)]
    paths = os.pathsep.join(path for path in sys.path if path)
    env = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(line, env=env, text=True, capture_output=True, timeout=120, check=False)
