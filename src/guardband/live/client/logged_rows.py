"""Learning from logs: rows that an earlier rule played go into the journal and the stream's sums.

They count like observations, and at once: what happened before has no window to wait for. Where
tasks share contexts, they belong to rounds that are over for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.agent import Learned, Logs, LookedAt, learned, read_logs, widths_now
from guardband.errors import InvalidTypeError, InvalidValueError
from guardband.kernels.types import Floats
from guardband.live.client.agent_state import AgentState
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.journal import JournalError
from guardband.live.client.notes import keep, kept
from guardband.live.client.sync_worker import SyncWorker
from guardband.live.client.watching import note_watched
from guardband.live.link import Link

__all__ = ["BATCH", "LogBlock", "LoggedRows"]

BATCH = 8192  # rows of one transaction: so long the agent's other processes wait for the journal
KEY = 16  # characters of a digest in an id
REST = "rest learned"  # in the journal: how far the rest of the studied log is learned
Flags = NDArray[np.bool_]


LogBlock = tuple[Any, Any, Any, Sequence[str | int] | None]
"""Features, rewards, propensities and ids of some rows, as for `LiveAgent.learn`."""


class RowNames:
    """Names of rows that have no ids, by a running SHA-256 of features and rewards.

    A copy in another format, or in blocks of another size, has the same.
    """

    def __init__(self) -> None:
        self._found, self._rows = sha256(), 0

    def ids(self, logs: Logs) -> list[str]:
        """Return ids of the next rows by their number and all content up to them.

        The same log again has the same ids, and so have the first rows of a log that has grown.
        """
        names = []
        for row, values in enumerate(_as_table(logs), self._rows):
            self._found.update(values)
            names.append(f"{row:012}-{self._found.hexdigest()[:KEY]}")
        self._rows += len(names)
        return names


class Watched:
    """Which rows of a log had been looked at, block by block; see `LiveAgent.learn_blocks`.

    Parameters
    ----------
    looked_at
        The space's record of them; None: it has none.
    reuse, rest
        Whether to learn them, too, or to leave them out; else they are refused.
    """

    def __init__(self, looked_at: LookedAt | None, *, reuse: bool, rest: bool) -> None:
        if reuse and rest:
            raise InvalidValueError("either reuse rows that were looked at, or learn the rest.")
        self._record, self._reuse, self._rest = looked_at, reuse, rest
        self._place, self._rows = 0, np.zeros(0, np.intp)

    @property
    def watches(self) -> bool:
        """Whether there are rows to watch for."""
        return self._record is not None

    def anew(self) -> Watched:
        """Return the same, at the beginning of the log."""
        return Watched(self._record, reuse=self._reuse, rest=self._rest)

    def kept(self, logs: Logs) -> Logs:
        """Return those of the log's next rows that are to be learned."""
        self._rows = np.arange(len(logs.rewards))
        if self._record is None or not self._rest:
            return logs
        given = (logs.whole, logs.rewards, logs.ids)
        looked, self._place = self._record.leave_out(*given, self._place)
        self._rows = np.flatnonzero(~looked)
        return logs.only(~looked)

    def reused(self, logs: Logs, new: list[int], learned: int) -> tuple[Flags, int]:
        """Return which of the kept rows that are new had been looked at; refuse them if need be.

        `learned` rows of the record's rest are known, see `LookedAt.learned`; their number with
        these comes back.
        """
        if self._record is None:
            return np.zeros(len(new), np.bool_), learned
        ids = None if logs.ids is None else [logs.ids[i] for i in new]
        whole = None if logs.whole is None else logs.whole[new]
        now = self._record.after(learned)
        found = now.recognise(whole, logs.rewards[new], ids)
        if found.reused and not self._reuse:
            row = int(np.argmax(found.rows))
            raise now.refusal(int(self._rows[new[row]]), None if ids is None else ids[row])
        return found.rows, found.after.learned


