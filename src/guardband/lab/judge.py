"""Verdicts: what the numbers say about a claim, with intervals over trials.

Trials are pairs: trial i of two runs has the same world and the same draws. A claim that one
number exceeds another holds if the 95 % interval of their mean difference lies wholly above 0,
does not hold if it lies wholly below, or if there is no difference in any trial; else it cannot be
told. A claim of never is settled by counting. A claim that something improves by learning alone (as
rounds pass, or agents join) does not hold where no agent ever left the baseline, whatever the draws
look like: nobody learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from guardband.core.types import Floats
from guardband.lab.panel import Claim, Shown
from guardband.report.words import listed, number, percent
from guardband.sim.stats import mean_interval

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
    "slower",
    "together",
]

REGRET, REALISED, EXPECTED = "regret", "violations_realised", "violations_expected"
MOSTLY = 0.5


class Difference(NamedTuple):
    """A mean over trials, with its 95 % interval."""

    mean: float
    low: float
    high: float
    trials: int

    @property
    def above(self) -> bool | None:
        """Whether it is above 0: True, False (below, or 0 in every trial) or None."""
        if np.isnan(self.low):
            return None
        if self.low > 0:
            return True
        return False if self.high < 0 or self.low == self.high == 0 else None

    @property
    def not_below(self) -> bool | None:
        """Whether it is 0 or more; 0 in every trial will do."""
        return True if self.low == self.high == 0 else self.above

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{number(self.mean)} (one trial: no interval)"
        return f"{number(self.mean)} [{number(self.low)}, {number(self.high)}]"


def per_trial(shown: Shown, metric: str = REGRET) -> Floats:
    """Return (trials,): the sum over all rounds, mean over the agents."""
    means: Floats = shown.series.totals[metric].mean(axis=1)
    return means


def difference(one: Floats, other: Floats) -> Difference:
    """Return the mean of one - other over those trials that both have."""
    trials = min(len(one), len(other))
    return Difference(*mean_interval(one[:trials] - other[:trials]), trials)


def exceeds(id: str, text: str, more: Shown, less: Shown, metric: str = REGRET) -> Claim:
    """Judge that one run's number exceeds another's."""
    apart = difference(per_trial(more, metric), per_trial(less, metric))
    return Claim(id, text, apart.above, _compared(more, less, metric, apart))


def at_most(id: str, text: str, less: Shown, more: Shown, metric: str = REALISED) -> Claim:
    """Judge that one run's number does not exceed another's; equal numbers will do."""
    apart = difference(per_trial(more, metric), per_trial(less, metric))
    return Claim(id, text, apart.not_below, _compared(more, less, metric, apart))


def at_least(id: str, text: str, shown: Shown, share: float) -> Claim:
    """Judge that violations, as realised, happen in at least this share of the rounds."""
    counts = per_trial(shown, REALISED)
    least = share * shown.run.rounds
    apart = difference(counts, np.full_like(counts, least))
    mean = Difference(*mean_interval(counts), len(counts))
    detail = (
        f"{shown.run.label}: {mean} of {shown.run.rounds:,} rounds per agent as realised, "
        f"{number(float(per_trial(shown, EXPECTED).mean()))} by expectation; "
        f"asked for: {number(least)}"
    )
    return Claim(id, text, apart.not_below, detail)


def never(id: str, text: str, shown: Shown) -> Claim:
    """Judge by counting that no round of any trial had a reward, as realised, below the floor."""
    counts = shown.series.totals[REALISED]
    broken, trials = counts.sum(axis=1) > 0, len(counts)
    total = counts.size * shown.run.rounds
    detail = f"{shown.run.label}: {counts.sum():,.0f} of {total:,} agent-rounds below the floor"
    detail += f", in {broken.sum():,} of {trials:,} trials" if broken.any() else ""
    expected = float(per_trial(shown, EXPECTED).mean())
    detail += f"; by expectation {number(expected)} rounds per agent" + _idle(shown)
    return Claim(id, text, not broken.any(), detail)


def falls(id: str, text: str, steps: Sequence[Shown], *, learning: bool = True) -> Claim:
    """Judge that the regret falls from each run to the next.

    With `learning`, only what is learned can make it fall: it does not where nobody ever left the
    baseline. Runs with different numbers of agents are compared over the agents that all of them
    have, because the mean over all would also compare the mixtures of their tasks.
    """
    agents = min(shown.series.regret.shape[1] for shown in steps)
    shared = [shown.series.regret[:, :agents].mean(axis=1) for shown in steps]
    drops = [difference(before, after) for before, after in pairwise(shared)]
    levels = " → ".join(number(float(per_trial(shown).mean())) for shown in steps)
    told = ", ".join(str(drop) for drop in drops)
    whose = ""
    if any(shown.series.regret.shape[1] != agents for shown in steps):
        whose = f" over the first {agents} agents, whose tasks are the same"
    detail = f"{levels} per agent; drop from step to step{whose}: {told}" + _idle(*steps)
    verdicts = [drop.above for drop in drops]
    holds = _learned(verdicts, *steps) if learning else together(verdicts)
    return Claim(id, text, holds, detail)


def rising(id: str, text: str, shown: Shown) -> Claim:
    """Judge that the reward per round is larger in the last tenth than in the first."""
    early, late = early_and_late(shown, "reward", first=0.1, last=0.1)
    apart = difference(late, early)
    detail = (
        f"{shown.run.label}: {early.mean():.4f} per round in the first tenth, {late.mean():.4f} in "
        f"the last, difference {apart}" + _idle(shown)
    )
    return Claim(id, text, _learned([apart.above], shown), detail)


def slower(id: str, text: str, shown: Shown) -> Claim:
    """Judge that the regret per round is smaller in the last tenth than in the first half."""
    early, late = early_and_late(shown, REGRET, first=0.5, last=0.1)
    apart = difference(early, late)
    detail = (
        f"{shown.run.label}: {early.mean():.4f} per round in the first half, {late.mean():.4f} in "
        f"the last tenth, drop {apart}" + _idle(shown)
    )
    return Claim(id, text, _learned([apart.above], shown), detail)


def early_and_late(
    shown: Shown, metric: str, *, first: float, last: float
) -> tuple[Floats, Floats]:
    """Return (trials,) twice: a metric per round over the first share of rounds, and the last."""
    sums = shown.series.curves[metric].mean(axis=2)
    rounds, end = shown.rounds, int(shown.rounds[-1])
    head = int(np.searchsorted(rounds, first * end))
    tail = int(np.searchsorted(rounds, (1.0 - last) * end - 1e-9))
    tail = min(tail, len(rounds) - 2)
    early: Floats = sums[:, head] / rounds[head]
    late: Floats = (sums[:, -1] - sums[:, tail]) / (end - rounds[tail])
    return early, late


def alike(id: str, text: str, runs: Sequence[Shown], share: float) -> Claim:
    """Judge that no two runs differ by more than a share of the last one's regret.

    Holds if the interval of every difference lies within that; does not hold if one lies wholly
    outside.
    """
    most = share * abs(float(per_trial(runs[-1]).mean()))
    verdicts: list[bool | None] = []
    told = []
    for one, other in combinations(runs, 2):
        apart = difference(per_trial(one), per_trial(other))
        outside = apart.low > most or apart.high < -most
        inside = -most <= apart.low and apart.high <= most
        verdicts.append(True if inside else False if outside else None)
        told.append(f"{one.run.label} − {other.run.label}: {apart}")
    detail = "; ".join(told) + f"; little means at most {number(most)}" + _idle(*runs)
    return Claim(id, text, together(verdicts), detail)


def together(verdicts: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: False if one does not, None if one cannot be told."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def never_left(shown: Shown) -> bool:
    """Return whether every round of every trial was conservative."""
    return bool((shown.series.conservative == shown.run.rounds).all())


def _compared(one: Shown, other: Shown, metric: str, apart: Difference) -> str:
    parts = [
        f"{shown.run.label} {number(float(per_trial(shown, metric).mean()))}"
        for shown in (one, other)
    ]
    many = f"{apart.trials:,} trials" if apart.trials > 1 else "1 trial"
    unit = " rounds per agent" if metric.startswith("violations") else " per agent"
    text = f"{parts[0]}, {parts[1]}{unit}; difference {apart} over {many}"
    return text + _idle(one, other)


def _learned(verdicts: Sequence[bool | None], *runs: Shown) -> bool | None:
    """Return the verdict on an improvement: none where nobody ever left the baseline."""
    return False if all(never_left(shown) for shown in runs) else together(verdicts)


def _idle(*runs: Shown) -> str:
    """Return who was mostly conservative: an improvement, or its absence, may be due to that."""
    idle = [shown.run.label for shown in runs if never_left(shown)]
    if idle:
        who = "all of them" if len(idle) == len(runs) > 2 else listed(idle)
        return f". Conservative in 100 % of the rounds, never left the baseline: {who}"
    shares = {s.run.label: float(s.series.conservative.mean()) / s.run.rounds for s in runs}
    told = [f"{who} {percent(share)}" for who, share in shares.items() if share > MOSTLY]
    return f". Conservative rounds: {listed(told)}" if told else ""
