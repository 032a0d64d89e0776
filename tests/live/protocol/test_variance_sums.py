"""Spaces without a stated noise: their sums say that log det is no radius for them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import guardband as gb
from guardband.live.client.learner import Learner
from guardband.live.coordinator.upload_checks import check_increment
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.sums import Sums, add_sums, difference, empty_sums, sums_of

MENU = np.array([[0.5, 0.2], [0.1, 0.6]])


def space(**given: object) -> gb.SpaceSettings:
    settings = {"name": "home", "features": ["a", "b"], "agents": 2, "contexts": "per-request"}
    return gb.SpaceSettings(**settings, **given)


def learned(settings: gb.SpaceSettings, rewards: tuple[float, ...]) -> Sums:
    """Return the sums of an agent of the space that learned so many rewards."""
    learner = Learner(settings, "tv", (0, 1), reward_floor=None, seed=0)
    learner.set_level(0.5, 0, 0)
    request = learner.reader.read(MENU, 0, None)
    for n, reward in enumerate(rewards, start=1):
        learner.learn(learner.decide(request, n, 0.5).awaited, reward, n, n)
    assert Sums.from_bytes(learner.own()).as_bytes() == learner.own()
    return sums_of(learner.state.own)


def test_the_count_travels_with_the_sums() -> None:
    for noise, count in ((None, 3), (0.5, 0)):
        sums = learned(space(noise=noise), (0.0, 1.0, 0.0))
        assert sums.by_variance == count
        raw = sums.as_bytes()
        assert raw[:4] == (b"GBS\x03" if count else b"GBS\x02")
        assert Sums.from_bytes(raw).by_variance == count
        assert Sums.from_bytes(raw).as_bytes() == raw
        assert add_sums(2, (sums, sums)).by_variance == 2 * count
        assert difference(sums, sums).by_variance == 0


def test_sums_without_such_weights_have_the_bytes_that_they_had() -> None:
    sums = Sums(3, np.arange(10.0), -1.5, 2.0)
    numbers = np.array([3.0, -1.5, 2.0, *range(10)], "<f8").tobytes()
    assert sums.as_bytes()[8:] == numbers
    assert sums.sha256 == hashlib.sha256(numbers).hexdigest()


def test_uploads_must_fit_to_what_the_space_states() -> None:
    for noise in (None, 0.5):
        settings = space(noise=noise)
        sums = learned(settings, (0.0, 1.0, 0.0))
        check_increment(settings, (0, 1), empty_sums(2), sums)
        wrong = sums._replace(by_variance=3 - sums.by_variance)
        with pytest.raises(Refused, match="weights by variance"):
            check_increment(settings, (0, 1), empty_sums(2), wrong)


def test_without_a_noise_rewards_lie_in_the_unit_interval(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"every reward lies in \[0, 1\]"):
        space(rewards={"low": 0.0, "high": 2.0})
    assert not space(algorithm="dis-lin-ucb", rewards={"low": 0.0, "high": 2.0}).by_variance
    settings = space(rewards={"order": "prompt", "high": 0.9})
    live = gb.connect(f"local:{tmp_path}", task="tv", settings=settings, background=False)
    d = live.decide(MENU, 0)
    with pytest.raises(ValueError, match=r"not between 0 and 0\.9"):
        live.observe(d, 0.95)
    live.observe(d, 0.9)
    live.close()


def test_a_ceiling_is_part_of_what_data_mean() -> None:
    assert space().schema_hash != space(reward_ceiling=0.2).schema_hash
    assert space().learner().reward_ceiling is None
    assert space(reward_ceiling=0.2).learner().reward_ceiling == 0.2
    assert gb.SpaceSettings.from_json(space(reward_ceiling=0.2).as_json()).reward_ceiling == 0.2
