"""What agents do about alarms: start anew, hold to the baseline, leave the pool, come back.

docs/guard-ucb-math.md says what each of it costs in delta.
"""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel, rare_kernel
from guardband.kernels.leave_out import clear_pooled, forget_others, pool_without
from guardband.kernels.linalg import dot, invert
from guardband.kernels.monitors import AlarmCode, Note, begin, monitor_of, watch
from guardband.kernels.ridge import refresh
from guardband.kernels.state import state_of
from guardband.kernels.sync import add_statistic, clear_statistic, pool
from guardband.kernels.types import Response

__all__ = ["contradiction", "doubt_of", "is_look", "misfit", "moved_by", "readmit", "respond"]
__all__ += ["restart", "slide", "watch_anew", "watch_rows"]

LOOKS = 16.0  # of the first ones, each has as many rewards more; later looks are rarer
PATIENCE = 2.0  # where features do not fit, the next start waits for so many times the rewards
FOREVER = 1e18  # rewards

FIT, ASSUMPTIONS = int(AlarmCode.FIT), int(AlarmCode.ASSUMPTIONS)
REWARDS, LOGDET, PLAYS = int(Note.REWARDS), int(Note.LOGDET), int(Note.PLAYS)
WEALTH, STARTS, LEVEL = int(Note.WEALTH), int(Note.STARTS), int(Note.LEVEL)
HOLD, APART, SHARES = int(Note.HOLD), int(Note.APART), int(Note.SHARES)
ANEW, RAISED, PENDING = int(Note.ANEW), int(Note.RAISED), int(Note.PENDING)


BASELINE, WARN = int(Response.BASELINE), int(Response.WARN)


@rare_kernel
def respond(group, left, m, terms, code):
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
        _go_on_alone(group, left, m, terms)
    else:
        by_cells = code == ASSUMPTIONS and notes[SHARES + 2] > notes[SHARES + 1]
        _restart(group, left, m, terms, by_cells)
        notes[ANEW] = 1.0
    if terms.on_alarm == BASELINE:
        notes[HOLD] = FOREVER
    if agents == 1 or not terms.shares:
        return math.nan
    notes[APART] = 1.0
    if _most_started_anew(group):
        return _start_pool_anew(group, left, terms)
    return math.nan if apart else _pool_the_rest(group, left, terms)


@kernel
def _restart(group, left, m, terms, by_cells):
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
    forget_others(state, nothing.own, left, m, terms.ridge)
    monitor = monitor_of(state.watch, d)
    notes = monitor.notes
    if by_cells:
        notes[HOLD] = max(notes[HOLD], PATIENCE * notes[REWARDS])
    notes[PENDING] = 0.0
    begin(monitor, terms)
    _next_share(notes)


@rare_kernel
def restart(group, left, m, terms):
    """Let agent m forget all that it learned, because most of the others have."""
    _restart(group, left, m, terms, False)


@rare_kernel
def watch_anew(group, m, terms):
    """Let the monitors of agent m begin again, with their next share; it forgets nothing else.

    All who are compared with its data pay for it, as they are compared with fewer from now on.
    """
    begin(monitor_of(group.watch[m], group.own.moment.shape[1]), terms)
    for k in range(group.work.shape[0] - 2):
        if k == m or terms.shares:
            group.watch[k, STARTS] += 1.0


@rare_kernel
def watch_rows(group, terms, rows, rewards, weights, lowers):
    """Let the first agent's monitors watch (n, d) rows again, as they did when these were learned.

    Declared weights are 0 where a reward was not watched. Returns how many were, up to an alarm.
    """
    state = state_of(group, 0)
    for r in range(rewards.size):
        if weights[r] > 0.0 and watch(state, terms, rows[r], rewards[r], weights[r], lowers[r]):
            return r + 1
    return rewards.size


@kernel
def _next_share(notes):
    """Count a start, and take its share of delta."""
    notes[STARTS] += 1.0
    k = notes[STARTS] + 1.0
    before = 2.0 * math.log((k - 1.0) * max(k - 2.0, 1.0))
    notes[LEVEL] += 2.0 * math.log(k * (k - 1.0)) - before


