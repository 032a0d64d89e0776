"""The two columns of settings, printed and notebook, and what a panel takes from either.

The paper's text and its authors' notebooks disagree in many points. An `ExperimentConfig` is one
line of the table of experiments, with both columns; its `read` takes one of them and makes an
`Experiment`: the problem, and all that algorithms are told about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from guardband.algorithms import ALGORITHMS, ORACLE, Algorithm, entry_of
from guardband.lab.notebooks import NOTEBOOKS, NotebookRules, explores
from guardband.lab.panel import Run, RunOptions
from guardband.problems import NoisyFeatures, RewardNoise, problem

__all__ = [
    "FIVE",
    "LASTFM",
    "MOVIELENS",
    "WHOLE",
    "Experiment",
    "ExperimentConfig",
    "as_printed",
    "remarks_of",
    "shown_name",
]

# The longest features that the notebooks multiply in as L; the bound of our own generator for
# synthetic B, whose features are not public. Printed formulas have no L: it is 1 there.
NOTEBOOK_FEATURE_BOUND = {
    "synthetic-a": 1.0,
    "synthetic-b": 2.5,
    "synthetic-c": 1.0,
    "movielens": 2.06,
    "lastfm": 1.95,
}

# By which factor psi's noise grows, on average, if features are divided by the largest reward after
# it was added.
SCALED_NOISE = {"movielens": 1.57, "lastfm": 1.18}

ZERO = (
    "With a masked task the 5th best artist is worth 0 to some users. Where r_b is 0 an agent that "
    "knows it stays with the baseline. r_l is the smallest positive baseline reward; in the "
    "notebooks it is the smallest, which is 0 over all masks: then ρ is at most 1e-10."
)
FIVE = "Five trials; the notebooks show one, which has no interval."
FITTED = "Here factors are fitted to the observed ratings of all users and movies, and some drawn."
BLOCK = (
    "The text draws 100 users and 50 movies and factorises their ratings; the notebook factorises "
    "the first 100 users' ratings of the first 50 movies, which were completed beforehand in a way "
    f"that is not public. {FITTED}"
)
WHOLE = (
    "The text draws 100 users and 50 movies and factorises their ratings; the notebook factorises "
    "the ratings of all users and movies, which were completed beforehand in a way that is not "
    f"public, and draws afterwards. {FITTED}"
)


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """One experiment of the paper, in both columns.

    Attributes
    ----------
    problem, agents, alpha, baseline, ridge, noise
        As printed: the problem's name, M, alpha, the baseline's rank (1 = best), lambda and R.
    psi_variance
        The variance of psi - phi, as printed.
    psi_std
        Its standard deviation in the notebooks; None: not public, so as printed.
    actions
        K, where the problem leaves it open.
    rounds, trials
        The horizon and the number of trials; of the notebooks, because the text has no horizons.
    rewards
        The reward noise; None: normal with standard deviation 0.001, as in the notebooks.
    notebook
        What the notebooks have in place of the above. Their baseline is an index after sorting,
        so that theirs is the next worse action; this is taken care of.
    notebook_only
        Names of settings that only the notebooks state.
    rules
        What this experiment's notebook does in its own way.
    rho_alpha
        The alpha by which the notebook draws rho; None: alpha.
    chosen
        Sentences on what was chosen here because nothing about it is public.
    """

    problem: str
    agents: int
    alpha: float
    baseline: int
    ridge: float
    noise: float
    psi_variance: float
    rounds: int
    trials: int
    psi_std: float | None = None
    actions: int | None = None
    rewards: RewardNoise | None = None
    notebook: Mapping[str, Any] = field(default_factory=dict)
    notebook_only: tuple[str, ...] = ()
    rules: NotebookRules = field(default_factory=NotebookRules)
    rho_alpha: float | None = None
    chosen: tuple[str, ...] = ()

    def column(self, options: RunOptions) -> ExperimentConfig:
        """Return the experiment with the settings of one column in all places."""
        if options.printed:
            return self
        theirs = replace(self, **self.notebook)
        return replace(theirs, baseline=theirs.baseline + 1)

    def read(self, options: RunOptions, **changes: Any) -> Experiment:
        """Return the settings of one column at one scale; `changes` vary alpha or agents."""
        config = replace(self.column(options), **changes)
        noise = math.sqrt(config.psi_variance)
        if not options.printed and config.psi_std is not None:
            noise = config.psi_std
        given: dict[str, Any] = {
            "agents": config.agents,
            "baseline": config.baseline,
            "psi_noise": noise,
        }
        if config.actions is not None:
            given["actions"] = config.actions
        if config.rewards is not None:
            given["reward_std"] = config.rewards
        rules = None if options.printed else config.rules
        if rules is not None and rules.noise_first:
            given["noise_first"] = True
        made = cast(NoisyFeatures, problem(config.problem, **given))
        return Experiment(
            problem=made,
            notebook=None if rules is None else config._notebook_problem(given),
            rules=rules,
            alpha=config.alpha,
            ridge=config.ridge,
            noise=config.noise,
            theta_bound=1.0 if options.printed else length_of_theta(made),
            feature_bound=1.0 if options.printed else NOTEBOOK_FEATURE_BOUND[config.problem],
            rounds=options.rounds(config.rounds),
            horizon=config.rounds,
            trials=options.trials(config.trials),
            seed=options.seed,
        )

    def _notebook_problem(self, given: Mapping[str, Any]) -> NoisyFeatures:
        return NOTEBOOKS[self.problem](
            **given,
            alpha=self.alpha,
            rho_alpha=self.alpha if self.rho_alpha is None else self.rho_alpha,
            rho_high=self.rules.rho_high,
            all_masks=self.rules.all_masks,
        )


# What the paper's panels on real data have in common; each panel states what it varies.
MOVIELENS = ExperimentConfig(
    problem="movielens",
    agents=3,
    alpha=0.5,
    baseline=40,
    ridge=1.0,
    noise=0.1,
    psi_variance=1e-2,
    psi_std=0.1,
    rounds=800_000,
    trials=5,
    notebook_only=("ridge",),
    rules=NotebookRules(noise_first=True),
    chosen=(FIVE, BLOCK),
)
LASTFM = ExperimentConfig(
    problem="lastfm",
    agents=1,
    alpha=0.7,
    baseline=5,
    ridge=0.05,
    noise=0.05,
    psi_variance=1e-3,
    psi_std=1e-3,
    actions=50,
    rounds=10_000_000,
    trials=3,
    notebook={"actions": 538},
    rules=NotebookRules(gate="printed", unknown_gate="printed"),
    chosen=(ZERO, "Three trials; the notebooks show one, which has no interval."),
)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A problem, what algorithms are told about it, and how long they run.

    `notebook` is the same problem with the notebooks' r_l, r_h, rho and zeta; only those that mix
    the baseline with a direction of their own meet it. `rules` are the notebook's, and None in the
    printed column.
    """

    problem: NoisyFeatures
    notebook: NoisyFeatures | None
    rules: NotebookRules | None
    alpha: float
    ridge: float
    noise: float
    theta_bound: float
    feature_bound: float
    rounds: int
    horizon: int
    trials: int
    seed: int

    def make(self, name: str, **more: Any) -> Algorithm:
        """Return the algorithm of this name, told the panel's alpha, bounds and noise."""
        told: dict[str, Any] = {
            "alpha": self.alpha,
            "ridge": self.ridge,
            "noise": self.noise,
            "theta_bound": self.theta_bound,
            "feature_bound": self.feature_bound,
            "context_noise": self.problem.context_noise,
            "delta_alarm": None,  # frozen errors are the point here; `notices` is about monitors
        }
        if self.rules is not None and self.rules.delta is not None:
            told["delta"] = self.rules.delta
        return as_printed(name, told, **more)

    def make_gated(self, name: str) -> Algorithm:
        """Return an algorithm of the paper, with the gate of this column if it can have that."""
        if self.rules is None or not ALGORITHMS[name].kind.gates:
            return self.make(name)
        unknown = name == "disc-ucb-unknown"
        return self.make(name, gate=self.rules.unknown_gate if unknown else self.rules.gate)

    def run(self, algorithm: Algorithm, label: str | None = None) -> Run:
        """Return one curve."""
        return Run(
            label=shown_name(algorithm.name) if label is None else label,
            problem=self.notebook if self.notebook and explores(algorithm) else self.problem,
            algorithm=algorithm,
            rounds=self.rounds,
            trials=self.trials,
            seed=self.seed,
            alpha=self.alpha,
            horizon=self.horizon,
        )


