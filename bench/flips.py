"""Bits that flip and pages that are torn in journals, stores, their logs and saved files.

`python -m bench.flips [trials]` damages 10,000 of them and writes docs/damage-measured.md. Each
must be harmless (what is read is what was written), or be noticed; what is noticed must be refused,
or mended without a person from what is sound. In one of ten trials agents go on with the files.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import guardband as gb
from bench.commits import commit_now, today
from guardband.live.client.journal import Journal
from guardband.live.client.mending import find_damage, mend_journal
from guardband.live.coordinator.mending import mend_store
from guardband.live.operators.verify import verify_store
from guardband.live.sqlite import apsw
from guardband.live.store import SqliteStore, StoreError

__all__ = ["RESULTS", "TARGETS", "Trial", "World", "make_world", "page", "run"]

TASKS = ("movies", "tv")
TRIALS, GOES_ON = 10_000, 10
TORN = 0.3  # of the trials; a bit flips in the others
SECTOR = 512
PAGE_OUT = Path(__file__).parents[1] / "docs" / "damage-measured.md"
RESULTS = ("harmless", "refused", "mended", "person", "silent")
# Rows that mending may change: what it says of itself, and what is no longer so without the rest.
CHANGED = {"tally", "head", "stream", "outcome", "level", "monitor", "account", "meta"}
# What no change of a row and no mending may alter, where a file has these tables.
FACTS = {
    "outcome": "SELECT seq, reward, k FROM outcome WHERE k IS NOT NULL",
    "decision": "SELECT seq, action, x FROM decision",
    "entry": "SELECT epoch, stream, n, version FROM entry",
    "space": "SELECT name, config FROM space",
}
CHANGED_IN_STORE = {"space", "meta", "audit", "sqlite_sequence", "epoch", "pulse"}


class World(NamedTuple):
    """Sound files, of agents that were closed and of agents that were killed."""

    closed: Path
    killed: Path
    fleet: bytes


class Trial(NamedTuple):
    """What was damaged, how, and what came of it."""

    target: str
    torn: bool
    result: str
    goes_on: bool


def settings() -> gb.SpaceSettings:
    """Return the space in which the agents learn."""
    return gb.SpaceSettings(
        features=["a", "b", "c"],
        alpha=0.3,
        noise=0.1,
        agents=2,
        contexts="per-request",
        rewards={"order": "prompt"},
    )


def agents(folder: Path) -> list[Any]:
    """Return two agents that share a local coordinator, without threads."""
    return [
        gb.connect(f"local:{folder}", task=task, settings=settings(), background=False, seed=k)
        for k, task in enumerate(TASKS)
    ]


def work(every: list[Any], rounds: int, seed: int) -> None:
    """Let agents decide and observe, and exchange messages."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        for one in every:
            decision = one.decide(rng.uniform(0.0, 0.5, (4, 3)), 0)
            one.observe(decision.id, float(rng.uniform()))
    for one in (*every, *every):
        one.sync()


