"""The messages between agents and a coordinator: one definition for every transport.

Client, server, OpenAPI and command line use these classes. What is read from outside is checked
strictly; what is built in Python from parts that were checked is not checked again.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from guardband.errors import GuardbandError
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.sums import Sums
from guardband.live.protocol.types import (
    UNIQUE,
    Counters,
    Digest,
    Indices,
    Message,
    Name,
    NotNegative,
    Numbers,
    Reals,
    ReasonCode,
    Reply,
    StreamId,
    Text,
    Version,
    Whole,
    as_object,
)

__all__ = [
    "KINDS",
    "LONGEST_RECORD",
    "MOST_REPLACED",
    "NOTHING",
    "Account",
    "AgentStatus",
    "AlarmKept",
    "AlarmKind",
    "Alarmed",
    "Begin",
    "Checkpoint",
    "Continuation",
    "EpochRecord",
    "Left",
    "LookedAtRecord",
    "ManifestLine",
    "News",
    "OpenEpoch",
    "RecordKept",
    "Refused",
    "Register",
    "Registered",
    "Report",
    "Revision",
    "SpaceInfo",
    "SpaceLine",
    "SpaceSaved",
    "Upload",
    "Uploaded",
]

KINDS = ("learned", "explored", "baseline", "trial")  # of decisions, as reports count them
LONGEST_RECORD = 2**25  # bytes of a record of rows that were looked at: 4 million, or 1 with ids
MOST_REPLACED = 4096  # streams that one replaces, by name: more do not fit into a request
# How an agent is to go on where the pool is not the one that its stream began for: with all data of
# its start at declared weights, which rest on nobody's data, or with nothing.
Begin = Literal["", "declared", "nothing"]
AlarmKind = Literal["assumptions", "certificates", "fit"]
Left = Literal["", "anew", "fit"]  # why a task left the pool: an alarm, or it does not fit
# What a report computes from observations, beside its sums.
ESTIMATES = ("theta", "halfwidth", "outlook")
FIGURES = (
    "beta",
    "budget_left",
    "cost_left",
    "lambda_min",
    "lambda_required",
    "logdet",
    "margin_min",
    "margin_p05",
    "own_n",
    "residual_ratio",
    "reused",
    "stuck",
)


@as_object
class Revision(NamedTuple):
    """Where a stream stands: n observations, and the random name of that state (an ETag)."""

    n: Whole
    version: Version  # 32 hex digits, drawn when the checkpoint was taken; "" where n = 0


NOTHING = Revision(0, "")


@as_object
class Checkpoint(NamedTuple):
    """A stream's sums over its first n observations, which never change under their version."""

    version: Version
    sums: Sums
    round: Whole = 0  # the latest round that it contains, where agents share contexts; else 0

    @property
    def revision(self) -> Revision:
        """(n, version)."""
        return Revision(self.sums.n, self.version)


@as_object
class Continuation(NamedTuple):
    """A sealed stream, and the revision after which another stream takes over its data."""

    stream: StreamId
    revision: Revision


@as_object
class Account(NamedTuple):
    """What a journal may spend of a budget of its task, whatever streams it has."""

    name: StreamId  # made by the client; a copy of its journal gets another
    granted: NotNegative = 0.0  # what it was granted so far
    wants_more: bool = False  # it has spent half of that


@as_object
class OpenEpoch(NamedTuple):
    """An epoch that collects contributions."""

    epoch: int
    deadline_ms: int  # from now


@as_object
class ManifestLine(NamedTuple):
    """One stream's part in an epoch."""

    stream: str
    task: str
    n: int
    version: str


class Register(Message):
    """Registers a stream with its task and features."""

    stream: StreamId  # made by the client, kept in its state directory
    task: Name
    schema_hash: Digest
    uses: Annotated[Indices, Field(min_length=1, json_schema_extra=UNIQUE)]  # the task's features
    library: Annotated[Text, Field(max_length=64)]  # the version of guardband
    continue_of: Continuation | None = None
    account: Account | None = None  # for trials, or exploration
    costs: Account | None = None  # for what plays cost
    log: Digest | None = None  # of rows of logs that the stream is about to learn
    # The streams of starts that are over, oldest first: their data leave the pool, and it has the
    # place of the last one.
    replaces: Annotated[tuple[StreamId, ...], Field(strict=False, max_length=MOST_REPLACED)] = ()
    pool: Whole | None = None  # for which it began; null: it has counted nothing yet
    left: Left = ""  # why its task leaves the pool


class Registered(Reply):
    """The answer to `Register`."""

    stream: str
    task_index: int  # i = 1, 2, ...: the order in which tasks registered
    delta_share: float  # w_k: the part of delta that is this stream's, the k-th to register
    agents: int  # M, as the algorithm shall use it
    config: SpaceSettings
    config_version: int
    epoch: int
    granted: float = 0.0  # what the account may spend on trials, or exploration, in all
    granted_costs: float = 0.0  # and on what plays cost
    pool: int = 0  # the number of the pool
    begin: Begin = ""  # how the stream's agent must go on, where that is not its pool
    apart: bool = False  # its task has left the pool