def as_printed(name: str, told: Mapping[str, Any], **more: Any) -> Algorithm:
    """Return the algorithm, told this; but in the paper the context noise of all rivals is 1."""
    entry = ALGORITHMS[name]
    paper = {"context_noise": 1.0} if "constant" in entry.kind.settings() else {}
    made: Algorithm = entry.informed({**told, **paper}, **more)
    return made


def shown_name(name: str) -> str:
    """Return how an algorithm is written in pictures and claims."""
    known, plain = entry_of(name), name.removesuffix(ORACLE)
    return name if known is None else known.label + name[len(plain) :]


def length_of_theta(made: NoisyFeatures) -> float:
    """Return the problem's own norm(theta)."""
    return float(np.linalg.norm(made.theta))


def remarks_of(config: ExperimentConfig, options: RunOptions) -> list[str]:
    """Return which column was used, what differs from print, and what was chosen."""
    experiment = config.read(options)
    lines = [
        *_gate(config, options),
        *_bounds(experiment, options),
        *_differences(config, options),
    ]
    if config.notebook_only:
        told = " and ".join(f"{what} = {getattr(config, what):g}" for what in config.notebook_only)
        lines.append(f"The text does not state {told}: this is the notebooks'.")
    if config.psi_std is not None and "rounds" not in config.notebook:
        lines.append(
            f"The text has no horizon; the notebooks have {config.rounds:,} rounds, as the scale "
            "`paper` here."
        )
    lines += config.chosen
    lines.append(
        "ψ = φ + noise that is drawn once is not the expectation of φ. Violations are counted "
        "twice: as realised, φ_x'θ < (1 − α) φ_b'θ, and by expectation, with ψ for φ. Claims use "
        "the first, which is the paper's constraint."
    )
    lines.append(
        "Guard-UCB is told the same α, R and bound on ‖θ‖, context_noise "
        f"({experiment.problem.context_noise:.3g}), and not the baseline's reward."
    )
    return lines


