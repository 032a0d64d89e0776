"""Is a linear model good enough: residuals, a test, crosses that would help, boosted trees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from guardband.extras import how_to_install
from guardband.features import Features
from guardband.kernels.types import Floats
from guardband.studies.contents import spans
from guardband.studies.linear import fit_linear, halves, score
from guardband.studies.logs import Ints, StudyLogs

__all__ = ["Linearity", "Residual", "judge_linearity"]

LEVEL = 0.01  # of the test, and of crosses and residuals, all of one kind together
LARGEST = 100_000  # rows of each half that trees and crosses are fitted to
PRODUCTS = 500  # of features at most, for the second-order test and for one cross
PAIRS = 60  # of columns at most
BINS = 10
ENOUGH = 50.0  # n misfit^2 / variance from which on a misfit that matters would be seen
FEWEST = 20  # rows of a group


@dataclass(frozen=True)
class Residual:
    """The mean residual of some rows, and how many standard errors it is."""

    kind: str  # "feature", "action" or "time"
    name: str
    rows: int
    mean: float
    z: float
    surprising: bool  # at the stated level, counting all groups of the kind


@dataclass(frozen=True)
class Linearity:
    """Whether expected rewards are linear enough in the features.

    Attributes
    ----------
    good_enough
        True, False, or None: the rows cannot tell.
    because
        Why, in a sentence.
    p, level
        Of the test, and the level below which linearity is refused.
    explained
        Model -> the share of the reward's variance that it explains in rows it was not fitted to.
    misfit
        About how far expected rewards are from linear, the root of the mean square; 0: not seen.
    material
        The misfit from which on it counts: alpha times the baseline's reward, halved.
    crosses
        Pairs of columns whose products help, with what they add to the explained share.
    residuals
        The most surprising groups of each kind.
    notes
        What was left out.
    """

    good_enough: bool | None
    because: str
    p: float
    level: float
    explained: dict[str, float]
    misfit: float
    material: float
    crosses: list[tuple[tuple[str, ...], float]]
    residuals: list[Residual]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return what `guardband study --json` has of it."""
        return {
            "good_enough": "can't tell" if self.good_enough is None else self.good_enough,
            "because": self.because,
            "test": {"p": self.p, "level": self.level},
            "explained": self.explained,
            "misfit": self.misfit,
            "misfit_that_matters": self.material,
            "crosses": [{"columns": list(names), "adds": gain} for names, gain in self.crosses],
            "residuals": [vars(each) for each in self.residuals],
            "notes": self.notes,
        }


def judge_linearity(logs: StudyLogs, alpha: float, seed: int) -> Linearity:
    """Return whether a linear model is good enough for these logs."""
    fitted, judged = halves(len(logs))
    a, b = _thinned(fitted), _thinned(judged)
    x, y, tx, ty = logs.played[a], logs.rewards[a], logs.played[b], logs.rewards[b]
    fit = fit_linear(x, y)
    errors = {"linear": ty - tx @ fit.theta}
    rest, notes = y - x @ fit.theta, []
    second = _second_order(x, rest, tx)
    errors["with squares and products"] = errors["linear"] - second
    tests = [score(tx, ty, second)[1]]
    trees = _trees(x, rest, tx, seed)
    if trees is None:
        notes.append(
            f"Boosted trees were left out; they need scikit-learn: {how_to_install('sklearn')}."
        )
    else:
        errors["with boosted trees"] = errors["linear"] - trees
        tests.append(score(tx, ty, trees)[1])
    p = min(1.0, len(tests) * min(tests))
    variance = float(ty.var()) or 1.0
    squares = {name: float(each @ each) / len(each) for name, each in errors.items()}
    explained = {name: 1.0 - square / variance for name, square in squares.items()}
    better = min(squares.values())
    misfit = math.sqrt(max(squares["linear"] - better, 0.0)) if p < LEVEL else 0.0
    base = logs.rewards[logs.actions == logs.baselines]
    level = float(base.mean()) if base.size else float(logs.rewards.mean())
    material = 0.5 * alpha * level
    good, because = _verdict(p, misfit, material, len(b), squares["linear"], alpha)
    crosses, left_out = _crosses(logs, x, y, tx, ty)
    return Linearity(
        good,
        because,
        p,
        LEVEL,
        explained,
        misfit,
        material,
        crosses,
        _residuals(logs),
        notes + left_out,
    )


