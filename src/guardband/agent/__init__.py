"""Agents in the user's own process, and the parts that live agents share with them."""

from guardband.agent.agent import Agent
from guardband.agent.decision import Decision
from guardband.agent.engine import Awaited, Request, Verdict
from guardband.agent.fleet import Fleet
from guardband.agent.group import AgentGroup
from guardband.agent.inputs import as_batch, as_id, as_number, as_reward, reward_range
from guardband.agent.protocol import BanditAgent
from guardband.agent.requests import RequestReader

__all__ = [
    "Agent",
    "AgentGroup",
    "Awaited",
    "BanditAgent",
    "Decision",
    "Fleet",
    "Request",
    "RequestReader",
    "Verdict",
    "as_batch",
    "as_id",
    "as_number",
    "as_reward",
    "reward_range",
]
