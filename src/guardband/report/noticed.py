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
            before, after = _split(results, series, hit, first)
            text += f"; per task {before} plays were below the floor until then, and {after} after"
        yield text


def _split(results: Results, series: Series, hit: np.ndarray, first: np.ndarray) -> list[str]:
    """Return the plays below the floor up to the checkpoint after the first alarm, and later."""
    metric = "violations_realised" if is_frozen(results) else "violations_expected"
    curves = series.curves[metric].mean(axis=2)[hit]
    place = np.minimum(np.searchsorted(results.rounds, first), results.rounds.size - 1)
    before = curves[np.arange(len(curves)), place]
    return [number(float(part.mean())) for part in (before, curves[:, -1] - before)]
