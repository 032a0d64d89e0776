"""Rebuilds the learner as it was at a decision, from (epoch, own n, config_version)."""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from guardband.agent import Awaited, Recall, Request, Verdict
from guardband.kernels.monitors import monitor_of, monitor_size
from guardband.kernels.state import new_statistic
from guardband.kernels.sync import add_statistic
from guardband.kernels.types import Floats, Statistic
from guardband.live.client.decisions import request_of
from guardband.live.client.journal import Journal
from guardband.live.client.learner import UNREGISTERED, Learner, Selection
from guardband.live.client.watching import first_stream, memory_before, watch_again
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, empty_sums, sums_of, unpack_sums
from guardband.reasons import HELD_BACK

__all__ = ["Rebuilt", "counted_sums", "learner_by", "rebuild"]


class Rebuilt(NamedTuple):
    """A decision as it was written down, and the learner as it was then."""

    row: dict[str, Any]
    request: Request
    space: SpaceSettings
    learner: Learner
    rule: int | None  # by which its share of delta was spent; None: it had none yet

    def decide(self) -> Verdict:
        """Make the decision again."""
        return self.again().played

    def recall(self) -> Recall:
        """Return what an override of the decision needs."""
        return self.learner.recall(self.request, self.decide().radius)

    def instead(self, k: int) -> Awaited:
        """Return what is awaited of the decision where action k was played instead."""
        return self.learner.instead(self.recall(), k, bool(self.row["careful"]))

    @property
    def costs(self) -> tuple[Floats, tuple[float, float]] | None:
        """What actions cost, their price and what one may cost; None: there was no budget."""
        spending = self.learner.spending
        if spending is None or self.row["purse"] is None:
            return None
        return spending.costs(self.request)[0], spending.limits(self.request)

    def again(self) -> Selection:
        """Make the decision again; also return what would have been played, in shadow mode."""
        row = self.row
        if row["reason"] in HELD_BACK:
            return self.learner.play_baseline(self.request, row["seq"], row["coin"], row["reason"])
        hold = 1.0 if row["hold"] is None else row["hold"]
        verdict = self.learner.decide(self.request, row["seq"], row["coin"], hold)
        return Selection(verdict, None, None)


def rebuild(journal: Journal, seq: int) -> Rebuilt:
    """Return the learner as it was when it made a decision; LookupError says what is missing.

    Parameters
    ----------
    journal
        An agent's journal.
    seq
        The number of the decision, the last part of its id.
    """
    row = journal.decision(seq)
    if row is None:
        raise LookupError(f"decision {seq} is not, or no longer, in {journal.path}.")
    config = journal.one("SELECT space FROM config WHERE version = ?", (row["config"],))
    if config is None:
        raise LookupError(f"decision {seq} was made before the rules of the space were known.")
    learner = learner_by(journal, config[0])
    space = learner.space
    epoch = journal.one(
        "SELECT total, own_n, excluded, others FROM epoch WHERE epoch = ? AND stream = ?",
        (row["epoch"], row["stream"]),
    )
    if epoch is None and row["epoch"]:
        raise LookupError(f"epoch {row['epoch']} is not, or no longer, in {journal.path}.")
    total, own_n, excluded, others = (None, 0, 0, None) if epoch is None else epoch
    learner.enter(row["round"])
    first = space.first_round(learner.half - 1)
    own = counted_sums(journal, row["stream"], own_n, row["n"], space.dim, first)
    everybody = empty_sums(space.dim) if total is None else Sums.from_bytes(total)
    nothing = bytes(8 * (space.dim**2 + space.dim + 4))
    learner.load(everybody, sums_of(own), nothing, unpack_sums(others))
    allowance = row["allowance"]
    learner.set_allowance(math.nan if allowance is None else allowance, row["spent"])
    if learner.spending is not None and row["purse"] is not None:
        *numbers, learner.spending.most = np.frombuffer(row["purse"])
        learner.spending.fill(np.array(numbers))
    known = memory_before(journal, learner.monitors, row["stream"], row["n"], seq)
    if known is not None:
        watch_again(journal, learner.monitors, row["stream"], known, row["n"])
    rule = _set_level(learner, journal, row, excluded)
    return Rebuilt(row, request_of(row, space.dim), space, learner, rule)


