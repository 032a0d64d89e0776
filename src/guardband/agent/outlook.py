"""Whether an agent will leave the baseline, what is in its way, and what would help."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from guardband.agent.futures import FAR, Future, Past, possible_parameters, run_ahead
from guardband.agent.records import Request, Verdict
from guardband.kernels.ridge import refresh
from guardband.kernels.state import ALPHA
from guardband.kernels.types import Floats, Rule, Terms
from guardband.reasons import sentence

__all__ = ["STUCK_AFTER", "Help", "Outlook", "StuckWarning", "Watch", "blocked_features"]
__all__ += ["listing", "outlook_of"]

STUCK_AFTER = 1_000  # rounds without a learned play after which an agent looks ahead
COPIES = 9  # possible parameters that are tried
NEARLY_ALL, MOST = 8, 5  # of them
HELPED, DRAWN = 5, 40  # those with which help is tried, and those from which they are taken
WORTH = 1.5  # times the baseline's reward: what help is to lead to
HALVINGS = 20
KNOWN = 0.01  # of the width that a direction has before any data
MINOR = 0.1  # of the largest part that a feature has in what is not known
DROPPED = 4  # features that are tried to be left out
GUARD = int(Rule.GUARD)


class StuckWarning(UserWarning):
    """An agent will not leave the baseline by itself; `agent.outlook()` says what would help."""


class Help(NamedTuple):
    """Something that would lead a stuck agent away from the baseline."""

    name: str  # "logs", "policy", "trial_budget" or "shared_feature"
    amount: float | None  # roughly; None: no number is known
    what: str  # in words

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class Outlook:
    """What an agent can expect if the menus stay as they were lately.

    All of it is rough, and none of it is promised. Possible parameters are drawn from what the
    agent knows; for each of them a copy of the agent goes on for a million rounds.

    Attributes
    ----------
    stuck
        True: in nearly all copies nothing but the baseline is ever certified, though it is not
        known to be the best. False: most copies come to play something else, or find the baseline
        best. None: it cannot be told yet.
    rounds
        About how many more rounds there are until the first learned play; None: not known.
    blocked_by
        The features about which no certified play teaches enough, by name or number.
    helps
        What would change that, each with a rough number of rows, rounds or units of reward, if the
        best actions are worth half as much again as the baseline, or less.
    because
        The same in a sentence.

    Examples
    --------
    >>> import guardband as gb
    >>> agent = gb.Agent(dim=2)
    >>> decision = agent.decide([[0.9, 0.0], [0.0, 0.9]], baseline=0)  # nothing in common
    >>> outlook = agent.outlook()
    >>> outlook.stuck, outlook.blocked_by, outlook.helps[0].name
    (True, (1,), 'shared_feature')
    """

    stuck: bool | None
    rounds: float | None
    blocked_by: tuple[int | str, ...]
    helps: tuple[Help, ...]
    because: str

    def __str__(self) -> str:
        said = {True: "Stuck", False: "Not stuck", None: "Can't tell yet"}[self.stuck]
        lines = [f"{said}: {self.because}."]
        if self.helps:
            lines += ["What would help, roughly:", *(f"- {help.what}" for help in self.helps)]
        return "\n".join(lines)


class Watch:
    """Looks ahead for an agent that has made no learned play, ever less often.

    Attributes
    ----------
    turn
        Before which round to look; 0: no more.
    outlook
        What was found; None: nothing, or the agent has made a learned play since.
    """

    def __init__(self, terms: Terms, turn: int = STUCK_AFTER + 1) -> None:
        # The paper's algorithms say by their own reasons what they wait for.
        self.turn = turn if terms.rule == GUARD else 0
        self.outlook: Outlook | None = None
        self._warned = False

    def look(self, name: str, past: Past, rounds: int) -> str:
        """Look ahead after so many rounds; return a warning, once, if the agent is stuck."""
        self.turn, self.outlook = 2 * rounds + 1, outlook_of(past)
        if not self.outlook.stuck or self._warned or rounds < STUCK_AFTER:
            return ""
        self._warned = True
        return f"task {name!r} made no learned play in {rounds:,} rounds. {self.outlook}"

    def reason_of(self, verdict: Verdict) -> str | None:
        """Return the reason of a decision where there is more to say than its own sentence."""
        if verdict.kind == "learned":
            self.turn, self.outlook = 0, None
        if self.outlook is None or not self.outlook.stuck:
            return None
        return f"{sentence(verdict.reason)}; {self.outlook.because}"


def outlook_of(past: Past) -> Outlook:
    """Return the outlook of an agent."""
    if not past.menus[past.agent]:
        return Outlook(None, None, (), (), "no menu was seen yet")
    if not past.finite:
        return Outlook(None, None, (), (), "the numbers of the agent are not finite")
    rng = np.random.default_rng(0)
    left: list[float] = []
    blocked: list[Future] = []
    settled = 0
    for theta in possible_parameters(past, COPIES, rng):
        future = run_ahead(past, theta, rng)
        if future.rounds < math.inf:
            left.append(future.rounds)
        elif future.settled:
            settled += 1
        else:
            blocked.append(future)
        if max(len(left), settled) >= MOST or len(blocked) >= NEARLY_ALL:
            break
    if len(left) >= MOST:
        return _leaves(median(left))
    if len(blocked) >= NEARLY_ALL:
        return _stuck(past, blocked[0], rng)
    if len(left) + settled >= MOST:
        because = "by all that is known, the baseline may well be the best action on recent menus"
        return Outlook(False, None, (), (), because)
    because = (
        f"of {COPIES} parameters that fit what was observed, {len(blocked)} keep it at the "
        f"baseline for {FAR:,} rounds and more"
    )
    return Outlook(None, None, (), (), because)


def _leaves(rounds: float) -> Outlook:
    if rounds == 0.0:
        return Outlook(False, 0.0, (), (), "actions beside the baseline are certified already")
    because = f"it is about {rough(rounds)} rounds to the first learned play"
    return Outlook(False, rounds, (), (), because)


def _stuck(past: Past, blocked: Future, rng: np.random.Generator) -> Outlook:
    features, together = _blocked_features(past, blocked)
    names = tuple(past.names[i] if past.names else i for i in features)
    because = f"nothing but the baseline will be certified within {FAR:,} rounds"
    if features:
        what = "feature" if len(features) == 1 else "features"
        listed = listing([str(name) for name in names])
        apart = " apart from each other" if together else ""
        because = f"no certified play teaches about {what} {listed}{apart}, so {because}"
    return Outlook(True, None, names, _helps(past, features if together else (), rng), because)


def _blocked_features(past: Past, future: Future) -> tuple[tuple[int, ...], bool]:
    """Return the features that are in the way, and whether plays show them together alone."""
    engine, m = future.engine, past.agent
    keep = 1.0 - float(engine.known[m][ALPHA])
    menus = ((request.menu, request.baseline) for request in past.menus[m])
    inverse = engine.states[m].estimate.inverse
    return blocked_features(menus, inverse, engine.ridge, keep, future.gram)


def blocked_features(
    menus: Iterable[tuple[Floats, int]], inverse: Floats, ridge: float, keep: float, gram: Floats
) -> tuple[tuple[int, ...], bool]:
    """Return the features that are in the way, and whether plays show them together alone.

    u = V^-1 (psi_k - keep psi_b), keep = 1 - alpha, is the direction that keeps action k of a menu
    (d, K) from being certified. Features that no play has shown, by the `gram` of plays, are named
    if u has them; else those that are most of u.
    """
    parts = np.zeros(len(inverse))
    for menu, baseline in menus:
        gaps = menu - keep * menu[:, [baseline]]
        images = inverse @ gaps
        widths = np.einsum("dk,dk->k", gaps, images) * ridge
        known = widths <= KNOWN * np.einsum("dk,dk->k", gaps, gaps)
        known[baseline] = True
        lengths = np.linalg.norm(images, axis=0)
        parts += ((images / np.where(lengths > 0.0, lengths, 1.0)) ** 2 * ~known).sum(axis=1)
    never = (parts > KNOWN * parts.max()) & (np.diag(gram) <= 0.0)
    chosen = never if never.any() else (parts > 0.0) & (parts >= MINOR * parts.max())
    return tuple(int(i) for i in np.flatnonzero(chosen)), not never.any()


def _helps(past: Past, together: Sequence[int], rng: np.random.Generator) -> tuple[Help, ...]:
    """Return what would lead away from the baseline, tried on copies.

    There must be something to be helped to: parameters by which the best actions are worth more
    than 1 + alpha times the baseline, and not more than WORTH times.
    """
    drawn = (_worth_it(past, theta) for theta in possible_parameters(past, DRAWN, rng))
    thetas = list(islice((theta for theta in drawn if theta is not None), HELPED))

    def rounds(past: Past, **settings: Any) -> float:
        ends = (run_ahead(past, theta, rng, **settings).rounds for theta in thetas)
        return median(ends) if thetas else math.inf

    def charges() -> float:
        ends = (run_ahead(past, theta, rng, settings={"allowance": math.inf}) for theta in thetas)
        spent = [
            float(end.engine.states[past.agent].spent[0]) if end.rounds < math.inf else math.inf
            for end in ends
        ]
        return float(f"{median(spent):.2g}") if spent else math.inf

    helps = []
    if (rows := rounds(past, uniform=True)) < math.inf:
        what = f"logs, by agent.learn: about {rough(rows)} rows with actions drawn at random"
        helps.append(Help("logs", rows, what))
    strict = past.engine.terms.rule == GUARD and past.engine.terms.strict
    if (
        strict
        and (count := rounds(past, settings={"strict": 0.0, "allowance": math.nan})) < math.inf
    ):
        what = f"mode='policy': about {rough(count)} rounds, some of them below the floor"
        helps.append(Help("policy", count, what))
    if strict and (units := charges()) < math.inf:
        what = f"a budget for trials: trial_budget={rough(units)}"
        helps.append(Help("trial_budget", units, what))
    left_out = [(rounds(_without(past, i)), i) for i in together[:DROPPED]]
    best, i = min(left_out, default=(math.inf, 0))
    if best < math.inf:
        name = past.names[i] if past.names else i
        soon = f"about {rough(best)} rounds" if best else "at once"
        what = f"without feature {name}: {soon}, if rewards are linear in the others"
        helps.append(Help("shared_feature", best, what))
    else:
        what = "shared features: describe the other actions by features that the baseline has, too"
        helps.append(Help("shared_feature", None, what))
    return tuple(helps)


def _worth_it(past: Past, theta: Floats) -> Floats | None:
    """Return theta, moved to the estimate until the best actions are worth WORTH baselines or less.

    None: by theta they are worth less than 1 + alpha baselines.
    """
    estimate = past.engine.states[past.agent].estimate.theta
    if _lead(past, theta, 1.0 + float(past.engine.known[past.agent][ALPHA])) < 0.0:
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS if _lead(past, theta, WORTH) > 0.0 else 0):
        middle = 0.5 * (low + high)
        if _lead(past, estimate + middle * (theta - estimate), WORTH) < 0.0:
            low = middle
        else:
            high = middle
    return estimate + high * (theta - estimate)


def _lead(past: Past, theta: Floats, times: float) -> float:
    """Return by how much the best actions exceed so many times the baseline, over all menus."""
    total = 0.0
    for request in past.menus[past.agent]:
        values = request.menu.T @ theta
        total += float(values.max() - times * values[request.baseline])
    return total


def _without(past: Past, i: int) -> Past:
    """Return the past as it would be, had there been no feature i."""
    engine = past.engine.copy({})
    for part in (engine.pooled, *(state.own for state in engine.states)):
        part.gram[i, :] = part.gram[:, i] = part.moment[i] = 0.0
    for state in engine.states:
        engine.rebuild(refresh, state, engine.pooled, engine.ridge)
    menus = [[_cleared(request, i) for request in seen] for seen in past.menus]
    return past._replace(engine=engine, menus=menus)


def _cleared(request: Request, i: int) -> Request:
    menu, contexts = request.menu.copy(), request.contexts.copy()
    menu[i] = 0.0
    if contexts.size:
        contexts[:, i] = 0.0
    return request._replace(menu=menu, contexts=contexts)


def rough(number: float) -> str:
    """Return a number by its first two digits."""
    return f"{float(f'{number:.2g}'):,.10g}"


def listing(words: Sequence[str], most: int = 8) -> str:
    """Return words as a list in a sentence, the first ones of many."""
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
