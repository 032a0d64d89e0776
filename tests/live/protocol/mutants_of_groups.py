"""Seeded bugs where uploads share a commit, and in the counter of outstanding answers."""

from __future__ import annotations

from typing import Any

from live.protocol.mutants import Patch, mutant
from live.protocol.mutants_of_windows import MUTANTS  # and all others

from guardband.live.coordinator import uploads as rules
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.epochs import close_epoch
from guardband.live.coordinator.restores import RestoreClaims
from guardband.live.coordinator.uploads import Taken
from guardband.live.protocol.messages import Refused, Upload, Uploaded
from guardband.live.store import StoreError

__all__ = ["MUTANTS"]


def promise(request: Upload) -> Taken:
    """Return the answer to an upload that was not stored."""
    revision = request.checkpoint.revision
    return Taken(Uploaded(revision=revision, epoch=0, open=None, config_version=1), again=False)


@mutant
def acknowledged_before_the_commit(patch: Patch) -> None:
    """A group is answered although its commit failed."""
    right = Coordinator.uploads

    def uploads(self: Any, name: str, requests: Any, *, now: float) -> Any:
        try:
            return right(self, name, requests, now=now)
        except Refused:
            return [promise(request) for _, request in requests]

    patch.setattr(Coordinator, "uploads", uploads)


@mutant
def one_of_a_group_undone_is_acknowledged(patch: Patch) -> None:
    """A group is undone for one of its uploads, and another had been answered before that."""
    right = Coordinator.uploads

    def uploads(self: Any, name: str, requests: Any, *, now: float) -> Any:
        before = self.store.snapshot()
        done = right(self, name, requests, now=now)
        if any(isinstance(each, StoreError) for each in done):
            self.store.restore(before)
        return done

    patch.setattr(Coordinator, "uploads", uploads)


@mutant
def a_refusal_undoes_its_neighbours(patch: Patch) -> None:
    """A group with an upload that is refused is rolled back; its neighbours were answered."""
    right = Coordinator.uploads

    def uploads(self: Any, name: str, requests: Any, *, now: float) -> Any:
        before = self.store.snapshot()
        done = right(self, name, requests, now=now)
        if any(isinstance(each, Refused) for each in done):
            self.store.restore(before)
        return done

    patch.setattr(Coordinator, "uploads", uploads)


@mutant
def neighbours_do_not_see_each_other(patch: Patch) -> None:
    """An upload is compared with what was stored before its group."""
    right = Coordinator._records

    class Frozen(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            """Forget it."""

    def records(self: Any, *rest: Any, now: float) -> Any:
        row, found = right(self, *rest, now=now)
        return row, Frozen(found)

    patch.setattr(Coordinator, "_records", records)


@mutant
def one_answer_too_many_is_awaited(patch: Patch) -> None:
    """The counter of outstanding answers is too large by one."""
    right = rules.open_epoch

    def opened(t: Any, row: Any, *rest: Any, **more: Any) -> Any:
        after = right(t, row, *rest, **more)
        if after.open != row.open:
            after = after._replace(outstanding=after.outstanding + 1)
            t.put(after)
        return after

    patch.setattr(rules, "open_epoch", opened)


@mutant
def the_counter_decides(patch: Patch) -> None:
    """An epoch is closed where the counter says so: who joined since is not waited for."""
    right = Coordinator._count_answers

    def count(self: Any, t: Any, row: Any, space: Any, answers: int, *, now: float) -> Any:
        if row.outstanding <= answers:
            return close_epoch(t, row, space, now=now)
        return right(self, t, row, space, answers, now=now)

    patch.setattr(Coordinator, "_count_answers", count)


@mutant
def the_counter_is_in_memory(patch: Patch) -> None:
    """Answers are counted by a process, which forgets them when it ends."""

    def count(self: Any, t: Any, row: Any, space: Any, answers: int, *, now: float) -> Any:
        seen = self.__dict__.setdefault("_seen", {})
        seen[row.open] = seen.get(row.open, 0) + answers
        if row.outstanding <= seen[row.open]:
            return self._close_if_complete(t, row, space, now=now)
        return row

    patch.setattr(Coordinator, "_count_answers", count)


@mutant
def an_epoch_opened_anew_is_not_counted_anew(patch: Patch) -> None:
    """Where an open epoch gets another number, all answers are void, and the counter is not."""
    right = RestoreClaims.note_epoch

    def note(self: Any, t: Any, row: Any, *rest: Any, **more: Any) -> Any:
        after = right(self, t, row, *rest, **more)
        if after.open != row.open:
            after = after._replace(outstanding=row.outstanding + 1)
            t.put(after)
        return after

    patch.setattr(RestoreClaims, "note_epoch", note)
