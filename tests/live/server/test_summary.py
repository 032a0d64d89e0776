"""What is computed for pages: history from samples, delta spent, buckets."""

from __future__ import annotations

import json
import math

import pytest

from guardband.live.protocol.space import SpaceSettings
from guardband.live.server.limits import TokenBucket
from guardband.live.server.recent import counted
from guardband.live.server.snapshot import delta_spent
from guardband.live.server.summary import history_of
from guardband.live.store import SampleRow


def sample(stream, slot, n, reward, baseline, decided, task="movies", **gauges) -> SampleRow:
    body = {
        "counters": {"observed": n, "learned": decided - baseline, "baseline": baseline},
        "sums": {"reward": reward, "floor": reward / 2},
        "gauges": gauges,
    }
    return SampleRow("home", stream, 0, slot, task, 10.0 * slot + 1, json.dumps(body))


def test_history_is_means_between_samples_of_all_streams_together() -> None:
    found = history_of(
        [
            sample("s1", 1, 10, 4.0, 10, 10, beta=3.0),
            sample("s1", 2, 20, 10.0, 15, 20, beta=2.0),
            sample("s2", 2, 10, 2.0, 0, 10, beta=1.0),  # a second stream begins
            sample("t", 2, 5, 1.0, 0, 5, task="tv"),
            sample("s2", 4, 20, 8.0, 5, 20),  # s1 is silent
        ]
    )
    movies = found.agents["movies"]
    assert found.t == [11.0, 21.0, 41.0]
    assert movies.n == [10, 30, 40]
    # (10 + 2 - 4) / (30 - 10), then (10 + 8 - 12) / (40 - 30)
    assert movies.reward_mean == [None, pytest.approx(0.4), pytest.approx(0.6)]
    assert movies.floor_mean == [None, pytest.approx(0.2), pytest.approx(0.3)]
    assert movies.conservative == [None, pytest.approx(5 / 20), pytest.approx(5 / 10)]
    assert movies.beta == [3.0, 1.0, None]
    assert found.agents["tv"].n == [None, 5, None]


def test_sums_may_come_less_often_than_counters() -> None:
    """Where uploads have a smallest size, sums are those of the last one, and at first missing."""
    bare = sample("s", 1, 5, 0.0, 5, 5)
    body = json.loads(bare.body) | {"sums": {}}
    found = history_of(
        [
            bare._replace(body=json.dumps(body)),
            sample("s", 2, 12, 4.0, 6, 12, own_n=10),
            sample("s", 3, 18, 4.0, 7, 18, own_n=10),
            sample("s", 4, 25, 12.0, 8, 25, own_n=20),
        ]
    ).agents["movies"]
    assert found.n == [5, 12, 18, 25]
    assert found.reward_mean == [None, pytest.approx(0.4), None, pytest.approx(0.8)]
    assert found.floor_mean == [None, pytest.approx(0.2), None, pytest.approx(0.4)]


def test_delta_is_spent_by_tasks_and_epochs() -> None:
    space = SpaceSettings(name="home", features=("a",), agents=4, noise=1.0, delta=0.01)
    # The sum over tasks i and epochs p = 1 .. e + 1 of delta / (i (i + 1) p (p + 1)).
    by_hand = sum(0.01 / (i * (i + 1) * p * (p + 1)) for i in range(1, 4) for p in range(1, 9))
    assert delta_spent(space, [1, 2, 3], 7) == pytest.approx(by_hand)
    equal = space.changed(shares="equal")
    by_hand = 3 * sum(6 * 0.01 / (math.pi**2 * 4 * p**2) for p in range(1, 9))
    assert delta_spent(equal, [1, 2, 3], 7) == pytest.approx(by_hand)
    assert delta_spent(equal, [1, 2, 3, 4], 10**6) < 0.01
    # A start has the place of the one before it, and is one more set of data.
    more = 0.01 / (2 * 3) * sum(1 / (p * (p + 1)) for p in (9, 10))
    before = delta_spent(space, [1, 2, 3], 7)
    assert delta_spent(space, [1, 2, 3, 2, 2], 7) - before == pytest.approx(more)


def test_a_bucket_fills_at_its_rate() -> None:
    bucket = TokenBucket(rate=10.0, burst=3)
    assert [bucket.wait_of("a", 0.0) for _ in range(4)] == [0, 0, 0, pytest.approx(0.1)]
    assert bucket.wait_of("b", 0.0) == 0
    assert bucket.wait_of("a", 0.05) == pytest.approx(0.05)
    assert bucket.wait_of("a", 0.11) == 0
    assert [bucket.wait_of("a", 100.0) for _ in range(4)] == [0, 0, 0, pytest.approx(0.1)]
    for k in range(30_000):
        bucket.wait_of(str(k), 100.0)
    assert len(bucket) == 20_000


@pytest.mark.parametrize(
    ("observed", "own", "logged", "expected"),
    [(10, 10, 0, 10), (10, 8, 0, 8), (10, 310, 300, 10), (10, 308, 300, 8), (10, None, 300, 10)],
)
def test_means_are_over_decisions_and_not_over_rows_of_logs(
    observed: int, own: int | None, logged: int, expected: int
) -> None:
    """Where uploads have a smallest size, sums may be older than the counters beside them."""
    report = {"counters": {"observed": observed}, "sums": {"reward": 4.0, "logged": logged}}
    gauges = {} if own is None else {"own_n": own}
    assert counted({**report, "gauges": gauges}) == expected
