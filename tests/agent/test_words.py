"""What agents say of themselves and of what they were given, and how they take what is handy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import guardband as gb

TASKS = {"movies": [0, 1, 2], "tv": [0, 2]}
MENU = np.array([[0.5, 0.2, 0.1], [0.1, 0.6, 0.2]])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"alhpa": 0.3}, "unexpected keyword argument 'alhpa'"),
        ({"gate": "none"}, "unexpected keyword argument 'gate'"),
        (
            {"algorithm": gb.DiscUCB(), "mode": "policy"},
            r"disc-ucb has no setting 'mode'; it has noise, .*alpha, .*gate",
        ),
        ({"algorithm": "baseline", "alpha": 0.3}, "baseline has no setting 'alpha'"),
    ],
)
def test_a_setting_that_is_not_there_is_named(given: dict, told: str) -> None:
    for make in (lambda: gb.Agent(3, **given), lambda: gb.Fleet(TASKS, dim=3, **given)):
        with pytest.raises(TypeError, match=told):
            make()


def test_a_decision_stands_for_its_id() -> None:
    by_id, by_itself = gb.Agent(3, noise=0.1), gb.Agent(3, noise=0.1)
    for _ in range(3):
        by_id.observe(by_id.decide(MENU, 0).id, 0.5)
        by_itself.observe(by_itself.decide(MENU, 0), 0.5)
    np.testing.assert_array_equal(by_id.theta, by_itself.theta)
    given_up = by_itself.decide(MENU, 0)
    by_itself.discard(given_up)
    assert by_itself.pending == 0
    with pytest.raises(gb.UnknownDecisionError, match="was observed or given up before"):
        by_itself.observe(given_up, 0.5)


def test_yes_and_no_are_rewards() -> None:
    words, numbers = gb.Agent(3), gb.Agent(3)
    for yes in (True, False, np.True_):
        words.observe(words.decide(MENU, 0), yes)
        numbers.observe(numbers.decide(MENU, 0), float(yes))
    np.testing.assert_array_equal(words.theta, numbers.theta)


def test_one_action_is_a_row_too() -> None:
    with pytest.raises(ValueError, match=r"not \(3,\): one row per action; for one action: "):
        gb.Agent(3).decide(np.zeros(3), 0)
    with pytest.raises(ValueError, match=r"not \(4,\): one row per action\.$"):
        gb.Agent(3).decide(np.zeros(4), 0)


def test_a_baseline_play_promises_that_it_is_one() -> None:
    fleet = gb.Fleet(TASKS, dim=3, alpha=0.3, noise=0.1)
    for row in (0, 1):
        first = fleet["movies"].decide(MENU, row)
        assert (first.action, first.promise, first.certificate) == (row, "baseline", "baseline")
    policy = gb.Agent(3, algorithm=gb.GuardUCB(alpha=0.3, mode="policy"))
    seen = {policy.decide(MENU, 0).promise for _ in range(20)}
    assert seen == {"policy"}


def test_the_first_reason_does_not_sound_like_a_fault() -> None:
    """Nothing is known yet, and that is all there is to it."""
    first = gb.Agent(3).decide(MENU, 0)
    assert first.reason.startswith("too little is known yet to certify the most promising action")
    assert "playing it safe" in first.reason


def test_reprs_are_one_line() -> None:
    fleet = gb.Fleet(TASKS, dim=3, noise=0.1)
    fleet["tv"].decide(MENU, 0)
    assert repr(fleet) == "<Fleet of movies, tv: guard-ucb, 3 features, 1 decisions, 0 poolings>"
    assert repr(fleet["tv"]) == (
        "<Agent 'tv': guard-ucb, 2 of 3 features, 1 decisions, 1 without a reward>"
    )


def test_a_file_that_is_no_fleet_gets_a_plain_sentence(tmp_path: Path) -> None:
    junk = tmp_path / "junk.npz"
    junk.write_bytes(b"not a fleet")
    for load in (gb.Fleet.load, gb.Agent.load):
        with pytest.raises(ValueError, match=r"junk.npz is not a saved agent or fleet") as error:
            load(junk)
        assert "pickle" not in str(error.value)


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "fleet.npz", tmp_path):
        with pytest.raises(OSError, match="it cannot be saved") as error:
            gb.Agent(3).save(place)
        assert f"'{place}'" in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