class LoggedRows:
    """Takes rows of logs in, each once by its id.

    Parameters
    ----------
    store
        The agent's state and journal.
    worker, link
        What talks to the coordinator, and the way to it.
    """

    def __init__(self, store: AgentStore, worker: SyncWorker, link: Link) -> None:
        self._store, self._worker, self._link = store, worker, link

    def learn(
        self,
        blocks: Callable[[], Iterable[LogBlock]],
        menus: Any = None,
        *,
        reuse: bool = False,
        rest: bool = False,
    ) -> Learned:
        """Learn a log; an error in its rows changes nothing.

        `blocks` is called twice: everything is checked before anything is learned.
        """
        if not callable(blocks):
            raise InvalidTypeError(f"blocks must be a function that returns them, not {blocks!r}.")
        self._refuse_window()
        reader = self._store.state.learner.reader
        offered = [] if menus is None else [reader.read_menu(menu) for menu in menus]
        looked = Watched(self._looked_at(), reuse=reuse, rest=rest)
        digest, rows, always, with_ids = self._check(blocks(), looked)
        stream = self._worker.claim(digest)
        with self._store as state:
            self._note_kind(digest, "ids" if with_ids else "numbers")
            before = widths_now(state.learner.group, 0, offered)
        new, again, names = 0, 0, RowNames()
        looked = looked.anew()
        for block in blocks():
            logs = looked.kept(self._read(block))
            ids = names.ids(logs) if logs.ids is None else _as_texts(logs.ids)
            taken = self._take_in(logs, ids, looked, stream)
            new, again = new + taken[0], again + taken[1]
        with self._store as state:
            found = learned(state.learner.group, 0, offered, before, new, always)
        return replace(found, known=rows - new, reused=again)

    def _refuse_window(self) -> None:
        """Refuse logs where data are forgotten: nobody knows of which round their rows are."""
        window = self._link.space(self._store.setup.space)[0].window
        if window is not None:
            raise InvalidValueError(
                f"the space forgets by rounds, window={window}, and rows of logs are of another "
                "time: learn them in a space without a window."
            )

    def _looked_at(self) -> LookedAt | None:
        """Return the space's record of rows that were looked at, if it has one."""
        name = self._store.setup.space
        wanted = self._link.space(name)[0].looked_at
        if wanted is None:
            return None
        raw = self._link.looked_at(name)
        if sha256(raw).hexdigest() != wanted:
            raise JournalError(
                f"the record of rows that were looked at, which space {name!r} needs, is not the "
                "one that its settings name: try again."
            )
        return LookedAt.from_bytes(raw)

    def _note_kind(self, digest: str, kind: str) -> None:
        """Note how the rows of a log are known; refuse one that was begun in the other way."""
        journal, key = self._store.journal, f"log {digest}"
        if kept(journal, key) not in (None, kind):
            how = "with ids: name their column again" if kind == "numbers" else "without ids"
            raise InvalidValueError(
                f"these rows were learned before {how}; in another way every row would count twice."
            )
        keep(journal, key, kind)

    def _check(
        self, blocks: Iterable[LogBlock], looked: Watched
    ) -> tuple[str, int, float | None, bool]:
        """Return a log's digest, its number of rows, and the share that had no alternative.

        Last, whether rows have ids. The digest is that of the rewards: tasks of a space may use
        different features of one log, and name its rows in different ways.
        """
        content, rows, certain, with_ids = sha256(), 0, None, False
        names = RowNames()
        with self._store:
            learned = self._learned_rest()
        for block in blocks:
            logs = looked.kept(self._read(block))
            if rows and with_ids != (logs.ids is not None):
                raise InvalidValueError("some rows have ids and others do not: give all, or none.")
            with_ids = logs.ids is not None
            if logs.ids is not None:
                self._check_known(logs, _as_texts(logs.ids))
            if looked.watches:
                ids = names.ids(logs) if logs.ids is None else _as_texts(logs.ids)
                for new in self._unknown(ids):
                    _, learned = looked.reused(logs, new, learned)
            content.update((logs.rewards + 0.0).tobytes())
            rows += len(logs.rewards)
            if logs.propensities is not None:
                certain = (certain or 0) + int((logs.propensities == 1.0).sum())
        always = None if certain is None or not rows else certain / rows
        return content.hexdigest(), rows, always, with_ids

    def _read(self, block: LogBlock) -> Logs:
        """Return rows that the space allows."""
        state, (features, rewards, propensities, ids) = self._store.state, block
        given = (features, rewards, None, propensities, ids)
        logs = read_logs(state.learner.reader, state.learner.reward_range, *given)
        rules = state.space.rewards
        wrong = (logs.rewards < rules.low) | (logs.rewards > rules.high)
        if wrong.any():
            row = int(np.argmax(wrong))
            try:
                state.as_reward(logs.rewards[row])
            except InvalidValueError as error:
                raise InvalidValueError(f"row {row}: {error}") from None
        return logs

    def _learned_rest(self) -> int:
        """Return how many rows of the studied log's rest are learned, where only order tells."""
        return int(kept(self._store.journal, REST) or 0)

    def _unknown(self, ids: Sequence[str]) -> Iterator[list[int]]:
        """Yield the places of ids that were not learned before, batch by batch."""
        for start in range(0, len(ids), BATCH):
            names = ids[start : start + BATCH]
            with self._store:
                known = self._store.journal.logged(names)
            yield [i for i, name in enumerate(names, start) if name not in known]

    def _check_known(self, logs: Logs, ids: Sequence[str]) -> None:
        """Refuse rows that were learned before under their id with other values."""
        for start in range(0, len(ids), BATCH):
            names = ids[start : start + BATCH]
            with self._store:
                known = self._store.journal.logged(names)
            for row, name in enumerate(names if known else (), start):
                x, reward = known.get(name, (None, 0.0))
                if x is not None and logs.rewards[row] != reward:
                    raise InvalidValueError(
                        f"row {row}: id {name!r} was learned before with the reward {reward:g}, "
                        f"{logs.rewards[row]:g} is refused: a row has one reward."
                    )
                if x is not None and logs.rows[row].tobytes() != x:
                    raise InvalidValueError(
                        f"row {row}: id {name!r} was learned before with other features: give "
                        "every row an id of its own."
                    )

    def _take_in(
        self, logs: Logs, ids: Sequence[str], looked: Watched, stream: str | None
    ) -> tuple[int, int]:
        """Learn the rows that are not known yet, in their order.

        Returns how many these are, and how many of them had been looked at.
        """
        count = again = 0
        for start in range(0, len(ids), BATCH):
            names = ids[start : start + BATCH]
            with self._store as state:
                if state.stream.stream != stream:
                    raise JournalError(
                        f"a new stream has begun in {self._store.path.parent}, which was copied or "
                        "restored, or an alarm was raised (see agent.health): the rest of the log "
                        "is not learned."
                    )
                known = self._store.journal.logged(names)
                new = [i for i, name in enumerate(names, start) if name not in known]
                if new:
                    reused, learned = looked.reused(logs, new, self._learned_rest())
                    given = (logs.rows[new], logs.rewards[new], reused)
                    self._learn(state, *given, [ids[i] for i in new])
                    keep(self._store.journal, REST, learned)
                    count, again = count + len(new), again + int(reused.sum())
        return count, again

    def _learn(
        self, state: AgentState, rows: Floats, rewards: Floats, reused: Flags, ids: list[str]
    ) -> None:
        """Learn new rows and write them down, within a transaction."""
        journal, entry, before = self._store.journal, state.stream.since, state.n
        # What the learner computes with is rebuilt from the sums in the journal, so that a process
        # that goes on where another was killed finds the same predictions and weights.
        self._store.load_learner(state.learner.own())
        since = before if entry is None else before - entry.n
        absorbed = state.learner.learn_rows(rows, rewards, before, since, int(reused.sum()))
        columns = (
            repeat(state.stream_id, len(ids)),
            range(before + 1, before + len(ids) + 1),
            ids,
            map(np.ndarray.tobytes, rows),
            absorbed.guesses.tolist(),
            absorbed.weights.tolist(),
            rewards.tolist(),
            map(int, reused),
            absorbed.declared.tolist(),
        )
        journal.add_logged(zip(*columns, strict=True))
        journal.count(state.stream_id, "logged", len(ids))
        state.n += len(ids)
        state.due = state.due or absorbed.due
        note_watched(self._store)
        self._store.save()


def _as_table(logs: Logs) -> Floats:
    """Return features and rewards side by side, with 0 for -0."""
    table: Floats = np.column_stack([logs.rows, logs.rewards]) + 0.0
    return table


def _as_texts(ids: Sequence[Any]) -> list[str]:
    """Return ids as texts, each once."""
    names: dict[str, int] = {}
    for row, each in enumerate(ids):
        if not isinstance(each, str | int | np.integer) or isinstance(each, bool):
            raise InvalidTypeError(
                f"ids must be texts or whole numbers; that of row {row} is {each!r}."
            )
        first = names.setdefault(str(each), row)
        if first != row:
            raise InvalidValueError(f"id {each!r} is given twice: of rows {first} and {row}.")
    return list(names)
