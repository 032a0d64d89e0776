from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.handmade import result

from guardband.lab import judge


class TestDifference:
    def test_interval_of_paired_differences_by_hand(self):
        """Differences 1, 2, 3: mean 2, deviation 1, half-width 4.302653 / sqrt(3) = 2.484."""
        apart = judge.difference(np.array([11.0, 22.0, 33.0]), np.array([10.0, 20.0, 30.0]))
        assert apart.mean == 2
        assert apart.low == pytest.approx(2 - 2.48414, abs=1e-4)
        assert apart.high == pytest.approx(2 + 2.48414, abs=1e-4)
        assert apart.above is None
        assert "2 [-0.484, 4.48]" in str(apart).replace("\N{MINUS SIGN}", "-")

    def test_only_common_trials_are_pairs(self):
        apart = judge.difference(np.array([5.0, 5.0, 900.0]), np.array([1.0, 1.0]))
        assert (apart.mean, apart.low, apart.high, apart.trials) == (4, 4, 4, 2)

    def test_rounding_is_no_difference(self):
        regret = np.array([4892.5, 4893.1])
        apart = judge.difference(regret, regret * (1 + 2e-16 * np.array([3, -2])))
        assert apart.none
        assert apart.above is False
        assert not judge.difference(regret, regret * (1 + 1e-9)).none

    def test_one_trial_tells_nothing(self):
        apart = judge.difference(np.array([5.0]), np.array([1.0]))
        assert apart.above is None
        assert apart.not_below is None
        assert "no interval" in str(apart)

    @given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8))
    def test_turning_the_difference_turns_the_verdict(self, values):
        one, zero = np.array(values), np.zeros(len(values))
        there, back = judge.difference(one, zero), judge.difference(zero, one)
        if there.above is True:
            assert back.above is False
        if there.above is None:
            assert back.above is None


@pytest.mark.parametrize(
    ("more", "less", "holds"),
    [
        ([10, 11, 12], [1, 2, 3], True),
        ([1, 2, 3], [10, 11, 12], False),
        ([1, 9, 1], [2, 2, 2], None),
        ([4, 5, 6], [4, 5, 6], False),  # no difference in any trial
    ],
)
def test_exceeds_has_three_verdicts(more, less, holds):
    claim = judge.exceeds("i", "t", result("a", regret=more), result("b", regret=less))
    assert claim.holds is holds
    assert "a" in claim.detail
    assert "difference" in claim.detail


@pytest.mark.parametrize(
    ("less", "more", "holds"),
    [
        ([0, 0], [0, 0], True),
        ([0, 0], [5, 5.1], True),
        ([5, 5.1], [0, 0], False),
        ([0, 1], [1, 0], None),
    ],
)
def test_at_most_is_content_with_equality(less, more, holds):
    one, other = (result(n, violations_realised=v) for n, v in (("a", less), ("b", more)))
    assert judge.at_most("i", "t", one, other).holds is holds


def test_never_is_a_count():
    """One round of one trial is enough, however many trials there are."""
    clean = result("a", violations_realised=np.zeros(50), violations_expected=np.ones(50))
    claim = judge.never("i", "t", clean)
    assert claim.holds is True
    assert "0 of 5,000 agent-rounds" in claim.detail
    assert "by expectation 1 rounds" in claim.detail
    once = result("a", violations_realised=[0] * 49 + [1])
    claim = judge.never("i", "t", once)
    assert claim.holds is False
    assert "1 of 5,000 agent-rounds" in claim.detail
    assert "in 1 of 50 trials" in claim.detail


@pytest.mark.parametrize(
    ("counts", "holds"), [([10, 11, 12], True), ([0, 0, 0.1], False), ([0, 1, 2], None)]
)
def test_at_least_compares_with_a_share_of_the_rounds(counts, holds):
    claim = judge.at_least("i", "t", result("a", violations_realised=counts), 0.01)
    assert claim.holds is holds  # one of a hundred rounds
    assert "asked for: 1" in claim.detail


