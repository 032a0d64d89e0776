"""A study of logs before an agent is switched on: what is there, what to expect, what to do."""

from guardband.studies.logs import Menu, Offers, StudyLogs
from guardband.studies.plain import logs_of_menus

__all__ = ["Menu", "Offers", "StudyLogs", "logs_of_menus"]
