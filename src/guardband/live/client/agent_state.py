"""The state of a live agent in memory: its decisions, its stream, and the settings it follows."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from guardband.agent import AlarmLog, Awaited, Recalls, Spending, as_number, as_reward
from guardband.errors import InvalidValueError
from guardband.live.client.account import JournalAccount
from guardband.live.client.before import EarlierStreams
from guardband.live.client.journal import Head, StoredDecision
from guardband.live.client.learner import UNREGISTERED, Learner
from guardband.live.client.stream_rows import KeptEpoch
from guardband.live.client.stream_state import StreamState
from guardband.live.client.windows import End
from guardband.live.protocol.messages import KINDS, Account
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums, sums_of
from guardband.uplift import GainSums

__all__ = ["COST_AT", "ENDS", "GAINS", "GAINS_AT", "SUMS", "WORTH", "AgentSetup", "AgentState"]
__all__ += ["empty_tally", "read_tally"]

ENDS = (End.OBSERVED, End.DEFAULTED, End.DISCARDED)
GAINS = tuple(f"uplift_{name}" for name in GainSums._fields)  # of the holdback
# Decisions with values, what those add up to, and what ended decisions cost.
WORTH = ("valued", "value", "baseline_value", "cost")
SUMS = ("reward", "floor", "lead", "lead_squares", "margin", *GAINS, *WORTH)
GAINS_AT = slice(-len(GAINS + WORTH), -len(WORTH))  # in a tally
COST_AT = -1
PATIENCE = 100  # observations, after twice as many as there were, until an odd task has left
FORMER = {14: 5, 17: 5, 20: 8}  # lengths of older tallies, and how many sums they had


def empty_tally() -> array[float]:
    """Return zeros for the counts by kind and end, and for the sums beside them."""
    return array("d", bytes(8 * (len(KINDS) * len(ENDS) + len(SUMS))))


def read_tally(stored: bytes) -> array[float]:
    """Return a stored tally; older ones had fewer kinds of decisions, and fewer sums after them."""
    tally = array("d", stored)
    tally.extend([0.0] * (len(SUMS) - FORMER.get(len(tally), len(SUMS))))
    at = len(tally) - len(SUMS)
    tally[at:at] = array("d", bytes(8 * (len(empty_tally()) - len(tally))))
    return tally


class AgentSetup(NamedTuple):
    """What is fixed when an agent starts, independent of the coordinator."""

    space: str
    task: str
    uses: tuple[int, ...]
    reward_floor: float | None
    seed: int | None
    shadow: bool


@dataclass
class AgentState:
    """The state behind the next decision and the next message.

    `AgentStore` reads it from the journal and writes changes back; nothing here touches files.
    """

    # What changes with every reward, as in the journal's head:
    stream_id: int = 0  # which of the streams in the journal is in use
    settled: int = 0  # all decisions up to this one have ended
    n: int = -1  # observations that count
    round: int = 0  # the latest round that counts
    due: bool = False  # whether an epoch is due
    heard: int = 0  # decisions that have a reward, or ended, while earlier ones wait for theirs
    tally: array[float] = field(default_factory=empty_tally)
    revision: int = -1  # changes with everything below
    # The newest decision:
    last: int = 0
    last_round: int = 0
    spent: float = 0.0  # what all decisions up to it were charged with
    # What changes rarely:
    version: int = -1  # of the configuration in use; 0: a guess, -1: none yet
    share: float | None = None  # the part of delta; None: the stream is not registered yet
    excluded: int = 0  # tasks that were left out of the adopted epoch
    first_stream: int = 1  # of this start: what was decided before it does not count
    watched: int = 0  # observations of the stream that monitors have watched
    alarms: AlarmLog = field(default_factory=AlarmLog)
    before: EarlierStreams = field(default_factory=EarlierStreams)
    apart: bool = False  # whether the task has left the pool, as far as it is known here
    compares: bool = False  # whether it asks which task is odd, before it uses an epoch
    looked: int = 0  # the epoch that the task contradicts, as was found out between epochs
    compared: tuple[int, tuple[Sums, ...]] = (0, ())  # an epoch's sums without each other task
    waiting: list[KeptEpoch] = field(default_factory=list)  # epochs that are not adopted yet
    paused: str | None = None
    leased_at: float | None = None
    leased_for: float | None = None
    shared: bool = False  # whether tasks share contexts
    timed: bool = False  # whether tasks share numbers of rounds
    shadow: bool = False
    free: bool = False  # whether neither a pause, a lease nor shadow mode can hold it back
    # Decisions by their ids, to spare a look into the journal; out of date up to `settled`.
    fresh: dict[str, tuple[StoredDecision, Awaited]] = field(default_factory=dict)
    recalls: Recalls = field(default_factory=Recalls)  # what overrides of the newest need
    space: SpaceSettings = field(init=False)
    learner: Learner = field(init=False)
    account: JournalAccount = field(init=False)  # what may be spent
    stream: StreamState = field(init=False)

    @property
    def pending(self) -> int:
        """How many decisions there are from the first on that has not ended."""
        return self.last - self.settled

    @property
    def at_once(self) -> bool:
        """Whether a reward counts when it comes, whatever earlier decisions still wait for.

        Where every request has a context of its own, and delays say nothing about rewards.
        """
        space = self.space
        return space.rewards.order == "prompt" and not self.shared and space.window is None

    @property
    def is_in_doubt(self) -> bool:
        """Whether the task leaves epochs unused, as another one may be odd, and has time for it."""
        return self.stream.doubt > 0 and self.n < 2 * self.stream.doubt + PATIENCE

    @property
    def newest_epoch(self) -> int:
        """The newest epoch that was heard of, adopted or not."""
        return self.waiting[-1].epoch if self.waiting else self.stream.seen

    @property
    def gains(self) -> GainSums:
        """What the rounds of the holdback add up to, in this stream."""
        return GainSums(*self.tally[GAINS_AT])

    @gains.setter
    def gains(self, sums: GainSums) -> None:
        self.tally[GAINS_AT] = array("d", sums)

    def as_reward(self, given: Any) -> float:
        """Return a reward that the space's rules and the stated noise allow."""
        value, rules = as_number("reward", given), self.space.rewards
        if not rules.low <= value <= rules.high:
            raise InvalidValueError(
                f"reward {value:g} is not between {rules.low:g} and {rules.high:g}, as the space "
                "declares: scale rewards, or use a space with other bounds."
            )
        return as_reward(value, self.learner.reward_range)

    def whole_stream(self) -> StreamState:
        """Return the stream with what was counted since its last checkpoint."""
        sums = sums_of(self.learner.state.own)
        return replace(
            self.stream, open=self.learner.with_recent(sums) if self.learner.half else sums
        )

    def lease_left(self, now: float) -> float:
        """Return for how many seconds exploration is granted; infinite where it always is."""
        if self.leased_for is None:
            return float("inf") if self.space.lease_s is None else 0.0
        age = now - (self.leased_at or 0.0)
        return float(self.leased_for - age) if age >= 0.0 else 0.0

    def held_back(self, now: float) -> str | None:
        """Return the code of why only the baseline may be played, if so."""
        if self.version == 0 or self.share is None:
            return "no-config"
        if self.paused is not None:
            return "paused"
        if self.lease_left(now) <= 0.0:
            return "lease"
        return "shadow" if self.shadow else None

    def update_free(self) -> None:
        """Note whether anything can hold the agent back; call it after each change of that."""
        leased = self.leased_for is not None or self.space.lease_s is not None
        self.free = not leased and self.held_back(0.0) is None

    def update_level(self) -> None:
        """Use the confidence that is due; a conflict changes the data in use, as an epoch does."""
        self.update_free()
        share = UNREGISTERED if self.share is None else self.share
        self.learner.set_level(share, self.stream.sets, self.excluded)
        self.learner.monitors.set_threshold(self.share)

    def update_allowance(self) -> None:
        """Let the learner decide by what is spent, and by what may be."""
        self.learner.set_allowance(self.account.trials.most(self.space.allowance), self.spent)
        spending = self.learner.spending
        if spending is not None:
            spending.most = self.account.costs.most(spending.budget.total)

    @property
    def spending(self) -> Spending | None:
        """What was spent of the budget for costs, and what may be; None: there is none."""
        return self.learner.spending

    def asked_of_budgets(self) -> tuple[Account | None, Account | None]:
        """Return what to tell the coordinator of the account: for trials, and for costs."""
        allowance, account, spending = self.space.allowance, self.account, self.learner.spending
        trials = costs = None
        if allowance is not None:
            trials = account.asks(account.trials, allowance, self.spent)
        if spending is not None:
            costs = account.asks(account.costs, spending.budget.total, spending.spent)
        return trials, costs

    def take(self, head: Head) -> None:
        """Take over the fields of a `Head`."""
        self.stream_id, self.settled, self.n = head.stream, head.settled, head.n
        self.round, self.due, self.heard = head.round, bool(head.due), head.heard
        self.tally, self.revision = read_tally(head.tally), head.revision

    def head(self) -> tuple[Any, ...]:
        """Return the fields of a `Head`, in its order."""
        return (
            self.stream_id,
            self.settled,
            self.n,
            self.learner.own(),
            self.round,
            self.due,
            self.heard,
            self.tally.tobytes(),
            self.revision,
        )