@kernel
def _go_on_alone(group, left, m, terms):
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
    forget_others(state, nothing.own, left, m, terms.ridge)
    notes[PLAYS] = 0.0
    for i in range(3):
        notes[WEALTH + i] = 0.0
        notes[RAISED + i] = 0.0
    _next_share(notes)


@kernel
def _most_started_anew(group):
    """Tell whether more agents have started anew beside the pool than are left in it.

    As many are not enough: nobody alone makes others start anew, not even one of two.
    """
    anew, left = 0, 0
    for m in range(group.work.shape[0] - 2):
        notes = group.watch[m]
        anew += notes[APART] > 0.0 and notes[ANEW] > 0.0
        left += notes[APART] == 0.0
    return anew > left


@kernel
def _start_pool_anew(group, left, terms):
    """Make a new pool of those that started anew; who is left in the old one starts anew, too.

    These have no alarm that a person could look at: none of them is held to the baseline.
    """
    agents = group.work.shape[0] - 2
    shared = state_of(group, agents)
    for m in range(agents):
        notes = group.watch[m]
        if notes[APART] == 0.0:
            _restart(group, left, m, terms, False)
        elif notes[ANEW] > 0.0:
            notes[APART] = 0.0
        notes[ANEW] = 0.0
    clear_pooled(shared, left)
    _next_share(shared.watch)
    return pool_without(group, left, terms)


@kernel
def _pool_the_rest(group, left, terms):
    """Rebuild the pool from the data of those who are in it, at declared weights.

    Who left was found out by looking at rewards: all sets that are left pay for 3 M choices.
    """
    d, agents = group.own.moment.shape[1], group.work.shape[0] - 2
    shared, price = state_of(group, agents), 2.0 * math.log(3.0 * agents)
    looked = shared.own.scalars[5]
    clear_pooled(shared, left)
    shared.own.scalars[5] = looked
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
    return pool_without(group, left, terms)


@kernel
def is_look(rewards, d):
    """Tell whether it is time to look if a task fits, after so many of its rewards that count.

    A look costs d^3: it comes with every d-th reward, so that d^2 is spent on each, and from 16 d
    on with an eighth to a sixteenth more of them than the last time.
    """
    if rewards == 0.0 or rewards % d != 0.0:
        return False
    turn = rewards / d
    while turn >= LOOKS and turn % 2.0 == 0.0:
        turn *= 0.5
    return turn < LOOKS


@rare_kernel
def misfit(group, terms, due):
    """Return the agent of the pool that contradicts the others most, and the evidence for it.

    -1: nobody does beyond doubt. Only agents that are `due` (M,) are looked at, and all of them if
    one is found, or if `due` is empty. Whoever has left was found out by looking at rewards: what
    the pool's own sets pay for it, the threshold pays as well.
    """
    agents, worst, most, pooled = group.work.shape[0] - 2, -1, -math.inf, 0
    for m in range(agents):
        pooled += group.watch[m, APART] == 0.0
    if pooled < 2:
        return worst, most
    total = _sum_pool(group)
    for found in (False, True):
        for m in range(agents):
            notes = group.watch[m]
            now = (due.size == 0 or due[m] > 0.0) != found
            if not now or notes[APART] > 0.0 or notes[REWARDS] == 0.0:
                continue
            if notes[RAISED + FIT - 1] > 0.0:  # it was told before
                continue
            evidence, enough = _doubt(group, m, total, terms)
            if evidence >= enough and evidence > most:
                worst, most = m, evidence
        if worst < 0:
            break
    clear_statistic(total)
    return worst, most


@rare_kernel
def doubt_of(group, m, terms):
    """Return the evidence that agent m contradicts the others in the pool, and what is enough."""
    total = _sum_pool(group)
    evidence, enough = _doubt(group, m, total, terms)
    clear_statistic(total)
    return evidence, enough


