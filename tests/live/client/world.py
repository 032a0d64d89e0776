"""What tests of live agents share: small agents, a clock to turn by hand, a coordinator process."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import guardband as gb
from guardband.live.client.journal import Journal
from guardband.live.client.windows import Clock, End

DIM = 3
THETA = np.array([0.5, 0.6, 0.4])


class Hands:
    """A wall clock and a steady one that are turned by hand."""

    def __init__(self, wall: float = 1_000.0) -> None:
        self.wall, self.steady = wall, 0.0

    def clock(self, boot: str | None = None) -> Clock:
        return Clock(lambda: self.wall, lambda: self.steady, boot)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def agent(folder: Path, task: str = "movies", **settings: Any) -> gb.Agent:
    """A live agent in a local space, without threads."""
    given: dict[str, Any] = {
        "dim": DIM,
        "alpha": 0.3,
        "noise": 0.1,
        "agents": 3,
        "contexts": "per-request",
        "rewards": {"order": "prompt"},
        "background": False,
        "seed": 0,
    }
    given |= settings
    return gb.LiveAgent(coordinator=f"local:{folder / 'gb'}", task=task, **given)


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
    ended = {End.OBSERVED: 0, End.DEFAULTED: 0, End.DISCARDED: 0, End.LOST: 0}
    pending = 0
    for seq, _, _, _, _, how, _, _, k in rows:
        if seq > head.settled:
            pending += 1
            assert k is None
            assert how in (None, End.HEARD, End.DISCARDED)
        else:
            ended[End(how)] += 1
            assert (k is not None) == (how in (End.OBSERVED, End.DEFAULTED))
    assert len(rows) == sum(ended.values()) + pending, "I8"
    assert pending == last - head.settled, "I8"

    names = [n for (n,) in journal.query("SELECT id FROM stream ORDER BY id")]
    for stream in names:
        counted = [row for row in rows if row[7] == stream]
        ks = [row[8] for row in counted]
        assert ks == list(range(ks[0], ks[0] + len(ks))) if ks else True
    # I4: what the head says since the last cut is the sum over those rows.
    ((cut,),) = journal.query("SELECT max(n) FROM cut WHERE stream = ?", (head.stream,))
    moved = journal.one("SELECT moved_from FROM stream WHERE id = ?", (head.stream,))
    open_ = [row for row in rows if row[7] == head.stream and row[8] > cut]
    if moved is not None and moved[0] is None and len(open_) == head.n - cut:
        numbers = np.frombuffer(head.own)
        dim = len(np.frombuffer(rows[0][2])) if rows else DIM
        gram, moment, sums = np.zeros((dim, dim)), np.zeros(dim), np.zeros(4)
        for _, _, x, w, g, _, y, _, _ in open_:
            psi = np.frombuffer(x)
            gram += w * np.outer(psi, psi)
            moment += w * y * psi
            sums += (1.0, w * y * y, w * (g * g - 2.0 * y * g), w)
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
