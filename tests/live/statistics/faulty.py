"""Crowds with a bug in what proofs rest on: what a reward weighs, and who knows it when."""

from __future__ import annotations

import pytest
from live.statistics.crowd import DIM, Agent, Crowd

from guardband.agent.records import Awaited
from guardband.live.client.learner import Learner
from guardband.live.client.stream_state import StreamState, Transition
from guardband.live.protocol.messages import News

__all__ = ["NoBarrier", "SharedByNobody", "WeighedAfterwards"]


class SharedByNobody(Crowd):
    """Weights are those of contexts of one's own (f = 1), although all tasks share them (f = M)."""

    def _join(self, task: str) -> Agent:
        agent = super()._join(task)
        alone = self.space.changed(contexts="per-request")
        agent.learner = Learner(alone, task, tuple(range(DIM)), reward_floor=None, seed=0)
        agent.learner.set_level(agent.share, 0, 0)
        return agent


class NoBarrier(Crowd):
    """An epoch is adopted although it holds rewards of the coming round."""

    def run(self) -> None:
        right = StreamState.adopt

        def adopt(self: StreamState, news: News, *, next_round: int | None = None) -> Transition:
            return right(self, news)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StreamState, "adopt", adopt)
            super().run()


class WeighedAfterwards(Crowd):
    """Rewards that disappoint weigh less."""

    def run(self) -> None:
        right = Learner.learn

        def learn(self: Learner, awaited: Awaited, reward: float, n: int, since: int) -> bool:
            weight = awaited.weight * (1.3 if reward > awaited.guess else 0.7)
            return right(self, awaited._replace(weight=weight), reward, n, since)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Learner, "learn", learn)
            super().run()
