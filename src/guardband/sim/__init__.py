"""The simulator: trials under common draws, compiled algorithms and plain Python, results."""

from guardband.sim.draws import Replay
from guardband.sim.python_policy import PolicyError, PythonPolicy
from guardband.sim.results import Results, Series
from guardband.sim.simulate import BoundWarning, simulate
from guardband.sim.trial import Trace

__all__ = ["BoundWarning", "PolicyError", "PythonPolicy", "Replay", "Results", "Series", "Trace"]
__all__ += ["simulate"]
