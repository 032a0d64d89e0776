"""What to expect of an agent: whether it leaves the baseline, when, what blocks it, what it costs.

Agents with the kernels that really decide play worlds that the logs allow, see `possible`: in
strict mode, in policy mode, and in strict mode with a budget for trials; each once from nothing,
and once after rows like those that are left to be learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np

from guardband.agent import blocked_features, listing
from guardband.algorithms import GuardUCB
from guardband.checks import check_whole
from guardband.seeds import stream, trial_seed
from guardband.studies.logs import StudyLogs
from guardband.studies.possible import PossibleWorld, PossibleWorlds, possible_worlds
from guardband.studies.runs import AgentRun, LogsLearned, learn_logs, look_further, run_agent

__all__ = ["CANT_TELL", "Expectation", "Prospect", "Prospects", "expect"]

CANT_TELL = "can't tell"
DRAWS = 25  # possible worlds
AGREED = 5  # of them, if agents never left in these
LEAST_DRAWS, LEAST_HORIZON = 3, 1_000  # whatever that takes
# Of a core, about: for each agent, as much again for more of its first plays, which are often a
# matter of luck, and for learning logs.
SECONDS, LEARNING = 6.0, 12.0
FIXED, ROW, ENTRY = 4e-6, 5e-7, 2.5e-9  # of a round, of a row of logs, of a number in K d^2 or d^2
MOST, FEW = 2.0 / 3.0, 1.0 / 3.0  # of the worlds
TRIAL_SHARE = 0.01  # of what the baseline earns in all rounds, if no budget for trials is stated
MODES = ("strict", "policy", "trial_budget")
# Settings that a study can use: the others belong to a mode, or to what only live rounds have.
LIVE = {"mode", "trial_budget", "max_loss", "realised", "anchors", "baseline_tolerance", "tolerate"}
OWN = frozenset(f.name for f in fields(GuardUCB)) - LIVE


@dataclass(frozen=True)
class Prospect:
    """What to expect of one agent.

    Attributes
    ----------
    can_leave
        Whether it makes a learned play within the rounds: True, False, or None, "can't tell", where
        that depends on what the logs leave open.
    blocked_by
        The features about which nothing that it may play teaches enough.
    first_learned
        The round of the first learned play, the median of all worlds; None: not within the rounds.
    half_learned
        The round from which on half of 100 plays are learned ones; None: not within the rounds.
    cost
        The most by which its expected rewards, summed, fall behind the baseline's, until half of
        the plays are learned ones or the rounds end.
    because
        The answer in a sentence.
    settled
        Whether it stays because the baseline looks best to it.
    """

    can_leave: bool | None
    blocked_by: tuple[str, ...]
    first_learned: int | None
    half_learned: int | None
    cost: float
    because: str
    settled: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what `guardband study --json` has of it."""
        return {
            "can_leave": CANT_TELL if self.can_leave is None else self.can_leave,
            "blocked_by": list(self.blocked_by),
            "first_learned": self.first_learned,
            "half_learned": self.half_learned,
            "cost": self.cost,
        }


@dataclass(frozen=True)
class Prospects:
    """What to expect of one mode, with logs that are learned first and without."""

    with_logs: Prospect
    without_logs: Prospect

    def to_json(self) -> dict[str, Any]:
        """Return what `guardband study --json` has of it."""
        return {
            "with_logs": self.with_logs.to_json(),
            "without_logs": self.without_logs.to_json(),
        }


