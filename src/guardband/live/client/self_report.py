"""What a live agent says of itself: its report for the dashboard, and its main numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from guardband.agent import Outlook
from guardband.live.client.agent_state import ENDS, GAINS, SUMS
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.look_ahead import LookAhead
from guardband.live.client.windows import End
from guardband.live.protocol.messages import KINDS, AgentStatus, Report
from guardband.reasons import CONSERVATIVE, HELD_BACK, first_code

__all__ = ["Reporter", "make_report", "make_status"]

RECENT = 1000  # decisions over which margins and shares are taken
MODES = {"paused": "paused", "lease": "lease expired", "shadow": "shadow", "no-config": "offline"}
CAUTIOUS = {*CONSERVATIVE, *HELD_BACK}
COUNTED = ("late", "orphan", "duplicate", "lost", "outdated", "untold", "overridden", "damaged")
TALLY_SQL = """
    SELECT kind, reason, count(*), sum(floor IS NOT NULL AND baseline_reward IS NULL)
    FROM decision WHERE seq > ? AND seq <= ? GROUP BY 1, 2
"""
UPTO_SQL = "SELECT coalesce(max(count), 0) FROM tally WHERE stream = ? AND key = 'upto'"
LAST_SQL = "SELECT coalesce(max(seq), 0) FROM decision"
RECENT_SQL = """
    SELECT kind, reason, margin, baseline_reward FROM decision WHERE seq > ? ORDER BY seq DESC
"""


class Reporter:
    """Makes the reports that are sent.

    Where an upload must hold a batch of observations, figures are those of the newest checkpoint:
    from two sets of figures with one observation between them its features and its reward can be
    computed, as from two sums.
    """

    def __init__(self, store: AgentStore) -> None:
        self._store, self._ahead = store, LookAhead(store)
        self._figures = Report()  # as they were at the newest checkpoint

    def make(self) -> Report:
        """Return the report of now."""
        self._ahead.look()
        report, state = make_report(self._store), self._store.state
        if state.space.sync.min_batch <= 1:
            return report
        # A new start has no batch yet, and what was measured before it may be of one that was not
        # handed in.
        first = report.counted or not state.before.counted
        if report.counted == state.stream.newest.sums.n and first:
            self._figures = report
        return report.with_figures_of(self._figures)


def make_report(store: AgentStore) -> Report:
    """Return the report of this moment."""
    # What may take long is read aside first, without the lock: only what was committed.
    journal = store.journal
    stream = store.state.stream_id
    ((before,),) = journal.query_aside(UPTO_SQL, (stream,))
    ((last,),) = journal.query_aside(LAST_SQL)
    last = max(last, before)
    seen = journal.query_aside(TALLY_SQL, (before, last))
    recent = journal.query_aside(RECENT_SQL, (last - RECENT,))
    with store as state:
        ((upto,),) = journal.query(UPTO_SQL, (state.stream_id,))
        if (state.stream_id, upto) != (stream, before):  # another report was faster, or a stream
            seen, last = [], upto  # has begun since
        seen += journal.query(TALLY_SQL, (last, state.last))
        _count(store, seen, state.last - upto)
        counts = journal.counts(state.stream_id)
        now = store.clock.now()
        figures = state.learner.figures()
        theta, halfwidth = state.learner.estimate()
        figures["reused"] = float(state.learner.reused)
        gauges = _gauges(store, now) | figures | _recent(recent) | _gate(store, figures, recent)
        code, tally = state.held_back(now), state.tally.tolist()
        measured = state.before.gains.plus(*state.gains)  # of all this folder's streams
        conflicts = state.stream.conflicts
    outlook = store.watch.outlook
    if outlook is not None and outlook.stuck is not None:
        gauges["stuck"] = float(outlook.stuck)
    finite = bool(np.isfinite(theta).all() and np.isfinite(halfwidth).all())
    reasons: Counter[str] = Counter()
    for key, n in counts.items():
        if key.startswith("why:"):
            reasons[first_code(key.removeprefix("why:"))] += n
    return Report(
        counters=_counters(counts, tally) | {"conflicts": conflicts},
        sums=dict(zip(SUMS, tally[len(KINDS) * len(ENDS) :], strict=True))
        | dict(zip(GAINS, measured, strict=True))
        | {"logged": float(counts.get("logged", 0))},
        gauges={key: value for key, value in gauges.items() if math.isfinite(value)},
        reasons={key: count for key, count in reasons.items() if key in CAUTIOUS},
        state=AgentStatus(
            mode="running" if code is None else MODES[code],
            reason=code or (str(recent[0][1]) if recent else ""),
            theta=tuple(theta.tolist()) if finite else (),
            halfwidth=tuple(halfwidth.tolist()) if finite else (),
            uses=store.setup.uses,
            outlook="" if outlook is None else _in_a_line(outlook)[:500],
        ),
    )


def _in_a_line(outlook: Outlook) -> str:
    """Return what an outlook says as sentences: neither cards nor terminals keep its lines."""
    said, *helps = str(outlook).split("\n- ")
    return said.replace("\n", " ") + (f" {'; '.join(helps)}." if helps else "")


def make_status(store: AgentStore, trouble: str | None) -> dict[str, Any]:
    """Return an agent's main numbers; `trouble` is why the coordinator is not reached."""
    with store as state:
        return {
            "space": store.setup.space,
            "task": store.setup.task,
            "stream": state.stream.stream,
            "config_version": state.version,
            "mode": state.held_back(store.clock.now()) or "running",
            "decisions": state.last,
            "pending": store.pending,
            "counted": state.n,  # in this stream
            "counted_before": state.before.counted,  # in this folder's streams before it
            "acknowledged": state.stream.base.n,  # of those, what the coordinator has
            "observations": state.learner.observations(),  # own and others', in use
            "epoch": state.stream.epoch,
            "newest_epoch": state.newest_epoch,  # that was heard of, adopted or not
            "waiting_epochs": [each.epoch for each in state.waiting],
            "due": state.due,  # whether an epoch is
            "apart": state.apart,  # whether the task has left the pool
            "trouble": trouble,
        }


