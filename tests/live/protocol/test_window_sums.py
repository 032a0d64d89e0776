"""Sums that forget: their definition, their bytes, and what no window can have summed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live.protocol.world import make_space
from pydantic import TypeAdapter

from guardband.live.client.stream_state import StreamState
from guardband.live.coordinator.upload_checks import check_increment, check_window
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.sums import Recent, Sums, add_sums, empty_sums, forget, statistic_of

DIM, USES = 4, (0, 1, 2, 3)
SPACE = make_space(window=6)  # half windows of 3 rounds
# The feature and the half window of an observation; whole numbers add up exactly in any order.
ROWS = st.lists(st.tuples(st.integers(0, DIM - 1), st.integers(1, 6)), max_size=12)


def one(feature: int, half: int) -> Sums:
    state = StreamState.start("s", DIM)
    return state.counted(np.eye(DIM)[feature], 1.0, 1.0, 0.0, half).open


def summed(rows: list[tuple[int, int]]) -> Sums:
    return add_sums(DIM, [one(*row) for row in rows])


def counts(sums: Sums) -> list[float]:
    return [float(value) for value in np.diag(statistic_of(sums).gram)]


def expected(rows: list[tuple[int, int]], halves: tuple[int, ...]) -> list[float]:
    return [float(sum(f == k and half in halves for f, half in rows)) for k in range(DIM)]


@given(rows=ROWS, cuts=st.lists(st.integers(0, 12), max_size=3), after=st.integers(0, 7))
def test_what_counts_is_the_newest_half_and_the_one_before(
    rows: list[tuple[int, int]], cuts: list[int], after: int
) -> None:
    """However observations are put into parts, and whenever they are brought up to date."""
    ends = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    parts = [summed(rows[a:b]) for a, b in pairwise(ends)]
    newest = max([half for _, half in rows] + ([after] if rows else []), default=0)
    for found in (add_sums(DIM, parts), summed(rows)):
        now = forget(found, after)
        assert now.n == len(rows)
        assert now.half == newest
        assert counts(now) == expected(rows, (newest, newest - 1))
        assert now.kept == sum(counts(now)) == statistic_of(now).scalars[0]
        if rows:
            assert counts(now.newest) == expected(rows, (newest,))
            assert now.newest.n == sum(counts(now.newest))


@given(rows=ROWS)
def test_they_survive_json_and_bytes(rows: list[tuple[int, int]]) -> None:
    total, kind = summed(rows), TypeAdapter(Sums)
    for again in (Sums.from_bytes(total.as_bytes()), kind.validate_json(kind.dump_json(total))):
        assert again.as_bytes() == total.as_bytes()
        assert again.sha256 == total.sha256
        assert again.half == total.half


def refused(later: Sums, *, round: int = 9, earlier: Sums | None = None) -> str:
    with pytest.raises(Refused) as problem:
        check_window(SPACE, USES, earlier or empty_sums(DIM), later, round=round)
    return str(problem.value.more["check"])


def test_honest_uploads_are_taken_whatever_was_forgotten_since() -> None:
    rows = [(0, 1), (1, 1), (2, 2), (3, 2), (0, 3), (1, 3), (2, 6)]
    for k in range(len(rows)):
        for j in range(k + 1, len(rows) + 1):
            last = 3 * rows[j - 1][1]
            check_window(SPACE, USES, summed(rows[:k]), summed(rows[:j]), round=last)


def changed(sums: Sums, **recent: Any) -> Sums:
    assert sums.recent is not None
    return sums._replace(recent=sums.recent._replace(**recent))


def test_what_no_window_can_have_summed_is_refused() -> None:
    total = summed([(0, 2), (1, 3), (2, 3)])
    assert isinstance(total.recent, Recent)
    assert refused(total, round=6) == "window"  # of a round before
    assert refused(total._replace(recent=None)) == "window"
    assert refused(changed(total, half=4)) == "window"
    assert refused(changed(total, kept=4)) == "batch"
    assert refused(changed(total, n=4)) == "batch"
    assert refused(changed(total, gram=9.0 * total.recent.gram, weight=2.0)) == "trace"
    assert refused(changed(total, gram=-total.recent.gram)) in ("psd", "rewards")
    assert refused(total, earlier=total) == "batch"  # nothing is new
    later = total._replace(n=total.n + 1)
    assert refused(changed(later, surprise=-1.0), earlier=total) == "batch"


def test_a_space_without_a_window_takes_none() -> None:
    total = summed([(0, 2)])
    with pytest.raises(Refused, match="has no window"):
        check_increment(make_space(), USES, empty_sums(DIM), total)
