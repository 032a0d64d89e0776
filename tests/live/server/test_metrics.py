"""/metrics against a state that is known."""

from __future__ import annotations

import logging
import time

import pytest
from live.server.driver import SPACE, Served, served
from prometheus_client.parser import text_string_to_metric_families

from guardband.live.server import Settings, metrics, service
from guardband.live.server.metrics import REASONS
from guardband.reasons import REASONS as ALL_REASONS

# Section 6 of the design has them all; `kind` is learned, explored or baseline.
NAMES = {
    "guardband_decisions_total",
    "guardband_conservative_reason_total",
    "guardband_observations_total",
    "guardband_pending_decisions",
    "guardband_oldest_pending_seconds",
    "guardband_reward_sum",
    "guardband_floor_sum",
    "guardband_safety_margin",
    "guardband_safety_margin_min",
    "guardband_gate_lambda_min",
    "guardband_gate_lambda_required",
    "guardband_beta",
    "guardband_logdet",
    "guardband_residual_variance_ratio",
    "guardband_heterogeneity_ratio",
    "guardband_epoch",
    "guardband_epochs_total",
    "guardband_epoch_duration_seconds_count",
    "guardband_epoch_streams",
    "guardband_agent_epoch_lag",
    "guardband_alarms",
    "guardband_apart",
    "guardband_agent_last_seen_seconds",
    "guardband_explore_lease_seconds",
    "guardband_upload_bytes_total",
    "guardband_download_bytes_total",
    "guardband_uploads_total",
    "guardband_stream_conflicts_total",
    "guardband_logged_rows_total",
    "guardband_invalid_increments_total",
    "guardband_store_commit_seconds_count",
    "guardband_longpolls",
    "guardband_paused",
    "guardband_server_restores_total",
    "guardband_build_info",
}
REPORT = {
    "counters": {
        "decisions": 10,
        "learned": 6,
        "explored": 1,
        "baseline": 3,
        "observed": 7,
        "defaulted": 2,
        "discarded": 1,
        "late": 4,
        "orphan": 5,
        "duplicate": 6,
        "conflicts": 2,
    },
    "sums": {"reward": 4.5, "floor": 3.25, "logged": 11},
    "gauges": {
        "pending": 8,
        "oldest_pending_s": 2.5,
        "margin_min": 0.125,
        "margin_p05": 0.25,
        "beta": 2.0,
        "logdet": 9.0,
        "lambda_min": 1.5,
        "lambda_required": 96.0,
        "residual_ratio": 0.75,
    },
    "reasons": {"careful": 2, "gate": 1},
}


