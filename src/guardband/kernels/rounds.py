"""What a round of the simulator consists of beside the decision: given, done, seen, counted."""

from __future__ import annotations

from guardband.kernels._jit import kernel
from guardband.kernels.blend import blend
from guardband.kernels.environment import Metric, Played, Sight
from guardband.kernels.linalg import copy
from guardband.kernels.observe import copy_features
from guardband.kernels.state import ALPHA, RHO
from guardband.kernels.types import Mix, RoundInput, Rule
from guardband.kernels.worth import TOLERANCE, count_worth

__all__ = ["act", "count_coin", "count_round", "given_to", "observed_reward", "save_checkpoint"]

ACTION, PARTWAY = int(Mix.ACTION), int(Mix.PARTWAY)
UNKNOWN = int(Rule.UNKNOWN)
HIDDEN, OBSERVED = int(Sight.HIDDEN), int(Sight.OBSERVED)
REGRET, REGRET_EXPECTED = int(Metric.REGRET), int(Metric.REGRET_EXPECTED)
VIOLATIONS_EXPECTED = int(Metric.VIOLATIONS_EXPECTED)
VIOLATIONS_REALISED = int(Metric.VIOLATIONS_REALISED)
VIOLATIONS_POLICY = int(Metric.VIOLATIONS_POLICY)
VIOLATIONS_CONSERVATIVE = int(Metric.VIOLATIONS_CONSERVATIVE)
VIOLATIONS_CONSERVATIVE_EXPECTED = int(Metric.VIOLATIONS_CONSERVATIVE_EXPECTED)
CONSERVATIVE, REWARD = int(Metric.CONSERVATIVE), int(Metric.REWARD)
BASELINE_REWARD = int(Metric.BASELINE_REWARD)


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
def save_checkpoint(clock, metrics):
    """Copy the running sums if this round is a checkpoint."""
    p = clock.ints[3]
    if p < metrics.checkpoints.size and metrics.checkpoints[p] == clock.ints[0]:
        copy(metrics.totals, metrics.curves[p])
        metrics.syncs[p] = clock.ints[2]
        clock.ints[3] = p + 1
