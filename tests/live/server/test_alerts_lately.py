"""Alerts that go away when their cause is gone: over a recent span, of monitors, acknowledged."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import Hands, agent
from live.protocol.harness import Harness
from live.protocol.world import make_space
from live.server.driver import served
from typer.testing import CliRunner

from guardband.cli.app import app
from guardband.live.client.stream_state import StreamState
from guardband.live.coordinator.acknowledgements import acknowledge, acknowledged
from guardband.live.link.local import LocalLink
from guardband.live.protocol.messages import Alarmed, Report
from guardband.live.server import service
from guardband.live.server.alerts import alerts_of
from guardband.live.server.recent import Span, span_of
from guardband.live.server.settings import Settings
from guardband.live.server.snapshot import take
from guardband.live.store import SampleRow

HOUR = 3600.0


def alerts_at(harness: Harness, now: float) -> list[tuple[str, str | None]]:
    snapshot = take(harness.store, "home", now)
    assert snapshot is not None
    return [alert.key for alert in alerts_of(snapshot.facts()) if alert.id != "stale"]


def report(harness: Harness, who: Any, hours: float, **parts: dict[str, float]) -> None:
    told = Report.model_validate(parts)
    harness.coordinator.report(harness.stream(who), told, now=1000.0 + HOUR * hours)


@pytest.fixture
def alone() -> tuple[Harness, Any]:
    harness = Harness(space=make_space(contexts="per-request"))
    return harness, harness.join("movies")


def test_a_span_is_the_difference_of_reports() -> None:
    def told(n: int, lead: float) -> dict[str, Any]:
        return {"counters": {"observed": n}, "sums": {"lead": lead}, "gauges": {}}

    def sample(stream: str, hour: int, n: int, lead: float) -> SampleRow:
        body = json.dumps(told(n, lead))
        return SampleRow("home", stream, 3, hour, "movies", HOUR * hour, body)

    reports = {"a": told(100, 5.0), "b": told(30, -1.0)}
    samples = [sample("a", 1, 10, 1.0), sample("a", 3, 60, 2.0), sample("a", 5, 90, 4.0)]
    assert span_of(reports, samples, 0.5 * HOUR, 0.0) is None
    found = span_of(reports, samples, 4.0 * HOUR, 0.0)
    assert found == Span({"observed": 70}, {"lead": 2.0, "counted": 70.0}, 4)
    back = {"a": told(5, 0.0)}  # a journal that was set back takes nothing away
    assert span_of(back, samples, 4.0 * HOUR, 0.0).counters == {"observed": 0}  # type: ignore[union-attr]


def test_one_kill_pages_and_is_forgotten(alone: tuple[Harness, Any]) -> None:
    """30 of 130 decisions lose their rewards with their process; all is well after that."""
    harness, who = alone
    page = [("informative-loss", "movies")]
    report(harness, who, 0.0, counters={"observed": 100})
    report(harness, who, 0.5, counters={"observed": 100, "defaulted": 30})
    assert alerts_at(harness, 1000.0 + 0.5 * HOUR) == page
    seen = []
    for step in range(1, 41):
        hours = 0.5 + step / 10
        report(harness, who, hours, counters={"observed": 100 + 20 * step, "defaulted": 30})
        seen.append(alerts_at(harness, 1000.0 + HOUR * hours))
    gone = seen.index([])
    assert 0.5 + gone / 10 < 2.6
    assert all(found == [] for found in seen[gone:])
    # The same again is a page again.
    report(harness, who, 5.0, counters={"observed": 920, "defaulted": 130})
    assert alerts_at(harness, 1000.0 + 5.0 * HOUR) == page


def test_losses_that_go_on_page_on(alone: tuple[Harness, Any]) -> None:
    harness, who = alone
    for hour in range(60):
        report(harness, who, hour, counters={"observed": 90 * hour, "defaulted": 10 * hour})
    assert alerts_at(harness, 1000.0 + 59 * HOUR) == [("informative-loss", "movies")]


def test_a_slow_task_is_judged_by_all_of_it_while_it_loses(alone: tuple[Harness, Any]) -> None:
    """Two decisions an hour: a day has too few."""
    harness, who = alone
    for hour in range(100):
        report(harness, who, hour, counters={"observed": 2 * hour, "defaulted": hour // 4})
    assert alerts_at(harness, 1000.0 + 99 * HOUR) == [("informative-loss", "movies")]
    for hour in range(100, 128):
        report(harness, who, hour, counters={"observed": 2 * hour, "defaulted": 24})
    assert alerts_at(harness, 1000.0 + 127 * HOUR) == []


def test_a_killed_agent_does_not_page_for_good(tmp_path: Path) -> None:
    """The same with an agent: it dies with rewards to come, and is started again."""
    hands = Hands(10_000.0)

    def made() -> Any:
        link = LocalLink(tmp_path / "gb", clock=lambda: hands.wall)
        rules = {"window_s": 60.0, "order": "window"}
        return agent(tmp_path, link=link, clock=hands.clock(), agents=1, rewards=rules)

    def live(one: Any, decisions: int, answered: int) -> None:
        rng = np.random.default_rng(0)
        for k in range(decisions):
            decision = one.decide(rng.uniform(0.05, 0.5, (4, 3)), 0)
            if k < answered:
                one.observe(decision.id, 0.3)
        hands.pass_(61.0)
        one.sync()

    store = LocalLink(tmp_path / "gb")

    def found() -> set[str]:
        snapshot = take(store._do(lambda c, _: c.store), "default", hands.wall)
        assert snapshot is not None
        return {alert.id for alert in alerts_of(snapshot.facts())}

    one = made()
    one.sync()
    live(one, 120, 120)
    for _ in range(30):  # without rewards: the process dies now
        one.decide(np.full((4, 3), 0.2), 0)
    one._worker.leave()
    hands.pass_(600.0)
    again = made()
    again.sync()
    assert "informative-loss" in found()
    for _ in range(14):
        live(again, 15, 15)
        hands.pass_(600.0)
        again.sync()
    assert "informative-loss" not in found()
    for each in (again, store):
        each.close()


def test_rewards_below_the_floor_are_forgotten_when_it_is_over(alone: tuple[Harness, Any]) -> None:
    harness, who = alone
    lead, n = 0.0, 0
    for hour in range(80):
        n, lead = n + 200, lead + (-120.0 if hour < 20 else 20.0)
        sums = {"lead": lead, "reward": 0.0}
        report(harness, who, hour, counters={"observed": n}, sums=sums)
        found = alerts_at(harness, 1000.0 + HOUR * hour)
        if 5 <= hour < 20:
            assert found == [("reward-below-floor", "movies")]
        if hour > 46:  # a day, and up to two hours
            assert found == []
    assert lead < 0.0  # since the beginning it is below


def noticed(kind: str, harness: Harness, who: Any, at: float, round_: int = 70) -> None:
    alarm = Alarmed(raised_in=harness.stream(who), kind=kind, round=round_, evidence=9.5)  # type: ignore[arg-type]
    harness.coordinator.alarm(harness.stream(who), alarm, now=at)


@pytest.mark.parametrize("kind", ["assumptions", "certificates", "fit"])
def test_an_alarm_names_its_task_until_somebody_looked_or_a_day_is_over(kind: str) -> None:
    harness = Harness(space=make_space(contexts="per-request"))
    movies, tv = harness.join("movies"), harness.join("tv")
    noticed(kind, harness, tv, 2000.0)
    assert alerts_at(harness, 2001.0) == [(kind, "tv")]
    assert alerts_at(harness, 2000.0 + 25 * HOUR) == []
    snapshot = take(harness.store, "home", 2001.0)
    (alert,) = (each for each in alerts_of(snapshot.facts()) if each.id == kind)  # type: ignore[union-attr]
    assert "after 70 decisions" in alert.text
    noticed(kind, harness, movies, 2000.0)
    assert alerts_at(harness, 2001.0) == [(kind, "movies"), (kind, "tv")]
    harness.coordinator.resume_task("home", "tv", who="me", now=2002.0)
    assert alerts_at(harness, 2003.0) == [(kind, "movies")]


def test_nobody_has_seen_the_next_alarm(alone: tuple[Harness, Any]) -> None:
    harness, who = alone

    def seen() -> list[str]:
        with harness.store.reading() as t:
            return sorted(key[0] for key in acknowledged(t, "home"))

    def acknowledge_all(*alerts: str) -> None:
        with harness.store.transaction("home") as t:
            for each in alerts:
                acknowledge(t, "home", each, "movies", "seen", who="ann", now=1.0)

    noticed("assumptions", harness, who, 1000.0)
    acknowledge_all("assumptions", "stale")
    noticed("assumptions", harness, who, 1001.0)  # told once more: it is the same
    noticed("certificates", harness, who, 1002.0)
    assert seen() == ["assumptions", "stale"]
    noticed("assumptions", harness, who, 1003.0, round_=90)  # in the same stream
    assert seen() == ["stale"]
    acknowledge_all("assumptions")
    harness.states[who] = StreamState.start(harness.fresh("stream"), harness.state(who).dim)
    harness.register(who)
    noticed("assumptions", harness, who, 1004.0)  # in another
    assert seen() == ["stale"]


def test_a_mere_warning_lasts_until_somebody_looked() -> None:
    """Nothing was done about its cause; with a window old data go by themselves."""
    for told, found in (({}, [("fit", "tv")]), ({"window": 100}, [])):
        space = make_space(contexts="per-request").changed(on_alarm="warn", **told)
        harness = Harness(space=space)
        tv = harness.join("tv")
        noticed("fit", harness, tv, 2000.0)
        assert alerts_at(harness, 2000.0 + 25 * HOUR) == found
        harness.coordinator.resume_task("home", "tv", who="me", now=2002.0)
        assert alerts_at(harness, 2000.0 + 25 * HOUR) == []


def test_an_alarm_lasts_while_its_task_keeps_to_the_baseline(alone: tuple[Harness, Any]) -> None:
    harness, who = alone
    noticed("certificates", harness, who, 1000.0)
    told = {"mode": "running", "reason": "alarmed"}
    report(harness, who, 40.0, state=told)  # type: ignore[arg-type]
    assert alerts_at(harness, 1000.0 + 40 * HOUR) == [("certificates", "movies")]
    report(harness, who, 41.0, state=told | {"reason": "certified"})  # type: ignore[arg-type]
    assert alerts_at(harness, 1000.0 + 41 * HOUR) == []


def test_a_task_that_does_not_fit_is_named_until_it_is_let_back() -> None:
    harness = Harness(space=make_space(contexts="per-request"))
    movies, _ = harness.join("movies"), harness.join("tv")
    noticed("fit", harness, movies, 1000.0)
    with harness.store.transaction("home") as t:
        row = t.task("home", "movies")
        assert row is not None
        t.put(row._replace(status="apart"))
    assert alerts_at(harness, 1000.0 + 90 * HOUR) == [("fit", "movies")]
    harness.coordinator.readmit("home", "movies", "", who="me", now=1000.0 + 91 * HOUR)
    assert alerts_at(harness, 1000.0 + 92 * HOUR) == []


def test_alerts_are_acknowledged_until_they_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "SHOWN_S", 0.0)
    with served(tmp_path, Settings(alerts_s=0.1)) as server, server.admin() as admin:
        movies = server.agent()
        movies.register()

        def below(margin: float) -> None:
            movies.upload(5, report={"gauges": {"margin_min": margin}})

        def alerts() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = admin.get("/v1/spaces/home/summary").json()["alerts"]
            return found

        def paging() -> list[str]:
            lines = admin.get("/metrics").text.splitlines()
            return [line[-3:] for line in lines if line.startswith("guardband_alert{")]

        path = "/v1/spaces/home/alerts/margin-below-zero/acknowledge"
        mine = {"task": "movies", "reason": "looking"}
        answer = admin.post(path, json=mine)
        assert answer.status_code == 404
        assert "has no such alert now; it has none" in answer.json()["detail"]
        below(-0.5)
        assert alerts()[0]["acknowledged"] is None
        assert paging() == ["1.0"]
        with server.client(server.token("viewer")) as viewer:
            assert viewer.post(path, json=mine).status_code == 403
        assert admin.post(path, json={"task": None}).status_code == 404
        assert admin.post(path, json=mine).status_code == 200
        (alert,) = alerts()
        assert alert["acknowledged"]["reason"] == "looking"
        assert paging() == ["0.0"]
        below(0.5)
        end = time.monotonic() + 20.0
        while _acknowledged(server.data) and time.monotonic() < end:
            time.sleep(0.05)
        below(-0.5)
        assert alerts()[0]["acknowledged"] is None, "the next one is another"
        assert paging() == ["1.0"]


def _acknowledged(data: Path) -> str:
    link = LocalLink(Path(data))
    with link._do(lambda c, _: c.store).reading() as t:
        found = t.meta("acknowledged alerts of home")
    link.close()
    return "" if found in (None, "[]") else str(found)


def test_the_command_line_acknowledges(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        movies = server.agent()
        movies.register()
        movies.upload(5, report={"gauges": {"margin_min": -0.5}})
        given = ["margin-below-zero", "movies", "--reason", "looking"]
        words = ["space", "acknowledge", "home", *given, "--data", str(server.data)]
        answer = CliRunner().invoke(app, words)
        assert answer.exit_code == 0, answer.output
        assert "alert margin-below-zero of task movies is acknowledged" in answer.output
        assert "looking" in _acknowledged(Path(server.data))
