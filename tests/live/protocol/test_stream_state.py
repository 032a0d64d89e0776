"""The agent's side of a stream: exact, bounded, written down and read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live.protocol.scenes import Scene
from live.protocol.shelf import Shelf, clean, facts
from live.protocol.world import DIM, name_of

from guardband.kernels.ridge import absorb
from guardband.kernels.state import new_state
from guardband.live.client import stream_rows
from guardband.live.client import stream_state as stream_module
from guardband.live.client.stream_state import KEPT_CHECKPOINTS, Effect, StreamState
from guardband.live.protocol.messages import News, Refused, Revision
from guardband.live.protocol.sums import Sums, empty_sums, sums_of


def grown(chain: StreamState, times: int, seed: int = 0) -> StreamState:
    rng = np.random.default_rng(seed)
    for _ in range(times):
        psi = rng.uniform(-0.5, 0.5, chain.dim)
        chain = chain.counted(psi, rng.uniform(), rng.uniform(0.5, 4.0), rng.normal())
    return chain


def news(epoch: int, total: Sums | None, own: Revision | None, round_: int = 0) -> News:
    return News(
        epoch=epoch, sums=total, own=own, round=round_, streams=1, agents=2, open=None,
        config_version=1, config=None, explore_for_s=None, paused=None,
    )  # fmt: skip


def test_counting_rounds_as_the_kernels_do():
    rng = np.random.default_rng(3)
    chain, state = StreamState.start("s", 5), new_state(5, 1.0)
    for _ in range(200):
        psi, reward = rng.normal(size=5), rng.normal()
        weight, guess = rng.uniform(0.1, 9.0), rng.normal()
        chain = chain.counted(psi, reward, weight, guess)
        absorb(state, psi, reward, weight, guess)
    assert chain.open.as_bytes() == sums_of(state.own).as_bytes()


STEPS = st.tuples(
    st.integers(0, 3),  # observations
    st.sampled_from(["", "cut", "cut", "adopt", "adopt", "old", "emptied", "moved", "anew"]),
    st.sampled_from(["", "", "again", "copied"]),  # what becomes of its journal
)


def stepped(chain: StreamState, what: str, k: int) -> StreamState:
    """One more thing that may happen to a chain."""
    name = name_of("stream", k)
    if what == "cut":
        return chain.with_checkpoint(name_of("version", k), round=k, for_epoch=k)
    if what == "adopt":
        own = chain.newest.revision if chain.newest.revision.n else None
        return chain.adopt(news(k + 1, grown(chain, 2).total, own)).stream
    if what == "old":  # an entry of long ago, perhaps the one in use
        return chain.adopt(news(k + 1, grown(chain, 2).total, chain.checkpoints[0].revision)).stream
    if what == "emptied":  # too few tasks are left for a sum
        return chain.adopt(news(k + 1, None, None)).stream
    if what == "moved":
        mark = chain.checkpoints[len(chain.checkpoints) // 2].revision
        held = {"n": mark.n, "version": mark.version}
        return chain.refused(Refused("sealed", 410, "", stored=held), stream=name).stream
    return chain.anew(name) if what == "anew" else chain


@settings(max_examples=300)
@given(steps=st.lists(STEPS, min_size=1, max_size=40))
def test_a_chain_survives_being_written_down(steps):
    with pytest.MonkeyPatch.context() as patch:
        for module in (stream_module, stream_rows):  # few enough to be reached
            patch.setattr(module, "KEPT_REVISIONS", 6)
        patch.setattr(stream_module, "KEPT_CHECKPOINTS", 4)
        chain = StreamState.start(name_of("stream", 1000), 3)
        shelf = Shelf(clean())
        shelf.keep(chain)
        for k, (some, what, then) in enumerate(steps):
            chain = stepped(grown(chain, some, seed=k), what, k)
            shelf.keep(chain)
            if then == "copied":
                shelf.forget()
            found = shelf.read(chain)
            assert facts(found) == facts(chain)
            assert found.total.as_bytes() == chain.total.as_bytes()
            assert found.own.as_bytes() == chain.own.as_bytes()
            if then == "again":  # goes on with what it read
                chain = found


def test_own_data_are_sums_never_differences():
    """After an epoch with the newest cut nothing of one's own is left, to the last bit."""
    chain = grown(StreamState.start("s", 3), 40).with_checkpoint("1" * 32)
    chain = chain.adopt(news(1, chain.newest.sums, chain.newest.revision)).stream
    assert chain.own.as_bytes() == empty_sums(3).as_bytes()
    part = grown(replace(StreamState.start("t", 3)), 7, seed=5)
    more = grown(chain, 7, seed=5)
    assert more.own.as_bytes() == part.open.as_bytes()


