"""What the server answers to operators and tools; agents get the messages of the protocol."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from guardband.live.protocol.messages import OpenEpoch
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.types import Reply

__all__ = [
    "AcknowledgedReply",
    "AgentReply",
    "AlarmLine",
    "AlertReply",
    "AnswerReply",
    "Done",
    "EndedReply",
    "EpochLine",
    "EventLine",
    "HistoryReply",
    "LookedAtReply",
    "StatusReply",
    "SummaryReply",
    "TokenLine",
    "TokenReply",
]

Series = list[float | None]


class StatusReply(Reply):
    """Whether the server is up."""

    status: str


class Done(Reply):
    """It is done."""

    done: bool = True


class EndedReply(Reply):
    """A task has ended."""

    streams: int  # that were open until now


class LookedAtReply(Reply):
    """A person has looked at the alarms of a task."""

    alarms: int  # that were news until now


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


class AcknowledgedReply(Reply):
    """Who has seen an alert, and when."""

    by: str
    at: float
    reason: str


class AlertReply(Reply):
    """One thing to look at."""

    id: str
    severity: str
    task: str | None
    text: str
    remedy: str
    runbook: str  # where the documentation says more
    since: float
    acknowledged: AcknowledgedReply | None = None  # null: nobody has seen it yet


class UpliftReply(Reply):
    """What choices earn over the baseline per round, with an interval that holds at all times."""

    mean: float
    low: float
    high: float
    rounds: int


class AlarmLine(Reply):
    """Something that a task's monitors noticed."""

    kind: Annotated[str, Field(description="assumptions, certificates or fit")]
    round: Annotated[int, Field(description="after how many of the agent's decisions")]
    evidence: Annotated[float, Field(description="log of the e-value")]
    since: float
    looked_at: Annotated[float | None, Field(description="when a person has; null: nobody")]
    looked_by: str | None


class AgentReply(Reply):
    """How a task is doing: counters and sums over its streams, gauges of one open stream."""

    task: str
    index: int
    uses: list[int]
    state: Annotated[
        str,
        Field(
            description="ok, conservative, stale, paused, shadow, quarantined, retracted, ended; "
            "apart (it does not fit) or anew (it started again): not in the pool"
        ),
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
    outlook: str
    theta: list[float]
    halfwidth: list[float]
    lead_mean: float | None
    lead_halfwidth: float | None
    uplift: UpliftReply | None
    heterogeneity: float | None
    alarms: list[AlarmLine]
    unjudged: Annotated[
        str | None, Field(description="why its rewards are not compared with its floor")
    ] = None
    notes: list[str] = Field(default_factory=list, description="what else there is to say of it")
    uplift_text: Annotated[str, Field(description="what its holdback measured, in words")] = ""


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


class ReasonReply(Reply):
    """What a reason code says."""

    text: str
    remedy: str


class AnswerReply(Reply):
    """The answer to a question that operators have."""

    question: str
    level: Annotated[str, Field(description="good, wait, look or bad")]
    word: str
    figure: str
    text: str


class SummaryReply(Reply):
    """Everything that a page about a space needs."""

    space: str
    now: float
    paused: str | None
    config_version: int
    config: SpaceSettings
    epoch: int
    epoch_age_s: float | None
    open: OpenEpoch | None
    delta: float
    delta_spent: float
    lead_mean: float | None = Field(
        description="reward minus floor over all agents that report their baseline's reward"
    )
    lead_halfwidth: float | None
    uplift: UpliftReply | None = Field(
        description="what the choices of all agents earn over the baseline, where a holdback "
        "measures it"
    )
    alerts: list[AlertReply]
    answers: list[AnswerReply] = Field(
        default_factory=list, description="is it safe, does it earn, does it learn, does it run"
    )
    agents: list[AgentReply]
    reasons: dict[str, ReasonReply]  # why agents hold back, by the codes in `agents`
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
