"""Sums from elsewhere without each other task: for a group of one, where one of them may lie."""

from __future__ import annotations

from collections.abc import Sequence

from guardband.agent.engine import Engine
from guardband.kernels.ridge import refresh
from guardband.kernels.state import new_left_out
from guardband.kernels.sync import add_statistic
from guardband.kernels.types import Estimate, Statistic

__all__ = ["adopt_others", "hand_in_to_others", "sets_of"]


def adopt_others(engine: Engine, parts: Sequence[Statistic], handed_in: Statistic) -> None:
    """Take over the sums without each other task, one or more; its own data are in place.

    `handed_in` is what the agent has handed in beyond its part of them.
    """
    dim = engine.pooled.moment.size
    engine.without = new_left_out(1, 1 + len(parts), dim, engine.ridge)
    for part, sums, view in zip(parts, _sums(engine), _views(engine), strict=True):
        engine.rebuild(add_statistic, sums, part)
        engine.rebuild(add_statistic, sums, handed_in)
        engine.rebuild(refresh, engine.states[0]._replace(estimate=view), sums, engine.ridge)


def hand_in_to_others(engine: Engine) -> None:
    """Count what the only agent learned in all of these sums."""
    for sums in _sums(engine):
        engine.rebuild(add_statistic, sums, engine.states[0].own)


def sets_of(engine: Engine) -> list[tuple[Estimate, float]]:
    """Return estimate and radius of every set by which the only agent made its last decision."""
    return [(view, float(view.scalars[2])) for view in _views(engine)]


def _sums(engine: Engine) -> list[Statistic]:
    """Return the sums without each other task; the agent's own place comes first."""
    sums = engine.left_out.sums
    return [Statistic(*(part[j] for part in sums)) for j in range(1, len(sums.scalars))]


def _views(engine: Engine) -> list[Estimate]:
    """Return the agent's estimates without each other task."""
    views = engine.left_out.views
    return [Estimate(*(part[0, j] for part in views)) for j in range(1, views.scalars.shape[1])]
