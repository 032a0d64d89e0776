"""Agents in the user's own process."""

from guardband.agent.agent import Agent
from guardband.agent.decision import Decision
from guardband.agent.fleet import Fleet
from guardband.agent.protocol import BanditAgent

__all__ = ["Agent", "BanditAgent", "Decision", "Fleet"]
