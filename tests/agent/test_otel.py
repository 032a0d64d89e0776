"""What OpenTelemetry hears of an agent, by its SDK's exporters in memory."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import numpy as np
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import guardband as gb
from guardband.agent.protocol import BanditAgent
from guardband.otel import instrument

MENU = np.array([[0.5, 0.2, 0.1], [0.1, 0.6, 0.2], [0.3, 0.3, 0.3]])


def told(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """The points of every metric, by its name."""
    found = reader.get_metrics_data()
    assert found is not None
    return {
        metric.name: list(metric.data.data_points)
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_metrics_count_what_happened(agent: BanditAgent) -> None:
    reader = InMemoryMetricReader()
    instrument(agent, meter_provider=MeterProvider([reader]))
    made = [agent.decide(MENU, 0, 0.4) for _ in range(5)]
    agent.observe_many(made, [0.25, 0.5, 0.5, 0.5, 0.75])
    points = told(reader)
    counted = {
        point.attributes["guardband.kind"]: point.value for point in points["guardband.decisions"]
    }
    assert counted == {kind: sum(d.kind == kind for d in made) for kind in {d.kind for d in made}}
    (rewards,) = points["guardband.reward"]
    assert (rewards.count, rewards.sum, rewards.min, rewards.max) == (5, 2.5, 0.25, 0.75)
    assert dict(rewards.attributes) == {"guardband.task": "agent"}


def test_margins_are_those_of_learned_plays() -> None:
    reader, agent = InMemoryMetricReader(), gb.Agent(3, alpha=0.3, noise=0.1)
    instrument(agent, meter_provider=MeterProvider([reader]))
    rng, margins = np.random.default_rng(0), []
    for _ in range(300):
        menu = rng.uniform(0.0, 0.55, (6, 3))
        made = agent.decide(menu, 0)
        margins += [made.margin] if made.kind == "learned" else []
        agent.observe(made, float(menu[made.action] @ [0.2, 0.3, 0.5]))
    (point,) = told(reader)["guardband.margin"]
    assert point.count == len(margins) > 10
    assert point.sum == pytest.approx(sum(margins))


def test_the_span_of_a_request_knows_its_decision(agent: BanditAgent) -> None:
    spans, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    instrument(agent)

    async def request() -> gb.Decision:
        with tracing.get_tracer("service").start_as_current_span("request"):
            made = await agent.adecide(MENU, 0)  # in another thread
            await agent.aobserve(made, 0.5)
        return made

    made = asyncio.run(request())
    (span,) = spans.get_finished_spans()
    assert [event.name for event in span.events] == ["guardband.decision", "guardband.reward"]
    about = dict(span.events[0].attributes or {})
    assert (about["guardband.decision"], about["guardband.action"]) == (made.id, made.action)
    assert about["guardband.reason"] == made.reason
    assert dict(span.events[1].attributes or {})["guardband.reward"] == 0.5


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"pip install 'guardband\[otel\]'"):
        instrument(gb.Agent(3))


@pytest.mark.parametrize("other", [7, gb.Fleet({"a": None}, 3)])
def test_what_is_no_agent_is_refused(other: Any) -> None:
    with pytest.raises(gb.InvalidTypeError, match="instrument takes one agent, not"):
        instrument(other)
