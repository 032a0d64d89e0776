"""The checker's own ledger: what was played, told and acknowledged, and what each sum must hold.

Which observations count, and in which order, is read from journals before anything happens to
them. What they are worth is not: features and rewards are the ledger's own, from when they were
played. Features are so fine that no two observations are alike, and all sums of them are exact: a
sum equals that of the ledger, bit for bit, or it holds something else.
"""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Any

import numpy as np
from live.chaos.world import reward_of
from live.simulation.machines import Process
from live.simulation.records import Acknowledged, EpochRecord, Link, Play, SimulationError, expect

from guardband.live.client.journal import DamagedJournalError
from guardband.live.client.windows import End
from guardband.live.protocol.messages import Revision, Upload
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, empty_sums, upper_places

__all__ = ["Ledger"]

WINDOW_SLACK_S = 1.0
NEW = """
    SELECT o.k, o.seq, o.ended, o.reward, d.x, d.weight, d.guess
    FROM outcome o LEFT JOIN decision d USING(seq) WHERE o.seq > ? AND o.stream = ? AND o.k > ?
    ORDER BY o.k
"""


class Ledger:
    """Everything that the outside world knows.

    Parameters
    ----------
    space
        The rules.
    """

    def __init__(self, space: SpaceSettings) -> None:
        self.space = space
        self._upper = upper_places(space.dim)
        self.plays: dict[bytes, Play] = {}
        # What a machine's journal has counted in a stream, and from where on to look for more.
        self._chains: dict[tuple[str, str], list[Link]] = {}
        self._settled: dict[tuple[str, str], int] = {}
        self._shaken: set[tuple[str, str]] = set()  # chains whose journal may have gone back
        self._lossy: dict[str, float] = {}  # by machine: when it last lost power or went back
        self._damaged: set[str] = set()  # machines whose journal may have lost pages
        self.suspended: set[str] = set()  # those whose damage may not have been met yet
        self._numbers: dict[tuple[str, int], bytes] = {}  # of decisions: what was played
        self.checkpoints: dict[tuple[str, Revision], Link] = {}
        # Who sent them last, and still has them: a message may arrive after its folder went back.
        self._homes: dict[tuple[str, Revision], str] = {}
        # Those that were sent while their journal could not be read.
        self._unexplained: dict[tuple[str, Revision], Link] = {}
        # By stream: the newest checkpoint, and others that it does not go on from.
        self.acknowledged: dict[str, list[Acknowledged]] = {}
        self.epochs: dict[int, list[EpochRecord]] = {}  # several only where the store was damaged
        self.store_suspended = self._store_damaged = False
        self._weight = math.nan  # of an observation; all have the same

    # What happens.

    def played(self, machine: str, x: bytes, now: float, seq: int | None = None) -> None:
        """Note that an action was played, or may have been."""
        self.plays[x] = Play(machine, now)
        if seq is not None:
            self._numbers[machine, seq] = x

    def shake(self, machine: str, now: float, *, back: bool) -> None:
        """Note that a machine lost power; or, with `back`, that its folder went back in time."""
        self._shaken |= {key for key in self._chains if key[0] == machine}
        self._lossy[machine] = now
        if back:
            self._homes = {key: home for key, home in self._homes.items() if home != machine}
            for heads in self.acknowledged.values():
                for head in heads:
                    head.machine = "" if head.machine == machine else head.machine

    def damage(self, machine: str, now: float) -> None:
        """Note that a machine's files were changed: what only they have may be lost."""
        self.shake(machine, now, back=True)
        self._damaged.add(machine)
        self.suspended.add(machine)

    def damage_store(self) -> None:
        """Note that the coordinator's file was changed: agents send again what it lost."""
        self.store_suspended = self._store_damaged = True
        for heads in self.acknowledged.values():
            for head in heads:
                head.waived = True

    def trust_again(self) -> None:
        """Note that all damage was met and mended, and that all that is left was looked at.

        What was lost with it is seen once more: nobody may have read a journal since it was mended.
        """
        self._shaken |= {key for key in self._chains if key[0] in self.suspended}
        self.suspended.clear()
        self.store_suspended = False

    def copy(self, machine: str, clone: str, now: float) -> None:
        """Note that a machine's folder was copied to another one."""
        for (home, stream), chain in list(self._chains.items()):
            if home == machine:
                self._chains[clone, stream] = chain.copy()
                self._settled[clone, stream] = self._settled[home, stream]
        for (home, seq), x in list(self._numbers.items()):
            if home == machine:
                self._numbers[clone, seq] = x
        for those in (self._damaged, self.suspended):
            if machine in those:
                those.add(clone)
        self.shake(machine, now, back=True)
        self.shake(clone, now, back=True)

    def sent(self, process: Process, stream: str, upload: Upload) -> None:
        """Check a checkpoint that an agent sends."""
        sums, version = upload.checkpoint.sums, upload.checkpoint.version
        if not sums.n:
            return
        key = (stream, Revision(sums.n, version))
        self._homes[key] = process.machine.name
        link = self.checkpoints.get(key)
        if link is None:
            link = self.checkpoints[key] = self._counted(process, stream, key[1], sums)
        self._same(sums, link, "silent change: what an agent sends is not what it counted", key)

    def _counted(self, process: Process, stream: str, revision: Revision, sums: Sums) -> Link:
        """Return what a checkpoint must hold; where a damaged journal cannot tell now, later."""
        machine = process.machine.name
        try:
            chain = self.follow(process, stream)
            if len(chain) >= sums.n:
                return chain[sums.n - 1]
        except DamagedJournalError:  # what was counted before may have been lost, and replaced
            chain = self._chains[machine, stream][: sums.n - 1]
        about = (machine, stream, revision, len(chain))
        expect(machine in self._damaged, "silent change: more was sent than counted", *about)
        before = chain[-1] if chain else None
        link = Link(sums.n, b"", 0.0, before, sums.gram, sums.surprise, sums.weight)
        self._unexplained[stream, revision] = link
        return link

    def _explain(self, stream: str, chain: list[Link]) -> None:
        """Compare what was sent while a journal could not be read."""
        for key in [key for key in self._unexplained if key[0] == stream]:
            link = self._unexplained[key]
            if len(chain) < link.k:
                continue
            known, sent = chain[link.k - 1], Sums(link.k, link.gram, link.surprise, link.weight)
            self._same(sent, known, "silent change: what was sent is not what was counted", key)
            del self._unexplained[key]
            self.checkpoints[key] = known
            for head in self.acknowledged.get(stream, []):
                head.link = known if head.link is link else head.link

    def stored(self, stream: str, revision: Revision) -> None:
        """Note that the coordinator acknowledged a checkpoint."""
        if not revision.n:
            return
        link = self.known(stream, revision)
        heads = self.acknowledged.setdefault(stream, [])
        if not any(link.within(head.link) for head in heads):
            heads[:] = [head for head in heads if not head.link.within(link)]
            home = self._homes.get((stream, revision), "")
            home = "" if home in self.suspended else home
            heads.append(Acknowledged(link, home, self.store_suspended))

    def follow(self, process: Process, stream: str) -> list[Link]:
        """Return what a stream of a process's journal has counted."""
        journal, machine = process.store.journal, process.machine.name
        key = (machine, stream)
        chain = self._chains.setdefault(key, [])
        found = journal.query("SELECT id FROM stream WHERE name = ?", (stream,))
        if not found and machine in self._damaged:  # it began anew
            return chain
        ((number,),) = found
        ((current, settled, n),) = journal.query("SELECT stream, settled, n FROM head")
        if key in self._shaken or machine in self.suspended:
            self._go_back(journal, machine, stream, number)
        after = self._settled.get(key, 0) if current == number else 0
        for row in journal.query(NEW, (after, number, len(chain))):
            self._count(machine, chain, *row)
        if current == number:
            self._settled[key] = settled
            expect(len(chain) == n, "silent change: n is not what was counted", key, len(chain), n)
        if self._unexplained:
            self._explain(stream, chain)
        return chain

    def _go_back(self, journal: Any, machine: str, stream: str, number: int) -> None:
        """Forget what a journal lost, and perhaps replaced; what was acknowledged must be there."""
        chain = self._chains[machine, stream]
        rows = journal.query(
            "SELECT o.k, d.x, o.reward FROM outcome o LEFT JOIN decision d USING(seq) "
            "WHERE o.stream = ? AND o.k > 0",
            (number,),
        )
        n = len(rows)
        if machine in self._damaged:
            ((n,),) = journal.query("SELECT n FROM head")
        kept = {k: (x, reward) for k, x, reward in rows}

        def is_same(link: Link) -> bool:
            x, reward = kept.get(link.k, (None, link.reward))
            return link.k <= n and x in (link.x, None) and reward == link.reward

        same = sum(1 for _ in takewhile(is_same, chain))
        for head in self.acknowledged.get(stream, []):
            kept = head.machine != machine or same >= head.link.k
            expect(kept, "acknowledged lost: in a journal", machine, same, head.link.k)
        del chain[same:]
        self._settled[machine, stream] = 0
        self._shaken.discard((machine, stream))

    def _count(
        self,
        machine: str,
        chain: list[Link],
        k: int,
        seq: int,
        ended: int,
        reward: float,
        x: bytes | None,
        weight: float,
        guess: float,
    ) -> None:
        """Append an observation to a chain: its features and reward are the ledger's."""
        about = (machine, seq)
        if x is None and machine in self._damaged:  # the page with the decision is gone
            x, weight, guess = self._numbers[about], self._weight, math.nan
        self._weight = weight
        expect(k == len(chain) + 1, "silent change: a gap", *about, k, len(chain))
        play = None if x is None else self.plays.get(x)
        if play is None or x is None:
            raise SimulationError(f"silent change: nobody played this: {about}")
        z = np.empty(self.space.dim + 1)
        z[:-1] = np.frombuffer(x)
        if ended == End.OBSERVED:
            expect(play.told, "silent change: a reward that nobody told", *about)
            z[-1] = reward_of(z[:-1])
        else:
            expect(ended == End.DEFAULTED, "silent change: it does not count", *about, ended)
            z[-1] = self.space.rewards.default
            in_time = (
                machine not in self.suspended
                and play.heard is not None
                and (
                    play.heard < play.at + self.space.rewards.window_s - WINDOW_SLACK_S
                    and play.at > self._lossy.get(machine, -1.0)
                )
            )
            expect(not in_time, "acknowledged lost: a reward", *about)
        expect(reward == z[-1], "silent change: another reward", *about, reward, z[-1])
        last = chain[-1] if chain else None
        gram = weight * z[self._upper[0]] * z[self._upper[1]]
        surprise = weight * (guess * guess - 2.0 * z[-1] * guess)
        chain.append(
            Link(
                k,
                x,
                reward,
                last,
                gram if last is None else last.gram + gram,
                surprise if last is None else last.surprise + surprise,
                weight if last is None else last.weight + weight,
            )
        )

    # What must be.

    def _same(self, sums: Sums, link: Link, promise: str, *about: Any) -> None:
        apart = abs(sums.surprise - link.surprise)
        exact = sums.n == link.k and sums.weight == link.weight
        exact = exact and np.array_equal(sums.gram, link.gram)
        known = not math.isnan(link.surprise)  # else a prediction went with its page
        close = not known or apart <= 1e-9 * max(1.0, abs(link.surprise))
        expect(exact and close, promise, *about)

    def known(self, stream: str, revision: Revision) -> Link:
        """Return what a checkpoint holds; nobody but an agent makes them."""
        link = self.checkpoints.get((stream, revision))
        if link is None:
            raise SimulationError(f"silent change: nobody sent {stream} {revision}")
        return link

    def check_stream(self, stream: str, revision: Revision, total: bytes) -> Link:
        """Check what the coordinator holds of a stream."""
        link = self.known(stream, revision)
        self._same(Sums.from_bytes(total), link, "silent change: at the coordinator", stream)
        for head in self.acknowledged.get(stream, []):
            kept = head.waived or head.link.within(link)
            expect(kept, "acknowledged lost: at the coordinator", stream, revision, head.link.k)
        return link

    def close_epoch(self, epoch: int, entries: dict[str, Revision], total: bytes | None) -> None:
        """Check an epoch that was closed, and that it stays what it is."""
        sums = empty_sums(self.space.dim)
        gram, weight, surprise, n = sums.gram.copy(), 0.0, 0.0, 0
        for stream, revision in sorted(entries.items()):
            link = self.known(stream, revision)
            gram += link.gram
            weight, surprise, n = weight + link.weight, surprise + link.surprise, n + link.k
        kept = sums if total is None else Sums.from_bytes(total)
        if self._store_damaged and self._lost_lines(epoch, entries, kept):
            return
        made = Link(n, b"", 0.0, None, gram, surprise, weight)
        self._same(kept, made, "silent change: an epoch is not the sum of its streams", epoch)
        known = self.epochs.setdefault(epoch, [])
        if not any(record.entries == entries for record in known):
            expect(not known or self._store_damaged, "silent change: an epoch changed", epoch)
            known.append(EpochRecord(entries, kept))

    def _lost_lines(self, epoch: int, entries: dict[str, Revision], total: Sums) -> bool:
        """Tell whether this is an epoch that was closed, of whose manifest damage has left less."""
        return any(
            entries.items() < record.entries.items()
            and np.array_equal(total.gram, record.total.gram)
            for record in self.epochs.get(epoch, [])
        )

    def check_view(self, process: Process) -> None:
        """Check what an agent computes with: an epoch, and its own since its part of that."""
        with process.store as state:  # another process may have written to the journal
            self._check_view(process, state)

    def _check_view(self, process: Process, state: Any) -> None:
        stream, learner = state.stream, state.learner
        chain = self.follow(process, stream.stream)
        if stream.epoch and stream.pooled is not None:
            records = self.epochs.get(stream.epoch, [])
            gram = stream.pooled.gram
            record = next((r for r in records if np.array_equal(r.total.gram, gram)), None)
            if record is None:
                raise SimulationError(f"silent change: no such epoch {stream.epoch}")
            base = record.total
            entry = record.entries.get(stream.stream)
            about = (process.name, stream.epoch, entry, stream.since)
            expect(entry == stream.since, "counted twice, or not at all: own part", *about)
        else:
            base = empty_sums(self.space.dim)
            expect(stream.since is None, "counted twice: no epoch", process.name)
        after = 0 if stream.since is None else stream.since.n
        own = chain[-1].gram if chain else np.zeros_like(base.gram)
        if after:
            own = own - chain[after - 1].gram
        expected = base.gram + own
        used, moment = learner.group.pooled, learner.state.own
        d = self.space.dim
        whole = np.empty((d + 1, d + 1))
        whole[:d, :d] = used.gram + moment.gram
        whole[:d, d] = used.moment + moment.moment
        whole[d, d] = used.scalars[1] + moment.scalars[1]
        count = used.scalars[0] + moment.scalars[0]
        about = (process.name, stream.epoch, state.n)
        expect(count == base.n + len(chain) - after, "counted twice, or lost: in use", *about)
        found = whole[self._upper]
        expect(np.array_equal(found, expected), "silent change: the sums in use", *about)
