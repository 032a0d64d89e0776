"""How `guardband reproduce` shows panels, verdicts and speed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from guardband import lab

__all__ = ["cost_table", "duration", "finished", "list_table", "listed_panels", "speed"]
__all__ += ["verdict_table"]

STYLES = {
    "holds": "green",
    "holds vacuously": "cyan",
    "does not hold": "red",
    "inconclusive": "yellow",
}
FEW = 4  # panels up to which the table has room for numbers


def list_table(options: lab.RunOptions, panels: Iterable[lab.Panel], workers: int) -> Table:
    """Return the panels with their question, size and estimated time."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.title = f"scale {options.scale}, settings {options.settings}, {_counted(workers, 'core')}"
    for heading in ("panel", "time", "size", "question"):
        table.add_column(heading, no_wrap=heading in ("panel", "time"))
    everything: dict[str, float] = {}
    for panel in panels:
        runs = panel.runs(options)
        costs = _costs(runs)
        everything |= costs
        time = duration(sum(costs.values()) / workers)
        table.add_row(panel.name, time, _size(runs), escape(panel.question))
    total = duration(sum(everything.values()) / workers)
    table.add_row("all", total, f"{len(everything):,} trials", "trials that panels share run once")
    return table


def listed_panels(
    options: lab.RunOptions, panels: Iterable[lab.Panel], workers: int
) -> list[dict[str, Any]]:
    """Return the same as plain values; seconds are estimated, for so many workers."""
    listed = []
    for panel in panels:
        runs = panel.runs(options)
        listed.append(
            {
                "panel": panel.name,
                "question": panel.question,
                "runs": len(runs),
                "agent_rounds": sum(lab.agent_rounds(run) for run in runs),
                "seconds": sum(_costs(runs).values()) / workers,
            }
        )
    return listed


def finished(outcome: lab.PanelResult) -> str:
    """Return the line that reports a finished panel."""
    said = ", ".join(f"{words}: {count}" for words, count in outcome.verdicts().items() if count)
    return (
        f"{outcome.panel.name}: {said or 'no claims'} · {duration(outcome.seconds)} · "
        f"{_rate(outcome.agent_rounds, outcome.seconds)}"
    )


def verdict_table(outcomes: Sequence[lab.PanelResult]) -> Table:
    """Return a row for each claim; with the numbers, where panels are few."""
    table = Table(box=None, pad_edge=False, title="claims", title_justify="left")
    for heading in ("panel", "verdict", "claim"):
        table.add_column(heading, no_wrap=heading != "claim")
    for outcome in outcomes:
        for claim in outcome.claims:
            style, words = STYLES[claim.verdict], claim.verdict
            text = escape(claim.text)
            if len(outcomes) < FEW and claim.detail:
                text += f"\n[dim]{escape(claim.detail)}[/dim]"
            table.add_row(outcome.panel.name, f"[{style}]{words}[/{style}]", text)
    return table


def cost_table(outcomes: Sequence[lab.PanelResult]) -> Table:
    """Return a row for each panel: verdicts, seconds of one core, agent-rounds per second."""
    close = (0, 1, 0, 0)  # eight columns in eighty characters
    table = Table(box=None, pad_edge=False, padding=close, title="\npanels", title_justify="left")
    for heading in (
        "panel",
        *lab.VERDICTS,
        "core seconds",
        "agent-rounds",
        "per core second",
    ):
        whole = " " not in heading  # others break
        table.add_column(heading, justify="left" if heading == "panel" else "right", no_wrap=whole)
    for outcome in outcomes:
        table.add_row(
            outcome.panel.name,
            *(str(count) for count in outcome.verdicts().values()),
            f"{outcome.seconds:,.1f}",
            f"{outcome.agent_rounds:,}",
            f"{outcome.agent_rounds / max(outcome.seconds, 1e-9):,.0f}",
        )
    return table


def speed(
    outcomes: Sequence[lab.PanelResult], seconds: float, ran: int, trials: int, rounds: int
) -> str:
    """Return what was done in which time, and what the authors' code would need for it."""
    done = f"{ran:,} of {trials:,} trials were run, judged and drawn in {duration(seconds)}"
    done += f", {_rate(rounds, seconds)}" if ran else ""
    kept = f"; {trials - ran:,} were kept from before" if ran < trials else ""
    result = [each for outcome in outcomes for each in outcome.results.values()]
    decisions, theirs = lab.authors_code(result)
    text = f"\n{done}{kept}."
    if decisions:
        text += (
            f"\nThe authors' notebooks would need about {duration(theirs)} for the {decisions:,} "
            "agent-rounds of algorithms\nthat they have, at 92 ms per optimistic round (measured "
            "at K = 40, d = 2) and 0.25 ms per conservative one."
        )
    return text


def duration(seconds: float) -> str:
    """Return a time in a suitable unit."""
    for unit, length in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _costs(runs: Sequence[lab.Run]) -> dict[str, float]:
    """Return the estimated seconds of every trial by its key: what runs share counts once."""
    return {trial.key: trial.cost for run in runs for trial in lab.trials_of(run)}


def _rate(rounds: int, seconds: float) -> str:
    rate = rounds / max(seconds, 1e-9)
    return (
        f"{rate / 1e6:.2f} million agent-rounds/s" if rate >= 1e5 else f"{rate:,.0f} agent-rounds/s"
    )


def _size(runs: Sequence[lab.Run]) -> str:
    """Return runs x trials x rounds; ranges where they differ."""
    if not runs:
        return "no runs"
    trials, rounds = ([getattr(run, name) for run in runs] for name in ("trials", "rounds"))
    return f"{len(runs)} × {_range(trials)} × {_range(rounds)}"


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
