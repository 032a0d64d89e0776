"""The page of a study: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guardband.report import code, inline_svg, number, page, percent, picture, section, tabulate
from guardband.studies.contents import SHOWN, SPANS
from guardband.studies.drawings import draw_rates, draw_values
from guardband.studies.expect import Expectation, Prospect
from guardband.studies.linearity import Linearity
from guardband.studies.values import Values

if TYPE_CHECKING:
    from guardband.studies.result import Study

__all__ = ["EXPECT_HEAD", "VALUE_HEAD", "expect_rows", "study_page", "value_rows"]

EXPECT_HEAD = (
    *("mode", "these logs", "leaves the baseline", "first learned play", "half learned"),
    *("cost", "why"),
)
VALUE_HEAD = (
    *("rule", "estimator", "per round", "95 %, any number of rows", "95 %, many rows"),
    *("rows", "effective", ""),
)

STYLE = "figure { max-width: 46rem; margin: 1rem 0; } .wide { margin: .8rem 0; }"
MODES = {"strict": "strict", "trial_budget": "strict, budget for trials", "policy": "policy"}


def study_page(study: Study) -> str:
    """Return the page of a study."""
    logs, config = study.logs, study.config
    title = "A study of logs, before an agent is switched on"
    run = (
        f"{len(logs):,} of {logs.total:,} rows were looked at, the first ones · {logs.dim} features"
        f" · alpha {config.alpha:g} · {config.rounds:,} rounds ahead · seed {config.seed}"
    )
    parts = [
        f"<header><h1>{escape(title)}</h1>",
        f'<p class="run">{escape(run)}</p>',
        f'<p class="verdict">{escape(study.recommendation)}</p></header>',
        section("1. What is there", *_contents(study)),
        section("2. Is a linear model good enough", *_linearity(study.linearity)),
        section("3. Settings that the data suggest", *_settings(study)),
        section("4. What to expect", *_expect(study.expectation)),
        section("5. What it would have earned", *_values(study.values)),
        section("6. What to do", *_advice(study)),
    ]
    return page(title, parts, style=STYLE)


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _list(sentences: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in sentences) + "</ul>"


def _contents(study: Study) -> Iterator[str]:
    contents = study.contents
    rows, rewards = contents.rows, contents.rewards
    least, most = rows["on_offer"]
    lines = [
        ("rows", f"{rows['total']:,}, of which {rows['looked_at']:,} are looked at"),
        ("labels", f"{rows['labels']:,}"),
        ("on offer", f"{least:,}" if least == most else f"{least:,} to {most:,}"),
        ("the baseline was played in", percent(rows["baseline_played"])),
        ("features", f"{rows['features']:,}"),
        (
            "mean reward",
            f"{number(rewards['mean'])} ± {number(rewards['std'])} (a row's deviation)",
        ),
        (
            "rewards",
            f"{number(rewards['least'])} to {number(rewards['most'])}"
            + (", yes or no" if rewards["binary"] else ""),
        ),
    ]
    lines += [(f"missing: {name}", f"{count:,}") for name, count in rows["missing"].items()]
    yield tabulate([], lines)
    if contents.suspects:
        told = [f"{name}: {why}" for name, why in contents.suspects.items()]
        yield "<p>Suspects: was this known before the action was chosen? If not, leave it out.</p>"
        yield _list(told)
    if rows["notes"]:
        yield "<p>What was found or decided while reading:</p>" + _list(rows["notes"])
    if len(contents.by_time) > 1:
        caption = "Mean reward over time, with 95 % intervals."
        drawn = draw_rates(contents.by_time, *_times(study))
        yield picture(inline_svg(drawn, "rates"), caption)
    shown = contents.by_action[:SHOWN]
    yield tabulate(
        ["label", "rows", "mean reward", "95 % interval"],
        [
            (str(r.name), f"{r.rows:,}", number(r.mean), f"{number(r.low)} to {number(r.high)}")
            for r in shown
        ],
        numbers=True,
    )
    if len(contents.by_action) > len(shown):
        yield _note(f"The {len(shown)} labels that were played most, of {rows['labels']:,}.")


def _times(study: Study) -> tuple[NDArray[Any], str]:
    """Return the middle of each span of time, dates as dates, and what the axis is called."""
    logs = study.logs
    times = np.arange(1.0, len(logs) + 1) if logs.times is None else logs.times
    parts = np.array([rate.name for rate in study.contents.by_time]) + 0.5
    middles = times[0] + parts * (times[-1] - times[0]) / min(SPANS, len(logs))
    named = study.config.time or "rows, in their order"
    return (middles * 1e6).astype("datetime64[us]") if logs.dated else middles, named


def _linearity(found: Linearity) -> Iterator[str]:
    words = {True: "Yes", False: "No", None: "The logs cannot tell"}
    yield f"<p><b>{words[found.good_enough]}</b>: {escape(found.because)}.</p>"
    yield tabulate(
        ["model, on rows it was not fitted to", "explained share of the variance"],
        [(name, percent(share)) for name, share in found.explained.items()],
        numbers=True,
    )
    yield tabulate(
        ["residuals", "group", "rows", "mean", "standard errors"],
        [
            (e.kind, e.name, f"{e.rows:,}", number(e.mean), f"{number(e.z)}{' !' * e.surprising}")
            for e in found.residuals
        ],
        kinds=["alarm" if e.surprising else "" for e in found.residuals],
    )
    if found.crosses:
        yield tabulate(
            ["crosses that would help", "adds to the explained share"],
            [(" x ".join(names), percent(gain)) for names, gain in found.crosses],
            numbers=True,
        )
    else:
        yield "<p>No cross of two columns was seen to help.</p>"
    yield _note(
        f"The test compares residuals with what squares, products and boosted trees, fitted to the "
        f"first half, foretell for the second; level {found.level:g}. Groups of residuals and "
        "crosses are judged at the same level, counting how many were looked at."
    )
    yield from map(_note, found.notes)


def _settings(study: Study) -> Iterator[str]:
    yield tabulate(
        ["setting", "value", "how sure", "why"],
        [
            (e.name, "leave it out" if e.value is None else f"{e.value}", e.sure, e.because)
            for e in study.settings
        ],
    )
    yield _note("Nothing of this is applied by itself: agent.toml holds it for you to change.")


def expect_rows(expectation: Expectation) -> list[tuple[str, ...]]:
    """Return what to expect, one line for each mode, under `EXPECT_HEAD`."""
    lines: list[tuple[str, ...]] = []
    for mode, name in MODES.items():
        outcomes = getattr(expectation, mode)
        for logs, prospect in (("with", outcomes.with_logs), ("without", outcomes.without_logs)):
            lines.append((name, logs, *_prospect(prospect)))
    return lines


def _prospect(found: Prospect) -> tuple[str, ...]:
    def when(rounds: int | None) -> str:
        return "not yet" if rounds is None else f"round {rounds:,}"

    leaves = {True: "yes", False: "no", None: "can't tell"}[found.can_leave]
    return (
        leaves,
        when(found.first_learned),
        when(found.half_learned),
        number(found.cost),
        found.because,
    )


def _expect(expectation: Expectation) -> Iterator[str]:
    yield tabulate(EXPECT_HEAD, expect_rows(expectation))
    yield _note(
        f"By simulation on these rows, {expectation.rounds:,} rounds ahead; with logs: after "
        f"{expectation.rows:,} rows like those that were not looked at. Cost: the most by which "
        "rewards, summed, fall behind the baseline's. Not yet: not within these rounds. The budget "
        f"for trials is {expectation.budget:.3g}."
    )
    yield from map(_note, expectation.notes)


def value_rows(values: Values) -> list[tuple[str, ...]]:
    """Return what rules would have earned, one line for each estimate, under `VALUE_HEAD`."""
    lines: list[tuple[str, ...]] = []
    for e in values.estimates:
        if e.value is None or e.low is None or e.high is None or e.asymptotic is None:
            told = ("can't tell", "", "")
        else:
            low, high = e.asymptotic
            told = (
                number(e.value),
                f"{number(e.low)} to {number(e.high)}",
                f"{number(low)} to {number(high)}",
            )
        rows = (f"{e.rows:,}", f"{e.effective_rows:,.0f}")
        lines.append((e.policy, e.estimator, *told, *rows, e.because))
    return lines


def _values(values: Values) -> Iterator[str]:
    yield f"<p>{escape(values.because[0].upper() + values.because[1:])}.</p>"
    if any(e.value is not None for e in values.estimates):
        caption = "Reward per round: thick lines hold for any number of rows, thin ones for many."
        yield picture(inline_svg(draw_values(values.estimates), "values"), caption)
    yield tabulate(VALUE_HEAD, value_rows(values))
    yield from map(_note, values.notes)


def _advice(study: Study) -> Iterator[str]:
    yield f"<p>{escape(study.recommendation)}</p>"
    columns = study.config.roles
    ids = f', ids=rest["{columns["id"]}"].tolist()' if "id" in columns else ""
    yield code(
        "import guardband as gb\n\n"
        'agent = gb.Agent.from_file("agent.toml")\n'
        f"rest = frame.iloc[{len(study.logs)}:]  # the rows that were not looked at\n"
        f'agent.learn(rest, rest["{columns["reward"]}"]{ids})\n'
        "d = agent.decide(offers, baseline=...)  # one row per action on offer"
    )
    yield _note(
        "agent.toml lies beside this page, with a file that knows the rows that were looked at "
        "again: learning them, too, would use them twice."
    )
