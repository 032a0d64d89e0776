"""What clients may send: exact types, bounded lengths, nothing beside.

Strict models: "1" is not a number, true neither; NaN and infinity are refused; a field that is not
known is an error and not ignored. JSON has one kind of number: 3.0 is 3, as OpenAPI has it, too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from guardband.live.protocol.messages import Checkpoint, Register, Report, Revision, Upload
from guardband.live.protocol.space import ALGORITHMS, MAX_DIM, PROFILES, TRIGGERS, SpaceSettings
from guardband.live.protocol.sums import Sums, packed_size

__all__ = [
    "ConfigureBody",
    "MarkBody",
    "Name",
    "ReasonBody",
    "RegisterBody",
    "ReportBody",
    "SpaceBody",
    "StreamId",
    "TokenBody",
    "UploadBody",
]

MOST = 2**53  # whole numbers up to here are exact in float64


def _as_whole(value: Any) -> Any:
    """Return 3 for 3.0, and everything else as it is."""
    exact = type(value) is float and value.is_integer() and abs(value) <= MOST
    return int(value) if exact else value


WHOLE = BeforeValidator(_as_whole)  # comes last, or the bounds before it are not documented
Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", min_length=1, max_length=64),
]
StreamId = Annotated[
    str,
    Field(
        pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        min_length=36,
        max_length=36,
    ),
]
Version = Annotated[str, Field(pattern=r"^([0-9a-f]{32})?$", max_length=32)]
Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$", min_length=1, max_length=40)]
# No control characters: they have no place in a name, and PostgreSQL refuses U+0000.
Words = Annotated[str, Field(pattern=r"^[^\u0000-\u001f\u007f]*$", max_length=500)]
Feature = Annotated[str, Field(pattern=r"^[^\u0000-\u001f\u007f]+$", min_length=1, max_length=64)]
Note = Annotated[Words, Field(max_length=200)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", min_length=64, max_length=64)]
Whole = Annotated[int, Field(ge=0, le=MOST), WHOLE]
Indices = list[Annotated[int, Field(ge=0, lt=MAX_DIM), WHOLE]]
Positive = Annotated[float, Field(gt=1e-100, lt=1e100)]
Modest = Annotated[float, Field(gt=-1e100, lt=1e100)]  # its square is a number, too
Seconds = Annotated[float, Field(gt=1e-100, le=1e9)]
Share = Annotated[float, Field(gt=0, le=1)]
UNIQUE = {"uniqueItems": True}
CLOSED = {"additionalProperties": False}  # keys that do not fit are refused; say so
Counters = Annotated[dict[Key, Whole], Field(max_length=64, json_schema_extra=CLOSED)]
Reals = Annotated[dict[Key, float], Field(max_length=64, json_schema_extra=CLOSED)]
Numbers = Annotated[list[float], Field(max_length=MAX_DIM)]


class Strict(BaseModel):
    """The strictness that every body has."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class MarkBody(Strict):
    """Where a stream stands."""

    n: Whole
    version: Version

    def revision(self) -> Revision:
        """Return the message."""
        return Revision(self.n, self.version)


class ContinueBody(MarkBody):
    """A sealed stream whose unsent rest the new one takes."""

    stream: StreamId


class RegisterBody(Strict):
    """A stream introduces itself."""

    stream: StreamId
    task: Name
    schema_hash: Digest
    uses: Annotated[Indices, Field(min_length=1, max_length=MAX_DIM, json_schema_extra=UNIQUE)]
    library: Annotated[Words, Field(max_length=64)]
    continue_of: ContinueBody | None = None

    def message(self) -> Register:
        """Return the message."""
        old = self.continue_of
        return Register(
            stream=self.stream,
            task=self.task,
            schema_hash=self.schema_hash,
            uses=tuple(self.uses),
            library=self.library,
            continue_of=None if old is None else (old.stream, old.revision()),
        )


class StateBody(Strict):
    """What an agent is at, for people."""

    mode: Annotated[Words, Field(max_length=40)] = "running"
    why: Words = ""
    theta: Numbers = []
    halfwidth: Numbers = []
    uses: Annotated[Indices, Field(max_length=MAX_DIM)] = []


class ReportBody(Strict):
    """How an agent fares."""

    counters: Counters = {}
    sums: Reals = {}
    gauges: Reals = {}
    reasons: Counters = {}
    state: StateBody = StateBody()

    def message(self) -> Report:
        """Return the message."""
        return Report(
            counters=dict(self.counters),
            sums=dict(self.sums),
            gauges=dict(self.gauges),
            reasons=dict(self.reasons),
            state=self.state.model_dump(exclude_unset=True),
        )


