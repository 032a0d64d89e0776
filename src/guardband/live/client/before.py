"""What a journal keeps of the streams before the one in use, beside their rows.

A stream ends with an alarm, when others leave the pool, or when the coordinator has sealed it. What
was measured of the agent's choices, and when it started anew, is of all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from guardband.live.client.journal import Journal
from guardband.live.client.notes import keep, kept
from guardband.uplift import GainSums

if TYPE_CHECKING:
    from guardband.live.client.agent_store import AgentStore
    from guardband.live.client.stream_state import StreamState

__all__ = ["EarlierStreams", "change_before", "end_stream", "measure_anew", "read_before"]


class EarlierStreams(NamedTuple):
    """What there was before the stream in use began, in this state folder."""

    counted: int = 0  # observations that it does not hold
    gains: GainSums = GainSums()  # of the holdback; a copy of a folder begins anew
    followed: tuple[int, ...] = ()  # after which decisions it started anew because its pool did


def read_before(journal: Journal) -> EarlierStreams:
    """Return what is kept; nothing in a journal whose first stream is in use, or in older ones."""
    before = kept(journal, "before")
    if before is None:
        return EarlierStreams()
    counted, gains, followed = before
    return EarlierStreams(int(counted), GainSums(*map(float, gains)), tuple(map(int, followed)))


def change_before(store: AgentStore, **changed: Any) -> None:
    """Keep something else of what there was, within a transaction."""
    before = store.state.before = store.state.before._replace(**changed)
    keep(store.journal, "before", before)


def end_stream(store: AgentStore, following: StreamState, lost: bool) -> None:
    """Keep what is to be known of the stream in use, before another takes its place.

    Decisions that no report has counted are the next stream's to report. Where a folder was copied
    or set back, `lost`, others may report them, and what was measured: it begins anew.
    """
    state, journal = store.state, store.journal
    reported = state.settled if lost else journal.counts(state.stream_id).get("upto", 0)
    journal.count(state.stream_id + 1, "upto", reported)
    gains = GainSums() if lost else state.before.gains.plus(*state.gains)
    left = max(0, state.n - following.open.n)
    change_before(store, counted=state.before.counted + left, gains=gains)


def measure_anew(store: AgentStore) -> None:
    """Forget what the holdback measured."""
    store.state.gains = GainSums()
    change_before(store, gains=GainSums())
