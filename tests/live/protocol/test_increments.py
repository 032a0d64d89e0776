"""T1: every honest increment passes, each kind of forgery is refused by the check made for it."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guardband.live.client.stream_state import StreamState
from guardband.live.coordinator.upload_checks import check_increment, read_sums
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import RewardSettings, SpaceSettings
from guardband.live.protocol.sums import (
    Sums,
    add_sums,
    difference,
    empty_sums,
    matrix_of,
    packed_size,
    statistic_of,
    sums_of,
)

EXAMPLES = settings(max_examples=200)
MANY = settings(max_examples=2000)  # where an example is cheap


def space_of(dim: int, noise: float = 0.5, bound: float = 1.0, high: float = 1.0) -> SpaceSettings:
    return SpaceSettings(
        name="home",
        features=tuple(f"f{k}" for k in range(dim)),
        agents=2,
        noise=noise,
        feature_bound=bound,
        theta_bound=1.0 / bound,  # so that the ridge fits
        rewards=RewardSettings(low=0.0, high=high),
    )


class Case:
    """Honest data of a random space, counted one by one."""

    def __init__(self, seed: int, dim: int, first: int, more: int, kind: str) -> None:
        rng = np.random.default_rng(seed)
        self.rng, self.dim = rng, dim
        noise, bound, high = rng.uniform(0.05, 2), rng.uniform(0.1, 5), rng.uniform(0.1, 10)
        self.space = space_of(dim, noise, bound, high)
        size = int(rng.integers(1, dim + 1))
        self.uses = tuple(sorted(rng.choice(dim, size, replace=False).tolist()))
        self.constant = self.feature() if kind == "constant" else None
        self.kind = kind
        state = StreamState.start("s", dim)
        for _ in range(first):
            state = self.count(state)
        self.earlier = state.total
        state = state.with_checkpoint("1" * 32)
        for _ in range(more):
            state = self.count(state)
        self.later = state.total

    def feature(self) -> np.ndarray:
        x = np.zeros(self.dim)
        x[list(self.uses)] = self.rng.normal(size=len(self.uses))
        length = np.linalg.norm(x)
        return x * (self.space.feature_bound * self.rng.uniform(0, 1) / max(length, 1e-9))

    def count(self, state: StreamState) -> StreamState:
        x = self.feature() if self.constant is None else self.constant
        y = self.rng.uniform(0.0, self.space.rewards.high)
        w = self.space.max_weight * self.rng.uniform(0.1, 1.0)
        if self.kind == "extreme":
            y, w = self.space.rewards.high, self.space.max_weight
        guess = float(self.rng.normal()) * self.space.reward_bound
        return state.counted(x, y, w, guess)


CASES = st.builds(
    Case,
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 8),
    first=st.integers(0, 30),
    more=st.integers(1, 30),
    kind=st.sampled_from(["random", "constant", "extreme"]),
)


def refusal(case: Case, later: Sums, **rest: int) -> str:
    with pytest.raises(Refused) as caught:
        check_increment(case.space, case.uses, case.earlier, later, **rest)
    assert (caught.value.code, caught.value.status) == ("invalid_increment", 422)
    return str(caught.value.more["check"])


def with_matrix(total: Sums, matrix: np.ndarray) -> Sums:
    return total._replace(gram=matrix[np.triu_indices(matrix.shape[0])])


def honest(case: Case) -> None:
    check_increment(case.space, case.uses, case.earlier, case.later)
    check_increment(case.space, case.uses, empty_sums(case.dim), case.later)


@EXAMPLES
@given(case=CASES)
def test_honest_increments_pass(case):
    honest(case)


@pytest.mark.slow
@settings(max_examples=2000)
@given(case=CASES)
def test_honest_increments_pass_many_times(case):
    honest(case)


@pytest.mark.parametrize("n", [10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_honest_sums_of_many_equal_terms_pass(n):
    """An agent that only ever plays the baseline: its rounding errors all go one way.

    The sums miss exact rank one by far more than 64 roundings; dn of them are granted.
    """
    space = space_of(3, noise=0.1)
    z = np.random.default_rng(1).uniform(0.1, 0.55, 4)
    terms = np.outer(z, z)[np.triu_indices(4)] * space.max_weight
    # One after the other, as an agent adds; np.sum would add in pairs.
    gram = np.array([np.cumsum(np.full(n, term))[-1] for term in terms])
    weight = float(np.cumsum(np.full(n, space.max_weight))[-1])
    later = Sums(n, gram, 0.0, weight)
    values = np.linalg.eigvalsh(matrix_of(later) / gram.max())
    assert values[0] < -64 * 4 * np.finfo(float).eps  # the plain tolerance would refuse it
    check_increment(space, (0, 1, 2), empty_sums(3), later)


def forge(case: Case, kind: str) -> tuple[Sums, set[str]]:  # noqa: PLR0911 - one per kind
    """Return a total that no data explain, and the checks that may say so."""
    space, later = case.space, case.later
    more = difference(later, case.earlier)
    matrix = matrix_of(later)
    used, d = case.uses[0], case.dim
    if kind == "not finite":
        gram = later.gram.copy()
        gram[0] = case.rng.choice([math.nan, math.inf, -math.inf])
        return later._replace(gram=gram), {"type"}
    if kind == "outside":
        outside = sorted(set(range(d)) - set(case.uses))
        assume(outside)
        matrix[outside[0], outside[0]] = 1e-9
        return with_matrix(later, matrix), {"uses"}
    if kind == "too large":
        matrix[used, used] += (
            10.0 * later.n * space.max_weight * (max(space.feature_bound, space.reward_bound) ** 2)
        )
        return with_matrix(later, matrix), {"magnitude"}
    if kind == "W grows too fast":
        matrix[used, used] += 1.01 * more.n * space.max_weight * space.feature_bound**2
        return with_matrix(later, matrix), {"trace", "magnitude"}
    if kind == "W shrinks":
        matrix[:d, :d] -= (
            1.01
            * (more.n + 1)
            * space.max_weight
            * np.outer(np.eye(d)[used], np.eye(d)[used])
            * space.feature_bound**2
        )
        return with_matrix(later, matrix), {"psd", "magnitude"}
    if kind == "rewards too large":
        matrix[d, d] += 1.01 * more.n * space.max_weight * space.reward_bound**2
        return with_matrix(later, matrix), {"rewards", "magnitude"}
    if kind == "U unexplained":
        step = matrix - matrix_of(case.earlier)
        lift = 1.1 * math.sqrt(step[used, used] * step[d, d]) + 1e-3 * abs(matrix).max() + 1e-9
        matrix[used, d] = matrix[d, used] = matrix[used, d] + 2 * lift
        return with_matrix(later, matrix), {"psd", "magnitude"}
    if kind == "rank":
        x = np.zeros(d + 1)
        x[used] = space.feature_bound
        step = np.outer(x, x) * 0.5 * space.max_weight
        step[d, d] += 0.5 * space.max_weight * space.reward_bound**2
        one = Sums(1, np.zeros(packed_size(d)), 0.0, space.max_weight)
        return add_sums(d, (case.earlier, with_matrix(one, step))), {"rank"}
    if kind == "weight":
        return later._replace(weight=case.earlier.weight - 1.0), {"weight", "magnitude"}
    if kind == "surprise too small":
        return later._replace(surprise=case.earlier.surprise - 2 * matrix[d, d] - 1.0), {"surprise"}
    if kind == "surprise absurd":
        return later._replace(surprise=1e290), {"surprise"}
    if kind == "surprise without features":
        step = np.zeros((d + 1, d + 1))
        step[d, d] = more.weight * space.reward_bound**2
        gram = case.earlier.gram + step[np.triu_indices(d + 1)]
        fallen = case.earlier.surprise - 0.5 * step[d, d]
        return later._replace(gram=gram, surprise=fallen), {"surprise", "magnitude", "rank"}
    assert kind == "n"
    return later._replace(n=case.earlier.n), {"batch", "magnitude"}


FORGERIES = [
    "not finite", "outside", "too large", "W grows too fast", "W shrinks", "rewards too large",
    "U unexplained", "rank", "weight", "surprise too small", "surprise absurd",
    "surprise without features", "n",
]  # fmt: skip


@pytest.mark.parametrize("kind", FORGERIES)
@settings(max_examples=60)
@given(case=CASES)
def test_forgeries_are_refused(kind, case):
    later, checks = forge(case, kind)
    assert refusal(case, later) in checks


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORGERIES)
@settings(max_examples=2000)
@given(case=CASES)
def test_forgeries_are_refused_many_times(kind, case):
    later, checks = forge(case, kind)
    assert refusal(case, later) in checks


@pytest.mark.parametrize("n", [10**9, 10**13, 10**15, 2**53])
def test_who_claims_many_observations_may_not_send_anything(n):
    space, zero = space_of(3), empty_sums(3)
    top, nothing = n * space.max_weight, np.zeros(4)
    eye, corner = np.diag([1.0, 1.0, 1.0, 0.0]), np.diag([0.0, 0.0, 0.0, 1.0])
    lopsided = eye.copy()
    lopsided[0, 0] = -1e-3
    outer = np.outer(nothing, nothing)
    for matrix, surprise, check in (
        (-1e3 * eye + outer, 0.0, "psd"),
        (-0.5 * space.penalty * eye, 0.0, "psd"),
        (1e-3 * top * lopsided, 0.0, "psd"),
        (outer, -1e3, "surprise"),
        (1e-3 * top * corner, -1e-3 * top, "surprise"),
    ):
        total = with_matrix(Sums(n, np.zeros(packed_size(3)), surprise, top), matrix)
        with pytest.raises(Refused) as caught:
            check_increment(space, (0, 1, 2), zero, total)
        assert caught.value.more["check"] in (check, "rewards"), (n, check, caught.value)


def test_too_small_a_batch_is_refused():
    case = Case(0, 3, 10, 5, "random")
    check_increment(case.space, case.uses, case.earlier, case.later, min_batch=5)
    assert refusal(case, case.later, min_batch=6) == "batch"


NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=3),
)


@MANY
@given(
    n=NUMBERS,
    gram=st.one_of(NUMBERS, st.lists(NUMBERS, max_size=7)),
    surprise=NUMBERS,
    weight=NUMBERS,
)
def test_nothing_but_a_refusal_comes_out_of_junk(n, gram, surprise, weight):
    # A refusal is fine; any other exception fails the test.
    with contextlib.suppress(Refused):
        total = read_sums(2, n=n, gram=gram, surprise=surprise, weight=weight)
        check_increment(space_of(2), (0, 1), empty_sums(2), total)


@MANY
@given(
    gram=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6, max_size=6),
    n=st.integers(0, 2**53),
    surprise=st.floats(allow_nan=False, allow_infinity=False),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    bound=st.sampled_from([1e-99, 1.0, 1e99]),
)
def test_no_finite_numbers_reach_lapack_unchecked(gram, n, surprise, weight, bound):
    space = space_of(2, noise=1.0, bound=bound, high=bound)
    total = Sums(n, np.array(gram), surprise, weight)
    with contextlib.suppress(Refused):
        check_increment(space, (0, 1), empty_sums(2), total)


@MANY
@given(case=CASES)
def test_totals_survive_json_and_bytes(case):
    total = case.later
    again = read_sums(case.dim, **{**total._asdict(), "gram": total.gram.tolist()})
    assert again.as_bytes() == total.as_bytes() == Sums.from_bytes(total.as_bytes()).as_bytes()
    assert again.sha256 == total.sha256
    back = sums_of(statistic_of(total))
    assert back.as_bytes() == total.as_bytes()


@MANY
@given(case=CASES)
def test_totals_add_up(case):
    both = add_sums(case.dim, (case.earlier, difference(case.later, case.earlier)))
    assert both.n == case.later.n
    assert np.allclose(both.gram, case.later.gram, rtol=1e-12, atol=1e-12)
    assert add_sums(case.dim, (case.later,)).as_bytes() == case.later.as_bytes()


def test_damaged_bytes_are_refused():
    whole = empty_sums(3).as_bytes()
    flipped = bytearray(whole)
    flipped[20] ^= 1
    for raw in (b"", os.urandom(24), whole[8:-8], whole[:-8], whole[:6], bytes(flipped)):
        with pytest.raises(ValueError, match=r"not sums|damaged"):
            Sums.from_bytes(raw)


def test_sums_of_the_first_format_are_read():
    sums = Sums(3, np.arange(10.0), -1.5, 2.0)
    first = np.array([3.0, -1.5, 2.0, *range(10)], "<f8").tobytes()
    assert Sums.from_bytes(first).as_bytes() == sums.as_bytes()
    assert sums.sha256 == hashlib.sha256(first).hexdigest()
