"""How many decisions runs take, and how long the authors' code would need for them."""

from __future__ import annotations

from collections.abc import Iterable

from guardband.algorithms import ORACLE
from guardband.lab.panel import Run, RunResult
from guardband.sim import size_of

__all__ = ["agent_rounds", "authors_code"]

# The authors' code, per round of one agent, at K = 40 and d = 2.
AUTHORS_OPTIMISTIC, AUTHORS_CONSERVATIVE = 92e-3, 0.25e-3
AUTHORS = ("disc-ucb", "disc-ucb-unknown", "sclts", "dis-lin-ucb")


def agent_rounds(run: Run) -> int:
    """Return how many decisions a run takes, in all its trials."""
    return run.rounds * run.trials * size_of(run.problem).agents


def authors_code(result: Iterable[RunResult]) -> tuple[int, float]:
    """Return how many decisions are by algorithms of the authors' notebooks, and their time there.

    A round that is not conservative takes their code a numerical search per action.
    """
    decisions, seconds = 0, 0.0
    for each in result:
        if each.series.algorithm.removesuffix(ORACLE) in AUTHORS:
            count = agent_rounds(each.run)
            share = float(each.series.conservative.mean()) / each.run.rounds
            decisions += count
            seconds += count * (share * AUTHORS_CONSERVATIVE + (1.0 - share) * AUTHORS_OPTIMISTIC)
    return decisions, seconds
