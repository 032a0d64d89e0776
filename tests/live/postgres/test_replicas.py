"""Several coordinators on one database: they act as one."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from live.postgres.writers import SPACE, USES, Direct, Writer, check, in_process, reconnect
from typer.testing import CliRunner

import guardband.live.store
from guardband.cli.app import app
from guardband.cli.operator import open_store, readable_errors
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.link.http import HttpLink
from guardband.live.server import Settings, make_app, service
from guardband.live.server.first_start import first_tokens, read_token
from guardband.live.server.run import running

pytestmark = pytest.mark.slow

WAIT = 60.0


def test_exactly_one_of_several_closes_an_epoch(connect) -> None:
    """All tick at the same moment, again and again; each deadline is passed for everybody."""
    coordinators = [Coordinator(connect()) for _ in range(3)]
    link = Direct(connect())
    link.create_space(SPACE)
    writers = [Writer(task, link, seed=k) for k, task in enumerate(USES)]
    for writer in writers:
        writer.work(3)
    now = time.time()
    closed: Counter[int] = Counter()
    for k in range(1, 21):
        # One asks for an epoch that the others do not answer: only a deadline closes it.
        writers[k % 4].observe(1)
        writers[k % 4].upload(for_epoch=writers[k % 4].state.seen + 1, trigger=True)
        for each in coordinators:
            each.tick(now=now)  # so that it knows since when the epoch has been open
        now += SPACE.sync.deadline_s + 0.001
        together = threading.Barrier(len(coordinators))
        told: list[bool] = []

        def tick(each: Coordinator, moment: float = now) -> None:
            together.wait(WAIT)  # noqa: B023 - joined below
            told.append(each.tick(now=moment))  # noqa: B023

        threads = [threading.Thread(target=tick, args=(each,)) for each in coordinators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        closed[sum(told)] += 1
        for writer in writers:
            writer.listen()
            assert writer.state.seen == k
    assert closed == {1: 20}
    check(connect(), writers)


def test_writers_at_several_replicas_at_once_lose_nothing(connect) -> None:
    stores = [connect() for _ in range(3)]
    in_process(stores[0]).create_space(SPACE)
    writers = [Writer(task, in_process(*stores), seed=k) for k, task in enumerate(USES)]
    failures: list[BaseException] = []

    def run(writer: Writer) -> None:
        try:
            for k in range(40):
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
    assert found["epochs"] >= 10


@pytest.fixture
def pair(connect, tmp_path, monkeypatch) -> Iterator[tuple[list[str], str]]:
    """Two replicas over HTTP that look by themselves only once a minute."""
    monkeypatch.setattr(service, "IDLE_S", 60.0)
    monkeypatch.setattr(service, "TOKENS_S", 600.0)
    first = connect()
    first_tokens(first, tmp_path, now=time.time())
    Coordinator(first).create_space(SPACE, who="test", now=time.time())
    with ExitStack() as stack:
        settings = Settings()
        apps = [make_app(connect(), settings=settings) for _ in range(2)]
        urls = [stack.enter_context(running(app, settings=settings)) for app in apps]
        token = read_token(tmp_path)
        assert token is not None
        yield urls, token


def test_a_poll_at_one_replica_wakes_when_another_closes_an_epoch(pair) -> None:
    urls, token = pair
    heard: list[tuple[float, int]] = []

    def poll() -> None:
        link = HttpLink(urls[0], token)
        news = link.news("home", None, after=0, open_after=0, config_version=1, wait_s=20.0)
        heard.append((time.monotonic(), 0 if news is None else news.epoch))
        link.close()

    waiting = threading.Thread(target=poll)
    waiting.start()
    time.sleep(1.0)
    assert not heard
    link = HttpLink(urls[1], token)
    Writer("a", link, seed=1).work(2, trigger=True)  # opens an epoch, and closes it: it is alone
    closed = time.monotonic()
    waiting.join(WAIT)
    ((at, epoch),) = heard
    assert epoch == 1
    assert at - closed < 5.0  # by itself it looks again only after live_s / 3 = 10 s
    link.close()


def test_a_token_made_at_one_replica_works_at_the_other_and_stops_there(pair) -> None:
    urls, token = pair

    def ask(replica: int, method: str, path: str, secret: str = token, **body: str) -> int | dict:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = httpx.request(
            method, urls[replica] + path, headers=headers, json=body or None, timeout=30.0
        )
        return answer.json() if answer.status_code == 201 else answer.status_code

    made = ask(0, "POST", "/v1/tokens", role="viewer")
    assert isinstance(made, dict)
    assert within(5.0, lambda: ask(1, "GET", "/v1/me", made["token"]) == 200)
    assert ask(1, "DELETE", f"/v1/tokens/{made['id']}") == 204
    assert ask(1, "GET", "/v1/me", made["token"]) == 401
    assert within(5.0, lambda: ask(0, "GET", "/v1/me", made["token"]) == 401)


def within(seconds: float, true: object) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def test_the_command_line_finds_the_database_by_its_variable(database, monkeypatch) -> None:
    monkeypatch.setenv("GUARDBAND_STORE", database)
    run = CliRunner()
    made = run.invoke(app, ["space", "create", "home", "--features", "x,y", "--agents", "2"])
    assert made.exit_code == 0, made.output
    token = run.invoke(app, ["token", "create", "--role", "admin", "--note", "lost the first"])
    assert token.output.startswith("gb_")
    listed = run.invoke(app, ["token", "list"]).output
    assert "lost the first" in listed


def test_without_psycopg_it_is_said_what_to_install(monkeypatch) -> None:
    monkeypatch.delitem(vars(guardband.live.store), "PostgresStore", raising=False)  # if loaded
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in ("postgres", "postgres_connections"):
        monkeypatch.delitem(sys.modules, f"guardband.live.store.{name}", raising=False)
    with pytest.raises(ValueError, match=r"pip install 'guardband\[postgres\]'"), readable_errors():
        open_store(Path("gb"), "postgresql://nowhere/x")
