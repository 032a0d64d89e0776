"""`/metrics`: what Prometheus reads, from the store's state and from this process's own counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from guardband.live.coordinator.departures import AWAY
from guardband.live.protocol.messages import KINDS, AlarmKind
from guardband.live.server.alerts import RECENT_S, alerts_of
from guardband.live.server.snapshot import Snapshot, TaskSnapshot
from guardband.reasons import CONSERVATIVE, HELD_BACK, first_code

__all__ = ["OUTCOMES", "ServerMetrics", "exposition"]

OUTCOMES = ("observed", "defaulted", "discarded", "late", "orphan", "duplicate")
REASONS = (*CONSERVATIVE, *HELD_BACK)  # other codes are counted as "other"
TASK = ("space", "agent")
COMMIT_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
EPOCH_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)

# Gauges that agents report, by the name under which they appear here.
REPORTED = {
    "guardband_pending_decisions": ("pending", "Decisions that wait for their reward."),
    "guardband_oldest_pending_seconds": ("oldest_pending_s", "Age of the oldest pending decision."),
    "guardband_safety_margin_min": ("margin_min", "The least margin of a learned action."),
    "guardband_gate_lambda_min": ("lambda_min", "The least eigenvalue of V."),
    "guardband_gate_lambda_required": ("lambda_required", "What the gate requires of it."),
    "guardband_reused_rows": ("reused", "Rows in use that had been looked at before."),
    "guardband_budget_left": ("budget_left", "What trials, or exploration, may still cost."),
    "guardband_cost_left": ("cost_left", "What the task's plays may still cost, as granted."),
    "guardband_beta": ("beta", "The radius of the confidence set."),
    "guardband_logdet": ("logdet", "log det V over that of the ridge."),
    "guardband_residual_variance_ratio": (
        "residual_ratio",
        "Variance of the residuals over the declared one.",
    ),
    "guardband_stuck": ("stuck", "1: the agent will not leave the baseline by itself; 0: it will."),
}


SUMMED = {
    "reward": "the rewards",
    "floor": "the floors",
    "value": "the values",
    "baseline_value": "the values of the baselines",
    "cost": "the costs",
}
UPLIFTS = {
    "mean": "What the task's choices earn over the baseline per round, by its holdback.",
    "low": "The lower end of its 95 % interval, which holds at all times together.",
    "high": "The upper end of that interval.",
}


class ServerMetrics:
    """What this process counts itself."""

    def __init__(self, version: str) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(name, words, labels, registry=registry)

        self.uploads = counter("guardband_uploads_total", "Uploads, by result.", *TASK, "result")
        self.upload_bytes = counter("guardband_upload_bytes_total", "Bytes from agents.", *TASK)
        self.download_bytes = counter("guardband_download_bytes_total", "Bytes to agents.", *TASK)
        self.invalid = counter(
            "guardband_invalid_increments_total", "Increments refused, by check.", *TASK, "check"
        )
        self.commit = Histogram(
            "guardband_store_commit_seconds",
            "Time of one change of the store, until it is durable.",
            registry=registry,
            buckets=COMMIT_BUCKETS,
        )
        self.epoch = Histogram(
            "guardband_epoch_duration_seconds",
            "From the opening of an epoch to its end.",
            ("space",),
            registry=registry,
            buckets=EPOCH_BUCKETS,
        )
        self.epochs = counter("guardband_epochs_total", "Epochs closed.", "space")
        self.longpolls = Gauge("guardband_longpolls", "Polls held now.", registry=registry)
        build = Gauge("guardband_build_info", "Always 1.", ("version",), registry=registry)
        build.labels(version).set(1)


class _Scrape:
    """What one answer consists of."""

    def __init__(self, counts: ServerMetrics, snapshots: Sequence[Snapshot]) -> None:
        self.counts, self.snapshots = counts, snapshots

    def collect(self) -> Iterator[Metric]:
        """Yield every family once."""
        yield from self.counts.registry.collect()
        yield from _of_spaces(self.snapshots)
        yield _alerts(self.snapshots)
        tasks = [(p, each) for p in self.snapshots for each in p.tasks if _lately(each)]
        yield from _counters(tasks)
        yield from _gauges(tasks)


def exposition(counts: ServerMetrics, snapshots: Sequence[Snapshot]) -> bytes:
    """Return the text that Prometheus reads."""
    return generate_latest(_Scrape(counts, snapshots))


def _of_spaces(snapshots: Sequence[Snapshot]) -> Iterator[Metric]:
    def of(name: str, words: str, values: Iterable[tuple[Snapshot, float]]) -> Metric:
        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        family = kind(name, words, labels=("space",))
        for snapshot, value in values:
            family.add_metric([snapshot.row.name], value)
        return family

    yield of("guardband_epoch", "The newest epoch.", ((p, p.row.epoch) for p in snapshots))
    yield of("guardband_paused", "1: paused.", ((p, p.row.paused is not None) for p in snapshots))
    yield of(
        "guardband_server_restores_total",
        "How often the store was older than what agents had seen.",
        ((p, p.restores) for p in snapshots),
    )
    streams = GaugeMetricFamily(
        "guardband_epoch_streams", "Streams in the newest epoch.", labels=("space", "state")
    )
    for snapshot in snapshots:
        if snapshot.epochs:
            newest = snapshot.epochs[-1]
            streams.add_metric([snapshot.row.name, "in"], newest.streams_in)
            streams.add_metric([snapshot.row.name, "late"], newest.streams_late)
    yield streams


def _alerts(snapshots: Sequence[Snapshot]) -> Metric:
    family = GaugeMetricFamily(
        "guardband_alert",
        "1: the alert with this id is active, 0: and acknowledged; see the runbook.",
        labels=(*TASK, "id", "severity"),
    )
    for snapshot in snapshots:
        for alert in alerts_of(snapshot.facts()):
            labels = [snapshot.row.name, alert.task or "", alert.id, alert.severity]
            family.add_metric(labels, alert.key not in snapshot.acknowledged)
    return family


def _lately(each: TaskSnapshot) -> bool:
    """Tell whether a task has an open stream, or had one until a day ago."""
    return each.streams > 0 or (each.heard_s is not None and each.heard_s < RECENT_S)


def _by_first(counts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the counts of codes by what comes first in them: "careful+value" is careful."""
    found: dict[str, Any] = {}
    for key, count in counts.items():
        first = first_code(key)
        found[first] = found.get(first, 0) + count
    return found


