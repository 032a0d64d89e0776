"""What must be true after every step, by the names that the rules have: I1 to I9."""

from __future__ import annotations

import numpy as np
from hypothesis.stateful import invariant
from live.protocol.model import Model
from live.protocol.world import DIM, USES

from guardband.live.protocol.sums import Sums, matrix_of


class Invariants(Model):
    """Each is checked after every rule; I6 with every new epoch, in `compare_epoch`."""

    @invariant()
    def all_hold(self) -> None:
        if self.players:
            self.I1_server_counts_once()
            self.I2_acknowledged_is_kept()
            self.I3_views_count_once()
            self.I4_totals_are_their_ledgers()
            self.I5_epochs_stay()  # and in `learn`: numbers only grow for every observer
            self.I10_who_is_apart_is_alone()
            self.I7_stored_is_possible()  # I6 is checked with every new epoch, in `compare_epoch`

    def I1_server_counts_once(self) -> None:
        with self.store.reading() as t:
            pool = t.space("home").pool
            totals = [row.sums for row in t.streams("home") if row.pool == pool]
        often = self.book.read(*totals, what="I1")
        assert max(often.values(), default=0) <= 1, "I1: an observation is stored twice"

    def I2_acknowledged_is_kept(self) -> None:
        for stream, revision in self.acked.items():
            row = self.row(stream)
            assert row is not None, "I2: an acknowledged stream is gone"
            assert row.n >= revision.n, "I2: an acknowledged stream went back"
            kept = self.made[row.version].tags
            assert self.made[revision.version].tags <= kept, (
                "I2: an acknowledged observation is lost"
            )

    def I3_views_count_once(self) -> None:
        for player in self.players:
            state = player.state
            own = state.own
            found = self.book.read(own, what="I3")
            assert max(found.values(), default=0) <= 1, "I3: own observations counted twice"
            if state.pooled is not None:
                found = self.book.read(state.pooled, own, what="I3")
                assert max(found.values(), default=0) <= 1, "I3: a view counts an observation twice"
            self.check_without(player)  # I8

    def I4_totals_are_their_ledgers(self) -> None:
        for player in self.players:
            self.check_window(player.state.total, frozenset(player.journal.tags))  # I4 and I9
        with self.store.reading() as t:
            for row in t.streams("home"):
                if row.n:
                    made = self.made[row.version]
                    assert row.total == made.raw, (
                        "I4: what is stored is not what the checkpoint had"
                    )
                    self.check_window(row.sums, made.tags)

    def I5_epochs_stay(self) -> None:
        with self.store.reading() as t:
            for row in t.epochs("home", 1000):
                if row.state == "closed":
                    assert self.closed.get(row.epoch) == row.sha256, "I5: an epoch changed"
                    assert Sums.from_bytes(row.total or b"").sha256 == row.sha256

    def I10_who_is_apart_is_alone(self) -> None:
        for player in self.players:
            if player.journal.apart:
                assert player.state.pooled is None, "I10: who left the pool computes with it"

    def I7_stored_is_possible(self) -> None:
        with self.store.reading() as t:
            rows = t.streams("home")
        for row in rows:
            if self.checked.get(row.stream) == row.version:
                continue
            self.checked[row.stream] = row.version
            matrix = matrix_of(row.sums)
            outside = sorted(set(range(DIM)) - set(USES[row.task]))
            assert not matrix[outside].any(), "I7: a task wrote outside its features"
            top = max(1.0, np.abs(matrix).max())
            assert np.linalg.eigvalsh(matrix / top)[0] >= -1e-12, "I7: not a Gram matrix"
            trace = float(np.trace(matrix[:DIM, :DIM]))
            assert trace <= row.n * self.space.max_weight, "I7: W is larger than n allows"
