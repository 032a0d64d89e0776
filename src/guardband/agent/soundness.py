"""Whether the numbers of saved agents can be what data left behind.

A file may be whole and still hold sums that no rewards can have, or an estimate that is not
theirs: promises would rest on them. What passes is what some data would give; that these data were
seen is not shown by it.

Numbers near the largest overflow where they are checked. Comparisons are written so that neither
infinity nor NaN passes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from guardband.agent.inputs import SLACK, reward_range
from guardband.errors import InvalidValueError
from guardband.kernels.monitors import WANDERING, Monitor, Note, monitor_of
from guardband.kernels.purse import ROUNDS, SPENT
from guardband.kernels.state import view_of
from guardband.kernels.types import Estimate, Floats, Statistic

if TYPE_CHECKING:
    from guardband.agent.group import AgentGroup

__all__ = ["check_group"]

MOST = 2**53  # observations: a whole number that a double still counts exactly
EPS = float(np.finfo(np.float64).eps)
GRANTED = 64 + 2**20  # roundings, beside one for each observation up to so many
CLOSE = 1e-6  # an estimate's own rounding, in units of V, where V is not nearly singular
WORN = 0.1  # and where it is
KEPT = 1e-12  # of a sum: what compensated sums carry along is less
NOTES = {  # of monitors: the least and the largest, and whether they are whole numbers
    Note.REWARDS: (0.0, MOST, True),
    Note.SHARES: (0.0, SLACK, False),
    Note.SHARES + 1: (0.0, SLACK, False),
    Note.SHARES + 2: (0.0, SLACK, False),
    Note.PLAYS: (0.0, MOST, True),
    Note.WEALTH: (0.0, math.inf, False),
    Note.WEALTH + 1: (0.0, math.inf, False),
    Note.WEALTH + 2: (0.0, math.inf, False),
    Note.STARTS: (0.0, MOST, True),
    Note.HOLD: (0.0, math.inf, False),
    Note.APART: (0.0, 1.0, True),
    Note.ANEW: (0.0, 1.0, True),
    Note.RAISED: (0.0, 1.0, True),
    Note.RAISED + 1: (0.0, 1.0, True),
    Note.RAISED + 2: (0.0, 1.0, True),
    Note.PENDING: (0.0, 3.0, True),
}


class Bounds(NamedTuple):
    """What is declared of every observation."""

    feature: float  # the longest that features are
    reward: float  # the largest size of a reward
    weight: float
    guess: float  # the largest size of a prediction


def check_group(group: AgentGroup) -> None:
    """Refuse (InvalidValueError) numbers of a group that no decisions and rewards can have left."""
    algorithm: Any = group.algorithm  # one of this package
    low, high = reward_range(algorithm)
    # Some rules of the paper play a direction, of length 1, in place of features.
    longest = max(group.feature_bound, 1.0) * SLACK
    largest, weight = max(-low, high), algorithm.max_weight * SLACK
    with np.errstate(all="ignore"):
        _check_counts(group)
        _check_turns(group)
        # All data's sum of w (y - theta'x)^2 + ridge |theta|^2 is least at theta-hat.
        reach = longest * largest * math.sqrt(weight * _rounds(group) / group.engine.ridge)
        bounds = Bounds(longest, largest, weight, 1.0 + reach)
        _check_sums(group, bounds)
        _check_pool(group, bounds)
        _check_monitors(group, bounds)
        _check_estimates(group)
        _check_pending(group, bounds)
        _check_purses(group)


def _rounds(group: AgentGroup) -> int:
    return sum(group.passed(m) for m in range(len(group.names)))


def _check_counts(group: AgentGroup) -> None:
    for name in ("rounds", "rows", "rounds_pooled"):
        if not all(_is_count(n) for n in getattr(group, name)):
            _refuse(f"{name} are no counts")
    if not (_is_count(group.poolings) and _is_count(group.starts)):
        _refuse("poolings and starts are no counts")
    passed = [group.passed(m) for m in range(len(group.names))]
    if any(then > now for then, now in zip(group.rounds_pooled, passed, strict=True)):
        _refuse("agents pooled after their last round")
    if any(len(waiting) > n for waiting, n in zip(group.pending, group.rounds, strict=True)):
        _refuse("more rewards are awaited than decisions were made")
    known = [float(state.own.scalars[0]) for state in group.states]
    waits = [len(waiting) for waiting in group.pending]
    each = zip(known, waits, passed, strict=True)
    if not all(n + waiting <= now for n, waiting, now in each):
        _refuse("an agent has learned more rewards than it had rounds")
    if not group.pooled.scalars[0] + sum(known) + sum(waits) <= sum(passed):
        _refuse("all agents have learned more rewards than they had rounds")
    if not group.starts and not group.pooled.scalars[0] + sum(known) >= sum(group.rows):
        _refuse("all agents have learned fewer rewards than rows of logs")
    for sums, now in zip(group.gains, passed, strict=True):
        if not (0.0 <= sums.rounds <= now and 0.0 <= sums.squares < math.inf):
            _refuse("the sums of the holdback fit to no rounds")


def _check_turns(group: AgentGroup) -> None:
    """Refuse what cannot come next."""
    due = group.due_round
    if due is not None and not (_is_count(due) and due <= max(group.rounds)):
        _refuse("the round in which a pooling is due is none that was")
    if group.calls and due is None:
        _refuse("a pooling is called for, and none is due")
    if not (type(group.logdet_pooled) is float and 0.0 <= group.logdet_pooled < math.inf):
        _refuse("log det V of the pool is no such number")
    if not all(type(coin) is float and 0.0 <= coin <= 1.0 for coin in _coins(group)):
        _refuse("a coin is not between 0 and 1")


def _coins(group: AgentGroup) -> list[Any]:
    return [*group.next_coin, *group.next_hold]


def _check_sums(group: AgentGroup, bounds: Bounds) -> None:
    engine = group.engine
    for m, state in enumerate(group.states):
        uses, name = group.coords[m], group.names[m]
        _check_statistic(f"the sums of task {name!r}", state.own, bounds, uses)
        _check_kept(state.own, state.work)
        if engine.reports:
            _check_reports(state.reports, bounds)
            if state.anchored.scalars[0] not in ((0.0, 1.0) if engine.terms.anchors else (0.0,)):
                _refuse("whether reports contradict rewards is neither true nor false")
        if not 0.0 <= state.spent[0] < math.inf:
            _refuse("what trials have cost is no such number")
    _check_statistic("the pooled sums", group.pooled, bounds)
    if engine.reports:
        _check_reports(view_of(engine.group, len(group.states)).reports, bounds)
    if engine.terms.tolerate:
        for j in range(len(group.names)):
            without = Statistic(*(part[j] for part in engine.left_out.sums))
            _check_statistic(f"the sums without task {group.names[j]!r}", without, bounds)
            if not without.scalars[0] <= group.pooled.scalars[0]:
                _refuse("without a task there are more rewards than with it")
    looked_at = [group.pooled.scalars[5], *(state.own.scalars[5] for state in group.states)]
    # An agent that goes on alone after an alarm takes along what the pool's rest on, too.
    if not (sum(looked_at) <= sum(group.rows) if not group.starts else max(looked_at) <= MOST):
        _refuse("more rows had been looked at than were learned")


def _check_pool(group: AgentGroup, bounds: Bounds) -> None:
    """Refuse a log det V that the pool cannot have had; it decides when agents pool again."""
    told, ridge, d = group.logdet_pooled, group.engine.ridge, group.dim
    most = d * math.log1p(bounds.weight * _rounds(group) * bounds.feature**2 / (d * ridge))
    if not told <= most * (1.0 + CLOSE) + CLOSE:
        _refuse("log det V of the pool is more than any data can make it")
    if group.starts:
        return  # what was pooled then may be forgotten
    values = np.linalg.eigvalsh(ridge * np.eye(d) + group.pooled.gram)
    logdet = float(np.log(values / ridge).sum())
    if not abs(told - logdet) <= _off(values, float(group.pooled.scalars[0])) * (1.0 + abs(logdet)):
        _refuse("log det V of the pool is not that of its sums")


def _check_statistic(
    name: str, sums: Statistic, bounds: Bounds, uses: Any = None, surprise: bool = True
) -> None:
    """Refuse sums that no n observations within the bounds have.

    With z = [x; y], G = sum w z z' is positive semi-definite and of rank n at most, trace W is at
    most L^2 sum w, Q = sum w y^2 at most y^2 sum w, and H = sum w (y - yhat)^2 - Q at least -Q
    and at most (y + yhat)^2 sum w. A bound may be missed by what n additions can be off by.
    """
    n, squares, fit, weight, by_variance, reused = sums.scalars.tolist()
    if not all(_is_count(int(k)) and k == int(k) for k in (n, by_variance, reused)):
        _refuse(f"{name} count no observations")
    d = sums.moment.size
    whole = np.block([[sums.gram, sums.moment[:, None]], [sums.moment, squares]])
    largest = float(np.abs(whole).max())
    rounding = EPS * (d + 1) * min(64 + n, GRANTED)
    if not by_variance <= n or not 0.0 <= weight <= n * bounds.weight * (1.0 + rounding):
        _refuse(f"{name} have weights that {n:.0f} observations cannot have")
    if largest == 0.0 and fit == 0.0:
        return
    doubt = rounding * max(largest, weight * bounds.feature**2)
    if not (doubt < math.inf and np.abs(sums.gram - sums.gram.T).max() <= doubt):
        _refuse(f"{name} are not symmetric")
    if not np.trace(sums.gram) <= bounds.feature**2 * weight + doubt:
        _refuse(f"{name} are larger than {n:.0f} observations can make them")
    if not 0.0 <= squares <= bounds.reward**2 * weight * (1.0 + rounding) + doubt:
        _refuse(f"{name} are of rewards outside their range")
    if uses is not None and np.delete(whole, [*uses, d], axis=0).any():
        _refuse(f"{name} are of features that it does not use")
    values = np.linalg.eigvalsh(whole / max(largest, 1e-300))
    if not values[0] >= -rounding or (n <= d and not values[d - int(n)] <= rounding):
        _refuse(f"{name} are not those of any {n:.0f} observations")
    if surprise and not fit >= -squares - rounding * (largest + abs(fit)):
        _refuse(f"{name} fit better than any prediction can")
    most = bounds.reward + bounds.guess
    if surprise and not fit <= weight * most * most * SLACK + doubt:
        _refuse(f"{name} fit worse than any prediction can")


def _check_reports(reports: Statistic, bounds: Bounds) -> None:
    """Refuse sums of reported rewards, which count with weight 1 and may have any size."""
    n, squares = reports.scalars[:2].tolist()
    as_rewards = np.array([n, squares, 0.0, n, 0.0, 0.0])
    given = Statistic(reports.gram, reports.moment, as_rewards)
    any_size = bounds._replace(reward=math.inf, weight=SLACK, guess=math.inf)
    _check_statistic("the sums of reports", given, any_size)


def _check_kept(own: Statistic, work: Floats) -> None:
    """Refuse what compensated sums carry along if it is more than rounding; see `absorb_tidily`."""
    d = own.moment.size
    kept = work[4 + d :]
    if not np.array_equal(kept[d + 4 : d + 8, 0], own.scalars[:4]):
        return  # it belongs to other sums, and is not used
    sizes = [np.abs(part).max() for part in own]
    if not np.abs(kept[: d + 4]).max() <= KEPT * max(sizes):
        _refuse("what was left out of the sums is more than rounding")


def _check_monitors(group: AgentGroup, bounds: Bounds) -> None:
    ridge, bias = group.engine.ridge, group.engine.terms.bias
    share = 0.5 if bias > 0.0 else 1.0
    for numbers in group.engine.group.watch[:-1]:  # those of the pool are the last
        monitor = monitor_of.py_func(numbers, group.dim)
        notes = monitor.notes
        for place, (least, most, whole) in NOTES.items():
            if not least <= notes[place] <= most or (whole and notes[place] % 1.0):
                _refuse("what monitors remember is nothing that they can")
        starts = float(notes[Note.STARTS])
        # Every start has its share of delta; see `kernels.alarms`.
        needed = 2.0 * math.log(starts * (starts + 1.0)) if starts else 0.0
        if not notes[Note.LEVEL] >= needed * (1.0 - CLOSE):
            _refuse("a start has more than its share of delta")
        if group.watched:
            _check_predictors(group, monitor, bounds)
        if not notes[Note.REWARDS]:
            continue
        _check_statistic("the sums of monitors", monitor.own, bounds, surprise=False)
        logdet = np.array([notes[Note.LOGDET], 0.0, 0.0, 0.0])
        gram, moment, scalars = monitor.own
        seen = Statistic(share * gram, share * moment, scalars)
        estimate = Estimate(monitor.inverse, monitor.theta, logdet)
        _check_estimate("of monitors", estimate, ridge, seen)


def _check_predictors(group: AgentGroup, monitor: Monitor, bounds: Bounds) -> None:
    """Refuse predictors, and evidence, that would silence a monitor; see `kernels.monitors`."""
    terms, n = group.engine.terms, _rounds(group)
    step = WANDERING * terms.theta_bound * terms.theta_bound
    widest = (1.0 / terms.ridge + step * n) * (1.0 + CLOSE)
    values = np.linalg.eigvalsh(monitor.spread)
    room = CLOSE * widest
    if not (-room <= values[0] and np.abs(monitor.spread).max() <= widest + room):
        _refuse("the younger predictor of monitors is none that rewards can make")
    if not np.abs(monitor.spread - monitor.spread.T).max() <= room:
        _refuse("the younger predictor of monitors is not symmetric")
    # As for theta-hat: what all steps cost is at most the sum of w y^2.
    squares = bounds.reward * bounds.reward * bounds.weight * n
    if not np.linalg.norm(monitor.young) <= (1.0 + CLOSE) * math.sqrt(
        squares * 2.0 * (1.0 / terms.ridge + step * n)
    ):
        _refuse("the younger predictor of monitors is none that rewards can make")
    marks, counts, totals = monitor.cells
    fits = (marks >= 0.0) & (marks < 1.0) & (counts >= 0.0) & (counts <= n)
    if not (fits & (np.abs(totals) <= counts * bounds.reward * (1.0 + CLOSE))).all():
        _refuse("the cells of monitors are none that rewards can make")
    notes, sums = monitor.notes, monitor.own.scalars
    if not (notes[Note.REWARDS] or notes[Note.SHARES]):
        return  # it begins with the next reward
    first = -0.5 * terms.ridge * terms.theta_bound * terms.theta_bound
    # A third of the mixture is the linear predictor, 1 / (n + 1) of which is dealt out.
    paid = math.log(3.0 * (notes[Note.REWARDS] + 1.0)) + 0.5 * terms.bias * terms.bias * sums[3]
    least = first - 0.5 * notes[Note.LOGDET] - paid
    most = first + 0.5 * (sums[1] + sums[2])
    room = CLOSE * (1.0 + abs(least) + abs(most))
    if not least - room <= notes[Note.EVIDENCE] <= most + room:
        _refuse("the evidence of monitors is not that of their rewards")


def _check_estimates(group: AgentGroup) -> None:
    engine, ridge = group.engine, group.engine.ridge
    for m, state in enumerate(group.states):
        shared = () if state.watch[Note.APART] else (group.pooled,)
        name, scalars = f"of task {group.names[m]!r}", state.estimate.scalars
        least, trace = _check_estimate(name, state.estimate, ridge, state.own, *shared)
        if not abs(scalars[1] - trace) <= CLOSE * trace:
            _refuse(f"trace V {name} is not that of its sums")
        if not scalars[2] <= least + CLOSE * trace or not 0.0 <= scalars[3] <= trace * (
            1.0 + CLOSE
        ):
            _refuse(f"the eigenvalue {name} is not that of its sums")
        if engine.terms.tolerate:
            for j in range(len(group.names)):
                if j == m:
                    continue  # an agent never leaves out itself
                view = Estimate(*(part[m, j] for part in engine.left_out.views))
                sums = Statistic(*(part[j] for part in engine.left_out.sums))
                seen = (sums,) if shared else ()
                _check_estimate(f"{name} without another", view, ridge, state.own, *seen)


def _check_estimate(
    name: str, estimate: Estimate, ridge: float, *sums: Statistic
) -> tuple[float, float]:
    """Refuse an estimate that does not follow from sums; return lambda_min(V) and trace V."""
    d = estimate.theta.size
    v = ridge * np.eye(d) + sum(each.gram for each in sums)
    u = sum((each.moment for each in sums), np.zeros(d))
    values = np.linalg.eigvalsh(v)
    if not values[0] > 0.0:
        _refuse(f"V {name} is not positive")
    off = _off(values, sum(float(each.scalars[0]) for each in sums))
    root = np.linalg.cholesky(v)
    if not np.abs(root.T @ estimate.inverse @ root - np.eye(d)).max() <= off * d:
        _refuse(f"the inverse {name} is not that of its sums")
    right = np.linalg.solve(v, u)
    size = 1.0 + float(np.linalg.norm(root.T @ right))
    if not float(np.linalg.norm(root.T @ (estimate.theta - right))) <= off * size:
        _refuse(f"theta {name} is not that of its sums")
    logdet = float(np.log(values / ridge).sum())
    if not abs(estimate.scalars[0] - logdet) <= off * (1.0 + abs(logdet)):
        _refuse(f"log det V {name} is not that of its sums")
    return float(values[0]), float(values.sum())


def _off(values: Any, n: float) -> float:
    """Return how far off an estimate may be: V has these eigenvalues, from n observations."""
    spread, most = float(values[-1] / values[0]), n + int(values.size)
    return min(WORN, CLOSE + 64.0 * EPS * spread * most)


def _check_pending(group: AgentGroup, bounds: Bounds) -> None:
    for m, waiting in enumerate(group.pending):
        others = np.setdiff1d(np.arange(group.dim), group.coords[m])
        for name, each in waiting.items():
            task, _, number = name.rpartition("-")
            known = task == group.names[m] and number.isdecimal() and number == str(int(number))
            if not known or not 0 < int(number) <= group.rounds[m]:
                _refuse(f"{name[:80]!r} is no decision of task {group.names[m]!r}")
            if not float(np.linalg.norm(each.x)) <= bounds.feature or each.x[others].any():
                _refuse(f"decision {name!r} has features that it cannot have")
            weights = (each.weight, each.declared)
            if not all(0.0 <= weight <= bounds.weight for weight in weights):
                _refuse(f"decision {name!r} has a weight that it cannot have")
            if not abs(each.guess) <= bounds.guess or math.isinf(each.lower):
                _refuse(f"the prediction of decision {name!r} is none that any data give")
            if each.stake is not None and not np.isfinite(each.stake).all():
                _refuse(f"what decision {name!r} is compared with is no number")
            if not 0 <= each.start <= group.starts:
                _refuse(f"decision {name!r} is of a start that never was")


def _check_purses(group: AgentGroup) -> None:
    for m, purse in enumerate(group.purses):
        if purse is None:
            continue
        numbers, total = purse.numbers, purse.budget.total
        if not (np.isfinite(numbers).all() and (numbers[SPENT:] >= 0.0).all()):
            _refuse("what was spent of a budget is no such number")
        if not (numbers[SPENT] <= total * SLACK and numbers[ROUNDS] <= group.rounds[m]):
            _refuse("more was spent than the budget has")
        if purse.charged.keys() != group.pending[m].keys():
            _refuse("what decisions were charged with fits to no decisions")
        if not all(type(cost) is float and 0.0 <= cost <= total for cost in purse.charged.values()):
            _refuse("a decision was charged with what it cannot cost")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _refuse(what: str) -> None:
    raise InvalidValueError(what)
