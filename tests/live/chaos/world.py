"""The world in which agents are tormented: a space, menus, and rewards that tell where they belong.

All features are multiples of 2^-12, all rewards of 2^-16, and the weight is a power of two: sums of
some ten thousand of them are exact in any order, so that totals can be compared bit for bit. A
played action's features are drawn so finely that no two are alike: they are an observation's name,
and its reward follows from them.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from guardband.kernels.types import Floats
from guardband.live.protocol.space import RewardSettings, SpaceSettings, SyncSettings

__all__ = [
    "DEADLINE_S",
    "DIM",
    "FEATURES",
    "LEASE_S",
    "SPACE",
    "TASKS",
    "THETA",
    "Fate",
    "fate_of",
    "menu_of",
    "reward_of",
    "space_for",
]

DIM, ACTIONS = 6, 5
TASKS = {
    "movies": (0, 1, 2, 3, 4, 5),
    "music": (0, 1, 2, 3),
    "books": (2, 3, 4, 5),
    "games": (0, 2, 3, 5),
}
THETA = np.array([0.5, 0.4, 0.6, 0.5, 0.3, 0.4])
SPACE = "chaos"
FEATURES = tuple(f"x{k}" for k in range(DIM))
LEASE_S = 6.0
DEADLINE_S = 1.0
FINE, REWARD_FINE = 4096.0, 65536.0


def space_for(seed: int) -> SpaceSettings:
    """Return the rules of a run: seeds take turns in how rewards count."""
    return SpaceSettings(
        name=SPACE,
        features=FEATURES,
        agents=len(TASKS),
        contexts="per-request",
        alpha=0.5,
        noise=0.5,
        lease_s=LEASE_S,
        sync=SyncSettings(trigger="interval", interval_s=0.7, deadline_s=DEADLINE_S, live_s=30.0),
        rewards=RewardSettings(window_s=2.0, default=0.25, order=("window", "prompt")[seed % 2]),
    )


def menu_of(rng: np.random.Generator, uses: tuple[int, ...]) -> Floats:
    """Return features of some actions."""
    menu = np.zeros((ACTIONS, DIM))
    menu[:, uses] = np.round(rng.uniform(0.02, 0.4, (ACTIONS, len(uses))) * FINE) / FINE
    return menu


class Fate(NamedTuple):
    """What becomes of a decision's reward."""

    reward: float
    delay_s: float
    discarded: bool
    silent: bool  # the reward never comes
    repeated: bool  # it comes again
    contradicted: bool  # and then with another value


def fate_of(x: Floats) -> Fate:
    """Return what follows from the features that were played."""
    digest = hashlib.blake2b(x.tobytes(), digest_size=8).digest()
    luck, slow, kind, again = digest[2] / 255.0, digest[3] / 255.0, digest[4], digest[5]
    late = kind >= 250
    return Fate(
        reward=reward_of(x),
        delay_s=2.5 if late else 0.3 * slow * luck,
        discarded=kind < 5,
        silent=5 <= kind < 12,
        repeated=again < 26,
        contradicted=again >= 250,
    )


def reward_of(x: Floats) -> float:
    """Return the one reward that an action with these features has."""
    digest = hashlib.blake2b(x.tobytes(), digest_size=8).digest()
    noise = 0.4 * (int.from_bytes(digest[:2], "big") / 65536.0 - 0.5)
    return float(np.clip(np.round((x @ THETA + noise) * REWARD_FINE) / REWARD_FINE, 0.0, 1.0))
