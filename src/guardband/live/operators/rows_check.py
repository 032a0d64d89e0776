"""Checks whether the rows of a journal are consistent, to find rows that were changed afterwards.

Decisions have numbers without gaps, and end in their order; how they ended follows from rewards and
windows; and the agent's own counts of all that are in the journal, too. Only the oldest decisions
may be missing, and no row of a log. Changes that keep everything consistent are not detected.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from guardband.kernels.holdback import gain_of
from guardband.kernels.purse import SPENT as SPENT_AT
from guardband.live.client.agent_state import ENDS, GAINS, GAINS_AT, SUMS, WORTH, read_tally
from guardband.live.client.before import read_before
from guardband.live.client.journal import Head, Journal
from guardband.live.client.windows import End
from guardband.live.protocol.messages import KINDS
from guardband.live.protocol.space import RewardSettings, SpaceSettings
from guardband.uplift import GainSums, stake_of

__all__ = ["changed_rows"]

_LoggedRuns = dict[tuple[int, int], int]

TOLERANCE = 1e-9
COUNTED = (End.OBSERVED, End.DEFAULTED)
ROWS = """
    SELECT d.seq, d.stream, d.at, d.round, d.config, d.kind, d.reason, d.floor, d.margin,
           d.lead, d.share, d.predicted, d.value, d.baseline_value, d.override, o.ended,
           o.reward, o.at, o.stream, o.k, o.late
    FROM decision d LEFT JOIN outcome o USING(seq) ORDER BY d.seq
"""


CHARGES = """
    SELECT seq FROM (
        SELECT seq, allowance, spent, charge, lag(spent + charge) OVER (ORDER BY seq) AS before
        FROM decision
    ) WHERE spent <> before OR charge < 0 OR (charge > 0 AND NOT spent + charge <= allowance)