class Alarmed(Message):
    """Something that an agent's monitors noticed; it may be told again."""

    raised_in: StreamId  # the stream that was in use
    kind: AlarmKind
    round: Whole  # after how many of the agent's decisions
    evidence: float  # log of the e-value
    looked_at: bool = False  # somebody has said so to the agent


class AlarmKept(Reply):
    """The answer to `Alarmed`: whether a person has looked at it."""

    looked_at: bool


class AgentStatus(Message):
    """What an agent is doing, and its estimate, for display."""

    mode: Annotated[Text, Field(max_length=40)] = "running"
    reason: ReasonCode = ""  # of its newest decision, or why it may play the baseline only
    theta: Numbers = ()
    halfwidth: Numbers = ()
    uses: Indices = ()
    outlook: Text = ""  # whether it will leave the baseline, and what would help


class Report(Message):
    """How an agent is doing: counters and sums since its stream began, gauges of now.

    Reports are for display; no decision depends on them.
    """

    counters: Counters = Field(default_factory=dict)
    sums: Reals = Field(default_factory=dict)
    gauges: Reals = Field(default_factory=dict)
    reasons: Counters = Field(default_factory=dict)  # why it was conservative, by reason code
    state: AgentStatus = Field(default_factory=AgentStatus)

    @property
    def counted(self) -> float | None:
        """Over how many observations its figures are taken."""
        return self.gauges.get("own_n")

    def with_figures_of(self, other: Report) -> Report:
        """Return the report with the other's figures: all that is computed from observations."""
        gauges = {k: v for k, v in self.gauges.items() if k not in FIGURES}
        figures = {k: v for k, v in other.gauges.items() if k in FIGURES}
        estimates = {name: getattr(other.state, name) for name in ESTIMATES}
        return self.model_copy(
            update={
                "sums": other.sums,
                "gauges": {**gauges, **figures},
                "state": self.state.model_copy(update=estimates),
            }
        )


class Upload(Message):
    """A checkpoint, on top of what the coordinator is believed to hold."""

    base: Revision
    checkpoint: Checkpoint
    for_epoch: Whole | None = None  # the checkpoint is the stream's contribution to this epoch
    trigger: bool = False  # asks the coordinator to open an epoch
    seen_epoch: Whole = 0  # the newest epoch this client has ever seen
    report: Report = Field(default_factory=Report)


class Uploaded(Reply):
    """The answer to `Upload`: the checkpoint is stored durably."""

    revision: Revision
    epoch: int  # the newest closed one
    open: OpenEpoch | None
    config_version: int


class News(Reply):
    """What an agent learns from a poll: the newest closed epoch, the open one, the switches."""

    epoch: int
    sums: Sums | None  # null: nothing newer than asked for, or too few streams to be served
    own: Revision | None  # this stream's entry in that epoch; null: it has none
    round: int  # the latest round that the epoch contains, where contexts are shared
    streams: int
    agents: int  # M, as the algorithm shall use it
    open: OpenEpoch | None
    config_version: int
    config: SpaceSettings | None  # where config_version is news to the asker
    explore_for_s: float | None  # seconds of exploration granted from now; null: no limit
    paused: str | None  # the reason, while learning is paused
    excluded: int = 0  # tasks that were left out, perhaps because of their rewards
    # The sums without each other task that has a part in them, by the tasks' names, where one of
    # them may lie; null: they are not told.
    without: tuple[Sums, ...] | None = None
    pool: int = 0  # the number of the pool; it grows when a task leaves
    begin: Begin = ""  # how the stream's agent must go on, where that is not its pool
    apart: bool = False  # its task has left the pool: no sums are told


class SpaceSaved(Reply):
    """A space exists now, or has changed."""

    space: str
    schema_hash: str
    config_version: int


class SpaceLine(Reply):
    """A space in a list."""

    space: str
    config_version: int
    epoch: int
    tasks: int
    paused: str | None


class SpaceInfo(SpaceLine):
    """A space with its settings."""

    schema_hash: str
    config: SpaceSettings


class EpochRecord(Reply):
    """A closed epoch, which never changes: which streams are in it with what, and their sum."""

    epoch: int
    manifest: tuple[ManifestLine, ...]  # in the order of the streams' names
    n: int
    sums: Sums | None  # null: too few tasks are in it to be served
    sha256: str | None  # the digest of the sums
    streams_in: int
    streams_late: int


class LookedAtRecord(Message):
    """Rows of logs that were looked at when a space's settings were chosen, as base64."""

    record: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=LONGEST_RECORD * 4 // 3 + 4)
    ]


class RecordKept(Reply):
    """A record is kept; `looked_at` of a space's settings may name it."""

    sha256: str


class Refused(GuardbandError):  # noqa: N818 - an answer, not an error of the program
    """The coordinator refuses a request; the message says why.

    Parameters
    ----------
    code
        Stable and short, such as "revision_conflict".
    status
        The HTTP status that fits.
    detail
        A sentence with the value seen and the remedy.
    **more
        Fields for programs, such as stored={"n": .., "version": ..}.
    """

    def __init__(self, code: str, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.status, self.detail, self.more = code, status, detail, more

    @property
    def by_store(self) -> bool:
        """Whether the store could not do it: then nothing of the transaction may be kept."""
        return self.code == "store_unavailable"
