"""What the simulator's loop needs besides the agents: the environment, the draws, the metrics."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guardband.kernels.types import Floats, Ints

__all__ = [
    "NO_TABLES",
    "Draws",
    "EnvironmentArrays",
    "Fabricated",
    "Metric",
    "Metrics",
    "Nature",
    "Played",
    "PoolingClock",
    "RoundTables",
    "Sight",
    "TaskTable",
    "Trace",
    "new_clock",
]


class Metric(IntEnum):
    """What is counted: the columns of the metrics, running sums per agent."""

    REGRET = 0
    REGRET_EXPECTED = 1
    VIOLATIONS_EXPECTED = 2
    VIOLATIONS_REALISED = 3
    CONSERVATIVE = 4
    REWARD = 5
    BASELINE_REWARD = 6
    VIOLATIONS_POLICY = 7  # the randomised choice was worth less than the floor, in expectation
    STUCK = 8  # no certified action taught enough about the most promising one
    OUTSIDE = 9  # theta was not in the set (of Guard-UCB, or of the paper's common loop)
    OPTIMUM_PRUNED = 10  # the gate was open, but the pruned set lacked the best action by psi
    VIOLATIONS_CONSERVATIVE = 11  # as realised, in conservative rounds
    VIOLATIONS_CONSERVATIVE_EXPECTED = 12  # by expectation, in conservative rounds
    REFUTED = 13  # no parameter fits both the observations and the range of rewards
    TRIALS = 14  # plays that were charged to an allowance: trials, or explored plays
    CHARGED = 15  # what they were charged with
    SHORTFALL = 16  # what they fell short of the floor (policy mode: the baseline) by, expected
    VIOLATIONS_TRIAL = 17  # by expectation, in trials
    VALUE = 18  # of the actions played, where actions have values; NaN: they have none
    BASELINE_VALUE = 19
    COST = 21  # of the actions played, where they have costs; NaN: they have none
    VALUE_REGRET = 20  # the largest value of an action at or above the floor, less the one played
    HELD_BACK = 22  # rounds in which the holdback's coin played the baseline
    GAIN = 23  # with a holdback: what rewards say about the choices' lead over the baseline
    GAIN_SQUARES = 24  # squares of what surprises in it, for the interval of the uplift
    LEAD = 25  # the true lead of the choices, before the coin, by expectation
    ALARMS_ASSUMPTIONS = 26  # that monitors raised; the next two follow in the order of their codes
    ALARMS_CERTIFICATES = 27
    ALARMS_FIT = 28
    NOTICED = 29  # the round of the first alarm; 0: there was none


class TaskTable(NamedTuple):
    """The tasks of all agents."""

    agents: Ints  # (M,) their numbers: 0, 1, ...
    coords: Ints  # (M, d) features in use, padded
    size: Ints  # (M,) how many of them count
    judged: Floats  # (M,) the alpha by which violations are counted; NaN: they are not


class Nature(IntEnum):
    """How a round's true features come about."""

    TABLE = 0  # phi and psi are tables; the round's context picks a slot of both
    FRESH = 1  # phi = psi + noise, drawn anew in each round
    FORECAST = 2  # psi is the mean of phi over this round's distribution of contexts


class Sight(IntEnum):
    """What agents see of a round's true features."""

    HIDDEN = 0  # nothing: they choose by psi and learn from psi
    AFTER = 1  # once they have chosen: they choose by psi and learn from phi
    OBSERVED = 2  # everything: they choose by phi and learn from phi


class Fabricated(NamedTuple):
    """Observations that the last agent makes up in one round: means over their rows."""

    gram: Floats  # (d, d) of x x'
    moment: Floats  # (d,) of y x
    square: float  # of y^2
    since: float  # the round
    number: float  # how many; 0: it makes up none


class EnvironmentArrays(NamedTuple):
    """The world of one trial, one slot per context; A = 1 table of features for all agents, or M.

    Where a round has a slot of its own (FRESH, FORECAST), it is written to the last one.
    """

    nature: int
    menu: Floats  # (A, slots, d, K) psi, what agents are given
    truth: Floats  # (A, slots, d, K) phi
    contexts: Floats  # (A, C, d, K) phi in the contexts that the draws' support names
    expected: Floats  # (slots, G, K) psi'theta, by distinct task
    realised: Floats  # (slots, G, K) phi'theta, by distinct task
    best: Ints  # (slots, G) argmax psi'theta
    baseline: Ints  # (slots, M)
    baseline_reward: Floats  # (slots, M) r_b as the agents are told
    gap: Floats  # (slots, M) for the gap gate; zeros where it is not told
    offered: Ints  # (slots, M) how many of the K actions are on offer; the others repeat the last
    group: Ints  # (M,) an agent's distinct task
    theta: Floats  # (d,) of the first task in the first round
    masked: Floats  # (G, d) theta with zeros outside the task
    rank: int  # FORECAST: the baseline is the rank-th best by psi'theta
    high: float  # FORECAST: the largest baseline reward, for the gap
    context_std: float  # FRESH: the standard deviation of phi - psi
    covariance: Floats  # (M, 1, d, d) of phi(k) - (1 - alpha) phi(b), k not b; zeros: not FRESH
    scratch: Floats  # for the scores of a menu, see `state.new_scratch`
    fabricated: Fabricated
    thetas: Floats  # (slots or 1, M or 1, d) theta, which may depend on the round and the agent
    lies: Floats  # (slots, M, K) what agents add to the rewards that they report; else empty
    sight: int = 0  # what these agents see
    binary: bool = False  # rewards are 0 or 1
    values: Floats = np.zeros((0, 0))  # (slots, K) what actions are worth to the caller, or none
    costs: Floats = np.zeros((0, 0))  # (slots, K) what actions cost, or none


