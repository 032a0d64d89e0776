"""`python -m bench.reproduce`: what it reads on docs/lab.md, and what it writes there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.reproduce import Spent, other_verdicts, rewritten, verdicts_of_page

PAGE = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")
CLAIMS: dict[str, dict[str, Any]] = {
    "holds": {"holds": True},
    "holds vacuously": {"holds": True, "vacuous": True},
    "does not hold": {"holds": False},
    "inconclusive": {"holds": None},
}


def told(times: int = 1) -> list[dict[str, Any]]:
    """Return a run with the page's verdicts, each of so many claims."""
    return [
        {
            "panel": panel,
            "claims": [
                {"id": "", "text": "", "detail": "", **CLAIMS[verdict]}
                for verdict in verdicts
                for _ in range(times)
            ],
        }
        for panel, verdicts in verdicts_of_page(PAGE).items()
    ]


def test_verdicts_are_read_from_the_page() -> None:
    found = verdicts_of_page(PAGE)
    assert len(found) == 17
    assert found["1a"] == ["holds vacuously", "holds"]
    assert found["1d"] == ["does not hold", "holds", "does not hold", "holds"]
    assert found["lastfm-unknown"] == ["holds"]


@pytest.mark.parametrize("times", [1, 3])
def test_another_verdict_is_named(times: int) -> None:
    run = told(times)
    assert other_verdicts(PAGE, run) == []
    run[2]["claims"][-1]["holds"] = None
    assert other_verdicts(PAGE, run) == [run[2]["panel"]]
    assert other_verdicts(PAGE, run[1:]) == [told()[0]["panel"], run[2]["panel"]]


def test_what_a_run_took_is_written_and_can_be_written_again() -> None:
    spent = Spent(449.6, 871.2, 1234.5)
    first = rewritten(PAGE, spent, 2)
    assert (
        "in 7 minutes (450 s, 871 s of CPU time) on two cores with at most 1234 MB of memory"
        in first
    )
    other = rewritten(first, Spent(60.0, 90.0, 500.0), 64)
    assert "in 1 minutes (60 s" in other
    assert rewritten(other, spent, 2) == first
    with pytest.raises(ValueError, match="0 sentences"):
        rewritten("nothing", spent, 2)
