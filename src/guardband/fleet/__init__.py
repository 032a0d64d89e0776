"""Agents in the user's own process."""

from guardband.fleet.agent import Agent
from guardband.fleet.decision import Decision, UnknownDecisionError
from guardband.fleet.fleet import Fleet

__all__ = ["Agent", "Decision", "Fleet", "UnknownDecisionError"]
