"""What a live system must not do, done on purpose to large samples; the alarms must see it.

Data are drawn in blocks, one for each epoch, and go through the real coordinator: its checks, its
epochs, the learner's own radius. Only the order of single rounds is left out, which is what makes a
quarter of a million observations a run affordable.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from live.look import row_of
from live.memory_store import MemoryStore
from live.statistics.crowd import DIM, HALF, NOISE, THETA, distance, nothing, space_for

from guardband.agent.records import Request
from guardband.kernels.types import Floats
from guardband.live.client.learner import Learner
from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.protocol.messages import Checkpoint, Refused, Register, Revision, Upload
from guardband.live.protocol.sums import Sums, add_sums, empty_sums, upper_places
from guardband.live.server.alerts import SpaceFacts, TaskFacts, alerts_of

__all__ = ["Block", "Control", "Outcome", "honest", "play", "total_from"]

EMPTY: Any = np.zeros((0, 0, 0))


class Block(NamedTuple):
    """What one agent saw between two epochs."""

    number: int  # of the epoch, from 0
    x: Floats  # (n, d)
    y: Floats  # (n,)
    noise: Floats  # (n,): y without its expectation
    guess: Floats  # (n,): the reward predicted before it was seen
    weight: float
    rng: np.random.Generator


class Sent(NamedTuple):
    """What an agent adds to its total, and how many rewards it reports as missing."""

    more: Sums
    lost: int = 0


def total_from(block: Block, keep: Any = slice(None)) -> Sums:
    """Return the sums over some of a block's observations."""
    x, y, guess, w = block.x[keep], block.y[keep], block.guess[keep], block.weight
    z = np.column_stack([x, y])
    gram = w * (z.T @ z)
    surprise = w * float(np.sum(guess * guess - 2.0 * y * guess))
    return Sums(len(y), gram[upper_places(DIM)], surprise, w * len(y))


def honest(block: Block) -> Sent:
    """Send everything."""
    return Sent(total_from(block))


@dataclass(frozen=True, kw_only=True)
class Control:
    """A way to go wrong, and how much data it takes to see it."""

    sends: Callable[[list[Block]], list[Sent]]  # what each block of one agent becomes
    agents: int = 8
    rounds: int = 5_000
    epochs: int = 5


@dataclass
class Outcome:
    """How a run went."""

    distance: float = 0.0
    lost: int = 0
    seen: int = 0
    refused: list[str] = field(default_factory=list)  # the checks that failed
    alerts: set[str] = field(default_factory=set)


def play(control: Control, seed: int) -> Outcome:
    """Let agents send what the control makes of their data; look at the last epoch's set."""
    rng = np.random.default_rng(seed)
    space = space_for(control.agents)
    coordinator = Coordinator(MemoryStore())
    coordinator.create_space(space, who="test", now=0.0)
    learner = Learner(space, "task-0", tuple(range(DIM)), reward_floor=None, seed=0)
    request = Request(np.full((DIM, 1), 0.1), 0, None, EMPTY, np.zeros(0), EMPTY)
    weight = float(learner.decide(request, 1, 0.0).awaited.weight)
    streams, shares = [], []
    for k in range(control.agents):
        register = Register(
            stream=str(uuid.UUID(int=k)),
            task=f"task-{k}",
            schema_hash=space.schema_hash,
            uses=tuple(range(DIM)),
            library="test",
        )
        shares.append(coordinator.register("home", register, now=0.0).delta_share)
        streams.append(register.stream)
    size, outcome = control.rounds // control.epochs, Outcome()
    blocks: list[list[Block]] = [[] for _ in streams]
    totals = {stream: empty_sums(DIM) for stream in streams}
    revisions = dict.fromkeys(streams, Revision(0, ""))
    for epoch in range(1, control.epochs + 1):
        theta = learner.state.estimate.theta.copy()
        for k, stream in enumerate(streams):
            x = rng.uniform(0.0, 0.55, (size, DIM))
            contexts = rng.choice([-HALF, HALF], size)
            noise = contexts + NOISE * rng.standard_normal(size)
            blocks[k].append(Block(epoch - 1, x, x @ THETA + noise, noise, x @ theta, weight, rng))
            sent = control.sends(blocks[k])
            outcome.lost += sum(each.lost for each in sent)
            outcome.seen += size
            later = add_sums(DIM, (totals[stream], *(each.more for each in sent)))
            checkpoint = Checkpoint(rng.bytes(16).hex(), later, 0)
            upload = Upload(
                base=revisions[stream],
                checkpoint=checkpoint,
                for_epoch=epoch,
                trigger=True,
                seen_epoch=epoch - 1,
            )
            try:
                coordinator.upload(stream, upload, now=2.0 * epoch)
                totals[stream], revisions[stream] = later, checkpoint.revision
            except Refused as problem:
                outcome.refused.append(problem.more["check"])
        coordinator.tick(now=2.0 * epoch + 1.5)
        if row_of(coordinator).epoch == epoch:
            closed = coordinator.epoch("home", epoch)
            learner.load(closed.sums, empty_sums(DIM), nothing())
            learner.set_level(shares[0], epoch, 0)
    outcome.distance = distance(learner)
    counters = {"observed": outcome.seen - outcome.lost, "discarded": outcome.lost}
    said = TaskFacts(task="task-0", counters=counters, invalid=len(outcome.refused))
    outcome.alerts = {alert.id for alert in alerts_of(SpaceFacts(space=space, agents=[said]))}
    return outcome
