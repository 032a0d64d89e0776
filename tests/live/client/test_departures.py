"""Live agents that leave the pool, and those that stay: what each computes with then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.test_health import AFTER, BEFORE, work
from live.client.test_modes import coordinator
from live.client.test_replay import check_all
from live.client.world import agent, check_journal, journal_of
from live.operators.journals import found

from guardband.live.operators.monitors_check import changed_monitors
from guardband.live.server import summary_now

SPACE: dict[str, Any] = {"agents": 3, "alpha": 0.2, "context_noise": 0.0}
TASKS = ("movies", "tv", "books")


def statuses(folder: Path) -> dict[str, str]:
    with coordinator(folder).store.reading() as t:
        return {row.task: row.status for row in t.tasks("default")}


def sync(agents: list[Any], times: int = 3) -> None:
    for _ in range(times):
        for each in agents:
            each.sync()


def three(folder: Path, odd: np.ndarray, **given: Any) -> list[Any]:
    """Return three agents that have pooled, of which the last lives in a world of its own."""
    agents = [agent(folder, task=task, **SPACE | given) for task in TASKS]
    for step in range(12):
        for place, each in enumerate(agents):
            work(each, 25, odd if place == 2 else BEFORE, seed=10 * step + place)
        sync(agents)
        if not agents[2].health.ok:
            break
    return agents


def comes_out_again(folder: Path, one: Any) -> None:
    """See that all decisions of an agent, its sums and its monitors come out again."""
    journal = journal_of(one)
    check_journal(journal)
    assert changed_monitors(journal) == []
    assert check_all(one)[0] == one.rounds
    numbered = {"round": one._store.state.last_round + 1} if one.settings.timed else {}
    ident = one.decide(np.full((2, 3), 0.2), 0, **numbered).id
    result = found(folder, ident)
    assert (result.result, result.differences) == ("same", ())


def test_a_task_that_does_not_fit_leaves_and_a_person_lets_it_back(tmp_path: Path) -> None:
    agents = three(tmp_path, AFTER)
    one, two, odd = agents
    assert [each.kind for each in odd.health.alarms] == ["fit"]
    assert one.health.ok
    assert two.health.ok
    sync(agents)
    assert statuses(tmp_path) == {"movies": "active", "tv": "active", "books": "apart"}
    assert odd.status()["apart"]
    assert odd.counted > 0  # it goes on with its own data
    for step in range(4):
        for place, each in enumerate(agents):
            work(each, 25, AFTER if place == 2 else BEFORE, seed=500 + 10 * step + place)
        sync(agents)
    own = odd.status()
    assert own["observations"] == own["counted"] == odd.counted
    assert one.counted < one.status()["observations"] <= one.counted + two.counted
    for each, theta in zip(agents, (BEFORE, BEFORE, AFTER), strict=True):
        assert np.abs(each.theta - theta).max() < 0.1
        comes_out_again(tmp_path, each)
    coordinator(tmp_path).readmit("default", "books", "mended", who="ann", now=0.0)
    assert statuses(tmp_path)["books"] == "active"
    sync(agents)  # nothing was mended: it leaves again
    assert [each.kind for each in odd.health.alarms] == ["fit", "fit"]
    assert statuses(tmp_path)["books"] == "apart"


def reopened(one: Any, folder: Path) -> Any:
    one.close()
    return agent(folder, task=one.name, **SPACE)


def test_only_who_noticed_starts_anew_until_most_have(tmp_path: Path) -> None:
    agents = [agent(tmp_path, task=task, **SPACE) for task in TASKS]
    for step in range(6):
        for place, each in enumerate(agents):
            work(each, 25, BEFORE, seed=10 * step + place)
        sync(agents)
    one, two, three_ = agents
    work(one, 400, AFTER, seed=1)
    assert [each.kind for each in one.health.alarms] == ["assumptions"]
    counted = two.counted
    sync(agents)
    assert statuses(tmp_path) == {"movies": "anew", "tv": "active", "books": "active"}
    assert (one.counted, two.counted) == (0, counted)
    assert two.status()["observations"] == counted + three_.counted
    work(one, 20, AFTER, seed=2)
    one.resume()
    work(two, 400, AFTER, seed=3)
    assert not two.health.ok
    sync(agents)
    assert set(statuses(tmp_path).values()) == {"active"}
    assert (one.counted, two.counted, three_.counted) == (0, 0, 0)
    assert not any(each.status()["apart"] for each in agents)
    ((followed,),) = (each.health.followed for each in (three_,))
    assert (followed, three_.health.ok) == (three_.rounds, True)  # nothing is wrong with its own
    decision = three_.decide(np.full((2, 3), 0.2), 0)
    assert decision.reason.endswith("; the task started anew because its pool did")
    audited = found(tmp_path, decision.id)
    assert (audited.health["followed"], audited.because) == ([followed], decision.reason)
    assert three_.report().gauges["followed"] == 1.0
    three_.sync()
    seen = summary_now(coordinator(tmp_path).store, "default", 0.0)
    (line,) = (each for each in seen.agents if each.task == "books")
    assert line.why.endswith("the task started anew because its pool did")
    (event,) = (each for each in seen.events if each.what == "pool began anew")
    assert event.detail == {"tasks": 2, "followed": ["books"]}
    three_ = agents[2] = reopened(three_, tmp_path)
    assert three_.health.followed == (followed,)
    for each in agents:
        each.resume()
    for step in range(4):
        for place, each in enumerate(agents):
            work(each, 25, AFTER, seed=700 + 10 * step + place)
        sync(agents)
    assert one.status()["observations"] > one.counted
    assert "its pool did" not in three_.decide(np.full((2, 3), 0.2), 0).reason
    for each in agents:
        assert np.abs(each.theta - AFTER).max() < 0.15
        comes_out_again(tmp_path, each)


def test_one_of_two_does_not_make_the_other_start_anew(tmp_path: Path) -> None:
    agents = [agent(tmp_path, task=task, **SPACE | {"agents": 2}) for task in TASKS[:2]]
    one, two = agents
    for step in range(4):
        for place, each in enumerate(agents):
            work(each, 25, BEFORE, seed=10 * step + place)
        sync(agents)
    work(one, 400, AFTER, seed=1)
    assert not one.health.ok
    counted = two.counted
    sync(agents)
    assert statuses(tmp_path) == {"movies": "anew", "tv": "active"}
    assert (one.counted, two.counted, two.health.followed) == (0, counted, ())
    assert two.status()["observations"] == counted  # its own, and nothing of the other


@pytest.mark.parametrize("shares", ["registered", "equal"])
def test_every_start_pays_for_a_set_of_data_of_its_own(tmp_path: Path, shares: str) -> None:
    one = agent(tmp_path, **SPACE | {"agents": 1, "shares": shares})
    work(one, 300, BEFORE)
    state = one._store.state
    before, share = state.learner.level, state.share
    work(one, 400, AFTER, seed=1)
    one.sync()
    assert state.share == share
    # The second set of data: delta w / (p (p + 1)), or 6 delta / (pi^2 M p^2).
    more = 2 * np.log(3) if shares == "registered" else 4 * np.log(2)
    assert state.learner.level - before == pytest.approx(more)


def test_who_begins_again_hands_in_no_single_observation(tmp_path: Path) -> None:
    """At weights that are the same as before, the rest would be read off what was handed in."""
    given = SPACE | {"sync": {"min_batch": 20}, "shares": "equal"}
    agents = [agent(tmp_path, task=task, **given) for task in TASKS]
    one, two, _ = agents
    for place, each in enumerate(agents):
        work(each, 300, BEFORE, seed=place)
    sync(agents)
    work(two, 3, BEFORE, seed=7)
    assert (two.counted, two.status()["acknowledged"]) == (303, 300)
    work(one, 400, AFTER, seed=1)
    sync(agents)
    assert (two.counted, two.status()["acknowledged"]) == (303, 0)
    work(two, 16, BEFORE, seed=8)
    sync(agents)
    assert (two.counted, two.status()["acknowledged"]) == (319, 0)
    work(two, 1, BEFORE, seed=9)
    sync(agents)
    assert (two.counted, two.status()["acknowledged"]) == (320, 320)
    two.close()
    two = agent(tmp_path, task=TASKS[1], **given)
    work(two, 19, BEFORE, seed=10)
    two.sync()
    assert two.status()["acknowledged"] == 320
