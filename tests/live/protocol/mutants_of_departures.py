"""Seeded bugs in how tasks leave the pool and begin again: see `mutants`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from live.protocol.mutants import Patch, Proxy, mutant
from live.protocol.mutants_of_groups import MUTANTS

from guardband.live.client.stream_state import StreamState
from guardband.live.coordinator import coordinator as rules
from guardband.live.coordinator import departures, epochs, membership, operator_requests

__all__ = ["MUTANTS"]


@mutant
def replaced_data_stay(patch: Patch) -> None:
    """A stream whose place another takes stays in the sums."""
    right = membership.take_place

    def take_place(t: Any, *given: Any) -> Any:
        def put(each: Any) -> None:
            t.put(each._replace(pool=given[0].pool) if getattr(each, "pool", 0) == -1 else each)

        return right(Proxy(t, put=put), *given)  # type: ignore[arg-type]

    patch.setattr(membership, "take_place", take_place)


@mutant
def forgotten_streams_are_replaced_by_nobody(patch: Patch) -> None:
    """A restored coordinator does not note who follows a stream that it lacks."""
    right = membership._former

    def former(t: Any, *given: Any, **more: Any) -> Any:
        return right(t if given[2].continue_of else Proxy(t, put=lambda row: None), *given, **more)

    def take_place(t: Any, row: Any, replaced: Any, request: Any) -> Any:
        known = [each for each in replaced if t.stream(each.stream)]
        return _taken(t, row, known, request) if known else None

    patch.setattr(membership, "_former", former)
    patch.setattr(membership, "take_place", take_place)


@mutant
def the_last_stream_alone_is_replaced(patch: Patch) -> None:
    """Of the streams of a start only the newest leaves the sums."""
    patch.setattr(
        membership, "take_place", lambda t, row, old, asked: _taken(t, row, old[-1:], asked)
    )


def _taken(t: Any, row: Any, replaced: list[Any], request: Any) -> Any:
    names = tuple(each.stream for each in replaced)
    return departures.take_place(t, row, replaced, request.model_copy(update={"replaces": names}))


@mutant
def sums_of_the_pool_before(patch: Patch) -> None:
    """An agent that began again is told the sum of an epoch from before it did."""
    right = rules.news_for

    def news_for(row: Any, space: Any, stream: Any, closed: Any, **more: Any) -> Any:
        known = closed and closed._replace(pool=row.pool)
        return right(row, space, stream, known, **more)

    patch.setattr(rules, "news_for", news_for)


@mutant
def apart_but_told(patch: Patch) -> None:
    """A task that has left the pool is told its sums."""
    right = rules.news_for

    def news_for(*given: Any, **more: Any) -> Any:
        news = right(*given, **more | {"apart": False})
        return news.model_copy(update={"apart": more["apart"]})

    patch.setattr(rules, "news_for", news_for)


@mutant
def entries_of_every_pool(patch: Patch) -> None:
    """Epochs hold what streams of former pools have counted."""
    right = epochs.close_epoch

    def close_epoch(t: Any, row: Any, space: Any, *, now: float) -> Any:
        def streams(name: str) -> list[Any]:
            return [each._replace(pool=row.pool) for each in t.streams(name)]

        return right(Proxy(t, streams=streams), row, space, now=now)  # type: ignore[arg-type]

    patch.setattr(operator_requests, "close_epoch", close_epoch)


@mutant
def nobody_begins_again(patch: Patch) -> None:
    """When a task leaves, the pool keeps its number, and the others go on as they were."""
    right = departures._with_pool

    def with_pool(t: Any, row: Any, pool: int, *, fresh: bool = False) -> Any:
        return right(t, row, row.pool if not fresh else pool, fresh=fresh)

    patch.setattr(departures, "_with_pool", with_pool)


@mutant
def fresh_keeps_old_data(patch: Patch) -> None:
    """Where all must begin with nothing, they begin with what they have."""
    right = rules.begin_of

    def begin_of(row: Any, stream: Any) -> Any:
        return "declared" if right(row, stream) else ""

    patch.setattr(rules, "begin_of", begin_of)


@mutant
def pool_still_in_use(patch: Patch) -> None:
    """An agent that begins again goes on with the sum that it has."""
    right = StreamState.again

    def again(self: StreamState, *given: Any, **more: Any) -> StreamState:
        return replace(right(self, *given, **more), pooled=self.pooled)

    patch.setattr(StreamState, "again", again)
