"""Uploads that share a commit, which may fail, and neighbours for which nothing can be stored."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from live.protocol.model import PICK
from live.protocol.traffic import FINE, Traffic

from guardband.live.coordinator.uploads import Taken
from guardband.live.protocol.messages import Refused, Upload
from guardband.live.store import StoreError

MISHAPS = st.sampled_from(["none", "none", "commit fails", "one is damaged"])


class Groups(Traffic):
    """What the network delivers together is carried out together."""

    @rule(opens=PICK, mishap=MISHAPS)
    def all_at_once(self, opens: int, mishap: str) -> None:
        """All agents have something new, and one of them asks for an epoch."""
        self.requests.clear()
        for place in range(len(self.players)):
            self.ask_and_hear(place)
            self.observe(place, place, 1.0, 0)
            self.cut_and_send(place, place == opens % len(self.players))
        self.deliver_together(opens, mishap)

    @precondition(lambda self: len(self.requests) > 1)
    @rule(which=PICK, mishap=MISHAPS)
    def deliver_together(self, which: int, mishap: str) -> None:
        """All requests under way arrive at once, the one that opens an epoch first."""
        space = self.space_row()
        known = [each for each in self.requests if each[3].seen_epoch <= max(space[4:6])]
        opening = [each for each in known if each[3].trigger][:1]
        group = opening + [each for each in known if not each[3].trigger]
        if not group:
            return
        self.requests = [each for each in self.requests if each not in group]
        uploads = [(stream, upload) for _, _, stream, upload in group]
        damaged = uploads[which % len(uploads)][0] if mishap == "one is damaged" else ""
        answers = self.carry_out_together(uploads, damaged, fails=mishap == "commit fails")
        for (who, life, stream, _), answer in zip(group, answers, strict=True):
            if isinstance(answer, Taken):
                self.replies.append((who, life, stream, answer.said))
            elif isinstance(answer, Refused):
                self.replies.append((who, life, stream, answer))
        del self.replies[:-12]

    def carry_out_together(
        self, uploads: list[tuple[str, Upload]], damaged: str, *, fails: bool
    ) -> list[Any]:
        before, kept = self.space_row(), self.store.snapshot()
        right, held = self.coordinator._compare_and_set, {s: self.row(s) for s, _ in uploads}

        def compare(space: Any, task: Any, row: Any, request: Any) -> Any:
            if row.stream == damaged:
                raise StoreError("damaged")
            return right(space, task, row, request)

        self.coordinator._compare_and_set = compare  # type: ignore[method-assign]
        self.store.fails = fails
        try:
            answers = self.coordinator.uploads("home", uploads, now=self.now)
        except Refused as problem:
            self.expect(problem, "store_unavailable")
            assert fails, "a commit failed that did not"
            assert self.store.snapshot() == kept, "a commit that failed left something"
            return [None] * len(uploads)  # agents hear nothing, and send it again
        finally:
            self.store.fails = False
            del self.coordinator._compare_and_set
        accepted = []
        for (stream, upload), answer in zip(uploads, answers, strict=True):
            if isinstance(answer, Taken):
                accepted.append((stream, upload))
                self.note_stored(held[stream], upload)
                assert answer.said.revision == upload.checkpoint.revision
            elif isinstance(answer, Refused):
                self.expect(answer, *FINE)
            else:
                assert stream == damaged, f"a neighbour of a damaged stream failed: {answer}"
        self.note_closing(*accepted)
        self.I9_epochs_close_when_all_have_answered(before, *(each for _, each in accepted))
        return answers
