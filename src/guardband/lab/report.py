"""The report: one page that needs no network, and each panel as PNG, SVG and CSV beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from guardband.kernels.types import Floats, Ints
from guardband.lab.costs import authors_code
from guardband.lab.panel import VERDICTS, RunResult, RunResults
from guardband.lab.panel_result import PanelResult
from guardband.lab.sections import STYLE, earlier, navigation, panel_section, verdict_table
from guardband.report import code, page, save_png, section, tabulate
from guardband.sim import commit, interval_half_width, versions

__all__ = ["curves_table", "write_panel", "write_report"]

# What has a curve in the CSV file, of running sums per agent; all else has its sum at the end.
DRAWN = (
    "regret",
    "violations_realised",
    "violations_expected",
    "conservative",
    "reward",
    "baseline_reward",
)
CSV_POINTS = 50  # rounds of a curve, at most
CSV_ROUNDS = 1000  # of all runs together: panels of hundreds of runs are tables, not curves


def write_panel(outcome: PanelResult, folder: str | Path) -> None:
    """Write one panel as PNG, SVG and CSV.

    Parameters
    ----------
    outcome
        The finished panel.
    folder
        Where to; made if need be.
    """
    target, name = Path(folder), outcome.panel.name
    target.mkdir(parents=True, exist_ok=True)
    figure = outcome.panel.draw(outcome.options, outcome.results)
    save_png(figure, target / f"{name}.png")
    figure.savefig(target / f"{name}.svg", metadata={"Date": None})
    curves_table(outcome.results).to_csv(target / f"{name}.csv", index=False, float_format="%.8g")


def write_report(
    outcomes: Sequence[PanelResult],
    folder: str | Path,
    *,
    command: str,
    missing: Sequence[str] = (),
) -> Path:
    """Write index.html: the verdicts on all claims first, then every panel.

    Parameters
    ----------
    outcomes
        The finished panels, in the order of the page; at least one.
    folder
        Where to; the files of `write_panel` belong beside it. A page from before is replaced; the
        files of its panels stay, and are linked.
    command
        The command line that asked for them.
    missing
        Names of panels that were asked for and are not finished.

    Returns
    -------
    Path
        The page. It is complete in itself and can be sent or moved alone.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    heading, options = "The paper's evaluation, run again", outcomes[0].options
    parts = [
        f"<header><h1>{heading}</h1>",
        '<p class="run">Lin and Moothedath, Distributed Multi-Task Learning for Stochastic Bandits '
        "with Context Distribution and Stage-wise Constraints</p>",
        f'<p class="run">scale {options.scale} · settings {options.settings} · seed {options.seed}'
        f" · {escape(_total(outcomes))}</p>",
        f'<p class="run">{escape(_about(outcomes, missing))}</p>',
        _counts(outcomes),
        navigation(outcomes),
        "</header>",
        section("Verdicts", verdict_table(outcomes), _meaning()),
        *(panel_section(outcome) for outcome in outcomes),
        section("Run it again", code(command), tabulate([], _origin(outcomes))),
    ]
    others = earlier(target, outcomes)
    if others:
        parts.append(section("Earlier panels in this folder", others))
    file = target / "index.html"
    file.write_text(page(heading, parts, style=STYLE), encoding="utf-8")
    return file


def curves_table(results: RunResults) -> pd.DataFrame:
    """Return one row per run, metric and round: mean over agents and trials, interval.

    Metrics that are drawn have at most 50 rounds, fewer where runs are many; others the last one.
    """
    columns = ["label", "round", "metric", "mean", "low", "high"]
    points = min(CSV_POINTS, max(1, CSV_ROUNDS // max(len(results), 1)))
    frames = [
        pd.DataFrame(
            {
                "label": label,
                "round": rounds,
                "metric": metric,
                "mean": samples.mean(axis=0),
                "low": samples.mean(axis=0) - interval_half_width(samples),
                "high": samples.mean(axis=0) + interval_half_width(samples),
            }
        )
        for label, result in results.items()
        for metric, rounds, samples in _samples(result, points)
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _samples(result: RunResult, points: int) -> Iterator[tuple[str, Ints, Floats]]:
    """Yield each metric with the rounds of its samples, and these as (trials, rounds)."""
    series, last = result.series, result.rounds[-1:]
    # From the end, which is always there.
    some = np.unique(np.linspace(len(result.rounds) - 1, 0, points).round().astype(np.intp))
    for metric in DRAWN:
        yield metric, result.rounds[some], series.curves[metric].mean(axis=2)[:, some]
    for metric, totals in series.totals.items():
        if metric not in DRAWN:
            yield metric, last, totals.mean(axis=1, keepdims=True)
    for metric in ("sync_rounds", "messages_sent", "numbers_sent"):
        yield metric, last, getattr(series, metric)[:, None].astype(np.float64)


def _counts(outcomes: Sequence[PanelResult]) -> str:
    said = [claim.verdict for outcome in outcomes for claim in outcome.claims]
    many = {"holds": "hold", "holds vacuously": "hold vacuously", "does not hold": "do not hold"}
    blocks = "".join(
        f"<div><b>{said.count(words)}</b>{many.get(words, words)}</div>" for words in VERDICTS
    )
    return f'<div class="counts"><div><b>{len(said)}</b>claims</div>{blocks}</div>'


def _meaning() -> str:
    return (
        '<p class="note">A comparison holds if the 95 % interval of the mean difference over '
        "trials lies wholly on the claimed side; it does not hold if the interval lies wholly on "
        "the other, or if there is no difference in any trial; else it is inconclusive at this "
        "scale. Trials are pairs: the same world and the same draws. A claim of never is settled "
        "by counting. What is said to improve by learning alone does not where no agent ever left "
        "the baseline. A claim holds vacuously if the runs that it speaks of were conservative in "
        "at least 90 % of the rounds: it is then a claim about the baseline. "
        "Brackets are 95 % intervals. Nothing was tuned to make a claim hold.</p>"
    )


def _about(outcomes: Sequence[PanelResult], missing: Sequence[str]) -> str:
    names = [outcome.panel.name for outcome in outcomes]
    text = f"This page is about panel{'s' * (len(names) > 1)} {', '.join(names)}."
    if missing:
        text += f" The command was stopped before it had finished {', '.join(missing)}."
    return text


def _total(outcomes: Sequence[PanelResult]) -> str:
    rounds = sum(outcome.agent_rounds for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return f"{rounds:,} agent-rounds, {seconds:,.0f} seconds of one core"


def _origin(outcomes: Sequence[PanelResult]) -> Iterator[tuple[str, str]]:
    yield "versions", ", ".join(f"{what} {name}" for what, name in versions().items())
    named = commit()
    if named is not None:
        edited = ", with changes that were not committed" if named.endswith("+") else ""
        yield "commit", named.removesuffix("+") + edited
    result = [each for outcome in outcomes for each in outcome.results.values()]
    decisions, theirs = authors_code(result)
    if decisions:
        yield (
            "the authors' notebooks",
            f"about {theirs / 3600:,.0f} h for the {decisions:,} agent-rounds of algorithms that "
            "they have, at 92 ms per optimistic one (K = 40, d = 2) and 0.25 ms per conservative",
        )
    yield "same numbers", "the same seed gives the same, whatever the number of cores"
