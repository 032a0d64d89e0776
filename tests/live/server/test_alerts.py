"""Alerts: each one appears when it should, and only then."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from guardband.live.server.alerts import (
    Facts,
    TaskFacts,
    alerts_of,
    lead_interval,
    loss_by_kind,
)
from guardband.live.space import Rewards, Space

SPACE = Space(name="home", features=("a", "b"), agents=2, lease_s=1000.0)


def ids(space: Space = SPACE, **agent) -> list[tuple[str, str]]:
    facts = Facts(space=space, agents=[TaskFacts(task="movies", **agent)])
    return [(alert.id, alert.severity) for alert in alerts_of(facts)]


def test_a_healthy_agent_raises_none() -> None:
    healthy = TaskFacts(
        task="movies",
        counters={"observed": 1000, "defaulted": 20, "void": 5},
        sums={"lead": 100.0, "lead_squares": 200.0},
        gauges={
            "margin_min": 0.0,
            "residual_ratio": 1.1,
            "lease_s": 900.0,
            "oldest_pending_s": 1100.0,
        },
        last_seen_s=5.0,
        heterogeneity=0.9,
    )
    assert alerts_of(Facts(space=SPACE, agents=[healthy], open_for_s=9.0)) == []
    assert alerts_of(Facts(space=SPACE, agents=[TaskFacts(task="new")])) == []


@pytest.mark.parametrize(
    ("facts", "alert"),
    [
        ({"gauges": {"margin_min": -1e-9}}, ("margin-below-zero", "page")),
        ({"heterogeneity": 1.01}, ("heterogeneity", "page")),
        ({"gauges": {"residual_ratio": 1.21}}, ("residual-variance", "ticket")),
        ({"conflicts": 1}, ("conflict", "ticket")),
        ({"invalid": 1}, ("invalid-increment", "ticket")),
        ({"last_seen_s": 75.1}, ("stale", "ticket")),
        ({"last_seen_s": 1.0, "gauges": {"lease_s": 249.0}}, ("lease", "ticket")),
        ({"gauges": {"oldest_pending_s": 1201.0}}, ("pending", "ticket")),
        ({"counters": {"observed": 94, "defaulted": 6}}, ("informative-loss", "page")),
        ({"counters": {"observed": 94, "orphan": 3, "void": 3}}, ("informative-loss", "page")),
    ],
)
def test_one_fact_one_alert(facts, alert) -> None:
    assert ids(**facts) == [alert]


def test_alerts_say_what_to_do() -> None:
    facts = Facts(space=SPACE, agents=[TaskFacts(task="x", conflicts=1)], open_for_s=11, restores=1)
    found = alerts_of(facts)
    assert [alert.id for alert in found] == ["conflict", "epoch-open", "server-restore"]
    for alert in found:
        assert alert.text
        assert alert.remedy


def test_few_losses_prove_nothing() -> None:
    assert ids(counters={"observed": 50, "defaulted": 40}) == []  # below a hundred in all
    assert ids(counters={"observed": 950, "defaulted": 50}) == []  # exactly five per cent


def test_losses_that_differ_by_kind_of_decision() -> None:
    even = {"resolved_learned": 5000, "lost_learned": 100}
    even |= {"resolved_baseline": 5000, "lost_baseline": 101}
    uneven = even | {"lost_baseline": 180}
    three = uneven | {"resolved_explored": 3000, "lost_explored": 50}
    for counters in (even, uneven, three):
        kinds = [k for k in ("learned", "explored", "baseline") if f"lost_{k}" in counters]
        lost = np.array([counters[f"lost_{k}"] for k in kinds])
        kept = np.array([counters[f"resolved_{k}"] for k in kinds]) - lost
        expected = stats.chi2_contingency([lost, kept], correction=False).pvalue
        assert loss_by_kind(counters) == pytest.approx(expected, rel=1e-9)
    assert ids(counters=even | {"observed": 9799}) == []
    assert ids(counters=uneven | {"observed": 9720}) == [("informative-loss", "page")]
    assert loss_by_kind({"observed": 100}) is None
    assert loss_by_kind({"resolved_learned": 10, "lost_learned": 1}) is None
    few = {"resolved_learned": 10, "lost_learned": 4, "resolved_baseline": 10, "lost_baseline": 0}
    assert loss_by_kind(few) is None  # expected counts below five


def test_silence_that_means_the_default_is_no_loss() -> None:
    clicks = SPACE.changed(rewards=Rewards(silence="default"))
    silent = {"observed": 100, "defaulted": 9000}
    silent |= {"resolved_learned": 5000, "lost_learned": 4900}
    silent |= {"resolved_baseline": 4100, "lost_baseline": 4100}
    assert ids(counters=silent) == [("informative-loss", "page")]
    assert ids(clicks, counters=silent) == []
    page = [("informative-loss", "page")]
    assert ids(clicks, counters=silent | {"orphan": 600}) == page
    assert ids(clicks, counters=silent | {"void": 600}) == page
    assert ids(clicks, counters=silent | {"orphan": 200, "void": 200}) == []


def test_the_meaning_of_silence_is_no_part_of_what_data_mean() -> None:
    stored = SPACE.as_json()
    assert "silence" not in stored["rewards"]  # older agents read it
    assert Space.from_json(stored) == SPACE
    clicks = SPACE.changed(rewards=Rewards(silence="default"))
    assert clicks.schema_hash == SPACE.schema_hash
    assert Space.from_json(json.loads(json.dumps(clicks.as_json()))) == clicks
    with pytest.raises(ValueError, match="silence"):
        Rewards(silence="golden")


def _lead(values: np.ndarray) -> tuple[dict[str, int], dict[str, float]]:
    sums = {"lead": float(values.sum()), "lead_squares": float((values**2).sum())}
    return {"observed": values.size}, sums


def test_rewards_below_the_floor() -> None:
    rng = np.random.default_rng(1)
    counters, sums = _lead(rng.normal(-0.1, 0.3, 2000))
    assert ids(counters=counters, sums=sums) == [("reward-below-floor", "page")]
    counters, sums = _lead(rng.normal(+0.1, 0.3, 2000))
    assert ids(counters=counters, sums=sums) == []
    counters, sums = _lead(rng.normal(-0.1, 0.3, 29))
    assert ids(counters=counters, sums=sums) == []


def test_the_interval_holds_at_all_times_together() -> None:
    rng = np.random.default_rng(2)
    failures = 0
    for _ in range(300):
        values = rng.normal(0.0, 1.0, 3000)
        means, squares = np.cumsum(values), np.cumsum(values**2)
        for n in range(30, 3000, 10):
            lead = lead_interval(
                {"observed": n}, {"lead": means[n - 1], "lead_squares": squares[n - 1]}
            )
            assert lead is not None
            if abs(lead[0]) > lead[1]:
                failures += 1
                break
    assert failures <= 12  # 1 % of 300 is 3; the variance is estimated


def test_the_interval_by_hand() -> None:
    lead = lead_interval({"observed": 30}, {"lead": 30.0, "lead_squares": 60.0})
    assert lead is not None
    # mean 1, variance 1; n = 30 and rho^2 = 1/30: 2 (1 + 1) / 30 * log(sqrt(2) / 0.01)
    assert lead[0] == 1.0
    assert lead[1] == pytest.approx(math.sqrt(4 / 30 * math.log(math.sqrt(2) / 0.01)))