def _verdict(
    p: float, misfit: float, material: float, rows: int, noise: float, alpha: float
) -> tuple[bool | None, str]:
    if noise <= 1e-18:
        return None, "rewards do not vary: there is nothing to explain"
    if p < LEVEL and misfit > material:
        return False, (
            f"expected rewards are about {misfit:.2g} away from linear, more than the "
            f"{material:.2g} that alpha = {alpha:g} leaves room for (p = {p:.2g})"
        )
    if p < LEVEL:
        return True, (
            f"expected rewards are not quite linear (p = {p:.2g}), but about {misfit:.2g} off, "
            f"less than the {material:.2g} that would matter at alpha = {alpha:g}"
        )
    if rows * material**2 < ENOUGH * noise:
        return None, (
            f"nothing speaks against it (p = {p:.2g}), but {rows:,} rows are too few to see a "
            f"misfit of {material:.2g}, which would matter at alpha = {alpha:g}"
        )
    return True, (
        f"nothing speaks against it (p = {p:.2g}), and a misfit of {material:.2g}, which would "
        f"matter at alpha = {alpha:g}, would be seen in {rows:,} rows"
    )


def _thinned(part: slice) -> Ints:
    """Return the rows of a half, evenly spread where they are too many."""
    rows = np.arange(part.start, part.stop)
    return rows[:: -(-len(rows) // LARGEST)]


def _second_order(x: Floats, rest: Floats, tx: Floats) -> Floats:
    """Return guesses of what squares and products of features add, from one half for the other."""
    order = np.argsort(-x.var(axis=0), kind="stable")
    most = int((math.sqrt(8 * PRODUCTS + 1) - 1) / 2)
    some = np.sort(order[:most])
    i, j = np.triu_indices(len(some))

    def products(table: Floats) -> Floats:
        found: Floats = table[:, some[i]] * table[:, some[j]]
        return found

    return _ridge(products(x), rest, products(tx))


def _ridge(z: Floats, rest: Floats, tz: Floats) -> Floats:
    """Return a ridge fit's values for other rows, of columns that are scaled first."""
    middle, scale = z.mean(axis=0), z.std(axis=0)
    used = scale > 1e-9 * max(float(scale.max(initial=0.0)), 1e-12)
    if not used.any():
        return np.zeros(len(tz))
    a = (z[:, used] - middle[used]) / scale[used]
    gram = a.T @ a + used.sum() * np.eye(int(used.sum()))
    weights = np.linalg.solve(gram, a.T @ rest)
    found: Floats = ((tz[:, used] - middle[used]) / scale[used]) @ weights
    return found


def _trees(x: Floats, rest: Floats, tx: Floats, seed: int) -> Floats | None:
    """Return what boosted trees add to the linear fit; None without scikit-learn."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415 (an extra)
        from threadpoolctl import threadpool_limits  # noqa: PLC0415 (comes with it)
    except ModuleNotFoundError:
        return None
    model = HistGradientBoostingRegressor(
        max_iter=80,
        max_leaf_nodes=15,
        min_samples_leaf=max(20, len(rest) // 200),
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(1):  # on a busy machine threads wait for each other
        found: Floats = model.fit(x, rest).predict(tx)
    return found


def _blocks(logs: StudyLogs) -> dict[str, list[int]]:
    """Return column -> the places of its features."""
    encoder = logs.encoder
    if isinstance(encoder, Features):
        return {name: encoder.indices([name]) for name in encoder.columns}
    return {name: [place] for place, name in enumerate(encoder.names)}


def _crosses(
    logs: StudyLogs, x: Floats, y: Floats, tx: Floats, ty: Floats
) -> tuple[list[tuple[tuple[str, ...], float]], list[str]]:
    """Return the pairs of columns whose products lower errors in rows they were not fitted to.

    And notes of the pairs that were left out.
    """
    if y.std() <= 1e-9:
        return [], []
    blocks = {k: v for k, v in _blocks(logs).items() if logs.played[:, v].std(axis=0).any()}
    known = (
        [tuple(each) for each in logs.encoder.to_dict()["crosses"]]
        if isinstance(logs.encoder, Features)
        else []
    )
    fit = fit_linear(x, y)
    rest, errors = y - x @ fit.theta, ty - tx @ fit.theta
    pairs = [pair for pair in combinations(blocks, 2) if pair not in known]
    small = [(a, b) for a, b in pairs if len(blocks[a]) * len(blocks[b]) <= PRODUCTS]
    notes = []
    if len(small) < len(pairs):
        notes.append(
            f"{len(pairs) - len(small):,} of {len(pairs):,} pairs of columns have more than "
            f"{PRODUCTS} products and were not tried as crosses."
        )
    if len(small) > PAIRS:
        notes.append(
            f"Of {len(small):,} pairs of columns, the {PAIRS} whose products go with residuals "
            "most were tried as crosses."
        )
        small = _promising(small, blocks, x, rest)
    variance = float(ty.var()) or 1.0
    found = []
    for pair in small:
        left, right = (blocks[name] for name in pair)
        z, tz = (
            (table[:, left, None] * table[:, None, right]).reshape(len(table), -1)
            for table in (x, tx)
        )
        gains = errors**2 - (errors - _ridge(z, rest, tz)) ** 2
        mean, error = float(gains.mean()), float(gains.std()) / math.sqrt(len(gains))
        if error > 0 and 0.5 * math.erfc(mean / error / math.sqrt(2)) * len(small) < LEVEL:
            found.append((pair, mean / variance))
    return sorted(found, key=lambda each: -each[1]), notes


def _promising(
    pairs: list[tuple[str, str]], blocks: dict[str, list[int]], x: Floats, rest: Floats
) -> list[tuple[str, str]]:
    """Return the pairs whose products have the largest mean squared covariance with residuals."""
    scaled = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    shared = (scaled * rest[:, None]).T @ scaled
    scores = [float((shared[np.ix_(blocks[a], blocks[b])] ** 2).mean()) for a, b in pairs]
    return [pairs[i] for i in np.argsort(-np.array(scores), kind="stable")[:PAIRS]]


def _residuals(logs: StudyLogs) -> list[Residual]:
    """Return the groups of rows whose residuals are most surprising, a few of each kind."""
    residuals = logs.rewards - logs.played @ fit_linear(logs.played, logs.rewards).theta
    found: list[Residual] = []
    for name, places in _blocks(logs).items():
        if len(places) == 1:
            values = logs.played[:, places[0]]
            edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)))
            codes = np.searchsorted(edges[1:-1], values, side="right")
            found += _groups("feature", residuals, codes, lambda i, n=name: f"{n}, part {i + 1}")
    found += _groups("action", residuals, logs.actions, lambda i: str(logs.labels[i]))
    found += _groups("time", residuals, spans(logs), lambda i: f"span {i + 1}")
    kept: list[Residual] = []
    for kind in ("feature", "action", "time"):
        same = sorted((e for e in found if e.kind == kind), key=lambda e: -abs(e.z))
        limit = LEVEL / max(len(same), 1)
        kept += [
            Residual(e.kind, e.name, e.rows, e.mean, e.z, math.erfc(abs(e.z) / 2**0.5) < limit)
            for e in same[:3]
        ]
    return kept


def _groups(kind: str, residuals: Floats, codes: Ints, name: Any) -> list[Residual]:
    counts = np.bincount(codes)
    sums, squares = np.bincount(codes, residuals), np.bincount(codes, residuals**2)
    found = []
    for i in np.flatnonzero(counts >= FEWEST).tolist():
        mean = float(sums[i] / counts[i])
        error = math.sqrt(max(float(squares[i] / counts[i]) - mean**2, 1e-18) / int(counts[i]))
        z = mean / error if abs(mean) > 1e-9 else 0.0
        found.append(Residual(kind, name(i), int(counts[i]), mean, z, False))
    return found
