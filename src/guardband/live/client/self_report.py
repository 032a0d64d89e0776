"""What a live agent tells people about itself; nothing of it enters a decision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.client.agent_state import ENDS, SUMS
from guardband.live.client.decisions import Decisions
from guardband.live.client.windows import End
from guardband.live.protocol.messages import KINDS, AgentStatus, Report
from guardband.reasons import CONSERVATIVE, HELD_BACK, sentence

__all__ = ["make_report"]

RECENT = 1000  # decisions over which margins and shares are taken
MODES = {"paused": "paused", "lease": "lease expired", "shadow": "shadow", "no-config": "offline"}
HELD = {*CONSERVATIVE, *HELD_BACK}
TALLY_SQL = """
    SELECT kind, reason, count(*), sum(floor IS NOT NULL AND baseline_reward IS NULL)
    FROM decision WHERE seq > ? AND seq <= ? GROUP BY 1, 2
"""
UPTO_SQL = "SELECT coalesce(max(count), 0) FROM tally WHERE stream = ? AND key = 'upto'"
LAST_SQL = "SELECT coalesce(max(seq), 0) FROM decision"
RECENT_SQL = """
    SELECT kind, reason, margin, baseline_reward FROM decision WHERE seq > ? ORDER BY seq DESC
"""


def make_report(store: Decisions) -> Report:
    """Return how the agent fares now."""
    # What may take long is read aside first, without the lock: only what was committed.
    stream = store.stream
    ((before,),) = store.journal.query_aside(UPTO_SQL, (stream,))
    ((last,),) = store.journal.query_aside(LAST_SQL)
    last = max(last, before)
    seen = store.journal.query_aside(TALLY_SQL, (before, last))
    recent = store.journal.query_aside(RECENT_SQL, (last - RECENT,))
    with store:
        ((upto,),) = store.journal.query(UPTO_SQL, (store.stream,))
        if (store.stream, upto) != (stream, before):  # another report was faster, or a new stream
            stream, seen, last = store.stream, [], upto
        seen += store.journal.query(TALLY_SQL, (last, store.last))
        for kind, reason, count, untold in seen:
            store.journal.count(stream, kind, count)
            store.journal.count(stream, f"why:{reason}", count)
            if untold:  # the floor is a share of a bound: rewards below it prove nothing
                store.journal.count(stream, "untold", untold)
        if seen:
            store.journal.count(stream, "upto", store.last - upto)
        counts = store.journal.counts(store.stream)
        tally = store.tally.tolist()
        pending = store.last - store.settled
        kept = store.journal.find(store.settled + 1) if pending else None
        oldest = 0.0 if kept is None else store.clock.now() - kept.at
        picture = _picture(store)
        held_back, paused, lease = store.held_back(), store.paused, store.lease_left()
        conflicts, epoch = store.chain.conflicts, store.chain.epoch
        entry = store.chain.since
        pooled = 0 if store.chain.pooled is None else store.chain.pooled.n
        own_n = store.n
    gauges = {
        "pending": float(pending),
        "oldest_pending_s": max(0.0, oldest),
        "epoch": float(epoch),
        "own_n": float(own_n),
        "foreign_n": float(pooled - (0 if entry is None else entry.n)),
        **picture,
        **_recent(recent),
        **_gate(store, picture, recent),
    }
    if math.isfinite(lease):
        gauges["lease_s"] = max(0.0, lease)
    reasons = {
        key.removeprefix("why:"): count
        for key, count in counts.items()
        if key.startswith("why:") and key.removeprefix("why:") in HELD
    }
    theta, halfwidth = _theta(store, picture.get("beta", math.nan))
    why = _why(held_back, paused, recent)
    return Report(
        counters=_counters(counts, tally) | {"conflicts": conflicts},
        sums=dict(zip(SUMS, tally[len(KINDS) * len(ENDS) :], strict=True)),
        gauges={key: value for key, value in gauges.items() if math.isfinite(value)},
        reasons=reasons,
        state=AgentStatus(
            mode="running" if held_back is None else MODES[held_back],
            why=why[:500],
            theta=tuple(theta),
            halfwidth=tuple(halfwidth),
            uses=store.setup.uses,
        ),
    )


def _counters(counts: dict[str, int], tally: list[float]) -> dict[str, int]:
    """Return all counters: decisions by kind, and how they ended."""
    kinds = {kind: counts.get(kind, 0) for kind in KINDS}
    table = np.array(tally[: len(KINDS) * len(ENDS)], int).reshape(len(KINDS), len(ENDS))
    ended = dict(zip((end.name.lower() for end in ENDS), table.sum(axis=0).tolist(), strict=True))
    found = {"decisions": sum(kinds.values()), **kinds, **ended}
    for name in ("late", "orphan", "duplicate", "lost", "untold"):
        found[name] = counts.get(name, 0)
    found["shadow"] = counts.get("why:shadow", 0)
    for kind, row in zip(KINDS, table.tolist(), strict=True):
        found[f"resolved_{kind}"] = sum(row)
        found[f"lost_{kind}"] = sum(row) - row[ENDS.index(End.OBSERVED)]
    return found


def _picture(store: Decisions) -> dict[str, float]:
    """Return what is known of the estimate."""
    learner = store.learner
    own, estimate, pooled = learner.state.own, learner.state.estimate, learner.group.pooled
    gram = own.gram + pooled.gram
    moment = own.moment + pooled.moment
    n, squares = (own.scalars + pooled.scalars)[:2].tolist()
    uses = np.ix_(store.setup.uses, store.setup.uses)
    ridge = learner.group.engine.ridge
    found = {
        "beta": learner.radius(),
        "logdet": float(estimate.scalars[0]),
        "lambda_min": float(np.linalg.eigvalsh(gram[uses])[0]) + ridge,
    }
    freedom = n - len(moment)
    if freedom >= 10:
        theta = estimate.theta
        rest = squares - 2.0 * float(moment @ theta) + float(theta @ gram @ theta)
        unit = 1.0 if store.space.algorithm == "guard-ucb" else _variance(store)
        found["residual_ratio"] = max(0.0, rest) / freedom / unit
    return found


def _variance(store: Decisions) -> float:
    """Return the variance of a reward that the paper's algorithms assume."""
    return float(store.learner.group.engine.terms.sigma) ** 2


