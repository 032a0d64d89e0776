"""What happened lately: what agents report now, less what they had reported some time ago.

Counters and sums of reports begin with their stream. Alerts that judged those would last for ever.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from guardband.live.coordinator.report_store import LEVELS
from guardband.live.store import SampleRow

__all__ = ["DAY_S", "HOURLY", "HOUR_S", "Span", "counted", "span_of"]

HOUR_S, DAY_S = 3_600.0, 86_400.0
HOURLY = len(LEVELS) - 1  # samples of this level are as they were at the end of an hour


class Span(NamedTuple):
    """What was counted since some time."""

    counters: Mapping[str, int]
    sums: Mapping[str, float]
    after_h: int  # in which hour after the task joined it begins, from 1 on


def span_of(
    reports: Mapping[str, Mapping[str, Any]],
    samples: Sequence[SampleRow],
    since: float,
    joined: float,
) -> Span | None:
    """Return what streams counted since then, or up to an hour more.

    Parameters
    ----------
    reports
        What each stream has reported last.
    samples
        Hourly samples of the same streams, by time.
    since
        When it begins; None is returned where no sample is so old: all is of since then.
    joined
        When the task's first stream was registered.
    """
    before = {each.stream: each for each in samples if each.at <= since}
    if not before:
        return None
    counters: dict[str, int] = {}
    sums: dict[str, float] = {}
    for stream, report in reports.items():
        told: dict[str, Any] = json.loads(before[stream].body) if stream in before else {}
        for key, value in report.get("counters", {}).items():
            more = max(0, value - told.get("counters", {}).get(key, 0))
            counters[key] = counters.get(key, 0) + more
        for key, value in _with_counted(report).items():
            more = value - _with_counted(told).get(key, 0.0)
            sums[key] = sums.get(key, 0.0) + more
    start = min(each.at for each in before.values())
    hours = 1 + max(0, int((start - joined) // HOUR_S))
    return Span(counters, {k: v for k, v in sums.items() if math.isfinite(v)}, hours)


def counted(report: Mapping[str, Any]) -> int:
    """Return over how many rewards of decisions the sums of a report are taken.

    Where uploads have a smallest size, its sums are those of the last one; its counters are not.
    Rows of logs count among an agent's own observations, but are not in these sums.
    """
    if not report.get("sums"):
        return 0
    counters = report.get("counters", {})
    n = counters.get("observed", 0) + counters.get("defaulted", 0)
    logged = report["sums"].get("logged", 0.0)
    return int(min(n, report.get("gauges", {}).get("own_n", n + logged) - logged))


def _with_counted(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the sums of a report, with the number of rewards that they are over."""
    found = dict(report.get("sums", {}))
    return found | {"counted": float(counted(report))} if found else found
