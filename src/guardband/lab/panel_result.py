"""The result of one panel: its numbers, its verdicts, and what they cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from guardband.lab.panel import VERDICTS, Claim, Panel, RunOptions, RunResult, RunResults
from guardband.sim import mean_interval

__all__ = ["PanelResult"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PanelResult:
    """A finished panel.

    Attributes
    ----------
    results
        What each run gave.
    claims
        What the numbers say about each sentence.
    seconds
        The work of its trials, added up over all workers, and of judging them; trials that were
        kept from before count with what they cost then.
    agent_rounds
        How many decisions that was.
    """

    panel: Panel
    options: RunOptions
    results: RunResults
    claims: tuple[Claim, ...]
    seconds: float
    agent_rounds: int

    def verdicts(self) -> dict[str, int]:
        """Return how many claims have each verdict."""
        said = [claim.verdict for claim in self.claims]
        return {words: said.count(words) for words in VERDICTS}

    @property
    def left_out(self) -> list[str]:
        """Names of algorithms that were asked for, but have no place in the panel."""
        there = {result.run.algorithm.name for result in self.results.values()}
        return [name for name in self.options.extra if name not in there]

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints: plain values, None where a number is not one."""
        return {
            "panel": self.panel.name,
            "scale": self.options.scale,
            "settings": self.options.settings,
            "series": [_row(label, result) for label, result in self.results.items()],
            "claims": [asdict(claim) for claim in self.claims],
            "seconds": self.seconds,
        }


def _row(label: str, result: RunResult) -> dict[str, Any]:
    """Return one curve's numbers: means over agents and trials."""
    series, run = result.series, result.run
    regret, low, high = mean_interval(series.regret.mean(axis=1))
    return {
        "algorithm": series.algorithm,
        "label": label,
        "agents": series.regret.shape[1],
        "alpha": run.alpha,
        "regret_per_agent": _plain(regret),
        "regret_expected_per_agent": _plain(series.regret_expected.mean()),
        "regret_ci": [_plain(low), _plain(high)],
        "violations_expected": _plain(series.violations_expected.mean()),
        "violations_realised": _plain(series.violations_realised.mean()),
        "conservative_share": _plain(series.conservative.mean() / run.rounds),
        "sync_rounds": _plain(series.sync_rounds.mean()),
        "numbers_sent": _plain(series.numbers_sent.mean()),
    }


def _plain(value: float) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