def live(folder: Path, rounds: int = 40) -> list[Any]:
    """Let agents learn for a while; one decision waits at the end, and three were not uploaded."""
    every = agents(folder)
    for seed in range(4):
        work(every, rounds // 4, seed)
    every[0].decide(np.eye(3), 0)
    for one in every:
        for _ in range(3):
            one.observe(one.decide(np.eye(3) / 2, 0).id, 0.5)
    return every


def make_world(folder: Path) -> World:
    """Return sound files to damage."""
    closed, killed = folder / "closed", folder / "killed"
    for one in live(closed):
        one.close()
    script = f"from bench.flips import die; die({str(killed)!r})"
    done = subprocess.run([sys.executable, "-c", script], cwd=PAGE_OUT.parents[1], check=False)
    assert done.returncode == -signal.SIGKILL
    fleet = gb.Fleet({task: [0, 1, 2] for task in TASKS}, dim=3, alpha=0.3, noise=0.1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        for task in TASKS:
            decision = fleet[task].decide(rng.uniform(0.0, 0.5, (4, 3)), 0)
            fleet[task].observe(decision, float(rng.uniform()))
    fleet.save(folder / "fleet.npz")
    return World(closed, killed, (folder / "fleet.npz").read_bytes())


def die(folder: str) -> None:
    """Live, and be killed, so that logs stay behind."""
    every = live(Path(folder))
    assert every  # still open
    os.kill(os.getpid(), signal.SIGKILL)


def damage(raw: bytes, rng: np.random.Generator, torn: bool) -> bytes:
    """Return bytes of which one bit is flipped, or some sectors are from another place."""
    changed = bytearray(raw)
    if torn:
        size = SECTOR * int(rng.integers(1, 4))
        at = SECTOR * int(rng.integers(max(1, len(raw) // SECTOR)))
        other = SECTOR * int(rng.integers(max(1, len(raw) // SECTOR)))
        piece = raw[other : other + size] if rng.random() < 0.5 else bytes(size)
        piece = piece[: len(raw) - at]
        changed[at : at + len(piece)] = piece
    else:
        changed[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def rows(path: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Return all that a SQLite file says, by table."""
    with closing(apsw.Connection(str(path))) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        return {table: set(db.execute(f"SELECT * FROM {table}")) for table in tables}


@contextmanager
def listening() -> Iterator[list[str]]:
    """Yield what is said as a warning or an error meanwhile."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("guardband.live")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = True


def copied(world: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world, folder)
    return folder


def of_journal(folder: Path) -> Path:
    return folder / "agents" / "default" / "movies" / "journal.db"


def of_store(folder: Path) -> Path:
    return folder / "coordinator.db"


def compared(before: dict[str, set[Any]], known: set[Any], path: Path, changed: set[str]) -> bool:
    """Tell whether a mended file holds nothing that the sound one did not hold."""
    after = rows(path)
    return nothing_new(known, path) and all(
        after[table] <= before[table] for table in set(before) - changed
    )


def facts(path: Path) -> set[tuple[Any, ...]]:
    """Return what a file says about decisions, rewards, entries of epochs, and spaces."""
    found: set[tuple[Any, ...]] = set()
    with closing(apsw.Connection(str(path))) as db:
        for table, query in FACTS.items():
            if db.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).get:
                found |= {(table, *row) for row in db.execute(query)}
    return found


def nothing_new(before: set[tuple[Any, ...]], path: Path) -> bool:
    """Tell whether all that a file says was written; rows may be lost, or of some time before."""
    return facts(path) <= before


def journal(world: World, folder: Path, rng: np.random.Generator, torn: bool) -> str:
    """Damage a journal that was closed."""
    path = of_journal(copied(world.closed, folder))
    before, known = rows(path), facts(path)
    path.write_bytes(damage(path.read_bytes(), rng, torn))
    if not find_damage(path):
        return "harmless" if rows(path) == before else "silent"
    mend_journal(path)
    whole = find_damage(path) == [] and compared(before, known, path, CHANGED)
    return "mended" if whole else "silent"


def store(world: World, folder: Path, rng: np.random.Generator, torn: bool) -> str:
    """Damage a coordinator's file that was closed."""
    path = of_store(copied(world.closed, folder))
    before, known = rows(path), facts(path)
    path.write_bytes(damage(path.read_bytes(), rng, torn))
    if verify_store(path).sound:
        return "harmless" if rows(path) == before else "silent"
    try:
        mend_store(path)
    except (StoreError, apsw.Error):
        return "person"
    whole = verify_store(path).sound and compared(before, known, path, CHANGED_IN_STORE)
    return "mended" if whole else "silent"


def _log(world: World, folder: Path, rng: Any, torn: bool, of: Callable[[Path], Path]) -> str:
    """Damage a log that was left behind; what it holds up to the damage is used."""
    whole = of(copied(world.killed, folder))
    _open(whole)
    before, before_facts = rows(whole), facts(whole)
    path = of(copied(world.killed, folder))
    log = Path(f"{path}-wal")
    log.write_bytes(damage(log.read_bytes(), rng, torn))
    with listening() as said:
        try:
            cut = _open(path)
        except (gb.GuardbandError, apsw.Error):
            cut = True
    if said or cut:
        return "mended" if nothing_new(before_facts, path) else "silent"
    return "harmless" if rows(path) == before else "silent"


def _open(path: Path) -> bool:
    """Open a journal or a store; tell whether it says that its log was cut."""
    if path.name == "journal.db":
        Journal(path).close()
        return False
    opened = SqliteStore(path)
    opened.close()
    return opened.cut is not None


def journal_log(world: World, folder: Path, rng: np.random.Generator, torn: bool) -> str:
    """Damage the log of a journal."""
    return _log(world, folder, rng, torn, of_journal)


def store_log(world: World, folder: Path, rng: np.random.Generator, torn: bool) -> str:
    """Damage the log of a coordinator's file."""
    return _log(world, folder, rng, torn, of_store)


def saved_fleet(world: World, folder: Path, rng: np.random.Generator, torn: bool) -> str:
    """Damage a saved fleet."""
    folder.mkdir(exist_ok=True)
    path = folder / "fleet.npz"
    path.write_bytes(damage(world.fleet, rng, torn))
    try:
        found = gb.Fleet.load(path)
    except ValueError:
        return "refused"
    path.write_bytes(world.fleet)
    whole = gb.Fleet.load(path)
    same = all(
        np.array_equal(found[task].theta, whole[task].theta)
        and found[task].rounds == whole[task].rounds
        for task in TASKS
    )
    return "harmless" if same else "silent"


TARGETS: dict[str, Callable[[World, Path, np.random.Generator, bool], str]] = {
    "journal": journal,
    "journal's log": journal_log,
    "store": store,
    "store's log": store_log,
    "saved fleet": saved_fleet,
}


def go_on(folder: Path) -> bool:
    """Let agents go on with the files; tell whether they pool again, and count nothing twice."""
    with listening():
        every = agents(folder)
        work(every, 3, 99)
        work(every, 3, 100)
        epochs = {one.status()["epoch"] for one in every}
        for one in every:
            one.close()
    kept = SqliteStore(of_store(folder))
    with kept.reading() as t:
        counted = sum(stream.n for stream in t.streams("default"))
    sound = not kept.check()
    kept.close()
    made = 2 * (40 + 3 + 6) + 1  # none twice; the one that waits may count with the default by now
    return sound and len(epochs) == 1 and epochs != {0} and counted <= made


def one_trial(world: World, folder: Path, seed: int) -> Trial:
    """Damage one file, and see what comes of it."""
    rng = np.random.default_rng([7, seed])
    target, torn = list(TARGETS)[seed % len(TARGETS)], bool(rng.random() < TORN)
    with listening():
        result = TARGETS[target](world, folder, rng, torn)
    goes_on = result in ("mended", "harmless") and target != "saved fleet"
    goes_on = goes_on and seed // len(TARGETS) % GOES_ON == 0
    if goes_on and not go_on(folder):
        result = "silent"
    return Trial(target, torn, result, goes_on)


def run(trials: int, folder: Path, first: int = 0) -> list[Trial]:
    """Return so many trials; each can be repeated by its number."""
    world = make_world(folder)
    done = []
    for seed in range(first, first + trials):
        done.append(one_trial(world, folder / "trial", seed))
        if done[-1].result == "silent":
            print(f"trial {seed}: {done[-1]}")
    return done


def page(done: list[Trial], commit: str) -> str:
    """Return what was found, as a page of the documentation."""
    lines = [
        "# Damaged files, measured",
        "",
        "For operators: what one flipped bit or a torn sector does to the files of live systems.",
        "",
        f"`python -m bench.flips {len(done)}`, on {today()} at commit {commit}: one bit flipped in "
        f"{sum(not d.torn for d in done):,} files, and up to three sectors of {SECTOR} bytes by",
        f"zeros or others in {sum(d.torn for d in done):,}. [Promised](promises.md) is, counted:",
        "",
        "- harmless: all rows that are read are those that were written;",
        "- refused: `ValueError`;",
        "- mended: noticed, said, and mended from what is sound, without a person;",
        "- person: noticed, and a backup is needed;",
        "- **silent**: something else was read than was written, or counted twice.",
        "",
        f"| damaged | {' | '.join(RESULTS)} |",
        f"|---|{'---|' * len(RESULTS)}",
    ]
    for target in TARGETS:
        for torn in (False, True):
            found = Counter(d.result for d in done if (d.target, d.torn) == (target, torn))
            name = f"{target}, {'torn' if torn else 'a bit'}"
            lines.append(f"| {name} | {' | '.join(f'{found[r]:,}' for r in RESULTS)} |")
    found = Counter(d.result for d in done)
    lines.append(f"| all | {' | '.join(f'{found[r]:,}' for r in RESULTS)} |")
    went = sum(d.goes_on for d in done)
    lines += [
        "",
        f"In {went:,} of the trials two agents and their coordinator went on with the files: they "
        "pooled again, and no observation counted twice.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Damage files, print what came of it, and keep the page."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    commit = commit_now()
    with tempfile.TemporaryDirectory() as folder:
        text = page(run(trials, Path(folder)), commit)
    print(text)
    if trials >= TRIALS:
        PAGE_OUT.write_text(text)


if __name__ == "__main__":
    main()
