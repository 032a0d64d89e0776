"""The paper's evaluation, run again: panels (figures), their claims, plots and the report."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.lab.bound_inputs import bound_setting
    from guardband.lab.costs import agent_rounds, authors_code
    from guardband.lab.panel import VERDICTS, Panel, Run, RunOptions
    from guardband.lab.panel_result import PanelResult
    from guardband.lab.panels import PANELS
    from guardband.lab.panels.better import PanelBetter
    from guardband.lab.report import write_panel, write_report
    from guardband.lab.runs import judge_panel, run_all, schedule, trials_of
    from guardband.sim import TrialScheduler, cache_folder, run_trial
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "PANELS",
    "VERDICTS",
    "Panel",
    "PanelBetter",
    "PanelResult",
    "Run",
    "RunOptions",
    "TrialScheduler",
    "agent_rounds",
    "authors_code",
    "bound_setting",
    "cache_folder",
    "judge_panel",
    "run_all",
    "run_trial",
    "schedule",
    "trials_of",
    "write_panel",
    "write_report",
]
