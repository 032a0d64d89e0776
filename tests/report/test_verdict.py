from dataclasses import replace

import numpy as np
from report.handmade import BASELINE, CONSTRAINED, DISC, FREE, SHUT, compare, series

import guardband as gb
from guardband.problems import SyntheticA
from guardband.report import verdict


def test_the_usual_case():
    assert verdict(compare(DISC, FREE)) == (
        "dis-lin-ucb fell below 70 % of the baseline's reward in 5 rounds per agent, while "
        "disc-ucb never did; dis-lin-ucb has the least regret (50.5 per agent), and disc-ucb, "
        "the constrained one, has 4 times as much."
    )


def test_a_gate_that_never_opened():
    told = verdict(compare(SHUT, FREE, BASELINE))
    assert told.startswith(
        "The printed gate never opened: disc-ucb played it safe in 100 % of the rounds, "
        "at 2 times the regret of the baseline itself; "
    )


def test_one_round_of_its_own_choice_is_leaving_the_baseline():
    nearly = series("disc-ucb", [300, 304], settings=CONSTRAINED, safe=0.99)
    assert "gate" not in verdict(compare(nearly, FREE))


def test_nothing_safe_without_a_gate():
    idle = series("disc-ucb", [3, 4], settings={"alpha": 0.3, "gate": "none"}, safe=1.0)
    told = verdict(compare(idle, FREE))
    assert told.startswith("disc-ucb found nothing safe enough and stayed at the baseline")


def test_always_playing_the_baseline_is_no_finding_about_the_baseline():
    assert "100 %" not in verdict(compare(FREE, BASELINE))


def test_several_shut_gates_share_a_clause():
    twins = [replace(SHUT, label=f"disc-ucb ({a})") for a in "ab"]
    assert "disc-ucb (a) and disc-ucb (b) played it safe" in verdict(compare(*twins, BASELINE))


def test_a_broken_promise_comes_first():
    broken = series("disc-ucb", [200, 202], settings=CONSTRAINED, expected=[0, 1])
    kept = series("other", [210, 212], settings=CONSTRAINED)
    told = verdict(compare(broken, kept, replace(SHUT, label="shut"), FREE))
    assert told.startswith(
        "disc-ucb broke its promise: it fell below 70 % of the baseline's reward "
        "in 0.5 rounds per agent, in 1 of 2 trials; the printed gate never opened"
    )
    assert "while other and shut never did" in told


def test_a_broken_promise_without_an_unconstrained_rival():
    broken = series("disc-ucb", [200, 202], settings=CONSTRAINED, realised=1)
    kept = series("other", [210, 212], settings=CONSTRAINED)
    told = verdict(compare(broken, kept))
    assert "in 0 (expected) and 1 (realised) rounds per agent, in 2 of 2 trials" in told
    assert "; other never did;" in told
    alone = verdict(compare(broken))
    assert alone.startswith("disc-ucb broke its promise")
    assert "never" not in alone


def test_who_promises_less_breaks_nothing():
    bold = series("bold", [20, 22], settings={"alpha": 0.5, "gate": "none"}, expected=2)
    told = verdict(compare(DISC, bold))
    assert "bold (which promises less) fell below 70 %" in told
    assert "broke" not in told


def test_a_promise_per_agent():
    split = series("split", [20, 22], settings={"alpha": (0.2, 0.3)}, expected=2)
    assert verdict(compare(split)).startswith("split broke its promise")


def test_nobody_fell():
    assert "No algorithm ever fell below 70 %" in verdict(compare(DISC, BASELINE))
    assert verdict(compare(DISC)).startswith("disc-ucb never fell below 70 %")


def test_violations_without_a_constrained_algorithm():
    told = verdict(compare(FREE, BASELINE, alpha=0.1))
    assert told.startswith(
        "dis-lin-ucb fell below 90 % of the baseline's reward in 5 rounds per agent; "
    )


