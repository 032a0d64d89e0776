"""Monitors in a journal: what they remember is kept now and then, and follows from rewards since.

An alarm is written down, and heeded, in the transaction of the reward that raised it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from guardband.agent import Alarm, AlarmLog
from guardband.kernels.monitors import KINDS, AlarmCode
from guardband.live import system
from guardband.live.client.before import change_before
from guardband.live.client.journal import Journal
from guardband.live.client.monitors import Monitors
from guardband.live.link import Link
from guardband.live.protocol.messages import Alarmed, Begin, Left
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.space_rules import is_comparable
from guardband.live.protocol.sums import Sums, difference, empty_sums, forget

if TYPE_CHECKING:
    from guardband.live.client.agent_state import AgentState
    from guardband.live.client.agent_store import AgentStore
    from guardband.live.client.stream_state import StreamState

__all__ = ["another_may_be_odd", "begin_again", "first_stream", "heed", "leave_if"]
__all__ += ["look_for_misfit", "memory_before", "misfit"]
__all__ += ["note_looked_at", "note_watched", "others_in", "put_memory", "read_alarms", "rewatch"]
__all__ += ["tell_alarms", "watch_again"]

EVERY = 256  # observations: so many are watched again, at most, when an agent starts
LOOK = 64  # observations after which an agent looks whether it fits, beside every new epoch
FIT = int(AlarmCode.FIT)
WATCHED = """
    SELECT o.k, d.x, d.declared, d.lower, o.reward, d.round
    FROM outcome o JOIN decision d USING(seq)
    WHERE o.stream = ?1 AND o.k > ?2 AND o.k <= ?3
    UNION ALL
    SELECT k, x, declared, NULL, reward, 0 FROM logged WHERE stream = ?1 AND k > ?2 AND k <= ?3
    ORDER BY 1
"""
BEFORE = """
    SELECT n, numbers FROM monitor WHERE stream = ? AND n <= ? AND from_seq <= ?
    ORDER BY n DESC, from_seq DESC LIMIT 1
