"""Ids of decisions: what is made can be read again, and nothing else."""

from __future__ import annotations

import pytest

from guardband.live.client.decision_id import make_id, mark_of, new_mark, parse_id

STREAM = "1f0c9a3e-5d7e-4b1c-9f5e-0a8d1c2b3e4f"


@pytest.mark.parametrize("task", ["movies", "tv-2", "a.b_c-d", "7"])
@pytest.mark.parametrize("mark", [None, 0, 2**63 - 1])
def test_an_id_has_its_parts(task: str, mark: int | None) -> None:
    ident = parse_id(make_id(task, STREAM, mark_of(mark, 1_700_000_000.25), 17))
    assert ident is not None
    assert (ident.task, ident.key, ident.seq) == (task, "1f0c9a3e", 17)
    assert ident.mark == mark_of(mark, 1_700_000_000.25)
    assert ident.made_in(STREAM)
    assert not ident.made_in(STREAM[1:])


def test_a_number_that_is_given_again_has_another_id() -> None:
    marks = {new_mark() for _ in range(1_000)}
    assert len(marks) == 1_000
    assert all(0 <= mark < 2**63 for mark in marks)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "tv-17", "tv-1f0c9a3e52b7-x", "-1f0c9a3e52b7-1", "tv-1f0c9a3e52b-1"),
        *("tv-1f0c9a3e52b7-", "tv-1f0c9a3e52b7--1", "tv-1f0c9a3e52b7-\u0663"),
        "tv-1f0c9a3e52b7-" + "9" * 19,
    ],
)
def test_what_is_no_id(text: str) -> None:
    assert parse_id(text) is None
