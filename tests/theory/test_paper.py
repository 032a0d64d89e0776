"""The paper's bounds against values worked out by hand.

DELTA is chosen so that log(2 / delta) = 2, and with d = 2 so is log(d / delta); without reward
noise beta before the first round is sqrt(2 * 2) + 1 = 3, and the printed beta_0 of L7 is 1.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

import guardband as gb
from guardband import theory

DELTA = 2 * math.exp(-2)
PLAIN = theory.Setting(
    agents=1,
    horizon=100,
    dim=2,
    alpha=0.5,
    reward_low=0.4,
    reward_high=0.6,
    gap_high=0.3,
    noise=0.0,
    delta=DELTA,
    rho=0.2,
)


def test_delta_may_follow_from_agents_and_rounds() -> None:
    given = replace(PLAIN, agents=10, delta=None)
    assert given.level == pytest.approx(1e-4)  # 1 / (100 * 100)
    assert replace(given, horizon=10_000).level == pytest.approx(1e-6)  # with the new T


def test_confidence() -> None:
    bound = theory.confidence(PLAIN, logdet=12.0)
    assert bound.value == pytest.approx(5.0)  # sqrt(12 + 4) + 1
    assert bound.terms["start"] == pytest.approx(3.0)
    assert bound.terms["probability"] == pytest.approx(1 - DELTA)
    assert bound.holds
    # With sigma^2 = 3 the deviation is 2; with lambda = 4 and S = 3 the bias is 6: 2 * 4 + 6.
    other = replace(PLAIN, noise=math.sqrt(3), ridge=4.0, theta_bound=3.0)
    assert theory.confidence(other, logdet=12.0).value == pytest.approx(14.0)
    many = replace(PLAIN, agents=2)
    assert not theory.confidence(many, logdet=12.0).holds  # they share the context
    assert theory.confidence(replace(many, shared_context=False), logdet=12.0).holds
    none = theory.confidence(replace(many, agents=4, shared_context=False))  # 4 * 0.27 > 1
    assert not none.holds
    assert none.terms["probability"] == 0.0


def test_l1() -> None:
    assert theory.L1(PLAIN, beta=3.0, lambda_min=36.0).value == pytest.approx(0.5)
    wide = theory.L1(replace(PLAIN, feature_bound=2.0), beta=3.0, lambda_min=36.0)
    assert wide.value == pytest.approx(1.0)
    assert wide.vacuous


@pytest.mark.parametrize("lemma", [theory.L2, theory.L4])
def test_the_gate_of_a_known_baseline(lemma: object) -> None:
    easiest = lemma(PLAIN)  # type: ignore[operator]
    assert easiest.value == pytest.approx(400.0)  # (2 * 3 / (.5 * .6))^2 = 20^2
    assert easiest.terms["reach"] == pytest.approx(51.0)  # 1 + 100 / 2
    assert easiest.terms["earliest round"] == pytest.approx(798.0)  # 399 * 2
    assert not easiest.holds
    assert easiest.vacuous
    asked = lemma(PLAIN, beta=1.0, lambda_min=100.0, baseline_reward=0.4)  # type: ignore[operator]
    assert asked.value == pytest.approx(100.0)  # (2 / .2)^2
    assert asked.holds
    assert lemma(PLAIN, baseline_reward=0.0).value == math.inf  # type: ignore[operator]


@pytest.mark.parametrize("lemma", [theory.L2_2_, theory.L4_2])
def test_the_gate_of_an_unknown_baseline(lemma: object) -> None:
    gate = lemma(PLAIN, beta=3.0, lambda_min=2024.0)  # type: ignore[operator]
    assert gate.value == pytest.approx(2025.0)  # (2 * 1.5 * 3 / .2)^2 = 45^2
    assert not gate.holds


def test_the_weight_of_exploration() -> None:
    free = replace(PLAIN, rho=None)
    assert theory.L3(PLAIN).value == pytest.approx(0.125) == pytest.approx(free.mixed())  # .2 / 1.6
    assert theory.L3(PLAIN).terms["sharper"] == pytest.approx(1 / 7)  # .2 / 1.4
    assert (
        theory.L3_2(PLAIN).value == pytest.approx(0.1) == pytest.approx(free.mixed(unknown=True))
    )  # .2 / 2
    assert theory.L3(replace(PLAIN, reward_low=0.0)).vacuous


def test_l5() -> None:
    # rho (1 - rho) = .16, N = 25: 101 - 2 * .16 * 25 + sqrt(32 * .0256 * 25 * 2) = 101 - 8 + 6.4
    bound = theory.L5(PLAIN, conservative=25)
    assert bound.value == pytest.approx(99.4)
    assert bound.vacuous  # the trace alone says 51


def test_l6() -> None:
    # x + 2 <= 3 sqrt(x) between 1 (3 = 3) and 4 (6 = 6)
    low, high = theory.L6_lower(1.0, 9.0, 2.0), theory.L6_upper(1.0, 9.0, 2.0)
    assert (low.value, high.value) == (pytest.approx(1.0), pytest.approx(4.0))
    assert low.holds
    # b = 3 is above 2ac = 2, which the paper asks for, but below 4ac = 4: x + 1 > sqrt(3 x).
    none = theory.L6_upper(1.0, 3.0, 1.0)
    assert math.isnan(none.value)
    assert not none.holds


def test_l7_within_its_window() -> None:
    # (2 / .2)^2 = 100, so G = 100 - 99 = 1 at T = 98
    given = replace(PLAIN, horizon=98)
    low, high = theory.L7_lower(given, beta=1.0), theory.L7_upper(given, beta=1.0)
    assert low.value == pytest.approx(8 - 3.125 - math.sqrt(14))  # 16 * 4 - 4 * 2 / .16 = 14
    assert high.value == pytest.approx(math.sqrt(184))  # 16 * 6 * 4 - 16 * 2 / .16
    assert low.holds
    assert high.holds
    span = theory.window(given, beta=1.0)
    assert span.value == pytest.approx(1.28)  # 4 * .16 * 2
    assert (span.terms["first"], span.terms["last"]) == (pytest.approx(97.72), pytest.approx(99.0))
    assert span.holds


def test_l7_outside_its_window() -> None:
    late = theory.L7_upper(PLAIN, beta=1.0)  # G = -1
    assert late.value == pytest.approx(math.sqrt(584))
    assert not late.holds
    early = theory.L7_upper(replace(PLAIN, horizon=90), beta=1.0)  # G = 9: 384 - 1800 < 0
    assert math.isnan(early.value)
    assert early.verdict == "not a number"
    assert not theory.L7_upper(replace(PLAIN, horizon=98)).holds  # beta_T is far above 1


def test_l7_is_divided_by_the_number_of_agents() -> None:
    two = replace(PLAIN, agents=2, horizon=49)  # M T as in the test above
    # 4 - .5 / .32 - sqrt(16 - 12.5) and sqrt(96 - 50)
    assert theory.L7_lower(two, beta=1.0).value == pytest.approx(4 - 1.5625 - math.sqrt(3.5))
    assert theory.L7_upper(two, beta=1.0).value == pytest.approx(math.sqrt(46))


def test_the_unknown_baselines_rounds() -> None:
    # (2 * 1.5 / .2)^2 = 225: G = 1 at T = 223
    given = replace(PLAIN, horizon=223)
    assert theory.unknown_thm_lower(given, beta=1.0).value == pytest.approx(4.875 - math.sqrt(14))
    assert theory.unknown_thm_upper(given, beta=1.0).value == pytest.approx(math.sqrt(184))
    assert theory.unknown_thm_upper(given, beta=1.0).holds


def test_prop1_in_both_forms() -> None:
    # N = 64, N^c = 36; kappa_h + rho r_h + rho = .3 + .12 + .2 = .62
    said = theory.prop1(PLAIN, conservative=36, beta=1.0)
    log = math.log(64)
    assert said.terms["term 1"] == pytest.approx(4 * math.sqrt(128 * log) * (1 + log))
    assert said.terms["term 2"] == pytest.approx(64.0)  # 4 sqrt(256)
    assert said.terms["term 3"] == pytest.approx(22.32)
    proved = theory.prop1(PLAIN, conservative=36, beta=1.0, form="proof")
    log = math.log(100)
    assert proved.terms["term 1"] == pytest.approx(4 * math.sqrt(128 * log))
    assert proved.terms["term 1, between poolings"] == pytest.approx(4 * math.sqrt(200) * log**1.5)
    assert proved.terms["term 2"] == pytest.approx(16.0)
    assert proved.value == pytest.approx(97.1155 + 559.0409 + 16 + 22.32, abs=1e-3)
    assert proved.vacuous  # a regret of 100 is true of everything


def test_regret_is_that_of_all_agents() -> None:
    two = replace(PLAIN, agents=2)
    said = theory.prop1(two, conservative=36, beta=1.0, form="proof")
    assert said.terms["term 2"] == pytest.approx(math.sqrt(512))  # 2 * 2 * 64 * 2
    assert said.terms["term 3"] == pytest.approx(44.64)  # 2 * 36 * .62
    # L7 at M = 2 and T = 49 is worked out above: c' = 2 (T - the lower), c'' = twice the upper.
    bound = theory.T1(replace(two, horizon=49), beta=1.0)
    assert bound.terms["c'"] == pytest.approx(2 * (49 - 4 + 1.5625 + math.sqrt(3.5)))
    assert bound.terms["c''"] == pytest.approx(2 * math.sqrt(46))


def test_prop1_without_own_rounds_is_its_third_term() -> None:
    assert theory.prop1(PLAIN, conservative=100).value == pytest.approx(62.0)
    with pytest.raises(ValueError, match="conservative is 101"):
        theory.prop1(PLAIN, conservative=101)


def test_prop1_1() -> None:
    # 2 rho + 1 - r_l = .4 + .6 = 1
    bound = theory.prop1_1(PLAIN, conservative=36, beta=1.0)
    assert bound.terms["term 3"] == pytest.approx(36.0)
    assert bound.terms["term 2"] == pytest.approx(16.0)


def test_ecc() -> None:
    bound = theory.ECC(PLAIN, beta=1.0)
    # 4 sqrt(200 log 100) (1 + log 100) + sqrt(2 * 100 * 2)
    assert bound.value == pytest.approx(4 * 30.348542 * 5.605170 + 20, abs=1e-3)
    assert bound.holds
    # lambda = .1: 2 log(1 + 100 / .2) = 12.4 exceeds 2 log(100) = 9.2
    assert not theory.ECC(replace(PLAIN, ridge=0.1)).holds


def test_t1_within_its_window() -> None:
    bound = theory.T1(replace(PLAIN, horizon=98), beta=1.0)
    assert bound.terms["c'"] == pytest.approx(98 - 1.1333426, abs=1e-6)  # M (T - the lower bound)
    assert bound.terms["c''"] == pytest.approx(13.5646600, abs=1e-6)
    # 4 sqrt(2 * 96.866657 * 4.584967) + 4 sqrt(196 * 4.584967) 4.584967 + sqrt(387.466629)
    # + 13.564660 * .62 = 119.2150 + 549.7810 + 19.6842 + 8.4101
    assert bound.value == pytest.approx(697.0903, abs=2e-2)
    assert bound.holds
    assert bound.vacuous


def test_thm1_1() -> None:
    bound = theory.Thm1_1(replace(PLAIN, horizon=223), beta=1.0)
    assert bound.terms["c'"] == pytest.approx(223 - 1.1333426, abs=1e-6)
    assert bound.terms["term 3"] == pytest.approx(13.5646600, abs=1e-6)  # times 1


@draw(st.integers(2, 50), st.integers(10_000, 10**7), st.floats(0.05, 0.5), st.floats(0.1, 0.9))
def test_t1_is_not_a_number_for_long_horizons(M: int, T: int, rho: float, alpha: float) -> None:
    """c' is at most M T - 2 M T + O(sqrt(M T)) once M T is far beyond the gate."""
    far = replace(PLAIN, agents=M, horizon=1000 * T, rho=rho, alpha=alpha, noise=0.1)
    assert math.isnan(theory.T1(far).value)


