"""Agents in the user's own process."""

from guardband.agent.agent import Agent
from guardband.agent.decision import Decision, UnknownDecisionError
from guardband.agent.fleet import Fleet

__all__ = ["Agent", "Decision", "Fleet", "UnknownDecisionError"]
