"""`guardband demo`, from its first line to Ctrl-C, with a real browser in front of it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from live.browser.chromium import opened, overflow

from guardband.demo.progress import progress
from guardband.demo.rival import Referee, Truth, in_a_line, read_truth, remarks_on
from guardband.demo.users import CHANGING, CLIENTS, Users, film_space

PATIENCE_S = 240.0  # machines that do other things, too


class Demo:
    """A running demo: its address, its processes, what it printed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.output = folder / "output.txt"
        words = [sys.executable, "-m", "guardband", "demo", "--no-browser", *options]
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                words,
                stdout=file,
                stderr=file,
                start_new_session=True,
                cwd=folder,
                env={**os.environ, "TMPDIR": str(folder)},  # what a killed demo leaves goes with it
            )
        first = self.wait(lambda: self.text() if "Ctrl-C" in self.text() else None).split("\n")[0]
        assert first.startswith("dashboard  http://127.0.0.1:")
        self.address = first.split()[1]
        self.token = self.address.split("#token=")[1].split("&")[0]
        self.url = self.address.split("/#")[0]

    def text(self) -> str:
        return self.output.read_text()

    def wait(self, found: Callable[[], Any]) -> Any:
        """Return what `found` returns, as soon as it is anything."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            assert self.process.poll() is None, self.text()
            value = found()
            if value:
                return value
            time.sleep(0.25)
        raise AssertionError(f"waited in vain; the demo said:\n{self.text()}")

    def summary(self) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.get(f"{self.url}/v1/spaces/films/summary", headers=headers, timeout=30)
        known: dict[str, Any] = answer.json()
        return known if answer.status_code == 200 else {"agents": []}

    def counted(self, name: str) -> int:
        """A counter, over all agents."""
        return sum(agent["counters"].get(name, 0) for agent in self.summary()["agents"])

    def clients(self) -> dict[str, int]:
        """The process ids of the clients."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
                parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if b"guardband.demo.client" in words and parent == self.process.pid:
                found[words[words.index(b"guardband.demo.client") + 1].decode()] = int(place.name)
        return found

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal to the demo as a terminal does, to its whole group; return its code."""
        os.killpg(self.process.pid, number)
        return self.process.wait(60)


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[Demo]:
    started = Demo(folder, *options)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            os.killpg(started.process.pid, signal.SIGKILL)
            started.process.wait()


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}/cmdline").exists() for pid in pids)


@pytest.mark.slow
def test_the_demo_learns_pauses_alerts_and_stops(chromium: Any, tmp_path: Path) -> None:
    with demo(tmp_path, "--port", "0", "--rate", "40", "--change-after", "0") as live:
        with opened(chromium, live.address, size=(1280, 800), scheme="dark") as seen:
            page = seen.page

            # It shows a live space, and the numbers move.
            page.wait_for_selector("#agents tbody tr")
            live.wait(lambda: page.locator("#agents tbody tr").count() == len(CLIENTS))
            row = page.locator("#agents tbody tr").first
            before = row.inner_text()
            live.wait(lambda: row.inner_text() != before)

            # It learns: most of what is played is not the baseline's, and it earns.
            live.wait(lambda: live.counted("learned") > live.counted("baseline"))
            live.wait(lambda: all((a["lead_mean"] or 0) > 0 for a in live.summary()["agents"]))
            page.locator(".answer.good", has_text="Does it learn?").wait_for()

            # By its holdback it is sure of that, without the floor.
            live.wait(lambda: (live.summary()["uplift"] or {"low": -1})["low"] > 0)
            page.locator(".answer.good", has_text="over the baseline").wait_for()
            page.locator(".answer.good", has_text="Is it safe?").wait_for()
            assert live.summary()["alerts"] == []

            # It says what it is, and what a rival without a guard has done meanwhile.
            page.locator(".answer", has_text="What is this?").wait_for()
            rival = page.locator(".answer.bad", has_text="And without a guard?")
            rival.wait_for()
            assert "with the guard: 0" in rival.inner_text()

            # Why conservative, in one click.
            page.get_by_role("button", name="Why is mail conservative?").click()
            assert "decisions were conservative" in page.locator("#why").inner_text()
            page.keyboard.press("Escape")
            assert overflow(page) == 0

            # Pause: every agent hears of it and plays the baseline; rewards still count.
            page.get_by_role("button", name="Pause learning").click()
            page.fill("#reason", "a test")
            page.locator("#ask-go").click()
            page.locator("#mode", has_text="PAUSED").wait_for()
            live.wait(lambda: all(a["reasons"].get("paused") for a in live.summary()["agents"]))
            held, played = live.counted("learned"), live.counted("baseline")
            live.wait(lambda: live.counted("baseline") > played + 200)
            assert live.counted("learned") == held
            page.get_by_role("button", name="Resume learning").click()
            page.locator("#ask-go").click()
            page.locator("#mode", has_text="RUNNING").wait_for()
            live.wait(lambda: live.counted("learned") > held)

            # An agent dies: its row goes stale, and an alert says what to do.
            pids = live.clients()
            assert set(pids) == set(CLIENTS)
            os.kill(pids["mail"], signal.SIGKILL)
            live.wait(lambda: page.locator("[data-alert=stale]").count() == 1)
            assert "mail" in page.locator("[data-alert=stale]").inner_text()
            page.locator("tr.state-stale", has_text="mail").wait_for()
            page.locator(".answer.look", has_text="Is the system running?").wait_for()
            page.set_viewport_size({"width": 390, "height": 844})
            page.wait_for_timeout(500)
            assert overflow(page) == 0
        rest = list(live.clients().values())
        assert live.stop() == 0
        assert gone(rest)
        assert "Traceback" not in live.text()
        assert "mail has ended (-9); the others go on." in live.text()
        assert re.search(r"below the floor, of [\d,]+ films: 0; of a rival", live.text())
        assert live.text().rstrip().split("\n")[-1].startswith("stopped. ")


@pytest.mark.slow
def test_what_choices_earn_is_sure_within_the_first_minute(tmp_path: Path) -> None:
    """At the rate that it has by itself; docs/dashboard.md says so."""
    with demo(tmp_path, "--port", "0", "--change-after", "0") as live:
        live.wait(lambda: live.counted("decisions") > 0)
        began = time.monotonic()
        live.wait(lambda: (live.summary()["uplift"] or {"low": -1})["low"] > 0)
        assert time.monotonic() - began < 60.0
        assert live.stop() == 0


@pytest.mark.slow
def test_a_change_is_noticed_and_acted_upon(chromium: Any, tmp_path: Path) -> None:
    with demo(tmp_path, "--port", "0", "--rate", "40", "--change-after", "40") as live:
        live.wait(lambda: any(agent.get("alarms") for agent in live.summary()["agents"]))
        alarmed = {agent["task"] for agent in live.summary()["agents"] if agent["alarms"]}
        assert alarmed == {CHANGING}
        with opened(chromium, live.address) as seen:
            alert = seen.page.locator("[data-alert=assumptions], [data-alert=certificates]")
            alert.first.wait_for()
            assert CHANGING in alert.first.inner_text()
        live.wait(lambda: f"ALARM {CHANGING}: " in live.text())
        # It starts anew, apart from the others, and learns again.
        held = {agent["task"]: agent["counters"]["learned"] for agent in live.summary()["agents"]}
        live.wait(
            lambda: all(
                agent["counters"]["learned"] > held[agent["task"]] + 50
                for agent in live.summary()["agents"]
            )
        )
        assert live.stop() == 0


@pytest.mark.slow
def test_a_taken_port_and_an_end_of_its_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with demo(tmp_path, "--port", str(port), "--minutes", "0.1") as live:
            assert f":{port}" not in live.url
            assert live.process.wait(PATIENCE_S) == 0
            assert "stopped. " in live.text()
            assert "Traceback" not in live.text()


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.0, 1.5, 4.0])
def test_ctrl_c_at_any_time_is_clean(after_s: float, tmp_path: Path) -> None:
    with demo(tmp_path, "--port", "0") as live:
        time.sleep(after_s)
        pids = list(live.clients().values())
        assert live.stop() == 0
        assert gone(pids)
        assert "Traceback" not in live.text()


@pytest.mark.slow
def test_the_first_start_waits_for_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    with demo(tmp_path, "--port", "0") as live:
        live.wait(lambda: live.counted("learned") > 0)
        assert not list((tmp_path / "kernels").rglob("*guard_ucb*.nbc"))  # not so soon
        assert live.stop() == 0


@pytest.mark.slow
def test_clients_do_not_outlive_a_killed_demo(tmp_path: Path) -> None:
    with demo(tmp_path, "--port", "0") as live:
        live.wait(lambda: len(live.clients()) == len(CLIENTS))
        pids = list(live.clients().values())
        live.process.kill()
        live.process.wait()
        until = time.monotonic() + 120
        while not gone(pids) and time.monotonic() < until:
            time.sleep(0.25)
        assert gone(pids)


def test_the_stated_bounds_hold_for_the_simulated_users() -> None:
    space = film_space()
    for client in CLIENTS:
        users = Users(client)
        uses = list(users.uses)
        ratings = []
        for _ in range(300):
            ask = users.request()
            lengths = (ask.films[:, uses] ** 2).sum(axis=1) ** 0.5
            assert lengths.max() <= space.feature_bound
            assert 0.0 < ask.baseline_reward <= 1.0
            ratings.append(users.rating(ask.user, ask.baseline) - ask.baseline_reward)
            assert space.rewards.low < ratings[-1] + ask.baseline_reward < space.rewards.high
        # 0.3 noise and 0.1 |theta| of the features' own: the bound is on the first alone.
        variance = sum(r * r for r in ratings) / len(ratings)
        assert 0.8 < variance / (space.noise**2 + (space.context_noise or 0.0) ** 2) < 1.25


def test_tastes_that_change_stay_within_the_stated_bounds() -> None:
    """What was best is below the floor then: an agent that went on would break its promise."""
    users = Users(CHANGING)
    asks = [users.request() for _ in range(100)]
    best = [int(np.argmax(ask.films @ users._theta)) for ask in asks]
    users.change_tastes()
    worth = np.array([ask.films @ users._theta for ask in asks])
    assert worth.min() >= 0.0
    assert worth.max() <= 1.0
    floor = 0.9 * worth[range(100), [ask.baseline for ask in asks]]
    assert (worth[range(100), best] < floor).mean() > 0.25


def test_the_status_line_says_who_noticed_something() -> None:
    agent = {
        "task": "mail",
        "counters": {"decisions": 2, "observed": 2},
        "sums": {"reward": 1.0, "floor": 0.5},
        "alarms": [{"kind": "assumptions", "looked_at": None}] * 2,
    }
    known = {"agents": [agent], "epoch": 1, "paused": None}
    assert progress(known, 9.0).startswith("9 s · ALARM mail: assumptions · rating")
    agent["alarms"] = [{"kind": "assumptions", "looked_at": 3.0}]
    assert "ALARM" not in progress(known, 9.0)


def test_a_rival_without_a_guard_falls_and_the_guard_does_not(tmp_path: Path) -> None:
    """A referee judges by what users like on average: the baseline's own films never fall."""
    for client in CLIENTS[1:]:
        users, referee = Users(client), Referee(client)
        for _ in range(200):
            ask = users.request()
            referee.look(ask, ask.baseline)
        worst = min(range(len(ask.films)), key=lambda film: users.worth(ask.user, film))
        referee.look(ask, worst)
        referee.write(tmp_path / client)
    before, since = read_truth(tmp_path / client for client in CLIENTS)  # one has not written yet
    assert (before.plays, before.below, since) == (402, 2, Truth())
    assert 10 < before.rival_below < 200
    what, without = remarks_on(before, since)
    assert (what.question, without.level) == ("What is this?", "bad")
    assert without.figure == f"below the floor: {before.rival_below} times; with the guard: 2"
    assert "changed" not in without.text
    assert remarks_on(Truth(), Truth())[1].level == "wait"
    assert in_a_line(before, since).endswith(f"guard: {before.rival_below}.")


