"""What live agents take beside ids and mappings, and what they say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import guardband as gb

MENU = [[0.5, 0.2], [0.1, 0.6]]


def agent(folder: Path, **given: Any) -> gb.LiveAgent:
    settings = gb.SpaceSettings(name="default", features=["a", "b"], agents=2, **given)
    return gb.connect(f"local:{folder}", task="tv", settings=settings, background=False)


def test_a_decision_stands_for_its_id_and_yes_for_one(tmp_path: Path) -> None:
    live = agent(tmp_path / "gb", contexts="per-request", rewards={"order": "prompt"})
    live.observe(live.decide(MENU, 0), True)
    live.discard(live.decide(MENU, 0))
    assert live.pending == 0
    assert repr(live) == (
        "<LiveAgent 'tv': guard-ucb, 2 of 2 features, 2 decisions, 0 without a reward>"
    )
    live.close()
    assert repr(live) == "<LiveAgent 'tv': guard-ucb, 2 of 2 features, closed>"


@pytest.mark.parametrize("given", [{"rewards": "prompt"}, {"sync": 3}])
def test_settings_of_their_own_are_asked_for(tmp_path: Path, given: dict) -> None:
    with pytest.raises(ValueError, match=r"rewards|sync"):
        agent(tmp_path / "gb", **given)
