"""The agent's side of a stream: exact, bounded, written down and read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live.protocol.harness import Harness
from live.protocol.stream_rows import StreamRows, clean, facts
from live.protocol.world import DIM, name_of

from guardband.kernels.ridge import absorb
from guardband.kernels.state import new_state
from guardband.live.client import stream_rows
from guardband.live.client import stream_state as stream_module
from guardband.live.client.stream_state import KEPT_CHECKPOINTS, Effect, StreamState
from guardband.live.protocol.messages import News, Refused, Revision
from guardband.live.protocol.sums import Sums, empty_sums, sums_of


def grown(state: StreamState, times: int, seed: int = 0) -> StreamState:
    rng = np.random.default_rng(seed)
    for _ in range(times):
        psi = rng.uniform(-0.5, 0.5, state.dim)
        state = state.counted(psi, rng.uniform(), rng.uniform(0.5, 4.0), rng.normal())
    return state


def news(epoch: int, total: Sums | None, own: Revision | None, round_: int = 0) -> News:
    return News(
        epoch=epoch, sums=total, own=own, round=round_, streams=1, agents=2, open=None,
        config_version=1, config=None, explore_for_s=None, paused=None,
    )  # fmt: skip


def test_counting_rounds_as_the_kernels_do():
    rng = np.random.default_rng(3)
    state, kernel = StreamState.start("s", 5), new_state(5, 1.0)
    for _ in range(200):
        psi, reward = rng.normal(size=5), rng.normal()
        weight, guess = rng.uniform(0.1, 9.0), rng.normal()
        state = state.counted(psi, reward, weight, guess)
        absorb(kernel, psi, reward, weight, guess)
    assert state.open.as_bytes() == sums_of(kernel.own).as_bytes()


STEPS = st.tuples(
    st.integers(0, 3),  # observations
    st.sampled_from(
        ["", "checkpoint", "checkpoint", "adopt", "adopt", "old", "emptied", "moved", "anew"]
    ),
    st.sampled_from(["", "", "again", "copied"]),  # what becomes of its journal
)


def stepped(state: StreamState, what: str, k: int) -> StreamState:
    """One more thing that may happen to a state."""
    name = name_of("stream", k)
    if what == "checkpoint":
        return state.with_checkpoint(name_of("version", k), round=k, for_epoch=k)
    if what == "adopt":
        own = state.newest.revision if state.newest.revision.n else None
        return state.adopt(news(k + 1, grown(state, 2).total, own)).stream
    if what == "old":  # an entry of long ago, perhaps the one in use
        return state.adopt(news(k + 1, grown(state, 2).total, state.checkpoints[0].revision)).stream
    if what == "emptied":  # too few tasks are left for a sum
        return state.adopt(news(k + 1, None, None)).stream
    if what == "moved":
        revision = state.checkpoints[len(state.checkpoints) // 2].revision
        held = {"n": revision.n, "version": revision.version}
        return state.refused(Refused("sealed", 410, "", stored=held), stream=name).stream
    return state.anew(name) if what == "anew" else state


@settings(max_examples=300)
@given(steps=st.lists(STEPS, min_size=1, max_size=40))
def test_a_chain_survives_being_written_down(steps):
    with pytest.MonkeyPatch.context() as patch:
        for module in (stream_module, stream_rows):  # few enough to be reached
            patch.setattr(module, "KEPT_REVISIONS", 6)
        patch.setattr(stream_module, "KEPT_CHECKPOINTS", 4)
        state = StreamState.start(name_of("stream", 1000), 3)
        rows = StreamRows(clean())
        rows.keep(state)
        for k, (some, what, then) in enumerate(steps):
            state = stepped(grown(state, some, seed=k), what, k)
            rows.keep(state)
            if then == "copied":
                rows.forget()
            found = rows.read(state)
            assert facts(found) == facts(state)
            assert found.total.as_bytes() == state.total.as_bytes()
            assert found.own.as_bytes() == state.own.as_bytes()
            if then == "again":  # goes on with what it read
                state = found


def test_own_data_are_sums_never_differences():
    """After an epoch with the newest checkpoint nothing of one's own is left, to the last bit."""
    state = grown(StreamState.start("s", 3), 40).with_checkpoint("1" * 32)
    state = state.adopt(news(1, state.newest.sums, state.newest.revision)).stream
    assert state.own.as_bytes() == empty_sums(3).as_bytes()
    part = grown(replace(StreamState.start("t", 3)), 7, seed=5)
    more = grown(state, 7, seed=5)
    assert more.own.as_bytes() == part.open.as_bytes()