@draw(
    st.integers(1, 1000),
    st.integers(1, 10**6),
    st.integers(2, 64),
    st.floats(0.0, 0.99),
    st.floats(0.0, 1.0),
)
def test_l5_never_beats_the_trace(M: int, T: int, d: int, rho: float, share: float) -> None:
    given = replace(PLAIN, agents=M, horizon=T, dim=d, rho=rho)
    assert theory.L5(given, conservative=share * T).vacuous


def test_azuma() -> None:
    bound = theory.Azu(steps=2, increment=3.0, delta=math.exp(-4))
    assert bound.value == pytest.approx(12.0)  # 3 sqrt(2 * 2 * 4)
    assert bound.vacuous  # two steps of 3 make 6


def test_the_elliptic_potential() -> None:
    bound = theory.LT2(rounds=6, dim=2, trace=2.0, logdet=0.0)
    assert bound.value == pytest.approx(4 * math.log(4))  # 2 * 2 log((2 + 6) / 2)
    assert theory.LT2(rounds=6, dim=2, trace=8.0, logdet=2 * math.log(4)).value == pytest.approx(
        4 * math.log(7 / 4)  # 2 (2 log 7 - 2 log 4)
    )
    assert not theory.LT2(rounds=6, dim=2, trace=2.0, logdet=1.0).holds  # no such V


