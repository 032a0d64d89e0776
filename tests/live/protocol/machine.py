"""T2: agents, a network and a coordinator under every fault at once, against an exact model."""

from __future__ import annotations

import sys

from live.protocol.departing import Departing
from live.protocol.invariants import Invariants
from live.protocol.world import USES

from guardband.live.protocol.messages import Uploaded


class Machine(Departing, Invariants):
    """The rules are what may happen; the invariants what must stay true."""

    def teardown(self) -> None:
        if not self.players or sys.exc_info()[0] is not None:
            return
        for player in self.players:
            player.life += 1
        for task in USES:
            self.judge(task, "restore")
        for _ in range(3):
            for place, player in enumerate(self.players):
                for _ in range(6):
                    if self.space.contexts == "shared":  # until the task's other stream is stale
                        self.time_passes(self.space.sync.live_s + 1.0)
                    state = player.state
                    answer = self.carry_out(state.stream, state.upload())
                    self.replies = [(place, player.life, state.stream, answer)]
                    self.hear(0)
                    if player.state.acknowledged and isinstance(answer, Uploaded):
                        break
                else:
                    raise AssertionError(f"an agent cannot get its checkpoint stored: {answer!r}")
        # A sealed stream has no agent any more: what a restored coordinator lacks of it is lost.
        for stream in {player.state.stream for player in self.players if not player.tainted}:
            row = self.row(stream)
            held = frozenset() if row is None else self.made[row.version].tags
            promised = self.promised.get(stream, frozenset())
            assert promised <= held, "P2: what was acknowledged did not come back"
        self.now += 200.0
        self.coordinator.tick(now=self.now)
        self.note_closing()
        self.I1_server_counts_once()
        self.I3_views_count_once()
