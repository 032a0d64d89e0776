"""The invariants, checked on what is left after a run: journals, the coordinator's file, evidence.

Nothing of the program under test is asked what it thinks of itself.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from live.chaos.branches import Branch, Prefix
from live.chaos.proxy import Evidence
from live.chaos.world import LEASE_S, TASKS, reward_of

from guardband.live.client.journal import Journal
from guardband.live.client.replay import rebuild
from guardband.live.client.windows import End
from guardband.live.operators.rows_check import changed_rows
from guardband.live.operators.sums_check import changed_sums
from guardband.live.protocol.messages import Revision
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, add_sums, matrix_of
from guardband.live.store.sqlite import SqliteStore

__all__ = ["Checker", "Findings"]

NOTHING = Revision(0, "")
SLACK_S = 3.0  # from a message's arrival until the agent has dealt with it, on a busy machine
REPLAYED = 40  # learned decisions of each journal that are made again


@dataclass
class Findings:
    """How a run went, in numbers."""

    logged: int  # observations in all journals
    counted: int  # that the coordinator holds
    epochs: int
    conflicts: int
    lost: int  # acknowledged and not stored
    wrong: int  # totals that are not what journals say
    error: float  # the largest difference of a sum


class Checker:
    """All that is known after a run.

    Parameters
    ----------
    space
        The rules of the run.
    store
        The coordinator's file.
    branches
        Every journal, also of folders that were rolled back.
    evidence
        What passed the proxy.
    """

    def __init__(
        self, space: SpaceSettings, store: Path, branches: list[Branch], evidence: Evidence
    ) -> None:
        self.space, self.branches, self.evidence = space, branches, evidence
        kept = SqliteStore(store)
        assert kept.check() == []
        with kept.reading() as t:
            self.streams = {row.stream: row for row in t.streams(space.name)}
            self.epochs = {row.epoch: row for row in t.epochs(space.name, 10**6)}
            self.events = t.events(space.name, 10**6)
            self.manifests = {
                epoch: {e.stream: Revision(e.n, e.version) for e in t.entries(space.name, epoch)}
                for epoch in self.epochs
            }
        kept.close()
        self.closed = sorted(e for e, row in self.epochs.items() if row.state == "closed")
        self._prefixes: dict[tuple[str, Revision], Prefix | None] = {}
        self.error = 0.0

    def prefix(self, stream: str, revision: Revision) -> Prefix:
        """Return the observations in a checkpoint, from a journal that made it, or from several."""
        key = (stream, revision)
        if key not in self._prefixes:
            holders = [b for b in self.branches if key in b.checkpoints]
            found = [p for b in holders if (p := b.prefix(stream, revision.n)) is not None]
            assert all(p.names == found[0].names for p in found), f"I2: {key} has two pasts"
            self._prefixes[key] = found[0] if found else None
        known = self._prefixes[key]
        assert known is not None, f"I1: no journal knows the checkpoint {key}"
        return known

    def check(self) -> Findings:
        """Assert everything."""
        self.i1_every_observation_at_most_once()
        lost = self.i2_what_was_acknowledged_is_there()
        self.i3_no_view_has_anything_twice()
        wrong = self.i4_totals_are_the_sums_of_journals()
        self.i5_epochs_never_change_and_grow()
        self.i6_entries_never_go_back()
        self.i7_totals_are_possible()
        self.i8_every_decision_is_accounted_for()
        self.i9_nothing_learned_is_played_where_it_must_not()
        self.i10_margins_come_out_again()
        return Findings(
            logged=len({m.x for b in self.branches for m in b.made if m.k is not None}),
            counted=sum(row.n for row in self.streams.values()),
            epochs=len(self.closed),
            conflicts=sum(event.what == "revision conflict" for event in self.events),
            lost=lost,
            wrong=wrong,
            error=self.error,
        )

    def i1_every_observation_at_most_once(self) -> None:
        """The coordinator: each observation at most once, over all streams."""
        times: Counter[bytes] = Counter()
        for row in self.streams.values():
            if row.n:
                times.update(self.prefix(row.stream, row.revision).names)
        assert max(times.values(), default=0) <= 1, f"I1: {times.most_common(3)}"

    def i2_what_was_acknowledged_is_there(self) -> int:
        """What the coordinator acknowledged, it has, in the same stream."""
        said = {(a.stream, a.revision) for a in self.evidence.acknowledged}
        for branch in self.branches:
            said |= {(s, revision) for s, revision in branch.bases.items() if revision != NOTHING}
        lost = []
        for stream, revision in said:
            row = self.streams.get(stream)
            if (
                row is None
                or row.n < revision.n
                or (row.n == revision.n and row.version != revision.version)
            ):
                lost.append((stream, revision))
                continue
            now, then = self.prefix(stream, row.revision), self.prefix(stream, revision)
            if now.names[: revision.n] != then.names:
                lost.append((stream, revision))
        assert not lost, f"I2: {lost}"
        return len(lost)

    def i3_no_view_has_anything_twice(self) -> None:
        """What an agent computes with has every observation at most once."""
        inside = {epoch: self._inside(epoch) for epoch in self.closed}
        for branch in self.branches:
            views: dict[tuple[int, int], int] = {}
            for made in branch.made:
                key = (made.stream, made.epoch)
                views[key] = max(views.get(key, 0), made.n)
            for (stream, epoch), n in views.items():
                if epoch == 0:
                    continue
                total, own, _ = branch.adopted[stream, epoch]
                assert total == self.epochs[epoch].total, f"I5: {branch.label} epoch {epoch}"
                entry = self.manifests[epoch].get(branch.streams[stream], NOTHING)
                assert own in (entry, NOTHING), f"I3: {branch.label} epoch {epoch}"
                double = inside[epoch].intersection(branch.between(stream, own.n, n))
                assert not double, f"I3: {branch.label} counts {len(double)} twice in {epoch}"

    def _inside(self, epoch: int) -> set[bytes]:
        names: list[bytes] = []
        for stream, revision in self.manifests[epoch].items():
            names += self.prefix(stream, revision).names
        assert len(set(names)) == len(names), f"I1: epoch {epoch} has something twice"
        return set(names)

    def i4_totals_are_the_sums_of_journals(self) -> int:
        """Streams: the sums of their journals; epochs: of their manifests, bit for bit."""
        assert not self.evidence.changed, "I4: a checkpoint was sent with two contents"
        wrong = []
        for stream, row in self.streams.items():
            checkpoints = {
                row.revision: row.total,
                Revision(row.answer_n, row.answer_version): row.answer_total,
                Revision(row.entry_n, row.entry_version): row.entry_total,
            }
            for revision, raw in checkpoints.items():
                if revision.n and not self._same(
                    Sums.from_bytes(raw), self.prefix(stream, revision).total
                ):
                    wrong.append((stream, revision))
        for epoch in self.closed:
            parts = []
            for stream in sorted(self.manifests[epoch]):
                revision = self.manifests[epoch][stream]
                parts.append(self.evidence.sent[stream, revision])
                if not self._same(parts[-1], self.prefix(stream, revision).total):
                    wrong.append((stream, revision))
            whole = add_sums(self.space.dim, parts)
            row = self.epochs[epoch]
            if row.total != whole.as_bytes() or row.sha256 != whole.sha256 or row.n != whole.n:
                wrong.append(("epoch", Revision(epoch, "")))
        for branch in self.branches:
            for made in branch.made:
                if made.k is not None and made.ended == End.OBSERVED:
                    expected = reward_of(np.frombuffer(made.x))
                    assert made.reward == expected, f"I4: {branch.label} {made}: not its reward"
                elif made.k is not None:
                    assert made.reward == self.space.rewards.default, f"I4: {made}"
        assert not wrong, f"I4: {wrong}"
        return len(wrong)

    def _same(self, one: Sums, other: Sums) -> bool:
        """Tell whether two totals agree: bit for bit where sums are exact, else to 1e-9."""
        exact = (
            one.n == other.n and one.weight == other.weight and np.array_equal(one.gram, other.gram)
        )
        apart = abs(one.surprise - other.surprise)
        self.error = max(self.error, apart)
        return exact and apart <= 1e-9 * max(1.0, abs(one.surprise))

    def i5_epochs_never_change_and_grow(self) -> None:
        """An epoch is the same to everybody for ever, and nobody ever sees an older one."""
        newest: dict[int, int] = {}
        for told in self.evidence.told:
            assert told.epoch >= newest.get(told.connection, 0), "I5: an older epoch was told"
            newest[told.connection] = told.epoch
            if told.sums is not None:
                stored = self.epochs[told.epoch].total
                assert told.sums.as_bytes() == stored, f"I5: epoch {told.epoch} changed"
        for branch in self.branches:
            heard = [(at, epoch) for (_, epoch), (_, _, at) in branch.adopted.items()]
            order = [epoch for _, epoch in sorted(heard)]
            assert order == sorted(order), f"I5: {branch.label}"
            for first, second in itertools.pairwise(branch.made):
                assert first.epoch <= second.epoch, f"I5: {branch.label} went back to an epoch"

    def i6_entries_never_go_back(self) -> None:
        """A stream that is in an epoch is in all later ones, with as much or more."""
        entries: dict[str, int] = {}
        for epoch in self.closed:
            manifest = self.manifests[epoch]
            for stream, n in entries.items():
                assert stream in manifest, f"I6: {stream} left in epoch {epoch}"
                assert manifest[stream].n >= n, f"I6: {stream} went back in epoch {epoch}"
            entries = {stream: revision.n for stream, revision in manifest.items()}

    def i7_totals_are_possible(self) -> None:
        """Positive semi-definite, bounded, and zero at features that the task does not use."""
        for row in self.streams.values():
            if not row.n:
                continue
            total = Sums.from_bytes(row.total)
            matrix = matrix_of(total)
            top = float(np.abs(matrix).max())
            assert np.linalg.eigvalsh(matrix)[0] >= -1e-12 * top, "I7: not semi-definite"
            limit = total.n * self.space.max_weight * self.space.feature_bound**2
            assert np.trace(matrix[:-1, :-1]) <= limit, "I7: trace"
            outside = sorted(set(range(self.space.dim)) - set(TASKS[row.task]))
            assert not matrix[outside].any(), f"I7: {row.task} is not zero at {outside}"

    def i8_every_decision_is_accounted_for(self) -> None:
        """Decisions are numbered without gaps, and each has ended in one way or is pending."""
        for branch in self.branches:
            assert branch.intact, f"{branch.label} is damaged"
            made = branch.made
            assert [m.seq for m in made] == list(range(1, len(made) + 1)), f"I8: {branch.label}"
            kinds = Counter(m.kind for m in made)
            assert set(kinds) <= {"learned", "explored", "baseline"}, f"I8: {kinds}"
            early = {int(End.OBSERVED)} if self.space.rewards.order == "prompt" else set()
            over = [m for m in made if m.seq <= branch.settled or m.ended in early]
            pending = [m for m in made if m.seq > branch.settled and m.ended not in early]
            ended = Counter(m.ended for m in over)
            final = {int(End.OBSERVED), int(End.DEFAULTED), int(End.DISCARDED), int(End.LOST)}
            assert set(ended) <= final, f"I8: {branch.label} {ended}"
            assert len(made) == sum(ended.values()) + len(pending), f"I8: {branch.label}"
            assert all(m.k is None for m in pending), f"I8: {branch.label}: counted too early"
            assert ended[int(End.LOST)] == branch.lost, f"I8: {branch.label} lost without a word"

    def i8_nothing_told_is_missing(self, branch: Branch, lines: Iterator[str]) -> None:
        """What the agent returned to its caller is in its journal."""
        known = {made.x: made for made in branch.made}
        for line in lines:
            what, *_, raw = line.split()[:3]
            x = bytes.fromhex(raw)
            if what == "D":
                assert x in known, f"I8: {branch.label} forgot a decision"
            elif what == "O":
                assert x in known, f"I8: {branch.label} took the reward of a stranger: {line}"
                assert known[x].ended is not None, f"I8: {branch.label} forgot a reward"
            assert what != "W", f"I8: {branch.label} took a second reward: {line}"
            assert what != "R", f"I8: {branch.label} refused a reward: {line}"

    def i9_nothing_learned_is_played_where_it_must_not(
        self, pauses: list[tuple[float, float]] | None = None
    ) -> None:
        """Not without rules, not while paused, not when the lease is over."""
        for branch in self.branches:
            task = branch.label.split("-")[0]
            reached = np.array(self.evidence.reached.get(task, []))
            for made in branch.made:
                if made.kind == "baseline":
                    continue
                assert made.config > 0, f"I9: {branch.label} played without rules"
                recent = (reached > made.at - LEASE_S - SLACK_S) & (reached < made.at + SLACK_S)
                assert recent.any(), f"I9: {branch.label} played after its lease: {made}"
            for started, resumed in pauses or []:
                told = False
                for made in branch.made:
                    if started <= made.at < resumed:
                        told |= made.reason == "paused"
                        assert not told or made.kind == "baseline", f"I9: {branch.label} {made}"

    def i10_margins_come_out_again(self) -> None:
        """Learned decisions, made again from what is recorded, keep their promise.

        And no journal looks as if somebody had changed it.
        """
        for branch in self.branches:
            learned = [made.seq for made in branch.made if made.kind == "learned"]
            journal = Journal(branch.path)
            try:
                changed = changed_rows(journal) + changed_sums(journal, self.space.dim)
                assert not changed, f"I10: {branch.label} {changed}"
                for seq in learned[:: max(1, len(learned) // REPLAYED)]:
                    rebuilt = rebuild(journal, seq)
                    again = rebuilt.decide()
                    assert again.action == rebuilt.row["action"], f"I10: {branch.label}"
                    assert again.margin >= -1e-9, f"I10: {branch.label} {seq}"
            finally:
                journal.close()
