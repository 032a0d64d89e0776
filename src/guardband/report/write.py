"""The report of one comparison."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from guardband.report.page import code, page, picture, section, tabulate
from guardband.report.pictures import inline_svg, save_png
from guardband.report.rerun import rerun_code
from guardband.report.table import DRAWN, columns, note, rows
from guardband.report.verdict import verdict
from guardband.report.words import floor, has_costs, has_values, run_line
from guardband.sim import Results

__all__ = ["write_report"]

# File name -> the metric it shows.
PICTURES = {
    "regret": "regret",
    "violations": "violations_expected",
    "conservative": "conservative",
    "reward": "reward",
    "value": "value",
    "value_regret": "value_regret",
    "cost": "cost",
}
# Those of problems with values or costs, and which those are.
WORTH = {"value": has_values, "value_regret": has_values, "cost": has_costs}


def write_report(
    results: Results,
    folder: str | Path,
    *,
    title: str | None = None,
    command: str | None = None,
) -> Path:
    """Write report.html, its pictures as PNG, and the numbers as CSV and JSON.

    Parameters
    ----------
    results
        What `gb.simulate` returned.
    folder
        Where to; made if need be. Files of an earlier report are replaced.
    title
        The heading; by default it names the problem.
    command
        The command line that led to the results, if there was one.

    Returns
    -------
    Path
        The HTML file. It is complete in itself and can be sent or moved alone.
    """
    target = results.save(folder)
    heading = f"A comparison on {results.problem}" if title is None else title
    lines = rows(results)
    alarm = " alarm" if any(row.broken for row in lines) else ""
    kinds = ["alarm" if row.broken else "quiet" if row.reference else "" for row in lines]
    cells = [(*row.cells, row.drawn) for row in lines]
    summary = tabulate((*columns(results), DRAWN), cells, kinds=kinds, numbers=True)
    found = "".join(f"<li>{escape(sentence)}</li>" for sentence in verdict(results))
    file = target / "report.html"
    parts = [
        f"<header><h1>{escape(heading)}</h1>",
        f'<p class="run">{escape(run_line(results))}</p>',
        f'<ul class="verdict{alarm}">{found}</ul></header>',
        section("Summary", summary, f'<p class="note">{escape(note(results, drawn=True))}</p>'),
        section(
            "Over the rounds",
            '<div class="pictures">',
            *_pictures(results, target),
            "</div>",
        ),
        section("Settings", tabulate([], _settings(results))),
        section("Parameters of the algorithms", _parameters(results)),
        section("Run it again", *_again(results, command)),
    ]
    file.write_text(page(heading, parts), encoding="utf-8")
    return file


def _pictures(results: Results, target: Path) -> Iterator[str]:
    captions = {
        "regret": "Reward lost against the best action, summed over the rounds, per agent.",
        "violations": f"Rounds in which an agent's expected reward fell below {floor(results)}.",
        "conservative": "Share of rounds in which an agent did not play an action of its choice.",
        "reward": "Average reward per round and agent, without noise.",
        "value": "Average value of what was played, per round and agent.",
        "value_regret": "Value lost against the best action that is safe, summed over the rounds.",
        "cost": "What was played cost so much, summed over the rounds, per agent.",
    }
    missing = {name for name, has in WORTH.items() if not has(results)}
    for name, metric in PICTURES.items():
        if name in missing:
            (target / f"{name}.png").unlink(missing_ok=True)  # one of an earlier report
            continue
        if name == "violations" and results.settings["alpha"] is None:
            (target / "violations.png").unlink(missing_ok=True)  # one of an earlier report
            yield "<p>Violations were not counted: there was no alpha to count them by.</p>"
            continue
        figure = results.plot(metric)
        save_png(figure, target / f"{name}.png")
        yield picture(inline_svg(figure, name), captions[name])


def _settings(results: Results) -> Iterator[tuple[str, str]]:
    settings = results.settings
    yield "problem", results.problem
    world = [f"{k} {_shown(v)}" for k, v in settings["problem"].items() if k != "name"]
    if world:
        yield "its settings", ", ".join(world)
    for key in ("agents", "rounds", "trials", "seed"):
        yield key, f"{settings[key]:,}" if key != "seed" else str(settings[key])
    alpha = settings["alpha"]
    same = alpha is not None and len(set(alpha)) == 1
    yield "violations counted by alpha", _shown(alpha[0] if same else alpha)
    if settings.get("history") is not None:
        rounds, rule = settings["history"]
        yield "history", f"{rounds:,} rounds before the first, {rule}"
    if settings["replayed"]:
        yield "random draws", "replayed from arrays"
    yield "time", f"{settings['seconds']:.1f} s"
    yield "versions", ", ".join(f"{what} {name}" for what, name in settings["versions"].items())
    commit = settings["commit"]
    if commit is not None:
        edited = ", with changes that were not committed" if commit.endswith("+") else ""
        yield "commit", commit.removesuffix("+") + edited


def _parameters(results: Results) -> str:
    """Return a table of every algorithm's parameters, one column each."""
    keys = dict.fromkeys(key for series in results.series for key in series.settings)
    if not keys:
        return "<p>None of them has any.</p>"
    lines = (
        [key, *(_shown(s.settings[key]) if key in s.settings else "" for s in results.series)]
        for key in keys
    )
    return tabulate(["parameter", *(s.label for s in results.series)], lines)


def _again(results: Results, command: str | None) -> Iterator[str]:
    if command is not None:
        yield code(command)
        yield "<p>or, in Python:</p>"
    yield code(rerun_code(results))
    yield (
        '<p class="note">The same seed gives the same numbers, whatever the number of cores. '
        "Beside this file lie summary.csv, agents.csv, curves.csv, settings.json and the "
        "pictures as PNG.</p>"
    )


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
