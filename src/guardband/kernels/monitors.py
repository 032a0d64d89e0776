"""Monitors of one agent: whether its own rewards contradict what its promises assume.

Each is an e-process: as long as the assumptions hold, and the confidence sets hold theta, the
probability that it ever exceeds 1 / delta is at most delta. docs/guard-ucb-math.md has the proofs.
They use sums of their own, at weights that rest on no confidence set.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from guardband.kernels._jit import kernel, views
from guardband.kernels.linalg import dot, invert, rank_one, times
from guardband.kernels.ridge import count_reward
from guardband.kernels.types import Floats, Statistic

__all__ = ["CELLS", "KINDS", "WANDERING", "AlarmCode", "Monitor", "Note", "begin", "monitor_of"]
__all__ += ["lower_bound_of", "monitor_size", "rebuild", "watch", "wealth_of"]

CELLS = 256  # features that come again, and whose rewards are averaged
WANDERING = 1e-4  # what theta is taken to change by in a round, by the younger predictor: variance
BETS = (0.5, 1.0, 2.0)  # deviations of the noise by which rewards are taken to fall short
STAKES = (0.1, 0.3, 0.9)  # the share that is bet on a reward in [0, 1], of the most allowed
TIDY = 1024.0  # rewards between two rebuilds
LARGEST = 1e300
KINDS = ("assumptions", "certificates", "fit")


class AlarmCode(IntEnum):
    """What was noticed; in the order of KINDS, from 1."""

    NONE = 0
    ASSUMPTIONS = 1
    CERTIFICATES = 2
    FIT = 3


class Note(IntEnum):
    """The places of a monitor's numbers."""

    REWARDS = 0  # that were watched in this start
    EVIDENCE = 1  # log of the e-process against the assumptions
    SHARES = 2  # and the next two: of the predictors, linear, younger, and by cells
    LOGDET = 5  # log det(V / ridge) of the agent's own data
    PLAYS = 6  # learned plays that were watched
    WEALTH = 7  # and the next two: of the bets against the certificates
    STARTS = 10  # anew, so far
    LEVEL = 11  # what 2 log(1 / delta) has grown by since the first start
    HOLD = 12  # rewards for which only the baseline is played; infinite: until a person resumes
    APART = 13  # 1: the agent neither gives to the pool nor takes from it
    ANEW = 14  # 1: apart because it started anew, not because it does not fit
    RAISED = 15  # and the next two: whether an alarm of each kind was raised in this start
    PENDING = 18  # an alarm that was not heeded yet


NOTES = 19
ASSUMPTIONS, CERTIFICATES = int(AlarmCode.ASSUMPTIONS), int(AlarmCode.CERTIFICATES)
REWARDS, EVIDENCE, SHARES = int(Note.REWARDS), int(Note.EVIDENCE), int(Note.SHARES)
LOGDET, PLAYS, WEALTH = int(Note.LOGDET), int(Note.PLAYS), int(Note.WEALTH)
STARTS, HOLD, RAISED = int(Note.STARTS), int(Note.HOLD), int(Note.RAISED)
PENDING = int(Note.PENDING)


class Monitor(NamedTuple):
    """What an agent's monitors remember: views of a vector, see `monitor_of`."""

    notes: Floats  # (NOTES,) see `Note`
    own: Statistic  # all of the agent's data in this start, at declared weights
    inverse: Floats  # (d, d) V^-1 of them
    theta: Floats  # (d,) their ridge regression
    spread: Floats  # (d, d) the covariance of the younger predictor's parameter
    young: Floats  # (d,) its mean
    cells: Floats  # (3, CELLS) which features, how many of their rewards, and their sum


@kernel
def monitor_size(d):
    """Return how many numbers a monitor has."""
    return 3 * (d * d + d) + 6 + 3 * CELLS + NOTES


@kernel
def monitor_of(numbers, d):
    """Return named views of a monitor's vector."""
    square = (d, d)
    notes, gram, moment, scalars, inverse, theta, spread, young, cells = views(
        numbers, 0, ((NOTES,), square, (d,), (6,), square, (d,), square, (d,), (3, CELLS))
    )
    own = Statistic(gram, moment, scalars)
    return Monitor(notes, own, inverse, theta, spread, young, cells)


