"""The live system beside what it cannot do without: SQLite, one HTTP round trip, the library.

`python -m bench.live` prints the table; `--quick` takes less time. Everything is measured in the
same run, in turns, and on this machine: agents, coordinator and whatever else runs here share its
cores. What users have unless they say otherwise (threads in the background, a server that writes
its log) stands beside the same without. Of what is measured call by call the table has the median,
and the ratio is that of medians.
"""

from __future__ import annotations

import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

import guardband as gb
from bench.agents import in_turns
from bench.crowd import LONG_S, QUICK_S, RULES, coordinator, crowded
from bench.processes import echo
from bench.replicas import SPACE
from bench.workloads import features
from guardband.agent import warm_up
from guardband.live.link.http import HttpLink
from guardband.live.protocol.messages import Checkpoint, Register, Revision, Upload
from guardband.live.protocol.sums import Sums, difference, empty_sums, packed_size

__all__ = ["HEADINGS", "Row", "main", "measure"]

HEADINGS = ["what", "measured", "p99", "beside", "ratio", "limit", ""]
SIZES = ((20, 9), (50, 9))  # actions, features
JOURNAL_LIMIT = 1.25  # of decide + observe with a journal, beside what it rests on
UPLOADS = 90  # one token's burst
CROWDS = (64, 200, 1000)


class Row(NamedTuple):
    """One comparison; `limit` is for the ratio, or for the measured value where there is none."""

    what: str
    measured: str
    p99: str
    beside: str
    ratio: str
    limit: str
    kept: bool

    def cells(self) -> list[str]:
        """Return what the table shows."""
        return [*self[:6], "" if self.kept else "MISSED"]


# decide + observe


def calls_of(agent: Any, actions: int, dim: int) -> Callable[[int], None]:
    """Return decide and observe of one request."""
    phi, theta = features(200, actions, dim)
    rewards = (phi @ theta).tolist()

    def one(i: int) -> None:
        c = i % 200
        decision = agent.decide(phi[c], 0, rewards[c][0])
        agent.observe(decision.id, rewards[c][decision.action])

    return one


def bare_transactions(path: Path, actions: int, dim: int) -> Callable[[int], None]:
    """Return two transactions with rows as large as a journal's, and nothing around them."""
    db = apsw.Connection(str(path))
    execute = db.cursor().execute
    execute("PRAGMA journal_mode = WAL")
    execute("PRAGMA synchronous = NORMAL")
    execute("PRAGMA wal_autocheckpoint = 8000")
    numbers = ", ".join(f"n{k} REAL" for k in range(22))
    execute(f"CREATE TABLE decision (seq INTEGER PRIMARY KEY, {numbers}, x BLOB, menu BLOB)")
    execute("CREATE TABLE outcome (seq INTEGER PRIMARY KEY, a INT, b REAL, c REAL, d INT, e INT)")
    execute("CREATE TABLE head (id INTEGER PRIMARY KEY, n INT, own BLOB, tally BLOB)")
    own, tally = bytes(8 * (dim * dim + dim + 4)), bytes(112)
    execute("INSERT INTO head VALUES (1, 0, ?, ?)", (own, tally))
    insert = f"INSERT INTO decision VALUES ({', '.join('?' * 25)})"
    x, menu, row = bytes(8 * dim), bytes(8 * actions * dim), [0.5] * 22

    def one(i: int) -> None:
        execute("BEGIN IMMEDIATE")
        execute(insert, (i, *row, x, menu))
        execute("COMMIT")
        execute("BEGIN IMMEDIATE")
        execute("INSERT INTO outcome VALUES (?, 1, 0.5, 0.5, 1, ?)", (i, i))
        execute("UPDATE head SET n = ?, own = ?, tally = ?", (i, own, tally))
        execute("COMMIT")

    return one


def deciding(actions: int, dim: int, folder: Path) -> list[Row]:
    """Compare a live agent's decide + observe with the library's and two bare transactions."""
    rules: dict[str, Any] = {"noise": 0.1, "delta": 1e-3}
    kinds = {"": True, ", without background": False}
    settings = gb.SpaceSettings(
        name="bench",
        features=[f"x{i}" for i in range(dim)],
        agents=3,
        alpha=0.5,
        contexts="per-request",
        rewards={"order": "prompt"},
        **rules,
    )
    agents: list[Any] = [
        gb.connect(
            f"local:{folder / f'gb-{background}'}",
            task="bench",
            settings=settings,
            background=background,
        )
        for background in kinds.values()
    ]
    plain = gb.Agent(dim=dim, alpha=0.5, algorithm=gb.GuardUCB(0.5, shared_context=False, **rules))
    bare = bare_transactions(folder / "bare.db", actions, dim)
    works = [calls_of(agent, actions, dim) for agent in (*agents, plain)]
    *ours, alone, rows = in_turns([*works, bare])
    for agent in agents:
        agent.close()
    library, database = float(np.median(alone)), float(np.median(rows))
    beside = f"{database:.0f} us two SQLite transactions + {library:.0f} us library"
    made = []
    for kind, times in zip(kinds, ours, strict=True):
        half = float(np.median(times))
        ratio = half / (library + database)
        made.append(
            Row(
                f"decide + observe with journal{kind}, K={actions}, d={dim}",
                f"{half:.0f} us",
                f"{np.quantile(times, 0.99):.0f} us",
                beside,
                f"{ratio:.2f}",
                f"{JOURNAL_LIMIT:g}",
                ratio <= JOURNAL_LIMIT,
            )
        )
    return made