"""
COSTS = "SELECT seq FROM decision WHERE cost < 0 OR paid < 0 OR paid > cost"
# What decisions cost, where none is of another journal, and what was spent of the budget.
PAID = "SELECT total(coalesce(paid, cost)) FROM decision"
LOST = "SELECT 1 FROM stream WHERE id > 1 AND why = '' AND moved_from IS NULL"
OVERRIDDEN = "SELECT coalesce(sum(count), 0) FROM tally WHERE key = 'overridden'"
SPENT = "SELECT purse FROM account WHERE since = 0 AND purse IS NOT NULL"


class _Row(NamedTuple):
    """A decision, and how it ended."""

    seq: int
    stream: int
    at: float
    round: int
    config: int
    kind: str
    reason: str
    floor: float | None
    margin: float | None
    lead: float | None
    share: float | None
    predicted: float | None
    value: float | None
    baseline_value: float | None
    override: int | None
    ended: int | None
    reward: float | None
    ended_at: float
    counted_in: int | None  # the stream
    k: int | None
    late: float | None


class _Rules(NamedTuple):
    """What the rules of a space allow, over all versions that may have held for a decision."""

    low: float
    high: float
    shortest: float
    longest: float
    defaults: frozenset[float]
    at_once: bool  # rewards may count in the order in which they come


def changed_rows(journal: Journal) -> list[str]:
    """Return what an agent would not have written, in sentences."""
    head = journal.head()
    if head is None:
        return ["it has no head: the journal was changed."]
    rows = [_Row._make(row) for row in journal.query(ROWS)]
    spaces = {
        version: SpaceSettings.from_json(json.loads(text))
        for version, text in journal.query("SELECT version, space FROM config")
    }
    begun = "SELECT coalesce(max(id), 0) FROM stream WHERE "
    fresh = (
        journal.query(begun + "moved_from IS NULL")[0][0],
        journal.query(begun + "why <> ''")[0][0],
    )
    odd: defaultdict[str, list[int]] = defaultdict(list)
    rules: dict[int, _Rules] = {}
    for row in rows:
        if row.config not in rules:
            rules[row.config] = _rules_from(spaces, row.config)
        for words in _oddities(row, head.settled, rules[row.config], fresh):
            odd[words].append(row.seq)
    logged = _logged_runs(journal)
    shared = all(s.contexts == "shared" for s in spaces.values())
    repeated = any(s.window is not None for s in spaces.values()) and not shared
    for words, number in _out_of_order(rows, shared, repeated):
        odd[words].append(number)
    at_once = any(each.at_once for each in rules.values())
    for number in _not_in_turn(rows, logged, at_once):
        odd["does not count after the one before"].append(number)
    for (seq,) in journal.query(CHARGES):
        odd["was charged against what was spent before, or beyond what may be spent"].append(seq)
    for (seq,) in journal.query(COSTS):
        odd["cost less than nothing, or more than was reserved"].append(seq)
    found = [
        f"decision {numbers[0]}{f' and {len(numbers) - 1} more' if numbers[1:] else ''} {words}: "
        "the journal was changed."
        for words, numbers in odd.items()
    ]
    return [
        *found,
        *(
            f"{words}: the journal was changed."
            for words in _miscounted(journal, head, rows, logged, _sums_kept(spaces))
        ),
    ]


def _logged_runs(journal: Journal) -> _LoggedRuns:
    """Return where rows of logs count: the last number of every run, by its stream and first."""
    runs = journal.query(
        "SELECT stream, min(k), max(k) FROM (SELECT stream, k, k - row_number() OVER "
        "(PARTITION BY stream ORDER BY k) AS run FROM logged) GROUP BY stream, run"
    )
    return {(stream, first): last for stream, first, last in runs}


def _rules_from(spaces: dict[int, SpaceSettings], version: int) -> _Rules:
    """Return what was allowed from a version of the rules on."""
    held: list[RewardSettings] = [space.rewards for v, space in spaces.items() if v >= version]
    return _Rules(
        min((each.low for each in held), default=-math.inf),
        max((each.high for each in held), default=math.inf),
        min((each.window_s for each in held), default=0.0),
        max((each.window_s for each in held), default=math.inf),
        frozenset(each.default for each in held),
        any(each.order == "prompt" for each in held)
        and any(space.contexts != "shared" for space in spaces.values()),
    )


def _oddities(row: _Row, settled: int, rules: _Rules, fresh: tuple[int, int]) -> Iterator[str]:
    """Yield what is wrong with how a decision ended.

    `fresh` are the last stream that continues none, and the last that began again.
    """
    if row.seq > settled:
        early = (End.OBSERVED, End.OUTDATED) if rules.at_once else ()
        if row.ended not in (None, End.HEARD, End.DISCARDED, *early):
            yield "ended before its turn"
    elif row.ended is None:
        yield "has no outcome although later ones ended"
    elif row.ended == End.HEARD:
        yield "waits although later ones ended"
    elif (row.ended in COUNTED) != (row.k is not None):
        yield "does not count as it ended"
    if row.ended == End.LOST and not row.stream < fresh[0]:
        yield "is lost although its stream was not given up"
    if row.ended == End.OUTDATED and not row.stream < fresh[1]:
        yield "is outdated although nothing began again after it"
    yield from _odd_rewards(row, rules)


def _odd_rewards(row: _Row, rules: _Rules) -> Iterator[str]:
    """Yield what is wrong with a decision's reward and its time."""
    if row.ended == End.OBSERVED:
        if row.reward is None or not rules.low <= row.reward <= rules.high:
            yield "was observed without a possible reward"
        if not row.ended_at < row.at + rules.longest:
            yield "was observed after its window"
    elif row.ended == End.DEFAULTED:
        if row.reward not in rules.defaults:
            yield "has another reward than the default"
        if not row.ended_at >= row.at + rules.shortest:
            yield "has the default although its window was not over"
    elif row.ended == End.DISCARDED and row.reward is not None:
        yield "has a reward although it was discarded"
    if row.late is None:
        return
    waits = row.ended in (End.HEARD, End.OUTDATED) and row.reward is None
    unruled = row.ended == End.DISCARDED and not row.config  # made before the rules were known
    if not (row.ended in (End.DEFAULTED, End.LOST) or waits or unruled):
        yield "has a late reward although it did not end without one"
    if not rules.low <= row.late <= rules.high:
        yield "has a late reward that is not possible"


