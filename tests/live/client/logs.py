"""Logs for tests of live agents, and what a journal and a coordinator have of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from live.client.world import DIM, THETA, journal_of

from guardband.live.store.sqlite import SqliteStore


def some_log(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of what was played, and rewards; multiples of 1/64, so that sums are exact."""
    rng = np.random.default_rng(seed)
    features = np.round(rng.uniform(0.05, 0.55, (rows, DIM)) * 64) / 64
    rewards = np.round(np.clip(features @ THETA + 0.1 * rng.normal(size=rows), 0.0, 1.0) * 64) / 64
    return features, rewards


def logged(one: Any) -> list[tuple[Any, ...]]:
    """All rows of logs in an agent's journal, in the order in which they count."""
    journal = journal_of(one)
    try:
        return journal.query(
            "SELECT stream, k, id, x, guess, weight, reward FROM logged ORDER BY stream, k"
        )
    finally:
        journal.close()


def own_sums(one: Any) -> bytes:
    """What an agent has counted since its last checkpoint."""
    journal = journal_of(one)
    try:
        head = journal.head()
        assert head is not None
        return head.own
    finally:
        journal.close()


def stored(folder: Path, space: str = "default") -> dict[str, int]:
    """How many observations of each stream the coordinator has."""
    store = SqliteStore(folder / "gb" / "coordinator.db")
    try:
        with store.reading() as t:
            return {row.stream: row.n for row in t.streams(space)}
    finally:
        store.close()