def test_violations_that_were_not_counted():
    free = series("dis-lin-ucb", [50, 51], expected=np.nan)
    told = verdict(compare(free, alpha=None))
    assert told == (
        "Violations were not counted, as there was no alpha to count them by; "
        "the regret of dis-lin-ucb is 50.5 per agent."
    )


def test_a_single_trial_is_said_to_be_one():
    one = gb.simulate(SyntheticA(), gb.DisLinUcb(feature_bound=1.1), rounds=20)
    assert verdict(one).endswith(" per agent, in a single trial.")


def test_regrets_that_cannot_be_told_apart():
    one, two = series("one", [50, 60, 70, 65, 55]), series("two", [60, 55, 71, 64, 56])
    told = verdict(compare(one, two))
    assert "the regrets of one and two cannot be told apart (60 per agent)" in told
    told = verdict(compare(one, two, series("three", [500, 510, 520, 505, 515])))
    assert "one and two have the least regret and cannot be told apart" in told
    assert told.endswith("followed by three with 8.5 times as much.")


def test_few_trials_rank_nobody():
    one, two = series("one", [50, 60]), series("two", [60, 55])
    told = verdict(compare(one, two))
    assert "one has the least regret so far (55 per agent), but 2 trials rank nobody" in told


def test_never_is_said_in_the_sense_of_the_promise():
    strict = {"alpha": 0.3, "mode": "strict"}
    guard = series("guard-ucb", [40, 41], expected=0.0, realised=[1, 0], settings=strict)
    told = verdict(compare(guard, FREE))
    assert "guard-ucb never did in the sense of their promise, which is an expectation" in told
    clean = series("guard-ucb", [40, 41], settings=strict)
    assert "while guard-ucb never did;" in verdict(compare(clean, FREE))
    frozen = compare(
        series("guard-ucb", [40, 41], expected=[1, 0], realised=0.0, settings=strict), FREE
    )
    frozen.settings["problem"] = {"nature": "frozen", "psi_noise": 0.1}
    assert "guard-ucb never did as drawn" in verdict(frozen)


def test_a_stuck_learner_is_named_with_the_remedy():
    strict = {"alpha": 0.3, "mode": "strict"}
    guard = series("guard-ucb", [40, 41], settings=strict)
    guard.totals["stuck"] += 80.0
    told = verdict(compare(guard, FREE))
    assert "guard-ucb was stuck in 80 % of the rounds" in told
    assert "mode='policy'" in told


def test_trials_are_compared_in_pairs():
    """A small difference that every trial shows is one, however much trials differ."""
    one, two = series("one", [50, 500, 5000]), series("two", [51, 501.1, 5001])
    assert "one has the least regret (1,850 per agent), followed by two with" in verdict(
        compare(one, two)
    )


def test_nothing_beats_the_baseline():
    told = verdict(compare(DISC, BASELINE))
    assert "nothing beat always playing the baseline, which has the least regret" in told


def test_a_constrained_winner_is_compared_with_the_next():
    told = verdict(compare(series("disc-ucb", [10, 11], settings=CONSTRAINED), FREE))
    assert told.endswith("followed by dis-lin-ucb with 4.8 times as much.")


def test_an_oracle_is_called_one():
    oracle = series("oracle", [100, 101], settings={"alpha": 0.3, "gate": "gap"})
    assert "oracle, the best of the constrained (though told the true optimum)" in verdict(
        compare(oracle, DISC, FREE)
    )


def test_small_and_impossible_factors():
    told = verdict(compare(series("one", [100, 100]), series("two", [102, 102])))
    assert told.endswith("followed by two with 2 % more.")
    told = verdict(compare(series("one", [-5, -5]), series("two", [7, 7])))
    assert told.endswith("one has the least regret (-5 per agent), followed by two with 7.")
    told = verdict(compare(series("one", [2, 2]), series("two", [5000, 5000])))
    assert told.endswith("2,500 times as much.")
