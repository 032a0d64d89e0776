"""Spaces as earlier versions made them, which this one makes no more, and goes on with."""

from __future__ import annotations

import json

from guardband.live.protocol.space import SpaceSettings
from guardband.live.store import SpaceRow, Store

__all__ = ["is_refused_now", "made_earlier"]


def is_refused_now(space: SpaceSettings) -> bool:
    """Whether rewards would count as they come, although contexts are shared."""
    return space.rewards.order == "prompt" and space.contexts == "shared"


def made_earlier(store: Store, space: SpaceSettings) -> None:
    """Put a space into a store without asking whether it may be made."""
    with store.transaction(space.name) as t:
        if t.space(space.name) is None:
            t.put(SpaceRow(space.name, json.dumps(space.as_json()), created_at=0.0))