def test_a_long_chain_stays_bounded_and_right():
    chain = StreamState.start("s", 2)
    marks = []
    for k in range(3 * KEPT_CHECKPOINTS):
        chain = grown(chain, 2, seed=k).with_checkpoint(name_of("version", k))
        marks.append(chain.newest.revision)
        if k == 10:
            chain = chain.adopt(news(1, chain.newest.sums, chain.newest.revision)).stream
    assert len(chain.checkpoints) == KEPT_CHECKPOINTS
    assert chain.since == marks[10]
    assert chain.own.n == chain.total.n - marks[10].n
    rest = chain.total.gram - chain.checkpoints[0].sums.gram
    assert np.allclose(chain.own.gram, rest, rtol=1e-12)
    # An entry whose sums are gone is still one's own: no conflict, but nothing to adopt.
    step = chain.adopt(news(2, chain.total, marks[40]))
    assert (step.effect, step.stream.seen, step.stream.epoch) == (Effect.WAIT, 2, 1)
    held = {"n": marks[0].n, "version": marks[0].version}
    behind = chain.refused(Refused("revision_conflict", 409, "", stored=held), stream="x")
    assert (behind.effect, behind.stream.base) == (Effect.RESEND, marks[0])


def test_an_answer_is_given_once():
    chain = grown(StreamState.start("s", 2), 3).with_checkpoint("1" * 32, for_epoch=1)
    later = grown(chain, 2).with_checkpoint("2" * 32, for_epoch=1)
    assert later.newest == chain.newest  # resent as it was
    assert later.upload().for_epoch == 1


def test_the_barrier_holds_news_back():
    chain = StreamState.start("s", 2)
    held = chain.adopt(news(1, empty_sums(2), None, round_=7), next_round=7)
    assert (held.effect, held.stream) == (Effect.WAIT, chain)
    assert chain.adopt(news(1, empty_sums(2), None, round_=7), next_round=8).effect == "adopted"


def test_answers_meant_for_a_former_stream_are_ignored():
    chain = grown(StreamState.start("s", 2), 3).with_checkpoint("1" * 32)
    held = {"n": 9, "version": "f" * 32}
    stranger = Refused("revision_conflict", 409, "", stored=held, stream="another")
    assert chain.refused(stranger, stream="x") == (chain, Effect.KEEP)
    other = Refused("rate_limited", 429, "")
    assert chain.refused(other, stream="x") == (chain, Effect.KEEP)


def test_a_seal_before_the_adopted_entry_drops_the_sum():
    """A restored coordinator sealed the stream at its old end: the sum holds part of the rest."""
    scene = Scene()
    a, b = scene.join("movies"), scene.join("tv")
    scene.observe(a)
    scene.cut(a)
    scene.send(a)
    backup = scene.store.snapshot()
    scene.observe(a, 2)
    scene.observe(b)
    scene.pool(a, b)
    scene.store.restore(backup)
    scene.coordinator.seal(scene.stream(a), scene.chain(a).checkpoints[1].revision, now=0.0)
    scene.observe(a)
    scene.cut(a)
    assert scene.refused(a) == Effect.CONTINUED
    assert scene.chain(a).pooled is None
    assert scene.chain(a).total.n == 3
    assert max(scene.view(a).values()) == 1
    assert scene.chain(a).dim == DIM
