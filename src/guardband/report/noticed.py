"""What monitors noticed in a comparison, and the plays below the floor before and after."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from guardband.report.promises import is_frozen
from guardband.report.words import number
from guardband.sim import Results, Series

__all__ = ["noticed"]

KINDS = ("assumptions", "certificates", "fit")


def noticed(results: Results) -> Iterator[str]:
    """Say of every algorithm whose monitors raised alarms what they noticed, and when."""
    for series in results.series:
        rounds = series.totals.get("noticed", np.zeros((1, 1)))
        hit: np.ndarray = np.any(rounds > 0, axis=1)
        if not hit.any():
            continue
        first = np.where(rounds > 0, rounds, np.inf).min(axis=1)[hit]
        kinds = {kind: series.totals[f"alarms_{kind}"].sum() for kind in KINDS}
        raised = ", ".join(f"{kind} {count:,.0f}" for kind, count in kinds.items() if count)
        where = f" in {hit.sum():,} of {hit.size:,} trials" if hit.size > 1 else ""
        when = "in median round" if hit.sum() > 1 else "in round"
        text = (
            f"{series.label} noticed that the world is not as assumed{where}, first {when} "
            f"{np.median(first):,.0f} (alarms: {raised})"
        )
        if results.settings["alpha"] is not None:
            text += f"; {_before_and_after(results, series, hit, first)}"
        yield text


def _before_and_after(results: Results, series: Series, hit: np.ndarray, first: np.ndarray) -> str:
    """Say how many plays were below the floor up to the first checkpoint after an alarm, and later.

    And whose, if not all tasks had some: one that lies, or is like no other, answers for its own.
    """
    metric = "violations_realised" if is_frozen(results) else "violations_expected"
    curves = series.curves[metric][hit]
    place = np.minimum(np.searchsorted(results.rounds, first), results.rounds.size - 1)
    until = curves[np.arange(len(curves)), place]
    before, after = (part.mean(axis=0) for part in (until, curves[:, -1] - until))
    text = (
        f"per task {number(before.mean())} plays were below the floor until then, "
        f"and {number(after.mean())} after"
    )
    whose = np.flatnonzero(before + after)
    if 0 < whose.size < before.size:
        text += f", all of task {' and '.join(str(m + 1) for m in whose)}"
    return text
