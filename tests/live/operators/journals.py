"""What tests of audits share: agents with journals, and hands that change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
from live.client.world import agent, live_on

from guardband.live.operators.audit import Finding, audit, find_decision


def sync(*agents: Any) -> None:
    for each in agents:
        each.sync()


def found(folder: Path, ident: str) -> Finding:
    return audit(ident, find_decision(ident, [folder]))


def change(one: Any, sql: str, *values: Any) -> None:
    """Change a journal behind its agent's back."""
    connection = apsw.Connection(str(one.state_dir / "journal.db"))
    connection.execute(sql, values)
    connection.close()


def two_agents(tmp_path: Path) -> tuple[Any, Any, list[Any], list[Any]]:
    """Return two agents that have pooled, and their decisions."""
    one, other = agent(tmp_path), agent(tmp_path, task="tv", uses=[0, 2])
    mine, its = [], []
    for step in range(5):
        mine += live_on(one, 15, seed=step)
        its += live_on(other, 10, seed=50 + step)
        sync(one, other, one)
    mine += live_on(one, 5, seed=9)
    assert one.epoch >= 2
    return one, other, mine, its
