"""Agents in people's own processes, and the coordinator through which they learn together."""

from guardband.live.client.agent import LiveAgent
from guardband.live.link.base import Unreachable
from guardband.live.messages import Refused
from guardband.live.space import Rewards, Space, Sync

__all__ = ["LiveAgent", "Refused", "Rewards", "Space", "Sync", "Unreachable"]
