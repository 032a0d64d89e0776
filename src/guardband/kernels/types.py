"""What the kernels read and write: tuples of arrays, and codes for the rules.

Every array is C-contiguous float64 or int64. A fleet is the same tuple with a leading axis for
the agents, so a kernel compiled for one agent serves all of them, in the simulator and in a
user's process alike.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Certificate",
    "Estimate",
    "Floats",
    "Gate",
    "GuardOutcome",
    "GuardRoundInput",
    "GuardTerms",
    "Ints",
    "Mix",
    "Outcome",
    "Radius",
    "Realised",
    "Reason",
    "RoundInput",
    "Rule",
    "State",
    "Statistic",
    "Task",
    "Terms",
    "Trigger",
    "new_fleet",
    "new_state",
    "new_statistic",
    "state_of",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rule(IntEnum):
    """How an agent chooses."""

    KNOWN = 0  # DiSC-UCB: the baseline's reward is known
    UNKNOWN = 1  # DiSC-UCB-UB: it is bounded from the confidence set
    FREE = 2  # no constraint: plain optimism
    BASELINE = 3  # always the baseline, never learns
    CLEAR = 4  # optimism among the actions whose lower bound clears the floor


class Gate(IntEnum):
    """What lambda_min(V) must reach before an agent may leave the baseline."""

    PRINTED = 0
    GAP = 1
    NONE = 2
    SHUT = 3  # what the gate needs is not known: it stays shut


class Mix(IntEnum):
    """What a conservative round does."""

    VECTOR = 0  # the paper: the convex combination of the baseline's features and a direction
    TASK_VECTOR = 1  # the same with a direction in the task's own coordinates
    ACTION = 2  # a coin between the baseline and the most promising action


class Trigger(IntEnum):
    """When agents pool what they learned."""

    NEVER = 0
    PAPER = 1  # growth of log det V times rounds since the last time >= budget
    GROWTH = 2  # growth of log det V >= budget
    ANYTIME = 3  # the paper's with t log(M t + 1) / (d M) for a budget: no horizon


class Reason(IntEnum):
    """Why an agent chose as it did."""

    LEARNED = 0
    GATE = 1  # lambda_min(V) is still too small
    EMPTY = 2  # the gate is open, but no action is certified
    NO_BASELINE_REWARD = 3  # the baseline is worth nothing: no fraction of it can be promised
    NO_REWARD_FLOOR = 4  # the gate cannot be computed
    FREE = 5  # there is no constraint
    ALWAYS = 6  # the rule plays nothing but the baseline


class Radius(IntEnum):
    """How Guard-UCB measures its confidence set."""

    BEST = 0  # the smaller of the next two, at half the error each
    LOGDET = 1
    EMPIRICAL = 2
    PAPER = 3


class Realised(IntEnum):
    """Whether a certificate must hold for the context that was drawn, not only on average."""

    NONE = 0
    CHANCE = 1  # with a given probability
    WORST = 2  # in every possible context


class Certificate(IntEnum):
    """What makes an action sure to clear the floor."""

    NONE = 0
    BASELINE = 1  # it is the baseline
    DIFFERENCE = 2  # its lead over the share of the baseline's reward, errors cancelling
    LEAD = 3  # it is worth the baseline or more
    REWARD = 4  # its lower bound, against the reported reward
    CONTEXT = 5  # the difference, and a promise about the context that was drawn


class Statistic(NamedTuple):
    """Sums over observations; what agents send, and what a coordinator adds up."""

    gram: Floats  # (d, d) W: sum of w x x'
    moment: Floats  # (d,) U: sum of w y x
    scalars: Floats  # (4,) how many; sums of w y^2, of w (yhat^2 - 2 y yhat), and of w


class Estimate(NamedTuple):
    """What follows from ridge I + W and U; kept up to date in O(d^2)."""

    inverse: Floats  # (d, d) V^-1
    theta: Floats  # (d,) V^-1 U
    scalars: Floats  # (4,) log det(V / ridge), trace V, and lambda_min and trace V when last exact


class State(NamedTuple):
    """One agent: what it learned since the last pooling, and its estimate from all it knows."""

    own: Statistic
    estimate: Estimate
    work: Floats  # (work_rows(d), d): scratch, and what `absorb_tidily` keeps between rebuilds


class Terms(NamedTuple):
    """The settings of an algorithm, the same for every agent and every round."""

    rule: int
    gate: int
    mix: int
    trigger: int
    ridge: float  # lambda
    sigma: float  # sqrt(context_noise^2 + noise^2)
    confidence: float  # 2 log(2 / delta)
    theta_bound: float  # S
    feature_bound: float  # L
    reward_floor: float  # r_l, for the unknown baseline's gate
    budget: float  # what the trigger compares with


class Task(NamedTuple):
    """One agent's task: which features it uses, and what it promises."""

    coords: Ints  # the features in use
    alpha: float
    rho: float  # weight of exploration in a conservative round