def test_what_happens_after_tastes_have_changed_is_counted_apart(tmp_path: Path) -> None:
    users, referee = Users(CHANGING), Referee(CHANGING)
    asks = [users.request() for _ in range(100)]
    best = [max(range(50), key=lambda film: users.worth(ask.user, film)) for ask in asks]
    for again in range(2):
        for ask, film in zip(asks, best, strict=True):
            told = users.worth(ask.user, ask.baseline)
            referee.look(ask._replace(baseline_reward=told), film)
        if not again:
            users.change_tastes()
            referee.change_tastes()
    referee.write(tmp_path)
    before, since = read_truth([tmp_path])
    assert (before.plays, before.below, since.plays) == (100, 0, 100)
    assert since.below > 10  # nothing is promised until it is noticed
    assert remarks_on(before, since)[1].text.endswith(f"until it notices: {since.below}.")


def test_the_status_line_counts_from_where_it_is_told() -> None:
    def at(decisions: int, baseline: int) -> dict[str, Any]:
        agent = {
            "counters": {"decisions": decisions, "baseline": baseline, "observed": 100},
            "sums": {"reward": 62.0, "floor": 40.0},
        }
        return {"agents": [agent, agent], "epoch": 7, "paused": None}

    whole = progress(at(200, 50), 12.4)
    assert whole == "12 s · rating 0.62, floor 0.40 · 400 decisions, 75 % learned · pooled 7 times"
    assert len(whole) < 80, "a narrow window cuts the end off"
    assert "95 % of the latest learned" in progress(at(200, 50), 12.4, before=at(100, 45))
    none = {"agents": [], "epoch": 0, "paused": None}
    assert progress(none, 3.0) == "3 s · 0 decisions, no rating yet"
    assert progress(at(2, 1) | {"paused": "why"}, 1.0).startswith("1 s · PAUSED · rating")