def scrape(client) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = client.get("/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_metric_has_its_value(tmp_path) -> None:
    with served(tmp_path, lease_s=1000.0) as server:
        movies, tv = server.agent("movies"), server.agent("tv")
        movies.register(), tv.register()
        tv.upload(40)
        movies.upload(40, trigger=True, for_epoch=1, report=REPORT)
        tv.put(for_epoch=1)
        movies.put()  # a duplicate
        assert movies.put(version="1" * 32, base={"n": 1, "version": "2" * 32}).status_code == 409
        movies.observe(1)
        assert movies.put(weight=-1.0).status_code == 422
        movies.news(after=0, open_after=0, config_version=1)
        with server.admin() as admin:
            admin.post("/v1/spaces/home/pause", json={"reason": "x"})
        time.sleep(0.6)  # a picture may be half a second old
        with server.client(server.viewer_token) as viewer:
            found = scrape(viewer)

    assert {name for name, _ in found} >= NAMES
    own = {"agent": "movies", "space": "home"}

    def value(name: str, **labels: str) -> float:
        return found[f"guardband_{name}", tuple(sorted(labels.items()))]

    for kind, count in (("learned", 6), ("explored", 1), ("baseline", 3)):
        assert value("decisions_total", kind=kind, **own) == count
    for outcome in ("observed", "defaulted", "discarded", "late", "orphan", "duplicate"):
        expected = REPORT["counters"][outcome]
        assert value("observations_total", outcome=outcome, **own) == expected
    assert value("conservative_reason_total", reason="careful", **own) == 2
    assert value("reward_sum", **own) == 4.5
    assert value("floor_sum", **own) == 3.25
    assert value("pending_decisions", **own) == 8
    assert value("oldest_pending_seconds", **own) == 2.5
    assert value("safety_margin_min", **own) == 0.125
    assert value("safety_margin", quantile="0.05", **own) == 0.25
    assert value("beta", **own) == 2.0
    assert value("logdet", **own) == 9.0
    assert value("gate_lambda_min", **own) == 1.5
    assert value("gate_lambda_required", **own) == 96.0
    assert value("residual_variance_ratio", **own) == 0.75
    assert value("stream_conflicts_total", **own) == 2
    assert value("logged_rows_total", **own) == 11
    assert 0.0 <= value("heterogeneity_ratio", **own) < 1.0
    assert value("epoch", space="home") == 1
    assert value("epochs_total", space="home") == 1
    assert value("epoch_duration_seconds_count", space="home") == 1
    assert value("epoch_streams", space="home", state="in") == 2
    assert value("epoch_streams", space="home", state="late") == 0
    assert value("agent_epoch_lag", **own) == 1  # it asked with after=0
    assert 0.0 <= value("agent_last_seen_seconds", **own) < 60.0
    assert value("explore_lease_seconds", **own) == pytest.approx(1000.0, abs=60.0)
    assert value("uploads_total", result="accepted", **own) == 1
    assert value("uploads_total", result="duplicate", **own) == 1
    assert value("uploads_total", result="conflict", **own) == 1
    assert value("uploads_total", result="invalid", **own) == 1
    assert value("invalid_increments_total", check="magnitude", **own) == 1
    assert value("upload_bytes_total", **own) > 1000
    assert value("download_bytes_total", **own) > 300
    assert value("store_commit_seconds_count") > 5
    assert value("longpolls") == 0
    assert value("paused", space="home") == 1
    assert value("server_restores_total", space="home") == 0


def test_clients_cannot_invent_series(tmp_path) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        movies = server.agent("movies")
        movies.register()
        invented = {"careful": 3, "lease": 2} | {f"invented-{i}": 1 for i in range(60)}
        path = f"/v1/streams/{movies.id}/report"
        assert movies.client.post(path, json={"reasons": invented}).status_code == 200
        found = scrape(admin)
    reasons = {
        dict(labels)["reason"]: value
        for (name, labels), value in found.items()
        if name == "guardband_conservative_reason_total"
    }
    assert set(reasons) == {*REASONS, "other"}
    assert (reasons["careful"], reasons["lease"], reasons["other"]) == (3, 2, 60)


def test_all_reasons_that_agents_report_are_known() -> None:
    assert set(REASONS) <= set(ALL_REASONS)
    assert set(ALL_REASONS) - set(REASONS) == {
        "certified",
        "itself",
        "no-data",
        "alarm",
        "learned",
        "free",
        "always",
        "holdback",
        "value",
        "assumptions",
        "certificates",
        "fit",
        "followed",
    }


def test_tasks_that_ended_have_series_for_a_day(tmp_path, monkeypatch) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        movies, tv = server.agent("movies"), server.agent("tv")
        for each in (movies, tv):
            each.register()
            each.upload(5, report=REPORT)
        assert tv.seal().status_code == 200

        def agents() -> set[str]:
            found = scrape(admin)
            tasks = [dict(labels) for name, labels in found if name != "guardband_alert"]
            return {labels["agent"] for labels in tasks if "kind" in labels}

        time.sleep(0.6)  # a picture may be half a second old
        assert agents() == {"movies", "tv"}  # the last counts are not lost between two scrapes
        monkeypatch.setattr(metrics, "RECENT_S", 0.0)
        assert agents() == {"movies"}


def test_alerts_are_found_and_told_while_nobody_looks(tmp_path, caplog) -> None:
    caplog.set_level(logging.WARNING, "guardband.server")
    with served(tmp_path, Settings(alerts_s=0.1)) as server, server.admin() as admin:
        movies = server.agent()
        movies.register()
        movies.upload(5, report={"gauges": {"margin_min": -0.5}}, seen_epoch=7)

        def told() -> list[tuple[str, str]]:
            fields = [getattr(record, "fields", {}) for record in caplog.records]
            return sorted((each["alert"], each["severity"]) for each in fields if "alert" in each)

        end = time.monotonic() + 20.0
        while len(told()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        expected = [("margin-below-zero", "page"), ("server-restore", "ticket")]
        assert told() == expected
        found = scrape(admin)
        summary = admin.get("/v1/spaces/home/summary").json()
        time.sleep(0.7)
        later = admin.get("/v1/spaces/home/summary").json()
        assert told() == expected, "each once"
    labels = {
        (dict(labels)["agent"], dict(labels)["id"], dict(labels)["severity"], value)
        for (name, labels), value in found.items()
        if name == "guardband_alert"
    }
    assert labels == {
        ("movies", "margin-below-zero", "page", 1.0),
        ("", "server-restore", "ticket", 1.0),
    }
    since = [[alert["since"] for alert in each["alerts"]] for each in (summary, later)]
    assert since[0] == since[1]


def test_margins_page_in_quarantine_and_not_after_the_end(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(service, "SHOWN_S", 0.0)
    below = {"gauges": {"margin_min": -0.5, "residual_ratio": 9.0, "own_n": 1e5}}
    with served(tmp_path) as server, server.admin() as admin:
        movies, again = server.agent("movies"), server.agent("movies")
        movies.register()
        movies.upload(5, report=below)

        def alerts() -> set[str]:
            summary = admin.get("/v1/spaces/home/summary").json()
            return {alert["id"] for alert in summary["alerts"]}

        def margins() -> list[float]:
            found = scrape(admin).items()
            return [v for (name, _), v in found if name == "guardband_safety_margin_min"]

        assert alerts() == {"margin-below-zero", "residual-variance"}
        path = "/v1/spaces/home/agents/movies"
        assert admin.post(f"{path}/quarantine", json={"reason": "x"}).status_code == 200
        assert alerts() == {"margin-below-zero"}
        assert admin.post(f"{path}/restore", json={"reason": "x"}).status_code == 200
        assert margins() == [-0.5]
        assert movies.seal().status_code == 200
        assert alerts() == set()
        assert margins() == []
        again.register()  # a new stream, which has not said anything yet
        assert alerts() == set()
        assert margins() == []
        again.upload(5, report={"gauges": {"margin_min": 0.5}})
        assert margins() == [0.5]


def test_a_summary_logs_nothing(server: Served, caplog) -> None:
    caplog.set_level(logging.WARNING, "guardband.server")
    movies = server.agent()
    movies.register()
    movies.upload(5, report={"gauges": {"margin_min": -0.5}})
    with server.admin() as admin:
        (alert,) = admin.get("/v1/spaces/home/summary").json()["alerts"]
    assert alert["id"] == "margin-below-zero"
    assert [record.getMessage() for record in caplog.records] == []


def test_open_metrics_need_no_token(tmp_path) -> None:
    with served(tmp_path, Settings(open_metrics=True)) as server, server.client() as anybody:
        assert scrape(anybody)["guardband_epoch", (("space", "home"),)] == 0


def test_a_restored_store_is_told(tmp_path) -> None:
    with served(tmp_path) as server:
        movies = server.agent()
        movies.register()
        movies.upload(5, seen_epoch=7)  # it has seen epochs that this store never closed
        with server.admin() as admin:
            alerts = admin.get("/v1/spaces/home/summary").json()["alerts"]
            assert [alert["id"] for alert in alerts] == ["server-restore"]
            assert scrape(admin)["guardband_server_restores_total", (("space", "home"),)] == 1
        opened = movies.upload(5, trigger=True, seen_epoch=7)
        assert opened["open"]["epoch"] == 8
    assert SPACE.name == "home"
