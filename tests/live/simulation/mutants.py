"""T3m: seeded bugs of files, threads, retries and the protocol; the simulation must find each."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from live.protocol import mutants as of_the_protocol
from live.simulation import server
from live.simulation.faults import Faults

from guardband.live import salvage
from guardband.live import sqlite as files
from guardband.live.client import decisions, journal, outcomes
from guardband.live.client.agent import LiveAgent
from guardband.live.client.agent_store import AgentStore
from guardband.live.client.journal import Journal, JournalError
from guardband.live.client.stream_state import Effect, StreamState, Transition
from guardband.live.client.windows import End
from guardband.live.link import Unreachable, http
from guardband.live.store import sqlite

__all__ = ["MUTANTS"]

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, Callable[[Patch], object]] = {}


def mutant(change: Callable[[Patch], None]) -> Callable[[Patch], None]:
    MUTANTS[change.__name__] = change
    return change


# ---- files


@mutant
def sent_before_it_is_safe(patch: Patch) -> None:
    """The journal is not put on disk before an upload."""
    patch.setattr(Journal, "flush", lambda self: None)


@mutant
def acknowledged_before_it_is_safe(patch: Patch) -> None:
    """The coordinator's commits are not put on disk."""
    right = sqlite.connect

    def connect(*given: Any, **more: Any) -> Any:
        db = right(*given, **more)
        pragma = db.pragma

        class Lazy:
            def __getattr__(self, name: str) -> Any:
                return getattr(db, name)

            def pragma(self, name: str, *value: Any) -> Any:
                return pragma(name, *(("off",) if name == "synchronous" else value))

        return Lazy()

    patch.setattr(sqlite, "connect", connect)


@mutant
def full_disk_goes_unnoticed(patch: Patch) -> None:
    """An agent acknowledges what its journal could not take."""
    right = AgentStore.__exit__

    def leave(self: AgentStore, *error: Any) -> None:
        try:
            right(self, *error)
        except JournalError:
            self._stale = False

    patch.setattr(AgentStore, "__exit__", leave)


@mutant
def failed_transactions_stay_in_memory(patch: Patch) -> None:
    """What a transaction computed is used although it was undone."""
    right = AgentStore.__exit__

    def leave(self: AgentStore, *error: Any) -> None:
        try:
            right(self, *error)
        finally:
            self._stale = False
            self.journal._version = self.journal._db.data_version()

    patch.setattr(AgentStore, "__exit__", leave)


@mutant
def head_is_saved_now_and_then(patch: Patch) -> None:
    """The sums are written with every third reward only."""
    right, count = AgentStore.save, [0]

    def save(self: AgentStore) -> None:
        count[0] += 1
        if count[0] % 3:
            right(self)

    patch.setattr(AgentStore, "save", save)


@mutant
def damaged_pages_are_used(patch: Patch) -> None:
    """Pages have no checksums, and nobody looks at those of sums."""
    patch.setattr(files, "_use_checksums", lambda refusal: None)
    patch.setattr(files, "_reserve", lambda db: None)
    patch.setattr(zlib, "crc32", lambda raw: 0)


@mutant
def rows_are_used_unverified(patch: Patch) -> None:
    """S-2: pages have checksums, but rows that are read from a log in use have no seals."""
    patch.setattr(files, "seal_of", lambda *values: 0)
    patch.setattr(Faults, "in_logs", True)  # chance seldom hits such a bit


@mutant
def texts_that_are_none_are_no_damage(patch: Patch) -> None:
    """S-3: a row of which a text is no UTF-8 any more fails, and nobody mends it."""
    right = files.is_damage
    for module in (journal, sqlite):
        patch.setattr(
            module, "is_damage", lambda e: not isinstance(e, UnicodeDecodeError) and right(e)
        )


@mutant
def mending_stops_at_texts_that_are_none(patch: Patch) -> None:
    """N-44: so does mending itself."""
    patch.setattr(salvage, "FAILURES", (salvage.apsw.Error,))


@mutant
def damaged_messages_are_used(patch: Patch) -> None:
    """Nobody compares messages with their digests."""
    for module in (http, server):
        patch.setattr(module, "matches", lambda header, body: True)


# ---- processes and threads


@mutant
def others_go_unnoticed(patch: Patch) -> None:
    """A process does not see what another has written to their journal."""
    right = Journal.begin

    def begin(self: Journal) -> bool:
        right(self)
        return False

    patch.setattr(Journal, "begin", begin)


@mutant
def a_failed_start_keeps_its_lock(patch: Patch) -> None:
    """S-1: an agent that could not start keeps others of its folder from sending."""

    def first_contact(self: LiveAgent, trouble: str | None, _: Any) -> None:
        if trouble is None:
            try:
                self._store.undamaged(self._worker.sync)
                return
            except Unreachable as problem:
                trouble = str(problem)
        self._worker.trouble = trouble

    patch.setattr(LiveAgent, "_first_contact", first_contact)


# ---- rewards


@mutant
def rewards_count_again(patch: Patch) -> None:
    """A reward that is told twice counts twice."""
    right = outcomes.Outcomes._again

    def again(self: Any, state: Any, decision_id: str, made: Any, reward: Any) -> Any:
        if made is not None and made.ended == End.OBSERVED and reward is not None:
            state.n += 1
            self._store.save()
        return right(self, state, decision_id, made, reward)

    patch.setattr(outcomes.Outcomes, "_again", again)


@mutant
def ids_are_only_numbers(patch: Patch) -> None:
    """C-3: the reward of a decision that was lost reaches the next one with its number."""
    patch.setattr(decisions, "new_mark", lambda: 0)


# ---- the protocol


@mutant
def own_entry_ignored(patch: Patch) -> None:
    """The epoch is adopted as if it had nothing of one's own."""
    right = StreamState.adopt

    def adopt(self: StreamState, news: Any, *, next_round: int | None = None) -> Transition:
        return right(self, news._replace(own=None), next_round=next_round)

    patch.setattr(StreamState, "adopt", adopt)


@mutant
def subtract_acknowledged(patch: Patch) -> None:
    """Own data are taken to be in the epoch up to what was acknowledged, not up to its entry."""
    right = StreamState.adopt

    def adopt(self: StreamState, news: Any, *, next_round: int | None = None) -> Transition:
        step = right(self, news, next_round=next_round)
        known = step.stream.base in {c.revision for c in step.stream.checkpoints}
        if step.effect != Effect.ADOPTED or not known or not step.stream.base.n:
            return step
        return Transition(replace(step.stream, since=step.stream.base), step.effect)

    patch.setattr(StreamState, "adopt", adopt)


# These are of the protocol alone, and its model finds them, too.
MUTANTS |= {
    name: of_the_protocol.MUTANTS[name]
    for name in ("resend_on_conflict", "newest_wins", "smaller_n_accepted")
}
