from dataclasses import replace

import numpy as np
import pytest
from report.handmade import BASELINE, CONSTRAINED, DISC, FREE, SHUT, compare, series

import guardband as gb
from guardband.problems import SyntheticA
from guardband.report import verdict

STRICT = {"alpha": 0.3, "mode": "strict"}
POLICY = {"alpha": 0.3, "mode": "policy"}
FROZEN = {"nature": "frozen", "psi_noise": 0.1}


def told(*all_series, **kept):
    return "\n".join(verdict(compare(*all_series, **kept)))


def test_the_usual_case():
    guard = series("guard-ucb", [40, 41], settings=STRICT)
    assert verdict(compare(FREE, DISC, SHUT, guard)) == [
        "guard-ucb kept its promise: it was never below the floor (70 % of the baseline's reward).",
        "disc-ucb never left the baseline: the paper's condition for doing so (its gate) was never "
        "met.",
        "disc-ucb was never below the floor.",
        "dis-lin-ucb, which promises nothing, was below the floor in 20 rounds in 4 agent runs.",
        "guard-ucb has the least regret (40.5 per agent), followed by dis-lin-ucb with 1.2 times "
        "as much.",
    ]


def test_a_gate_that_never_opened():
    assert told(SHUT, FREE, BASELINE).startswith(
        "disc-ucb never left the baseline: the paper's condition for doing so (its gate) was never "
        "met, and its exploration cost reward."
    )
    other = replace(SHUT, algorithm="sclts")
    assert "the gate for that was never met" in told(other, FREE)


def test_one_round_of_its_own_choice_is_leaving_the_baseline():
    nearly = series("disc-ucb", [300, 304], settings=CONSTRAINED, safe=0.99)
    assert "never left" not in told(nearly, FREE)


def test_nothing_safe_without_a_gate():
    idle = series("disc-ucb", [3, 4], settings={"alpha": 0.3, "gate": "none"}, safe=1.0)
    assert told(idle, FREE).startswith(
        "disc-ucb never left the baseline: nothing else looked safe enough"
    )


def test_always_playing_the_baseline_is_no_finding_about_the_baseline():
    assert "never left" not in told(FREE, BASELINE)


def test_several_shut_gates_share_a_sentence():
    twins = [replace(SHUT, label=f"disc-ucb ({a})") for a in "ab"]
    assert "disc-ucb (a) and disc-ucb (b) never left the baseline" in told(*twins, BASELINE)


def test_a_broken_promise_comes_before_the_others():
    broken = series("disc-ucb", [200, 202], settings=CONSTRAINED, expected=[0, 1])
    kept = series("other", [210, 212], settings=CONSTRAINED)
    found = told(broken, kept, replace(SHUT, label="shut"), FREE)
    assert found.startswith(
        "disc-ucb broke the promise that the paper makes for it: it was below the floor (70 % of "
        "the baseline's reward) in 2 rounds in 4 agent runs, in 1 of 2 trials.\n"
    )
    assert "\nother was never below the floor.\n" in found


def test_a_promise_about_an_expectation_is_not_broken_by_what_was_drawn():
    lucky = series("disc-ucb", [200, 202], settings=CONSTRAINED, realised=1)
    assert "broke" not in told(lucky)
    guard = series("guard-ucb", [40, 41], realised=[1, 0], settings=STRICT)
    assert told(guard, FREE).startswith("guard-ucb kept its promise")
    worst = {**STRICT, "realised": "worst"}
    guard = series("guard-ucb", [40, 41], realised=[1, 0], settings=worst)
    assert told(guard, FREE).startswith("guard-ucb broke its promise")


def test_who_promises_less_breaks_nothing():
    bold = series("bold", [20, 22], settings={"alpha": 0.5, "gate": "none"}, expected=2)
    found = told(DISC, bold)
    assert "bold, which promises less, was below the floor in 8 rounds" in found
    assert "broke" not in found
    sums = series("cl-ucb", [20, 22], settings={"alpha": 0.3}, expected=2)
    assert "cl-ucb, which promises less, was below" in told(DISC, sums)
    guard = series("guard-ucb", [20, 22], settings={**STRICT, "alpha": 0.5}, expected=2)
    assert "8 rounds in 4 agent runs; it was told to promise less." in told(guard)


def test_a_promise_per_agent():
    split = series("split", [20, 22], settings={"alpha": (0.2, 0.3)}, expected=2)
    assert told(split).startswith("split broke its promise")


def test_policy_mode_is_judged_by_its_coin():
    policy = series("guard-ucb-policy", [4, 5], settings=POLICY, expected=[1, 0], policy=0)
    assert told(policy).startswith(
        "guard-ucb-policy kept its promise: 2 single plays below the floor (70 % of the baseline's "
        "reward) in 4 agent runs; its promise is about the expected reward of its randomised "
        "choice, which was never below the floor."
    )
    clean = series("guard-ucb-policy", [4, 5], settings=POLICY)
    assert told(clean).startswith("guard-ucb-policy kept its promise: it was never below the floor")
    broken = series("guard-ucb-policy", [4, 5], settings=POLICY, expected=[1, 0], policy=[1, 0])
    assert told(broken).startswith(
        "guard-ucb-policy broke its promise: the expected reward of its randomised choice was "
        "below the floor"
    )


