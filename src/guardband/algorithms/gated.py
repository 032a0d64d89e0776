"""The gate of algorithms that play the baseline until lambda_min(V) is large enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from guardband.algorithms.base import Conservative
from guardband.checks import as_array, check_choice, check_not_negative
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.types import Floats, Gate

__all__ = ["GapGated", "Gated"]

NEEDS_OPTIMUM = (
    "gate='gap' needs the true optimum, which only a simulation knows; "
    "use gate='printed' or gate='none'."
)
GATES = {"printed": Gate.PRINTED, "gap": Gate.GAP, "none": Gate.NONE}


@dataclass(frozen=True)
class Gated(Conservative):
    """A gate, and what it is told.

    Parameters
    ----------
    gate
        When lambda_min(V) lets an agent leave the baseline: "printed" at
        (2 L beta / (alpha r_b))^2; "gap" at (2 L beta / (gap + alpha r_b))^2; "none" at once.
    gap
        What the gap gate is told of the optimum's lead over the baseline: (M, C), or one number;
        None takes each context's optimum minus the largest baseline reward from the problem,
        which needs the truth.
    """

    gate: str = field(default="printed", kw_only=True)
    gap: Any = field(default=None, kw_only=True, compare=False)

    gates: ClassVar[tuple[str, ...]] = tuple(GATES)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gate", self.gate, self.gates)
        if self.gap is None:
            return
        if self.gate != "gap":
            raise InvalidValueError(f"gap is read by gate='gap' only, not by gate={self.gate!r}.")
        if np.ndim(self.gap) == 0:
            object.__setattr__(self, "gap", check_not_negative("gap", self.gap))
        else:
            object.__setattr__(self, "gap", as_array("gap", self.gap, (None, None)))

    def _playable(self) -> Self:
        if self.gate == "gap":
            raise InvalidValueError(NEEDS_OPTIMUM)
        return super()._playable()

    def _told_gap(self, facts: Facts) -> Floats | None:
        """Return what the gap gate is told, (M, C)."""
        if self.gate != "gap":
            return None
        if facts.gap is None and self.gap is None:
            raise InvalidValueError(NEEDS_OPTIMUM)
        if self.gap is None or facts.gap is None:
            return facts.gap if self.gap is None else self.gap
        return np.full_like(facts.gap, self.gap) if np.ndim(self.gap) == 0 else self.gap


@dataclass(frozen=True)
class GapGated(Gated):
    """A gate that may be told a lower bound on the optimum's lead, as SCLTS and SCLUCB have it.

    Parameters
    ----------
    kappa_l
        The optimum leads the baseline by this or more in every round; the gate has
        kappa_l + alpha r_b in the place of alpha r_b. 0: nothing is known.
    """

    kappa_l: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "kappa_l", check_not_negative("kappa_l", self.kappa_l))
        if self.kappa_l > 0 and self.gate != "printed":
            raise InvalidValueError(
                f"kappa_l is read by gate='printed' only, not by gate={self.gate!r}."
            )
