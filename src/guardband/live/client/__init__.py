"""The agent in the user's own process: state, journal, learner and sync worker."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.live.client.agent import LiveAgent
else:
    __getattr__ = lazy_imports(__name__)

__all__ = ["LiveAgent"]
