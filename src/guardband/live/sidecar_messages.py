"""The messages of the sidecar: what programs in other languages send to an agent, and hear."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from guardband.live.protocol.types import (
    LARGEST_DIM,
    Count,
    FeatureName,
    Message,
    Modest,
    Text,
    Whole,
)

__all__ = [
    "Accepted",
    "AlarmReply",
    "ChoiceReply",
    "DecideBody",
    "DecisionReply",
    "DiscardBody",
    "OverrideBody",
    "Readiness",
    "RewardBody",
    "SidecarHealth",
]

Row = Annotated[list[Modest], Field(min_length=1, max_length=LARGEST_DIM)]
Menu = Annotated[list[Row], Field(min_length=1, max_length=100_000)]
Cell = str | bool | int | Modest | Annotated[list[Modest], Field(max_length=LARGEST_DIM)] | None
NamedRow = Annotated[dict[FeatureName, Cell], Field(min_length=1, max_length=LARGEST_DIM)]
NamedMenu = Annotated[list[NamedRow], Field(min_length=1, max_length=100_000)]
Label = Whole | Annotated[Text, Field(min_length=1, max_length=200)]
Ident = Annotated[Text, Field(min_length=1, max_length=200)]


class DecideBody(Message):
    """One round's offer."""

    features: Annotated[
        Menu | NamedMenu,
        Field(
            description="one row per action: numbers, or by name where the space has named features"
        ),
    ]
    baseline: Annotated[
        Label, Field(description="the row that the baseline would play, or with labels its label")
    ]
    labels: Annotated[
        list[Label] | None, Field(max_length=100_000, description="one per action")
    ] = None
    baseline_reward: Annotated[
        float | None, Field(description="the baseline's expected reward, where it is known")
    ] = None
    support: Annotated[
        list[Menu] | None, Field(description="features in each possible context")
    ] = None
    weights: Annotated[list[float] | None, Field(description="the contexts' chances")] = None
    covariance: Annotated[
        list[list[Row]] | None, Field(description="of the features' difference, by action")
    ] = None
    value: Annotated[
        list[float] | None,
        Field(max_length=100_000, description="what each action is worth to the caller"),
    ] = None
    cost: Annotated[
        list[float] | None,
        Field(max_length=100_000, description="what each action costs, paid from the budget"),
    ] = None
    round: Annotated[
        Count | None,
        Field(description="where tasks share contexts: the number of the round"),
    ] = None


class RewardBody(Message):
    """The reward of a decision."""

    id: Ident
    reward: float
    cost: Annotated[
        float | None, Field(description="what it cost, where that is only known afterwards")
    ] = None


class DiscardBody(Message):
    """A decision that does not count, for a cause that has nothing to do with its reward."""

    id: Ident
    discard: Annotated[Text, Field(min_length=1, description="why")]


class OverrideBody(Message):
    """Another action than the one decided was played, by somebody who saw the features alone."""

    id: Ident
    action: Annotated[Whole, Field(description="the row of what was played")]


class ChoiceReply(BaseModel):
    """A certified action; see `gb.Decision.choices`."""

    action: int
    lower: float | None
    margin: float | None
    value: float | None


class DecisionReply(BaseModel):
    """What to play, why, and what is promised; see `gb.Decision`."""

    id: str
    action: int
    kind: Literal["learned", "explored", "trial", "baseline"]
    reason: str
    mean: float | None
    lower: float | None
    upper: float | None
    floor: float | None
    propensity: float
    margin: float | None
    promise: str
    certificate: str
    certified: list[bool]
    choices: Annotated[list[ChoiceReply], Field(description="the certified actions, best first")]
    label: int | str | None
    budget_left: float | None
    cost: float | None
    cost_left: float | None


class Accepted(BaseModel):
    """The reward, the discard or the override is in the journal."""

    id: str
    status: Literal["kept", "discarded", "overridden"]


class AlarmReply(BaseModel):
    """Something that monitors noticed; see `gb.Alarm`."""

    kind: str
    round: int
    evidence: float


class SidecarHealth(BaseModel):
    """How the agent is doing."""

    status: Literal["ok"]
    space: str
    task: str
    mode: str
    decisions: int
    pending: int
    counted: Annotated[int, Field(description="observations in the stream in use")]
    counted_before: Annotated[int, Field(description="in streams before it, which it has not")]
    epoch: int
    trouble: str | None
    apart: Annotated[bool, Field(description="its task has left the pool")]
    noticed: Annotated[bool, Field(description="there are alarms that nobody has looked at")]
    alarms: list[AlarmReply]
    watched: Annotated[list[str], Field(description="the kinds of alarms that there can be")]
    followed: Annotated[
        list[int], Field(description="after which decisions it started anew because its pool did")
    ]


class Readiness(BaseModel):
    """The agent is at full speed."""

    status: Literal["full speed"]
