"""A study of logs before an agent is switched on: what is there, what to expect, what to do."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.studies.config import TEMPLATE, StudyConfig, read_study_config
    from guardband.studies.logs import Menu, Offers, StudyLogs
    from guardband.studies.make import make_study, study
    from guardband.studies.plain import logs_of_menus
    from guardband.studies.result import Study
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "TEMPLATE",
    "Menu",
    "Offers",
    "Study",
    "StudyConfig",
    "StudyLogs",
    "logs_of_menus",
    "make_study",
    "read_study_config",
    "study",
]
