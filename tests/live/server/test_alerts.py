"""Alerts: each one appears when it should, and only then."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings
from guardband.live.server.alerts import (
    SpaceFacts,
    TaskFacts,
    alerts_of,
    lead_interval,
    loss_by_kind,
    most_residual,
)

SPACE = SpaceSettings(name="home", features=("a", "b"), agents=2, noise=1.0, lease_s=1000.0)


def ids(space: SpaceSettings = SPACE, **agent) -> list[tuple[str, str]]:
    facts = SpaceFacts(space=space, agents=[TaskFacts(task="movies", **agent)])
    return [(alert.id, alert.severity) for alert in alerts_of(facts)]


def test_a_healthy_agent_raises_none() -> None:
    healthy = TaskFacts(
        task="movies",
        counters={"observed": 1000, "defaulted": 20, "discarded": 5},
        sums={"lead": 100.0, "counted": 1020},
        gauges={
            "margin_min": 0.0,
            "residual_ratio": 1.1,
            "lease_s": 900.0,
            "oldest_pending_s": 1100.0,
        },
        last_seen_s=5.0,
        heterogeneity=0.9,
    )
    assert alerts_of(SpaceFacts(space=SPACE, agents=[healthy], open_for_s=9.0)) == []
    assert alerts_of(SpaceFacts(space=SPACE, agents=[TaskFacts(task="new")])) == []


@pytest.mark.parametrize(
    ("facts", "alert"),
    [
        ({"gauges": {"margin_min": -1e-9}}, ("margin-below-zero", "page")),
        ({"heterogeneity": 1.01}, ("heterogeneity", "ticket")),
        ({"gauges": {"residual_ratio": 1.21, "own_n": 1e4}}, ("residual-variance", "ticket")),
        ({"conflicts": 1}, ("conflict", "ticket")),
        ({"counters": {"damaged": 1}}, ("damage", "ticket")),
        ({"invalid": 1}, ("invalid-increment", "ticket")),
        ({"last_seen_s": 75.1}, ("stale", "ticket")),
        ({"last_seen_s": 1.0, "gauges": {"lease_s": 249.0}}, ("lease", "ticket")),
        ({"gauges": {"oldest_pending_s": 1201.0}}, ("pending", "ticket")),
        ({"counters": {"observed": 94, "defaulted": 6}}, ("informative-loss", "page")),
        ({"counters": {"observed": 94, "orphan": 3, "discarded": 3}}, ("informative-loss", "page")),
    ],
)
def test_one_fact_one_alert(facts, alert) -> None:
    assert ids(**facts) == [alert]


@pytest.mark.parametrize("told", [{"delta_alarm": 0}, {"window": 50, "drift": 1e-4}])
def test_tasks_that_differ_page_where_no_monitor_does(told: dict[str, float]) -> None:
    assert ids(SPACE.changed(**told), heterogeneity=1.01) == [("heterogeneity", "page")]


def test_alerts_say_what_to_do() -> None:
    facts = SpaceFacts(
        space=SPACE, agents=[TaskFacts(task="x", conflicts=1)], open_for_s=11, restores=1
    )
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
    clicks = SPACE.changed(rewards=RewardSettings(silence="default"))
    silent = {"observed": 100, "defaulted": 9000}
    silent |= {"resolved_learned": 5000, "lost_learned": 4900}
    silent |= {"resolved_baseline": 4100, "lost_baseline": 4100}
    assert ids(counters=silent) == [("informative-loss", "page")]
    assert ids(clicks, counters=silent) == []
    page = [("informative-loss", "page")]
    assert ids(clicks, counters=silent | {"orphan": 600}) == page
    assert ids(clicks, counters=silent | {"discarded": 600}) == page
    assert ids(clicks, counters=silent | {"orphan": 200, "discarded": 200}) == []


def test_the_meaning_of_silence_is_no_part_of_what_data_mean() -> None:
    stored = SPACE.as_json()
    assert SpaceSettings.from_json(stored) == SPACE
    clicks = SPACE.changed(rewards=RewardSettings(silence="default"))
    assert clicks.schema_hash == SPACE.schema_hash
    assert SpaceSettings.from_json(json.loads(json.dumps(clicks.as_json()))) == clicks
    with pytest.raises(ValueError, match="silence"):
        RewardSettings(silence="golden")


def _sums(values: np.ndarray) -> dict[str, dict]:
    return {"counters": {}, "sums": {"lead": float(values.sum()), "counted": values.size}}


def test_rewards_below_the_floor() -> None:
    rng = np.random.default_rng(1)
    page = [("reward-below-floor", "page")]
    low = (rng.random(4000) < 0.4) - 0.5
    assert ids(**_sums(low)) == page
    assert ids(**_sums(-low)) == []
    assert ids(**_sums(np.full(29, -1.0))) == []  # too few


def test_a_floor_above_the_true_one_proves_nothing() -> None:
    """Without the baseline's reward, the floor is a share of an upper bound of it."""
    low = _sums(np.full(1000, -0.5))
    assert ids(**low) == [("reward-below-floor", "page")]
    low["counters"]["untold"] = 1
    assert ids(**low) == []
    told = TaskFacts(task="told", sums={"lead": 50.0, "counted": 500})
    both = [TaskFacts(task="untold", **low), told]
    assert lead_interval(SPACE, both) == lead_interval(SPACE, [told])
    assert lead_interval(SPACE, both[:1]) is None