class TestFalls:
    def steps(self, *levels, conservative=0.0):
        return [
            result(f"c{i}", regret=level, conservative=np.full(len(level), conservative))
            for i, level in enumerate(levels)
        ]

    @pytest.mark.parametrize(
        ("levels", "holds"),
        [
            (([9, 9.1], [5, 5.1], [1, 1.1]), True),
            (([9, 9.1], [5, 5.1], [7, 7.1]), False),
            (([9, 9.1], [5, 5.1], [1, 9]), None),
        ],
    )
    def test_every_step_counts(self, levels, holds):
        assert judge.falls("i", "t", self.steps(*levels)).holds is holds

    def test_nobody_left_the_baseline(self):
        """The draws fall, but nobody learned."""
        claim = judge.falls("i", "t", self.steps([9, 9.1], [5, 5.1], conservative=100.0))
        assert claim.holds is False
        assert "100 %" in claim.detail
        assert "never left the baseline" in claim.detail

    def test_what_falls_without_learning(self):
        """A larger alpha changes the conservative rounds themselves."""
        steps = self.steps([9, 9.1], [5, 5.1], conservative=100.0)
        claim = judge.falls("i", "t", steps, learning=False)
        assert claim.holds is True
        assert "never left the baseline" in claim.detail

    def test_agents_that_all_have_are_compared(self):
        """The new agent's task is easy: that lowers the mean, but nobody gained."""
        few = result("few", regret=np.array([[8.0, 8.0], [9.0, 9.0]]))
        many = result("many", regret=np.array([[8.0, 8.0, 0.0], [9.0, 9.0, 0.0]]))
        claim = judge.falls("i", "t", [few, many])
        assert claim.holds is False
        assert "8.5 → 5.67 per agent; 8.5 → 8.5 over the first 2 agents" in claim.detail


class TestCourse:
    rounds = 1000

    def course(self, metric, early, late, trials=3, **more):
        """Return a run whose rate changes at half-time."""
        marks = np.arange(5, 1001, 5)
        sums = np.where(marks <= 500, early * marks, early * 500 + late * (marks - 500))
        lines = sums[None, :] + 1e-6 * marks * np.arange(trials)[:, None]
        return result("a", rounds=self.rounds, curves={metric: lines}, regret=[0] * trials, **more)

    def test_shares_of_the_rounds(self):
        run = self.course("reward", 0.2, 0.8)
        early, late = judge.early_and_late(run, "reward", first=0.1, last=0.1)
        np.testing.assert_allclose(early, 0.2, atol=1e-5)
        np.testing.assert_allclose(late, 0.8, atol=1e-5)

    @pytest.mark.parametrize(("early", "late", "holds"), [(0.2, 0.8, True), (0.8, 0.2, False)])
    def test_rising_and_slower_are_opposites(self, early, late, holds):
        assert judge.rising("i", "t", self.course("reward", early, late)).holds is holds
        assert judge.slower("i", "t", self.course("regret", early, late)).holds is not holds

    def test_a_baseline_does_not_rise(self):
        idle = self.course("reward", 0.2, 0.8, conservative=[1000] * 3)
        assert judge.rising("i", "t", idle).holds is False

    @pytest.mark.parametrize(("late", "holds"), [(-0.1, True), (0.1, False), (0.0, None)])
    def test_sinking_means_less_than_nothing_per_round(self, late, holds):
        """Slower is not enough: the sum itself has to go down."""
        run = self.course("regret", 0.5, late)
        run.series.curves["regret"][1] += 1e-5 * np.arange(200)[:, None]
        run.series.curves["regret"][2] -= 2e-5 * np.arange(200)[:, None]
        claim = judge.sinking("i", "t", run, after=0.6)
        assert claim.holds is holds
        assert "after round 600" in claim.detail
        assert judge.slower("i", "t", run).holds is True

    def test_only_the_late_rounds_count(self):
        """Down until half-time, and up again."""
        assert judge.sinking("i", "t", self.course("regret", -0.5, 0.1), after=0.6).holds is False

    @pytest.mark.parametrize(
        "rule", [judge.rising, judge.slower, lambda *a: judge.sinking(*a, after=0.6)]
    )
    @pytest.mark.parametrize(("horizon", "holds"), [(1000, False), (10_000, None)])
    def test_a_shortened_run_that_has_not_left_yet(self, rule, horizon, holds):
        metric = "reward" if rule is judge.rising else "regret"
        idle = self.course(metric, 0.2, 0.8, conservative=[1000] * 3)
        claim = rule("i", "t", of(horizon, idle))
        assert claim.holds is holds
        reason = "Only 1,000 of 10,000 rounds: no agent has left the baseline yet"
        assert (reason in claim.detail) == (holds is None)

    def test_a_shortened_run_tells_what_it_saw(self):
        assert judge.rising("i", "t", of(9000, self.course("reward", 0.2, 0.8))).holds is True
        assert judge.rising("i", "t", of(9000, self.course("reward", 0.8, 0.2))).holds is False


