"""Agents in people's own processes, and the coordinator through which they learn together."""

from guardband.live.client.agent import LiveAgent
from guardband.live.link.base import Unreachable
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings

__all__ = ["LiveAgent", "Refused", "RewardSettings", "SpaceSettings", "SyncSettings", "Unreachable"]
