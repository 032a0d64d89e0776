"""How the demo fares, in a line."""

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
        return f"{seconds:.0f} s: {decisions:,.0f} decisions, no rating yet"
    old = [] if before is None else before["agents"]
    made = decisions - _sum(old, "counters", "decisions")
    safe = _sum(agents, "counters", "baseline") - _sum(old, "counters", "baseline")
    latest = " of the latest" if old else ""
    learned = f"{1 - safe / made:.0%}{latest} learned, " if made > 0 else ""
    reward, floor = (_sum(agents, "sums", name) / rewards for name in ("reward", "floor"))
    return (
        f"{seconds:.0f} s: {decisions:,.0f} decisions, {learned}mean rating {reward:.2f} "
        f"(floor {floor:.2f}), pooled {summary['epoch']} times"
        + (", PAUSED" if summary["paused"] is not None else "")
    )


def _sum(agents: list[dict[str, Any]], group: str, name: str) -> float:
    return float(sum(agent[group].get(name, 0) for agent in agents))
