"""A process that decides and observes, and says so only after each call has returned.

Run as `python worker.py FOLDER SEED COUNT [background]`; prints lines such as
"d ID", "o ID REWARD" and "v ID".
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from live.client.world import agent, menus


def main(folder: Path, seed: int, count: int, background: bool) -> None:
    rng = np.random.default_rng(seed)
    one = agent(folder, background=background, seed=None)
    offers = menus(50, seed)
    print("ready", flush=True)
    waiting: list[str] = []
    for i in range(count):
        decision = one.decide(offers[i % 50], 0, 0.2)
        print(f"d {decision.id}", flush=True)
        waiting.append(decision.id)
        while waiting and rng.random() < 0.6:
            which = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                one.discard(which)
                print(f"v {which}", flush=True)
            else:
                reward = float(rng.integers(0, 5)) / 4.0
                one.observe(which, reward)
                print(f"o {which} {reward}", flush=True)
    one.close()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), "background" in sys.argv)
