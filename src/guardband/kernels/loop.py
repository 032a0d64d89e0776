"""Rounds of the simulator: features are drawn, every agent decides and learns, they may pool."""

from __future__ import annotations

import math

from guardband.kernels._jit import kernel
from guardband.kernels.alarms import is_look, moved_by
from guardband.kernels.allowance import explored
from guardband.kernels.blocks import LEAST, MOST, PAUSE, play_block, room_for
from guardband.kernels.certify import declared_weight, weigh
from guardband.kernels.disc_ucb import choose as choose_disc
from guardband.kernels.draw import draw_round
from guardband.kernels.environment import (
    Draws,
    EnvironmentArrays,
    Metric,
    Metrics,
    PoolingClock,
    TaskTable,
    Trace,
)
from guardband.kernels.guard_ucb import choose as choose_guard
from guardband.kernels.heeding import heed, slide_window
from guardband.kernels.holdback import count_gain, hold_back
from guardband.kernels.leave_out import (
    absorb_for_all,
    lower_bound_for_all,
    pool_without,
    weigh_for_all,
)
from guardband.kernels.leave_out import choose as choose_tolerant
from guardband.kernels.lies import make_up
from guardband.kernels.monitors import Note, lower_bound_of, watch
from guardband.kernels.observe import note_report, weigh_played
from guardband.kernels.outside import outside, outside_all
from guardband.kernels.pruning import floor_of, in_pruned_set
from guardband.kernels.ridge import absorb, absorb_tidily, add_tidily, is_worn, prediction
from guardband.kernels.rounds import (
    act,
    count_coin,
    count_round,
    given_to,
    observed_reward,
    save_checkpoint,
)
from guardband.kernels.shortcuts import Before, OldWidths
from guardband.kernels.state import (
    TERMS,
    group_of,
    left_out_of,
    scores_of,
    shared_with,
    state_of,
    terms_of,
)
from guardband.kernels.sync import due, pool
from guardband.kernels.types import Floats, Reason, Rule, Terms
from guardband.kernels.value import choose as choose_by_value
from guardband.kernels.widths import begin_chunk, forget, note_choice, note_update, rebuild
from guardband.kernels.widths import choose_disc_by_old as choose_disc_quickly
from guardband.kernels.widths import choose_guard_by_old as choose_guard_quickly
from guardband.kernels.worth import TOLERANCE, pay_round, wish_of

__all__ = ["simulate"]

KNOWN, UNKNOWN = int(Rule.KNOWN), int(Rule.UNKNOWN)
BASELINE, GUARD = int(Rule.BASELINE), int(Rule.GUARD)
LEARNED, EMPTY, IS_STUCK = int(Reason.LEARNED), int(Reason.EMPTY), int(Reason.STUCK)
IS_REFUTED, REWARDS = int(Reason.REFUTED), int(Note.REWARDS)
MOVED = Terms._fields.index("moved")
STUCK, REFUTED = int(Metric.STUCK), int(Metric.REFUTED)
OUTSIDE, OPTIMUM_PRUNED = int(Metric.OUTSIDE), int(Metric.OPTIMUM_PRUNED)
TRIALS, CHARGED, SHORTFALL = int(Metric.TRIALS), int(Metric.CHARGED), int(Metric.SHORTFALL)
VIOLATIONS_TRIAL = int(Metric.VIOLATIONS_TRIAL)


