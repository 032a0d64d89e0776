"""What an agent knows after the first answer of its coordinator, and after it was copied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import Away, Hands, agent, journal_of

import guardband as gb
from guardband.live import Unreachable
from guardband.live.link.local import LocalLink
from guardband.live.operators.audit import audit, find_decision

AWAY = Away("nobody answers")
MENU = np.array([[0.4, 0.3, 0.1], [0.1, 0.2, 0.6]])


class FirstAnswerOnly:
    """A link that tells the rules of a space, and then breaks."""

    def __init__(self, folder: Path) -> None:
        self._to = LocalLink(folder)

    def __getattr__(self, name: str) -> Any:
        if name in ("space", "create_space", "close", "hold", "let_go", "after_fork"):
            return getattr(self._to, name)
        return self._away

    def _away(self, *_: Any, **__: Any) -> Any:
        raise Unreachable("nobody answers")


@pytest.mark.parametrize("noise", [0.1, None])
def test_a_restarted_agent_learns_without_its_coordinator(
    tmp_path: Path, noise: float | None
) -> None:
    agent(tmp_path, link=FirstAnswerOnly(tmp_path / "gb"), noise=noise).close()  # not registered
    one = agent(tmp_path, link=AWAY, noise=noise)
    made = [one.decide(MENU, 0) for _ in range(5)]
    for each in made:
        one.observe(each, 0.5)
    assert {each.promise for each in made} == {"baseline"}
    assert one.counted == 5
    assert one.theta.any()
    for each in made:  # and every one of them can be made again
        assert audit(each.id, find_decision(each.id, [tmp_path])).result == "same"
    one.close()
    one = agent(tmp_path, noise=noise)  # the coordinator answers again, and what counted counts
    one.sync()
    assert one.counted == 5
    assert one.decide(MENU, 0).reason != made[0].reason
    one.close()


def test_copies_of_a_folder_never_give_one_id_twice(tmp_path: Path) -> None:
    """Also with one seed, at the same moment by clocks that agree, and for one number."""
    hands = Hands()
    one = agent(tmp_path, clock=hands.clock())
    one.decide(MENU, 0)
    one.close()
    shutil.copytree(one.state_dir, tmp_path / "copy")
    both = [
        agent(tmp_path, clock=hands.clock(), state_dir=folder, link=AWAY)
        for folder in (one.state_dir, tmp_path / "copy")
    ]
    made = [[each.decide(MENU, 0) for _ in range(50)] for each in both]
    ids = [decision.id for own in made for decision in own]
    assert len(set(ids)) == 100
    for mine, other in zip(made[0], made[1], strict=True):
        assert mine.id.rpartition("-")[2] == other.id.rpartition("-")[2]
        with pytest.raises(gb.UnknownDecisionError):
            both[0].observe(other.id, 0.5)
        both[0].observe(mine.id, 0.5)
    assert journal_of(both[0]).query("SELECT count(DISTINCT mark) FROM decision") == [(51,)]
    for each in both:
        each.close()
