"""What is said about errors in the background."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from live.client.world import Away, Switch, agent, link_of, wait_for

from guardband.live import Unreachable
from guardband.live.client.background import BackgroundLoop
from guardband.live.client.joining import OtherSettingsError
from guardband.live.client.sync_worker import TROUBLE
from guardband.live.link.local import LocalLink


@pytest.mark.parametrize(
    ("problem", "traced"),
    [
        (ValueError("operands could not be broadcast together"), True),
        (OtherSettingsError("alpha=0.3 was given, but the space has alpha=0.2"), False),
        (Unreachable("nobody answers"), False),
    ],
)
def test_only_an_error_of_the_program_has_a_trace(
    caplog: pytest.LogCaptureFixture, problem: Exception, traced: bool
) -> None:
    told: list[Exception] = []

    def work() -> None:
        raise problem

    def last(error: Exception) -> None:
        told.append(error)
        loop.stop()

    loop = BackgroundLoop("test", work, pause_s=0.0, expected=TROUBLE, on_trouble=last)
    with caplog.at_level(logging.WARNING, "guardband.live"):
        loop.run()
    assert [record.exc_info is not None for record in caplog.records] == [True] * traced
    assert told == [problem]


def test_trouble_is_said_once_and_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    link = Switch(LocalLink(tmp_path / "gb"))
    one = agent(tmp_path, link=link, background=True)
    there, link.to = link.to, Away("nobody answers")
    with caplog.at_level(logging.WARNING, "guardband.live"):
        wait_for(lambda: one.status()["trouble"] == "nobody answers")
        time.sleep(0.5)
    assert [record.exc_info for record in caplog.records] == [None]
    link.to = there
    wait_for(lambda: one.status()["trouble"] is None)
    one.close()


def test_an_error_of_the_program_does_not_keep_an_agent_from_closing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = agent(tmp_path)

    def broken(*args: Any) -> None:
        raise ValueError("operands could not be broadcast together")

    link_of(one).report = broken
    one.close()
    assert [record.exc_info is not None for record in caplog.records] == [True]
    agent(tmp_path).close()


def test_what_was_said_wrong_has_an_error_of_its_own(tmp_path: Path) -> None:
    agent(tmp_path).close()
    with pytest.raises(OtherSettingsError, match=r"alpha=0.2 was given.*alpha=0.3"):
        agent(tmp_path, task="tv", alpha=0.2)