def _out_of_order(rows: list[_Row], shared: bool, repeated: bool) -> Iterator[tuple[str, int]]:
    """Yield which decisions are not where they belong; `repeated`: a round may have several."""
    for before, after in pairwise(rows):
        if after.seq != before.seq + 1:
            yield "comes after a gap", after.seq
        if shared and before.config and after.round <= before.round:
            yield "is not in a later round than the one before", after.seq
        if repeated and before.config and after.round < before.round:
            yield "is in an earlier round than the one before", after.seq
    if not (
        shared or repeated
    ):  # rounds may be given; but one alone is not in another place than its neighbours
        for one, two, three in zip(rows, rows[1:], rows[2:], strict=False):
            if three.round == one.round + 2 != two.round + 1:
                yield "is not in a later round than the one before", two.seq


def _not_in_turn(rows: list[_Row], logged: _LoggedRuns, at_once: bool) -> Iterator[int]:
    """Yield which decisions count twice, or after a gap; in their order, unless `at_once`.

    Where rewards count as they come, those of forgotten decisions may lie between others.
    """
    forgotten = at_once and bool(rows) and rows[0].seq > 1
    counted = [row for row in rows if row.k is not None and row.counted_in is not None]
    if at_once:
        counted.sort(key=lambda row: (row.counted_in, row.k))
    last: dict[int, int] = {}
    for row in counted:
        stream, k = row.counted_in or 0, row.k or 0
        follows = last.get(stream, k - 1) + 1
        expected = logged.get((stream, follows), follows - 1) + 1
        if k < expected or (k > expected and not forgotten):
            yield row.seq
        last[stream] = k


def _miscounted(
    journal: Journal, head: Head, rows: list[_Row], logged: _LoggedRuns, kept_sums: frozenset[str]
) -> Iterator[str]:
    """Yield where the agent's own counts are not those of its rows, as far as all are kept."""
    first, last = (rows[0].seq, rows[-1].seq) if rows else (1, 0)
    if head.settled > last:
        yield f"decisions up to {head.settled} have ended, but the newest is {last}"
    alone = journal.query(
        "SELECT count(*) FROM outcome WHERE seq NOT IN (SELECT seq FROM decision)"
    )
    if alone[0][0]:
        yield f"{alone[0][0]} outcome(s) are of no decision"
    mine = [row for row in rows if row.counted_in == head.stream and row.k is not None]
    numbers = [row.k for row in mine if row.k is not None]
    numbers += [last for (stream, _), last in logged.items() if stream == head.stream]
    if numbers and max(numbers) != head.n:
        yield f"{head.n} observations count, but the last is number {max(numbers)}"
    for stream in {stream for stream, _ in logged} | {head.stream}:
        kept = sum(last - k + 1 for (each, k), last in logged.items() if each == stream)
        told = journal.counts(stream).get("logged", 0)
        if kept != told:
            yield f"{told} rows of logs were learned, but {kept} are written down"
    rounds = [row.round for row in rows if row.k is not None]
    latest = max(rounds, default=0)
    if latest > head.round or (first == 1 and latest != head.round):
        yield f"round {head.round} is the latest that counts, but the decisions say {latest}"
    late = sum(row.late is not None for row in rows)
    ((noted,),) = journal.query("SELECT coalesce(sum(count), 0) FROM tally WHERE key = 'late'")
    if late > noted or (first == 1 and late != noted):
        yield f"{noted} rewards came late, but {late} are written down"
    yield from _misspent(journal, rows, first)
    whole = first == 1 or (rows[0].counted_in or head.stream) < head.stream
    judged = rows if head.stream == 1 and first == 1 else mine
    if whole and not _as_tallied(head, judged, kept_sums):
        yield "how decisions ended is not what the agent counted"
    lost = journal.one(LOST)  # a copy of a folder measures anew
    if first == 1 and lost is None and kept_sums.issuperset(GAINS):
        sums = read_before(journal).gains.plus(*read_tally(head.tally)[GAINS_AT])
        if not np.allclose(_measured(rows), sums, rtol=TOLERANCE, atol=TOLERANCE):
            yield "what the holdback measured is not what rewards say"
    for stream in {row.stream for row in rows}:
        if not _as_reported(journal.counts(stream), rows, first):
            yield f"the kinds and reasons of stream {stream} are not what the agent counted"


