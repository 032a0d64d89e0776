"""Verdicts: what the numbers say about a claim, with intervals over trials.

Trials are pairs: trial i of two runs has the same world and the same draws. A claim that one
number exceeds another holds if the 95 % interval of their mean difference lies wholly above 0,
does not hold if it lies wholly below, or if there is no difference in any trial; else it is
inconclusive. A claim of never is decided by counting. A claim that something improves by learning
alone (as rounds pass, or agents join) does not hold where no agent ever left the baseline, whatever
the draws look like: no agent learned.

A claim that holds holds vacuously where the runs that it speaks of hardly left the baseline:
they were conservative in at least 90 % of the rounds, and what it says is true of the baseline.

In a run that is shorter than the panel's horizon, only what happened is evidence. That something
has not happened yet (no agent left the baseline, no trial differs, no reward was below the floor)
is inconclusive there, while a violation that was counted refutes a claim at any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.lab.panel import Claim, RunResult
from guardband.report import listed, number, percent
from guardband.sim import mean_interval

__all__ = [
    "EXPECTED",
    "REALISED",
    "Difference",
    "alike",
    "at_least",
    "at_most",
    "difference",
    "early_and_late",
    "exceeds",
    "falls",
    "never",
    "never_left",
    "per_trial",
    "rising",
    "sinking",
    "slower",
    "together",
]

REGRET, REALISED, EXPECTED = "regret", "violations_realised", "violations_expected"
MOSTLY = 0.5
HARDLY_LEFT = 0.9  # the share of conservative rounds from which on a claim holds vacuously
NONE_LEFT, SAME = "no agent has left the baseline yet", "no trial shows a difference yet"


class Difference(NamedTuple):
    """A mean over trials, with its 95 % interval."""

    mean: float
    low: float
    high: float
    trials: int

    @property
    def none(self) -> bool:
        """Whether it is 0 in every trial."""
        return self.low == self.high == 0

    @property
    def above(self) -> bool | None:
        """Whether it is above 0: True, False (below, or 0 in every trial) or None."""
        if np.isnan(self.low):
            return None
        if self.low > 0:
            return True
        return False if self.high < 0 or self.none else None

    @property
    def not_below(self) -> bool | None:
        """Whether it is 0 or more; 0 in every trial will do."""
        return True if self.none else self.above

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{number(self.mean)} (one trial: no interval)"
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def per_trial(result: RunResult, metric: str = REGRET) -> Floats:
    """Return (trials,): the sum over all rounds, mean over the agents."""
    means: Floats = result.series.totals[metric].mean(axis=1)
    return means


def difference(one: Floats, other: Floats) -> Difference:
    """Return the mean of one - other over those trials that both have.

    Equal sums that were added up in another order differ in their last digits: no difference.
    """
    trials = min(len(one), len(other))
    mine, theirs = one[:trials], other[:trials]
    same = np.isclose(mine, theirs, rtol=1e-12, atol=0.0)
    return Difference(*mean_interval(np.where(same, 0.0, mine - theirs)), trials)


def exceeds(id: str, text: str, more: RunResult, less: RunResult, metric: str = REGRET) -> Claim:
    """Judge that one run's number exceeds another's."""
    apart = difference(per_trial(more, metric), per_trial(less, metric))
    early = _too_early(apart, more, less)
    detail = _compared(more, less, metric, apart) + _because(early, more)
    return _claim(id, text, None if early else apart.above, detail, more, less)


def at_most(id: str, text: str, less: RunResult, more: RunResult, metric: str = REALISED) -> Claim:
    """Judge that one run's number does not exceed another's; equal numbers will do."""
    apart = difference(per_trial(more, metric), per_trial(less, metric))
    early = _too_early(apart, more, less) if apart.not_below else ""
    detail = _compared(more, less, metric, apart) + _because(early, more)
    return _claim(id, text, None if early else apart.not_below, detail, less)


def at_least(id: str, text: str, result: RunResult, share: float) -> Claim:
    """Judge that violations, as realised, happen in at least this share of the rounds.

    They may come early or late: the share of a shortened run is not that of the whole. What was
    counted stays, so that it is compared with the share of the full horizon, and may suffice.
    """
    run, counts = result.run, per_trial(result, REALISED)
    least = share * (run.rounds if run.horizon is None else run.horizon)
    apart = difference(counts, np.full_like(counts, least))
    mean = Difference(*mean_interval(counts), len(counts))
    early = "more may come" if not run.full and apart.not_below is False else ""
    detail = (
        f"{run.label}: {mean} of {run.rounds:,} rounds per agent as realised, "
        f"{number(float(per_trial(result, EXPECTED).mean()))} by expectation; "
        f"asked for: {number(least)}" + _because(early, result)
    )
    return Claim(id, text, None if early else apart.not_below, detail)


def never(id: str, text: str, result: RunResult) -> Claim:
    """Judge by counting that no round of any trial had a reward, as realised, below the floor."""
    counts = result.series.totals[REALISED]
    broken, trials = counts.sum(axis=1) > 0, len(counts)
    total = counts.size * result.run.rounds
    early = "none so far" if not result.run.full and not broken.any() else ""
    detail = f"{result.run.label}: {counts.sum():,.0f} of {total:,} agent-rounds below the floor"
    detail += f", in {broken.sum():,} of {trials:,} trials" if broken.any() else ""
    expected = float(per_trial(result, EXPECTED).mean())
    detail += f"; by expectation {number(expected)} rounds per agent" + _idle(result)
    holds = None if early else not broken.any()
    return _claim(id, text, holds, detail + _because(early, result), result)


def falls(id: str, text: str, steps: Sequence[RunResult], *, learning: bool = True) -> Claim:
    """Judge that the regret falls from each run to the next.

    With `learning`, only what is learned can make it fall: it does not where no agent ever left the
    baseline. Runs with different numbers of agents are compared over the agents that all of them
    have, because the mean over all would also compare the mixtures of their tasks.
    """
    agents = min(result.series.regret.shape[1] for result in steps)
    shared = [result.series.regret[:, :agents].mean(axis=1) for result in steps]
    drops = [difference(before, after) for before, after in pairwise(shared)]
    early = [_too_early(drop, *pair) for drop, pair in zip(drops, pairwise(steps), strict=True)]
    detail = " → ".join(number(float(per_trial(result).mean())) for result in steps) + " per agent"
    if any(result.series.regret.shape[1] != agents for result in steps):
        levels = " → ".join(number(float(each.mean())) for each in shared)
        detail += f"; {levels} over the first {agents} agents, whose tasks are the same"
    told = ", ".join(str(drop) for drop in drops)
    detail += f"; drop from step to step: {told}" + _idle(*steps)
    reason = next(filter(None, early), "")
    detail += _because(reason if all(early) else reason and f"in one step {reason}", steps[0])
    verdicts = [None if why else drop.above for why, drop in zip(early, drops, strict=True)]
    holds = _learned(verdicts, *steps) if learning else together(verdicts)
    return _claim(id, text, holds, detail, *steps)


def rising(id: str, text: str, result: RunResult) -> Claim:
    """Judge that the reward per round is larger in the last tenth than in the first."""
    early, late = early_and_late(result, "reward", first=0.1, last=0.1)
    apart = difference(late, early)
    detail = (
        f"{result.run.label}: {early.mean():.4f} per round in the first tenth, {late.mean():.4f} "
        f"in the last, difference {apart}"
    )
    return _course(id, text, result, apart, detail)


def slower(id: str, text: str, result: RunResult) -> Claim:
    """Judge that the regret per round is smaller in the last tenth than in the first half."""
    early, late = early_and_late(result, REGRET, first=0.5, last=0.1)
    apart = difference(early, late)
    detail = (
        f"{result.run.label}: {early.mean():.4f} per round in the first half, {late.mean():.4f} in "
        f"the last tenth, drop {apart}"
    )
    return _course(id, text, result, apart, detail)


def sinking(id: str, text: str, result: RunResult, *, after: float) -> Claim:
    """Judge that the regret so far goes down after a share of the rounds: less than 0 per round."""
    _, late = early_and_late(result, REGRET, first=after, last=1.0 - after)
    mean = Difference(*mean_interval(late), len(late))
    detail = (
        f"{result.run.label}: {mean} per round after round {after * int(result.rounds[-1]):,.0f}"
    )
    return _course(id, text, result, difference(np.zeros_like(late), late), detail)


def early_and_late(
    result: RunResult, metric: str, *, first: float, last: float
) -> tuple[Floats, Floats]:
    """Return (trials,) twice: a metric per round over the first share of rounds, and the last."""
    sums = result.series.curves[metric].mean(axis=2)
    rounds, end = result.rounds, int(result.rounds[-1])
    head = int(np.searchsorted(rounds, first * end))
    tail = int(np.searchsorted(rounds, (1.0 - last) * end - 1e-9))
    tail = min(tail, len(rounds) - 2)
    early: Floats = sums[:, head] / rounds[head]
    late: Floats = (sums[:, -1] - sums[:, tail]) / (end - rounds[tail])
    return early, late


def alike(id: str, text: str, runs: Sequence[RunResult], share: float) -> Claim:
    """Judge that no two runs differ by more than a share of the last one's regret.

    Holds if the interval of every difference lies within that; does not hold if one lies wholly
    outside.
    """
    most = share * abs(float(per_trial(runs[-1]).mean()))
    verdicts: list[bool | None] = []
    told, early = [], []
    for one, other in combinations(runs, 2):
        apart = difference(per_trial(one), per_trial(other))
        outside = apart.low > most or apart.high < -most
        inside = -most <= apart.low and apart.high <= most
        early.append(_too_early(apart, one, other))
        verdicts.append(None if early[-1] else True if inside else False if outside else None)
        told.append(f"{one.run.label} − {other.run.label}: {apart}")
    detail = "; ".join(told) + f"; little means at most {number(most)}" + _idle(*runs)
    detail += _because(next(filter(None, early), ""), runs[0])
    return _claim(id, text, together(verdicts), detail, *runs)


def together(verdicts: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: False if one does not, None if one is inconclusive."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def never_left(result: RunResult) -> bool:
    """Return whether every round of every trial was conservative."""
    return bool((result.series.conservative == result.run.rounds).all())


def conservative_share(result: RunResult) -> float:
    """Return the share of conservative rounds, over all agents and trials."""
    return float(result.series.conservative.mean()) / result.run.rounds


def _claim(id: str, text: str, holds: bool | None, detail: str, *runs: RunResult) -> Claim:
    """Return a claim about the conduct of these runs: vacuous where they hardly left."""
    idle = all(conservative_share(result) >= HARDLY_LEFT for result in runs)
    return Claim(id, text, holds, detail, vacuous=holds is True and idle)


def _compared(one: RunResult, other: RunResult, metric: str, apart: Difference) -> str:
    parts = [
        f"{result.run.label} {number(float(per_trial(result, metric).mean()))}"
        for result in (one, other)
    ]
    many = f"{apart.trials:,} trials" if apart.trials > 1 else "1 trial"
    unit = " rounds per agent" if metric.startswith("violations") else " per agent"
    text = f"{parts[0]}, {parts[1]}{unit}; difference {apart} over {many}"
    return text + _idle(one, other)


def _course(id: str, text: str, result: RunResult, apart: Difference, detail: str) -> Claim:
    """Judge one run's own course, which only learning improves."""
    early = _too_early(apart, result)
    holds = _learned([None if early else apart.above], result)
    return _claim(id, text, holds, detail + _idle(result) + _because(early, result), result)