@pytest.mark.parametrize(
    ("others", "holds"),
    [
        ([[100, 101], [100.1, 100.9]], True),
        ([[120, 121], [100, 101]], False),
        ([[90, 110]] * 2, None),
    ],
)
def test_alike_is_a_test_of_equivalence(others, holds):
    runs = [result(f"n{i}", regret=v) for i, v in enumerate([*others, [100, 101]])]
    assert judge.alike("i", "t", runs, 0.05).holds is holds


def of(horizon, *runs):
    """Return runs as parts of a longer horizon."""
    made = [replace(each, run=replace(each.run, horizon=horizon)) for each in runs]
    return made if len(made) > 1 else made[0]


IDLE, BUSY = [100] * 3, [60] * 3  # conservative rounds of a hundred


class TestShortened:
    """What has not happened in a part of the rounds may still happen; what has, has."""

    def pair(self, one, other, left, horizon):
        first = result("a", regret=one, conservative=IDLE)
        second = result("b", regret=other, conservative=BUSY if left else IDLE)
        return of(horizon, first, second)

    @pytest.mark.parametrize(
        ("one", "left", "whole", "part"),
        [
            ([9, 9.1, 9.2], True, True, True),
            ([1, 1.1, 1.2], True, False, False),
            ([5, 6, 7], True, False, None),  # no difference in any trial
            ([9, 9.1, 9.2], False, True, None),  # neither left the baseline
            ([1, 1.1, 1.2], False, False, None),
        ],
    )
    def test_exceeds(self, one, left, whole, part):
        for horizon, holds in ((100, whole), (1000, part)):
            claim = judge.exceeds("i", "t", *self.pair(one, [5, 6, 7], left, horizon))
            assert claim.holds is holds
            assert ("Only 100 of 1,000 rounds" in claim.detail) == (holds is None)

    @pytest.mark.parametrize("learning", [True, False])
    @pytest.mark.parametrize(
        ("one", "left", "part"),
        [
            ([9, 9.1, 9.2], True, True),
            ([1, 1.1, 1.2], True, False),
            ([5, 6, 7], True, None),
            ([9, 9.1, 9.2], False, None),
            ([1, 1.1, 1.2], False, None),
        ],
    )
    def test_falls(self, one, left, part, learning):
        steps = self.pair(one, [5, 6, 7], left, 1000)
        claim = judge.falls("i", "t", steps, learning=learning)
        assert claim.holds is part
        assert ("Only 100 of 1,000 rounds" in claim.detail) == (part is None)
        whole = judge.falls("i", "t", self.pair(one, [5, 6, 7], left, 100), learning=learning)
        assert whole.holds is (one[0] == 9 and (left or not learning))

    def test_one_step_of_several(self):
        """The first step is two runs that stayed; the second rises, and that was seen."""
        levels = ([9, 9.1, 9.2], IDLE), ([5, 5.1, 5.2], IDLE), ([7, 7.3, 7.1], BUSY)
        steps = [result(f"{r}", regret=r, conservative=c) for r, c in levels]
        assert judge.falls("i", "t", of(1000, *steps)).holds is False
        steps[2].series.totals["regret"] -= 6
        claim = judge.falls("i", "t", of(1000, *steps))
        assert claim.holds is None
        assert (
            "Only 100 of 1,000 rounds: in one step no agent has left the baseline" in claim.detail
        )
        assert judge.falls("i", "t", of(100, *steps)).holds is True

    def test_alike(self):
        runs = [result(f"n{i}", regret=[100, 101]) for i in range(3)]
        assert judge.alike("i", "t", runs, 0.05).holds is True
        claim = judge.alike("i", "t", of(1000, *runs), 0.05)
        assert claim.holds is None
        assert "no trial shows a difference yet" in claim.detail
        apart = [result(f"n{i}", regret=[100 + i / 10, 101 + i / 9]) for i in range(3)]
        assert judge.alike("i", "t", of(1000, *apart), 0.05).holds is True

    @pytest.mark.parametrize(
        ("counts", "whole", "part"), [([0, 0], True, None), ([0, 1], False, False)]
    )
    def test_never(self, counts, whole, part):
        """A violation that was counted refutes at any length."""
        run = result("a", violations_realised=counts)
        assert judge.never("i", "t", of(100, run)).holds is whole
        claim = judge.never("i", "t", of(1000, run))
        assert claim.holds is part
        assert ("Only 100 of 1,000 rounds" in claim.detail) == (part is None)

    @pytest.mark.parametrize(
        ("less", "more", "whole", "part"),
        [
            ([0, 0], [0, 0], True, None),
            ([0, 0], [5, 5.1], True, True),
            ([5, 5.1], [0, 0], False, False),
        ],
    )
    def test_at_most(self, less, more, whole, part):
        one, other = (result(n, violations_realised=v) for n, v in (("a", less), ("b", more)))
        assert judge.at_most("i", "t", *of(100, one, other)).holds is whole
        assert judge.at_most("i", "t", *of(1000, one, other)).holds is part

    @pytest.mark.parametrize(
        ("counts", "whole", "part"),
        [([20, 20.1], True, True), ([2, 2.1], True, None), ([0, 0.01], False, None)],
    )
    def test_at_least(self, counts, whole, part):
        """1 % of 100 rounds is 1, of 1,000 rounds 10: what was counted can only grow."""
        run = result("a", violations_realised=counts)
        assert judge.at_least("i", "t", of(100, run), 0.01).holds is whole
        claim = judge.at_least("i", "t", of(1000, run), 0.01)
        assert claim.holds is part
        assert "asked for: 10" in claim.detail