def learner_by(journal: Journal, settings: str) -> Learner:
    """Return a learner of a journal's task by settings of its space; it has learned nothing."""
    about, space = journal.about(), SpaceSettings.from_json(json.loads(settings))
    return Learner(
        space, about["task"], tuple(about["uses"]), reward_floor=about["reward_floor"], seed=0
    )


def _set_level(
    learner: Learner, journal: Journal, row: dict[str, Any], excluded: int
) -> int | None:
    """Use the confidence that the decision was made with; return by which rule, if it had one."""
    found = journal.one(
        "SELECT share, rule FROM level WHERE stream = ? AND from_seq <= ? ORDER BY from_seq DESC",
        (row["stream"], row["seq"]),
    )
    share, rule = (UNREGISTERED, None) if found is None else found
    if rule == 1:  # all of the share was for the case that no task was left out
        if excluded and learner.space.shares == "equal":
            raise LookupError(f"decision {row['seq']} was made by rules that are no longer known.")
        share *= 2.0 * (math.e - 1.0 if excluded else 1.0)
    ((conflicts,),) = journal.query(
        "SELECT count(*) - 1 FROM stream WHERE id <= ? AND moved_from IS NULL", (row["stream"],)
    )
    learner.set_level(share, row["epoch"] + conflicts, excluded)
    return None if rule is None else int(rule)


def _begun_with(journal: Journal, stream: int, dim: int, first_round: int) -> tuple[int, Statistic]:
    """Return the data of its start, at declared weights, with which a stream took another's place.

    And how many observations these are; 0: it began with nothing. Only those from `first_round` on
    count: with a window they are of one half.
    """
    found = journal.one(
        "SELECT m.n, m.numbers FROM stream s JOIN monitor m ON m.stream = s.id "
        "WHERE s.id = ? AND s.why <> '' AND m.n > 0 ORDER BY m.n, m.from_seq",
        (stream,),
    )
    ((first,),) = journal.query("SELECT min(n) FROM monitor WHERE stream = ?", (stream,))
    total = new_statistic(dim)
    if found is None or found[0] != first:
        return 0, total
    numbers = np.frombuffer(found[1]).copy()
    if numbers[monitor_size.plain(dim) :].sum() < first_round:
        return int(first), total
    add_statistic(total, monitor_of.plain(numbers, dim).own)
    ((reused,),) = journal.query(
        "SELECT coalesce(sum(reused), 0) FROM logged WHERE stream >= ? AND stream < ?",
        (first_stream(journal, stream - 1), stream),
    )
    total.scalars[5] = reused
    return int(first), total


def counted_sums(
    journal: Journal, stream: int, after: int, upto: int, dim: int, first_round: int = 0
) -> Statistic:
    """Return the sums over a stream's observations after < k <= upto, in their order.

    Only those of decisions from `first_round` on count. What a stream took over from a sealed one
    comes first, under the numbers it had there.
    """
    total = new_statistic(dim)
    ((old, at),) = journal.query("SELECT moved_from, moved_n FROM stream WHERE id = ?", (stream,))
    begun, sums = _begun_with(journal, stream, dim, first_round)
    if after < begun <= upto:
        add_statistic(total, sums)
        after = begun
    rows = journal.counted(stream, after, upto)
    head = next(rows, None)
    first = upto + 1 if head is None else head[0]
    if old is not None and after < first - 1:
        taken = (at + after, at + first - 1, dim, first_round)
        add_statistic(total, counted_sums(journal, old, *taken))
    elif first > after + 1 and upto > after:
        raise LookupError(f"observations from {after + 1} on are no longer in {journal.path}.")
    seen = 0
    for _, x, weight, guess, y, reused, round_ in chain(() if head is None else (head,), rows):
        seen += 1
        if round_ < first_round:
            continue
        psi = np.frombuffer(x)
        total.gram[...] += weight * np.multiply.outer(psi, psi)
        total.moment[...] += weight * y * psi
        total.scalars[:4] += (
            1.0,
            weight * y * y,
            weight * (guess * guess - 2.0 * y * guess),
            weight,
        )
        total.scalars[5] += reused
    if seen != upto + 1 - first:
        raise LookupError(f"observations between {first} and {upto} are gone from {journal.path}.")
    return total
