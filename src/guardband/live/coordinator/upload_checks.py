"""Checks of uploads: some data set with bounded features and rewards must explain the sums.

Passing proves that such a data set exists, not that it was observed. Everything cheap comes
before any linear algebra, so that no number which a client can send reaches LAPACK unchecked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import (
    Sums,
    difference,
    empty_recent,
    forget,
    matrix_of,
    packed_size,
)
from guardband.live.store import StreamRow, Transaction

__all__ = ["check_increment", "check_rate", "check_window", "read_sums"]

MOST = 2**53  # observations: a whole number that a double still counts exactly
HUGE = 1e300  # sums of two such numbers are still numbers
EPS = float(np.finfo(np.float64).eps)
LOOSE = 64.0  # roundings granted to the eigenvalues, and ...
# ... one more for each observation, up to so many: honest sums miss by a hundredth of that, and
# without an end to it an agent that claims 2^53 observations could send anything.
GRANTED, GRANTED_IN_ALL = 2**20, 2**30


def read_sums(
    dim: int,
    *,
    n: Any,
    gram: Any,
    surprise: Any,
    weight: Any,
    by_variance: Any = 0,
    reused: Any = 0,
    recent: Any = None,
) -> Sums:
    """Return a total from numbers as they came; anything but exact types and lengths is refused."""
    if recent is not None:
        _refuse("window", "the space has no window: no sums of a half window belong to it.")
    if type(n) is not int or not 0 <= n <= MOST:
        _refuse("type", f"n must be a whole number from 0 to 2^53, not {_short(n)}.")
    for name, count in (("by_variance", by_variance), ("reused", reused)):
        if type(count) is not int or not 0 <= count <= n:
            _refuse("type", f"{name} must be at most n = {n}, not {_short(count)}.")
    for name, value in (("surprise", surprise), ("weight", weight)):
        if not _is_number(value):
            _refuse("type", f"{name} must be a finite number, not {_short(value)}.")
    size = packed_size(dim)
    if not isinstance(gram, list | tuple | np.ndarray) or len(gram) != size:
        seen = len(gram) if isinstance(gram, list | tuple | np.ndarray) else type(gram).__name__
        _refuse("length", f"gram must have {size} numbers for {dim} features, not {seen}.")
    if isinstance(gram, np.ndarray):
        if gram.dtype != np.float64 or gram.shape != (size,) or not np.isfinite(gram).all():
            _refuse("type", "gram must be a flat array of finite float64 numbers.")
        return Sums(n, gram.copy(), float(surprise), float(weight), by_variance, reused)
    for k, value in enumerate(gram):
        if not _is_number(value):
            _refuse("type", f"gram[{k}] must be a finite number, not {_short(value)}.")
    numbers = np.array(gram, np.float64)
    return Sums(n, numbers, float(surprise), float(weight), by_variance, reused)


def check_window(
    space: SpaceSettings, uses: Sequence[int], earlier: Sums, later: Sums, *, round: int
) -> None:
    """Check the sums of a window as `check_increment` does: what counts, and its newest half.

    That must be the half of `round`, which tells others when they may use the sums.
    """
    if later.recent is None or later.half != space.half_at(round):
        _refuse(
            "window",
            f"the sums are of half window {later.half}, but round {round} is in half window "
            f"{space.half_at(round)} of a window of {space.window} rounds.",
        )
    before, more = forget(earlier, later.half), later.n - earlier.n
    if before.recent is None:
        before = before._replace(recent=empty_recent(space.dim, later.half))
    if more < 1 or not later.newest.n <= later.kept <= before.kept + more:
        _refuse("batch", f"{later.kept} of {later.n} observations count, after {before.kept}.")
    for one, two in ((before.counting, later.counting), (before.newest, later.newest)):
        if two.n > one.n:
            check_increment(space, uses, one, two)
        elif two.as_bytes() != one.as_bytes():
            _refuse("batch", "sums differ although they hold no new observation.")


def check_increment(
    space: SpaceSettings, uses: Sequence[int], earlier: Sums, later: Sums, *, min_batch: int = 1
) -> None:
    """Refuse (`Refused`, 422, naming the check) what no bounded data can have added.

    With z = [psi; y], G = sum w z z' and the differences d between the two totals: types, finite
    numbers, lengths; G is zero outside `uses`; |G_ab| <= n w_max max(L, y_max)^2 and n <= 2^53;
    dn >= min_batch; 0 <= d(sum w) <= dn w_max; trace dW <= L^2 d(sum w) and
    0 <= dQ <= y_max^2 d(sum w); then, by eigenvalues, dG is positive semi-definite (so W grows, and
    U is explained by rewards as large as Q says) and of rank dn at most.

    Of H = sum w (yhat^2 - 2 y yhat) = sum w (y - yhat)^2 - Q three things follow: dH >= -dQ; as
    yhat = psi'theta-hat, dH >= -2 T sqrt(dQ trace dW), with T the largest length of an estimate;
    and |dH| is at most what the largest possible predictions would give. The first two matter, as a
    smaller H means a smaller radius. The last only keeps absurd numbers out: an estimate comes from
    data of others, too, which the declared bounds limit to T = y_max sqrt(N w_max / ridge) / 2
    after N observations, N <= 2^53. Whether the predictions were those of the agent's estimate
    cannot be checked from sums.

    Sums of many rounded terms are not exact: a bound may be missed by (d + 1)(64 + dn) eps times
    the largest number in G, which is what dn additions can be off by; dn counts up to 2^20. What
    single increments may miss must not add up: the whole G is checked as well, and W may not take
    away a part of the ridge that matters.
    """
    limits = _limits_of(space)
    read_sums(limits.dim, **later._asdict())
    if later.by_variance != (later.n if space.by_variance else 0):
        _refuse(
            "by_variance",
            f"{later.by_variance} of {later.n} observations have weights by variance, which does "
            "not fit to the noise that the space states.",
        )
    matrix = matrix_of(later)
    _check_uses(space, uses, matrix)
    largest = float(np.abs(later.gram).max())
    _check_size(limits, later, largest)
    more = difference(later, earlier)
    if more.n < max(1, min_batch):
        _refuse(
            "batch",
            f"{more.n} new observations are fewer than the {max(1, min_batch)} that one upload "
            "must hold: wait for more.",
        )
    if not 0 <= more.reused <= more.n:
        _refuse("reused", f"rows that had been looked at became more by {more.reused}.")
    # How far dn additions can be off, for sums as large as these.
    rounding = EPS * (limits.dim + 1) * (LOOSE + min(more.n, GRANTED))
    doubt = rounding * max(largest, later.weight * limits.reward**2, later.weight * limits.reach)
    heavy = rounding * later.weight
    if not -heavy <= more.weight <= more.n * limits.weight + heavy:
        _refuse("weight", f"the weights grew by {more.weight:g} over {more.n} observations.")
    step = matrix_of(more)
    growth, square = float(step[:-1, :-1].trace()), float(step[-1, -1])
    if growth > limits.feature**2 * more.weight + doubt:
        _refuse("trace", f"W grew by {growth:g}, more than its features and weights can explain.")
    if not -doubt <= square <= limits.reward**2 * more.weight + doubt:
        _refuse("rewards", f"the rewards' squares grew by {square:g}, which no rewards explain.")
    _check_eigenvalues(limits, (step, more.n), (matrix, later.n), largest)
    spare = rounding * (largest + abs(later.surprise))
    possible = 2.0 * limits.estimate * math.sqrt(max(0.0, square) * max(0.0, growth))
    if more.surprise < -min(square, possible) - spare or later.surprise < -matrix[-1, -1] - spare:
        _refuse("surprise", f"surprise fell by {-more.surprise:g}, more than the rewards allow.")


def check_rate(t: Transaction, space: SpaceSettings, held: StreamRow, n: int, now: float) -> None:
    """Refuse more observations than a task can have made since its first stream was registered."""
    rules = space.uploads
    if rules.max_rate is None:
        return
    stored, first = t.counted(held.space, held.task)
    in_all, since = stored - held.n + n, max(0.0, now - first)
    most = rules.max_logged + rules.max_rate * since
    if in_all > most:
        _refuse(
            "rate",
            f"task {held.task!r} has {in_all} observations after {since:.0f} s, more than the "
            f"{int(most)} that uploads.max_rate={rules.max_rate:g} a second and "
            f"uploads.max_logged={rules.max_logged} allow: declare what it really makes.",
        )


class Limits(NamedTuple):
    """What the bounds of a space allow."""

    dim: int
    weight: float  # w_max, the largest weight of an observation
    feature: float  # L
    reward: float  # y_max
    reach: float  # max(L, y_max)^2
    estimate: float  # T, the largest length that a ridge estimate can have
    surprise: float  # the largest |w (yhat^2 - 2 y yhat)| of one observation
    ridge: float  # how far below 0 the eigenvalues of W may be


def _limits_of(space: SpaceSettings) -> Limits:
    """Return the limits of a space, see `check_increment`."""
    weight, feature, reward = space.max_weight, space.feature_bound, space.reward_bound
    penalty = space.penalty
    estimate = reward * math.sqrt(MOST * weight / penalty) / 2.0
    guess = feature * estimate
    return Limits(
        dim=space.dim,
        weight=weight,
        feature=feature,
        reward=reward,
        reach=max(feature, reward) ** 2,
        estimate=estimate,
        surprise=weight * guess * (guess + 2.0 * reward),
        ridge=penalty / (4 * space.agents),
    )


def _check_uses(space: SpaceSettings, uses: Sequence[int], matrix: Floats) -> None:
    """Refuse sums of features that the task does not use."""
    foreign = np.zeros(len(matrix), np.bool_)
    foreign[:-1] = True
    foreign[list(uses)] = False
    if matrix[foreign].any():
        feature = space.features[int(np.flatnonzero(foreign & matrix.any(axis=1))[0])]
        _refuse("uses", f"gram is not zero at feature {feature!r}, which the task does not use.")


def _check_size(limits: Limits, sums: Sums, largest: float) -> None:
    """Refuse sums that are too large for their number of observations."""
    slack = 1.0 + EPS * (LOOSE + min(sums.n, GRANTED_IN_ALL))
    if largest > min(HUGE, sums.n * limits.weight * limits.reach * slack):
        _refuse("magnitude", f"gram holds {largest:g}: too large for n = {sums.n} observations.")
    if not 0.0 <= sums.weight <= min(HUGE, sums.n * limits.weight * slack):
        _refuse("magnitude", f"weight {sums.weight:g} does not fit to n = {sums.n} observations.")
    if abs(sums.surprise) > min(HUGE, sums.n * limits.surprise):
        _refuse("surprise", f"surprise {sums.surprise:g} is beyond every possible prediction.")


def _check_eigenvalues(
    limits: Limits, step: tuple[Floats, int], whole: tuple[Floats, int], largest: float
) -> None:
    """Refuse an increment, or sums as a whole, that are not sums of so many squares."""
    if largest == 0.0:
        return
    features = whole[0].copy()  # W, and zeros: one more eigenvalue 0
    features[-1], features[:, -1] = 0.0, 0.0
    try:
        values = np.linalg.eigvalsh(np.array([step[0], whole[0], features]) / largest)
    except np.linalg.LinAlgError:
        _refuse("psd", "the increment of gram has no eigenvalues.")
    for (_, n), granted, found in ((step, GRANTED, values[0]), (whole, GRANTED_IN_ALL, values[1])):
        rounding = EPS * (limits.dim + 1) * (LOOSE + min(n, granted))
        if not found[0] >= -rounding:
            _refuse("psd", f"the increment of gram has the eigenvalue {found[0] * largest:g} < 0.")
        if n < found.size and found[found.size - n - 1] > rounding:
            _refuse("rank", f"the increment of gram has a rank above its {n} observations.")
    least = float(values[2][0]) * largest
    if least < -limits.ridge:
        _refuse("psd", f"W has the eigenvalue {least:g}, too far below 0 for this space's ridge.")


def _is_number(value: Any) -> bool:
    """Tell whether it is a float, or a whole number that a float holds, and finite."""
    if type(value) is int:
        return abs(value) <= MOST
    return isinstance(value, float) and math.isfinite(value)


def _short(value: Any) -> str:
    """Return what to show of a value that may be anything."""
    if type(value) is int and abs(value) > MOST:
        return f"a whole number of {value.bit_length()} bits"
    return f"{str(value)[:40]!r}" if isinstance(value, int | float | str) else type(value).__name__


def _refuse(check: str, detail: str) -> NoReturn:
    raise Refused("invalid_increment", 422, detail, check=check)
