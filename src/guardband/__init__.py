"""Safe, distributed linear bandits: learn together, never fall far below a trusted baseline."""

from guardband.algorithms import Baseline, DiscUcb, DiscUcbUnknown, DisLinUcb
from guardband.problems import Tabular
from guardband.sim import Replay, Results, simulate

__all__ = ["Baseline", "DisLinUcb", "DiscUcb", "DiscUcbUnknown", "Replay", "Results", "Tabular", "simulate"]
