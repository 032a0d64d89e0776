"""The summary, one line per algorithm, for the terminal and for the report."""

from __future__ import annotations

from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from guardband.report.verdict import promises, violates
from guardband.report.words import number, percent, run_line
from guardband.sim import Results, Series
from guardband.sim.stats import interval_half_width

__all__ = ["COLUMNS", "Row", "note", "rows", "table"]

COLUMNS = ("algorithm", "regret", "violations", "safe", "syncs", "reward")
NOTE = (
    "regret and violations (rounds: expected / realised) per agent; safe: share of conservative "
    "rounds; reward per round and against the baseline's; ± 95 % interval of the mean"
)


def note(results: Results) -> str:
    """Return what the columns mean, and why a regret may be negative where one is."""
    if all((series.regret.mean() >= 0) for series in results.series):
        return NOTE
    return NOTE + (
        "; regret is negative where the best action by expected features, which it is measured "
        "against, is not the best by the true ones"
    )


class Row(NamedTuple):
    """What the table says of one algorithm."""

    cells: tuple[str, ...]
    broken: bool  # it violated what it promised
    yardstick: bool


def rows(results: Results) -> list[Row]:
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
        caption=Text(note(results)),
        pad_edge=False,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1),
        title_style="bold",
        caption_justify="left",
    )
    made.add_column(COLUMNS[0], overflow="fold", min_width=12)
    for column in COLUMNS[1:]:
        made.add_column(column, justify="right", no_wrap=True)
    for row in rows(results):
        style = "bold red" if row.broken else "dim" if row.yardstick else ""
        made.add_row(*(Text(cell) for cell in row.cells), style=style)
    return made


def _row(results: Results, series: Series) -> Row:
    rounds = results.settings["rounds"]
    reward = float(series.totals["reward"].mean()) / rounds
    baseline = float(series.totals["baseline_reward"].mean()) / rounds
    cells = (
        series.label,
        _regret(series),
        _violations(series),
        percent(float(series.conservative.mean()) / rounds),
        number(float(series.sync_rounds.mean())),
        f"{reward:.3f} {_against(reward, baseline)}".rstrip(),
    )
    broken = promises(results, series) and violates(results, series)
    return Row(cells, broken, series.algorithm == "baseline")


def _regret(series: Series) -> str:
    samples = series.regret.mean(axis=1)
    mean = number(float(samples.mean()))
    if len(samples) == 1:
        return mean
    half = float(interval_half_width(samples))
    return f"{mean} ± {half:,.0f}" if half >= 10 else f"{mean} ± {half:.2g}"


def _violations(series: Series) -> str:
    kinds = (series.violations_expected, series.violations_realised)
    return " / ".join(_count(float(kind.mean())) for kind in kinds)


def _count(value: float) -> str:
    """Return a mean count; two digits of a small one leave room for names on a narrow screen."""
    return f"{value:.2g}" if 1e-3 <= value < 1 else number(value)


def _against(reward: float, baseline: float) -> str:
    """Return the gain over the baseline; a share of nothing, or of a loss, would mislead."""
    return f"{100 * (reward / baseline - 1):+.0f} %".replace("-", "−") if baseline > 0 else ""
