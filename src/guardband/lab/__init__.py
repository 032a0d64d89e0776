"""The paper's evaluation, run again: panels, their claims, their pictures, the report."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.lab.bound_inputs import bound_setting
    from guardband.lab.costs import agent_rounds, authors_code, seconds_of
    from guardband.lab.jobs import jobs_of, run_job
    from guardband.lab.panel import Panel, Run, RunOptions
    from guardband.lab.panel_result import VERDICTS, PanelResult
    from guardband.lab.panels import PANELS
    from guardband.lab.report import write_panel, write_report
    from guardband.lab.scheduler import GroupResult, TrialScheduler, cache_folder
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "PANELS",
    "VERDICTS",
    "GroupResult",
    "Panel",
    "PanelResult",
    "Run",
    "RunOptions",
    "TrialScheduler",
    "agent_rounds",
    "authors_code",
    "bound_setting",
    "cache_folder",
    "jobs_of",
    "run_job",
    "seconds_of",
    "write_panel",
    "write_report",
]
