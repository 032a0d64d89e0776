"""What the options mean, what is refused, and what each protocol sends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from algorithms.small import small
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.algorithms import optimal_design
from guardband.facts import Facts
from guardband.problems import PROBLEMS, SyntheticB

UNAWARE = [
    gb.DisLinUCB,
    gb.algorithms.LinUCB,
    gb.algorithms.FedLinUCB,
    gb.algorithms.SCLTS,
    gb.algorithms.SCLUCB,
    gb.algorithms.SEGE,
    gb.algorithms.CLUCB,
]
FACTS = Facts(
    tasks=((0, 1), (0,)),
    dim=2,
    horizon=1000,
    reward_low=0.5,
    reward_high=0.9,
    gap=np.full((2, 4), 0.1),
    actions=5,
    contexts=4,
    context_noise=0.05,
)


@pytest.mark.parametrize("kind", [*UNAWARE, gb.DiscUCB, gb.DiscUCBUnknown])
def test_the_constant_means_the_same_for_all(kind: Any) -> None:
    made_for_hidden = kind in (gb.DiscUCB, gb.DiscUCBUnknown)
    paper, tight = math.hypot(0.3, 0.4), math.hypot(0.05, 0.4)
    expected = {
        ("source", "hidden"): (paper, 2) if made_for_hidden else (0.4, 1),
        ("paper", "hidden"): (paper, 2),
        ("tight", "hidden"): (tight, 2),
        ("paper", "observed"): (0.4, 1),
        ("tight", "observed"): (0.4, 1),
    }
    for (constant, context), (sigma, parts) in expected.items():
        made = kind(noise=0.4, context_noise=0.3, delta=0.01, constant=constant, context=context)
        terms = made.plan(FACTS).terms
        assert terms.sigma == pytest.approx(sigma)
        assert terms.confidence == pytest.approx(2 * math.log(parts / 0.01))


def test_the_usual_constants() -> None:
    ignorant = {
        gb.algorithms.SCLTS,
        gb.algorithms.SCLUCB,
        gb.algorithms.SEGE,
        gb.algorithms.CLUCB,
        gb.algorithms.FedPE,
    }
    for kind in (
        *UNAWARE,
        gb.DiscUCB,
        gb.DiscUCBUnknown,
        gb.algorithms.DisLSB,
        gb.algorithms.FedPE,
        gb.algorithms.FedPECD,
    ):
        assert kind().constant == ("source" if kind in ignorant else "paper")


def test_the_true_spread_is_knowledge_about_the_problem() -> None:
    fresh = SyntheticB(nature="fresh", psi_noise=0.2).build(0).facts(10)
    assert fresh.context_noise == pytest.approx(0.2 * math.hypot(0.9, 0.4))
    frozen = SyntheticB(psi_noise=0.2, contexts=400).build(0)
    lengths = [np.linalg.norm(theta) for theta in frozen.masked_theta]
    expected = 0.2 * np.sqrt(np.mean(np.square(lengths)))
    assert frozen.facts(10).context_noise == pytest.approx(expected, rel=0.05)
    world = PROBLEMS["forecast"]().build(0)
    facts = world.facts(10)
    half = (world.realised.max(axis=0) - world.realised.min(axis=0)).max() / 2
    assert facts.context_noise == pytest.approx(half)
    assert (facts.contexts, facts.frozen, fresh.contexts, fresh.frozen) == (None, False, 100, False)
    assert (frozen.facts(10).contexts, frozen.facts(10).frozen) == (400, True)


def test_rho_is_the_largest_safe_weight() -> None:
    """(1 - rho) r_b - rho S >= (1 - alpha) r_b for every r_b from r_l to r_h, with equality."""
    for kind in (gb.algorithms.SCLTS, gb.algorithms.SCLUCB, gb.algorithms.SEGE, gb.DiscUCB):
        plan = kind((0.2, 0.4), theta_bound=0.8).plan(FACTS)
        assert_allclose(plan.rho, np.array([0.2, 0.4]) * 0.5 / (0.8 + 0.9))
        for r_b in (0.5, 0.7, 0.9):
            assert ((1 - plan.rho) * r_b - plan.rho * 0.8 >= (1 - plan.alpha) * r_b - 1e-12).all()
    guarded = gb.algorithms.Guarded(gb.DisLinUCB(theta_bound=0.8), (0.2, 0.4)).plan(FACTS)
    assert_allclose(guarded.rho, plan.rho)
    unknown = gb.algorithms.SCLUCB(0.2, known_baseline=False, reward_floor=0.3).plan(FACTS)
    assert_allclose(unknown.rho, 0.2 * 0.3 / 2)


def test_sclts_takes_its_radius_at_delta_over_4t() -> None:
    plan = gb.algorithms.SCLTS(delta=0.01).plan(FACTS)
    assert plan.method.level == pytest.approx(math.log(4 * 1000 / 0.01))  # type: ignore[union-attr]
    paper = gb.algorithms.SCLTS(delta=0.01, constant="paper", parts=10).plan(FACTS)
    assert paper.method.level == pytest.approx(math.log(20 * 1000 / 0.01))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gb.algorithms.SCLTS(constant="papper"), "Did you mean 'paper'"),
        (
            lambda: gb.algorithms.SCLTS(context="seen"),
            "context must be one of 'hidden', 'observed'",
        ),
        (
            lambda: gb.algorithms.CLUCB(context="observed-after"),
            "'hidden', 'observed', not 'observed-after'",
        ),
        (lambda: gb.algorithms.SCLTS(mix="task-vector"), "mix must be one of 'vector', 'action'"),
        (lambda: gb.algorithms.SCLTS(parts=0), "parts must be a positive number, not 0"),
        (lambda: gb.algorithms.SCLTS(gap=0.1), "gap is read by gate='gap' only"),
        (
            lambda: gb.algorithms.SCLUCB(gate="gap", gap=-1.0),
            "gap must be zero or a positive number",
        ),
        (lambda: gb.algorithms.SCLUCB(alpha=0.0), "alpha must lie in"),
        (
            lambda: gb.algorithms.SCLUCB(reward_floor=-1.0),
            "reward_floor must be zero or a positive",
        ),
        (lambda: gb.algorithms.SEGE(pace=-1.0), "pace must be zero or a positive number, not -1.0"),
        (lambda: gb.algorithms.FedLinUCB(growth=0.0), "growth must be a positive number, not 0.0"),
        (lambda: gb.algorithms.FedLinUCB(radius=-1.0), "radius must be a positive number"),
        (lambda: gb.algorithms.DisLSB(option="C"), "option must be one of 'A', 'B'"),
        (lambda: gb.algorithms.DisLSB(pulls=0.0), "pulls must be a positive number"),
        (lambda: gb.algorithms.DisLSB(delta=1.0), "delta must lie strictly between 0 and 1"),
        (
            lambda: gb.algorithms.FedPE(base=1.0),
            "base must be above 1, so that phases grow, not 1.0",
        ),
        (lambda: gb.algorithms.Guarded(gb.DisLinUCB(), 2.0), "alpha must lie in"),
        (lambda: gb.algorithms.Guarded(gb.DisLinUCB(), mix="x"), "mix must be one of"),
    ],
)
def test_errors_name_the_value(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "rival",
    [gb.algorithms.DisLSB(), gb.algorithms.FedPE(), gb.DiscUCB(), gb.algorithms.SCLTS(), None],
)
def test_only_rivals_with_a_confidence_set_can_be_guarded(rival: Any) -> None:
    with pytest.raises(TypeError, match=r"no confidence set to guard by; give gb\.DisLinUCB"):
        gb.algorithms.Guarded(rival)


SIMULATED = [
    gb.algorithms.SCLTS(),
    gb.algorithms.SCLUCB(),
    gb.algorithms.SEGE(),
    gb.algorithms.CLUCB(),
    gb.algorithms.FedLinUCB(),
    gb.algorithms.DisLSB(),
    gb.algorithms.FedPE(),
    gb.algorithms.Oracle(),
    gb.algorithms.Guarded(gb.DisLinUCB()),
    gb.DisLinUCB(context="observed-after"),
]


@pytest.mark.parametrize("algorithm", SIMULATED, ids=lambda a: a.name)
def test_live_agents_refuse_what_only_the_simulator_plays(algorithm: Any) -> None:
    live = Facts(tasks=((0, 1),), dim=2)
    with pytest.raises(ValueError, match=r"runs in gb\.simulate only"):
        algorithm.plan(live)


def test_what_only_a_simulation_knows_is_refused_elsewhere() -> None:
    live = Facts(tasks=((0, 1),), dim=2)
    with pytest.raises(ValueError, match="state what you assume by context_noise"):
        gb.DiscUCB(constant="tight").plan(live)
    assert gb.DiscUCB(context="observed").plan(live).terms.sigma == 1.0


def test_features_that_change_every_round_are_no_virtual_clients() -> None:
    problem = SyntheticB(contexts=5, nature="fresh")
    for algorithm in (
        gb.algorithms.FedPE(context="observed"),
        gb.algorithms.DisLSB(context="observed"),
    ):
        with pytest.raises(ValueError, match=r"every round brings its own \(context='observed'\)"):
            gb.simulate(problem, algorithm, rounds=10)
    settled = gb.algorithms.DisLSB(context="observed", option="B", pulls=0.1)
    assert gb.simulate(problem, settled, rounds=10).series[0].regret.shape == (1, 3)


def test_every_protocol_is_counted_by_its_own_rules() -> None:
    """d = 3, M = 3: a packed statistic has 6 + 3 numbers."""
    case = small(30, d=3, T=400)
    expected = {
        gb.DisLinUCB(noise=0.1): (6, 2 * 3 * 9),
        gb.algorithms.Guarded(gb.DisLinUCB(noise=0.1)): (6, 2 * 3 * 9),
        gb.algorithms.FedLinUCB(noise=0.1): (2, 2 * 9),
        gb.algorithms.DisLSB(pulls=0.1): (6, 3 * 9 + 3 * 3),
        gb.algorithms.DisLSB(pulls=0.1, option="B"): (6, 3 * 9 + 3 * 3),
        gb.algorithms.FedPE(noise=0.1): (6, 2 * 3 * 9),
    }
    for algorithm, (messages, numbers) in expected.items():
        series = case.run(algorithm).series[0]
        syncs = series.sync_rounds[0]
        assert syncs > 0
        assert series.messages_sent[0] == messages * syncs
        assert series.numbers_sent[0] == numbers * syncs
        assert series.bytes_sent[0] == 8 * numbers * syncs
    for algorithm in (
        gb.algorithms.SCLTS(),
        gb.algorithms.SCLUCB(),
        gb.algorithms.SEGE(),
        gb.algorithms.CLUCB(),
        gb.algorithms.LinUCB(),
        gb.algorithms.Oracle(),
    ):
        series = case.run(algorithm).series[0]
        assert series.messages_sent[0] == series.numbers_sent[0] == series.sync_rounds[0] == 0


def test_tables_say_which_constant_is_in_use() -> None:
    case = small(31, T=20)
    table = case.run(
        [gb.algorithms.SCLTS(), gb.DisLinUCB(constant="tight"), gb.algorithms.Baseline()],
        trace=False,
    )
    assert table.summary()["constant"].tolist() == ["source", "tight", "-"]


def test_the_sources_constant_never_leaves_phase_one() -> None:
    problem = SyntheticB(seed=1)
    series = gb.simulate(
        problem, [gb.algorithms.DisLSB(), gb.algorithms.DisLSB(pulls=1.0)], rounds=20_000
    ).series
    assert [int(s.sync_rounds[0]) for s in series] == [0, 4]


def test_virtual_clients_have_phases_of_doubling_length() -> None:
    problem = SyntheticB(seed=1)
    trace = gb.simulate(problem, gb.algorithms.FedPE(), rounds=20_000, trace=True).trace
    assert_array_equal(trace.sync_rounds, [200, 600, 1400, 3000, 6200, 12600])


def test_a_test_says_nothing_about_directions_nobody_explored() -> None:
    """One agent, one context and a menu in which action 2 alone has the third feature."""
    features = np.zeros((1, 1, 3, 3))
    features[0, 0] = np.eye(3) * 0.5
    plan = gb.algorithms.FedPE(noise=1e-6).plan(
        Facts(((0, 1, 2),), 3, 100, actions=3, contexts=1, context_noise=0.0)
    )
    phases = plan.method.begin(features, np.zeros(1, np.int64))  # type: ignore[union-attr]
    phases.phase.gram[0] = np.diag([4.0, 4.0, 0.0])
    phases.phase.moment[0] = [4.0, 0.4, 0.0]
    phases.turn()
    assert phases.alive.ravel().tolist() == [True, False, True]
    assert phases.number == 2
    assert (phases.phase.gram == 0).all()


def test_a_replay_must_bring_what_is_needed() -> None:
    case = small(32, T=30)
    bare = gb.Replay(case.draws.contexts, case.draws.noise, case.draws.rho, case.draws.zeta)
    problem = gb.Tabular(case.phi, case.psi, case.theta, tasks=case.tasks, baseline=case.baseline)
    with pytest.raises(ValueError, match=r"Replay\(normal=\(T, M, d\) array\)"):
        gb.simulate(problem, gb.algorithms.SCLTS(), replay=bare)
    assert gb.simulate(problem, gb.algorithms.FedLinUCB(), replay=bare).series[0].regret.size == 3
    wrong = gb.Replay(*(getattr(case.draws, k) for k in ("contexts", "noise", "rho", "zeta")),
                      order=np.zeros((30, 3), int))  # fmt: skip
    with pytest.raises(ValueError, match="must name each of the 3 agents once"):
        gb.simulate(problem, gb.algorithms.FedLinUCB(), replay=wrong)


def test_a_design_stops_when_told() -> None:
    rng = np.random.default_rng(5)
    design = optimal_design(rng.normal(size=(1, 30, 5)), tolerance=0.0, most_steps=7)
    assert design.steps == 7
    assert design.value > design.optimum
