"""`guardband status` says in the terminal what the dashboard says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from live.server.driver import served
from live.server.test_cli import refusal, run

import guardband as gb

MENU = np.array([[0.4, 0.2, 0.1], [0.1, 0.5, 0.2]])


def flat(text: str) -> str:
    """Text without its line breaks."""
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("place", ["--data", "--url"])
def test_it_says_what_the_dashboard_says(tmp_path: Path, place: str) -> None:
    with served(tmp_path, contexts="per-request") as server:
        given = ("--data", server.data)
        if place == "--url":
            given = ("--url", server.url, "--token", server.viewer_token)
        with gb.connect(
            server.url,
            space="home",
            task="movies",
            token=server.token(space="home", task="movies"),
            state_dir=tmp_path / "movies",
            background=False,
        ) as agent:
            for _ in range(3):
                agent.decide(MENU, 0)
        terminal = flat(run("status", "home", *given))
        with server.client(server.viewer_token) as viewer:
            page = viewer.get("/v1/spaces/home/summary").json()
        (movies,) = page["agents"]
        assert page["answers"][2]["word"] == "Not started"
        assert re.match(
            r"not started: 0 counted, the first counts at [\d:]{8} UTC", movies["notes"][0]
        )
        for answer in page["answers"]:
            words = [answer["question"], answer["word"]]
            assert " ".join(words) in terminal
        for answer in page["answers"][:2]:
            assert answer["text"] in terminal.replace(f" {given[0]} {given[1]}", "")
        # A command that is copied from here finds the same spaces.
        assert f"guardband space set home {given[0]} {given[1]} holdback=0.05" in terminal
        assert movies["notes"][0].split(" (")[0] in terminal
        assert run("status", *given).startswith("home · running · no epoch yet")
        assert "no space 'none'" in refusal("status", "none", *given)


def test_pauses_alerts_and_spaces_without_agents(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        data = ("--data", server.data)
        next_step = f"guardband token create --space home --task TASK --data {server.data}"
        assert next_step in run("status", *data)
        run("space", "pause", "home", "--reason", "recall", *data)
        assert "PAUSED: recall" in run("status", *data)
        run("space", "create", "other", "--features", "a", "--agents", 1, *data)
        assert re.findall(r"^(\w+) ·", run("status", *data), re.M) == ["home", "other"]