def _counters(tasks: Sequence[tuple[Snapshot, TaskSnapshot]]) -> Iterator[Metric]:
    def of(name: str, words: str, label: str, keys: Sequence[str], part: str) -> Metric:
        family = CounterMetricFamily(name, words, labels=(*TASK, label))
        for snapshot, each in tasks:
            values: Mapping[str, Any] = _by_first(getattr(each, part))
            for key in keys:
                family.add_metric([snapshot.row.name, each.task, key], values.get(key, 0))
            if part == "reasons":
                others = sum(value for key, value in values.items() if key not in keys)
                family.add_metric([snapshot.row.name, each.task, "other"], others)
        return family

    yield of("guardband_decisions_total", "Decisions, by kind.", "kind", KINDS, "counters")
    yield of(
        "guardband_observations_total",
        "Decisions, by outcome.",
        "outcome",
        OUTCOMES,
        "counters",
    )
    yield of(
        "guardband_conservative_reason_total", "Why agents held back.", "reason", REASONS, "reasons"
    )
    conflicts = CounterMetricFamily(
        "guardband_stream_conflicts_total", "State folders copied or rolled back.", labels=TASK
    )
    logged = CounterMetricFamily(
        "guardband_logged_rows_total", "Rows learned from logs; they are no decisions.", labels=TASK
    )
    for snapshot, each in tasks:
        conflicts.add_metric([snapshot.row.name, each.task], each.counters.get("conflicts", 0))
        logged.add_metric([snapshot.row.name, each.task], each.sums.get("logged", 0))
    yield conflicts
    yield logged


def _gauges(tasks: Sequence[tuple[Snapshot, TaskSnapshot]]) -> Iterator[Metric]:
    def of(name: str, words: str, values: Iterable[float | None]) -> Metric:
        family = GaugeMetricFamily(name, words, labels=TASK)
        for (snapshot, each), value in zip(tasks, values, strict=True):
            if value is not None and math.isfinite(value):
                family.add_metric([snapshot.row.name, each.task], value)
        return family

    for name, (key, words) in REPORTED.items():
        # What an agent said before it ended would go on raising alerts.
        yield of(name, words, (e.gauges.get(key) if e.current else None for _, e in tasks))
    # Sums may fall, where rewards can be negative: so they are gauges.
    for name, what in SUMMED.items():
        words = f"Sum of {what} of counted decisions."
        yield of(f"guardband_{name}_sum", words, (each.sums.get(name) for _, each in tasks))
    for part, words in UPLIFTS.items():
        found = (snapshot.uplift([each]) for snapshot, each in tasks)
        values = (None if one is None else getattr(one, part) for one in found)
        yield of(f"guardband_uplift{'' if part == 'mean' else f'_{part}'}", words, values)
    yield of(
        "guardband_heterogeneity_ratio",
        "How far a task's theta is from the others'; above 1: it differs.",
        (snapshot.heterogeneity.get(each.task) for snapshot, each in tasks),
    )
    yield of(
        "guardband_agent_epoch_lag",
        "Epochs that the agent has not got yet.",
        (None if e.epoch is None else max(0, p.row.epoch - e.epoch) for p, e in tasks),
    )
    yield of(
        "guardband_agent_last_seen_seconds",
        "Time since the agent was heard of.",
        (each.last_seen_s for _, each in tasks),
    )
    yield of(
        "guardband_explore_lease_seconds",
        "Time for which the agent may explore without getting through.",
        (snapshot.lease_of(each) for snapshot, each in tasks),
    )
    yield of(
        "guardband_apart",
        "1: the task has left the pool after an alarm.",
        (each.row.status in AWAY for _, each in tasks),
    )
    alarms = GaugeMetricFamily(
        "guardband_alarms",
        "What monitors noticed and nobody has looked at.",
        labels=(*TASK, "kind"),
    )
    for snapshot, each in tasks:
        news = [alarm.kind for alarm in each.alarms if alarm.looked_at is None]
        for kind in get_args(AlarmKind):
            alarms.add_metric([snapshot.row.name, each.task, kind], news.count(kind))
    yield alarms
    margin = GaugeMetricFamily(
        "guardband_safety_margin", "Margins of learned actions.", labels=(*TASK, "quantile")
    )
    for snapshot, each in tasks:
        if each.current and "margin_p05" in each.gauges:
            margin.add_metric([snapshot.row.name, each.task, "0.05"], each.gauges["margin_p05"])
    yield margin
