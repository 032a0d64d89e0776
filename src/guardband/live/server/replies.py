"""What the server answers; the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from guardband.live.protocol.messages import News, OpenEpoch, Registered, Revision, Uploaded

__all__ = [
    "AgentReply",
    "AlertReply",
    "CreatedReply",
    "Done",
    "EndedReply",
    "EntryReply",
    "EpochLine",
    "EpochReply",
    "EventLine",
    "HistoryReply",
    "MarkReply",
    "NewsReply",
    "RegisteredReply",
    "SpaceLine",
    "SpaceReply",
    "StatusReply",
    "SummaryReply",
    "TokenLine",
    "TokenReply",
    "UploadedReply",
]

Series = list[float | None]


class Reply(BaseModel):
    """What all answers are."""

    model_config = ConfigDict(frozen=True)


class StatusReply(Reply):
    """How the server is."""

    status: str


class Done(Reply):
    """It has been done."""

    done: bool = True


class EndedReply(Reply):
    """A task has ended."""

    streams: int  # that were open until now


class MarkReply(Reply):
    """Where a stream stands."""

    n: int
    version: str

    @classmethod
    def of(cls, mark: Revision | None) -> MarkReply | None:
        """Return the reply for a mark."""
        return None if mark is None else cls(n=mark.n, version=mark.version)


class OpenReply(Reply):
    """An epoch that collects contributions."""

    epoch: int
    deadline_ms: int

    @classmethod
    def of(cls, open_: OpenEpoch | None) -> OpenReply | None:
        """Return the reply for an open epoch."""
        return None if open_ is None else cls(epoch=open_.epoch, deadline_ms=open_.deadline_ms)


class CreatedReply(Reply):
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


class SpaceReply(SpaceLine):
    """A space with its settings."""

    schema_hash: str
    config: dict[str, Any]


class RegisteredReply(Reply):
    """A stream is known now."""

    stream: str
    task_index: int
    delta_share: float
    agents: int
    config: dict[str, Any]
    config_version: int
    epoch: int

    @classmethod
    def of(cls, said: Registered) -> RegisteredReply:
        """Return the reply for a message."""
        return cls(**vars(said))


class UploadedReply(Reply):
    """A total is stored durably."""

    n: int
    version: str
    epoch: int
    open: OpenReply | None
    config_version: int

    @classmethod
    def of(cls, said: Uploaded) -> UploadedReply:
        """Return the reply for a message."""
        return cls(
            n=said.revision.n,
            version=said.revision.version,
            epoch=said.epoch,
            open=OpenReply.of(said.open),
            config_version=said.config_version,
        )


class NewsReply(Reply):
    """The newest closed epoch, the open one, and the switches; gram is null without a sum."""

    epoch: int
    n: int
    gram: list[float] | None
    surprise: float
    weight: float
    own: MarkReply | None
    round: int
    streams: int
    agents: int
    open: OpenReply | None
    config_version: int
    config: dict[str, Any] | None
    explore_for_s: float | None
    paused: str | None
    excluded: int

    @classmethod
    def of(cls, said: News) -> NewsReply:
        """Return the reply for a message."""
        total = said.total
        return cls(
            epoch=said.epoch,
            n=0 if total is None else total.n,
            gram=None if total is None else total.gram.tolist(),
            surprise=0.0 if total is None else total.surprise,
            weight=0.0 if total is None else total.weight,
            own=MarkReply.of(said.own),
            round=said.round,
            streams=said.streams,
            agents=said.agents,
            open=OpenReply.of(said.open),
            config_version=said.config_version,
            config=said.config,
            explore_for_s=said.explore_for_s,
            paused=said.paused,
            excluded=said.excluded,
        )


class EntryReply(Reply):
    """A stream's part of an epoch."""

    stream: str
    task: str
    n: int
    version: str


class EpochReply(Reply):
    """A closed epoch; gram is null where too few tasks are in it for its sum to be served."""

    epoch: int
    manifest: list[EntryReply]
    n: int
    gram: list[float] | None
    surprise: float
    weight: float
    sha256: str | None


class TokenLine(Reply):
    """What is known of a token; its secret is not."""

    id: str
    role: str
    space: str | None
    task: str | None
    note: str
    created: float


class TokenReply(TokenLine):
    """A new token; this is the only time that it is shown."""

    token: str


class AlertReply(Reply):
    """One thing to look at."""

    id: str
    severity: str
    task: str | None
    text: str
    remedy: str
    runbook: str  # where the documentation says more
    since: float


class AgentReply(Reply):
    """How a task fares: counters and sums over its streams, gauges of one open stream."""

    task: str
    index: int
    uses: list[int]
    state: Annotated[
        str,
        Field(description="ok, conservative, stale, paused, shadow, quarantined, retracted, ended"),
    ]
    streams: int
    last_seen_s: float | None
    epoch: int | None
    epoch_lag: int | None
    lease_s: float | None
    alpha: float
    n: int
    counters: dict[str, int]
    sums: dict[str, float]
    gauges: dict[str, float]
    reasons: dict[str, int]
    why: str
    theta: list[float]
    halfwidth: list[float]
    lead_mean: float | None
    lead_halfwidth: float | None
    heterogeneity: float | None


class EpochLine(Reply):
    """An epoch in a list."""

    epoch: int
    closed_at: float
    opened_by: str | None
    streams_in: int
    streams_late: int
    duration_ms: float
    n: int
    logdet: float | None


class EventLine(Reply):
    """Something that happened."""

    seq: int
    at: float
    who: str
    what: str
    detail: Any


class ThetaReply(Reply):
    """The shared parameter, as the newest epoch has it."""

    names: list[str]
    mean: list[float]
    halfwidth: list[float]


class SummaryReply(Reply):
    """Everything that a page about a space needs."""

    space: str
    now: float
    paused: str | None
    config_version: int
    config: dict[str, Any]
    epoch: int
    epoch_age_s: float | None
    open: OpenReply | None
    delta: float
    delta_spent: float
    lead_mean: float | None = Field(
        description="reward minus floor over all agents that report their baseline's reward"
    )
    lead_halfwidth: float | None
    alerts: list[AlertReply]
    agents: list[AgentReply]
    epochs: list[EpochLine]
    events: list[EventLine]
    theta: ThetaReply | None


class TaskHistory(Reply):
    """A task over time; null where nothing is known."""

    reward_mean: Series
    floor_mean: Series
    conservative: Series
    margin_min: Series
    margin_p05: Series
    beta: Series
    n: Series


class HistoryReply(Reply):
    """Samples of a space over time."""

    t: list[float]
    agents: dict[str, TaskHistory]
