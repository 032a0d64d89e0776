"""What a comparison found: tidy tables, curves, pictures, and what is needed to run it again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from guardband.algorithms import ALGORITHMS, Policy
from guardband.checks import as_path
from guardband.errors import InvalidValueError, UnknownSeriesError
from guardband.files import plain_errors
from guardband.kernels.environment import Metric
from guardband.kernels.types import Floats, Ints
from guardband.problems import Problem
from guardband.sim.runners import Trace, TrialResult
from guardband.sim.stats import mean_interval
from guardband.sim.trial import checkpoint_rounds
from guardband.uplift import LEVEL, GainSums, Uplift, reach_of, uplift_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Results", "Series", "stack"]

NOT_MEASURED = Uplift(np.nan, np.nan, np.nan, 0)
COUNTED = ("violations_expected", "violations_realised")


@dataclass(frozen=True, eq=False)
class Series:
    """One algorithm's share of a comparison; arrays over trials.

    Attributes
    ----------
    algorithm, label
        Its name, and what tells it apart from others of the same name.
    settings
        Its parameters.
    totals
        Metric name -> (trials, M), sums over all rounds.
    curves
        Metric name -> (trials, P, M), sums up to each checkpoint.
    sync_rounds
        (trials,) number of poolings; where agents are asynchronous, of single agents' exchanges.
    sync_curve
        (trials, P) poolings up to each checkpoint.
    messages_sent, numbers_sent, bytes_sent
        (trials,) over all agents, up and down, by the algorithm's own protocol.
    """

    algorithm: str
    label: str
    settings: dict[str, Any]
    totals: dict[str, Floats]
    curves: dict[str, Floats]
    sync_rounds: Ints
    sync_curve: Ints
    numbers_sent: Ints
    messages_sent: Ints = field(default_factory=lambda: np.zeros(1, np.int64))

    @property
    def policy(self) -> type[Policy]:
        """The class of its policy; one in plain Python answers as `Policy` itself does."""
        entry = ALGORITHMS.get(self.algorithm)
        return Policy if entry is None else entry.kind

    @property
    def bytes_sent(self) -> Ints:
        """(trials,): eight bytes a number."""
        return 8 * self.numbers_sent

    @property
    def regret(self) -> Floats:
        """(trials, M): (phi_x* - phi_x)'theta, summed over rounds."""
        return self.totals["regret"]

    @property
    def regret_expected(self) -> Floats:
        """(trials, M): (psi_x* - psi_x)'theta, summed over rounds."""
        return self.totals["regret_expected"]

    @property
    def violations_expected(self) -> Floats:
        """(trials, M): rounds with psi_x'theta < (1 - alpha) psi_b'theta."""
        return self.totals["violations_expected"]

    @property
    def violations_realised(self) -> Floats:
        """(trials, M): rounds with phi_x'theta < (1 - alpha) phi_b'theta."""
        return self.totals["violations_realised"]

    @property
    def alarms(self) -> Floats:
        """(trials, M): alarms that monitors raised; `totals` has kinds, and when it was noticed."""
        kinds = [values for name, values in self.totals.items() if name.startswith("alarms_")]
        found: Floats = sum(kinds, np.zeros(self.regret.shape))  # older results have none
        return found

    @property
    def conservative(self) -> Floats:
        """(trials, M): rounds in which the agent did not play an action of its own choice."""
        return self.totals["conservative"]

    def uplift(self, rounds: int, level: float = LEVEL) -> list[Uplift]:
        """Return what its choices earned over the baseline in each trial, all agents together.

        It is what agents would tell after so many rounds: from a holdback's coin and the rewards.
        """
        reach = reach_of(self.settings.get("holdback", 0.0), self.settings.get("noise"))
        return [
            uplift_of(GainSums(gain.size * rounds, float(gain.sum()), float(s.sum())), reach, level)
            for gain, s in zip(self.totals["gain"], self.totals["gain_squares"], strict=True)
        ]