def _learned(verdicts: Sequence[bool | None], *runs: RunResult) -> bool | None:
    """Return the verdict on an improvement: none where no agent ever left the baseline."""
    if all(never_left(result) for result in runs):
        return False if all(result.run.full for result in runs) else None
    return together(verdicts)


def _too_early(apart: Difference, *runs: RunResult) -> str:
    """Return why shortened runs say nothing about a difference; "" if they do, or are whole."""
    if all(result.run.full for result in runs):
        return ""
    if all(never_left(result) for result in runs):
        return NONE_LEFT
    return SAME if apart.none else ""


def _because(early: str, result: RunResult) -> str:
    """Return why a shortened run is inconclusive."""
    run = result.run
    return f". Only {run.rounds:,} of {run.horizon:,} rounds: {early}" if early else ""


def _idle(*runs: RunResult) -> str:
    """Return who was mostly conservative: an improvement, or its absence, may be due to that."""
    idle = [result.run.label for result in runs if never_left(result)]
    text = ""
    if idle:
        who = "all of them" if len(idle) == len(runs) > 2 else listed(idle)
        text = f". Conservative in 100 % of the rounds, never left the baseline: {who}"
    shares = {s.run.label: conservative_share(s) for s in runs if not never_left(s)}
    told = [f"{who} {percent(share)}" for who, share in shares.items() if share > MOSTLY]
    return text + (f". Conservative rounds: {listed(told)}" if told else "")