@kernel
def begin(monitor, terms):
    """Forget what was watched, as before the first reward; the two other predictors stay.

    Whatever they are, they are known before the next reward.
    """
    own, notes, d = monitor.own, monitor.notes, monitor.theta.size
    own.gram[:] = 0.0
    own.moment[:] = 0.0
    own.scalars[:] = 0.0
    monitor.inverse[:] = 0.0
    for i in range(d):
        monitor.theta[i] = 0.0
        monitor.inverse[i, i] = 1.0 / terms.ridge
        if monitor.spread[i, i] == 0.0:  # the very first start
            monitor.spread[i, i] = 1.0 / terms.ridge
    for i in range(REWARDS, STARTS):
        notes[i] = 0.0
    for i in range(3):
        notes[RAISED + i] = 0.0
    notes[EVIDENCE] = -0.5 * terms.ridge * terms.theta_bound * terms.theta_bound
    for i in range(3):
        notes[SHARES + i] = 1.0 / 3.0


@kernel
def lower_bound_of(terms, given, scores, outcome):
    """Return the certified lower bound of a learned play's reward; NaN: it is not watched."""
    k = outcome.action
    if math.isnan(terms.alarm) or k == given.baseline or not outcome.scanned:
        return math.nan
    return scores.mean[k] - outcome.beta * math.sqrt(scores.form[k]) - terms.bias


@kernel
def watch(state, terms, x, y, weight, lower):
    """Watch the reward y of the vector x (d,), once; tell whether that raises an alarm.

    It is left among the notes until it is heeded. `weight` is declared, see `declared_weight`, and
    `lower` the certified lower bound of the expected reward, or NaN. Overwrites work[1] and the
    factorisation of the scratch.
    """
    d = x.size
    monitor = monitor_of(state.watch, d)
    notes = monitor.notes
    if notes[REWARDS] == 0.0 and notes[SHARES] == 0.0:
        begin(monitor, terms)
    notes[REWARDS] += 1.0
    if notes[HOLD] > 0.0:
        notes[HOLD] -= 1.0
    _assumptions(monitor, terms, x, y, weight, state.work)
    if not math.isnan(lower):
        _certificates(monitor, terms, y, weight, lower)
    starts = notes[STARTS] + 1.0
    enough = terms.alarm + math.log(starts * (starts + 1.0))
    if notes[PENDING] > 0.0:
        return True  # one at a time: what was told is what is heeded
    if notes[EVIDENCE] >= enough and notes[RAISED] == 0.0 and terms.drift == 0.0:
        notes[PENDING] = ASSUMPTIONS
    elif wealth_of(notes) >= enough and notes[RAISED + 1] == 0.0:
        notes[PENDING] = CERTIFICATES
    return notes[PENDING] > 0.0


@kernel
def wealth_of(notes):
    """Return the log of the e-process against the certificates."""
    total = (notes[WEALTH] + notes[WEALTH + 1] + notes[WEALTH + 2]) / 3.0
    return math.log(max(total, 1e-300))


