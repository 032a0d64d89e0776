"""What is said about errors in the background."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from live.client.world import agent

from guardband.live import Unreachable
from guardband.live.client.joining import OtherSettingsError


@pytest.mark.parametrize(
    ("problem", "traced"),
    [
        (ValueError("operands could not be broadcast together"), True),
        (OtherSettingsError("alpha=0.3 was given, but the space has alpha=0.2"), False),
        (Unreachable("nobody answers"), False),
    ],
)
def test_only_an_error_of_the_program_has_a_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, problem: Exception, traced: bool
) -> None:
    one = agent(tmp_path)
    worker, waits = one._worker, one._worker._after_trouble

    def work() -> None:
        raise problem

    def last(*args: Any) -> float:
        worker._stop.set()
        waits(*args)
        return 0.0

    worker._after_trouble = last
    with caplog.at_level(logging.WARNING, "guardband.live"):
        worker._forever(work, 0.0)
    assert [record.exc_info is not None for record in caplog.records] == [True] * traced + [False]
    assert worker.trouble == str(problem)


def test_an_error_of_the_program_does_not_keep_an_agent_from_closing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = agent(tmp_path)

    def broken(*args: Any) -> None:
        raise ValueError("operands could not be broadcast together")

    one._worker.report = broken
    one.close()
    assert [record.exc_info is not None for record in caplog.records] == [True]
    agent(tmp_path).close()


def test_what_was_said_wrong_has_an_error_of_its_own(tmp_path: Path) -> None:
    agent(tmp_path).close()
    with pytest.raises(OtherSettingsError, match=r"alpha=0.2 was given.*alpha=0.3"):
        agent(tmp_path, task="tv", alpha=0.2)