def _measured(rows: list[_Row]) -> GainSums:
    """Return what the rewards of all streams say of what choices earn."""
    total = GainSums()
    for row in rows:
        stake = stake_of(row.lead, row.share, row.predicted)
        counts = row.k is not None or row.ended == End.OUTDATED
        if counts and stake is not None and row.reward is not None and row.override is None:
            total = total.plus(1.0, *gain_of(stake, row.reward))
    return total


def _misspent(journal: Journal, rows: list[_Row], first: int) -> Iterator[str]:
    """Yield where overrides and costs are not those of the rows, as far as all are kept."""
    overridden = sum(row.override is not None for row in rows)
    ((noted,),) = journal.query(OVERRIDDEN)
    if overridden > noted or (first == 1 and overridden != noted):
        yield f"{noted} decisions were overridden, but {overridden} are written down"
    ((paid,),), purse = journal.query(PAID), journal.one(SPENT)
    if first == 1 and purse is not None:
        spent = float(np.frombuffer(purse[0])[SPENT_AT])
        if abs(paid - spent) > TOLERANCE * max(1.0, paid):
            yield f"{spent:g} was spent of the budget, but decisions cost {paid:g}"


def _sums_kept(spaces: dict[int, SpaceSettings]) -> frozenset[str]:
    """Return which sums are over counted rows: gains begin anew where the holdback changes.

    What decisions cost is compared with what was spent.
    """
    chances = [spaces[version].holdback for version in sorted(spaces)]
    measured = sum(1 for chance, _ in groupby(chances) if chance)
    return frozenset(SUMS) - {"cost"} - (frozenset(GAINS) if measured > 1 else frozenset())


def _as_tallied(head: Head, rows: list[_Row], kept_sums: frozenset[str]) -> bool:
    """Tell whether decisions ended as the head has counted; discarded ones in stream 1 only."""
    size = len(KINDS) * len(ENDS)
    numbers = np.array(read_tally(head.tally))
    over = [row for row in rows if row.seq <= head.settled or row.ended == End.OBSERVED]
    ended = Counter((row.kind, row.ended) for row in over)
    for i, kind in enumerate(KINDS):
        for j, end in enumerate(ENDS):
            told = int(numbers[i * len(ENDS) + j])
            if ended[kind, end] != told and (end in COUNTED or head.stream == 1):
                return False
    sums: dict[str, list[float]] = {name: [] for name in SUMS}
    for row in rows:
        if row.k is None or row.reward is None:
            continue
        sums["reward"].append(row.reward)
        if row.value is not None and row.baseline_value is not None:
            worth = (1.0, row.value, row.baseline_value)
            for name, value in zip(WORTH, worth, strict=False):
                sums[name].append(value)
        if row.override is not None:  # what others played shows no promise
            continue
        if row.floor is not None:
            sums["floor"].append(row.floor)
            sums["lead"].append(row.reward - row.floor)
            sums["lead_squares"].append((row.reward - row.floor) ** 2)
        if row.margin is not None:
            sums["margin"].append(row.margin)
        stake = stake_of(row.lead, row.share, row.predicted)
        if stake is not None:
            for name, value in zip(GAINS, (1.0, *gain_of(stake, row.reward)), strict=True):
                sums[name].append(value)
    return all(
        abs(math.fsum(sums[name]) - told) <= TOLERANCE * max(1.0, math.fsum(map(abs, sums[name])))
        for name, told in zip(SUMS, numbers[size:].tolist(), strict=True)
        if name in kept_sums
    )


def _as_reported(counts: dict[str, Any], rows: list[_Row], first: int) -> bool:
    """Tell whether kinds and reasons are those that the last report of a stream has counted."""
    upto = counts.get("upto", 0)
    after = upto - sum(counts.get(kind, 0) for kind in KINDS)
    if after + 1 < first:
        return True  # some are pruned
    said = Counter({key: count for key, count in counts.items() if key in KINDS or "why:" in key})
    reported = [row for row in rows if after < row.seq <= upto]
    return said == Counter(
        [row.kind for row in reported] + [f"why:{row.reason}" for row in reported]
    )
