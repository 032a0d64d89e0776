"""The simulator: trials, common draws, results."""

from guardband.sim.draws import Replay
from guardband.sim.results import Results, Series
from guardband.sim.simulate import BoundWarning, simulate
from guardband.sim.trial import Trace

__all__ = ["BoundWarning", "Replay", "Results", "Series", "Trace", "simulate"]