class UploadBody(Strict):
    """A stream's total, on top of what the coordinator is believed to hold."""

    base: MarkBody
    n: Whole
    version: Version
    gram: Annotated[list[float], Field(min_length=3, max_length=packed_size(MAX_DIM))]
    surprise: float
    weight: float
    round: Whole = 0
    for_epoch: Whole | None = None
    trigger: bool = False
    seen_epoch: Whole = 0
    report: ReportBody = ReportBody()

    def message(self) -> Upload:
        """Return the message."""
        total = Sums(self.n, np.array(self.gram, float), float(self.surprise), float(self.weight))
        return Upload(
            base=self.base.revision(),
            checkpoint=Checkpoint(self.version, total, self.round),
            for_epoch=self.for_epoch,
            trigger=self.trigger,
            seen_epoch=self.seen_epoch,
            report=self.report.message(),
        )


class SyncBody(Strict):
    """When agents pool; see `guardband.live.protocol.space.Sync`."""

    trigger: Literal[TRIGGERS] = "anytime"  # type: ignore[valid-type]
    budget: Positive = 10.0
    growth: Positive = 1.0
    interval_s: Positive = 60.0
    deadline_s: Seconds = 2.0
    min_interval_s: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    min_batch: Annotated[int, Field(ge=1, le=MOST), WHOLE] = 1
    min_streams: Annotated[int, Field(ge=1, le=100_000), WHOLE] = 1
    live_s: Seconds = 75.0


class RewardsBody(Strict):
    """Which rewards are possible; see `guardband.live.protocol.space.Rewards`."""

    low: Modest = 0.0
    high: Modest = 1.0
    window_s: Seconds = 600.0
    default: Modest = 0.0
    order: Literal["window", "prompt"] = "window"
    silence: Literal["missing", "default"] = "missing"


class SpaceBody(Strict):
    """One shared parameter and its rules; see `guardband.live.protocol.space.Space`."""

    name: Name
    features: Annotated[
        list[Feature], Field(min_length=1, max_length=MAX_DIM, json_schema_extra=UNIQUE)
    ]
    agents: Annotated[int, Field(ge=1, le=100_000), WHOLE]
    contexts: Literal["shared", "per-request"] = "shared"
    alpha: Share = 0.1
    alphas: Annotated[dict[Name, Share], Field(max_length=1_000, json_schema_extra=CLOSED)] = {}
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-3
    noise: Positive = 1.0
    theta_bound: Positive = 1.0
    feature_bound: Positive = 1.0
    spread: Annotated[float, Field(ge=0, lt=1e100)] | None = None
    ridge: Positive | None = None
    mode: Literal["strict", "policy"] = "strict"
    algorithm: Literal[tuple(ALGORITHMS)] = "guard-ucb"  # type: ignore[valid-type]
    shares: Literal["registered", "equal"] = "registered"
    baseline: Annotated[Words, Field(max_length=200)] = "baseline"
    lease_s: Seconds | None = None
    profile: Literal[tuple(PROFILES)] = "platform"  # type: ignore[valid-type]
    sync: SyncBody = SyncBody()
    rewards: RewardsBody = RewardsBody()

    def space(self) -> SpaceSettings:
        """Return the space; ValueError where its parts do not fit together."""
        given: dict[str, Any] = self.model_dump(exclude_unset=True, exclude={"config_version"})
        try:
            return SpaceSettings.from_json(given)
        except (TypeError, ArithmeticError) as error:
            raise ValueError(str(error)) from None


class ConfigureBody(SpaceBody):
    """All settings of a space, for those that were read with its `config_version`."""

    config_version: Annotated[
        Whole | None,
        Field(description="as it was read: refused (409) where somebody has changed it since"),
    ] = None


class ReasonBody(Strict):
    """Why somebody does something, for the audit."""

    reason: Words = ""


class AgentTokenBody(Strict):
    """A token of an agent, which is bound to a space and a task."""

    role: Literal["agent"]
    space: Name
    task: Name
    note: Note = ""


class PersonTokenBody(Strict):
    """A token of a person or a tool, for one space or for all."""

    role: Literal["admin", "viewer"]
    space: Name | None = None
    note: Note = ""


def _whose(body: Any) -> str:
    return "agent" if isinstance(body, dict) and body.get("role") == "agent" else "person"


TokenBody = Annotated[
    Annotated[AgentTokenBody, Tag("agent")] | Annotated[PersonTokenBody, Tag("person")],
    Discriminator(_whose),
]
