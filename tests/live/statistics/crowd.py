"""Agents that learn together without files or network: the real learner, state and coordinator.

What can go wrong with rewards and with poolings is done to them in a thousand rounds a second, so
that whether the confidence sets hold can be seen over many runs.
"""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from live.earlier import made_earlier
from live.look import row_of
from live.memory_store import MemoryStore

from guardband.agent.records import Awaited, Request
from guardband.kernels.types import Floats
from guardband.live.client.learner import Learner
from guardband.live.client.stream_state import Effect, StreamState
from guardband.live.client.windows import End, ending
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings
from guardband.live.protocol.sums import Sums, empty_sums, matrix_of, sums_of

__all__ = [
    "ALPHA",
    "DELTA",
    "DIM",
    "HALF",
    "NOISE",
    "THETA",
    "Case",
    "Crowd",
    "distance",
    "nothing",
    "space_for",
]

DIM, ACTIONS = 3, 5
NOISE, DELTA, ALPHA = 0.3, 0.05, 0.3
HALF = 0.5  # what a hidden context adds or takes: what a space without `context_noise` allows for
POOR = 0.2  # how much smaller menus are after bad news
THETA = np.array([0.5, 0.6, 0.4])
EMPTY: Any = np.zeros((0, 0, 0))


def space_for(agents: int, *, shared: bool = False, **rewards: Any) -> SpaceSettings:
    """Return the rules; rewards are wide enough that none is ever cut off."""
    return SpaceSettings(
        name="home",
        features=("a", "b", "c"),
        agents=agents,
        contexts="shared" if shared else "per-request",
        alpha=ALPHA,
        delta=DELTA,
        noise=NOISE,
        sync=SyncSettings(deadline_s=1.0, live_s=1e9),
        rewards=RewardSettings(**({"low": -3.0, "high": 4.0, "order": "prompt"} | rewards)),
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is done to agents."""

    agents: int = 4
    rounds: int = 240
    answers: float = 1.0  # how often an agent hears of an open epoch, and of a closed one
    loss: float = 0.0  # how many rewards are excluded, whatever they are
    outage: tuple[float, float] = (0.0, 0.0)  # between which shares of the rounds nobody syncs
    late: bool = False  # rewards below expectation take long, and the window decides
    retract: float = 2.0  # after which share of the rounds the first task is taken out
    shared: bool = False  # one hidden context a round, and an epoch in the middle of each


class Waiting(NamedTuple):
    """A decision before its end."""

    at: int
    awaited: Awaited
    reward: float
    arrives: int
    discarded: bool


@dataclass
class Agent:
    """One task: what it computes with, and its stream."""

    task: str
    learner: Learner
    state: StreamState
    share: float = 0.0
    n: int = 0
    round: int = 0  # the last one decided in
    mood: float = 0.0  # how much better than expected the newest rewards of all were
    due: bool = False
    left: bool = False  # was taken out
    waiting: deque[Waiting] = field(default_factory=deque)


class Crowd:
    """Agents that run free, and a coordinator between them.

    Parameters
    ----------
    case
        What is done to them.
    seed
        For everything.
    """

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.rng = case, np.random.default_rng(seed)
        rules: dict[str, Any] = {"order": "window", "window_s": 12.0} if case.late else {}
        self.space = space_for(case.agents, shared=case.shared, **rules)
        self.coordinator = Coordinator(MemoryStore())
        made_earlier(self.coordinator.store, self.space)
        self.now = 0.0
        self.worst = 0.0  # the largest distance from the truth ever, in radii
        self.unsafe = 0  # certified actions below their floor
        self.certified = 0  # decisions by what was learned, for the baseline itself too
        self.agents = [self._join(f"task-{k}") for k in range(case.agents)]

    def _join(self, task: str) -> Agent:
        uses = tuple(range(DIM))
        learner = Learner(self.space, task, uses, reward_floor=None, seed=0)
        state = StreamState.start(self._name(), DIM)
        request = state.register(
            task=task, schema_hash=self.space.schema_hash, uses=uses, library="test"
        )
        answer = self.coordinator.register("home", request, now=0.0)
        learner.set_level(answer.delta_share, 0, 0)
        return Agent(task, learner, state, answer.delta_share)

    def _name(self) -> str:
        return str(uuid.UUID(bytes=self.rng.bytes(16)))

    def run(self) -> None:
        """Play all rounds."""
        case = self.case
        for t in range(case.rounds):
            self.now = float(t)
            context = self._context()
            early = self.agents[:1] if case.shared else self.agents
            self._play(early, t, context)
            if t == int(case.retract * case.rounds):
                self.coordinator.retract("home", "task-0", "consent", who="test", now=self.now)
                self.agents[0].left = True
            off = case.outage[0] * case.rounds <= t < case.outage[1] * case.rounds
            due = any(agent.due and not agent.left for agent in self.agents)
            if not off and (due or case.shared):
                self._pool()
            if case.shared:
                self._play(self.agents[len(early) :], t, context)
                for agent in self.agents:  # those who had to wait
                    self._hear(agent)
            if t % 20 == 19:
                self._look()

    def _context(self) -> float:
        """Return what a hidden context adds to a reward: the two ends are the worst there is."""
        return HALF if self.rng.random() < 0.5 else -HALF

    def _play(self, agents: list[Agent], t: int, context: float) -> None:
        for agent in agents:
            self._decide(agent, t, context if self.case.shared else self._context())
            self._settle(agent, t)

    def _decide(self, agent: Agent, t: int, context: float) -> None:
        rng, case = self.rng, self.case
        menu = rng.uniform(0.0, 0.55, (DIM, ACTIONS))
        if case.shared and agent.mood < 0.0:  # less is on offer where things went badly
            menu *= POOR
        expected = THETA @ menu
        request = Request(menu, 0, float(expected[0]), EMPTY, np.zeros(0), EMPTY)
        verdict = agent.learner.decide(request, t + 1, float(rng.random()))
        if verdict.kind == "learned" or verdict.reason == "itself":
            self.certified += 1
            self.unsafe += bool(expected[verdict.action] < (1.0 - ALPHA) * expected[0] - 1e-12)
        surprise = context + NOISE * float(rng.standard_normal())
        agent.round = t + 1
        slow = case.late and surprise < 0.0
        agent.waiting.append(
            Waiting(
                t,
                verdict.awaited._replace(x=verdict.awaited.x.copy()),
                float(expected[verdict.action]) + surprise,
                t + (int(rng.integers(1, 12)) if slow else 0),
                bool(rng.random() < case.loss),
            )
        )

    def _settle(self, agent: Agent, t: int) -> None:
        """End decisions by the space's own rule, in the order in which they were made."""
        while agent.waiting:
            first = agent.waiting[0]
            heard = first.reward if first.arrives <= t else None
            how = ending(self.space.rewards, float(first.at), heard, first.discarded, float(t))
            if how is None:
                return
            agent.waiting.popleft()
            if how.end is End.DISCARDED:
                continue
            agent.n += 1
            entry = agent.state.since
            since = agent.n - (0 if entry is None else entry.n)
            agent.due |= agent.learner.learn(first.awaited, how.reward, agent.n, since)

    def _pool(self) -> None:
        """Let an epoch go around, as far as the case allows."""
        case = self.case
        opener = max(self.agents, key=lambda agent: agent.due and not agent.left)
        self._send(opener, trigger=True)
        for agent in self.agents:
            if agent is opener or agent.left:
                continue
            if self.rng.random() < case.answers:
                self._send(agent)
        self.now += 2.0
        self.coordinator.tick(now=self.now)
        for agent in self.agents:
            agent.due = False
            if agent is opener or case.shared or self.rng.random() < case.answers:
                self._hear(agent)

    def _send(self, agent: Agent, *, trigger: bool = False) -> None:
        row = row_of(self.coordinator)
        number = row.open or row.epoch + 1
        before = replace(agent.state, open=sums_of(agent.learner.state.own))
        after = before.with_checkpoint(
            self.rng.bytes(16).hex(), round=agent.round, for_epoch=number
        )
        if after.newest is not before.newest:
            agent.learner.group.hand_in()
        agent.state = after
        request = after.upload(trigger=trigger)
        agent.state = after.stored(self.coordinator.upload(after.stream, request, now=self.now))

    def _hear(self, agent: Agent) -> None:
        news = self.coordinator.news(
            "home",
            agent.state.stream,
            after=agent.state.seen,
            open_after=10**6,
            config_version=1,
            now=self.now,
        )
        if news is None:
            return
        before = replace(agent.state, open=sums_of(agent.learner.state.own))
        step = before.adopt(news, next_round=agent.round + 1 if self.case.shared else None)
        if step.effect is Effect.WAIT:
            assert self.case.shared
            return
        assert step.effect is Effect.ADOPTED, step.effect
        agent.state, state = step.stream, step.stream
        assert state.pooled is not None
        agent.mood = surprise_in(before.pooled, state.pooled, agent.learner)
        agent.learner.load(state.pooled, state.handed_in, state.open.as_bytes())
        agent.learner.set_level(agent.share, state.epoch, news.excluded)

    def _look(self) -> None:
        for agent in self.agents:
            self.worst = max(self.worst, distance(agent.learner))

    @property
    def error(self) -> float:
        """The squared distance from the truth over d, in units of the variance; now, on average."""
        return sum(squared(agent.learner) for agent in self.agents) / DIM / len(self.agents)

    @property
    def epochs(self) -> int:
        """How many poolings there were."""
        return row_of(self.coordinator).epoch


def squared(learner: Learner) -> float:
    """Return (theta-hat - theta*)'V(theta-hat - theta*)."""
    estimate = learner.state.estimate
    off: Floats = estimate.theta - THETA
    return float(off @ np.linalg.solve(estimate.inverse, off))


def distance(learner: Learner) -> float:
    """Return how far the estimate is from the truth, in radii; the set holds where it is <= 1."""
    return float(np.sqrt(squared(learner))) / learner.radius()


def surprise_in(before: Sums | None, after: Sums, learner: Learner) -> float:
    """Return how far the rewards that are new in a sum were above what was expected of them."""
    new = matrix_of(after) - (0.0 if before is None else matrix_of(before))
    rest: Floats = new[:DIM, DIM] - new[:DIM, :DIM] @ learner.state.estimate.theta
    return float(rest.sum())


def nothing() -> bytes:
    """Return the sums of an agent that has learned nothing of its own."""
    return empty_sums(DIM).as_bytes()
