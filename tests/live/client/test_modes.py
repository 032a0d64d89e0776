"""When only the baseline may be played: shadow, pause, lease, no rules yet."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import (
    DIM,
    THETA,
    Away,
    Hands,
    Switch,
    agent,
    another_process,
    journal_of,
    link_of,
    live_on,
    make_due,
    menus,
)

import guardband as gb
from guardband.agent import engine
from guardband.kernels._jit import Kernel
from guardband.live.client.protocol_client import MOST_WAITING
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.link.base import Unreachable
from guardband.live.link.local import LocalLink
from guardband.live.operators.audit import audit, find_decision
from guardband.live.protocol.messages import Refused
from guardband.live.store.sqlite import SqliteStore
from guardband.reasons import HELD_BACK, REASONS

MENU = menus(1)[0]


def coordinator(folder: Path) -> Coordinator:
    return Coordinator(SqliteStore(folder / "gb" / "coordinator.db"))


def learns_the_baseline(one: Any, decision: gb.Decision, menu: np.ndarray) -> None:
    """Assert that what is learned is what the baseline's own features teach."""
    row = journal_of(one).query("SELECT x, action FROM decision ORDER BY seq DESC LIMIT 1")[0]
    np.testing.assert_array_equal(np.frombuffer(row[0]), menu[0])
    assert row[1] == decision.action == 0
    assert (decision.kind, decision.propensity, decision.promise) == ("baseline", 1.0, "baseline")


def test_large_menus_play_the_baseline_until_kernels_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as cold:
        cold.setattr(Kernel, "ready", property(lambda _: False))
        cold.setattr(engine, "PROMPT", len(MENU) * DIM**2 - 1)
        one = agent(tmp_path)
        assert not one.full_speed
        decision = one.decide(MENU, 0, float(MENU[0] @ THETA))
        assert decision.reason == HELD_BACK["compiling"]
        learns_the_baseline(one, decision, MENU)
        one.observe(decision, 0.4)
        assert one.decide(MENU[:-1], 0).reason != HELD_BACK["compiling"]
    assert one.full_speed
    assert one.decide(MENU, 0, float(MENU[0] @ THETA)).reason != HELD_BACK["compiling"]
    finding = audit(decision.id, find_decision(decision.id, [tmp_path / "gb"]))
    assert finding.result == "same"


def test_shadow_mode_logs_what_it_would_play_and_plays_the_baseline(tmp_path: Path) -> None:
    plain, shadow = agent(tmp_path / "a"), agent(tmp_path / "b", shadow=True)
    for menu in menus(150):
        chosen = plain.decide(menu, 0, float(menu[0] @ THETA))
        decision = shadow.decide(menu, 0, float(menu[0] @ THETA))
        learns_the_baseline(shadow, decision, menu)
        assert "shadow mode" in decision.reason
        for one, made in ((plain, chosen), (shadow, decision)):
            one.observe(made.id, float(menu[made.action] @ THETA))
    wishes = journal_of(shadow).query("SELECT shadow_action FROM decision ORDER BY seq")
    assert {w for (w,) in wishes} >= {0, 1, 2}  # it would have played others
    report = shadow.report()
    assert report.counters["shadow"] == report.counters["baseline"] == 150
    assert report.reasons == {"shadow": 150}
    assert report.state.mode == "shadow"
    assert shadow.counted == 150


def test_I9_a_pause_is_obeyed_until_it_ends(tmp_path: Path) -> None:
    one = agent(tmp_path)
    live_on(one, 100)
    assert any(d.kind == "learned" for d in live_on(one, 20, seed=1))
    boss = coordinator(tmp_path)
    boss.pause("default", "recalled drug", who="op", now=1.0)
    one.sync()
    for menu in menus(30, seed=2):
        decision = one.decide(menu, 0, 0.3)
        assert decision.reason == "learning is paused: recalled drug"
        learns_the_baseline(one, decision, menu)
        one.observe(decision.id, 0.5)
    one.close()
    one = agent(tmp_path)  # a restart does not end it
    assert one.decide(MENU, 0).kind == "baseline"
    assert one.report().state.mode == "paused"
    boss.resume("default", who="op", now=2.0)
    one.sync()
    assert any(d.kind == "learned" for d in live_on(one, 20, seed=1))
    boss.store.close()


