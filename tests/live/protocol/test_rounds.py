"""Tasks that share contexts and number their rounds otherwise than the others."""

from __future__ import annotations

import pytest
from live.protocol.harness import Harness

from guardband.live.coordinator.rounds import FirstEpoch, Standing, far_ahead
from guardband.live.server.alerts import alerts_of
from guardband.live.server.snapshot import take

MS, S, MINUTE, HOUR, DAY = 1_700_000_000_000, 1_700_000_000, 28_333_333, 472_222, 19_676
NEW = FirstEpoch(0.0, 0)  # nothing is known of the pace
DAY_S, WINDOW_S = 86_400.0, 600.0


def lately(rounds: dict[str, int]) -> dict[str, Standing]:
    return {task: Standing(number, 1.0, fresh=True) for task, number in rounds.items()}


@pytest.mark.parametrize(
    ("rounds", "ahead"),
    [
        ({"a": MS, "b": DAY, "c": DAY + 1}, {"a"}),
        ({"a": MS, "b": S, "c": S}, {"a"}),
        ({"a": S, "b": DAY}, {"a"}),
        ({"a": S, "b": MINUTE, "c": MINUTE}, {"a"}),
        ({"a": MS, "b": MS + 5, "c": DAY}, set()),  # most of them count so
        ({"a": MS, "b": MS, "c": DAY, "d": DAY}, {"a", "b"}),
        ({"a": MS}, set()),
        ({"a": MS, "b": 0, "c": 0}, set()),  # nobody else has sent anything
        ({"a": 200_000, "b": 5}, set()),  # milliseconds may pass so quickly
        ({"a": DAY + 300, "b": DAY}, set()),
        ({}, set()),
    ],
)
def test_who_is_far_ahead_from_the_first_epoch_on(rounds: dict[str, int], ahead: set[str]) -> None:
    assert far_ahead(lately(rounds), NEW, WINDOW_S) == ahead


@pytest.mark.parametrize(("quick", "slow"), [(S, MINUTE), (MINUTE, HOUR), (HOUR, DAY), (700, 100)])
def test_units_are_told_apart_when_the_pace_is_known(quick: int, slow: int) -> None:
    """The last are days and weeks, counted from a start of their own."""
    clock = FirstEpoch(30.0 * DAY_S, quick - 30)
    assert far_ahead(lately({"a": quick, "b": slow, "c": slow}), clock, WINDOW_S) == {"a"}


@pytest.mark.parametrize("unit", [0.001, 1.0, 60.0, 3_600.0, 86_400.0])
@pytest.mark.parametrize("age", [0.01, 0.3, 1.0, 2.0, 30.0])
@pytest.mark.parametrize("window_s", [1.0, 600.0, 7.0 * DAY_S])
def test_rewards_that_come_at_once_leave_nobody_out(
    unit: float, age: float, window_s: float
) -> None:
    """One clock for all, from 1 on; rewards of b come at the end of their windows."""
    age_s = age * DAY_S
    first, now = 1 + int(100.0 / unit), 1 + int((100.0 + age_s) / unit)
    late = 1 + int(max(0.0, 100.0 + age_s - window_s) / unit)
    there = lately({"a": now, "b": late, "c": late})
    assert far_ahead(there, FirstEpoch(age_s, first), window_s) == set()


def test_the_idle_are_no_evidence() -> None:
    clock = FirstEpoch(30.0 * DAY_S, 10)
    idle = Standing(20, 60.0)
    assert far_ahead({"a": Standing(HOUR, 1.0, fresh=True), "b": idle}, clock, WINDOW_S) == set()
    silent = {"a": Standing(HOUR, 1.0, fresh=True), "b": Standing(20)}
    assert far_ahead(silent, clock, WINDOW_S, out={"a"}) == set()