def _count(store: AgentStore, seen: list[tuple[Any, ...]], new: int) -> None:
    """Add decisions that no report has counted yet to the counters, by kind and reason."""
    stream = store.state.stream_id
    for kind, reason, count, untold in seen:
        store.journal.count(stream, kind, count)
        store.journal.count(stream, f"why:{reason}", count)
        if untold:  # the floor is a share of a bound: rewards below it prove nothing
            store.journal.count(stream, "untold", untold)
    if seen:
        store.journal.count(stream, "upto", new)


def _gauges(store: AgentStore, now: float) -> dict[str, float]:
    """Return where decisions, the stream and the lease stand."""
    state = store.state
    oldest = store.journal.find(state.settled + 1) if state.pending else None
    pooled, entry, spending = state.stream.pooled, state.stream.since, state.learner.spending
    return {
        "pending": float(store.pending),
        "oldest_pending_s": 0.0 if oldest is None else max(0.0, now - oldest.at),
        "counts_at": math.nan if oldest is None else oldest.at + state.space.rewards.window_s,
        "epoch": float(state.stream.epoch),
        "own_n": float(state.n),
        "observations": float(state.learner.observations()),  # that count, own and others'
        "foreign_n": float((pooled.n if pooled else 0) - (entry.n if entry else 0)),
        "lease_s": max(0.0, state.lease_left(now)),
        "budget_left": state.learner.allowance - state.spent,
        "cost_left": math.nan if spending is None else spending.left,
        "holdback": state.learner.holdback or math.nan,
        "followed": float(state.alarms.follows(state.learner.monitors.plays)) or math.nan,
    }


def _counters(counts: dict[str, int], tally: list[float]) -> dict[str, int]:
    """Return all counters: decisions by kind, and how they ended."""
    kinds = {kind: counts.get(kind, 0) for kind in KINDS}
    table = np.array(tally[: len(KINDS) * len(ENDS)], int).reshape(len(KINDS), len(ENDS))
    ended = dict(zip((end.name.lower() for end in ENDS), table.sum(axis=0).tolist(), strict=True))
    found = {"decisions": sum(kinds.values()), **kinds, **ended}
    for name in COUNTED:
        found[name] = counts.get(name, 0)
    found["shadow"] = counts.get("why:shadow", 0)
    for kind, row in zip(KINDS, table.tolist(), strict=True):
        found[f"resolved_{kind}"] = sum(row)
        found[f"lost_{kind}"] = sum(row) - row[ENDS.index(End.OBSERVED)]
    return found


def _recent(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    """Return margins and the share of conservative rounds among recent decisions."""
    found: dict[str, float] = {}
    margins = sorted(m for kind, _, m, _ in rows if kind == "learned" and m is not None)
    if margins:
        found["margin_min"] = margins[0]
        found["margin_p05"] = margins[int(0.05 * (len(margins) - 1))]
    if rows:
        said = {reason for _, reason, _, _ in rows}
        cautious = {reason for reason in said if first_code(reason) in CAUTIOUS}
        careful = sum(reason in cautious for _, reason, _, _ in rows)
        found["conservative_recent"] = careful / len(rows)
        held = sum(kind == "baseline" and reason in cautious for kind, reason, *_ in rows)
        found["learned_recent"] = sum(kind != "baseline" for kind, *_ in rows) / len(rows)
        found["baseline_recent"] = held / len(rows)  # not where it is most promising
    return found


def _gate(
    store: AgentStore, figures: dict[str, float], rows: list[tuple[Any, ...]]
) -> dict[str, float]:
    """Return what the algorithm's gate asks of lambda_min(V), by the newest baseline reward."""
    told = next((r for _, _, _, r in rows if r is not None), None)
    if told is None:
        return {}
    state = store.state
    alpha = state.space.alpha_of(store.setup.task)
    need = state.learner.policy.gate_need(alpha, figures["beta"], told)
    return {} if need is None else {"lambda_required": need}