def test_no_credit_where_no_promise_applies():
    strict = series("guard-ucb", [4, 5], settings=STRICT)
    policy = series("guard-ucb-policy", [4, 5], settings=POLICY, expected=[1, 0], policy=0)
    why = dict.fromkeys(("guard-ucb", "guard-ucb-policy"), "rewards reach −0.2")
    assert told(strict, policy, uncovered=why).startswith(
        "No promise of Guard-UCB applies here (rewards reach −0.2): guard-ucb was never below the "
        "floor (70 % of the baseline's reward) and guard-ucb-policy had 2 single plays below the "
        "floor in 4 agent runs, though the expected reward of its randomised choice never was.\n"
    )
    fell = series("guard-ucb", [4, 5], settings=STRICT, expected=2)
    found = told(fell, uncovered={"guard-ucb": "rewards reach −0.2"})
    assert "guard-ucb was below the floor" in found
    assert "broke" not in found
    disc = series("disc-ucb", [4, 5], settings=CONSTRAINED, expected=2)
    found = told(disc, uncovered={"disc-ucb": "theta reach 2, theta_bound is 1"})
    assert "disc-ucb (no promise of it applies here: theta reach 2, theta_bound is 1) was" in found


def test_features_with_a_fixed_error_are_outside_what_guard_ucb_promises():
    guard = series("guard-ucb", [40, 41], expected=[1, 0], realised=0.0, settings=STRICT)
    frozen = compare(guard, FREE)
    frozen.settings["problem"] = FROZEN
    first, second, *_ = verdict(frozen)
    assert first == (
        "No promise of Guard-UCB applies here (the features that agents are given carry a fixed "
        "error): guard-ucb was never below the floor (70 % of the baseline's reward) as drawn."
    )
    assert second.startswith("dis-lin-ucb, which promises nothing, was below the floor as drawn")


def test_toy_is_outside_and_said_to_be():
    """The note on standard error and the summary say the same."""
    toy = gb.problem("toy")
    with pytest.warns(gb.BoundWarning, match="rewards in"):
        found = gb.simulate(toy, ["guard-ucb", "guard-ucb-policy"], rounds=30, trials=2)
    assert "No promise of Guard-UCB applies here (rewards reach −0.2)" in verdict(found)[0]


def test_violations_without_a_constrained_algorithm():
    assert told(FREE, BASELINE, alpha=0.1).startswith(
        "dis-lin-ucb, which promises nothing, was below the floor (90 % of the baseline's reward) "
        "in 20 rounds in 4 agent runs."
    )


def test_violations_that_were_not_counted():
    free = series("dis-lin-ucb", [50, 51], expected=np.nan)
    assert verdict(compare(free, alpha=None)) == [
        "Violations were not counted, as there was no alpha to count them by.",
        "The regret of dis-lin-ucb is 50.5 per agent.",
    ]


def test_a_single_trial_is_said_to_be_one():
    one = gb.simulate(SyntheticA(), gb.DisLinUCB(feature_bound=1.1), rounds=20)
    assert verdict(one)[-1].endswith(" per agent, in a single trial.")


def test_regrets_that_cannot_be_told_apart():
    one, two = series("one", [50, 60, 70, 65, 55]), series("two", [60, 55, 71, 64, 56])
    assert "The regrets of one and two cannot be told apart (60 per agent)" in told(one, two)
    found = told(one, two, series("three", [500, 510, 520, 505, 515]))
    assert "one and two have the least regret and cannot be told apart" in found
    assert found.endswith("followed by three with 8.5 times as much.")


def test_few_trials_rank_nobody():
    one, two = series("one", [50, 60]), series("two", [60, 55])
    found = told(one, two)
    assert (
        "one has the least regret so far (55 per agent), but 2 trials are too few to rank them"
        in found
    )


def test_a_stuck_learner_is_named_with_the_remedy():
    guard = series("guard-ucb", [40, 41], settings=STRICT)
    guard.totals["stuck"] += 80.0
    found = told(guard, FREE)
    assert "guard-ucb was stuck in 80 % of the rounds" in found
    assert "mode='policy'" in found


def test_plays_below_the_floor_that_were_trials_break_no_promise():
    given = {**STRICT, "trial_budget": 50.0}
    guard = series(
        "guard-ucb", [40, 41], settings=given, expected=[7, 9], trials_made=20.0, short=1.5
    )
    found = told(guard, FREE)
    assert "guard-ucb kept its promise: trials aside it was never below" in found
    assert "(20 per agent run) fell short of it by at most 1.5 in a run, of a budget of 50" in found
    guard.totals["violations_trial"] -= 1.0
    assert "guard-ucb broke its promise" in told(guard, FREE)


def test_trials_are_compared_in_pairs():
    """A small difference that every trial shows is one, however much trials differ."""
    one, two = series("one", [50, 500, 5000]), series("two", [51, 501.1, 5001])
    assert "one has the least regret (1,850 per agent), followed by two with" in told(one, two)


def test_nothing_beats_the_baseline():
    found = told(DISC, BASELINE)
    assert "Nothing beat always playing the baseline, which has the least regret" in found


def test_a_constrained_winner_is_compared_with_the_next():
    found = told(series("disc-ucb", [10, 11], settings=CONSTRAINED), FREE)
    assert found.endswith("followed by dis-lin-ucb with 4.8 times as much.")


def test_an_oracle_is_called_one():
    oracle = series("oracle", [100, 101], settings={"alpha": 0.3, "gate": "gap"})
    assert "oracle, the best of the constrained (though told the true optimum)" in told(
        oracle, DISC, FREE
    )


def test_small_and_impossible_factors():
    found = told(series("one", [100, 100]), series("two", [102, 102]))
    assert found.endswith("followed by two with 2 % more.")
    found = told(series("one", [-5, -5]), series("two", [7, 7]))
    assert found.endswith("one has the least regret (−5 per agent), followed by two with 7.")
    found = told(series("one", [2, 2]), series("two", [5000, 5000]))
    assert found.endswith("2,500 times as much.")
