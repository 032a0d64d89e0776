"""Rounds of the simulator: features are drawn, every agent decides and learns, they may pool."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.alarms import moved_by
from guardband.kernels.allowance import explored
from guardband.kernels.blend import blend
from guardband.kernels.certify import declared_weight, weigh
from guardband.kernels.disc_ucb import choose as choose_disc
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import (
    Draws,
    EnvironmentArrays,
    Metric,
    Metrics,
    Played,
    PoolingClock,
    Sight,
    TaskTable,
    Trace,
)
from guardband.kernels.guard_ucb import choose as choose_guard
from guardband.kernels.heeding import heed, slide_window
from guardband.kernels.holdback import count_gain, hold_back
from guardband.kernels.leave_out import absorb_for_all, pool_without, weigh_for_all
from guardband.kernels.leave_out import choose as choose_tolerant
from guardband.kernels.lies import make_up
from guardband.kernels.linalg import copy
from guardband.kernels.monitors import lower_bound_of, watch
from guardband.kernels.observe import copy_features, note_report, weigh_played
from guardband.kernels.outside import outside, outside_all
from guardband.kernels.pruning import floor_of, in_pruned_set
from guardband.kernels.ridge import absorb, absorb_tidily, prediction
from guardband.kernels.state import (
    ALPHA,
    RHO,
    TERMS,
    group_of,
    left_out_of,
    scores_of,
    shared_with,
    state_of,
    terms_of,
)
from guardband.kernels.sync import due, pool
from guardband.kernels.types import Floats, Mix, Reason, RoundInput, Rule, Terms
from guardband.kernels.value import choose as choose_by_value
from guardband.kernels.worth import TOLERANCE, count_worth, pay_round, wish_of

__all__ = [
    "TOLERANCE",
    "act",
    "count_coin",
    "count_round",
    "given_to",
    "observed_reward",
    "save_checkpoint",
    "simulate",
]

ACTION, TASK_VECTOR, PARTWAY = int(Mix.ACTION), int(Mix.TASK_VECTOR), int(Mix.PARTWAY)
KNOWN, UNKNOWN = int(Rule.KNOWN), int(Rule.UNKNOWN)
BASELINE, GUARD = int(Rule.BASELINE), int(Rule.GUARD)
LEARNED, EMPTY, IS_STUCK = int(Reason.LEARNED), int(Reason.EMPTY), int(Reason.STUCK)
IS_REFUTED = int(Reason.REFUTED)
HIDDEN, OBSERVED = int(Sight.HIDDEN), int(Sight.OBSERVED)
MOVED = Terms._fields.index("moved")
REGRET, REGRET_EXPECTED = int(Metric.REGRET), int(Metric.REGRET_EXPECTED)
VIOLATIONS_EXPECTED = int(Metric.VIOLATIONS_EXPECTED)
VIOLATIONS_REALISED = int(Metric.VIOLATIONS_REALISED)
VIOLATIONS_POLICY = int(Metric.VIOLATIONS_POLICY)
VIOLATIONS_CONSERVATIVE = int(Metric.VIOLATIONS_CONSERVATIVE)
VIOLATIONS_CONSERVATIVE_EXPECTED = int(Metric.VIOLATIONS_CONSERVATIVE_EXPECTED)
CONSERVATIVE, REWARD = int(Metric.CONSERVATIVE), int(Metric.REWARD)
BASELINE_REWARD, STUCK = int(Metric.BASELINE_REWARD), int(Metric.STUCK)
REFUTED = int(Metric.REFUTED)
OUTSIDE, OPTIMUM_PRUNED = int(Metric.OUTSIDE), int(Metric.OPTIMUM_PRUNED)
TRIALS, CHARGED, SHORTFALL = int(Metric.TRIALS), int(Metric.CHARGED), int(Metric.SHORTFALL)
VIOLATIONS_TRIAL = int(Metric.VIOLATIONS_TRIAL)


def simulate(
    numbers: Floats,
    without: Floats,
    settings: Floats,
    tasks: TaskTable,
    env: EnvironmentArrays,
    draws: Draws,
    clock: PoolingClock,
    metrics: Metrics,
    trace: Trace,
) -> None:
    """Play a chunk of rounds; changes the group's array, the clock, the metrics and the trace.

    `numbers` is the group's array, `without` that of data without each task, see `state`, and
    `settings` (M, TERMS + 2), see `pack`.
    """
    terms = Terms(*settings[0, :TERMS])
    rounds = WEIGHTED if terms.weighted else UNGUARDED
    if terms.rule == GUARD:
        rounds = VALUED if env.values.size > 0 or clock.purses.size > 0 else GUARDED
        rounds = TOLERANT if terms.tolerate else rounds
    rounds(numbers, without, settings, tasks, env, draws, clock, metrics, trace)


def _rounds(guard, weighted=False, valued=False, tolerant=False):
    """Return `simulate` for Guard-UCB or for other rules, without the code that only one needs.

    `weighted` are other rules with Guard-UCB's confidence set, `valued` is Guard-UCB where actions
    have values, `tolerant` Guard-UCB by data that leave out one other task.

    Numba drops a branch whose condition is known before it compiles: one loop for all rules would
    take twice as long to compile, and a third longer to run.
    """

    @kernel
    def rounds(numbers, without, settings, tasks, env, draws, clock, metrics, trace):
        """Play a chunk of rounds, see `simulate`: decide, act, learn, count, and pool if due."""
        agents = tasks.size.size
        group, terms = group_of(numbers, env.theta.size), terms_of(settings[0])
        left = left_out_of(without, agents, env.theta.size)
        scores = scores_of(env.scratch, env.menu.shape[3])
        choose = choose_guard if guard else choose_disc
        last, made = env.thetas.shape[0] - 1, env.fabricated
        for s in range(draws.contexts.size):
            slot = draw_round(env, draws, s)
            t = clock.ints[0] + 1
            clock.ints[0] = t
            if guard and terms.drift > 0.0:
                settings[0, MOVED] = moved_by(terms, t)
                terms = terms_of(settings[0])
            call, raised = False, s == 0  # rows of logs may have raised an alarm before
            # Not range(agents): LLVM would set up a pointer per array and loop in every round.
            for m in tasks.agents:
                state, shared = state_of(group, m), shared_with(group, m)
                given = given_to(env, tasks, terms, settings[m], clock, draws, slot, s, m)
                if valued:
                    wish = wish_of(env, clock, slot, m, given.baseline)
                    outcome = choose_by_value(state, shared, terms, given, scores, wish)
                    pay_round(clock, wish, scores, m, given.baseline, outcome.action)
                elif tolerant:
                    outcome = choose_tolerant(state, shared, left, m, terms, given, scores)
                else:
                    outcome = choose(state, shared, terms, given, scores)
                stake = (0.0, 0.0, 0.0)
                if guard and terms.holdback > 0.0:
                    outcome, stake = hold_back(terms, given, scores, outcome, draws.hold[s, m])
                lower = lower_bound_of(terms, given, scores, outcome) if guard else 0.0
                learns = terms.rule != BASELINE
                if learns:
                    totals = metrics.totals[m]
                    theta = env.thetas[min(slot, last), min(m, env.thetas.shape[1] - 1)]
                    if tolerant:
                        totals[OUTSIDE] += outside_all(state, left, m, terms.ridge, theta)
                    else:
                        plain = outcome.plain
                        totals[OUTSIDE] += outside(state, shared.own, terms.ridge, theta, plain)
                    if guard:
                        totals[STUCK] += outcome.reason == IS_STUCK
                        totals[REFUTED] += outcome.reason == IS_REFUTED
                    elif terms.rule in (KNOWN, UNKNOWN):
                        best = env.best[slot, env.group[m]]
                        totals[OPTIMUM_PRUNED] += _pruned(
                            state, shared.own, terms, given, scores, outcome, best
                        )
                played = act(outcome, terms, given, env, draws, slot, s, m, state.work)
                if learns:
                    x, y = state.work[0], observed_reward(env, draws, s, m, played)
                    guess = prediction(x, state.estimate.theta)
                    if tolerant:
                        k = outcome.action
                        weight, guess = weigh_for_all(left, m, terms, given, k, guess)
                        absorb_for_all(state, shared, left, m, terms, x, y, weight, guess)
                    elif guard:
                        plain, k = outcome.plain, outcome.action
                        weight, guess = weigh(state.estimate, plain, terms, given, k, guess)
                        absorb_tidily(state, shared.own, terms, x, y, weight, guess)
                        if not math.isnan(terms.alarm):
                            declared = declared_weight(terms, given, k)
                            raised = watch(state, terms, x, y, declared, lower) or raised
                        note_report(state, terms, given)
                        count_gain(env, metrics, terms, slot, m, outcome, stake, y)
                    elif weighted:
                        weight = weigh_played(state.estimate, terms, given, outcome, guess)
                        absorb_tidily(state, shared.own, terms, x, y, weight, guess)
                    else:
                        absorb(state, x, y, 1.0, guess)
                    if made.number > 0.0 and t == made.since and m == agents - 1:
                        make_up(state, shared.own, terms, made)
                    call = call or _is_due(state, terms, clock, outcome.conservative)
                count_round(env, tasks, metrics, trace, slot, t, m, played)
                count_coin(env, tasks, metrics, slot, m, outcome, played)
                if guard and trace.explored.size > 0:
                    trace.explored[t - 1, m] = explored(outcome)
                if guard and outcome.charge > 0.0:
                    state.spent[0] += outcome.charge
                    _count_charge(env, tasks, metrics, terms, slot, m, outcome, played)
            if call:
                if tolerant:
                    clock.logdet[0] = pool_without(group, left, terms)
                else:
                    clock.logdet[0] = pool(group, terms)
                clock.ints[1] = t + clock.ints[4]
                clock.ints[2] += 1
                if trace.synced.size > 0:
                    trace.synced[t - 1] = True
            if guard and not tolerant and (raised or call):
                heed(group, terms, clock, metrics, raised, call)
            if guard and terms.half > 0.0 and t % int(terms.half) == 0:
                slide_window(group, terms, clock)
            save_checkpoint(clock, metrics)

    return rounds


GUARDED, UNGUARDED = _rounds(guard=True), _rounds(guard=False)
WEIGHTED, VALUED = _rounds(guard=False, weighted=True), _rounds(guard=True, valued=True)
TOLERANT = _rounds(guard=True, tolerant=True)


@kernel
def _is_due(state, terms, clock, conservative):
    """Tell whether an agent calls for a pooling at the end of this round, see `sync.due`."""
    now, d = clock.ints[0] + clock.ints[4], state.own.moment.size
    logdet, rounds = state.estimate.scalars[0], now - clock.ints[1]
    return due(terms, logdet, clock.logdet[0], rounds, now, conservative, d)


@kernel
def given_to(env, tasks, terms, own, clock, draws, slot, s, m):
    """Return what agent m is given in round s of the chunk: psi, or phi where it may see it.

    `own` are its settings, of which alpha and rho are read.
    """
    a, b = min(m, env.menu.shape[0] - 1), env.baseline[slot, m]
    menu, told = env.menu[a, slot], env.baseline_reward[slot, m]
    if env.sight == OBSERVED:
        menu, told = env.truth[a, slot], env.realised[slot, env.group[m], b]
    rho = own[RHO]
    if draws.rho.size > 0:
        rho = draws.rho[s]
    elif terms.rule != UNKNOWN and terms.mix != ACTION and not told > 0.0:
        rho = 0.0  # of a reward of zero nothing may be lost
    row = min(s, draws.support.shape[0] - 1)
    return RoundInput(
        menu,
        tasks.coords[m, : tasks.size[m]],
        b,
        told,
        terms.tolerance >= 0.0,
        env.gap[slot, m],
        own[ALPHA],
        rho,
        clock.ints[2] + 1,
        clock.ints[0] + clock.ints[4],
        draws.coin[s, m],
        env.contexts[a],
        draws.support[row],
        draws.weights[row],
        env.covariance[m],
    )


@kernel
def _pruned(state, pooled, terms, given, scores, outcome, best):
    """Tell whether the gate was open and the best action not in the pruned set."""
    if outcome.reason not in (LEARNED, EMPTY):
        return False
    if outcome.reason == LEARNED and outcome.action == best:
        return False
    floor = floor_of(terms, given, scores.upper)
    return not in_pruned_set(state, pooled, terms, outcome.beta, floor, scores, best)


@kernel
def act(outcome, terms, given, env, draws, slot, s, m, work):
    """Carry out agent m's decision; writes the vector to learn from to work[0].

    Where features are mixed, a conservative round plays (1 - rho) psi_b + rho zeta, or partway to
    the target (1 - g) psi_b + g psi_target with g = `outcome.chance`.
    """
    k, a, x = outcome.action, min(m, env.menu.shape[0] - 1), work[0]
    expected, realised = env.expected[slot, env.group[m]], env.realised[slot, env.group[m]]
    mean, reward = expected[k], realised[k]
    seen = env.menu[a, slot] if env.sight == HIDDEN else env.truth[a, slot]
    copy_features(seen, k, given.coords, x)
    if outcome.conservative and terms.mix == PARTWAY:
        j, g = outcome.target, outcome.chance
        copy_features(seen, j, given.coords, work[1])
        for i in range(x.size):
            x[i] = (1.0 - g) * x[i] + g * work[1, i]
        mean = (1.0 - g) * mean + g * expected[j]
        reward = (1.0 - g) * reward + g * realised[j]
    elif outcome.conservative and terms.mix != ACTION:
        zeta = draws.zeta[s, min(m, draws.zeta.shape[1] - 1)]
        bonus = blend(x, zeta, terms, given, env.theta, work[1])
        mean = (1.0 - given.rho) * mean + bonus
        reward = (1.0 - given.rho) * reward + bonus
    return Played(k, outcome.conservative, mean, reward)


@kernel
def observed_reward(env, draws, s, m, played):
    """Return the reward that agent m sees: noise added, or 1 with its probability, else 0.

    One that lies reports another.
    """
    if env.binary:
        return 1.0 if draws.noise[s, m] < played.reward else 0.0
    lie = env.lies[s, m, played.action] if env.lies.size > 0 else 0.0
    return played.reward + draws.noise[s, m] + lie


@kernel
def count_round(env, tasks, metrics, trace, slot, t, m, played):
    """Count what agent m played in round t, against the optimum and the baseline.

    Regret grows by (phi_x* - phi_x)'theta; a violation is a reward below (1 - alpha) times that of
    the baseline, by phi'theta or by psi'theta.
    """
    g, b = env.group[m], env.baseline[slot, m]
    expected, realised = env.expected[slot, g], env.realised[slot, g]
    best = env.best[slot, g]
    keep = 1.0 - tasks.judged[m]
    totals = metrics.totals[m]
    totals[REGRET] += realised[best] - played.reward
    totals[REGRET_EXPECTED] += expected[best] - played.mean
    low_mean = played.mean < keep * expected[b] - TOLERANCE
    low_reward = played.reward < keep * realised[b] - TOLERANCE
    totals[VIOLATIONS_EXPECTED] += low_mean
    totals[VIOLATIONS_POLICY] += low_mean
    totals[VIOLATIONS_REALISED] += low_reward
    totals[VIOLATIONS_CONSERVATIVE] += low_reward and played.conservative
    totals[VIOLATIONS_CONSERVATIVE_EXPECTED] += low_mean and played.conservative
    totals[CONSERVATIVE] += played.conservative
    totals[REWARD] += played.reward
    totals[BASELINE_REWARD] += realised[b]
    count_worth(env, totals, slot, expected, keep, b, played.action)
    if trace.actions.size > 0:
        trace.actions[t - 1, m] = played.action
        trace.conservative[t - 1, m] = played.conservative
        trace.rewards[t - 1, m] = played.reward


@kernel
def count_coin(env, tasks, metrics, slot, m, outcome, played):
    """Where a coin chose, judge the policy by the mixture it chose from, not by what it chose.

    The mixture earns (1 - chance) psi_p'theta + chance psi_x'theta, p the partner, x the target.
    """
    chance = outcome.chance
    if 0.0 < chance < 1.0:
        expected = env.expected[slot, env.group[m]]
        mixture = (1.0 - chance) * expected[outcome.partner] + chance * expected[outcome.target]
        floor = (1.0 - tasks.judged[m]) * expected[env.baseline[slot, m]] - TOLERANCE
        metrics.totals[m, VIOLATIONS_POLICY] += (mixture < floor) - (played.mean < floor)


@kernel
def _count_charge(env, tasks, metrics, terms, slot, m, outcome, played):
    """Count a play that was charged, and what it really fell short by: keep r_b - r, or 0."""
    b, totals = env.baseline[slot, m], metrics.totals[m]
    reward, keep = env.expected[slot, env.group[m], b], 1.0 - tasks.judged[m]
    totals[TRIALS] += 1.0
    totals[CHARGED] += outcome.charge
    totals[SHORTFALL] += max(0.0, (keep if terms.strict else 1.0) * reward - played.mean)
    totals[VIOLATIONS_TRIAL] += played.mean < keep * reward - TOLERANCE


@kernel
def save_checkpoint(clock, metrics):
    """Copy the running sums if this round is a checkpoint."""
    p = clock.ints[3]
    if p < metrics.checkpoints.size and metrics.checkpoints[p] == clock.ints[0]:
        copy(metrics.totals, metrics.curves[p])
        metrics.syncs[p] = clock.ints[2]
        clock.ints[3] = p + 1
