"""What the demo knows and no real system can: how often plays lie below the floor, and a rival's.

The rival is the same client without a guard. It is asked about the same users, and rated by users
with the same tastes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from guardband.agent import Agent
from guardband.demo.users import ALPHA, CHANGING, CLIENTS, SEED, FilmRequest, Users, film_space
from guardband.files import write_atomically
from guardband.live.server import AnswerReply

__all__ = ["Referee", "Truth", "in_a_line", "read_truth", "remarks_on"]

FILE = "truth.json"
SLACK = 1e-9  # of rounding
RIVAL = "dis-lin-ucb"


class Truth(NamedTuple):
    """Plays that were below the floor in expectation, of so many: ours and the rival's."""

    plays: int = 0
    below: int = 0
    rival_below: int = 0

    def plus(self, *more: int) -> Truth:
        """Return the sums."""
        return Truth(*(one + other for one, other in zip(self, more, strict=True)))


class Referee:
    """Counts for one client.

    Parameters
    ----------
    client
        One of `CLIENTS`.
    """

    def __init__(self, client: str) -> None:
        space, self._users = film_space(), Users(client, SEED + 1)
        self._share = 1.0 - space.alpha_of(client)
        self._phases = [Truth()]  # with the tastes that it began with, and with those that followed
        self._rival = Agent(
            len(self._users.uses),
            algorithm=RIVAL,
            noise=space.noise,
            context_noise=space.context_noise,
            theta_bound=space.theta_bound,
            feature_bound=space.feature_bound,
        )

    def look(self, ask: FilmRequest, film: int) -> None:
        """Judge what a user was shown, and what the rival would have shown."""
        rival = self._rival.decide(ask.films[:, self._users.uses], ask.baseline)
        self._rival.observe(rival, self._users.rating(ask.user, rival.action))
        floor = self._share * ask.baseline_reward - SLACK
        films = (film, rival.action)
        below, rival_below = (self._users.worth(ask.user, each) < floor for each in films)
        self._phases[-1] = self._phases[-1].plus(1, below, rival_below)

    def change_tastes(self) -> None:
        """Judge by other tastes from now on, and count anew."""
        self._users.change_tastes()
        self._phases.append(Truth())

    def write(self, folder: Path) -> None:
        """Let the demo know."""
        with write_atomically(folder / FILE) as file:
            file.write(json.dumps(self._phases).encode())


def read_truth(folders: Iterable[Path]) -> tuple[Truth, Truth]:
    """Return what all clients have counted together: before tastes changed, and since."""
    before, since = Truth(), Truth()
    for path in (folder / FILE for folder in folders):
        if path.is_file():
            first, *rest = json.loads(path.read_text())
            before = before.plus(*first)
            for each in rest:
                since = since.plus(*each)
    return before, since


def in_a_line(before: Truth, since: Truth) -> str:
    """Return what was counted, for the terminal."""
    return (
        f"below the floor, of {before.plays:,} films: {before.below:,}; of a rival without a "
        f"guard: {before.rival_below:,}.{_since(since)}"
    )


def remarks_on(before: Truth, since: Truth) -> list[AnswerReply]:
    """Return what the demo says on its page: what it is, and what happens without a guard."""
    floor = f"{100.0 * (1.0 - ALPHA):.0f} %"
    story = (
        f"Three parts of a film site, {', '.join(CLIENTS)}, recommend films to simulated users and "
        "learn together. The baseline is the site's old recommender; the floor is "
        f"{floor} of what users think of its films on average. At first only the baseline is "
        "played. As ratings come in, other films are certified to clear the floor, and shown. Ask "
        "an agent “Why?”, pause learning, or kill a process: the others go on."
    )
    what = AnswerReply(
        question="What is this?",
        level="wait",
        word="A demo",
        figure="everything is real but the users",
        text=story,
    )
    fell = before.rival_below > 0
    rival = AnswerReply(
        question="And without a guard?",
        level="bad" if fell else "wait",
        word="It falls" if fell else "Wait and see",
        figure=f"below the floor: {before.rival_below:,} times; with the guard: {before.below:,}",
        text="A rival without a guard (DisLinUCB, learning alone) is asked about the same "
        f"{before.plays:,} users. Only a demo knows what users like on average, and can count "
        f"films that are worth less than {floor} of the baseline's.{_since(since)}",
    )
    return [what, rival]


def _since(since: Truth) -> str:
    """Say what happened after an assumption failed: nothing is promised until it is noticed."""
    if not since.plays:
        return ""
    return (
        f" Since the tastes of {CHANGING}'s users changed, of {since.plays:,} more: "
        f"{since.rival_below:,} times; with the guard, which promises nothing until it notices: "
        f"{since.below:,}."
    )