class Results:
    """The outcome of `gb.simulate`.

    Attributes
    ----------
    problem
        The problem's name.
    settings
        Rounds, trials, seed, alpha, versions and commit.
    series
        One `Series` per algorithm, in the order given; `results["label"]` finds one.
    rounds
        (P,) the rounds at which curves are kept.
    trace
        Every round of one trial, if it was asked for.
    uncovered
        Label -> why no promise of that algorithm covers this problem, where none does.

    Examples
    --------
    >>> import guardband as gb
    >>> results = gb.simulate("forecast", ["guard-ucb", "baseline"], rounds=1_000)
    >>> results
    <Results of guard-ucb, baseline on forecast: 5 agents, 1,000 rounds, 1 trials>
    >>> print(*(f"{series.label}: {series.regret.mean():.0f}" for series in results.series))
    guard-ucb: 8 baseline: 237
    """

    def __init__(
        self,
        problem: str,
        settings: dict[str, Any],
        series: Sequence[Series],
        rounds: Ints,
        trace: Trace | None = None,
        uncovered: Mapping[str, str] | None = None,
    ) -> None:
        self.problem, self.settings, self.series = problem, settings, tuple(series)
        self.rounds, self._trace = rounds, trace
        self.uncovered = dict(uncovered or {})

    def __repr__(self) -> str:
        told = (f"{self.settings[what]:,} {what}" for what in ("agents", "rounds", "trials"))
        labels = ", ".join(series.label for series in self.series)
        return f"<Results of {labels} on {self.problem}: {', '.join(told)}>"

    def _repr_html_(self) -> str:
        """Return the summary as a table, for notebooks."""
        return str(self.summary().to_html(index=False))

    @classmethod
    def collect(
        cls,
        problem: Problem,
        algorithms: Sequence[Any],
        results: Sequence[Sequence[TrialResult]],
        settings: dict[str, Any],
        uncovered: Sequence[str] = (),
    ) -> Results:
        """Stack the results of all trials; `results` has those of each algorithm."""
        judged = settings["alpha"] is not None
        series = [
            stack(algorithm, label, own, judged=judged)
            for algorithm, label, own in zip(algorithms, _labels(algorithms), results, strict=True)
        ]
        agents = series[0].regret.shape[1]
        settings = {"problem": _settings_of(problem), "agents": agents, **settings}
        checkpoints = checkpoint_rounds(settings["rounds"])
        why = dict(zip((s.label for s in series), uncovered, strict=False))
        outside = {label: reason for label, reason in why.items() if reason}
        return cls(problem.name, settings, series, checkpoints, results[0][0].trace, outside)

    def __getitem__(self, label: str) -> Series:
        for series in self.series:
            if series.label == label:
                return series
        known = ", ".join(repr(series.label) for series in self.series)
        raise UnknownSeriesError(f"no series {label!r}; there are {known}")

    @property
    def trace(self) -> Trace:
        """Every round of one trial, if simulate was called with trace=True."""
        if self._trace is None:
            raise InvalidValueError("there is no trace: call simulate(..., trace=True).")
        return self._trace

    def summary(self) -> pd.DataFrame:
        """Return one row per algorithm: means over trials, per agent, with 95 % intervals."""
        rounds, alpha = self.settings["rounds"], self.settings["alpha"]
        rows = []
        for s in self.series:
            regret, low, high = mean_interval(s.regret.mean(axis=1))
            row = {
                "algorithm": s.algorithm,
                "label": s.label,
                "constant": s.settings.get("constant", "-"),
                "agents": self.settings["agents"],
                "alpha": alpha[0] if alpha and len(set(alpha)) == 1 else alpha,
                "regret_per_agent": regret,
                "regret_low": low,
                "regret_high": high,
                "regret_expected_per_agent": float(s.regret_expected.mean()),
                "regret_total": float(s.regret.sum(axis=1).mean()),
                "violations_expected": float(s.violations_expected.mean()),
                "violations_realised": float(s.violations_realised.mean()),
                "violations_policy": float(s.totals["violations_policy"].mean()),
                "conservative_share": float(s.conservative.mean()) / rounds,
                "stuck_share": float(s.totals["stuck"].mean()) / rounds,
                "refuted_share": float(s.totals["refuted"].mean()) / rounds,
                "trials": float(s.totals["trials"].mean()),
                "charged": float(s.totals["charged"].mean()),
                "shortfall": float(s.totals["shortfall"].mean()),
                **_uplift(s, rounds),
                "alarms": float(s.alarms.sum(axis=1).mean()),
                "sync_rounds": float(s.sync_rounds.mean()),
                "messages_sent": float(s.messages_sent.mean()),
                "numbers_sent": float(s.numbers_sent.mean()),
                "bytes_sent": float(s.bytes_sent.mean()),
                "reward_mean": float(s.totals["reward"].mean()) / rounds,
                "baseline_reward_mean": float(s.totals["baseline_reward"].mean()) / rounds,
            }
            if not np.isnan(s.totals["cost"]).any():
                row["cost_mean"] = float(s.totals["cost"].mean()) / rounds
            if not np.isnan(s.totals["value"]).any():
                row |= {
                    "value_mean": float(s.totals["value"].mean()) / rounds,
                    "baseline_value_mean": float(s.totals["baseline_value"].mean()) / rounds,
                    "value_regret_per_agent": float(s.totals["value_regret"].mean()),
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def per_agent(self) -> pd.DataFrame:
        """Return one row per algorithm, trial and agent: sums over all rounds."""
        frames = []
        for s in self.series:
            trials, agents = s.regret.shape
            columns: dict[str, Any] = {
                "label": s.label,
                "trial": np.repeat(np.arange(trials), agents),
                "agent": np.tile(np.arange(agents), trials),
            }
            columns |= {name: values.ravel() for name, values in s.totals.items()}
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def curves(self) -> pd.DataFrame:
        """Return one row per algorithm, checkpoint and agent: running sums, mean over trials."""
        frames = []
        for s in self.series:
            _, points, agents = s.curves["regret"].shape
            columns: dict[str, Any] = {
                "label": s.label,
                "round": np.repeat(self.rounds, agents),
                "agent": np.tile(np.arange(agents), points),
            }
            columns |= {name: values.mean(axis=0).ravel() for name, values in s.curves.items()}
            columns["sync_rounds"] = np.repeat(s.sync_curve.mean(axis=0), agents)
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def save(self, folder: str | Path) -> Path:
        """Write summary.csv, agents.csv, curves.csv and settings.json to `folder`."""
        target = as_path("folder", folder)
        with plain_errors(target, "it cannot be a folder for results"):
            target.mkdir(parents=True, exist_ok=True)
        self.summary().to_csv(target / "summary.csv", index=False)
        self.per_agent().to_csv(target / "agents.csv", index=False)
        self.curves().to_csv(target / "curves.csv", index=False)
        about = {
            "problem": self.problem,
            "settings": self.settings,
            "algorithms": {s.label: s.settings for s in self.series},
        }
        (target / "settings.json").write_text(json.dumps(about, indent=2, default=str) + "\n")
        return target

    def plot(self, metric: str = "regret") -> Figure:
        """Draw a metric over the rounds, per agent: the mean over trials with its 95 % interval."""
        from guardband.sim.plots import draw_curves  # noqa: PLC0415 - matplotlib is slow to import

        return draw_curves(self, metric)


def stack(algorithm: Any, label: str, results: Sequence[TrialResult], *, judged: bool) -> Series:
    """Return one algorithm's results of all trials as a series.

    Without an alpha to judge by, violations and the regret in value were not counted and are NaN.
    """
    totals = np.array([result.totals for result in results])
    curves = np.array([result.curves for result in results])
    syncs = np.array([result.syncs for result in results])
    if not judged:
        counted = (m for m in Metric if m.name.startswith("VIOLATIONS"))
        for metric in (*counted, Metric.VALUE_REGRET):
            totals[..., metric] = curves[..., metric] = np.nan
    return Series(
        algorithm=algorithm.name,
        label=label,
        settings=_settings_of(algorithm),
        totals={m.name.lower(): totals[:, :, m] for m in Metric},
        curves={m.name.lower(): curves[:, :, :, m] for m in Metric},
        sync_rounds=syncs[:, -1],
        sync_curve=syncs,
        messages_sent=syncs[:, -1] * results[0].traffic.messages,
        numbers_sent=syncs[:, -1] * results[0].traffic.numbers,
    )


def _uplift(series: Series, rounds: int) -> dict[str, float]:
    """Return the uplift and its bounds, means over the trials; NaN without a holdback."""
    found = series.uplift(rounds) if series.settings.get("holdback") else [NOT_MEASURED]
    mean, low, high, _ = np.mean(found, axis=0).tolist()
    return {"uplift": mean, "uplift_low": low, "uplift_high": high}


def _labels(algorithms: Sequence[Any]) -> list[str]:
    """Name every series; those of one name also say what sets them apart."""
    labels: list[str] = []
    for algorithm in algorithms:
        twins = [_settings_of(a) for a in algorithms if a.name == algorithm.name]
        own = _settings_of(algorithm)
        apart = [key for key in own if any(twin.get(key) != own[key] for twin in twins)]
        told = ", ".join(f"{key}={own[key]}" for key in apart)
        label = f"{algorithm.name} ({told})" if told else algorithm.name
        same = sum(1 for other in labels if other.split(" #")[0] == label)
        labels.append(f"{label} #{same + 1}" if same else label)
    return labels


def _settings_of(thing: Any) -> dict[str, Any]:
    if not is_dataclass(thing) or isinstance(thing, type):
        return {"name": getattr(thing, "name", type(thing).__name__)}
    values = {f.name: getattr(thing, f.name) for f in fields(thing)}
    return {k: f"array{v.shape}" if isinstance(v, np.ndarray) else v for k, v in values.items()}
