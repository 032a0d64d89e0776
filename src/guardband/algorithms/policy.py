"""The base class of policies: properties that other code reads instead of types or names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple

__all__ = ["Policy", "Rate"]


class Rate(NamedTuple):
    """What an agent's round costs in microseconds: start + feature d + scan K d.

    And a trial, per number in the table of features and per feature: design.
    """

    start: float
    feature: float
    scan: float
    design: float = 0.0


class Policy:
    """The base class of policies; its values are those of plain optimism for the simulator only.

    Attributes
    ----------
    constrained
        Whether it promises anything about the baseline.
    runs
        Where it can run beside `gb.simulate`: "agent" (and saved there), "live".
    told
        What agents may be told for it that is no setting of its own: "horizon", "reward_floor".
    presets
        The names under which the class is listed, and the settings that make it each of them.
    of_paper
        Whether it is one of the paper's own: reports speak of the paper's promise and gate.
    always_baseline
        Whether it only ever plays the baseline: the reference that others are compared with.
    gates
        The gates that it can have between the baseline and everything else.
    weighted
        Whether observations have weights 1 / variance: then sums count in units of the noise.
    differences
        Whether an action is certified by its difference to the baseline, and not by its own bound.
    anytime
        Whether it pools by the anytime rule, and splits delta over agents and epochs by itself.
    needs_model
        Whether its promise needs what the theory assumes: rewards in [0, 1], and expected features
        without a frozen error. The paper's algorithms are taken to promise more.
    reports
        Whether it keeps sums of the baseline rewards that it was told.
    watched
        Whether the simulator counts how often theta leaves its confidence set.
    rate
        About what its rounds cost in the simulator.
    """

    constrained: ClassVar[bool] = False
    runs: ClassVar[frozenset[str]] = frozenset()
    told: ClassVar[frozenset[str]] = frozenset()
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    of_paper: ClassVar[bool] = False
    always_baseline: ClassVar[bool] = False
    gates: ClassVar[tuple[str, ...]] = ()
    weighted: ClassVar[bool] = False
    differences: ClassVar[bool] = False
    anytime: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    reports: ClassVar[bool] = False
    watched: ClassVar[bool] = False
    rate: ClassVar[Rate] = Rate(0.15, 0.0, 0.0016)

    @classmethod
    def settings(cls) -> list[str]:
        """Return the names of its settings."""
        return [f.name for f in fields(cls)]  # type: ignore[arg-type]  # every policy is a dataclass

    @property
    def name(self) -> str:
        """The listed name whose preset it has; of several, the one that says most."""
        has = [
            name
            for name, preset in self.presets.items()
            if all(getattr(self, key) == value for key, value in preset.items())
        ]
        return max(has, key=lambda name: len(self.presets[name]), default=type(self).__name__)

    @property
    def keeps(self) -> frozenset[str]:
        """Settings that keep their own value, whatever a problem declares, unless given."""
        return frozenset()

    def hears(self, assumed: Mapping[str, Any]) -> dict[str, Any]:
        """Return what it takes over of what is assumed of a problem: all but what it keeps."""
        return {name: value for name, value in assumed.items() if name not in self.keeps}

    @property
    def unused(self) -> frozenset[str]:
        """Settings that it must not have as it is: those of another mode."""
        return frozenset()

    @property
    def penalty(self) -> float:
        """The ridge, lambda, as it is used."""
        ridge: float = getattr(self, "ridge", 1.0)
        return ridge

    @property
    def max_weight(self) -> float:
        """The largest weight that an observation can have."""
        return 1.0

    @property
    def randomised(self) -> bool:
        """Whether the promise is about a randomised choice, not about single plays."""
        return False

    def agent_rules(self) -> tuple[Any, Any]:
        """Return what agents follow in rounds with and without a baseline reward."""
        return self, self

    def gate_need(self, alpha: float, beta: float, baseline_reward: float) -> float | None:
        """Return what lambda_min(V) must reach before it leaves the baseline; None: no gate."""
        return None

    def confidence(self, delta: float) -> float:
        """Return 2 log(1 / level) as the kernels use it, for a set that may fail with `delta`."""
        raise NotImplementedError

    def beta(self, logdet: float, delta: float) -> float:
        """Return the radius of the confidence set for log det(V / lambda)."""
        raise NotImplementedError