class RoundTables(NamedTuple):
    """The tables of a chunk of n rounds, where every round and agent has its own; else empty.

    They take the place of the environment's own: A = M tables with a slot per round, and every
    agent is a group by itself.
    """

    menu: Floats  # (M, n, d, K)
    truth: Floats  # (M, n, d, K)
    contexts: Floats  # (M, n S, d, K) phi in every context that is possible in one of the rounds
    expected: Floats  # (n, M, K)
    realised: Floats  # (n, M, K)
    best: Ints  # (n, M)
    baseline: Ints  # (n, M)
    baseline_reward: Floats  # (n, M)
    gap: Floats  # (n, M)
    offered: Ints  # (n, M)
    thetas: Floats  # (n or 1, M or 1, d)
    lies: Floats  # (n, M, K), or empty


NO_TABLES = RoundTables(
    menu=np.zeros((0, 0, 0, 0)),
    truth=np.zeros((0, 0, 0, 0)),
    contexts=np.zeros((0, 0, 0, 0)),
    expected=np.zeros((0, 0, 0)),
    realised=np.zeros((0, 0, 0)),
    best=np.zeros((0, 0), np.int64),
    baseline=np.zeros((0, 0), np.int64),
    baseline_reward=np.zeros((0, 0)),
    gap=np.zeros((0, 0)),
    offered=np.zeros((0, 0), np.int64),
    thetas=np.zeros((0, 0, 0)),
    lies=np.zeros((0, 0, 0)),
)


class Draws(NamedTuple):
    """All randomness of a chunk of n rounds, drawn beforehand and shared by all algorithms."""

    contexts: Ints  # (n,)
    noise: Floats  # (n, M) reward noise; where rewards are 0 or 1, uniform on [0, 1)
    zeta: Floats  # (n, M, d) unit vectors, or (n, 1, d): the same for all agents
    coin: Floats  # (n, M) uniform
    rho: Floats  # (n,) overrides every task's rho, or (0,)
    fresh: Floats  # FRESH: (n, K, d) standard normal; else (0, 0, 0)
    support: Ints  # FORECAST: (n, S) the contexts that are possible; else (1, 0)
    weights: Floats  # FORECAST: (n, S) their probabilities; else (1, 0)
    normal: Floats = np.zeros((0, 0, 0))  # (n, M, d) standard normal, for sampled parameters
    order: Ints = np.zeros((0, 0), np.int64)  # (n, M) in which order agents act
    hold: Floats = np.zeros((0, 0))  # (n, M) uniform: the holdback's coins
    tables: RoundTables = NO_TABLES


class PoolingClock(NamedTuple):
    """What the fleet as a whole remembers from round to round."""

    ints: Ints  # (5,) rounds played, number of the round of the last pooling, poolings, checkpoints
    # passed, and rounds of history, which count before the first where rounds are numbered
    logdet: Floats  # (1,) log det(V / ridge) at the last pooling
    purses: Floats  # (M, PURSE) what agents have spent of their budgets, see `purse`; or none


class Metrics(NamedTuple):
    """Running sums, and copies of them at the checkpoints."""

    totals: Floats  # (M, metrics)
    checkpoints: Ints  # (P,) rounds, rising
    curves: Floats  # (P, M, metrics)
    syncs: Ints  # (P,)


class Trace(NamedTuple):
    """Every round of a trial, where it was asked for; arrays of no rounds otherwise."""

    actions: Ints  # (T, M)
    conservative: NDArray[np.bool_]  # (T, M)
    rewards: Floats  # (T, M) noise-free
    synced: NDArray[np.bool_]  # (T,)
    explored: NDArray[np.bool_] = np.zeros((0, 0), np.bool_)  # (T, M) Guard-UCB: not certified

    @property
    def sync_rounds(self) -> Ints:
        """The rounds after which agents pooled, counted from 1."""
        return np.flatnonzero(self.synced) + 1


class Played(NamedTuple):
    """What an agent did in a round, and what it was worth without noise."""

    action: int
    conservative: bool
    mean: float  # psi'theta of what was played
    reward: float  # phi'theta of what was played


def new_clock() -> PoolingClock:
    """Return the clock of a fleet before its first round."""
    return PoolingClock(np.zeros(5, np.int64), np.zeros(1), np.zeros((0, 0)))
