"""OpenTelemetry: an agent's decisions and rewards as metrics, and on the span of their request."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import Any

from guardband.agent import BanditAgent, Decision
from guardband.errors import InvalidTypeError
from guardband.extras import how_to_install

__all__ = ["instrument"]


def instrument(agent: BanditAgent, *, meter_provider: Any = None) -> None:
    """Tell OpenTelemetry of every decision and every reward of an agent, by its hooks.

    Metrics have the attribute `guardband.task`: the counter `guardband.decisions`, also by
    `guardband.kind` and `guardband.promise`; the histograms `guardband.margin`, of learned plays,
    and `guardband.reward`. The span in which an agent is called gets the events
    `guardband.decision` and `guardband.reward`, with the decision's id.

    Parameters
    ----------
    agent
        Of any kind; once for each.
    meter_provider
        OpenTelemetry's; None: the one that is set for the process.

    Raises
    ------
    ImportError
        Where OpenTelemetry's API is not installed, as the extra `otel` does.
    """
    if not isinstance(agent, BanditAgent):
        raise InvalidTypeError(f"instrument takes one agent, not {agent!r}.")
    try:
        from opentelemetry import metrics, trace  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError(f"this needs OpenTelemetry: {how_to_install('otel')}.") from error

    meter = metrics.get_meter("guardband", version("guardband"), meter_provider)
    decisions = meter.create_counter("guardband.decisions", "{decision}", "decisions made")
    margins = meter.create_histogram(
        "guardband.margin", "1", "by how much learned plays were certified to clear their floor"
    )
    rewards = meter.create_histogram("guardband.reward", "1", "rewards taken in")
    task = {"guardband.task": agent.name}

    @agent.on_decision
    def tell_decision(decision: Decision) -> None:
        about = {"guardband.kind": decision.kind, "guardband.promise": decision.promise}
        decisions.add(1, task | about)
        if decision.kind == "learned" and math.isfinite(decision.margin):
            margins.record(decision.margin, task)
        play = {"guardband.decision": decision.id, "guardband.action": decision.action}
        said = task | about | play | {"guardband.reason": decision.reason}
        trace.get_current_span().add_event("guardband.decision", said)

    @agent.on_reward
    def tell_reward(decision_id: str, reward: float) -> None:
        rewards.record(reward, task)
        said = task | {"guardband.decision": decision_id, "guardband.reward": reward}
        trace.get_current_span().add_event("guardband.reward", said)
