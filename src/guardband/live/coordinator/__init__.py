"""The coordinator's logic over a store: streams, epochs, switches; no clock and no network."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.live.coordinator.coordinator import Coordinator
    from guardband.live.coordinator.mending import open_store
    from guardband.live.coordinator.tokens import create_token, revoke_token, rotate_token
else:
    __getattr__ = lazy_imports(__name__)

__all__ = ["Coordinator", "create_token", "open_store", "revoke_token", "rotate_token"]