@dataclass(frozen=True)
class Expectation:
    """What to expect of agents with the features and settings of a study.

    Attributes
    ----------
    strict, policy, trial_budget
        Of strict mode, of policy mode, and of strict mode with a budget for trials.
    rounds
        How far they look.
    rows
        How many rows of logs agents learn first, where they do.
    budget
        That for trials.
    notes
        What was simplified, in sentences.
    """

    strict: Prospects
    policy: Prospects
    trial_budget: Prospects
    rounds: int
    rows: int
    budget: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what `guardband study --json` has of it."""
        return {mode: getattr(self, mode).to_json() for mode in MODES}


def expect(
    logs: StudyLogs,
    *,
    alpha: float,
    rounds: int,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Expectation:
    """Return what to expect of agents, by simulation on the rows that were looked at.

    Parameters
    ----------
    logs
        The rows that were looked at; as many as were not are learned.
    alpha
        The share of the baseline's reward that may be lost.
    rounds
        How far to look.
    settings
        Settings of the agent by name, such as theta_bound; those that are no settings of Guard-UCB
        are passed over, and so are those that are None. With a `trial_budget` it is that which is
        tried, else 1 % of what the baseline earns in all rounds.
    seed
        Of the simulation.
    progress
        Is told of each share of the work that is done; the first one compiles what is not yet.
    """
    given = {name: value for name, value in (settings or {}).items() if value is not None}
    guard = GuardUCB(**{name: given[name] for name in OWN & given.keys()} | {"alpha": alpha})
    ceiling = 1.0 if guard.reward_ceiling is None else guard.reward_ceiling
    worlds = possible_worlds(logs, ceiling, stream(seed, "menus"))
    usual = max(_baseline_worth(worlds), 0.0)
    budget = float(given.get("trial_budget", TRIAL_SHARE * rounds * usual))
    guards = {
        "strict": guard,
        "policy": replace(guard, mode="policy", max_loss=given.get("max_loss")),
        "trial_budget": replace(guard, trial_budget=budget),
    }
    limits = WorkLimits.of(worlds, check_whole("rounds", rounds), logs.left)
    arms = {
        (mode, logged): _Arm(guards[mode], limits) for mode in MODES for logged in (True, False)
    }
    for number in range(DRAWS):
        own = trial_seed(seed, number)
        drawn = worlds.draw(stream(own, "theta"))
        learned = learn_logs(worlds, drawn.world, guards["strict"], limits.rows, own)
        for (_, logged), arm in arms.items():
            if not arm.decided:
                arm.run(worlds, drawn, own, learned if logged else None)
        if progress is not None:
            progress(1.0 / DRAWS)
    found = {key: arm.prospect(logs, worlds) for key, arm in arms.items()}
    outcomes = {mode: Prospects(found[mode, True], found[mode, False]) for mode in MODES}
    notes = tuple(limits.notes(worlds, logs.left))
    return Expectation(**outcomes, rounds=rounds, rows=logs.left, budget=budget, notes=notes)


class WorkLimits(NamedTuple):
    """How much is simulated, so that no study takes too long."""

    rounds: int  # that are asked about
    horizon: int  # that are played, at most; what comes after is looked at in leaps
    rows: int  # of logs that are learned
    seconds: float  # that a round takes, about

    @classmethod
    def of(cls, worlds: PossibleWorlds, rounds: int, rows: int) -> WorkLimits:
        """Return the limits for some worlds."""
        _, actions, dim = worlds.tables.shape
        seconds = FIXED + ENTRY * actions * dim**2
        horizon = max(LEAST_HORIZON, int(SECONDS / (LEAST_DRAWS * seconds)))
        most = max(LEAST_HORIZON, int(LEARNING / (DRAWS * (ROW + ENTRY * dim**2))))
        return cls(rounds, min(rounds, horizon), min(rows, most), seconds)

    def notes(self, worlds: PossibleWorlds, rows: int) -> Iterator[str]:
        """Yield what was simplified."""
        if worlds.cut:
            yield f"Menus with more than {worlds.tables.shape[1]:,} actions lost some of them."
        if self.rows < rows:
            yield f"Of {rows:,} rows that are left to learn, {self.rows:,} were: more would help."
        if self.horizon < self.rounds:
            yield (
                f"Only {self.horizon:,} rounds were played one by one; what comes after was "
                "looked at in leaps, up to the first learned play and no further."
            )


def _baseline_worth(worlds: PossibleWorlds) -> float:
    """Return the baseline's mean reward by the model."""
    rows = worlds.tables[np.arange(len(worlds.tables)), worlds.baselines]
    return float((rows @ worlds.model.mean).mean())


