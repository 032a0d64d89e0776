"""Live agents where one task of the space may send anything: tolerate=1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.client.world import DIM, THETA, agent, journal_of, menus
from live.operators.journals import found, sync
from numpy.testing import assert_array_equal

import guardband as gb
from guardband.live.protocol.sums import Sums, add_sums, empty_sums, sums_without, unpack_sums

HONEST = ("movies", "tv", "books")
RULES: dict[str, Any] = {
    "agents": 4,
    "alpha": 0.2,
    "context_noise": 0.0,
    "sync": {"growth": 1e-3},  # they pool whenever there is something new
    "delta_alarm": 0.0,  # monitors would notice the liar
}


def space(folder: Path, tolerate: int | None, **more: Any) -> tuple[list[Any], Any]:
    """Three agents and one that lies, of one space."""
    given = RULES | {"tolerate": tolerate, **more}
    *honest, liar = (agent(folder, task, **given) for task in (*HONEST, "liar"))
    return honest, liar


def play(honest: list[Any], rounds: int, seed: int) -> tuple[list[gb.Decision], int]:
    """Let the honest play, with true rewards; return decisions and how many fell short."""
    rng, made, below = np.random.default_rng(seed), [], 0
    for k in range(rounds):
        for place, one in enumerate(honest):
            (menu,) = menus(1, seed=1000 * seed + 10 * k + place, actions=8)
            rewards = menu @ THETA
            b = int(np.argsort(rewards)[4])
            decision = one.decide(menu, b)
            one.observe(
                decision.id, float(np.clip(rewards[decision.action] + rng.normal(0, 0.05), 0, 1))
            )
            below += bool(rewards[decision.action] < 0.8 * rewards[b] - 1e-12)
            made.append(decision)
    return made, below


def lie(liar: Any, rows: int = 3_000) -> None:
    """Send rewards of another parameter."""
    psi = np.random.default_rng(7).uniform(0.05, 0.55, (rows, DIM))
    liar.learn(psi, psi @ np.array([0.9, 0.0, 0.1]))


def in_turns(folder: Path, tolerate: int | None) -> tuple[list[Any], list[gb.Decision], int]:
    honest, liar = space(folder, tolerate)
    lie(liar)
    made, below = [], 0
    for step in range(6):
        sync(liar, *honest, liar, *honest)
        more, low = play(honest, 12, step)
        made, below = made + more, below + low
    return honest, made, below


def test_a_task_that_lies_harms_nobody_and_every_decision_comes_out_again(tmp_path: Path) -> None:
    _, _, below = in_turns(tmp_path / "trusting", None)
    assert below > 5
    honest, made, below = in_turns(tmp_path / "tolerant", 1)
    assert below == 0
    assert all(one.epoch >= 1 for one in honest)
    learned = [d for d in made if d.kind == "learned"]
    assert learned
    assert all(d.certificate == "leave one out" for d in learned)
    for decision in [*learned[-5:], *made[::9]]:
        finding = found(tmp_path / "tolerant" / "gb", decision.id)
        assert finding.result == "same", finding.differences
        chosen = finding.choices[decision.action]
        assert chosen.lower == pytest.approx(decision.lower, abs=1e-9)
        assert chosen.upper == pytest.approx(decision.upper, abs=1e-9)


def test_an_agent_that_starts_again_computes_with_the_same_sums(tmp_path: Path) -> None:
    honest, _, _ = in_turns(tmp_path, 1)
    one = honest[0]
    before = one._store.state.learner.group.engine.left_out
    assert before.sums.scalars.shape[0] == 1 + 3  # without each of the three others
    one.close()
    again = agent(tmp_path, HONEST[0], **RULES, tolerate=1)
    after = again._store.state.learner.group.engine.left_out
    assert_array_equal(before.sums.scalars[1:, 0], after.sums.scalars[1:, 0])
    for mine, its in zip(before.views, after.views, strict=True):
        np.testing.assert_allclose(mine[:, 1:, ..., :2], its[:, 1:, ..., :2], rtol=1e-9)


def test_an_agent_without_these_sums_uses_none(tmp_path: Path) -> None:
    """An older coordinator does not send them: then nothing of the others counts."""
    honest, _ = space(tmp_path, 1)
    play(honest, 5, 0)
    for one in honest:
        real = one._worker._link.news

        def news(*args: Any, real: Any = real, **more: Any) -> Any:
            found = real(*args, **more)
            return found and found.model_copy(update={"without": None})

        one._worker._link.news = news
    sync(*honest, *honest)
    assert all(one._store.state.stream.pooled is None for one in honest)


def test_sums_without_a_part_are_no_differences() -> None:
    rng = np.random.default_rng(0)

    def some(scale: float) -> Sums:
        return Sums(int(scale), scale * rng.random(6), rng.random(), scale)

    parts = [some(3.0), some(1e18), some(5.0)]
    found = sums_without(2, parts)
    assert_array_equal(found[1].gram, add_sums(2, (parts[0], parts[2])).gram)
    assert [each.n for each in found] == [10**18 + 5, 8, 10**18 + 3]
    assert sums_without(2, parts[:1])[0].as_bytes() == empty_sums(2).as_bytes()
    assert sums_without(2, []) == []


def test_a_journal_keeps_them(tmp_path: Path) -> None:
    honest, _, _ = in_turns(tmp_path, 1)
    journal = journal_of(honest[0])
    ((raw,),) = journal.query(
        "SELECT others FROM epoch WHERE adopted_at IS NOT NULL ORDER BY epoch DESC LIMIT 1"
    )
    journal.close()
    kept = unpack_sums(raw)
    assert len(kept) == 3
    liar_out = min(kept, key=lambda each: each.n)
    assert liar_out.n < 3_000 <= max(kept, key=lambda each: each.n).n


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sync": {"min_streams": 2}}, "min_streams"),
        ({"mode": "policy"}, "mode"),
        ({"agents": 2_000, "features": [f"x{i}" for i in range(100)]}, "20,000,000 numbers"),
    ],
)
def test_what_a_space_cannot_have_beside_it_is_refused(settings: dict, words: str) -> None:
    given = {"name": "home", "features": ["a", "b"], "agents": 3, "tolerate": 1} | settings
    with pytest.raises(gb.InvalidValueError, match=words):
        gb.SpaceSettings(**given)


def test_it_is_chosen_when_a_space_is_made() -> None:
    plain = gb.SpaceSettings(name="home", features=["a", "b"], agents=3)
    tolerant = plain.changed(tolerate=1)
    assert plain.schema_hash == plain.changed(tolerate=0).schema_hash
    assert plain.schema_hash != tolerant.schema_hash
    assert json.loads(json.dumps(tolerant.as_json()))["tolerate"] == 1
