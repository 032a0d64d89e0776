"""The agent's side of a stream: exact, bounded, written down and read back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live.protocol.scenes import Scene
from live.protocol.world import DIM, name_of

from guardband.core.ridge import absorb
from guardband.core.types import new_state
from guardband.live.agent.chain import KEPT_CUTS, Chain, Verdict
from guardband.live.messages import Mark, News, Refused
from guardband.live.total import Total, empty_total, total_of


def grown(chain: Chain, times: int, seed: int = 0) -> Chain:
    rng = np.random.default_rng(seed)
    for _ in range(times):
        psi = rng.uniform(-0.5, 0.5, chain.dim)
        chain = chain.counted(psi, rng.uniform(), rng.uniform(0.5, 4.0), rng.normal())
    return chain


def news(epoch: int, total: Total | None, own: Mark | None, round_: int = 0) -> News:
    return News(
        epoch=epoch, total=total, own=own, round=round_, streams=1, agents=2, open=None,
        config_version=1, config=None, explore_for_s=None, paused=None,
    )  # fmt: skip


def test_counting_rounds_as_the_kernels_do():
    rng = np.random.default_rng(3)
    chain, state = Chain.start("s", 5), new_state(5, 1.0)
    for _ in range(200):
        psi, reward = rng.normal(size=5), rng.normal()
        weight, guess = rng.uniform(0.1, 9.0), rng.normal()
        chain = chain.counted(psi, reward, weight, guess)
        absorb(state, psi, reward, weight, guess)
    assert chain.open.as_bytes() == total_of(state.own).as_bytes()


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=12
    )
)
def test_a_chain_survives_being_written_down(steps):
    chain = Chain.start(name_of("stream", 1), 3)
    for k, (some, cut, adopt) in enumerate(steps):
        chain = grown(chain, some, seed=k)
        if cut:
            chain = chain.cut(name_of("version", k), round=k, for_epoch=k)
        if adopt:
            own = chain.newest.mark if chain.newest.mark.n else None
            chain = chain.adopt(news(k + 1, grown(chain, 2).total, own)).chain
        again = Chain.from_json(json.loads(json.dumps(chain.as_json())))
        assert again.as_json() == chain.as_json()
        assert again.total.as_bytes() == chain.total.as_bytes()
        assert again.own.as_bytes() == chain.own.as_bytes()
        alone = Chain.from_json(
            {**chain.as_json(), "open": empty_total(3).as_json()}, open=chain.open
        )
        assert alone.as_json() == chain.as_json()


def test_a_newer_chain_is_not_read():
    with pytest.raises(ValueError, match="upgrade guardband"):
        Chain.from_json({**Chain.start("s", 2).as_json(), "format": 2})


def test_own_data_are_sums_never_differences():
    """After an epoch with the newest cut nothing of one's own is left, to the last bit."""
    chain = grown(Chain.start("s", 3), 40).cut("1" * 32)
    chain = chain.adopt(news(1, chain.newest.total, chain.newest.mark)).chain
    assert chain.own.as_bytes() == empty_total(3).as_bytes()
    part = grown(replace(Chain.start("t", 3)), 7, seed=5)
    more = grown(chain, 7, seed=5)
    assert more.own.as_bytes() == part.open.as_bytes()


def test_a_long_chain_stays_bounded_and_right():
    chain = Chain.start("s", 2)
    marks = []
    for k in range(3 * KEPT_CUTS):
        chain = grown(chain, 2, seed=k).cut(name_of("version", k))
        marks.append(chain.newest.mark)
        if k == 10:
            chain = chain.adopt(news(1, chain.newest.total, chain.newest.mark)).chain
    assert len(chain.cuts) == KEPT_CUTS
    assert chain.since == marks[10]
    assert chain.own.n == chain.total.n - marks[10].n
    rest = chain.total.gram - chain.cuts[0].total.gram
    assert np.allclose(chain.own.gram, rest, rtol=1e-12)
    # An entry whose sums are gone is still one's own: no conflict, but nothing to adopt.
    step = chain.adopt(news(2, chain.total, marks[40]))
    assert (step.verdict, step.chain.seen, step.chain.epoch) == (Verdict.WAIT, 2, 1)
    held = {"n": marks[0].n, "version": marks[0].version}
    behind = chain.refused(Refused("chain_conflict", 409, "", stored=held), stream="x")
    assert (behind.verdict, behind.chain.base) == (Verdict.RESEND, marks[0])


def test_an_answer_is_given_once():
    chain = grown(Chain.start("s", 2), 3).cut("1" * 32, for_epoch=1)
    later = grown(chain, 2).cut("2" * 32, for_epoch=1)
    assert later.newest == chain.newest  # resent as it was
    assert later.upload().for_epoch == 1


def test_the_barrier_holds_news_back():
    chain = Chain.start("s", 2)
    held = chain.adopt(news(1, empty_total(2), None, round_=7), next_round=7)
    assert (held.verdict, held.chain) == (Verdict.WAIT, chain)
    assert chain.adopt(news(1, empty_total(2), None, round_=7), next_round=8).verdict == "adopted"


def test_answers_meant_for_a_former_stream_are_ignored():
    chain = grown(Chain.start("s", 2), 3).cut("1" * 32)
    held = {"n": 9, "version": "f" * 32}
    stranger = Refused("chain_conflict", 409, "", stored=held, stream="another")
    assert chain.refused(stranger, stream="x") == (chain, Verdict.KEEP)
    other = Refused("rate_limited", 429, "")
    assert chain.refused(other, stream="x") == (chain, Verdict.KEEP)


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
    scene.coordinator.seal(scene.stream(a), scene.chain(a).cuts[1].mark, now=0.0)
    scene.observe(a)
    scene.cut(a)
    assert scene.refused(a) == Verdict.CONTINUED
    assert scene.chain(a).pooled is None
    assert scene.chain(a).total.n == 3
    assert max(scene.view(a).values()) == 1
    assert scene.chain(a).dim == DIM