def test_I9_without_a_lease_only_the_baseline(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(tmp_path, lease_s=100.0, clock=hands.clock())
    live_on(one, 100)
    hands.pass_(99.0)
    assert one.decide(MENU, 0, 0.2).reason != ""
    assert one.report().gauges["lease_s"] == pytest.approx(1.0)
    hands.pass_(2.0)
    decision = one.decide(MENU, 0, 0.2)
    assert "lease has expired" in decision.reason
    learns_the_baseline(one, decision, MENU)
    assert one.report().state.mode == "lease expired"
    one.sync()  # reached: the lease is renewed
    assert "lease" not in one.decide(MENU, 0, 0.2).reason
    # A clock that was set back before the lease began: no lease.
    one.close()
    early = Hands(wall=hands.wall + 500.0)
    again = agent(tmp_path, lease_s=100.0, clock=early.clock())
    link_of(again).close()
    early.pass_(101.0)
    assert "lease has expired" in again.decide(MENU, 0, 0.2).reason


def test_I9_an_answer_that_waited_renews_no_lease(tmp_path: Path) -> None:
    hands = Hands()
    one = agent(tmp_path, lease_s=100.0, clock=hands.clock())
    live_on(one, 100)
    link = link_of(one)
    for told in (True, False):  # with news, and with none
        one.sync()
        assert one.report().gauges["lease_s"] == pytest.approx(100.0)
        if told:
            changed = one.settings.changed(alpha=0.2)
            coordinator(tmp_path).configure("default", changed, who="op", now=1.0)
        real = link.news

        def asleep(*args: Any, real: Any = real, **more: Any) -> Any:
            answer = real(*args, **more)
            hands.pass_(3 * 86_400.0)  # the computer sleeps, and then reads what came before
            return answer

        link.news = asleep
        one.sync()
        link.news = real
        assert one.status()["mode"] == "lease"
        assert one.decide(MENU, 0, 0.2).kind == "baseline"


def test_I9_news_that_were_overtaken_do_not_end_a_pause(tmp_path: Path) -> None:
    one = agent(tmp_path)
    link, real = link_of(one), link_of(one).news

    def slow(*args: Any, **more: Any) -> Any:
        old = real(*args, **{**more, "config_version": 0})  # not paused yet
        link.news = real
        coordinator(tmp_path).pause("default", "recall", who="op", now=1.0)
        one.sync()  # another thread hears of it first
        assert one.status()["mode"] == "paused"
        return old

    link.news = slow
    one.sync()
    assert one.status()["mode"] == "paused"
    assert one.decide(MENU, 0, 0.2).reason == "learning is paused: recall"


def test_I3_what_was_told_to_a_former_stream_is_not_adopted(tmp_path: Path) -> None:
    """Its epoch may hold the new stream's data, and says nothing about them."""
    one = agent(tmp_path, sync={"deadline_s": 0.01})
    former, link = one.status()["stream"], link_of(one)
    stored = {"n": 7, "version": "c" * 32}
    other = another_process(one)
    other.refused(Refused("revision_conflict", 409, "somebody else was here", stored=stored))
    live_on(one, 30)
    make_due(one)
    real, link.news = link.news, lambda *a, **k: None  # it does not hear of what it brings about
    one.sync()
    link.news = real
    time.sleep(0.05)
    asked = {"after": 0, "open_after": 0, "config_version": 0, "wait_s": 0.0}
    link.news("default", None, **asked)  # the deadline is over
    news = link.news("default", former, **asked)
    assert (news.epoch, news.sums.n, news.own) == (1, 30, None)
    other.hear(news, former, time.time())
    assert (one.epoch, one.status()["observations"]) == (0, 30)
    one.sync()
    assert (one.epoch, one.status()["observations"]) == (1, 30)  # each observation once


def test_rules_that_a_restored_coordinator_forgot_are_told_again(tmp_path: Path) -> None:
    link = Switch(LocalLink(tmp_path / "gb"))
    one, boss = agent(tmp_path, link=link), coordinator(tmp_path)
    first = one.settings
    boss.configure("default", first.changed(alpha=0.2), who="op", now=1.0)
    one.sync()
    assert (one.status()["config_version"], one.settings.alpha) == (2, 0.2)
    with boss.store.transaction("default") as t:  # back to a backup, then changed differently
        row = t.space("default")
        config = json.dumps(first.changed(alpha=0.05).as_json())
        t.put(row._replace(config=config, config_version=2))
    there, link.to = link.to, Away()
    with pytest.raises(Unreachable):
        one.sync()
    link.to = there  # after every interruption it asks for the rules again
    one.sync()
    assert one.settings.alpha == 0.05
    assert one.status()["config_version"] == boss.space("default")[1] > 2
    asked = []
    real, there.news = there.news, lambda *a, **k: asked.append(1) or real(*a, **k)
    one.sync()
    assert len(asked) == 1


def test_many_epochs_before_their_round_are_no_reason_to_ask_all_the_time(tmp_path: Path) -> None:
    shared = {"contexts": "shared", "agents": 2, "sync": {"trigger": "ratio", "growth": 1e-9}}
    fast, slow = agent(tmp_path, **shared), agent(tmp_path, task="tv", **shared)
    for t, menu in enumerate(menus(MOST_WAITING + 10)):
        fast.observe(fast.decide(menu, 0, 0.2, round=t + 1).id, 0.5)
        for one in (fast, slow, fast, slow):
            one.sync()
    assert slow.epoch == 0
    waiting = slow.status()["waiting_epochs"]
    assert waiting[-1] == fast.epoch > MOST_WAITING
    assert len(waiting) == MOST_WAITING
    asked, real = [], link_of(slow).news
    link_of(slow).news = lambda *a, **k: asked.append(1) or real(*a, **k)
    slow.sync()
    assert len(asked) == 1
    slow.decide(MENU, 0, round=MOST_WAITING + 11)
    assert slow.epoch == fast.epoch  # the newest is there
    with pytest.raises(ValueError, match="beyond 2"):
        slow.decide(MENU, 0, round=2**60)


def test_I9_without_rules_only_the_baseline_and_nothing_is_learned(tmp_path: Path) -> None:
    real = LocalLink(tmp_path / "gb")
    link = Switch(Away())
    one = agent(tmp_path, link=link)
    made = [one.decide(menu, 1, 0.2) for menu in menus(5)]
    assert {(d.kind, d.action) for d in made} == {("baseline", 1)}
    assert "has not sent this space's settings" in made[0].reason
    one.observe(made[0].id, 0.5)
    with pytest.raises(Unreachable):
        one.sync()
    # It appears later, and the agent joins.
    link.to = real
    real.create_space(one.settings)
    one.sync()
    for decision in made[1:]:
        one.observe(decision.id, 0.5)
    assert (one.counted, one.pending) == (0, 0)
    report = one.report()
    assert report.reasons["no-config"] == report.counters["discarded"] == 5
    assert one.decide(MENU, 0).reason != made[0].reason
    one.close()
    # Known rules survive: after a restart it goes on by them while nobody answers.
    again = agent(tmp_path, link=Away())
    reasons = {d.reason for d in live_on(again, 120)}
    assert not reasons & set(HELD_BACK.values())
    assert REASONS["no-data"] in reasons  # it decides by the rules; no reward counts yet


def test_a_baseline_in_any_row_is_weighed(tmp_path: Path) -> None:
    (choice,) = agent(tmp_path, link=Switch(Away())).decide(MENU, 2).choices
    assert choice.action == 2


def test_requests_are_checked_against_the_rules_that_were_told(tmp_path: Path) -> None:
    """What an agent assumed while nobody answered is not what it goes on with."""
    real = LocalLink(tmp_path / "gb")
    link = Switch(Away())
    one = agent(tmp_path, link=link)
    long = np.full((2, DIM), 0.5)
    assert one.decide(long, 0).kind == "baseline"  # a length of 0.87, and 1 was assumed
    link.to = real
    real.create_space(one.settings.changed(feature_bound=0.5))
    one.sync()
    with pytest.raises(ValueError, match=r"more than feature_bound=0\.5"):
        one.decide(long, 0)
    with pytest.raises(ValueError, match=r"more than feature_bound=0\.5"):
        one.decide_many([long], [0])
    one.decide(long / 2.0, 0)
    assert one.rounds == 2


def test_without_a_coordinator_and_without_a_description_there_is_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guardband.live.client.connect.link_to", lambda *_: Away())
    with pytest.raises(ConnectionError, match="again when it answers; with settings="):
        gb.connect(f"local:{tmp_path}", task="movies", background=False)


def test_learning_goes_on_while_the_coordinator_is_away(tmp_path: Path) -> None:
    link = Switch(LocalLink(tmp_path / "gb"))
    one, other = agent(tmp_path, link=link), agent(tmp_path, task="tv")
    live_on(one, 50)
    there, link.to = link.to, Away()
    with pytest.raises(Unreachable):
        one.sync()
    live_on(one, 200, seed=1)
    assert one.counted == 250
    live_on(other, 50, seed=2)
    link.to = there
    for each in (one, other, one, other):
        each.sync()
    assert one.status()["acknowledged"] == one.counted
    assert one.epoch == other.epoch > 0
    assert other.report().gauges["foreign_n"] > 100


def test_a_round_is_decided_once_and_only_on_what_came_before_it(tmp_path: Path) -> None:
    """Where tasks share contexts: nobody acts on a reward that was earned under the same one."""
    shared = {"contexts": "shared", "sync": {"deadline_s": 60.0}, "agents": 2}
    fast, slow = agent(tmp_path, **shared), agent(tmp_path, task="tv", **shared)
    slow.observe(slow.decide(MENU, 0, round=1).id, 0.5)
    for t, menu in enumerate(menus(40)):
        fast.observe(fast.decide(menu, 0, 0.2, round=t + 1).id, 0.5)
    assert fast.status()["due"]
    with pytest.raises(ValueError, match="give round="):
        slow.decide(MENU, 0)  # by its own count it would be in round 2
    for _ in range(2):
        fast.sync()
        slow.sync()
    fast.sync()
    assert fast.epoch == 1
    assert slow.epoch == 0  # the epoch holds rounds up to 40; its next one is round 2
    assert slow.status()["waiting_epochs"] == [1]
    slow.observe(slow.decide(MENU, 0, round=2).id, 0.5)
    slow.observe(slow.decide(MENU, 0, round=40).id, 0.5)
    assert slow.epoch == 0
    with pytest.raises(ValueError, match="not after round 40"):
        slow.decide(MENU, 0, round=40)
    slow.decide(MENU, 0, round=41)
    assert slow.epoch == 1
    assert slow.decide_many([MENU, MENU], [0, 0], round=42)
    rounds = journal_of(slow).query("SELECT round, epoch FROM decision ORDER BY seq")
    assert rounds == [(1, 0), (2, 0), (40, 0), (41, 1), (42, 1), (43, 1)]


@pytest.mark.parametrize("algorithm", ["disc-ucb", "disc-ucb-unknown", "dis-lin-ucb"])
def test_other_algorithms_live_too(algorithm: str, tmp_path: Path) -> None:
    alpha = None if algorithm == "dis-lin-ucb" else 0.3
    sync = {"trigger": "paper", "budget": 5.0}
    one = agent(tmp_path, algorithm=algorithm, alpha=alpha, sync=sync)
    live_on(one, 60)
    one.sync()
    report = one.report()
    assert one.epoch == 1
    assert report.counters["decisions"] == one.counted == 60
    assert report.gauges["beta"] > 0
    if algorithm == "disc-ucb":
        assert report.reasons["gate"] > 0
        assert report.gauges["lambda_required"] > report.gauges["lambda_min"]
    again = agent(tmp_path, alpha=alpha)
    np.testing.assert_allclose(again.theta, one.theta, rtol=1e-9)


@pytest.mark.parametrize(
    ("sync", "due"),
    [
        ({"trigger": "ratio", "growth": 1.0}, True),
        ({"trigger": "ratio", "growth": 1e9}, False),
        ({"trigger": "paper", "budget": 1e9}, False),
        ({"trigger": "interval", "interval_s": 1e6}, False),
        ({"trigger": "interval", "interval_s": 1e-3}, True),
    ],
)
def test_triggers(sync: dict[str, Any], due: bool, tmp_path: Path) -> None:
    one = agent(tmp_path, sync=sync)
    live_on(one, 50)
    one.sync()
    assert one.epoch == int(due)
    assert one.theta.size == DIM
