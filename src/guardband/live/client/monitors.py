"""The monitors of a live agent: what they remember, and what follows from an alarm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from guardband.agent import AgentGroup, Awaited
from guardband.kernels.alarms import contradiction, respond, restart, watch_anew, watch_rows
from guardband.kernels.monitors import (
    KINDS,
    AlarmCode,
    Monitor,
    Note,
    begin,
    monitor_of,
    watch,
    wealth_of,
)
from guardband.kernels.types import Floats, Response, Statistic
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Recent, Sums, forget, statistic_of, sums_of

__all__ = ["Monitors"]

CERTIFICATES, FIT = int(AlarmCode.CERTIFICATES), int(AlarmCode.FIT)


class Monitors:
    """Between a live agent and the kernels of monitors; no clock, no file, no network.

    Parameters
    ----------
    group
        The group of one with which the agent computes.
    space
        The rules.
    policy
        The algorithm.

    Attributes
    ----------
    kinds
        The kinds of alarms that can be raised.
    memory
        What they remember; a view.
    half
        The half window of the decisions whose rewards they watch; 0: there is no window, or no
        reward yet. They begin anew with every half.
    """

    def __init__(self, group: AgentGroup, space: SpaceSettings, policy: Any) -> None:
        self._engine, self._space, self._policy = group.engine, space, policy
        self.kinds = group.watched
        self.memory: Floats = group.states[0].watch
        self._scratch = group.states[0].work.shape
        self._terms = group.engine.terms_now  # of which only thresholds and radii ever change
        self._views: Monitor = monitor_of.plain(self.memory, space.dim)
        self.half = 0
        self.set_threshold(None)

    def as_bytes(self) -> bytes:
        """Return what they remember, as journals keep it.

        With a window the first round of the half comes last.
        """
        last = [float(self._space.first_round(self.half))] if self._space.window else []
        return self.memory.tobytes() + np.array(last).tobytes()

    def remember(self, kept: bytes | None) -> None:
        """Remember what `as_bytes` returned; None: nothing."""
        size = self.memory.size
        numbers = np.zeros(size) if kept is None else np.frombuffer(kept)
        self.memory[...] = numbers[:size]
        first = int(numbers[size:].sum())
        self.half = self._space.half_at(first) if first else 0

    def set_threshold(self, share: float | None) -> None:
        """Raise alarms with this part of delta_alarm; None: it is not known yet, and none are."""
        if self.kinds:
            chance = 0.0 if share is None else self._policy.delta_alarm * share
            self._enough = math.log(len(KINDS) / chance) if chance else math.inf
            self._engine.set_alarm(self._enough)

    @property
    def plays(self) -> float:
        """How many learned plays they have watched in this start."""
        return float(self.memory[Note.PLAYS])

    @property
    def alarm(self) -> tuple[int, float] | None:
        """The code of an alarm that was raised and not heeded yet, with its evidence."""
        notes = self.memory
        code = int(notes[Note.PENDING])
        if not code:
            return None
        evidence = notes[Note.EVIDENCE]
        if code == CERTIFICATES:
            evidence = self._engine.rebuild(wealth_of, notes)
        return code, float(evidence)

    def watch(self, awaited: Awaited, reward: float, half: int) -> None:
        """Watch a reward of a decision in a half window, apart from learning it."""
        if not self.kinds:
            return
        self._enter(half)
        if awaited.declared > 0.0:
            seen = (awaited.x, reward, awaited.declared, awaited.lower)
            self._engine.run(watch, self._engine.states[0], self._engine.terms_now, *seen)

    def watch_again(
        self, rows: Floats, rewards: Floats, weights: Floats, lowers: Floats, rounds: Sequence[int]
    ) -> int:
        """Watch rewards of decisions in these rounds as when they came; return how many.

        That is up to an alarm, which is left to be heeded.
        """
        engine, at = self._engine, 0
        for half, part in groupby(rounds, self._space.half_at):
            end = at + len(list(part))
            self._enter(half)
            some = [each[at:end] for each in (rows, rewards, weights, lowers)]
            given = (engine.group, engine.terms_now, *some)
            at += int(engine.rebuild(watch_rows, *given, rows=end - at))
            if at < end or self.alarm is not None:
                break
        return at

    def _enter(self, half: int) -> None:
        """Begin anew if another half window begins; its start has a part of delta_alarm."""
        if self.half and half > self.half:
            self._engine.run(begin, self._views, self._engine.terms_now)
            self.memory[Note.STARTS] += 1.0
        self.half = half

    def misfit(self, others: Sequence[Sums], price: float) -> float | None:
        """Return the evidence that the task's own data contradict the others', if it is enough.

        Where one of the others may lie, `others` are without each of them: it is the least
        evidence that counts. The threshold grows by the `price`.
        """
        notes = self.memory
        if "fit" not in self.kinds or notes[Note.RAISED + FIT - 1] or not notes[Note.REWARDS]:
            return None
        starts = notes[Note.STARTS] + 1.0
        enough = self._enough + math.log(starts * (starts + 1.0)) + price
        evidence = self.evidence_of_misfit(others)
        return evidence if evidence >= enough else None

    def evidence_of_misfit(self, others: Sequence[Sums]) -> float:
        """Return the log of the e-process against one parameter for the task and the others."""
        least = math.inf if others else -math.inf
        for each in others:
            least = min(least, self._contradiction(each) if each.n else -math.inf)
        return least

    def _contradiction(self, others: Sums) -> float:
        """Return what `kernels.alarms.contradiction` does, of sums at the weights of others' sets.

        By Lemma V such weights are valid for the predictions with which they came alone: others
        then pay for these, G, in the place of log det. With a window weights are declared.
        """
        sums, work = statistic_of(others), np.zeros(self._scratch)
        evidence = float(contradiction.at_once(self._views, sums, self._terms, work))
        if others.by_variance and not self._space.window:
            evidence += 0.5 * self._saved_by_predictions(sums)
        return evidence

    def _saved_by_predictions(self, sums: Statistic) -> float:
        """Return log det(B / ridge) - G, G = H + U'B^-1 U; with a bias weights count half."""
        terms = self._terms
        share = 0.5 if terms.bias > 0.0 else 1.0
        matrix = np.eye(sums.moment.size) + share / terms.ridge * sums.gram
        moment = share * sums.moment
        fitted = moment @ np.linalg.solve(matrix, moment) / terms.ridge
        return float(np.linalg.slogdet(matrix)[1] - share * sums.scalars[2] - fitted)

    def respond(self, code: int) -> bool:
        """Do about an alarm what the space says; tell whether that is a new start."""
        engine = self._engine
        engine.rebuild(respond, engine.group, engine.left_out, 0, engine.terms_now, code)
        self.memory[Note.LEVEL] = 0.0  # a start has its part of delta as every set of data has
        return bool(self._engine.terms.on_alarm != Response.WARN)

    def restart(self) -> None:
        """Forget all that was learned, and begin to watch again."""
        if not self.kinds:
            return
        engine = self._engine
        engine.rebuild(restart, engine.group, engine.left_out, 0, engine.terms_now)
        self.memory[Note.LEVEL] = 0.0

    def hold_no_longer(self) -> None:
        """Let the agent play something else than the baseline again."""
        self.memory[Note.HOLD] = 0.0

    def look_again(self) -> None:
        """Begin again where they only warn, now that a person has looked at all alarms.

        With a window they do so with its next half, as ever.
        """
        if self._engine.terms.on_alarm == Response.WARN and not self._space.window:
            self._watch_anew()

    def begin_in_between(self) -> None:
        """Begin again, because rewards are gone that they should have watched.

        What was raised or counted before stays true: whoever is held is held on.
        """
        raised = self.memory[Note.RAISED : Note.RAISED + len(KINDS)].copy()
        self._watch_anew()
        self.memory[Note.RAISED : Note.RAISED + len(KINDS)] = raised

    def _watch_anew(self) -> None:
        self._engine.rebuild(watch_anew, self._engine.group, 0, self._engine.terms_now)

    def declared(self, reused: int, half: int) -> Sums:
        """Return all data of this start at declared weights; `reused` rows had been looked at.

        With a window: of the half that is watched, as far as they count in `half`.
        """
        sums = sums_of(self._views.own)
        sums = sums._replace(by_variance=sums.n if self._space.by_variance else 0, reused=reused)
        if not self.half:
            return sums
        recent = Recent(self.half, sums.n, sums.n, sums.gram, sums.surprise, sums.weight)
        return forget(sums._replace(recent=recent), half)
