"""What tests of live agents share: small agents, a clock to turn by hand, a coordinator process."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.earlier import is_refused_now, made_earlier

import guardband as gb
from guardband.live.client import journal as journal_module
from guardband.live.client.agent_state import AgentSetup
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.journal import Journal
from guardband.live.client.learner import unpack
from guardband.live.client.protocol_client import ProtocolClient
from guardband.live.client.sync_worker import SyncTiming
from guardband.live.client.windows import Clock, End
from guardband.live.link import Unreachable
from guardband.live.link.local import LocalLink
from guardband.live.protocol.sums import statistic_of

DIM = 3
THETA = np.array([0.5, 0.6, 0.4])
AT_ONCE = SyncTiming(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
PARAMETERS = set(inspect.signature(gb.LiveAgent).parameters)
WATCHED: dict[Path, WatchedConnection] = {}
LINKS: weakref.WeakKeyDictionary[gb.LiveAgent, Any] = weakref.WeakKeyDictionary()


class Hands:
    """A wall clock and a steady one that are turned by hand."""

    def __init__(self, wall: float = 1_000.0) -> None:
        self.wall, self.steady = wall, 0.0

    def clock(self, boot: str | None = None) -> Clock:
        return Clock(lambda: self.wall, lambda: self.steady, boot)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def agent(folder: Path, task: str = "movies", *, link: Any = None, **given: Any) -> gb.LiveAgent:
    """A live agent in a local space, without threads, which sends everything in every sync.

    What is no parameter of `gb.LiveAgent` is a setting of the space; `dim` names features. Where
    contexts are shared, the space is one of an earlier version, in which rewards count as soon as
    all earlier ones are there, unless told otherwise.
    """
    settings: dict[str, Any] = {
        "alpha": 0.3,
        "noise": 0.1,
        "agents": 3,
        "contexts": "per-request",
        "rewards": {"order": "prompt"},
    }
    mine: dict[str, Any] = {"background": False, "seed": 0, "timing": AT_ONCE, "space": "default"}
    for name, value in given.items():
        (mine if name in PARAMETERS else settings)[name] = value
    name = mine["space"]
    settings.setdefault("features", names(settings.pop("dim", DIM)))
    settings = {name: value for name, value in settings.items() if value is not None}
    mine.setdefault("state_dir", folder / "gb" / "agents" / name / task)
    link = LocalLink(folder / "gb") if link is None else link
    space = gb.SpaceSettings(name=name, **settings)
    if is_refused_now(space):
        link._do(lambda c, now: made_earlier(c.store, space))
    one = gb.LiveAgent(link, create=True, task=task, settings=space, **mine)
    LINKS[one] = link
    return one


def names(dim: int) -> list[str]:
    """Names of so many features."""
    return [f"x{i}" for i in range(dim)]


def link_of(one: gb.LiveAgent) -> Any:
    """The link that was given to an agent."""
    return LINKS[one]


class Switch:
    """A link that leads where `to` says."""

    def __init__(self, to: Any) -> None:
        self.to = to

    def __getattr__(self, name: str) -> Any:
        return getattr(self.to, name)


class Away:
    """A coordinator that cannot be reached."""

    def __init__(self, words: str = "nobody answers") -> None:
        self.words = words

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            raise Unreachable(self.words)

        quiet = ("close", "hold", "let_go", "after_fork")
        return (lambda *a: None) if name in quiet else call


def wait_for(what: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


class WatchedConnection:
    """A connection to SQLite on which statements can be made to fail."""

    def __init__(self, real: Any, failing: list[Callable[[str], Exception | None]]) -> None:
        self._real, self._failing = real, failing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def cursor(self) -> Any:
        return self

    def execute(self, sql: str, *values: Any) -> Any:
        for fails in self._failing:
            error = fails(sql)
            if error is not None:
                raise error
        return self._real.execute(sql, *values)


def watch_connections(patch: pytest.MonkeyPatch) -> list[Callable[[str], Exception | None]]:
    """Watch the connections of journals opened from now on; return what makes statements fail."""
    failing: list[Callable[[str], Exception | None]] = []
    real = journal_module.connect

    def connect(path: Path, *given: Any, **more: Any) -> Any:
        found = WatchedConnection(real(path, *given, **more), failing)
        WATCHED.setdefault(path, found)  # the first is the one that writes
        return found

    patch.setattr(journal_module, "connect", connect)
    return failing


def opened_by(one: gb.LiveAgent) -> Any:
    """The connection of an agent to its journal, where connections are watched."""
    return WATCHED[one.state_dir / "journal.db"]


def make_due(one: gb.LiveAgent) -> None:
    """Let an epoch be due, whatever the trigger says."""
    journal = journal_of(one)
    journal.begin()
    journal.query("UPDATE main.head SET due = 1")
    journal.commit()
    journal.close()


def another_process(one: gb.LiveAgent) -> ProtocolClient:
    """The part of an agent that takes messages in, as another process with its folder has it."""
    journal = journal_of(one)
    about = journal.about()
    journal.close()
    uses = tuple(about["uses"])
    setup = AgentSetup(about["space"], about["task"], uses, about["reward_floor"], None, False)
    clock = Clock(time.time, time.monotonic)
    return ProtocolClient(AgentStore(one.state_dir / "journal.db", setup, None, clock))


def menus(count: int, seed: int = 0, actions: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.05, 0.55, (actions, DIM)) for _ in range(count)]


def live_on(one: Any, rounds: int, seed: int = 0) -> list[gb.Decision]:
    """Let an agent decide and observe; rewards are expected rewards, within [0, 1]."""
    made = []
    for menu in menus(rounds, seed):
        decision = one.decide(menu, 0, float(menu[0] @ THETA))
        one.observe(decision.id, float(menu[decision.action] @ THETA))
        made.append(decision)
    return made


def journal_of(one: Any) -> Journal:
    return Journal(one.state_dir / "journal.db")


def check_journal(journal: Journal) -> None:
    """Assert I4 and I8 for every stream of a journal, from its rows alone."""
    head = journal.head()
    assert head is not None
    last = journal.last()[0]
    rows = journal.query(
        "SELECT d.seq, d.stream, d.x, d.weight, d.guess, o.ended, o.reward, o.stream, o.k "
        "FROM decision d LEFT JOIN outcome o USING(seq) ORDER BY d.seq"
    )
    seqs = [row[0] for row in rows]
    assert seqs == list(range(last - len(rows) + 1, last + 1))
    spaces = [json.loads(text) for (text,) in journal.query("SELECT space FROM config")]
    at_once = any(
        each["rewards"]["order"] == "prompt" and each["contexts"] != "shared" for each in spaces
    )
    ended = dict.fromkeys(End, 0)
    pending = ahead = 0
    for seq, _, _, _, _, how, _, _, k in rows:
        if seq > head.settled and at_once and how == End.OBSERVED:
            ahead += 1
            assert k is not None
        elif seq > head.settled:
            pending += 1
            assert k is None
            assert how in (None, End.HEARD, End.DISCARDED)
        else:
            ended[End(how)] += 1
            assert (k is not None) == (how in (End.OBSERVED, End.DEFAULTED))
    assert len(rows) == sum(ended.values()) + pending + ahead, "I8"
    assert pending + ahead == last - head.settled, "I8"

    names = [n for (n,) in journal.query("SELECT id FROM stream ORDER BY id")]
    for stream in names:
        counted = [row for row in rows if row[7] == stream]
        ks = sorted(row[8] for row in counted) if at_once else [row[8] for row in counted]
        assert ks == list(range(ks[0], ks[0] + len(ks))) if ks else True
    # I4: what the head says since the last checkpoint is the sum over those rows.
    ((cut,),) = journal.query("SELECT max(n) FROM cut WHERE stream = ?", (head.stream,))
    moved = journal.one("SELECT moved_from FROM stream WHERE id = ?", (head.stream,))
    open_ = [row for row in rows if row[7] == head.stream and row[8] > cut]
    if moved is not None and moved[0] is None and len(open_) == head.n - cut:
        dim = len(np.frombuffer(rows[0][2])) if rows else DIM
        numbers = np.concatenate([part.ravel() for part in statistic_of(unpack(head.own, dim))])
        gram, moment, sums = np.zeros((dim, dim)), np.zeros(dim), np.zeros(6)
        for _, _, x, w, g, _, y, _, _ in open_:
            psi = np.frombuffer(x)
            gram += w * np.outer(psi, psi)
            moment += w * y * psi
            sums[:4] += (1.0, w * y * y, w * (g * g - 2.0 * y * g), w)
        whole = np.concatenate([gram.ravel(), moment, sums])
        assert np.abs(numbers - whole).max() <= 1e-9 * max(1.0, np.abs(whole).max()), "I4"


@contextlib.contextmanager
def coordinator_process(data: Path) -> Iterator[tuple[str, str]]:
    """`guardband serve` in a process of its own; yields its address and the admin's token."""
    command = [sys.executable, "-m", "guardband", "serve", "--data", str(data), "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        address = None
        for line in process.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                address = found[0]
                break
        assert address is not None, "the coordinator did not start"
        drain = threading.Thread(target=process.stdout.read, daemon=True)
        drain.start()
        try:
            yield address, (data / "admin.token").read_text().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            drain.join(timeout=5)
