"""What rules would have earned: right where the logs can tell, and silent where they cannot."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from studies.examples import PRICES, ROLES, shop

import guardband as gb
from guardband.studies.config import StudyConfig
from guardband.studies.linear import fit_linear, greedy_choices
from guardband.studies.read import read_study_logs
from guardband.studies.values import RIDGE, Values, value_policies

CONFIG = StudyConfig(**ROLES, columns=["price", "segment"])
# What `shop` draws from: 0.5 - 0.04 price, and 0.1 more in one of three segments.
WORTH = {item: 0.5 - 0.04 * price + 0.1 / 3 for item, price in PRICES.items()}


def values_of(frame: pd.DataFrame, config: StudyConfig = CONFIG) -> Values:
    return value_policies(read_study_logs(frame, config))


def test_estimates_are_near_the_truth_and_intervals_hold_it() -> None:
    frame = shop(20_000, seed=1).assign(old="c")
    found = values_of(frame, CONFIG.updated(baseline="old"))
    truth = {"logged": np.mean(list(WORTH.values())), "baseline": WORTH["c"], "learned": WORTH["a"]}
    for policy, worth in truth.items():
        for estimator in ("IPS", "SNIPS", "DM", "DR"):
            each = found.of(policy, estimator)
            assert each.low is not None
            assert each.high is not None
            assert each.value == pytest.approx(worth, abs=0.04)
            assert each.low <= worth <= each.high, each
    apart = found.of("learned - baseline", "DR")
    assert apart.value == pytest.approx(WORTH["a"] - WORTH["c"], abs=0.04)
    assert found.better is True
    assert found.of("baseline", "IPS").rows == pytest.approx(20_000 / 4 / 4, rel=0.1)


def test_the_learned_rule_is_judged_on_rows_that_it_has_not_seen() -> None:
    """Rewards are noise: fitted to rows, many features foretell them; other rows know better."""
    rng = np.random.default_rng(2)
    menus = rng.normal(size=(400, 5, 40)) / 20
    menus[:, :, 0] = 0.5  # so that DM's model is right: what all actions have earns 1
    menus /= np.maximum(1.0, np.linalg.norm(menus, axis=2, keepdims=True))
    data = {"action": rng.integers(5, size=400), "reward": rng.integers(2, size=400) * 1.0}
    data |= {"chance": np.full(400, 0.2), "old": np.zeros(400, int)}
    config = StudyConfig(baseline="old", propensity="chance", look=0.99)
    found = value_policies(read_study_logs(data, config, menus))
    for estimator in ("IPS", "SNIPS", "DM", "DR"):
        each = found.of("learned", estimator)
        assert each.low is not None
        assert each.high is not None
        assert each.low <= 0.5 <= each.high
    assert found.better is None
    assert "cannot tell" in found.because


def test_without_propensities_the_logs_cannot_tell() -> None:
    config = StudyConfig(reward="clicked", action="item", columns=["price", "segment"])
    found = values_of(shop(2_000), config)
    for estimator in ("IPS", "SNIPS", "DR"):
        each = found.of("learned", estimator)
        assert each.value is each.low is each.high is None
        assert "no propensities" in each.because
    assert found.of("logged", "IPS").value is not None
    assert found.of("learned", "DM").because == "if expected rewards are linear in the features"
    assert found.better is None


def test_a_rule_that_never_plays_what_another_plays_tells_nothing_of_it() -> None:
    """It plays a in one segment and d in the others, for certain."""
    frame = shop(8_000)
    keep = np.where(frame.segment == "z", frame.item == "a", frame.item == "d")
    found = values_of(frame[keep].assign(chance=1.0).reset_index(drop=True))
    each = found.of("learned", "IPS")
    assert each.value is None
    assert "never plays what this one plays" in each.because


def test_propensities_that_are_not_probabilities_are_found_out() -> None:
    found = values_of(shop(8_000).assign(chance=0.125))
    assert (
        "not the probabilities with which actions were played"
        in found.of("learned", "SNIPS").because
    )


def test_a_rule_that_was_hardly_played_is_not_judged() -> None:
    frame = shop(400)
    frame = frame[(frame.item != "a") | (np.arange(400) % 20 == 0)].reset_index(drop=True)
    found = values_of(frame.assign(old="a"), CONFIG.updated(baseline="old", look=0.9))
    assert "unweighted ones" in found.of("baseline", "IPS").because


def test_what_was_not_seen_makes_no_interval_exact() -> None:
    """One kind of visitor in twenty gets the baseline's action once in 2,000 times, and clicks.

    The rows that have it can be missing; the interval must still hold what it earns.
    """
    missed = 0
    for seed in range(20):
        rng = np.random.default_rng([3, seed])
        rare = rng.random(4_000) < 0.05
        chance = np.where(rare, 0.0005, 0.5)
        taken = rng.random(4_000) < chance
        clicks = rng.random(4_000) < np.where(rare, 1.0, np.where(taken, 0.1, 0.3))
        frame = pd.DataFrame(
            {
                "item": np.where(taken, "old", "new"),
                "clicked": clicks * 1.0,
                "segment": np.where(rare, "r", "u"),
                "chance": np.where(taken, chance, 1.0 - chance),
                "old": "old",
            }
        )
        config = StudyConfig(
            reward="clicked", action="item", propensity="chance", baseline="old", look=0.99
        )
        found = values_of(frame, config).of("baseline", "IPS")
        if found.low is not None and found.high is not None:
            assert found.interval == "betting"
            missed += not found.low <= 0.05 + 0.95 * 0.1 <= found.high
    assert missed <= 4  # of 20 intervals at 95 %: 5 or more have a probability of 0.3 %


def test_an_action_that_never_earned_has_an_estimate_of_0() -> None:
    """Its rewards do not vary, and what is left of their variance is rounding."""
    rng = np.random.default_rng(4)
    labels = [f"l{i}" for i in range(30)]
    for seed in range(5):
        frame = pd.DataFrame({"action": rng.choice(labels, 4_000), "reward": 0.0, "chance": 1 / 30})
        frame.loc[rng.random(4_000) < 0.01, "reward"] = 1.0
        frame.loc[frame.action == "l3", "reward"] = 0.0
        config = StudyConfig(
            features=gb.Features(categories={"action": labels}),
            baseline="old",
            propensity="chance",
            seed=seed,
        )
        each = values_of(frame.assign(old="l3"), config).of("baseline", "DM")
        assert each.value == pytest.approx(0.0, abs=1e-9)


def test_what_intervals_assume_is_said_of_each() -> None:
    frame = shop(4_000, seed=1)
    frame.loc[0, "chance"] = 0.2
    found = values_of(frame.assign(old="c"), CONFIG.updated(baseline="old"))
    assert found.of("baseline", "IPS").because == ""
    for policy, estimator in (
        ("baseline", "SNIPS"),
        ("learned", "DR"),
        ("learned - baseline", "DR"),
    ):
        assert "smaller propensity than these rows have, 0.2" in found.of(policy, estimator).because
    even = values_of(shop(4_000, seed=1).assign(old="c"), CONFIG.updated(baseline="old"))
    assert "one propensity" in even.of("baseline", "IPS").because


def test_the_direct_method_does_not_judge_a_rule_by_what_it_was_found_with() -> None:
    """Clicks are coins: whatever is played earns 1/2, and a fitted rule overrates its choices."""
    missed = 0
    for seed in range(20):
        rng = np.random.default_rng([5, seed])
        menus = rng.normal(size=(800, 10, 20)) / 10
        menus[:, :, 0] = 0.5
        menus /= np.maximum(1.0, np.linalg.norm(menus, axis=2, keepdims=True))
        data = {"action": rng.integers(10, size=800), "reward": rng.integers(2, size=800) * 1.0}
        config = StudyConfig(baseline="old", look=0.99)
        logs = read_study_logs(data | {"old": np.zeros(800, int)}, config, menus)
        each = value_policies(logs).of("learned", "DM")
        assert each.low is not None
        assert each.high is not None
        missed += not each.low <= 0.5 <= each.high
    assert missed <= 4


@pytest.mark.slow
def test_intervals_of_whole_studies_cover_at_their_rate() -> None:
    """In 1,000 simulations, the rule being learned anew in each; three standard errors allowed."""
    config, runs = CONFIG.updated(baseline="old"), 1_000
    missed: Counter[tuple[str, str]] = Counter()
    silent = 0
    for seed in range(runs):
        logs = read_study_logs(shop(600, seed=[7, seed]).assign(old="c"), config)
        theta = fit_linear(logs.played[:150], logs.rewards[:150], RIDGE).theta
        _, best, _ = greedy_choices(logs, theta, np.arange(150, 151))
        worth = WORTH[logs.labels[best[0]]]  # it plays the same item in all segments
        truth = {"logged": np.mean(list(WORTH.values())), "baseline": WORTH["c"], "learned": worth}
        truth["learned - baseline"] = worth - WORTH["c"]
        for each in value_policies(logs).estimates:
            silent += each.low is None
            if each.low is not None and each.high is not None:
                wrong = not each.low <= truth[each.policy] <= each.high
                missed[each.policy, each.estimator] += wrong
    assert len(missed) == 13
    assert silent <= 0.02 * 13 * runs
    assert max(missed.values()) <= 50 + 3 * np.sqrt(1_000 * 0.05 * 0.95), missed
