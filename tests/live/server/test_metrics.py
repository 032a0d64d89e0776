"""/metrics against a state that is known."""

from __future__ import annotations

import time

import pytest
from live.server.driver import SPACE, served
from prometheus_client.parser import text_string_to_metric_families

from guardband.live.server import Settings

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
    "guardband_agent_last_seen_seconds",
    "guardband_explore_lease_seconds",
    "guardband_upload_bytes_total",
    "guardband_download_bytes_total",
    "guardband_uploads_total",
    "guardband_stream_conflicts_total",
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
        "void": 1,
        "late": 4,
        "orphan": 5,
        "duplicate": 6,
        "conflicts": 2,
    },
    "sums": {"reward": 4.5, "floor": 3.25},
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
    for outcome in ("observed", "defaulted", "void", "late", "orphan", "duplicate"):
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