def test_the_elliptic_potential_of_a_sequence() -> None:
    rng, V, total, logs = np.random.default_rng(0), np.eye(3), 0.0, 0.0
    for _ in range(200):
        x = rng.normal(size=3)
        x *= rng.random() / np.linalg.norm(x)
        form = x @ np.linalg.inv(V) @ x
        total, logs, V = total + min(1.0, form), logs + form, V + np.outer(x, x)
    grown = np.linalg.slogdet(V)[1]
    assert grown <= theory.LT2_logdet(potential=logs).value
    assert total <= theory.LT2(rounds=200, dim=3, trace=3.0, logdet=0.0).value


def test_epochs_and_numbers() -> None:
    given = replace(PLAIN, agents=4, dim=3, horizon=1000)
    assert theory.trigger(given) == pytest.approx(1000 * math.log(4000) / 12)
    assert theory.epochs(given, printed=True).value == 12  # 2 ceil(3 * 2)
    # R = 3 log(1 + 4000 / 3) = 21.588; T R / B = 31.23, root 5.59
    assert theory.epochs(given).value == 12
    sent = theory.communication(given)
    assert sent.value == 864  # 12 poolings, 2 * 4 * (6 + 3) numbers each
    assert sent.terms["order"] == pytest.approx(216.0)  # 8 * 27