# A durable upload


def uploading(folder: Path, *, quiet: bool) -> Row:
    """Compare a durable upload with one durable commit and one HTTP round trip."""
    dim = SPACE.dim
    folder.mkdir(parents=True)
    db = apsw.Connection(str(folder / "durable.db"))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE total (k INTEGER PRIMARY KEY, raw BLOB)")
    rng, times = np.random.default_rng(0), np.zeros((UPLOADS, 3))
    with (
        echo() as bare,
        coordinator(folder / "gb", 1, quiet=quiet) as (url, tokens, _),
        httpx.Client(base_url=bare) as plain,
    ):
        link, stream = HttpLink(url, tokens[0]), str(uuid.uuid4())
        register = Register(
            stream=stream,
            task="task-0",
            schema_hash=SPACE.schema_hash,
            uses=tuple(range(dim)),
            library="bench",
        )
        link.register(SPACE.name, register)
        total, base = empty_sums(dim), Revision(0, "")
        raw = bytes(8 * (packed_size(dim) + 3))
        for k in range(UPLOADS):
            z = np.column_stack([rng.uniform(0.0, 0.3, (10, dim)), rng.uniform(0.0, 1.0, 10)])
            gram = (z.T @ z)[np.triu_indices(dim + 1)]
            total = difference(total, Sums(-10, -gram, 0.0, -10.0))
            cut = Checkpoint(uuid.uuid4().hex, total, 0)
            upload = Upload(base=base, checkpoint=cut)
            marks = [time.perf_counter()]
            db.execute("INSERT INTO total VALUES (?, ?)", (k, raw))
            marks.append(time.perf_counter())
            plain.put("/checkpoint", content=upload.model_dump_json()).raise_for_status()
            marks.append(time.perf_counter())
            link.upload(stream, upload)
            marks.append(time.perf_counter())
            times[k], base = np.diff(marks), cut.revision
        link.close()
    db.close()
    commit, trip, upload = 1e3 * np.median(times[5:], axis=0)
    ratio = upload / (commit + trip)
    return Row(
        f"durable upload{', without a log' if quiet else ''}, d={dim}",
        f"{upload:.2f} ms",
        "",
        f"{commit:.2f} ms durable SQLite commit + {trip:.2f} ms HTTP round trip",
        f"{ratio:.2f}",
        "3",
        bool(ratio <= 3.0),
    )


def crowding(agents: int, folder: Path, seconds: float) -> list[Row]:
    """Measure an epoch every ten seconds over many agents, and what it takes."""
    seen = crowded(agents, folder, seconds)
    deadline = f"{RULES.sync.deadline_s:.0f} s, all in time"
    rows = [Row(f"{agents} agents", seen.as_text(), "", "", "", deadline, seen.held)]
    if agents == CROWDS[0]:
        kept = seen.epoch_ms < 1_000.0
        epoch = f"{seen.epoch_ms:.0f} ms"
        rows.append(Row(f"an epoch over {agents} agents", epoch, "", "", "", "1000 ms", kept))
    return rows


def measure(notes: Console, *, quick: bool = False) -> list[Row]:
    """Return one row for each comparison."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for actions, dim in SIZES:
            folder = Path(place) / f"decide-{actions}"
            folder.mkdir()
            with notes.status(f"decide + observe with journal, K={actions}"):
                rows += deciding(actions, dim, folder)
        for quiet in (False, True):
            with notes.status("durable uploads"):
                rows.append(uploading(Path(place) / f"upload-{quiet}", quiet=quiet))
        for agents in CROWDS:
            with notes.status(f"{agents} agents"):
                seconds = QUICK_S if quick else LONG_S
                rows += crowding(agents, Path(place) / f"crowd-{agents}", seconds)
    return rows


def main() -> None:
    """Print the table."""
    notes = Console(stderr=True)
    with notes.status("compiling the agents' kernels"):
        warm_up()
    table = Table(*HEADINGS, box=None, title="The live system, beside what it rests on")
    for row in measure(notes, quick="--quick" in sys.argv):
        table.add_row(*row.cells())
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
