"""One line that says how the demo is doing."""

from __future__ import annotations

from typing import Any

__all__ = ["progress"]


def progress(summary: dict[str, Any], seconds: float, before: dict[str, Any] | None = None) -> str:
    """Return one line about a space.

    Parameters
    ----------
    summary
        The coordinator's, see GET /v1/spaces/{space}/summary.
    seconds
        How long the demo has been running.
    before
        A summary of some time ago: what was learned is then counted from there.
    """
    agents = summary["agents"]
    decisions = _sum(agents, "counters", "decisions")
    rewards = _sum(agents, "counters", "observed") + _sum(agents, "counters", "defaulted")
    if not rewards:
        return f"{seconds:.0f} s · {decisions:,.0f} decisions, no rating yet"
    old = [] if before is None else before["agents"]
    made = decisions - _sum(old, "counters", "decisions")
    safe = _sum(agents, "counters", "baseline") - _sum(old, "counters", "baseline")
    latest = " of the latest" if old else ""
    learned = f", {100 * (1 - safe / made):.0f} %{latest} learned" if made > 0 else ""
    reward, floor = (_sum(agents, "sums", name) / rewards for name in ("reward", "floor"))
    # What matters comes first: a narrow window cuts the end off.
    return (
        f"{seconds:.0f} s · "
        + ("PAUSED · " if summary["paused"] is not None else "")
        + _noticed(agents)
        + f"rating {reward:.2f}, floor {floor:.2f}{_earned(summary)} · "
        f"{decisions:,.0f} decisions{learned} · pooled {summary['epoch']} times"
    )


def _noticed(agents: list[dict[str, Any]]) -> str:
    """Return whose monitors have noticed something that nobody has looked at yet."""
    found = [
        f"ALARM {agent['task']}: {alarm['kind']} · "
        for agent in agents
        for alarm in agent.get("alarms", [])
        if alarm["looked_at"] is None
    ]
    return "".join(dict.fromkeys(found))


def _earned(summary: dict[str, Any]) -> str:
    """Return what the holdback has measured, once there is something."""
    uplift = summary.get("uplift")
    if uplift is None:
        return ""
    return f", earns {uplift['low']:+.2f} to {uplift['high']:+.2f} over the baseline"


def _sum(agents: list[dict[str, Any]], group: str, name: str) -> float:
    return float(sum(agent[group].get(name, 0) for agent in agents))
