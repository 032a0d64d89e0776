"""The summary, one line per algorithm, for the terminal and for the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from guardband.report.promises import below_floor, is_frozen, promises, violates
from guardband.report.words import (
    MINUS,
    floor,
    has_costs,
    has_values,
    number,
    percent,
    run_line,
)
from guardband.sim import Results, Series, interval_half_width

__all__ = ["DRAWN", "SummaryRow", "columns", "note", "rows", "table"]

# Columns of problems with values or costs, and which those are.
WORTH = {"value": has_values, "value regret": has_values, "cost": has_costs}
COLUMNS = ("algorithm", "regret", "below", "held back", "syncs", "reward")
UNSHOWN = ("regret", "syncs")  # in the terminal, where values take their room
DRAWN = "below floor as drawn"  # a column of the report; the terminal has no room for it


def columns(results: Results) -> tuple[str, ...]:
    """Return the names of the columns; value and cost where the problem has them."""
    return COLUMNS + tuple(name for name, has in WORTH.items() if has(results))


def note(results: Results, *, drawn: bool = False) -> str:
    """Return what the columns mean, and why a regret may be negative where one is.

    `drawn`: the one of what was drawn is there, too.
    """
    if is_frozen(results):
        sense = "as drawn, that is by the true features, as those that agents see are inexact here"
    else:
        sense = "in expectation, that is on average over what agents cannot see"
    told = (
        "Per agent. regret: reward lost against the best action, ± 95 % interval of the mean; "
        f"below: rounds below the floor, {floor(results)}, {sense}; held back: share of rounds "
        "in which it stayed with the baseline to be safe; syncs: exchanges of data; reward: per "
        "round, and against the baseline's."
    )
    if drawn:
        told += (
            f" {DRAWN}: the same by the true features of the round, which nobody knows "
            "beforehand: promises are about the average over them."
        )
    if has_values(results):
        told += (
            " value: per round, and the baseline's; value regret: value lost against the best "
            "action that is safe."
        )
    if has_costs(results):
        told += " cost: per round."
    if all(series.regret.mean() >= 0 for series in results.series):
        return told
    if is_frozen(results):
        return told + (
            " Regret compares with the action that looks best by the features agents are given; "
            "those are inexact here, so an agent can do better: negative regret."
        )
    return told + (
        " Regret compares with the action that is best on average; what was drawn can be better: "
        "negative regret."
    )


class SummaryRow(NamedTuple):
    """What the table says of one algorithm."""

    cells: tuple[str, ...]
    drawn: str  # rounds below the floor in the context that was drawn
    broken: bool  # it violated what it promised
    reference: bool


def rows(results: Results) -> list[SummaryRow]:
    """Return the cells of the summary, in the order of the algorithms."""
    return [_row(results, series) for series in results.series]


def table(results: Results) -> Table:
    """Return the summary for the terminal; it fits into 80 columns.

    Parameters
    ----------
    results
        What `gb.simulate` returned.

    Returns
    -------
    rich.table.Table
        To be printed by a `rich.console.Console`.
    """
    made = Table(
        title=Text(run_line(results)),
        min_width=min(80, len(run_line(results))),  # the title in one line
        caption=Text(note(results)),
        pad_edge=False,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1),
        title_style="bold",
        caption_justify="left",
    )
    names = columns(results)
    shown = [i for i, name in enumerate(names) if name not in UNSHOWN or not has_values(results)]
    first, *others = (names[i] for i in shown)
    made.add_column(first, overflow="fold", min_width=12)
    for column in others:
        made.add_column(column, justify="right", no_wrap=True)
    for row in rows(results):
        style = "bold red" if row.broken else "dim" if row.reference else ""
        made.add_row(*(Text(row.cells[i]) for i in shown), style=style)
    return made


def _row(results: Results, series: Series) -> SummaryRow:
    rounds = results.settings["rounds"]
    reward = float(series.totals["reward"].mean()) / rounds
    baseline = float(series.totals["baseline_reward"].mean()) / rounds
    cells = (
        series.label,
        _regret(series),
        _count(float(below_floor(results, series).mean())),
        percent(float(series.conservative.mean()) / rounds),
        number(float(series.sync_rounds.mean())),
        f"{reward:.3f} {_against(reward, baseline)}".rstrip(),
        *_worth(results, series),
    )
    broken = promises(results, series) and violates(results, series)
    drawn = _count(float(series.violations_realised.mean()))
    return SummaryRow(cells, drawn, broken, series.policy.always_baseline)


def _worth(results: Results, series: Series) -> Iterator[str]:
    """Yield the cells of value and cost, where the problem has them."""
    rounds = results.settings["rounds"]
    if has_values(results):
        value, baseline = (series.totals[name].mean() for name in ("value", "baseline_value"))
        yield f"{number(value / rounds)} ({number(baseline / rounds)})"
        yield number(float(series.totals["value_regret"].mean()))
    if has_costs(results):
        yield number(float(series.totals["cost"].mean()) / rounds)


def _regret(series: Series) -> str:
    samples = series.regret.mean(axis=1)
    mean = number(float(samples.mean()))
    if len(samples) == 1:
        return mean
    half = float(interval_half_width(samples))
    if half < 1e-6:  # nothing but rounding
        return f"{mean} ± 0"
    return f"{mean} ± {half:,.0f}" if half >= 10 else f"{mean} ± {half:.2g}"


def _count(value: float) -> str:
    """Return a mean count; two digits of a small one leave room for names on a narrow screen."""
    return f"{value:.2g}" if 1e-3 <= value < 1 else number(value)


def _against(reward: float, baseline: float) -> str:
    """Return the gain over the baseline; a share of nothing, or of a loss, would mislead."""
    return f"{100 * (reward / baseline - 1):+.0f} %".replace("-", MINUS) if baseline > 0 else ""
