"""Agents in users' own processes, and the coordinator through which they learn together."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.live.client.agent import LiveAgent
    from guardband.live.client.connect import connect
    from guardband.live.client.joining import OtherSettingsError, UnknownSpaceError
    from guardband.live.client.journal import JournalError
    from guardband.live.client.outcomes import OtherRewardError
    from guardband.live.link.base import Unreachable
    from guardband.live.protocol.messages import Refused
    from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings
else:
    __getattr__ = lazy_imports(__name__)

try:
    import fcntl as _fcntl  # noqa: F401 (locks on files, of which Windows has other ones)
except ImportError as _error:
    raise ImportError("live agents and coordinators need Linux or macOS.") from _error

__all__ = [
    "JournalError",
    "LiveAgent",
    "OtherRewardError",
    "OtherSettingsError",
    "Refused",
    "RewardSettings",
    "SpaceSettings",
    "SyncSettings",
    "UnknownSpaceError",
    "Unreachable",
    "connect",
]