class _Arm:
    """An agent with some settings, and how it fared in the worlds so far."""

    def __init__(self, guard: GuardUCB, limits: WorkLimits) -> None:
        self.guard, self.limits, self.runs = guard, limits, list[AgentRun]()
        self.whole = 0  # runs, the first ones: the others end with the first learned play

    def run(
        self,
        worlds: PossibleWorlds,
        drawn: PossibleWorld,
        seed: int,
        learned: LogsLearned | None,
    ) -> None:
        """Let the agent play another world, from what it has `learned` from logs."""
        whole = self._may_spend(SECONDS)
        run = run_agent(drawn, self.guard, self.limits.horizon, seed, learned, whole=whole)
        rounds, past = self.limits.rounds, 0 if learned is None else learned.rows
        if run.first == math.inf and run.played < rounds:
            run = look_further(run, worlds, drawn.world, self.guard, past, rounds)
        self.runs.append(run)
        self.whole += whole

    def _may_spend(self, seconds: float) -> bool:
        spent = sum(run.played for run in self.runs) * self.limits.seconds
        return len(self.runs) < LEAST_DRAWS or spent < seconds

    @property
    def decided(self) -> bool:
        """Whether more worlds would hardly change the answer, or would take too long."""
        if not self._may_spend(2.0 * SECONDS):
            return True
        return len(self.runs) >= AGREED and all(run.first == math.inf for run in self.runs)

    def prospect(self, logs: StudyLogs, worlds: PossibleWorlds) -> Prospect:
        """Return what to expect."""
        runs = self.runs
        stayed = [run for run in runs if run.first == math.inf]
        share = 1.0 - len(stayed) / len(runs)
        can_leave = True if share > MOST else False if share < FEW else None
        first = median_low(run.first for run in runs)
        half = max(first, median_low(run.half for run in runs[: self.whole]))
        cost = median_low(run.cost for run in runs[: self.whole])
        blocked: tuple[str, ...] = ()
        settled = bool(stayed) and 2 * sum(run.settled for run in stayed) > len(stayed)
        if can_leave is not True and not settled:
            blocked = self._blocked(next(run for run in stayed if not run.settled), worlds, logs)
        never = f"nothing but the baseline is certified within {self.limits.rounds:,} rounds"
        if can_leave is None:
            because = f"in {len(stayed)} of {len(runs)} worlds that fit the logs, {never}"
        elif can_leave:
            because = f"the first learned play is at about round {int(first):,}{_spread(runs)}"
        elif settled:
            because = "by what the logs say, the baseline may well be the best action"
        elif blocked:
            what = "feature" if len(blocked) == 1 else "features"
            because = (
                f"nothing that it plays teaches enough about {what} {listing(blocked)}: {never}"
            )
        else:
            because = never
        return Prospect(can_leave, blocked, _whole(first), _whole(half), cost, because, settled)

    def _blocked(self, run: AgentRun, worlds: PossibleWorlds, logs: StudyLogs) -> tuple[str, ...]:
        keep = 1.0 - float(self.guard.alpha)  # type: ignore[arg-type]
        state = run.state(worlds.dim)
        given = (state.estimate.inverse, self.guard.penalty, keep, state.own.gram)
        features, _ = blocked_features(worlds.menus(), *given)
        return tuple(str(logs.names[i]) for i in features)


def _spread(runs: list[AgentRun]) -> str:
    """Return how far the first learned plays of all but the extreme tenths lie apart, in words."""
    firsts, tenth = sorted(run.first for run in runs), len(runs) // 10
    low, high = firsts[tenth], firsts[-1 - tenth]
    if high == low:
        return ""
    latest = "never" if high == math.inf else f"round {int(high):,}"
    return f"; over the worlds that fit the logs, from round {int(low):,} to {latest}"


def _whole(number: float) -> int | None:
    return None if math.isinf(number) else int(number)