def test_figures_that_are_missing_prove_nothing() -> None:
    """Where uploads have a smallest size, sums come with them, and at first not at all."""
    assert ids(counters={"observed": 1000}) == []
    assert lead_interval(SPACE, [TaskFacts(task="a", counters={"observed": 1000})]) is None


@pytest.mark.parametrize("p", [0.05, 0.5])
def test_the_floor_pages_falsely_in_at_most_one_run_of_a_hundred(p: float) -> None:
    """Rewards of 0 and 1 with the mean just at the floor, looked at after each of 2,000."""
    runs, looks = 2000, 2000
    rng = np.random.default_rng(2)
    lead = np.cumsum((rng.random((runs, looks)) < p) - p, axis=1)
    width = np.full(looks, np.inf)
    for n in range(30, looks + 1):
        found = lead_interval(SPACE, [TaskFacts(task="a", sums={"lead": 0.0, "counted": n})])
        assert found is not None
        width[n - 1] = n * found[1]
    failures = float((lead < -width).any(axis=1).mean())
    assert failures <= 0.01 + 3.0 * math.sqrt(0.01 * 0.99 / runs)


def test_the_interval_by_hand() -> None:
    task = TaskFacts(task="a", sums={"lead": 30.0, "counted": 300})
    found = lead_interval(
        SPACE.changed(rewards=RewardSettings(low=-1.0, high=3.0, default=0.0)), [task]
    )
    assert found is not None
    # sigma = 2; rho = 300 / (2 log 100 + log(1 + 2 log 100)) = 26.0
    rho = 300.0 / (2.0 * math.log(100.0) + math.log(1.0 + 2.0 * math.log(100.0)))
    v = 300.0 + rho
    assert found[0] == pytest.approx(0.1)
    assert found[1] == pytest.approx(2.0 / 300.0 * math.sqrt(v * math.log(v / rho / 1e-4)))


def test_noise_as_declared_raises_no_ticket() -> None:
    """Least squares on d features, looked at after each of 1,500 observations."""
    runs, looks, d = 1000, 1500, 2
    rng = np.random.default_rng(3)
    squares = np.cumsum(rng.normal(size=(runs, looks)) ** 2, axis=1)  # chi-square, by freedom
    freedom = np.arange(1, looks + 1)
    bound = np.array([most_residual(k) for k in freedom])
    judged = freedom >= 10
    failures = float(((squares / freedom > bound) & judged).any(axis=1).mean())
    assert failures <= 0.01 + 3.0 * math.sqrt(0.01 * 0.99 / runs)
    gauges = {"own_n": 20.0, "foreign_n": 2.0, "residual_ratio": 1.5}
    assert ids(gauges=gauges) == []
    assert most_residual(gauges["own_n"] + gauges["foreign_n"] - d) > 3.0


def test_too_much_noise_raises_a_ticket() -> None:
    ticket = [("residual-variance", "ticket")]
    assert ids(gauges={"own_n": 1000.0, "foreign_n": 4000.0, "residual_ratio": 1.21}) == ticket
    assert ids(gauges={"own_n": 300.0, "residual_ratio": 2.0}) == ticket
    assert ids(gauges={"own_n": 3000.0, "residual_ratio": 1.19}) == []
    # Where uploads have a smallest size, what is said of others is newer than the residuals.
    batches = SPACE.changed(sync=SyncSettings(min_batch=10))
    assert ids(batches, gauges={"own_n": 20.0, "foreign_n": 9e9, "residual_ratio": 1.21}) == []


def test_a_task_that_is_left_out_still_pages_for_its_margin() -> None:
    loud = {"gauges": {"margin_min": -0.1, "residual_ratio": 9.0}, "last_seen_s": 1e6}
    assert ids(active=False, **loud) == [("margin-below-zero", "page")]
