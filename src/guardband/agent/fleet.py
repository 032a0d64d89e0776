"""Tasks that learn together, in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from guardband.agent.agent import Agent
from guardband.agent.agent_file import read_agent_file
from guardband.agent.alarms import let_back
from guardband.agent.budget import Budget
from guardband.agent.group import AgentGroup
from guardband.agent.making import make_group
from guardband.agent.storage import load_group, save_group
from guardband.agent.view import about_group
from guardband.algorithms import Algorithm
from guardband.checks import nearest
from guardband.errors import InvalidTypeError, InvalidValueError, UnknownTaskError
from guardband.features import Features
from guardband.html_tables import html_table
from guardband.uplift import LEVEL, Uplift

__all__ = ["Fleet", "fleet_of"]


class Fleet(Mapping[str, Agent]):
    """Several tasks that share one parameter and learn together, in one process.

    Every agent decides from its own data and the data pooled so far; they pool again when one of
    them has learned enough since the last time. Agents may be used from several threads.

    Parameters
    ----------
    tasks
        Name -> the features that the task uses, by number or, with `features`, by name; None:
        all of them.
    dim
        The number of features of the shared parameter, d.
    features
        Instead of `dim`, as for `gb.Agent`.
    alpha
        The share of the baseline's reward that may be lost, in (0, 1]: one number, one per task,
        or a mapping from the tasks' names.
    algorithm, mode, on_refuted, noise, reward_ceiling, context_noise, theta_bound
        As for `gb.Agent`.
    trial_budget, max_loss, budget
        As for `gb.Agent`; every task has its own, of this size.
    tolerate
        1: whatever any one other task learns or sends, no play of a task is below its floor; see
        `gb.GuardUCB`. Learning is slower.
    on_alarm, delta_alarm, window, drift
        As for `gb.Agent`; `delta_alarm` is for all tasks together, and a round is one of the task
        that decides most often.
    holdback, feature_bound, ridge, delta
        As for `gb.Agent`.
    horizon, reward_floor, seed
        As for `gb.Agent`. Time is counted in each agent's own rounds; without a horizon they pool
        when an agent's det V has doubled.

    Examples
    --------
    >>> import guardband as gb
    >>> fleet = gb.Fleet({"movies": [0, 1, 2], "tv": [0, 2]}, dim=3, alpha=0.3)
    >>> decision = fleet["tv"].decide([[0.6, 0.2], [0.1, 0.9]], baseline=0, baseline_reward=0.4)
    >>> decision.action, decision.promise
    (0, 'baseline')
    >>> fleet["tv"].observe(decision.id, reward=0.45)
    """

    def __init__(
        self,
        tasks: Mapping[str, Sequence[int | str] | None],
        dim: int | None = None,
        *,
        features: Features | None = None,
        alpha: float | Sequence[float] | Mapping[str, float] | None = None,
        algorithm: Algorithm | str | None = None,
        mode: str | None = None,
        on_refuted: str | None = None,
        trial_budget: float | None = None,
        max_loss: float | None = None,
        tolerate: int | None = None,
        budget: Budget | None = None,
        holdback: float | None = None,
        on_alarm: str | None = None,
        delta_alarm: float | None = None,
        window: int | None = None,
        drift: float | None = None,
        noise: float | None = None,
        reward_ceiling: float | None = None,
        context_noise: float | None = None,
        theta_bound: float | None = None,
        feature_bound: float | None = None,
        ridge: float | None = None,
        delta: float | None = None,
        horizon: int | None = None,
        reward_floor: float | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(tasks, Mapping):
            raise InvalidTypeError(
                "tasks must say which features each task uses, such as {'movies': [0, 1, 2]}, "
                f"or {{'movies': None}} for all of them, not {tasks!r}."
            )
        if isinstance(alpha, Mapping):
            if set(alpha) != set(tasks):
                raise InvalidValueError(
                    f"alpha names {sorted(alpha)}, but the tasks are {sorted(tasks)}."
                )
            alpha = tuple(alpha[name] for name in tasks)
        group = make_group(
            tasks,
            dim,
            features,
            algorithm,
            seed,
            budget=budget,
            alpha=alpha,
            mode=mode,
            on_refuted=on_refuted,
            trial_budget=trial_budget,
            max_loss=max_loss,
            tolerate=tolerate,
            holdback=holdback,
            on_alarm=on_alarm,
            delta_alarm=delta_alarm,
            window=window,
            drift=drift,
            noise=noise,
            reward_ceiling=reward_ceiling,
            context_noise=context_noise,
            theta_bound=theta_bound,
            feature_bound=feature_bound,
            ridge=ridge,
            delta=delta,
            horizon=horizon,
            reward_floor=reward_floor,
        )
        self._start(group)

    def _start(self, group: AgentGroup) -> None:
        self._group = group
        self._agents = {name: Agent._of(group, m) for m, name in enumerate(group.names)}

    def __getitem__(self, name: str) -> Agent:
        try:
            return self._agents[name]
        except KeyError:
            tasks = list(self._agents)
            raise UnknownTaskError(
                f"no task {name!r}; there are {', '.join(tasks)}.{nearest(name, tasks)}"
            ) from None

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(Agent, name):
            raise AttributeError(f"a fleet has no {name!r}.")
        task = next(iter(self._agents))
        raise AttributeError(f"each task has a {name!r} of its own: say fleet[{task!r}].{name}.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def __repr__(self) -> str:
        group = self._group
        names = ", ".join(group.names)
        return (
            f"<Fleet of {names}: {group.algorithm.name}, {group.dim} features, "
            f"{sum(group.rounds):,} decisions, {group.poolings:,} poolings>"
        )

    def _repr_html_(self) -> str:
        group = self._group
        head = ("task", "features", "decisions", "without a reward", "rows of logs")
        with group.lock:
            counts = [
                (name, len(group.tasks[m]), group.rounds[m], len(group.pending[m]), group.rows[m])
                for m, name in enumerate(group.names)
            ]
        common = "; ".join(f"{what} {value}" for what, value in about_group(group))
        rows = [(name, *(f"{count:,}" for count in each)) for name, *each in counts]
        note = f"{common}; {group.poolings:,} poolings."
        return html_table(f"Fleet of {len(rows)} tasks", rows, head=head, note=note)

    @property
    def poolings(self) -> int:
        """How often the agents have pooled what they learned."""
        return self._group.poolings

    def uplift(self, level: float = LEVEL) -> Uplift:
        """Return what the choices of all tasks together earn over their baselines, per round.

        As `gb.Agent.uplift` tells it of one.
        """
        return self._group.uplift(range(len(self._agents)), level)

    def readmit(self, name: str, *, forget: bool = False) -> None:
        """Let a task that left the pool, because it did not fit or started anew, back into it.

        Parameters
        ----------
        name
            The task. What it has learned alone counts for all from now on. If that contradicts the
            others beyond doubt, it is refused.
        forget
            Whether to let it back without what it has learned.
        """
        number = list(self._agents).index(self[name].name)
        with self._group.lock:
            let_back(self._group, number, forget=forget)

    def save(self, path: str | Path) -> Path:
        """Write everything the fleet knows, pending decisions included, to one file."""
        return save_group(self._group, path)

    @classmethod
    def from_file(cls, path: str | Path, tasks: Mapping[str, Sequence[int | str] | None]) -> Fleet:
        """Return a fleet of agents as an `agent.toml` describes them; see `gb.Agent.from_file`."""
        file = read_agent_file(path)
        fleet = cls(tasks, **file.arguments)
        fleet._group.looked_at = file.looked_at
        return fleet

    @classmethod
    def load(cls, path: str | Path) -> Fleet:
        """Return the fleet that was saved; its decisions go on as if nothing had happened."""
        return fleet_of(load_group(path))


def fleet_of(group: AgentGroup) -> Fleet:
    """Return the fleet whose agents are this group."""
    fleet = Fleet.__new__(Fleet)
    fleet._start(group)
    return fleet