def simulate(
    numbers: Floats,
    without: Floats,
    widths: OldWidths,
    before: Before,
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
    `settings` (M, TERMS + 2), see `pack`. `widths` and `before` are for shortcuts.
    """
    terms = Terms(*settings[0, :TERMS])
    rounds = WEIGHTED if terms.weighted else UNGUARDED
    if terms.rule == GUARD:
        rounds = VALUED if env.values.size > 0 or clock.purses.size > 0 else GUARDED
        rounds = TOLERANT if terms.tolerate else rounds
    kept = (numbers, without, widths, before)
    rounds(*kept, settings, tasks, env, draws, clock, metrics, trace)


def _rounds(guard, weighted=False, valued=False, tolerant=False):
    """Return `simulate` for Guard-UCB or for other rules, without the code that only one needs.

    `weighted` are other rules with Guard-UCB's confidence set, `valued` is Guard-UCB where actions
    have values, `tolerant` Guard-UCB by data that leave out one other task.

    By widths of earlier rounds choose plain Guard-UCB and plain other rules; these play blocks.

    Numba drops a branch whose condition is known before it compiles: one loop for all rules would
    take twice as long to compile, and a third longer to run.
    """
    blocks = not (guard or weighted)

    @kernel
    def rounds(
        numbers, without, widths, before, settings, tasks, env, draws, clock, metrics, trace
    ):
        """Play a chunk of rounds, see `simulate`: decide, act, learn, count, and pool if due."""
        agents = tasks.size.size
        group, terms = group_of(numbers, env.theta.size), terms_of(settings[0])
        left = left_out_of(without, agents, env.theta.size)
        scores = scores_of(env.scratch, env.menu.shape[3])
        choose = choose_guard if guard else choose_disc
        choose_quickly = choose_guard_quickly if guard else choose_disc_quickly
        last, made = env.thetas.shape[0] - 1, env.fabricated
        s, end, size, most, again = -1, draws.contexts.size, LEAST, MOST, 0
        begin_chunk(widths, group)
        while s + 1 < end:
            s += 1
            if blocks and s >= again:
                n = room_for(before, clock, metrics, size, end - s)
                if n >= LEAST:
                    world = (settings, tasks, env, draws, clock, metrics, trace)
                    if play_block(before, numbers, terms, *world, s, n):
                        forget(widths)
                        s, size = s + n - 1, min(2 * n, most)
                        continue
                    size = most = max(n // 2, LEAST)
                    again = s + (PAUSE if n == LEAST else 0)
            slot = draw_round(env, draws, s)
            t = clock.ints[0] + 1
            clock.ints[0] = t
            if guard and terms.drift > 0.0:
                settings[0, MOVED] = moved_by(terms, t)
                terms = terms_of(settings[0])
            call, look = False, False
            raised = s == 0  # rows of logs may have raised an alarm before
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
                    c = draws.contexts[s]
                    outcome = choose_quickly(widths, m, c, state, shared, terms, given, scores)
                    if outcome.action < 0:
                        outcome = choose(state, shared, terms, given, scores)
                    note_choice(widths, m, c, outcome)
                stake = (0.0, 0.0, 0.0)
                if guard and terms.holdback > 0.0:
                    outcome, stake = hold_back(terms, given, scores, outcome, draws.hold[s, m])
                lower = lower_bound_of(terms, given, scores, outcome) if guard else 0.0
                if tolerant:
                    lower = lower_bound_for_all(left, m, terms, given, outcome)
                learns = terms.rule != BASELINE
                if learns:
                    totals = metrics.totals[m]
                    theta = env.thetas[min(slot, last), min(m, env.thetas.shape[1] - 1)]
                    if tolerant:
                        totals[OUTSIDE] += outside_all(state, shared, left, m, terms.ridge, theta)
                    else:
                        radius = outcome.plain
                        totals[OUTSIDE] += outside(state, shared.own, terms.ridge, theta, radius)
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
                        radius, k = outcome.plain, outcome.action
                        weight, guess = weigh(state.estimate, radius, terms, given, k, guess)
                        gain = add_tidily(state, terms, x, y, weight, guess)
                        note_update(widths, m, state, weight, gain)
                        if is_worn(state.own, gain):
                            rebuild(widths, m, state, shared.own, terms.ridge)
                    elif weighted:
                        weight = weigh_played(state.estimate, terms, given, outcome, guess)
                        absorb_tidily(state, shared.own, terms, x, y, weight, guess)
                    else:
                        note_update(widths, m, state, 1.0, absorb(state, x, y, 1.0, guess))
                    if guard and not math.isnan(terms.alarm):
                        declared = declared_weight(terms, given, outcome.action)
                        raised = watch(state, terms, x, y, declared, lower) or raised
                        look = look or is_look(state.watch[REWARDS], x.size)
                    if guard:
                        note_report(state, terms, given)
                        count_gain(env, metrics, terms, slot, m, outcome, stake, y)
                    if made.number > 0.0 and t == made.since and m == agents - 1:
                        make_up(state, shared.own, terms, made)
                        forget(widths)
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
                forget(widths)
                clock.ints[1] = t + clock.ints[4]
                clock.ints[2] += 1
                if trace.synced.size > 0:
                    trace.synced[t - 1] = True
            look = call or (look and agents > 1)
            alarmed = guard and (raised or look)
            if alarmed and heed(group, left, terms, clock, metrics, raised, look):
                forget(widths)
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
def _pruned(state, pooled, terms, given, scores, outcome, best):
    """Tell whether the gate was open and the best action not in the pruned set."""
    if outcome.reason not in (LEARNED, EMPTY):
        return False
    if outcome.reason == LEARNED and outcome.action == best:
        return False
    floor = floor_of(terms, given, scores.upper)
    return not in_pruned_set(state, pooled, terms, outcome.beta, floor, scores, best)


@kernel
def _count_charge(env, tasks, metrics, terms, slot, m, outcome, played):
    """Count a play that was charged, and what it really fell short by: keep r_b - r, or 0."""
    b, totals = env.baseline[slot, m], metrics.totals[m]
    reward, keep = env.expected[slot, env.group[m], b], 1.0 - tasks.judged[m]
    totals[TRIALS] += 1.0
    totals[CHARGED] += outcome.charge
    totals[SHORTFALL] += max(0.0, (keep if terms.strict else 1.0) * reward - played.mean)
    totals[VIOLATIONS_TRIAL] += played.mean < keep * reward - TOLERANCE
