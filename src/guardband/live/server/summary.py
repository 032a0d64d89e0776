"""The summary and the history of a space, made from a snapshot and from samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from guardband.live.protocol.messages import KINDS, OpenEpoch
from guardband.live.server.alerts import Alert, alerts_of, lead_interval, runbook_of
from guardband.live.server.answers import GONE, in_words
from guardband.live.server.recent import counted
from guardband.live.server.replies import (
    AcknowledgedReply,
    AgentReply,
    AlarmLine,
    AlertReply,
    EpochLine,
    EventLine,
    HistoryReply,
    ReasonReply,
    SummaryReply,
    TaskHistory,
    ThetaReply,
    UpliftReply,
)
from guardband.live.server.snapshot import Snapshot, TaskSnapshot, delta_spent, take
from guardband.live.store import SampleRow, Store
from guardband.reasons import REASONS, REMEDIES, sentence

__all__ = ["history_of", "summary_now", "summary_of"]

REASON_REPLIES = {
    code: ReasonReply(text=REASONS[code], remedy=remedy) for code, remedy in REMEDIES.items()
}


def summary_of(snapshot: Snapshot, alerts: Sequence[tuple[Alert, float]]) -> SummaryReply:
    """Return the summary of a space."""
    row, space, estimate = snapshot.row, snapshot.space, snapshot.estimate
    tasks = {stream: task for task, streams in snapshot.streams.items() for stream in streams}
    judged = [each for each in snapshot.tasks if snapshot.state_of(each) not in GONE]
    lead = lead_interval(space, judged)
    found = SummaryReply(
        space=row.name,
        now=snapshot.now,
        paused=row.paused,
        config_version=row.config_version,
        config=space,
        epoch=row.epoch,
        epoch_age_s=None if row.closed_at is None else max(0.0, snapshot.now - row.closed_at),
        open=_open(snapshot),
        delta=space.delta,
        delta_spent=delta_spent(space, snapshot.places, row.epoch),
        lead_mean=None if lead is None else lead[0],
        lead_halfwidth=None if lead is None else lead[1],
        uplift=_uplift(snapshot, judged),
        alerts=[
            AlertReply(
                **alert._asdict(),
                runbook=runbook_of(alert),
                since=since,
                acknowledged=_acknowledged(snapshot, alert),
            )
            for alert, since in alerts
        ],
        agents=[_agent(snapshot, each) for each in snapshot.tasks],
        reasons=REASON_REPLIES,
        epochs=[
            EpochLine(
                epoch=each.epoch,
                closed_at=each.closed_at or each.opened_at,
                opened_by=tasks.get(each.opened_by, each.opened_by),
                streams_in=each.streams_in,
                streams_late=each.streams_late,
                duration_ms=1e3 * max(0.0, (each.closed_at or each.opened_at) - each.opened_at),
                n=each.n,
                logdet=each.logdet,
            )
            for each in snapshot.epochs
        ],
        events=[
            EventLine(seq=e.seq, at=e.at, who=e.who, what=e.what, detail=json.loads(e.detail))
            for e in snapshot.events
        ],
        theta=None
        if estimate is None
        else ThetaReply(
            names=list(space.features),
            mean=estimate.theta.tolist(),
            halfwidth=estimate.halfwidth.tolist(),
        ),
    )
    return in_words(found)


def summary_now(store: Store, name: str, now: float) -> SummaryReply:
    """Return the summary of a space that exists, from its store; alerts begin now."""
    snapshot = take(store, name, now)
    assert snapshot is not None
    return summary_of(snapshot, [(alert, now) for alert in alerts_of(snapshot.facts())])


def _acknowledged(snapshot: Snapshot, alert: Alert) -> AcknowledgedReply | None:
    seen = snapshot.acknowledged.get(alert.key)
    return None if seen is None else AcknowledgedReply(**seen._asdict())


def history_of(samples: Sequence[SampleRow]) -> HistoryReply:
    """Return how tasks fared over time: means and shares between one sample and the next.

    A task with several streams is their sum; a stream that is silent for a while keeps its last
    values until it speaks again.
    """
    times: dict[int, float] = {}
    by_task: dict[str, dict[int, list[SampleRow]]] = {}
    for sample in samples:
        times[sample.slot] = max(sample.at, times.get(sample.slot, sample.at))
        by_task.setdefault(sample.task, {}).setdefault(sample.slot, []).append(sample)
    slots = sorted(times)
    return HistoryReply(
        t=[times[slot] for slot in slots],
        agents={task: _series(slots, said) for task, said in sorted(by_task.items())},
    )


def _series(slots: Sequence[int], said: Mapping[int, Sequence[SampleRow]]) -> TaskHistory:
    names = tuple(TaskHistory.model_fields)
    series: dict[str, list[float | None]] = {name: [] for name in names}
    newest: dict[str, dict[str, Any]] = {}
    figures: dict[str, dict[str, Any]] = {}  # sums may come less often than the rest
    before: dict[str, float] | None = None
    for slot in slots:
        values: dict[str, float | None] = dict.fromkeys(names)
        if slot in said:
            for sample in said[slot]:
                newest[sample.stream] = body = json.loads(sample.body)
                if body.get("sums"):
                    figures[sample.stream] = body
            now = _sums(newest.values(), figures.values())
            gauges = newest[said[slot][-1].stream].get("gauges", {})
            values |= {name: gauges.get(name) for name in ("margin_min", "margin_p05", "beta")}
            values["n"] = now["n"]
            if before is not None:
                values |= _between(before, now)
            before = now
        for name in names:
            series[name].append(values[name])
    return TaskHistory(**series)


def _sums(newest: Iterable[Any], figures: Iterable[Any]) -> dict[str, float]:
    """Return what all streams of a task have counted together."""
    sums = dict.fromkeys(("n", "counted", "reward", "floor", "decisions", "baseline"), 0.0)
    for body in newest:
        counters = body.get("counters", {})
        sums["n"] += counters.get("observed", 0) + counters.get("defaulted", 0)
        sums["baseline"] += counters.get("baseline", 0)
        sums["decisions"] += sum(counters.get(kind, 0) for kind in KINDS)
    for body in figures:
        sums["counted"] += counted(body)
        sums["reward"] += body["sums"].get("reward", 0.0)
        sums["floor"] += body["sums"].get("floor", 0.0)
    return sums


def _between(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float | None]:
    more = {key: now[key] - before[key] for key in now}
    told, decided = more["counted"], more["decisions"]
    return {
        "reward_mean": more["reward"] / told if told > 0 else None,
        "floor_mean": more["floor"] / told if told > 0 else None,
        "conservative": min(1.0, max(0.0, more["baseline"] / decided)) if decided > 0 else None,
    }


def _uplift(snapshot: Snapshot, tasks: Sequence[TaskSnapshot]) -> UpliftReply | None:
    found = snapshot.uplift(tasks)
    return None if found is None else UpliftReply(**found._asdict())


def _open(snapshot: Snapshot) -> OpenEpoch | None:
    if snapshot.open is None:
        return None
    left = snapshot.open.opened_at + snapshot.space.sync.deadline_s - snapshot.now
    return OpenEpoch(epoch=snapshot.open.epoch, deadline_ms=max(0, int(1e3 * left)))


def _why(snapshot: Snapshot, each: TaskSnapshot) -> str:
    """Return in a sentence why a task plays as it does."""
    code = each.state.get("reason", "")
    words = sentence(code) if code else "no decisions yet" if each.state else ""
    if code == "paused" and snapshot.row.paused:
        words = f"{sentence(code)}: {snapshot.row.paused}"
    news = dict.fromkeys(alarm.kind for alarm in each.alarms if alarm.looked_at is None)
    followed = ["followed"] if each.gauges.get("followed") else []
    return "; ".join(filter(None, [words, *map(sentence, [*news, *followed])]))


def _agent(snapshot: Snapshot, each: TaskSnapshot) -> AgentReply:
    lead = lead_interval(snapshot.space, [each])
    return AgentReply(
        task=each.task,
        index=each.row.place,
        uses=each.uses,
        state=snapshot.state_of(each),
        streams=each.streams,
        last_seen_s=each.last_seen_s,
        epoch=each.epoch,
        epoch_lag=None if each.epoch is None else max(0, snapshot.row.epoch - each.epoch),
        lease_s=snapshot.lease_of(each),
        alpha=each.alpha,
        n=each.n,
        counters=each.counters,
        sums=each.sums,
        gauges=each.gauges,
        reasons=each.reasons,
        why=_why(snapshot, each),
        outlook=each.state.get("outlook", ""),
        theta=each.state.get("theta", []),
        halfwidth=each.state.get("halfwidth", []),
        lead_mean=None if lead is None else lead[0],
        lead_halfwidth=None if lead is None else lead[1],
        uplift=_uplift(snapshot, [each]),
        heterogeneity=snapshot.heterogeneity.get(each.task),
        alarms=[
            AlarmLine(**{name: getattr(alarm, name) for name in AlarmLine.model_fields})
            for alarm in each.alarms
        ],
    )
