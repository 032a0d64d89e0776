"""What the kernels read and write: codes for the rules, and tuples of numbers and arrays.

Every array is float64 or int64. M is the number of agents, d the dimension of the features, K the
number of actions, n the number of contexts that are possible in a round. The simulator and agents
in a user's process call the same kernels.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LEAST_RATE",
    "OPTIMISM",
    "REGRET_WIDTHS",
    "Certificate",
    "Estimate",
    "Floats",
    "Gate",
    "Ints",
    "Knowledge",
    "LeftOut",
    "Mix",
    "Outcome",
    "Radius",
    "Realised",
    "Reason",
    "Response",
    "RoundInput",
    "Rule",
    "Scores",
    "State",
    "Statistic",
    "Terms",
    "Trigger",
    "Wish",
    "pack",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_RATE = 1e-3  # ranges of rewards reach this far from 0 and 1: no weight exceeds 1,002
OPTIMISM = 0.5  # the largest share of the width that counts as promise, if none is stated
REGRET_WIDTHS = 20.0  # q: what Guard-UCB's target may lose, in half widths of its own reward


class Rule(IntEnum):
    """How an agent chooses."""

    KNOWN = 0  # DiSC-UCB: the baseline's reward is known
    UNKNOWN = 1  # DiSC-UCB-UB: it is bounded from the confidence set
    FREE = 2  # no constraint: plain optimism
    BASELINE = 3  # always the baseline, never learns
    CLEAR = 4  # optimism among the actions whose lower bound clears the floor
    GUARD = 5  # Guard-UCB


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
    PARTWAY = 3  # ROFUL: a point between the features of the baseline and of that action


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
    CERTIFIED = 7  # Guard-UCB: the most promising action of all is certified
    ITSELF = 8  # Guard-UCB: the most promising action of all is the baseline
    CAREFUL = 9  # Guard-UCB: it is not certified yet
    STUCK = 10  # Guard-UCB: nor does a certified action teach enough about it
    REFUTED = 11  # Guard-UCB: no parameter fits both the observations and the range of rewards
    TRIAL = 12  # Guard-UCB: stuck, and the budget for trials covers the target
    SPENT = 13  # Guard-UCB: what exploration may cost is spent: only certified actions are played
    HOLDBACK = 14  # Guard-UCB: a coin of its own held back the choice, to measure what it earns
    ALARMED = 15  # Guard-UCB: after an alarm, the baseline alone is played for some time


class Response(IntEnum):
    """What an alarm leads to."""

    RESTART = 0
    BASELINE = 1  # start anew, and hold to the baseline until a person resumes
    WARN = 2  # nothing


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
    PRUNED_SET = 6  # it is in the paper's pruned set
    MIXTURE = 7  # not the action itself: the mixture it was drawn from
    BOUNDED = 8  # the difference, for parameters that give every action a possible reward
    POOLED = 9  # one of these, by the set from pooled data alone
    TRIAL = 10  # nothing does: it is a trial, charged to the budget
    LEAVE_ONE_OUT = 11  # one of these, whichever other task is left out of the data


class Statistic(NamedTuple):
    """Sums over observations; what agents send, and what a coordinator adds up."""

    gram: Floats  # (d, d) W: sum of w x x'
    moment: Floats  # (d,) U: sum of w y x
    scalars: Floats  # (6,) how many; sums of w y^2, of w (yhat^2 - 2 y yhat), and of w; how many
    # have weights by variance, for which log det is no radius; and how many are rows of logs that
    # had been looked at


class Estimate(NamedTuple):
    """What follows from V = ridge I + W and U; kept up to date in O(d^2)."""

    inverse: Floats  # (d, d) V^-1
    theta: Floats  # (d,) V^-1 U
    scalars: Floats  # (4,) log det(V / ridge), trace V, and lambda_min and trace V when last exact;
    # of what all agents pooled, the third is the radius of its set, or 0: there is none


class State(NamedTuple):
    """One agent's numbers, or what all agents pooled; views of one array, see `state`."""

    own: Statistic  # observations since the last pooling; of the shared numbers, all before it
    estimate: Estimate  # from all that the agent knows
    reports: Statistic  # the baseline's reported rewards r: sums of x x', r x; how many, r^2
    anchored: Estimate  # the estimate that fits the reports as well; scalars[0]: they contradict
    work: Floats  # (2 d + 12, d) scratch; see `state.entry_size`
    spent: Floats  # (1,) what all trials, or explored plays, have been charged with so far
    watch: Floats  # what the agent's monitors remember, see `monitors`


class LeftOut(NamedTuple):
    """Data without one task, for every task that can be left out; see `leave_out`.

    An agent never leaves out itself: of its own place among the N tasks, nothing is used.
    """

    sums: Statistic  # (N, ...) what was pooled by all tasks but one
    pooled: Estimate  # (N, ...) from those sums alone; the third scalar is the radius of its set
    views: Estimate  # (A, N, ...) from those sums and the agent's own since, for each of A agents;
    # the third scalar is the radius of its set at the last decision