def _gate(config: ExperimentConfig, options: RunOptions) -> list[str]:
    oracle = config.rules.gate == "gap"
    theirs = "((r_opt − r_h) + α r_b)" if oracle else "(α r_b)"
    if options.printed:
        return [
            "Gate as printed: λ_min(V) ≥ (2β / (α r_b))². The notebooks have "
            f"(2Lβ / {theirs})²" + (", with the true optimum." if oracle else "."),
            "ρ is the constant α r_l / (S + r_h), and ζ uniform on the sphere; the notebooks draw "
            "one ρ and one ζ a round for all agents, and take ζ's own mean away.",
        ]
    gate = f"Gate of the notebooks: λ_min(V) ≥ (2Lβ / {theirs})²"
    if oracle:
        gate += (
            ". It is told the true optimum, which no learner knows; hence the name gap-oracle. The "
            "square forgets the sign: where a context's optimum is far below r_h, the gate opens "
            "as if it were as far above"
        )
    high = "r_h" if config.rules.rho_high is None else f"{config.rules.rho_high:g}"
    return [
        f"{gate}.",
        f"As in the notebooks ρ is drawn in each round from (1e-10, α r_l / (‖θ‖ + {high})], one "
        "for all agents, and so is ζ, a normal vector less its own mean: in the plane always "
        "±(1, −1)/√2. DiSC-UCB-UB and rivals that mix in a ζ have the same ρ and ζ.",
    ]


def _bounds(experiment: Experiment, options: RunOptions) -> list[str]:
    length, longest = length_of_theta(experiment.problem), experiment.problem.assumptions()
    reach = longest["feature_bound"]
    if not options.printed:
        return [
            f"S = ‖θ‖ = {length:.4g} and L = {experiment.feature_bound:g}, the problem's own, as "
            "in the notebooks."
        ]
    theta = f"S = 1 bounds ‖θ‖, as the text assumes; here ‖θ‖ = {length:.4g}"
    wrong = length > 1 + 1e-9
    lines = [theta + (": 1 is wrong, and no promise holds." if wrong else ".")]
    if reach > 1 + 1e-9:
        lines.append(
            f"L = 1 bounds expected features, as the text assumes; here they may reach {reach:.3g}:"
            " 1 is wrong. The notebooks multiply L in."
        )
    return lines


def _differences(config: ExperimentConfig, options: RunOptions) -> list[str]:
    lines = []
    theirs, used = config.column(replace(options, settings="notebook")), config.column(options)
    std = config.read(options).problem.psi_noise
    if config.psi_std is None:
        lines.append(f"ψ − φ has standard deviation {std:.3g}; the notebook is not public.")
    elif abs(math.sqrt(config.psi_variance) - config.psi_std) > 1e-9:
        lines.append(
            f"The text calls {config.psi_variance:g} the variance of ψ − φ, the notebooks "
            f"{config.psi_std:g} its standard deviation; used: {std:.3g} as standard deviation."
        )
    if config.rules.noise_first:
        does = "The notebook adds" if options.printed else "This column adds, as the notebook does,"
        lines.append(
            f"{does} ψ's noise before the features are divided by the largest reward, which makes "
            f"its standard deviation {SCALED_NOISE[config.problem]:g} times as large, on average."
        )
    if config.rules.delta is not None:
        used_delta = 1e-3 if options.printed else config.rules.delta
        lines.append(f"δ = {config.rules.delta:g} in the notebook; used: {used_delta:g}.")
    for what, name in (("alpha", "α"), ("actions", "K")):
        if getattr(config, what) != getattr(theirs, what):
            mine = getattr(used, what)
            lines.append(
                f"{name} = {getattr(config, what):g} in the text, {getattr(theirs, what):g} in the "
                f"notebooks; used: {mine:g}."
            )
    masks = "all masks" if config.rules.all_masks else "its own task"
    meant = f"r_l and r_h are those of the {_nth(theirs.baseline - 1)}, over {masks}"
    if options.printed:
        there = f" (notebooks: the {_nth(theirs.baseline)}; their {meant})."
    else:
        there = (
            f", index {used.baseline - 1} of a sort that counts from 0 (text: the "
            f"{_nth(config.baseline)}); {meant}, as in the notebooks."
        )
    lines.append(
        f"The baseline is the {_nth(used.baseline)} best action {there}".replace(" ,", ",")
    )
    return lines


def _nth(rank: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if rank % 100 in (11, 12, 13) else endings.get(rank % 10, "th")
    return f"{rank}{ending}"