@kernel
def _assumptions(monitor, terms, x, y, weight, work):
    """Compare the best single theta with a mixture of predictors, each a normal density of y.

    Linear: the ridge regression so far. Younger: a theta that wanders, by a Kalman filter. By
    cells: the mean reward of the same features, as far as they came before. Shares of the mixture
    follow what each was worth, and 1 / (n + 1) of them is dealt out anew.

    With a bias the weight counts half, and bias^2 w / 2 is paid for every reward.
    """
    notes, own = monitor.notes, monitor.own
    n, mean, fresh = notes[REWARDS], dot(x, monitor.theta), dot(x, monitor.young)
    w = 0.5 * weight if terms.bias > 0.0 else weight
    gain = rank_one(monitor.inverse, x, w, work[1])
    rest = y - mean
    for i in range(x.size):
        monitor.theta[i] += (w / gain) * rest * work[1, i]
        monitor.spread[i, i] += WANDERING * terms.theta_bound * terms.theta_bound
    ease = rank_one(monitor.spread, x, w, work[1])
    for i in range(x.size):
        monitor.young[i] += (w / ease) * (y - fresh) * work[1, i]
    notes[LOGDET] += math.log(gain)
    seen, sure = _cell(monitor.cells, x, y, w, mean, gain)
    one = -0.5 * (math.log(gain) + w * rest * rest / gain)
    two = -0.5 * (math.log(ease) + w * (y - fresh) * (y - fresh) / ease)
    three = -0.5 * (math.log(sure) + w * (y - seen) * (y - seen) / sure)
    top = max(one, two, three)
    one = notes[SHARES] * math.exp(one - top)
    two = notes[SHARES + 1] * math.exp(two - top)
    three = notes[SHARES + 2] * math.exp(three - top)
    total = one + two + three
    notes[EVIDENCE] += 0.5 * w * rest * rest / gain + top + math.log(total)
    if terms.bias > 0.0:
        notes[EVIDENCE] -= 0.5 * weight * terms.bias * terms.bias
    keep, dealt = n / (n + 1.0) / total, 1.0 / (3.0 * (n + 1.0))
    notes[SHARES] = keep * one + dealt
    notes[SHARES + 1] = keep * two + dealt
    notes[SHARES + 2] = keep * three + dealt
    count_reward(own, x, y, weight, mean)
    if n % TIDY == 0.0:
        rebuild(monitor, terms, work[4 : 4 + x.size])


@kernel
def rebuild(monitor, terms, matrix):
    """Compute V^-1 and theta from the sums, free of rounding; `matrix` (d, d) is scratch."""
    own, d = monitor.own, monitor.theta.size
    share = 0.5 if terms.bias > 0.0 else 1.0
    for i in range(d):
        for j in range(d):
            matrix[i, j] = share * own.gram[i, j]
        matrix[i, i] += terms.ridge
    monitor.notes[LOGDET] = invert(matrix, monitor.inverse) - d * math.log(terms.ridge)
    times(monitor.inverse, own.moment, monitor.theta)
    for i in range(d):
        monitor.theta[i] *= share


@kernel
def _cell(cells, x, y, w, mean, gain):
    """Return what features that came before earned, and 1 + w times the variance; count y.

    The mean of n rewards of a cell, shrunken to the linear prediction `mean`, which is taken to be
    off by as much as the noise and by its own error. A cell that two features compete for belongs
    to the one that comes more often.
    """
    u = 0.0
    for i in range(x.size):
        u += x[i] * math.sqrt(2.0 + i)
    u *= 1e5
    u -= math.floor(u)
    b = min(int(u * CELLS), CELLS - 1)
    if cells[0, b] == u and cells[1, b] > 0.0:
        doubt = gain  # w (variance of the linear prediction + 1 / w)
        total = cells[1, b] + 1.0 / doubt
        seen, sure = (cells[2, b] + mean / doubt) / total, 1.0 + 1.0 / total
        cells[1, b] += 1.0
        cells[2, b] += y
        return seen, sure
    if cells[1, b] <= 1.0:
        cells[0, b] = u
        cells[1, b] = 1.0
        cells[2, b] = y
    else:
        cells[2, b] *= (cells[1, b] - 1.0) / cells[1, b]
        cells[1, b] -= 1.0
    return mean, gain


@kernel
def _certificates(monitor, terms, y, weight, lower):
    """Bet that a learned play earns less than its certified lower bound, from every play on.

    A bet that starts with the j-th play has 1 / (j (j + 1)) of the wealth. Rewards in [0, 1] win
    1 + k (lower - y) with k up to 1 / (1 - lower); others exp(b z - b^2 / 2), z their shortfall in
    deviations.
    """
    notes = monitor.notes
    notes[PLAYS] += 1.0
    j = notes[PLAYS]
    lower = min(lower, 1.0 - 1e-9)
    for i in range(3):
        if terms.by_variance:
            factor = 1.0 + STAKES[i] * (lower - y) / (1.0 - lower)
        else:
            b = BETS[i]
            factor = math.exp(min(b * (lower - y) * math.sqrt(weight) - 0.5 * b * b, 600.0))
        notes[WEALTH + i] = min((notes[WEALTH + i] + 1.0 / (j * (j + 1.0))) * factor, LARGEST)