class Terms(NamedTuple):
    """The settings of an algorithm, the same for all agents and rounds; numbers only."""

    rule: float
    ridge: float  # lambda
    theta_bound: float  # S
    confidence: float  # 2 log(1 / delta'), with the delta' of the confidence set
    pooled_confidence: float = np.nan  # the same of the set from pooled data alone; NaN: none
    trigger: float = int(Trigger.NEVER)
    budget: float = np.inf  # what the trigger compares with
    agents: float = 1.0  # M
    # The paper's algorithms and their kin
    gate: float = int(Gate.NONE)
    mix: float = int(Mix.VECTOR)
    sigma: float = 0.0  # sqrt(context_noise^2 + noise^2)
    feature_bound: float = 1.0  # L
    reward_floor: float = 0.0  # r_l, for the unknown baseline's gate
    kappa: float = 0.0  # kappa_l: the optimum leads the baseline by this or more, for the gate
    weighted: float = False  # Guard-UCB's confidence set and weights in the place of its own
    # Guard-UCB
    eager: float = np.inf  # growth of log det V at which a conservative agent calls at once
    free: float = False  # no constraint: the most promising action is played
    strict: float = False  # every play is certified; else the randomised choice is
    radius: float = int(Radius.BEST)
    realised: float = int(Realised.NONE)
    chance: float = 0.0
    tail: float = np.inf  # deviations that cover all but the chance, whatever the distribution
    anchors: float = False  # learn from reported baseline rewards, too
    tolerance: float = -1.0  # tau: how far a reported baseline reward may be off; < 0: not used
    variance: float = 1.0  # sigma^2, of the reward noise
    by_variance: float = False  # rewards outside [0, 1] are refused: weights may be 1 / variance
    ceiling: float = 1.0  # no expected reward is larger
    sharing: float = 1.0  # f: how many agents may share a context
    context_noise: float = np.nan  # stated half range of what the hidden context adds; NaN: not
    planned_weight: float = 1.0  # of an observation, where exploration is planned
    optimism: float = 1.0  # gamma; NaN: from the residuals
    bias: float = 0.0
    use_range: float = False  # certificates use that rewards have a range
    # What trials (strict) may fall short of the floor by, or what exploration (policy) may cost
    # against the baseline, in all; NaN: strict mode has no trials, policy mode explores for ever.
    allowance: float = np.nan
    tolerate: float = 0.0  # how many other tasks may send anything: certify without each of them
    holdback: float = 0.0  # h: the baseline is played with this probability, whatever was chosen
    # Monitors: log(3 M / delta_alarm), or NaN where nothing is watched; a code of `Response`
    alarm: float = np.nan
    on_alarm: float = 0.0
    shares: float = False  # whether agents pool
    # A window: rounds after which the older half is forgotten (0: never); by how much an expected
    # reward may change in a round; and by how much since the oldest data, set in every round.
    half: float = 0.0
    drift: float = 0.0
    moved: float = 0.0


class RoundInput(NamedTuple):
    """What one agent is given in one round."""

    menu: Floats  # (d, K) expected features psi, one column per action
    coords: Ints  # the features that the agent's task uses
    baseline: int
    baseline_reward: float  # r_b
    known: bool  # Guard-UCB: a baseline reward was reported and may be used
    gap: float  # the optimum's lead over the baseline, for the gap gate only
    alpha: float  # the share of the baseline's reward that may be lost
    rho: float  # weight of exploration, if the round is conservative
    epoch: int  # one more than the number of poolings so far
    number: int  # of the round, from 1
    coin: float  # uniform on [0, 1)
    contexts: Floats  # (C, d, K) features phi in possible contexts
    ids: Ints  # (n,) which of them are possible in this round; none: not known
    weights: Floats  # (n,) their probabilities
    covariance: Floats  # (K or 1, d, d) of phi(k, c) - (1 - alpha) phi(b, c); none: not known


class Wish(NamedTuple):
    """What actions are worth to the caller, and what they cost; see `value`."""

    value: Floats  # (K,) known beforehand; none: the reward is what counts
    cost: Floats  # (K,) of playing them; none: it does not count
    price: float  # what a unit of cost is worth, in units of the value
    room: float  # no action but the baseline may cost more


class Knowledge(NamedTuple):
    """All that an agent knows about theta in a round; see `bounded`."""

    estimate: Estimate
    beta: float  # ||theta - theta-hat||_V is not larger
    menu: Floats  # (d, K) psi
    coords: Ints  # the features that the agent's task uses
    low: float  # psi'theta is between low and high for every action ...
    high: float
    baseline: int  # ... and for this one between bottom and top
    bottom: float
    top: float


class Scores(NamedTuple):
    """What a decision computes of every action; scratch."""

    mean: Floats  # (K,) psi'theta-hat
    upper: Floats  # (K,) upper confidence bounds
    part: Floats  # (K,) scratch
    form: Floats  # (K,) psi'V^-1 psi
    slack: Floats  # (K,) certified lead over the floor
    least: Floats  # (K,) the least slack in several sets
    values: Floats  # (n or more,) of one action in every possible context
    point: Floats  # (K,) psi'x of a point x of the set, see `bounded`
    cuts: Floats  # (ROWS, CUTS) the bounds on rewards that are in use, see `cuts`


class Outcome(NamedTuple):
    """What an agent decided."""

    action: int  # the action played (the baseline, where features are mixed)
    conservative: bool  # the agent's favourite is not certified
    reason: int
    beta: float  # the radius of the confidence set that was used
    plain: float  # the radius without anchors
    scanned: bool  # the scores hold this round's means and bounds
    target: int  # a coin plays the target with probability |chance|, else the partner
    partner: int
    chance: float  # below zero: both are certified, and the coin tells which one is to teach
    propensity: float  # Guard-UCB: the probability with which the action was played
    margin: float  # Guard-UCB: by how much what was played, or its mixture, clears the floor
    charge: float  # Guard-UCB: what the play costs of the allowance, at most what it can miss
    pooled: bool  # Guard-UCB: the confidence set that was used is the one from pooled data alone


def pack(terms: Terms, alpha: Floats, rho: Floats) -> Floats:
    """Return (M, TERMS + 2) settings as the kernels read them: the terms, alpha and rho."""
    return np.array([[*terms, *own] for own in zip(alpha, rho, strict=True)], dtype=np.float64)