"""
REUSED = "SELECT coalesce(sum(reused), 0) FROM logged WHERE stream >= ?"


def put_memory(store: AgentStore, why: str = "") -> None:
    """Write down what monitors remember now; `why` says what changed it, beside rewards."""
    state = store.state
    store.journal.query(
        "INSERT INTO main.monitor VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
        "SET numbers = excluded.numbers, why = max(why, excluded.why)",
        (state.stream_id, state.n, state.last + 1, why, state.learner.monitors.as_bytes()),
    )


def memory_before(
    journal: Journal, monitors: Monitors, stream: int, n: int, seq: int
) -> int | None:
    """Let monitors remember what was last written down before that; return of which observation."""
    found = journal.one(BEFORE, (stream, n, seq))
    monitors.remember(None if found is None else found[1])
    return None if found is None else int(found[0])


def watch_again(journal: Journal, monitors: Monitors, stream: int, after: int, upto: int) -> int:
    """Watch a stream's observations after < k <= upto again; return the last, or one of an alarm.

    LookupError: some are no longer in the journal.
    """
    rows = journal.query(WATCHED, (stream, after, upto))
    if len(rows) != max(0, upto - after):
        raise LookupError(f"observations between {after} and {upto} are gone from {journal.path}.")
    if not rows:
        return upto
    x = np.array([np.frombuffer(row[1]) for row in rows])
    weights, lowers, rewards = (np.array([row[i] for row in rows], float) for i in (2, 3, 4))
    return after + monitors.watch_again(x, rewards, weights, lowers, [row[5] for row in rows])


def rewatch(store: AgentStore, whole: bool) -> None:
    """Bring monitors up to date with the journal, within a transaction."""
    state, journal = store.state, store.journal
    monitors = state.learner.monitors
    if not monitors.kinds:
        return
    known: int | None = state.watched
    if whole:
        known = memory_before(journal, monitors, state.stream_id, state.n, state.last + 1)
    state.watched = state.n
    if known is None:  # a new journal, or one from before there were monitors: they begin now
        put_memory(store)
        return
    monitors.set_threshold(None)  # what was heeded is not raised again
    try:
        watch_again(journal, monitors, state.stream_id, known, state.n)
    except LookupError:  # rows are gone: monitors may begin at any time
        monitors.begin_in_between()
        put_memory(store)
    monitors.set_threshold(state.share)


def first_stream(journal: Journal, stream: int) -> int:
    """Return the first stream of the start that a stream belongs to."""
    ((first,),) = journal.query(
        "SELECT coalesce(max(id), 1) FROM stream WHERE why <> '' AND id <= ?", (stream,)
    )
    return int(first)


def note_watched(store: AgentStore) -> None:
    """Note that monitors have watched all observations so far; heed what they noticed."""
    state = store.state
    monitors = state.learner.monitors
    if not monitors.kinds:
        return
    before, state.watched = state.watched, state.n
    found, n = monitors.alarm, state.n
    if found is not None:
        heed(store, *found)
        return
    if before // EVERY != n // EVERY:
        put_memory(store)
    if before // LOOK != n // LOOK:
        look_for_misfit(store)


def look_for_misfit(store: AgentStore) -> None:
    """Leave the pool if the task's own data contradict the others' in the adopted epoch.

    Where the next epoch would tell which task is odd, it is called for first.
    """
    state, stream = store.state, store.state.stream
    evidence = misfit(state, stream, stream.without, state.excluded)
    if evidence is None:
        return
    if is_comparable(state.space) and state.looked != stream.epoch:
        state.looked, state.due = stream.epoch, True
        return
    leave_if(store, evidence)


def leave_if(store: AgentStore, evidence: float | None) -> None:
    """Leave the pool if there is evidence that the task does not fit."""
    if evidence is not None:
        heed(store, FIT, evidence)


def misfit(
    state: AgentState, stream: StreamState, without: Sequence[Sums], excluded: int
) -> float | None:
    """Return the evidence that a task contradicts the others in a stream's epoch, if it is enough.

    With the sums `without` each of them: that it contradicts all of these. None where the stream
    continues a sealed one: some of its own data are then among the others'. Nor where what monitors
    watch is of an older half window than what counts.
    """
    monitors = state.learner.monitors
    if stream.pooled is None or stream.moved is not None or state.apart or state.share is None:
        return None
    if monitors.half != state.learner.half:
        return None
    others = others_in(stream.pooled, without, stream.entry, monitors.half)
    return monitors.misfit(others, _price(state.space, excluded, stream.epoch))


def another_may_be_odd(
    state: AgentState, stream: StreamState, without: Sequence[Sums], excluded: int
) -> bool:
    """Tell whether a task fits the others without one of them, all of whom it contradicts.

    That one is odd then, or lies; if it is odd, it contradicts all others, and leaves. Where only
    one other task has data, it is a word against a word.
    """
    own = stream.entry
    some = [each for each in without if each.n > (0 if own is None else own.n)]
    return bool(some) and misfit(state, stream, some, excluded) is None


def others_in(pooled: Sums, without: Sequence[Sums], entry: Sums | None, half: int) -> list[Sums]:
    """Return the sums of all others in an epoch; where one task may lie, without each of them.

    `entry` is the agent's own part of it.
    """
    own = empty_sums(pooled.dim) if entry is None else entry
    if without:
        return [difference(each, own) for each in without]
    return [difference(forget(pooled, half) if half else pooled, own)]


def _price(space: SpaceSettings, excluded: int, epoch: int) -> float:
    """Return what the threshold of "fit" grows by: for a choice of tasks, or of epochs.

    Who has left the pool was found out by looking at rewards. Where contexts are shared, the own
    rewards since an epoch go with it alone: each epoch is a process of its own.
    """
    price = excluded * math.log(3.0 * space.agents)
    return price + math.log(epoch * (epoch + 1)) if space.contexts == "shared" else price


def heed(store: AgentStore, code: int, evidence: float) -> None:
    """Write an alarm down, and do what the space says, within a transaction."""
    state, monitors, kind = store.state, store.state.learner.monitors, KINDS[code - 1]
    store.journal.query(
        "INSERT INTO main.alarm(stream, n, kind, round, evidence, at) VALUES (?, ?, ?, ?, ?, ?)",
        (state.stream_id, state.n, kind, state.last, evidence, store.clock.now()),
    )
    state.alarms.alarms.append(Alarm(kind, state.last, evidence))
    if not monitors.respond(code):
        put_memory(store, "alarm")
        store.save_all()
        return
    pooled = state.space.agents > 1
    left = state.stream.left
    if pooled and not state.apart:
        left = "fit" if code == FIT else "anew"
    state.apart = pooled
    store.journal.query("UPDATE main.control SET apart = ?", (int(state.apart),))
    _go_on(store, "alarm", _data(store) if code == FIT else None, state.stream.pool, left)


def begin_again(store: AgentStore, begin: Begin, pool: int) -> None:
    """Begin another stream, because the pool is not the one that this one began for."""
    state, open_ = store.state, None
    if begin == "declared":
        open_ = _data(store)
    else:
        state.learner.monitors.restart()
        change_before(store, followed=(*state.before.followed, state.last))
        state.alarms.followed.append(state.last)
    _go_on(store, "pool", open_, pool, state.stream.left if state.apart else "")
    state.due = open_ is not None and open_.n > 0 and not state.apart
    store.save_all()


def _data(store: AgentStore) -> Sums:
    """Return all data of this start at declared weights."""
    learner = store.state.learner
    ((reused,),) = store.journal.query(REUSED, (store.state.first_stream,))
    return learner.monitors.declared(reused, learner.half)


def _go_on(store: AgentStore, why: str, open_: Sums | None, pool: int, left: Left) -> None:
    """Begin a stream in the place of the one in use, with these data, or with nothing."""
    before = store.state.stream
    sums = empty_sums(before.dim) if open_ is None else open_
    store.start_stream(before.again(str(system.new_uuid()), sums, pool=pool, left=left), why=why)


def read_alarms(journal: Journal, followed: Sequence[int]) -> AlarmLog:
    """Return all alarms, and how many of them a person has looked at."""
    rows = journal.query("SELECT kind, round, evidence, looked_at FROM alarm ORDER BY number")
    looked = max((i for i, row in enumerate(rows, 1) if row[3] is not None), default=0)
    return AlarmLog([Alarm(*row[:3]) for row in rows], looked, list(followed))


def _untold(journal: Journal, everything: bool) -> list[tuple[int, Alarmed]]:
    """Return the alarms to tell the coordinator, by their numbers: news, or all nobody looked at.

    An alarm is told as raised, and as looked at.
    """
    rows = journal.query_aside(
        "SELECT a.number, s.name, a.kind, a.round, a.evidence, a.looked_at IS NOT NULL "
        "FROM alarm a JOIN stream s ON s.id = a.stream "
        "WHERE a.told < 1 + (a.looked_at IS NOT NULL) OR (? AND a.looked_at IS NULL) "
        "ORDER BY a.number",
        (everything,),
    )
    return [
        (
            number,
            Alarmed(
                raised_in=name, kind=kind, round=round_, evidence=evidence, looked_at=bool(looked)
            ),
        )
        for number, name, kind, round_, evidence, looked in rows
    ]


def tell_alarms(store: AgentStore, link: Link, everything: bool) -> None:
    """Tell the coordinator of alarms, and hear of each whether a person has looked at it."""
    for number, alarm in _untold(store.journal, everything):
        kept = link.alarm(store.state.stream.stream, alarm)
        with store:
            told = 1 + alarm.looked_at
            store.journal.query("UPDATE main.alarm SET told = ? WHERE number = ?", (told, number))
            if kept.looked_at and not alarm.looked_at:
                note_looked_at(store, number)


def note_looked_at(store: AgentStore, upto: int | None = None) -> None:
    """Count alarms up to that number, or all, as looked at; hold to the baseline no longer."""
    state, journal = store.state, store.journal
    last = len(state.alarms.alarms) if upto is None else upto
    journal.query(
        "UPDATE main.alarm SET looked_at = ? WHERE looked_at IS NULL AND number <= ?",
        (store.clock.now(), last),
    )
    news = state.alarms.news
    state.alarms.looked_at = max(state.alarms.looked_at, last)
    if not state.alarms.news:
        state.learner.monitors.hold_no_longer()
        if news:
            state.learner.monitors.look_again()
        put_memory(store, "resume")
    store.save_all()