def test_a_long_chain_stays_bounded_and_right():
    state = StreamState.start("s", 2)
    revisions = []
    for k in range(3 * KEPT_CHECKPOINTS):
        state = grown(state, 2, seed=k).with_checkpoint(name_of("version", k))
        revisions.append(state.newest.revision)
        if k == 10:
            state = state.adopt(news(1, state.newest.sums, state.newest.revision)).stream
    assert len(state.checkpoints) == KEPT_CHECKPOINTS
    assert state.since == revisions[10]
    assert state.own.n == state.total.n - revisions[10].n
    rest = state.total.gram - state.checkpoints[0].sums.gram
    assert np.allclose(state.own.gram, rest, rtol=1e-12)
    # An entry whose sums are gone is still one's own: no conflict, but nothing to adopt.
    step = state.adopt(news(2, state.total, revisions[40]))
    assert (step.effect, step.stream.seen, step.stream.epoch) == (Effect.WAIT, 2, 1)
    held = {"n": revisions[0].n, "version": revisions[0].version}
    behind = state.refused(Refused("revision_conflict", 409, "", stored=held), stream="x")
    assert (behind.effect, behind.stream.base) == (Effect.RESEND, revisions[0])


def test_an_answer_is_given_once():
    state = grown(StreamState.start("s", 2), 3).with_checkpoint("1" * 32, for_epoch=1)
    later = grown(state, 2).with_checkpoint("2" * 32, for_epoch=1)
    assert later.newest == state.newest  # resent as it was
    assert later.upload().for_epoch == 1


def test_the_barrier_holds_news_back():
    state = StreamState.start("s", 2)
    held = state.adopt(news(1, empty_sums(2), None, round_=7), next_round=7)
    assert (held.effect, held.stream) == (Effect.WAIT, state)
    assert state.adopt(news(1, empty_sums(2), None, round_=7), next_round=8).effect == "adopted"


def test_answers_meant_for_a_former_stream_are_ignored():
    state = grown(StreamState.start("s", 2), 3).with_checkpoint("1" * 32)
    held = {"n": 9, "version": "f" * 32}
    stranger = Refused("revision_conflict", 409, "", stored=held, stream="another")
    assert state.refused(stranger, stream="x") == (state, Effect.KEEP)
    other = Refused("rate_limited", 429, "")
    assert state.refused(other, stream="x") == (state, Effect.KEEP)


def test_a_seal_before_the_adopted_entry_drops_the_sum():
    """A restored coordinator sealed the stream at its old end: the sum holds part of the rest."""
    harness = Harness()
    a, b = harness.join("movies"), harness.join("tv")
    harness.observe(a)
    harness.checkpoint(a)
    harness.send(a)
    backup = harness.store.snapshot()
    harness.observe(a, 2)
    harness.observe(b)
    harness.pool(a, b)
    harness.store.restore(backup)
    harness.coordinator.seal(harness.stream(a), harness.state(a).checkpoints[1].revision, now=0.0)
    harness.observe(a)
    harness.checkpoint(a)
    assert harness.refused(a) == Effect.CONTINUED
    assert harness.state(a).pooled is None
    assert harness.state(a).total.n == 3
    assert max(harness.view(a).values()) == 1
    assert harness.state(a).dim == DIM
