"""Named streams of random numbers from one seed; every draw comes from a named stream."""

from __future__ import annotations

from zlib import crc32

from numpy.random import SFC64, Generator, SeedSequence

__all__ = ["stream", "trial_seed"]


def stream(seed: int, *names: object) -> Generator:
    """Return the stream of this name; other names, or another seed, give independent ones."""
    words = [crc32(str(name).encode()) for name in names]
    return Generator(SFC64(SeedSequence([seed, *words])))


def trial_seed(seed: int, trial: int) -> int:
    """Return the seed of one trial; it does not depend on how many trials there are."""
    low, high = SeedSequence([seed, trial]).generate_state(2)
    return int(low) + (int(high) << 32)