@kernel
def _doubt(group, m, total, terms):
    """Return the evidence against agent m's fit, and what is enough; `total` is of the pool."""
    d, agents = group.own.moment.shape[1], group.work.shape[0] - 2
    nothing = state_of(group, agents + 1)
    monitor = monitor_of(group.watch[m], d)
    starts, level = monitor.notes[STARTS] + 1.0, group.watch[agents, LEVEL]
    enough = terms.alarm + math.log(starts * (starts + 1.0)) + 0.5 * level
    _sum_others(group, m, total, nothing.own)
    evidence = contradiction(monitor, nothing.own, terms, nothing.work)
    clear_statistic(nothing.own)
    return evidence, enough


@kernel
def _sum_pool(group):
    """Return the sums of all in the pool, at declared weights: scratch, to be cleared."""
    d, agents = group.own.moment.shape[1], group.work.shape[0] - 2
    total = state_of(group, agents + 1).reports
    for m in range(agents):
        if group.watch[m, APART] == 0.0:
            add_statistic(total, monitor_of(group.watch[m], d).own)
    return total


@kernel
def _sum_others(group, m, total, others):
    """Write the sums of all in the pool but agent m to `others`; `total` are those of all.

    A difference, but not where most of the total is its own: of much that is made up, rounding
    would leave nothing of the rest.
    """
    d, agents = others.moment.size, group.work.shape[0] - 2
    own = monitor_of(group.watch[m], d).own
    clear_statistic(others)
    if group.watch[m, APART] > 0.0:
        add_statistic(others, total)
        return
    if 2.0 * own.scalars[3] > total.scalars[3]:
        for k in range(agents):
            if k != m and group.watch[k, APART] == 0.0:
                add_statistic(others, monitor_of(group.watch[k], d).own)
        return
    others.scalars[3] = total.scalars[3] - own.scalars[3]
    for i in range(d):
        others.moment[i] = total.moment[i] - own.moment[i]
        for j in range(d):
            others.gram[i, j] = total.gram[i, j] - own.gram[i, j]


@kernel
def contradiction(monitor, others, terms, work):
    """Return the log of the e-process against one parameter for an agent and for all others.

    Half of (a - b)'(A^-1 + B^-1)^-1 (a - b) - log det(A / ridge) - log det(B / ridge) -
    2 ridge S^2, with estimate a and matrix A of the agent's own data, b and B of the others', all
    at declared weights: what one parameter explains worse than two, less the price of two. With a
    bias weights count half, and bias^2 w / 2 is paid for every reward. `work` is scratch, as a
    state has it.
    """
    d = monitor.theta.size
    share = 0.5 if terms.bias > 0.0 else 1.0
    matrix, inverse, moment, gap = work[4 : 4 + d], work[4 + d : 4 + 2 * d], work[0], work[1]
    for i in range(d):
        moment[i] = share * others.moment[i]
        for j in range(d):
            matrix[i, j] = share * others.gram[i, j]
        matrix[i, i] += terms.ridge
    price = monitor.notes[LOGDET] + invert(matrix, inverse) - d * math.log(terms.ridge)
    price += 2.0 * terms.ridge * terms.theta_bound * terms.theta_bound
    price += terms.bias * terms.bias * (monitor.own.scalars[3] + others.scalars[3])
    for i in range(d):
        gap[i] = monitor.theta[i] - dot(inverse[i], moment)
    for i in range(d):
        for j in range(d):
            matrix[i, j] = inverse[i, j] + monitor.inverse[i, j]
    invert(matrix, inverse)
    distance = 0.0
    for i in range(d):
        distance += gap[i] * dot(inverse[i], gap)
    return 0.5 * (distance - price)


@rare_kernel
def readmit(group, left, m, terms):
    """Let an agent that is apart back into the pool, with what it has learned alone.

    Returns log det(V / ridge) of the pool. Every set that changes pays for a start.
    """
    agents = group.work.shape[0] - 2
    group.watch[m, APART] = 0.0
    group.watch[m, ANEW] = 0.0
    for j in range(agents + 1):
        _next_share(group.watch[j])
    return pool_without(group, left, terms)


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