class TestVacuous:
    """What holds while hardly any round left the baseline; from 90 of a hundred rounds on."""

    @pytest.mark.parametrize(
        ("rounds", "verdict"), [(100, "holds vacuously"), (90, "holds vacuously"), (89, "holds")]
    )
    def test_never(self, rounds, verdict):
        claim = judge.never("i", "t", result("a", conservative=[rounds] * 2))
        assert (claim.holds, claim.verdict) == (True, verdict)
        assert f"{rounds} %" in claim.detail

    @pytest.mark.parametrize(("third", "vacuous"), [(92, True), (50, False)])
    def test_alike_means_all_of_them(self, third, vacuous):
        runs = [
            result(f"n{i}", regret=[100, 101], conservative=[share] * 2)
            for i, share in enumerate((100, 92, third))
        ]
        claim = judge.alike("i", "t", runs, 0.05)
        assert (claim.holds, claim.vacuous) == (True, vacuous)
        assert "100 %" in claim.detail
        assert "n1 92 %" in claim.detail

    @pytest.mark.parametrize(("safe", "free", "vacuous"), [(99, 0, True), (0, 99, False)])
    def test_at_most_is_about_the_one_that_is_safe(self, safe, free, vacuous):
        one = result("a", violations_realised=[0, 0], conservative=[safe] * 2)
        other = result("b", violations_realised=[5, 5.1], conservative=[free] * 2)
        assert judge.at_most("i", "t", one, other).vacuous is vacuous

    @pytest.mark.parametrize(("other", "vacuous"), [(95, True), (20, False)])
    def test_exceeds_is_about_both(self, other, vacuous):
        more = result("a", regret=[9, 9.1], conservative=[99] * 2)
        less = result("b", regret=[5, 5.1], conservative=[other] * 2)
        assert judge.exceeds("i", "t", more, less).vacuous is vacuous

    def test_falls_and_rises(self):
        steps = [result(f"{r}", regret=[r, r + 0.1], conservative=[95] * 2) for r in (9, 5)]
        assert judge.falls("i", "t", steps).verdict == "holds vacuously"
        idle = TestCourse().course("reward", 0.2, 0.8, conservative=[985] * 3)
        assert judge.rising("i", "t", idle).verdict == "holds vacuously"

    def test_only_what_holds_can_be_vacuous(self):
        broken = result("a", violations_realised=[0, 1], conservative=[99] * 2)
        assert judge.never("i", "t", broken).verdict == "does not hold"
        clean = result("a", conservative=[99] * 2)
        assert judge.never("i", "t", of(1000, clean)).verdict == "inconclusive"
        assert not judge.never("i", "t", of(1000, clean)).vacuous


def test_together():
    assert judge.together([True, True]) is True
    assert judge.together([True, None]) is None
    assert judge.together([None, False]) is False
