"""T8 for `guardband agent`: whatever is sent, every answer is one that the document names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from live.client.world import agent, menus
from live.fuzz import fuzz

from guardband.live.server.run import running
from guardband.live.sidecar import SETTINGS, make_sidecar

MENU = menus(1)[0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("post", "/v1/decide"),
        ("post", "/v1/override"),
        ("post", "/v1/reward"),
        ("get", "/healthz"),
        ("get", "/readyz"),
    ],
)
def test_every_answer_is_in_the_document(tmp_path: Path, method: str, path: str) -> None:
    one = agent(tmp_path)
    app = make_sidecar(one, None)
    document = app.openapi()
    known = {"/v1/decide", "/v1/override", "/v1/reward", "/v1/resume", "/healthz", "/readyz"}
    assert set(document["paths"]) == known
    ids = [one.decide(MENU, 0, 0.3).id for _ in range(50)]

    def honest(draw: Callable[..., Any]) -> dict[str, Any]:
        if path == "/v1/decide":
            return {"features": MENU, "baseline": draw(st.integers(0, 5)), "baseline_reward": 0.3}
        if path == "/v1/override":
            return {"id": draw(st.sampled_from(ids)), "action": draw(st.integers(0, 5))}
        end = {"reward": draw(st.floats(0.0, 1.0))} if draw(st.integers(0, 3)) else {"discard": "x"}
        return {"id": draw(st.sampled_from(ids)), **end}

    def feed(case: Any, draw: Callable[..., Any], _: str | None) -> None:
        if method == "post" and draw(st.booleans()):
            body, made_up = honest(draw), case.body
            if isinstance(made_up, dict) and made_up and draw(st.booleans()):
                name = draw(st.sampled_from(sorted(made_up, key=str)))
                body[name] = made_up[name]
            case.media_type, case.body = "application/json", body

    with running(app, settings=SETTINGS) as url:
        said = fuzz(document, method, path, url, feed=feed)
    assert said[200] > 0, said
    assert method == "get" or said[422] > 0, said
