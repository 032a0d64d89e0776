"""T12's negative controls: what would break the promise is seen.

I12: each is seen in at least 95 % of the runs. Some raise an alarm of the running system. The
others leave totals that honest data could have as well: there the truth is outside the set, which
only a test can see, because it knows the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from live.statistics.controls import Block, Control, Outcome, Sent, honest, play, total_from
from live.statistics.crowd import DELTA, DIM

from guardband.live.protocol.sums import Sums, empty_sums, matrix_of, upper_places

RUNS = 100
ALLOWED = DELTA + 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / RUNS)
Sends = Callable[[list[Block]], list[Sent]]


def newest(send: Callable[[Block], Sent]) -> Sends:
    return lambda blocks: [send(blocks[-1])]


def lose(share: float, below: bool, block: Block) -> Sent:
    """Lose some rewards: of all, or of those below expectation."""
    gone = block.rng.random(len(block.y)) < share
    if below:
        gone &= block.noise < 0.0
    return Sent(total_from(block, ~gone), int(gone.sum()))


def on_arrival(blocks: list[Block]) -> list[Sent]:
    """Count rewards when they arrive: the low ones half an epoch later than the others."""
    now, before = blocks[-1], blocks[-2] if len(blocks) > 1 else None

    def waits(block: Block) -> np.ndarray:
        second = np.arange(len(block.y)) >= len(block.y) // 2
        return second & (block.noise < 0.0)

    sent = [Sent(total_from(now, ~waits(now)))]
    if before is not None:
        sent.append(Sent(total_from(before, waits(before))))
    return sent


def in_order(blocks: list[Block]) -> list[Sent]:
    """The same delays, counted in the order of decisions: up to the first that is missing."""
    now, before = blocks[-1], blocks[-2] if len(blocks) > 1 else None
    half = len(now.y) // 2
    sent = [Sent(total_from(now, slice(0, half)))]
    if before is not None:
        sent.append(Sent(total_from(before, slice(half, None))))
    return sent


def many_times(times: int, with_n: bool, block: Block) -> Sent:
    """Count everything many times; a bug in retries would count n with it, or not."""
    once = total_from(block)
    n = times * once.n if with_n else once.n
    return Sent(Sums(n, times * once.gram, times * once.surprise, times * once.weight))


def torn(part: str, blocks: list[Block]) -> list[Sent]:
    """Write the last twentieth of all to W alone, or to U alone."""
    block = blocks[-1]
    if block.number < 4:
        return [honest(block)]
    cut = 3 * len(block.y) // 4
    whole, first = total_from(block), total_from(block, slice(0, cut))
    matrix, other = matrix_of(whole), matrix_of(first)
    if part == "W":
        matrix[:DIM, DIM], matrix[DIM, :] = other[:DIM, DIM], other[DIM, :]
    else:
        matrix[:DIM, :DIM] = other[:DIM, :DIM]
    return [Sent(whole._replace(gram=matrix[upper_places(DIM)]))]


def luckiest(blocks: list[Block]) -> list[Sent]:
    """Publish the prefix with the most luck in it, and nothing more."""
    block = blocks[-1]
    if block.number:
        return [Sent(empty_sums(DIM))]
    luck = np.cumsum(block.noise)
    return [Sent(total_from(block, slice(0, int(np.argmax(luck)) + 1)))]


HARMLESS: dict[str, Control] = {
    "nothing": Control(sends=newest(honest)),
    "4 % lost at random": Control(sends=newest(partial(lose, 0.04, False))),
    "late, in order": Control(sends=in_order),
}
WRONG_SET = "the truth is outside the set"
HARMFUL: dict[str, tuple[Control, str]] = {
    "5 % of the low lost": (  # too few for the alarm, and fatal in the long run
        Control(sends=newest(partial(lose, 0.05, True)), rounds=30_000),
        WRONG_SET,
    ),
    "20 % of the low lost": (
        Control(sends=newest(partial(lose, 0.2, True))),
        "informative-loss",
    ),
    "low ones late, on arrival": (Control(sends=on_arrival, rounds=10_000), WRONG_SET),
    "512 times": (  # what the radius has in hand hides less: 32 times is outside in three of four
        Control(sends=newest(partial(many_times, 512, True)), agents=2, rounds=100, epochs=1),
        WRONG_SET,
    ),
    "32 times, n once": (
        Control(sends=newest(partial(many_times, 32, False)), rounds=500),
        "invalid-increment",
    ),
    "W without U": (Control(sends=partial(torn, "W"), rounds=12_000), WRONG_SET),
    "U without W": (Control(sends=partial(torn, "U"), rounds=12_000), WRONG_SET),
    "the luckiest prefix": (
        Control(sends=luckiest, agents=96, rounds=1_000, epochs=1),
        WRONG_SET,
    ),
}


def summary(name: str, runs: list[Outcome]) -> str:
    outside = sum(run.distance > 1.0 for run in runs) / len(runs)
    middle = sorted(run.distance for run in runs)[len(runs) // 2]
    fired = sorted(set().union(*(run.alerts for run in runs)))
    alerts = {each: sum(each in run.alerts for run in runs) for each in fired}
    return f"{name}: outside {outside:.2f} (median distance {middle:.2f}), alarms {alerts}"


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_i12_what_is_harmless_stays_quiet(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [play(HARMLESS[name], seed) for seed in range(RUNS)]
    with capsys.disabled():
        print("\n" + summary(name, runs))
    assert sum(run.distance > 1.0 for run in runs) / RUNS <= ALLOWED
    assert sum(bool(run.alerts) for run in runs) / RUNS <= ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMFUL)
def test_i12_what_is_harmful_is_seen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    control, expected = HARMFUL[name]
    runs = [play(control, seed) for seed in range(RUNS)]
    with capsys.disabled():
        print("\n" + summary(name, runs))
    if expected == WRONG_SET:
        seen = [run.distance > 1.0 or bool(run.alerts) for run in runs]
    else:
        seen = [expected in run.alerts for run in runs]
    assert sum(seen) / RUNS >= 0.95
