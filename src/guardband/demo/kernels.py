"""Fill the kernel cache with what a client of the demo needs, in a process of its own.

Run by `guardband demo` as `python -m guardband.demo.kernels`, before three clients ask for the same
kernels at the same time. A signal that arrives inside the compiler would be printed and lost; a
process that only compiles can simply be killed.
"""

from __future__ import annotations

import sys

from guardband.demo.users import CLIENTS, Users, film_space
from guardband.live import connect

__all__ = ["fill_cache"]

EPOCHS = 2


def fill_cache(folder: str) -> None:
    """Decide, observe and pool as a client does, with a coordinator in this folder."""
    users = Users(CLIENTS[0])
    with connect(
        f"local:{folder}",
        task=CLIENTS[0],
        settings=film_space(),
        uses=users.uses,
        background=False,
    ) as agent:
        while agent.epoch < EPOCHS:
            ask = users.request()
            made = agent.decide(ask.films, ask.baseline, ask.baseline_reward)
            agent.observe(made.id, users.rating(ask.user, made.action))
            agent.sync()


if __name__ == "__main__":
    fill_cache(sys.argv[1])
