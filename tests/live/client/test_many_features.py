"""How long messages of spaces with very many features may take."""

from __future__ import annotations

import httpx
import pytest

import guardband as gb
from guardband.live.link.base import Unreachable
from guardband.live.link.http import ANSWER_S, BYTES_A_SECOND, HttpLink
from guardband.live.protocol.types import LARGEST_DIM


@pytest.mark.parametrize("large", ["question", "answer"])
def test_large_messages_may_take_longer_from_then_on(large: str) -> None:
    size, waited = 5_000_000, []

    def answer(request: httpx.Request) -> httpx.Response:
        waited.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json="x" * size if large == "answer" else "")

    link = HttpLink("http://127.0.0.1", transport=httpx.MockTransport(answer))
    assert link._patience(0.0) == ANSWER_S
    text = gb.SpaceSettings(features=["x" * 60], alphas={"t" * 50: 0.5}, agents=1)
    if large == "question":
        many = [f"{k:060}" for k in range(LARGEST_DIM)]
        text, size = text.changed(features=many), 60 * LARGEST_DIM
    with pytest.raises(Unreachable, match="not as a coordinator"):
        link.create_space(text)
    link.ask("GET", "/small")
    assert waited[0] >= ANSWER_S
    assert waited[1] >= ANSWER_S + size / BYTES_A_SECOND
    assert waited[1] < 1.5 * (ANSWER_S + size / BYTES_A_SECOND)
    link.close()
