"""Seeded bugs in what guards against tasks that lie: see `mutants`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from live.protocol.mutants import MUTANTS, Patch, Proxy, mutant

from guardband.live.client.stream_state import Effect, StreamState, Transition
from guardband.live.coordinator import coordinator as news
from guardband.live.coordinator import membership, restores
from guardband.live.coordinator import upload_checks as increments
from guardband.live.coordinator import uploads as rules

__all__ = ["MUTANTS"]


@mutant
def any_number_of_observations(patch: Patch) -> None:
    """Nobody checks how many observations a task can have made by now."""
    patch.setattr(rules, "check_rate", lambda *rest: None)


@mutant
def every_stream_has_a_rate(patch: Patch) -> None:
    """What a task's other streams have counted is not counted."""
    right = increments.check_rate

    def check(t: Any, space: Any, held: Any, n: int, now: float) -> None:
        def counted(name: str, task: str) -> tuple[int, float]:
            return held.n, t.counted(name, task)[1]

        right(Proxy(t, counted=counted), space, held, n, now)  # type: ignore[arg-type]

    patch.setattr(rules, "check_rate", check)


@mutant
def any_epoch_is_believed(patch: Patch) -> None:
    """A claim to have seen an epoch is believed whatever its number."""
    patch.setattr(restores, "LARGEST_JUMP", 10**9)


@mutant
def future_epochs_are_answered(patch: Patch) -> None:
    """A contribution to an epoch that cannot have been opened is taken."""
    patch.setattr(rules, "check_epoch", lambda *rest, **more: None)


@mutant
def streams_that_ended_do_not_count(patch: Patch) -> None:
    """A task may have as many state folders as it likes, one after the other."""
    right = membership._check_number

    def check(t: Any, *rest: Any) -> None:
        def count(space: str, task: str) -> tuple[int, int]:
            open_, _ = t.count_streams(space, task)
            return open_, open_

        right(Proxy(t, count_streams=count), *rest)  # type: ignore[arg-type]

    patch.setattr(membership, "_check_number", check)


@mutant
def liar_left_in(patch: Patch) -> None:
    """Of the sums without a task one has all of them."""
    right = news.entries_without

    def entries(t: Any, row: Any, space: Any, task: str) -> Any:
        found = right(t, row, space, task)
        whole = t.epoch(row.name, row.epoch).sums
        return found and (whole, *found[1:])

    patch.setattr(news, "entries_without", entries)


@mutant
def the_asker_is_left_out(patch: Patch) -> None:
    """An agent gets the sum without its own task, too."""
    right = news.entries_without

    def entries(t: Any, row: Any, space: Any, task: str) -> Any:
        return right(t, row, space, "")

    patch.setattr(news, "entries_without", entries)


@mutant
def a_stream_is_a_task(patch: Patch) -> None:
    """Of a task with two state folders only one is left out."""
    right = news.entries_without

    def entries(t: Any, row: Any, space: Any, task: str) -> Any:
        def streams(name: str) -> list[Any]:
            rows = t.streams(name)
            return [r if r.task == task else r._replace(task=r.stream) for r in rows]

        return right(Proxy(t, streams=streams), row, space, task)  # type: ignore[arg-type]

    patch.setattr(news, "entries_without", entries)


@mutant
def sums_of_the_epoch_before(patch: Patch) -> None:
    """The sums without a task are not renewed with the epoch."""
    right = StreamState.adopt

    def adopt(self: StreamState, news: Any, *, next_round: int | None = None) -> Transition:
        step = right(self, news, next_round=next_round)
        if step.effect != Effect.ADOPTED or not self.without:
            return step
        return Transition(replace(step.stream, without=self.without), step.effect)

    patch.setattr(StreamState, "adopt", adopt)
