"""Which of a rival's settings is its strongest on a problem."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from guardband.algorithms import ALGORITHMS, plain_name

__all__ = ["Tally", "leaders", "rival_of", "strongest"]

TOLD = "-told"  # of settings that a panel adds: told as much as Guard-UCB
OWN = "own"


class Tally(NamedTuple):
    """What one setting of a rival did on a problem: mean regret, and plays below the floor."""

    name: str
    regret: float
    below: float


def rival_of(name: str) -> str:
    """Return the plain name of the algorithm that a setting belongs to; our own stand alone."""
    entry = ALGORITHMS[name.removesuffix(TOLD)]
    return name if entry.reading == OWN else plain_name(entry.kind)


def strongest(played: Iterable[Tally]) -> str:
    """Return the setting with the least regret, among those that kept a promise per round.

    Where none kept it, or none is made, the least regret decides alone.
    """

    def rank(each: Tally) -> tuple[bool, float]:
        stage_wise = ALGORITHMS[each.name.removesuffix(TOLD)].constraint == "stage-wise"
        return stage_wise and each.below > 0.0, each.regret

    return min(played, key=rank).name


def leaders(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per rival of one problem's table, that of its strongest setting.

    Our own come first, then rivals by regret, those that are inferred after all others, and the
    references. The column "setting" says which it is, "others" what its other settings lost.
    """
    rows: list[dict[Any, Any]] = []
    for rival, part in table.groupby(table["algorithm"].map(rival_of), sort=False):
        columns = ["algorithm", "regret", "below floor, expected"]
        best = strongest(Tally(*values) for values in part[columns].itertuples(index=False))
        entry = ALGORITHMS[best.removesuffix(TOLD)]
        others = [
            f"{_setting(name, str(rival))} {regret:,.0f}"
            for name, regret, _ in part[columns].itertuples(index=False)
            if name != best
        ]
        row = part[part["algorithm"] == best].iloc[0].to_dict()
        alone = entry.reading == OWN
        rows.append(
            row
            | {
                "setting": "" if alone else _setting(best, str(rival)),
                "others": "; ".join(others),
                "reading": entry.reading,
                "place": _place(str(rival), entry.reading),
            }
        )
    found = pd.DataFrame(rows)
    ours = found[found["place"] == 0]  # in the order of the list
    return pd.concat([ours, found[found["place"] > 0].sort_values(["place", "regret"])])


def _setting(name: str, rival: str) -> str:
    return name.removeprefix(rival).removeprefix("-") or "theory"


def _place(rival: str, reading: str) -> int:
    if reading == OWN:
        return 3 if ALGORITHMS[rival].source == "-" else 0
    return 2 if reading == "inferred" else 1