def test_there_are_no_more_poolings_than_the_bound_says() -> None:
    problem = gb.problem("forecast", agents=4, seed=1)
    results = gb.simulate(problem, gb.DisLinUCB(noise=0.1), rounds=2000, progress=False)
    given = replace(PLAIN, agents=4, dim=5, horizon=2000)
    bound = theory.epochs(given)
    assert 0 < results.series[0].sync_rounds[0] <= bound.value


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"delta": 1.0}, "delta"),
        ({"reward_low": 0.7}, "reward_low"),
        ({"rho": 1.0}, "rho"),
        ({"agents": 0}, "agents"),
    ],
)
def test_bad_settings_are_named(changes: dict[str, float], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        replace(PLAIN, **changes)  # type: ignore[arg-type]


def test_verdicts() -> None:
    lower = theory.Bound("x", "rounds", 5.0, True, "", 0.0, "lower", most=4.0)
    assert lower.verdict == "impossible"
    assert replace(lower, value=0.0).vacuous
    assert replace(lower, value=0.0).verdict == "says nothing"
    assert replace(lower, value=3.0).verdict == "says something"
    assert replace(lower, value=3.0, holds=False).verdict == "proves nothing"


# Every lemma, theorem and proposition of the paper's source; `th:complete` and `Thm1_unknown`, the
# complete forms of T1 and Thm1_1, are computed under the names of these.
LABELS = {
    *("confidence", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "prop1", "T1"),
    *("prop:Azu", "LT2", "ECC"),
    *("L3_2", "L4_2", "L2_2_", "prop1_1", "unknown_thm", "Thm1_1"),
}


@pytest.mark.parametrize("low", [0.0, 0.4])
def test_all_bounds_have_the_labels_of_the_paper(low: float) -> None:
    found = theory.all_bounds(replace(PLAIN, rho=None, reward_low=low))
    assert {bound.label.split(",")[0] for bound in found} == LABELS


def test_l6_with_the_letters_of_l7() -> None:
    """a = 2 * .16, b = 32 * .0256 * 2, c = (2 * beta / .2)^2 - 101, beta of the horizon."""
    a, b, c = 0.32, 1.6384, (10 * PLAIN.radius()) ** 2 - 101
    low, high = theory.L6_of_L7(PLAIN)
    assert low.terms == pytest.approx({"a": a, "b": b, "c": c}) == high.terms
    assert math.isnan(low.value)  # b < 4ac: far from the window of L7
    assert math.isnan(theory.L6_upper(a, b, c).value)
    late = replace(PLAIN, horizon=100_000)  # c < 0: more than 2 T
    low, high = theory.L6_of_L7(late)
    assert high.value == pytest.approx(theory.L6_upper(a, b, low.terms["c"]).value)
    assert high.value > 2 * 100_000
    assert high.vacuous
    assert low.verdict == "impossible"
    assert [math.isnan(x.value) for x in theory.L6_of_L7(replace(PLAIN, reward_low=0.0))] == [1, 1]