def _theta(store: Decisions, beta: float) -> tuple[list[float], list[float]]:
    with store.lock:
        theta: Floats = store.learner.state.estimate.theta.copy()
        spread = np.diag(store.learner.state.estimate.inverse).copy()
    width = beta * np.sqrt(np.maximum(spread, 0.0))
    if not (np.isfinite(theta).all() and np.isfinite(width).all()):
        return [], []
    return theta.tolist(), width.tolist()


def _recent(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    """Return margins and the share of conservative rounds among recent decisions."""
    found: dict[str, float] = {}
    margins = sorted(m for kind, _, m, _ in rows if kind == "learned" and m is not None)
    if margins:
        found["margin_min"] = margins[0]
        found["margin_p05"] = margins[int(0.05 * (len(margins) - 1))]
    if rows:
        careful = sum(reason in HELD for _, reason, _, _ in rows)
        found["conservative_recent"] = careful / len(rows)
        held = sum(kind == "baseline" and reason in HELD for kind, reason, *_ in rows)
        found["baseline_recent"] = held / len(rows)  # not where it is the agent's favourite
    return found


def _gate(
    store: Decisions, picture: dict[str, float], rows: list[tuple[Any, ...]]
) -> dict[str, float]:
    """Return what the paper's gate asks of lambda_min(V), by the newest baseline reward."""
    told = next((r for _, _, _, r in rows if r is not None), None)
    if store.space.algorithm != "disc-ucb" or told is None or told <= 0.0:
        return {}
    alpha = store.space.alphas.get(store.setup.task, store.space.alpha)
    reach = 2.0 * store.space.feature_bound * picture["beta"]
    return {"lambda_required": (reach / (alpha * told)) ** 2}


def _why(held_back: str | None, paused: str | None, rows: list[tuple[Any, ...]]) -> str:
    """Return in a sentence what the agent is at."""
    if held_back == "paused":
        return f"{sentence('paused')}: {paused}"
    if held_back is not None:
        return sentence(held_back)
    if not rows:
        return "no decisions yet"
    return sentence(str(rows[0][1]))
