"""The simulator: trials under common draws, compiled algorithms and plain Python, results."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.sim.comparison import BoundWarning, simulate
    from guardband.sim.costs import size_of
    from guardband.sim.draws import Replay, TrialDraws
    from guardband.sim.history import as_history
    from guardband.sim.plots import (
        COLOURS,
        DASHES,
        FAINT,
        GREY,
        INK,
        LINE_INCHES,
        REFERENCE,
        Curve,
        PlotSpec,
        Tint,
        draw_curve,
        end_label,
        frame,
        label_ends,
        place_labels,
        tints_of,
    )
    from guardband.sim.provenance import commit, versions
    from guardband.sim.python_policy import PolicyError, PythonPolicy
    from guardband.sim.results import Results, Series, stack
    from guardband.sim.runners import CommonRunner, make_runner
    from guardband.sim.scheduler import TrialScheduler, cache_folder
    from guardband.sim.stats import interval_half_width, mean_interval
    from guardband.sim.trial import (
        Trace,
        Trial,
        TrialResult,
        checkpoint_rounds,
        make_trials,
        run_trial,
    )
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "COLOURS",
    "DASHES",
    "FAINT",
    "GREY",
    "INK",
    "LINE_INCHES",
    "REFERENCE",
    "BoundWarning",
    "CommonRunner",
    "Curve",
    "PlotSpec",
    "PolicyError",
    "PythonPolicy",
    "Replay",
    "Results",
    "Series",
    "Tint",
    "Trace",
    "Trial",
    "TrialDraws",
    "TrialResult",
    "TrialScheduler",
    "as_history",
    "cache_folder",
    "checkpoint_rounds",
    "commit",
    "draw_curve",
    "end_label",
    "frame",
    "interval_half_width",
    "label_ends",
    "make_runner",
    "make_trials",
    "mean_interval",
    "place_labels",
    "run_trial",
    "simulate",
    "size_of",
    "stack",
    "tints_of",
    "versions",
]