class RoundInput(NamedTuple):
    """What one agent is offered in one round."""

    menu: Floats  # (d, K) expected features psi, one column per action
    baseline: int
    baseline_reward: float  # r_b; ignored where the rule does not know it
    gap: float  # the optimum's lead over the baseline, for the gap gate only


class Outcome(NamedTuple):
    """What an agent decided."""

    action: int  # the action played (the baseline, where features are mixed)
    conservative: bool
    explored: bool  # a coin chose an action that is not certified
    reason: int
    beta: float  # the radius of the confidence set
    scanned: bool  # the scratch holds this menu's means and bounds


class GuardTerms(NamedTuple):
    """The settings of Guard-UCB, the same for every agent and every round."""

    strict: bool  # every play is certified; else the randomised choice is
    trigger: int
    radius: int
    realised: int
    chance: float
    tail: float  # deviations that cover all but the chance, whatever the distribution
    anchors: bool
    tolerance: float  # tau: how far a reported baseline reward may be off
    ridge: float
    variance: float  # sigma^2, of the reward noise
    sharing: float  # f: how many agents may share a context
    context_noise: float  # stated half range of what the hidden context adds; NaN: not stated
    planned_weight: float  # of an observation, where exploration is planned
    optimism: float  # gamma
    bias: float
    theta_bound: float  # S
    confidence: float  # 2 log(1 / delta_1), or 2 log(2 / delta) for the paper's radius
    agents: float  # M


class GuardRoundInput(NamedTuple):
    """What one agent of Guard-UCB is offered in one round."""

    menu: Floats  # (d, K) expected features psi
    baseline: int
    known: bool  # a baseline reward was reported and may be used
    baseline_reward: float
    contexts: Floats  # (contexts, d, K) features phi of possible contexts
    ids: Ints  # (n,) this round's support: contexts; empty if it is not known
    weights: Floats  # (n,) their probabilities
    covariance: Floats  # (K or 1, d, d) of phi(k, c) - (1 - alpha) phi(b, c); none where not known


class GuardOutcome(NamedTuple):
    """What an agent of Guard-UCB decided."""

    action: int
    target: int  # the most promising action of all
    partner: int  # what is played instead where the target is not certified
    chance: float  # the probability with which the target is played
    propensity: float  # the probability with which the action was played
    conservative: bool  # the target is not certified
    stuck: bool  # no certified action teaches enough about the target
    margin: float  # by how much what was played, or its mixture, clears the floor for certain
    beta: float  # the radius of the set that was used
    plain: float  # the radius without anchors


def new_statistic(dim: int, *lead: int) -> Statistic:
    """Return an empty statistic; `lead` are leading axes."""
    return Statistic(np.zeros((*lead, dim, dim)), np.zeros((*lead, dim)), np.zeros((*lead, 4)))


def work_rows(dim: int) -> int:
    """Return how many rows of scratch an agent has.

    Four vectors (the played one, V^-1 times it, and others); a factorisation, d rows; then, for
    `absorb_tidily`, what rounding has left out of W and U, d + 1 rows, and seven numbers, one in
    a row: the same of the last three sums, and the four as they were left.
    """
    return 4 + dim + (dim + 1) + 7


def new_fleet(agents: int, dim: int, ridge: float) -> State:
    """Return the state of `agents` agents that have seen nothing."""
    inverse = np.zeros((agents, dim, dim))
    inverse[:, range(dim), range(dim)] = 1.0 / ridge
    scalars = np.zeros((agents, 4))
    scalars[:, 1] = scalars[:, 3] = ridge * dim
    scalars[:, 2] = ridge
    estimate = Estimate(inverse, np.zeros((agents, dim)), scalars)
    return State(new_statistic(dim, agents), estimate, np.zeros((agents, work_rows(dim), dim)))


def new_state(dim: int, ridge: float) -> State:
    """Return the state of one agent that has seen nothing."""
    return state_of(new_fleet(1, dim, ridge), 0)


def state_of(fleet: State, agent: int) -> State:
    """Return one agent of a fleet: views, no copies."""
    own, estimate, work = fleet
    return State(
        Statistic(own.gram[agent], own.moment[agent], own.scalars[agent]),
        Estimate(estimate.inverse[agent], estimate.theta[agent], estimate.scalars[agent]),
        work[agent],
    )
