"""One client of the demo, in a process of its own: it decides for users and observes ratings.

Run by `guardband demo` as `python -m guardband.demo.client`; it ends when its standard input does,
so it cannot outlive the process that started it.
"""

from __future__ import annotations

import heapq
import math
import os
import select
import sys
import time
from pathlib import Path

from guardband.demo.rival import Referee
from guardband.demo.users import SPACE, Users
from guardband.live import connect

__all__ = ["TOKEN", "serve_users"]

TOKEN = "GUARDBAND_TOKEN"  # passed in the environment: every user of a host can read arguments
WRITE_EVERY_S = 1.0  # what a referee has counted
BEHIND_S = 1.0  # requests that are later than this are skipped


def serve_users(
    client: str, url: str, token: str, state: Path, rate: float, change_after: float
) -> None:
    """Serve users until standard input ends.

    Parameters
    ----------
    client
        The task.
    url, token
        The coordinator's address, and the agent's token for it.
    state
        The directory for the agent's journal.
    rate
        Users per second, on average.
    change_after
        Seconds after which their tastes change.
    """
    users, referee = Users(client), Referee(client)
    change = time.monotonic() + change_after
    with connect(
        url, token=token, space=SPACE, task=client, uses=users.uses, state_dir=state
    ) as agent:
        coming: list[tuple[float, str, float]] = []  # ratings on their way: when, of what, how much
        arrival = written = time.monotonic()
        while True:
            due = min(arrival, coming[0][0]) if coming else arrival
            if select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
                return
            now = time.monotonic()
            while coming and coming[0][0] <= now:
                _, decision, rating = heapq.heappop(coming)
                agent.observe(decision, rating)
            if change <= now:
                users.change_tastes()
                referee.change_tastes()
                change = math.inf
            if arrival <= now:
                ask = users.request()
                made = agent.decide(ask.films, ask.baseline, ask.baseline_reward)
                rating = users.rating(ask.user, made.action)
                heapq.heappush(coming, (now + users.thinking(), made.id, rating))
                referee.look(ask, made.action)
                if now >= written + WRITE_EVERY_S:
                    referee.write(state)
                    written = now
                arrival = max(arrival, now - BEHIND_S) + users.until_next(rate)


if __name__ == "__main__":
    task, address, folder, *numbers = sys.argv[1:]
    serve_users(task, address, os.environ[TOKEN], Path(folder), *map(float, numbers))
