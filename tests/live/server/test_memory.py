"""A server's memory does not grow with its traffic: an hour of it, with a clock that jumps."""

from __future__ import annotations

import gc
import time
import tracemalloc
from pathlib import Path

import pytest
from live.server.driver import Served, served

from guardband.live.server import Settings

STEP_S = 10.0  # between two uploads of an agent
STEPS = 360  # an hour
SETTLED = 120  # after twenty minutes all caches are as full as they get
GROWTH = 64 * 1024  # bytes in the forty minutes after that: 2,000 uploads, 240 epochs
FREELY = Settings(
    uploads_per_s=1e6, upload_burst=10**6, requests_per_s=1e6, request_burst=10**6, alerts_s=1.0
)


def traffic(server: Served, steps: range) -> None:
    """Let agents upload, answer epochs, ask for news and go wrong; and people look at it."""
    agents = server.agents
    for step in steps:
        server.service.executor._offset += STEP_S
        epoch = step + 1
        report = {"counters": {"decisions": 10 * step}, "gauges": {"own_n": 5.0 * step}}
        agents[0].upload(trigger=True, for_epoch=epoch, seen_epoch=step, report=report)
        for agent in agents[1:]:
            agent.upload(for_epoch=epoch, seen_epoch=step, report=report)
        for agent in agents:
            news = agent.news(after=step, config_version=1)
            assert news.json()["epoch"] == epoch
            assert agent.put(n=agent.n - 1, version="0" * 32).status_code == 409
        if step % 6 == 0:
            with server.admin() as admin:
                assert admin.get("/v1/spaces/home/summary").status_code == 200
                assert admin.get("/metrics").status_code == 200
            server.clients.pop()


def used() -> int:
    """Return the least of some readings: what looks for alerts needs more for a moment."""
    readings = []
    for _ in range(10):
        gc.collect()
        readings.append(tracemalloc.get_traced_memory()[0])
        time.sleep(0.3)
    return min(readings)


@pytest.mark.slow
def test_memory_is_flat_over_an_hour_of_traffic(tmp_path: Path) -> None:
    with served(tmp_path / "gb", FREELY) as server:
        server.agents = [server.agent(task) for task in ("movies", "tv", "books")]
        for agent in server.agents:
            assert agent.register().status_code == 201
        tracemalloc.start()
        try:
            traffic(server, range(SETTLED))
            before = used()
            traffic(server, range(SETTLED, STEPS))
            after = used()
        finally:
            tracemalloc.stop()
    assert after - before < GROWTH, f"{after - before:,} bytes more after the same traffic again"
