"""What agents do about alarms: start anew, hold to the baseline, leave the pool, come back.

docs/guard-ucb-math.md says what each of it costs in delta.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel
from guardband.kernels.certify import guard_radius
from guardband.kernels.linalg import dot, invert
from guardband.kernels.monitors import AlarmCode, Note, begin, monitor_of
from guardband.kernels.ridge import refresh
from guardband.kernels.state import state_of
from guardband.kernels.sync import add_statistic, clear_statistic, pool
from guardband.kernels.types import Response

__all__ = ["misfit", "moved_by", "readmit", "respond", "slide"]

PATIENCE = 2.0  # where features do not fit, the next start waits for so many times the rewards
FOREVER = 1e18  # rewards
MULTIPLIERS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)

FIT, ASSUMPTIONS = int(AlarmCode.FIT), int(AlarmCode.ASSUMPTIONS)
REWARDS, LOGDET, PLAYS = int(Note.REWARDS), int(Note.LOGDET), int(Note.PLAYS)
WEALTH, STARTS, LEVEL = int(Note.WEALTH), int(Note.STARTS), int(Note.LEVEL)
HOLD, APART, SHARES = int(Note.HOLD), int(Note.APART), int(Note.SHARES)
ANEW, RAISED, PENDING = int(Note.ANEW), int(Note.RAISED), int(Note.PENDING)


BASELINE, WARN = int(Response.BASELINE), int(Response.WARN)


@rare_kernel
def respond(group, m, terms, code):
    """Do what is to be done about an alarm of agent m, between two rounds.

    Returns log det(V / ridge) of the pool, if that was made anew; else NaN.
    """
    agents, state = group.work.shape[0] - 2, state_of(group, m)
    notes = state.watch
    notes[PENDING] = 0.0
    if terms.on_alarm == WARN:
        notes[RAISED + code - 1] = 1.0
        return math.nan
    apart = notes[APART] > 0.0
    if code == FIT:
        _go_on_alone(group, m, terms)
    else:
        by_cells = code == ASSUMPTIONS and notes[SHARES + 2] > notes[SHARES + 1]
        _restart(group, m, terms, by_cells)
        notes[ANEW] = 1.0
    if terms.on_alarm == BASELINE:
        notes[HOLD] = FOREVER
    if agents == 1 or not terms.shares:
        return math.nan
    notes[APART] = 1.0
    if _most_started_anew(group):
        return _start_pool_anew(group, terms)
    return math.nan if apart else _pool_the_rest(group, terms)


@kernel
def _restart(group, m, terms, by_cells):
    """Forget all that agent m learned; its next set has a share of delta that was set aside.

    The k-th start has delta / ((k - 1) k). If it was the predictor by cells that refuted the
    assumptions, nothing has changed, and a new start will do no better: features do not fit. The
    baseline is then held to for PATIENCE times the rewards that it took to find out, and monitors
    go on watching it.
    """
    d = group.own.moment.shape[1]
    nothing, state = state_of(group, group.work.shape[0] - 1), state_of(group, m)
    clear_statistic(state.own)
    clear_statistic(state.reports)
    refresh(state, nothing.own, terms.ridge)
    state.estimate.scalars[2] = terms.ridge
    state.estimate.scalars[3] = terms.ridge * d
    monitor = monitor_of(state.watch, d)
    notes = monitor.notes
    if by_cells:
        notes[HOLD] = max(notes[HOLD], PATIENCE * notes[REWARDS])
    notes[PENDING] = 0.0
    begin(monitor, terms)
    _next_share(notes)


@kernel
def _next_share(notes):
    """Count a start, and take its share of delta."""
    notes[STARTS] += 1.0
    k = notes[STARTS] + 1.0
    before = 2.0 * math.log((k - 1.0) * max(k - 2.0, 1.0))
    notes[LEVEL] += 2.0 * math.log(k * (k - 1.0)) - before


@kernel
def _go_on_alone(group, m, terms):
    """Let agent m go on with its own data, at declared weights: others may rest on wrong sets."""
    d = group.own.moment.shape[1]
    nothing, state = state_of(group, group.work.shape[0] - 1), state_of(group, m)
    monitor = monitor_of(state.watch, d)
    notes = monitor.notes
    looked = state.own.scalars[5] + state_of(group, group.work.shape[0] - 2).own.scalars[5]
    clear_statistic(state.own)
    clear_statistic(state.reports)
    add_statistic(state.own, monitor.own)
    state.own.scalars[5] = looked
    refresh(state, nothing.own, terms.ridge)
    state.estimate.scalars[2] = terms.ridge
    state.estimate.scalars[3] = terms.ridge * d
    notes[PLAYS] = 0.0
    for i in range(3):
        notes[WEALTH + i] = 0.0
        notes[RAISED + i] = 0.0
    _next_share(notes)


@kernel
def _most_started_anew(group):
    """Tell whether no more agents are left in the pool than have started anew beside it."""
    anew, left = 0, 0
    for m in range(group.work.shape[0] - 2):
        notes = group.watch[m]
        anew += notes[APART] > 0.0 and notes[ANEW] > 0.0
        left += notes[APART] == 0.0
    return anew >= left and anew > 0


@kernel
def _start_pool_anew(group, terms):
    """Make a new pool of those that started anew; who is left in the old one starts anew, too."""
    agents = group.work.shape[0] - 2
    shared = state_of(group, agents)
    for m in range(agents):
        notes = group.watch[m]
        if notes[APART] == 0.0:
            _restart(group, m, terms, False)
            if terms.on_alarm == BASELINE:
                notes[HOLD] = FOREVER
        elif notes[ANEW] > 0.0:
            notes[APART] = 0.0
        notes[ANEW] = 0.0
    clear_statistic(shared.own)
    clear_statistic(shared.reports)
    _next_share(shared.watch)
    return pool(group, terms)


@kernel
def _pool_the_rest(group, terms):
    """Rebuild the pool from the data of those who are in it, at declared weights.

    Who left was found out by looking at rewards: all sets that are left pay for M choices.
    """
    d, agents = group.own.moment.shape[1], group.work.shape[0] - 2
    shared, price = state_of(group, agents), 2.0 * math.log(float(agents))
    looked = shared.own.scalars[5]
    clear_statistic(shared.own)
    shared.own.scalars[5] = looked
    clear_statistic(shared.reports)
    for m in range(agents):
        state = state_of(group, m)
        monitor = monitor_of(state.watch, d)
        if state.watch[APART] == 0.0:
            looked = state.own.scalars[5]
            clear_statistic(state.own)
            clear_statistic(state.reports)
            add_statistic(state.own, monitor.own)
            state.own.scalars[5] = looked
            state.watch[LEVEL] += price
    shared.watch[LEVEL] += price
    return pool(group, terms)


@rare_kernel
def misfit(group, terms, epoch):
    """Return the agent of the pool whose own data contradict the pool most, and the evidence.

    -1: nobody's do beyond doubt. Half of what the squared distance of the set to the agent's own
    estimate, in its own metric, exceeds log det V + ridge S^2 by is the log of an e-process.
    """
    d, agents = group.own.moment.shape[1], group.work.shape[0] - 2
    shared, worst, most, pooled = state_of(group, agents), -1, -math.inf, 0
    for m in range(agents):
        pooled += group.watch[m, APART] == 0.0
    if pooled < 2:
        return -1, 0.0
    for m in range(agents):
        state = state_of(group, m)
        monitor = monitor_of(state.watch, d)
        notes = monitor.notes
        if notes[APART] > 0.0 or notes[RAISED + FIT - 1] > 0.0 or notes[REWARDS] == 0.0:
            continue
        starts = notes[STARTS] + 1.0
        enough = terms.alarm + math.log(starts * (starts + 1.0))
        price = notes[LOGDET] + terms.ridge * terms.theta_bound * terms.theta_bound
        price += terms.bias * terms.bias * monitor.own.scalars[3]
        beta = guard_radius(state, shared.own, terms, epoch)
        evidence = _contradiction(state, monitor, terms, beta, price + 2.0 * enough) - price
        if 0.5 * evidence - enough >= 0.0 and 0.5 * evidence > most:
            worst, most = m, 0.5 * evidence
    return worst, most


@kernel
def _contradiction(state, monitor, terms, beta, need):
    """Bound the squared distance, in the metric A of an agent's own data, of a set to its estimate.

    The set is ||theta - b||_V <= beta, the estimate a; for every k > 0 the distance is at least
    (a - b)'(A^-1 + V^-1 / k)^-1 (a - b) - k beta^2. At most the distance of b itself: if that is
    not above `need`, 0 is returned.
    """
    d, work = monitor.theta.size, state.work
    gap, image = work[1], work[2]
    for i in range(d):
        gap[i] = monitor.theta[i] - state.estimate.theta[i]
    share, distance = 0.5 if terms.bias > 0.0 else 1.0, 0.0
    for i in range(d):
        distance += terms.ridge * gap[i] * gap[i]
        for j in range(d):
            distance += share * monitor.own.gram[i, j] * gap[i] * gap[j]
    if not distance > need or not beta < math.inf:
        return 0.0
    best, matrix, inverse = 0.0, work[4 : 4 + d], state.anchored.inverse
    for p in range(len(MULTIPLIERS)):
        k = MULTIPLIERS[p]
        for i in range(d):
            for j in range(d):
                matrix[i, j] = monitor.inverse[i, j] + state.estimate.inverse[i, j] / k
        invert(matrix, inverse)
        for i in range(d):
            image[i] = dot(inverse[i], gap)
        best = max(best, dot(image, gap) - k * beta * beta)
    return best


@rare_kernel
def readmit(group, m, terms):
    """Let an agent that is apart back into the pool, with what it has learned alone.

    Returns log det(V / ridge) of the pool. Every set that changes pays for a start.
    """
    agents = group.work.shape[0] - 2
    group.watch[m, APART] = 0.0
    group.watch[m, ANEW] = 0.0
    for j in range(agents + 1):
        _next_share(group.watch[j])
    return pool(group, terms)


@rare_kernel
def slide(group, terms):
    """Forget the older half of the window, between two rounds.

    What was learned since the last time is left, at declared weights, and monitors begin anew.
    Returns log det(V / ridge) of the pool, or NaN if agents do not pool.
    """
    d, agents = group.own.moment.shape[1], group.work.shape[0] - 2
    shared, nothing = state_of(group, agents), state_of(group, agents + 1)
    clear_statistic(shared.own)
    for m in range(agents):
        state = state_of(group, m)
        monitor = monitor_of(state.watch, d)
        clear_statistic(state.own)
        add_statistic(state.own, monitor.own)
        refresh(state, nothing.own, terms.ridge)
        state.estimate.scalars[2] = terms.ridge
        state.estimate.scalars[3] = terms.ridge * d
        begin(monitor, terms)
        _next_share(monitor.notes)
    _next_share(shared.watch)
    return pool(group, terms) if terms.shares else math.nan


@kernel
def moved_by(terms, now):
    """Return by how much expected rewards may have changed since the oldest data, in round `now`.

    These are of the first round after the last slide but one.
    """
    slides = (now - 1) // int(terms.half)
    oldest = max(slides - 1, 0) * int(terms.half) + 1
    return terms.drift * (now - oldest)
