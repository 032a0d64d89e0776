"""Alerts: pure functions from the figures of agents to what an operator should look at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from guardband.live.protocol.messages import KINDS
from guardband.live.protocol.space import SpaceSettings
from guardband.live.server.alarms import ALARMS, Noticed, watches_fit
from guardband.live.server.recent import DAY_S, Span

__all__ = [
    "Alert",
    "SpaceFacts",
    "TaskFacts",
    "alerts_of",
    "lead_interval",
    "loss_by_kind",
    "most_residual",
    "runbook_of",
]

# Thresholds, as the runbook has them.
LOSS_SHARE = 0.05  # of resolved decisions without a reward of their own
LOSS_ENOUGH = 100  # resolved decisions before the share of losses is tested
LOSS_CHANCE = 1e-4  # how unlikely a difference between kinds of decision must be
FLOOR_CHANCE = 0.01  # of the interval of reward minus floor, over all times together
FLOOR_ENOUGH = 30
FLOOR_TIGHTEST = 300  # observations around which that interval is as narrow as can be
RESIDUAL_RATIO = 1.2
RESIDUAL_CHANCE = 0.01  # of noise as declared going beyond what is allowed for chance, ever
LEASE_SHARE = 0.25
OPEN_DEADLINES = 5.0
PENDING_WINDOWS = 2.0
RECENT_S = DAY_S  # how long a conflict, a refused increment, a restore or an alarm is shown

LOSSES = ("defaulted", "discarded", "orphan")


class Judged(Protocol):
    """What has counters and sums: a task in facts or in a snapshot."""

    @property
    def counters(self) -> Mapping[str, int]:
        """How often things happened."""

    @property
    def sums(self) -> Mapping[str, float]:
        """Sums over counted decisions."""


class Alert(NamedTuple):
    """One thing to look at."""

    id: str
    severity: str  # "page": now; "ticket": this week
    task: str | None
    text: str
    remedy: str

    @property
    def key(self) -> tuple[str, str | None]:
        """By which it is the same one, whatever its words are."""
        return self.id, self.task


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """What is known of a task.

    Counters and sums are of all its streams since they began; `hour` and `day` have those of the
    last hour or two and of the last day or so, and are None where that is all of them.
    """

    task: str
    active: bool = True  # False: its data are left out, but it may still decide
    hour: Span | None = None
    day: Span | None = None
    alarms: Mapping[str, Noticed] = field(default_factory=dict)  # by kind
    held: bool = False  # it keeps to the baseline until somebody has looked at an alarm
    apart: bool = False  # it has left the pool
    counters: Mapping[str, int] = field(default_factory=dict)
    sums: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    last_seen_s: float | None = None  # None: it has left in good order, or never came
    heterogeneity: float | None = None
    conflicts: int = 0  # recent ones
    invalid: int = 0  # recent refused increments
    round: int = 0  # the latest in its data, where tasks number rounds
    ahead: bool = False  # whether epochs are closed without it, because of these


@dataclass(frozen=True, kw_only=True)
class SpaceFacts:
    """What is known of a space."""

    space: SpaceSettings
    agents: Sequence[TaskFacts] = ()
    open_for_s: float | None = None  # how long the open epoch has been open
    restores: int = 0  # recent ones


def alerts_of(facts: SpaceFacts) -> list[Alert]:
    """Return all alerts of a space, the urgent ones first."""
    found = [*_of_space(facts), *_of_rounds(facts)]
    for agent in facts.agents:
        found += _of_margin(agent)  # it decides, whether its data count or not
        found += _of_alarms(facts.space, agent)
        for judge in (_of_promise, _of_data, _of_life) if agent.active else ():
            found += judge(facts.space, agent)
    return sorted(found, key=lambda alert: (alert.severity, alert.id, alert.task or ""))


def _of_rounds(facts: SpaceFacts) -> Iterator[Alert]:
    """Yield which tasks number their rounds otherwise than the others."""
    for agent in (each for each in facts.agents if each.ahead and each.active):
        yield Alert(
            "rounds-ahead",
            "ticket",
            agent.task,
            f"it is in round {agent.round:,}, far beyond the other tasks: its data are left out "
            "of epochs, which nobody else could adopt",
            "number rounds alike in all tasks (days, say, and not hours); then start the "
            "task with a new state_dir",
        )


def runbook_of(alert: Alert) -> str:
    """Return where the documentation says what to do about an alert."""
    return f"docs/runbook.md#{alert.id}"


def lead_interval(
    space: SpaceSettings, agents: Sequence[Judged], chance: float = FLOOR_CHANCE
) -> tuple[float, float] | None:
    """Return the mean of reward minus floor, and a half width that holds at all times together.

    It fails with probability `chance` at most.

    Robbins' normal mixture for rewards in [low, high], whatever their distribution: looking at it
    again and again does not make it fail more often, and it is right for few rewards, too. The
    observed variance is not used: rare rewards would make it zero for long.

    Agents that count decisions without a baseline reward (`untold`) are left out: their floor is a
    share of an upper bound of the baseline's reward, which a safe agent may well stay below.
    """
    known = [a for a in agents if "lead" in a.sums and not a.counters.get("untold")]
    n = sum(a.sums.get("counted", 0) for a in known)
    if n < FLOOR_ENOUGH:
        return None
    mean = sum(a.sums["lead"] for a in known) / n
    sigma = 0.5 * (space.rewards.high - space.rewards.low)
    sure = 2.0 * math.log(1.0 / chance)
    prior = FLOOR_TIGHTEST / (sure + math.log1p(sure))
    width = sigma / n * math.sqrt((n + prior) * (math.log1p(n / prior) + sure))
    return (mean, width) if math.isfinite(mean) and math.isfinite(width) else None


def most_residual(freedom: float) -> float:
    """Return above which ratio residuals vary more than declared, and not by chance.

    Laurent and Massart's bound for chi-square with that many degrees of freedom, at a chance that
    adds up to RESIDUAL_CHANCE over all of them: it holds at all looks together.
    """
    k = max(1.0, freedom)
    x = math.log(k * (k + 1.0) / RESIDUAL_CHANCE)
    return max(RESIDUAL_RATIO, 1.0 + 2.0 * math.sqrt(x / k) + 2.0 * x / k)


def loss_by_kind(counters: Mapping[str, int]) -> float | None:
    """Return the chance of rewards going missing so unequally over kinds of decision, or None.

    A chi-square test of (lost, kept) by kind, from the counters lost_KIND and resolved_KIND;
    None where they are not reported, or too few for the test.
    """
    table = []
    for kind in KINDS:
        lost, all_ = counters.get(f"lost_{kind}"), counters.get(f"resolved_{kind}")
        if lost is not None and all_:
            table.append((min(lost, all_), all_))
    lost, whole = sum(row[0] for row in table), sum(row[1] for row in table)
    if len(table) < 2 or lost in (0, whole):
        return None
    share = lost / whole
    if min(all_ * min(share, 1.0 - share) for _, all_ in table) < 5.0:
        return None  # the approximation is poor
    statistic = sum((k - n * share) ** 2 / (n * share * (1.0 - share)) for k, n in table)
    if len(table) == 2:
        return math.erfc(math.sqrt(0.5 * statistic))
    return math.exp(-0.5 * statistic)


def _of_space(facts: SpaceFacts) -> Iterator[Alert]:
    deadline = facts.space.sync.deadline_s
    if facts.open_for_s is not None and facts.open_for_s > OPEN_DEADLINES * deadline:
        yield Alert(
            "epoch-open",
            "ticket",
            None,
            f"an epoch has been open for {facts.open_for_s:.0f} s; its deadline was {deadline:g} s",
            "see whether the coordinator's store answers (/readyz) and its clock is right",
        )
    if facts.restores:
        yield Alert(
            "server-restore",
            "ticket",
            None,
            "the coordinator's store was older than what agents have seen: it was restored",
            "nothing to do if you restored a backup: agents send what is missing; else find out "
            "who did",
        )


def _of_margin(agent: TaskFacts) -> Iterator[Alert]:
    margin = agent.gauges.get("margin_min")
    if margin is not None and margin < 0.0:
        yield Alert(
            "margin-below-zero",
            "page",
            agent.task,
            f"a learned action was played with a margin of {margin:.3g} to its floor",
            "pause learning: this must not happen; keep the agent's journal for the analysis",
        )


def _of_alarms(space: SpaceSettings, agent: TaskFacts) -> Iterator[Alert]:
    """Alarms last until somebody has looked at them, or nothing of theirs is left.

    That is: they are a day old, and the task neither keeps to the baseline nor is out of the pool
    because of them. Where agents only warn, all is left, but for what a window forgets.
    """
    warned = space.on_alarm == "warn" and not space.window
    for kind, noticed in sorted(agent.alarms.items()):
        lasting = warned or agent.held or (kind == "fit" and agent.apart)
        if noticed.age_s <= RECENT_S or lasting:
            text, remedy = ALARMS[kind]
            again = "" if noticed.times == 1 else f", {noticed.times} times"
            words = f"{text} (noticed after {noticed.round} decisions{again})"
            yield Alert(kind, "page", agent.task, words, remedy)


def _lead(space: SpaceSettings, agent: TaskFacts) -> tuple[float, float] | None:
    """Return the interval of reward minus floor over the last day, or over all if that is little.

    Half of the chance is for all since the beginning. The other half is for days, of which one
    begins with every hour: 1 / (h (h + 1)) of it for the h-th.
    """
    day = agent.day
    if day is None or (0 < day.sums.get("counted", 0) < FLOOR_ENOUGH):
        return lead_interval(space, [agent], 0.5 * FLOOR_CHANCE)
    chance = 0.5 * FLOOR_CHANCE / (day.after_h * (day.after_h + 1))
    return lead_interval(space, [day], chance)


def _of_promise(space: SpaceSettings, agent: TaskFacts) -> Iterator[Alert]:
    lead = _lead(space, agent)
    if lead is not None and lead[0] + lead[1] < 0.0:
        yield Alert(
            "reward-below-floor",
            "page",
            agent.task,
            f"rewards are below the floor: by {-lead[0]:.3g} ± {lead[1]:.2g} on average",
            "pause learning; see whether the baseline's rewards are reported right, whether noise "
            "and bounds are as declared, and whether the world has changed",
        )
    if agent.heterogeneity is not None and agent.heterogeneity > 1.0:
        yield Alert(
            "heterogeneity",
            "ticket" if watches_fit(space) else "page",  # a monitor has a stated rate, and acts
            agent.task,
            f"this task does not share the others' parameter (statistic {agent.heterogeneity:.2g}"
            ", at most 1 where it does)",
            "compare what its features and rewards mean with the others; if need be, quarantine it",
        )
    ratio = agent.gauges.get("residual_ratio")
    if ratio is not None and ratio > most_residual(_freedom(space, agent)):
        yield Alert(
            "residual-variance",
            "ticket",
            agent.task,
            f"rewards vary {ratio:.2f} times as much as "
            + ("[0, 1] allows" if space.noise is None else f"the declared noise ({space.noise:g})"),
            "declare a larger noise in a new space (guardband space revise); the promise rests on "
            "it",
        )


def _freedom(space: SpaceSettings, agent: TaskFacts) -> float:
    """Return over how many observations residuals are taken, less one for each feature."""
    n = agent.gauges.get("own_n", 0.0)
    if space.sync.min_batch == 1:  # else what is said of others is newer than the residuals
        n = agent.gauges.get("observations", n + agent.gauges.get("foreign_n", 0.0))
    return n - space.dim


def _losses(space: SpaceSettings, counters: Mapping[str, int]) -> tuple[int, int]:
    """Return how many decisions ended without a reward of their own, and how many ended."""
    lost = sum(counters.get(name, 0) for name in LOSSES)
    resolved = lost + counters.get("observed", 0)
    if space.rewards.silence == "default":
        lost -= counters.get("defaulted", 0)
    return lost, resolved


def _lately(space: SpaceSettings, agent: TaskFacts) -> Mapping[str, int]:
    """Return the counters by which losses are judged: as far back as it takes for enough of them.

    A process that was killed loses the rewards of what it had decided, once. Where nothing was lost
    for a day, nothing is judged.
    """
    for span in (agent.hour, agent.day):
        if span is not None and _losses(space, span.counters)[1] >= LOSS_ENOUGH:
            return span.counters
    if agent.day is not None and not _losses(space, agent.day.counters)[0]:
        return {}
    return agent.counters


def _of_data(space: SpaceSettings, agent: TaskFacts) -> Iterator[Alert]:
    counters = _lately(space, agent)
    lost, resolved = _losses(space, counters)
    # With such silence lost_KIND has the defaulted in it, and they may well differ by kind.
    chance = None if space.rewards.silence == "default" else loss_by_kind(counters)
    uneven = chance is not None and chance < LOSS_CHANCE
    if (resolved >= LOSS_ENOUGH and lost > LOSS_SHARE * resolved) or uneven:
        share = f"{lost / resolved:.1%} of rewards are missing" if resolved else "rewards missing"
        yield Alert(
            "informative-loss",
            "page",
            agent.task,
            share + (", not equally often for all kinds of decision" if uneven else ""),
            "find out why: if low rewards go missing more often than high ones, the estimates are "
            "wrong and nothing is promised; make sure that every reward is sent, also low ones",
        )
    if agent.conflicts:
        yield Alert(
            "conflict",
            "ticket",
            agent.task,
            f"{agent.conflicts} conflict(s): a state directory was copied or rolled back",
            "give every process a state directory of its own, and do not restore old ones",
        )
    if counters.get("damaged"):
        times = counters["damaged"]
        text = f"its journal was damaged {times} time(s), and mended from what was sound"
        remedy = "see the agent's log for what is lost, and look at the disk of its host"
        yield Alert("damage", "ticket", agent.task, text, remedy)
    if agent.invalid:
        yield Alert(
            "invalid-increment",
            "ticket",
            agent.task,
            f"{agent.invalid} upload(s) refused: no data within the declared bounds give them",
            "see the events for the check that failed; compare the agent's version and bounds",
        )


def _of_life(space: SpaceSettings, agent: TaskFacts) -> Iterator[Alert]:
    seen, lease = agent.last_seen_s, agent.gauges.get("lease_s")
    if seen is not None and seen > space.sync.live_s:
        yield Alert(
            "stale",
            "ticket",
            agent.task,
            f"not heard of for {_duration(seen)}",
            "see whether the agent runs and reaches the coordinator; its decisions stay safe, "
            "the others just learn without it",
        )
    if space.lease_s is not None and seen is not None:
        # What the agent last said, or what must be left by now, whichever is less.
        left = min(space.lease_s - seen, math.inf if lease is None else lease)
        if left < LEASE_SHARE * space.lease_s:
            yield Alert(
                "lease",
                "ticket",
                agent.task,
                f"exploration ends in {_duration(max(0.0, left))} unless the agent gets through",
                "restore the agent's way to the coordinator; until then it plays the baseline",
            )
    oldest = agent.gauges.get("oldest_pending_s")
    if oldest is not None and oldest > PENDING_WINDOWS * space.rewards.window_s:
        yield Alert(
            "pending",
            "ticket",
            agent.task,
            f"a decision has waited {_duration(oldest)} for its reward; the window is "
            f"{_duration(space.rewards.window_s)}",
            "see whether the agent's background thread runs: windows are not being closed",
        )


def _duration(seconds: float) -> str:
    for size, unit in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
