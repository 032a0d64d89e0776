"""What a decision says about all actions: computed when it is asked for, by what was known then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardband.kernels.types import Floats

__all__ = ["Weighed"]

Both = tuple[NDArray[np.bool_], Floats | None]


class Weighed:
    """Which actions are certified, and the table of a decision.

    Parameters
    ----------
    found
        Both, or what computes them: it must hold all that was known at the decision.
    """

    __slots__ = ("_found",)

    def __init__(self, found: Both | Callable[[], Both]) -> None:
        self._found = found

    def _both(self) -> Both:
        found = self._found
        if callable(found):
            found = self._found = found()  # what it held is let go
        return found

    @property
    def certified(self) -> NDArray[np.bool_]:
        """(K,): whether each action is certified to clear the floor."""
        return self._both()[0]

    @property
    def table(self) -> Floats | None:
        """(3, K), see `Decision`; None where no action was weighed."""
        return self._both()[1]

    def __repr__(self) -> str:
        return "Weighed(...)"  # to show it would be to compute it

    def __reduce__(self) -> tuple[Any, ...]:
        return Weighed, (self._both(),)
