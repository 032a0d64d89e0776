"""The outlook of a live agent, from the decisions in its journal."""

from __future__ import annotations

import logging

from guardband.agent import Outlook, Past, outlook_of, remembered
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.decisions import request_of
from guardband.live.client.learner import new_watch

__all__ = ["LookAhead", "make_outlook"]

log = logging.getLogger("guardband.live")

SIZE_SQL = "SELECT length(features) + coalesce(length(extras), 0) FROM decision"
NEWEST = " ORDER BY seq DESC LIMIT ?"
COLUMNS = ("features", "extras", "costs", "baseline", "baseline_reward")
MENU_SQL = f"SELECT {', '.join(COLUMNS)} FROM decision"


def make_outlook(store: AgentStore) -> Outlook:
    """Return the outlook of an agent; other agents' rounds to come are not in it."""
    return outlook_of(_past(store))


def _past(store: AgentStore) -> Past:
    journal = store.journal
    (size,) = (journal.query_aside(SIZE_SQL + NEWEST, (1,)) or [(8,)])[0]
    rows = journal.query_aside(MENU_SQL + NEWEST, (remembered(size // 8),))
    with store as state:
        dim, past = state.space.dim, state.learner.group.past(0)
        requests = [request_of(dict(zip(COLUMNS, row, strict=True)), dim) for row in rows]
        return past._replace(rounds=state.last, menus=[requests], names=state.space.features)


class LookAhead:
    """Keeps a live agent's outlook, and writes a warning to the log once if it is stuck.

    It looks again when there are twice as many decisions, until there is a learned play; the answer
    is in `AgentStore.watch`.
    """

    def __init__(self, store: AgentStore) -> None:
        self._store, self._version = store, store.state.version

    def look(self) -> None:
        """Look if it is time to."""
        store, state = self._store, self._store.state
        if state.version != self._version:  # by other rules
            self._version = state.version
            store.watch = new_watch(state.learner)
        due = 0 < store.watch.turn <= state.last + 1
        if due and state.learner.full_speed:
            text = store.watch.look(store.setup.task, _past(store), state.last)
            if text:
                log.warning("guardband: %s", text)