def test_who_is_out_stays_out_until_it_is_in_reach() -> None:
    clock, idle = FirstEpoch(30.0 * DAY_S, 10), Standing(20, 60.0)
    both = {"a": Standing(HOUR, 1.0, fresh=True), "b": idle}
    assert far_ahead(both, clock, WINDOW_S, out={"a"}) == {"a"}
    near = both | {"b": Standing(HOUR - 5, 60.0)}
    assert far_ahead(near, clock, WINDOW_S, out={"a"}) == set()


def ahead(harness: Harness) -> list[str | None]:
    """Return whom the dashboard names."""
    found = take(harness.store, "home", harness.now)
    assert found is not None
    return [agent.task for agent in found.facts().agents if agent.ahead]


def epoch(harness: Harness, first: str, *others: str) -> set[str]:
    """Let all count and answer; return the tasks in the epoch."""
    harness.observe(first)
    for who in others:  # those that were heard of lately are waited for
        harness.observe(who)
        harness.checkpoint(who)
        harness.send(who)
    harness.trigger(first)
    for who in others:
        harness.answer(who)
    harness.wait(3.0)
    newest = harness.coordinator.epoch("home", harness.state(first).seen + 1)
    return {line.task for line in newest.manifest}


@pytest.mark.parametrize(("quick", "slow"), [(MS, 0), (MS, DAY), (S, MINUTE)])
def test_one_that_numbers_otherwise_keeps_nobody_from_adopting(
    harness: Harness, quick: int, slow: int
) -> None:
    a, b, c = harness.join("movies"), harness.join("tv"), harness.join("books")
    harness.rounds |= {a: quick, b: slow, c: slow}
    for who in (a, b, c):
        harness.observe(who, 2)
    harness.trigger(a)
    harness.answer(b)
    harness.answer(c)
    record = harness.coordinator.epoch("home", 1)
    assert {line.task for line in record.manifest} == {"tv", "books"}
    assert record.n == 4
    told = harness.news(b)
    assert told is not None
    assert told.round == slow + 2
    for who in (b, c):
        harness.adopt(who)
        assert harness.state(who).epoch == 1
        assert harness.state(who).pooled is not None
        assert harness.state(who).pooled.n == 4
    assert ahead(harness) == ["movies"]


def test_hours_beside_days_are_noticed_when_the_pace_is_known(harness: Harness) -> None:
    a, b, c = harness.join("movies"), harness.join("tv"), harness.join("books")
    harness.rounds |= {a: HOUR, b: DAY, c: DAY}
    for _ in range(2):
        assert epoch(harness, a, b, c) == {"movies", "tv", "books"}
        assert ahead(harness) == []
        harness.adopt(a)  # the others cannot
        harness.wait(24 * 3_600.0)
        harness.rounds[a] += 23
    assert epoch(harness, a, b, c) == {"tv", "books"}
    assert ahead(harness) == ["movies"]
    harness.adopt(b)
    assert harness.state(b).epoch == 3


def test_who_was_left_out_is_back_when_it_numbers_alike(harness: Harness) -> None:
    a, b, c = harness.join("movies"), harness.join("tv"), harness.join("books")
    harness.rounds |= {a: S, b: MINUTE, c: MINUTE}
    assert epoch(harness, a, b, c) == {"tv", "books"}
    for who in (a, b, c):
        harness.adopt(who)
    harness.rounds |= {b: S, c: S}
    harness.wait(60.0)
    assert epoch(harness, a, b, c) == {"movies", "tv", "books"}
    assert ahead(harness) == []


def test_the_dashboard_says_who_does(harness: Harness) -> None:
    a, b = harness.join("movies"), harness.join("tv")
    harness.rounds |= {a: MS, b: DAY}
    epoch(harness, a, b)
    found = take(harness.store, "home", harness.now)
    assert found is not None
    (named,) = [alert for alert in alerts_of(found.facts()) if alert.id == "rounds-ahead"]
    assert (named.task, named.severity) == ("movies", "ticket")
    assert f"{MS + 1:,}" in named.text
