"""What agents and the coordinator say to each other; plain data, the same on every transport."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from guardband.errors import GuardbandError
from guardband.live.protocol.sums import Sums

__all__ = [
    "KINDS",
    "Checkpoint",
    "EpochRecord",
    "ManifestLine",
    "News",
    "OpenEpoch",
    "Refused",
    "Register",
    "Registered",
    "Report",
    "Revision",
    "Upload",
    "Uploaded",
]

KINDS = ("learned", "explored", "baseline")  # of decisions, as reports count them


class Revision(NamedTuple):
    """Where a stream stands: n observations, and the random name of that state (an ETag)."""

    n: int
    version: str  # 32 hex digits, drawn when the cut was taken; "" with n = 0: nothing yet


class Checkpoint(NamedTuple):
    """A stream's total after its first n observations, fixed for ever under a version."""

    version: str
    total: Sums
    round: int  # the latest round that it contains, where agents share contexts; else 0

    @property
    def revision(self) -> Revision:
        """(n, version)."""
        return Revision(self.total.n, self.version)


@dataclass(frozen=True, kw_only=True)
class Register:
    """A stream introduces itself."""

    stream: str  # UUID, made by the client, kept in its state directory
    task: str
    schema_hash: str
    uses: tuple[int, ...]  # the features that the task uses
    library: str  # version of guardband
    continue_of: tuple[str, Revision] | None = (
        None  # a sealed stream whose unsent rest this one takes
    )


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The coordinator's answer."""

    stream: str
    task_index: int  # i = 1, 2, ...: the order in which tasks registered
    delta_share: float  # w_k: the part of delta that is this stream's, the k-th to register
    agents: int  # M, as the algorithm shall use it
    config: dict[str, Any]  # the space, see Space.as_json
    config_version: int
    epoch: int


# What tells of observations in a report, beside its sums.
ESTIMATES = ("theta", "halfwidth")
FIGURES = (
    "beta",
    "lambda_min",
    "lambda_required",
    "logdet",
    "margin_min",
    "margin_p05",
    "own_n",
    "residual_ratio",
)


@dataclass(frozen=True, kw_only=True)
class Report:
    """How an agent fares: counters and sums since its stream began, gauges of now.

    Everything here is for people; nothing of it enters a decision.
    """

    counters: dict[str, int] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)  # why it was conservative
    state: dict[str, Any] = field(default_factory=dict)  # theta, widths, what it waits for

    @property
    def counted(self) -> float | None:
        """Over how many observations its figures are taken."""
        return self.gauges.get("own_n")

    def with_figures_of(self, other: Report) -> Report:
        """Return the report with the other's figures: all that is computed from observations."""
        gauges = {k: v for k, v in self.gauges.items() if k not in FIGURES}
        figures = {k: v for k, v in other.gauges.items() if k in FIGURES}
        state = {k: v for k, v in self.state.items() if k not in ESTIMATES}
        estimates = {k: v for k, v in other.state.items() if k in ESTIMATES}
        return replace(
            self, sums=other.sums, gauges={**gauges, **figures}, state={**state, **estimates}
        )


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A cut, on top of what the coordinator is believed to hold."""

    base: Revision
    checkpoint: Checkpoint
    for_epoch: int | None = None  # this cut is the stream's contribution to that open epoch
    trigger: bool = False  # please open an epoch
    seen_epoch: int = 0  # the newest epoch this client has ever seen
    report: Report = field(default_factory=Report)


class OpenEpoch(NamedTuple):
    """An epoch that collects contributions."""

    epoch: int
    deadline_ms: int  # from now


@dataclass(frozen=True, kw_only=True)
class Uploaded:
    """The cut is stored durably."""

    revision: Revision
    epoch: int  # the newest closed one
    open: OpenEpoch | None
    config_version: int


@dataclass(frozen=True, kw_only=True)
class News:
    """What an agent learns from a poll: the newest closed epoch, the open one, the switches."""

    epoch: int
    total: Sums | None  # None: nothing newer than asked for, or too few streams to be served
    own: Revision | None  # this stream's entry in that epoch; None: it has none
    round: int  # the latest round that the epoch contains, where contexts are shared
    streams: int
    agents: int  # M, as the algorithm shall use it
    open: OpenEpoch | None
    config_version: int
    config: dict[str, Any] | None  # the space, where config_version is news to the asker
    explore_for_s: float | None  # seconds of exploration granted from now; None: no limit
    paused: str | None  # the reason, while learning is paused
    excluded: int = 0  # tasks that people quarantined, perhaps by looking at their rewards


class ManifestLine(NamedTuple):
    """One stream's part in an epoch."""

    stream: str
    task: str
    n: int
    version: str


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """A closed epoch, for good."""

    space: str
    epoch: int
    manifest: tuple[ManifestLine, ...]  # in the order of the streams' names
    n: int
    total: Sums | None  # None: too few tasks are in it to be served
    sha256: str
    round: int
    opened_by: str
    opened_at: float
    closed_at: float
    streams_in: int
    streams_late: int


class Refused(GuardbandError):  # noqa: N818 - an answer, not an error of the program
    """The coordinator says no, and why.

    Parameters
    ----------
    code
        Stable and short, such as "chain_conflict".
    status
        The HTTP status that fits.
    detail
        A sentence for people, with the value seen and the remedy.
    **more
        Fields for programs, such as stored={"n": .., "version": ..}.
    """

    def __init__(self, code: str, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code, self.status, self.detail, self.more = code, status, detail, more
