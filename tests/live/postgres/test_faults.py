"""T6: servers and replicas are killed, connections cut, old backups restored, while agents write.

Nothing acknowledged is lost once agents have reconnected, and nothing is counted twice.
GUARDBAND_KILLS=200 makes it a longer night.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from live.postgres.cluster import Cluster, installations
from live.postgres.replicas import Replica, admin_token
from live.postgres.writers import SPACE, USES, Balancer, Writer, check, in_process, reconnect

from guardband.live.link import Unreachable
from guardband.live.link.http import HttpLink
from guardband.live.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("GUARDBAND_KILLS", "5"))
WAIT = 120.0


class Crowd:
    """Writers in threads that go on whatever happens."""

    def __init__(self, writers: list[Writer]) -> None:
        self.writers, self.failures, self.unreachable = writers, [], Counter()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(w,)) for w in writers]
        for thread in self._threads:
            thread.start()

    def _run(self, writer: Writer) -> None:
        k = 0
        try:
            while not self._stop.wait(0.02):
                k += 1
                try:
                    writer.work(2, trigger=k % 5 == 0)
                except Unreachable as problem:
                    self.unreachable[writer.task] += 1
                    self._stop.wait(max(0.05, problem.retry_after_s / 4))
        except BaseException as failure:
            self.failures.append(failure)

    def progress(self, uploads: int) -> None:
        """Return when everybody has had so many uploads more acknowledged."""
        goals = {writer.task: writer.uploads + uploads for writer in self.writers}
        end = time.monotonic() + WAIT
        while any(writer.uploads < goals[writer.task] for writer in self.writers):
            assert not self.failures, self.failures
            assert time.monotonic() < end, f"nobody gets through: {goals}"
            time.sleep(0.05)

    def stop(self) -> None:
        self.end()
        assert not self.failures, self.failures

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(WAIT)


def cut(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        ).fetchall()
    return len(found)


def test_t6_kills(own_cluster: Cluster, tmp_path: Path, capsys) -> None:
    """kill -9 of the database and of replicas, and cut connections, with four writers over HTTP."""
    url = own_cluster.create("gb")
    replicas = [Replica(url, tmp_path / f"replica-{k}") for k in range(2)]
    crowd, links = None, []
    dice, done = random.Random(6), Counter[str]()
    try:
        for replica in replicas:
            replica.start(wait=False)
        for replica in replicas:
            replica.wait()
        admin = HttpLink(replicas[0].url, admin_token(*replicas))
        links.append(admin)
        admin.create_space(SPACE)
        writers = []
        for k, task in enumerate(USES):
            body = {"role": "agent", "space": "home", "task": task}
            token = admin.ask("POST", "/v1/tokens", body)["token"]
            ways = [HttpLink(replica.url, token) for replica in replicas]
            links += ways
            writers.append(Writer(task, Balancer(ways, seed=k), seed=k))
        time.sleep(1.0)  # until both replicas know the tokens
        crowd = Crowd(writers)
        crowd.progress(3)
        for k in range(KILLS):
            kind = ("database", "replica", "connections")[k % 3]
            done[kind] += 1
            time.sleep(dice.uniform(0.0, 0.5))
            if kind == "database":
                own_cluster.kill()
                own_cluster.start()
            elif kind == "replica":
                victim = dice.choice(replicas)
                victim.end()
                victim.start()
            else:
                assert cut(url) > 0
            crowd.progress(3)
        crowd.stop()
        reconnect(writers)
        store = PostgresStore(url)
        found = check(store, writers)
        store.close()
        with capsys.disabled():
            print(f"\nT6: {dict(done)}, {found}, unreachable {crowd.unreachable.total()} times")
        assert found["counted"] == sum(len(rows) for w in writers for rows in w.rows.values())
        assert found["streams"] == len(USES)  # nobody had to give up a stream
    finally:
        if crowd is not None:
            crowd.end()
        for link in links:
            link.close()
        for replica in replicas:
            replica.end()


@pytest.mark.parametrize("how", ["files", "pg_dump"])
def test_t6_restore_from_an_older_backup(own_cluster: Cluster, how: str) -> None:
    """The database goes back in time, under running replicas or under fresh ones."""
    url = own_cluster.create("gb")
    stores = [PostgresStore(url) for _ in range(2)]
    link = in_process(*stores)
    link.create_space(SPACE)
    writers = [Writer(task, link, seed=k) for k, task in enumerate("abc")]
    for k in range(12):
        for writer in writers:
            writer.work(2, trigger=k % 3 == 0)
    reconnect(writers)
    copy = own_cluster.folder / "copy"
    if how == "files":
        own_cluster.stop()
        shutil.copytree(own_cluster.data, copy)
        own_cluster.start()
    else:
        own_cluster.run(
            "pg_dump", "-U", "postgres", "-Fc", "-n", "guardband", "-f", str(copy), "gb"
        )
    at_backup = {writer.task: writer.acked[writer.state.stream] for writer in writers}
    writers.append(Writer("d", link, seed=9))  # registers after the backup
    for k in range(12):
        for writer in writers:
            writer.work(2, trigger=k % 3 == 0)
    reconnect(writers)
    check(stores[0], writers)
    before = max(writer.state.epoch for writer in writers)

    if how == "files":
        own_cluster.stop()
        shutil.rmtree(own_cluster.data)
        shutil.copytree(copy, own_cluster.data)
        owner = own_cluster.folder.stat()
        for path in (own_cluster.data, *own_cluster.data.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        own_cluster.data.chmod(0o700)
        own_cluster.start()
    else:
        for store in stores:
            store.close()
        own_cluster.run(
            "pg_restore", "-U", "postgres", "--clean", "--if-exists", "-d", "gb", str(copy)
        )
        stores = [PostgresStore(url) for _ in range(2)]
        link.links[:] = in_process(*stores).links
    with stores[0].reading() as t:
        stored = {row.task: row.revision for row in t.streams("home")}
    assert stored == at_backup  # it did go back

    reconnect(writers)
    found = check(stores[0], writers, restored=True)
    assert found["counted"] == sum(len(rows) for w in writers for rows in w.rows.values())
    assert found["streams"] == 4
    assert min(writer.state.epoch for writer in writers) > before
    for store in stores:
        store.close()


def test_t6_a_standby_is_promoted_that_lacks_the_last_commits(own_cluster: Cluster) -> None:
    """The replicas go over to it by themselves; agents bring back what it never had."""
    url = own_cluster.create("gb")
    standby = Cluster(standby_of=own_cluster)
    stores: list[PostgresStore] = []
    crowd = None
    try:
        standby.start()
        both = f"{url}%2C{quote(str(standby.folder), safe='')}"
        stores += [PostgresStore(both) for _ in range(2)]
        in_process(stores[0]).create_space(SPACE)
        writers = [Writer(task, in_process(*stores), seed=k) for k, task in enumerate("abc")]
        crowd = Crowd(writers)
        crowd.progress(5)
        crowd.stop()
        reconnect(writers)
        behind(own_cluster, standby)
        writers.append(Writer("d", in_process(*stores), seed=9))  # the standby never hears of it
        crowd = Crowd(writers)
        crowd.progress(5)
        crowd.stop()
        reconnect(writers)
        check(stores[0], writers)
        before = max(writer.state.epoch for writer in writers)

        own_cluster.kill()
        assert ask(standby.url("gb"), "select count(*) from guardband.stream") == (3,)
        crowd = Crowd(writers)  # they write on, and hear 503
        ask(standby.url("gb"), "select pg_promote(true, 30)")
        crowd.progress(5)
        crowd.stop()
        reconnect(writers)
        found = check(stores[0], writers, restored=True)
        assert found["counted"] == sum(len(rows) for w in writers for rows in w.rows.values())
        assert found["streams"] == 4
        assert min(writer.state.epoch for writer in writers) > before
    finally:
        if crowd is not None:
            crowd.end()
        for store in stores:
            store.close()
        standby.remove()


def behind(primary: Cluster, standby: Cluster) -> None:
    """Cut a standby off when it has all that there is; from now on it lacks what is committed."""
    (at,) = ask(primary.url("gb"), "select pg_current_wal_flush_lsn()")
    wait_for(standby, f"select pg_last_wal_replay_lsn() >= '{at}'")
    ask(standby.url("gb"), "alter system set primary_conninfo = ''")
    ask(standby.url("gb"), "select pg_reload_conf()")
    wait_for(standby, "select count(*) = 0 from pg_stat_wal_receiver")


def wait_for(server: Cluster, question: str) -> None:
    end = time.monotonic() + WAIT
    while ask(server.url("gb"), question) != (True,):
        assert time.monotonic() < end, question
        time.sleep(0.05)


def ask(url: str, statement: str) -> tuple | None:
    """Return the first row of an answer."""
    with psycopg.connect(url, autocommit=True) as connection:
        answer = connection.execute(statement)
        return answer.fetchone() if answer.description else None


def test_an_older_major_version_serves_as_well(tmp_path: Path) -> None:
    """Writers, cut connections and a kill on the oldest PostgreSQL that is installed here."""
    oldest = Cluster(installations()[-1])
    try:
        oldest.start()
        url = oldest.create("gb")
        stores = [PostgresStore(url) for _ in range(2)]
        in_process(stores[0]).create_space(SPACE)
        writers = [Writer(task, in_process(*stores), seed=k) for k, task in enumerate(USES)]
        crowd = Crowd(writers)
        crowd.progress(5)
        cut(url)
        crowd.progress(5)
        oldest.kill()
        oldest.start()
        crowd.progress(5)
        crowd.stop()
        reconnect(writers)
        check(stores[0], writers)
        for store in stores:
            store.close()
    finally:
        oldest.remove()
