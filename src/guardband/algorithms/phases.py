"""What elimination methods do between phases: pool, estimate, eliminate, design.

Contexts change from round to round, so survivors are kept for every distinct task and context;
one estimate of the shared theta drives them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from guardband.algorithms.design import CUT, Design, optimal_design
from guardband.errors import InvalidValueError
from guardband.facts import Facts
from guardband.kernels.rivals import Mode, PhasePlan, new_phase_plan
from guardband.kernels.types import Floats, Ints

__all__ = ["Phases", "Phasing", "require_contexts"]


class Phases(ABC):
    """A run in phases: agents follow the plan `phase` for `length` rounds, then `turn` ends it.

    Parameters
    ----------
    mode
        How agents read the plan.
    features
        (G, C, K, d): the features of every distinct task and context, zero outside the task.
    group
        (M,): every agent's distinct task.
    """

    def __init__(self, mode: Mode, features: Floats, group: Ints) -> None:
        groups, contexts, actions, dim = features.shape
        self.features = features
        self.alive = np.ones((groups, contexts, actions), bool)
        self.copies = np.repeat(np.bincount(group, minlength=groups), contexts).astype(np.float64)
        self.phase: PhasePlan = new_phase_plan(mode, (groups, contexts, actions), group.size, dim)
        self.number = 1
        self.theta = np.zeros(dim)
        self._write()

    @property
    @abstractmethod
    def length(self) -> int:
        """How many rounds the present phase has."""

    def turn(self) -> None:
        """End the phase: learn from what all agents saw in it, then begin the next."""
        phase = self.phase
        self._eliminate(phase.gram.sum(axis=0), phase.moment.sum(axis=0))
        self.number += 1
        for sums in (phase.counts, phase.visits, phase.gram, phase.moment):
            sums[...] = 0.0
        phase.inverse[...] = np.eye(self.theta.size)
        self._write()

    @abstractmethod
    def _eliminate(self, gram: Floats, moment: Floats) -> None:
        """Test the survivors on the data of the phase."""

    @abstractmethod
    def _write(self) -> None:
        """Write the plan of the present phase."""

    def _fit(self, gram: Floats, moment: Floats) -> tuple[Floats, Floats]:
        """Estimate theta; return means and norm(z)_{V^+} of all actions, (G, C, K).

        The norm is infinite for an action with a part in a direction that no agent explored: no
        test says anything about it.
        """
        inverse = np.linalg.pinv(gram, rcond=CUT, hermitian=True)
        self.theta = inverse @ moment
        z = self.features
        form = ((z @ inverse) * z).sum(axis=-1)
        beyond = z - z @ (inverse @ gram)
        unseen = (beyond**2).sum(axis=-1) > 1e-12 * (z**2).sum(axis=-1)
        width: Floats = np.where(unseen, np.inf, np.sqrt(np.maximum(form, 0.0)))
        return z @ self.theta, width

    def _design(self) -> Design:
        """Return the joint design over the survivors; one simplex per agent and context."""
        groups, contexts, actions, dim = self.features.shape
        flat = self.features.reshape(groups * contexts, actions, dim)
        return optimal_design(flat, self.alive.reshape(flat.shape[:2]), self.copies)


class Phasing(NamedTuple):
    """A plan's method: how to begin a run in phases, from features and groups."""

    begin: Callable[[Floats, Ints], Phases]


def require_contexts(facts: Facts, name: str, context: str, remedy: str) -> int:
    """Return the number of contexts, if the features that agents go by are known beforehand."""
    if facts.contexts is None or (context == "observed" and not facts.frozen):
        raise InvalidValueError(
            f"{name} designs its plays for contexts whose features are known beforehand, but here "
            f"every round brings its own (context={context!r}): {remedy}."
        )
    return facts.contexts
