"""The picture of README.md: every play of `guardband run`, beside the floor; docs/first-run.png.

    python -m bench.first_screen

Problem, alpha, trials and seed are those of `guardband run` without options: nothing is chosen here
but how many rounds are shown. Both learners are one, told the same; the floor is all that sets them
apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from guardband.cli.config import RunConfig, make_algorithms, make_problem
from guardband.kernels.types import Floats
from guardband.problems import World
from guardband.sim import COLOURS, FAINT, GREY, INK, Trial, TrialDraws, make_trials, run_trial

ROUNDS = 500  # later ones look like the last of these
MOST = 250  # per cent of the baseline's worth, at the top; a few plays lie above
PANELS = {"guard-ucb-free": "The same learner without a floor", "guard-ucb": "With guardband"}
TICKS = (1, 10, 100, ROUNDS)
BLUE, RED = COLOURS[0], "#B3261E"
TINY = 1e-9  # of rounding
FILE = Path(__file__).parents[1] / "docs" / "first-run.png"


def shares(config: RunConfig, rounds: int = ROUNDS) -> Floats:
    """Return (rounds, agents of all trials): what plays are worth, the baseline's being 1."""
    problem = make_problem(config)
    told = {**problem.assumptions(), "context_noise": problem.context_noise}
    told.pop("rounds")
    trials = make_trials(
        problem,
        make_algorithms(config, told),
        rounds=rounds,
        trials=config.trials,
        seed=config.seed,
        alpha=config.floor_alpha,
        trace=True,
    )
    return np.hstack([_of_trial(trial) for trial in trials])


def _of_trial(trial: Trial) -> Floats:
    (result,) = run_trial(trial, lambda _: None)
    world = trial.problem.build(trial.seed)
    assert isinstance(world, World)
    assert result.trace is not None
    chunks = TrialDraws(world, trial.rounds, trial.seed).chunks()
    contexts = np.concatenate([chunk.contexts for chunk in chunks])
    found = []
    for m, task in enumerate(world.tasks):
        own = list(task)
        worth = world.psi[contexts][:, :, own] @ world.theta[own]  # (rounds, actions), expected
        played, baseline = result.trace.actions[:, m], world.baseline[m, contexts]
        t = np.arange(trial.rounds)
        found.append(worth[t, played] / worth[t, baseline])
    return np.column_stack(found)


def draw(found: dict[str, Floats], alpha: float) -> Figure:
    """Return the picture: a dot for every play, red below the floor."""
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(found), sharey=True)
    for axes, (name, share) in zip(panels, found.items(), strict=True):
        many = int((share < 1 - alpha - TINY).sum())
        bold: dict[str, Any] = {"color": INK, "fontsize": 13, "fontweight": "bold"}
        axes.set_title(PANELS[name], loc="left", pad=22, **bold)
        beside: dict[str, Any] = {"transform": axes.transAxes, "color": INK}
        axes.text(0, 1.03, f"{many:,} of {share.size:,} plays below", fontsize=11, **beside)
        _panel(axes, share, 1 - alpha)
    panels[0].set_ylabel("worth of a play", color=INK, fontsize=11)
    return figure


def _panel(axes: Axes, share: Floats, floor: float) -> None:
    rounds = np.broadcast_to(np.arange(1, len(share) + 1)[:, None], share.shape)
    low = share < floor - TINY
    axes.axhspan(0, 100 * floor, color=RED, alpha=0.07, linewidth=0)
    axes.axhline(100 * floor, color=INK, linewidth=1.2)
    dots: dict[str, Any] = {"linestyle": "", "marker": ".", "markeredgewidth": 0}
    axes.plot(rounds[~low], 100 * share[~low], color=BLUE, alpha=0.25, markersize=2.4, **dots)
    axes.plot(rounds[low], 100 * share[low], color=RED, markersize=9, **dots)
    told = f"below {100 * floor:.3g} % of the baseline"
    axes.text(len(share), 4, f"{told} ", ha="right", color=INK, fontsize=10)
    # Who falls does so in the first rounds: this scale has room for them, and all the others.
    axes.set(xscale="log", xlim=(0.9, len(share)), ylim=(0, MOST), xlabel="round")
    axes.set_xticks(TICKS, labels=[f"{tick}" for tick in TICKS])
    axes.set_xticks((), minor=True)
    axes.yaxis.set_major_formatter("{x:.0f} %")
    axes.tick_params(color=GREY, labelcolor=INK, labelsize=10, length=3)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw the picture and print its numbers."""
    usual = RunConfig()
    found = {name: shares(usual.updated({}, algorithms=(name,))) for name in PANELS}
    for name, share in found.items():
        many = int((share < 1 - usual.floor_alpha - TINY).sum())
        print(
            f"{name}: {many:,} of {share.size:,} plays below the floor, the lowest at "
            f"{share.min():.0%} of the baseline, all at {share.mean():.0%} on average"
        )
    draw(found, usual.floor_alpha).savefig(FILE, dpi=130)
    print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
