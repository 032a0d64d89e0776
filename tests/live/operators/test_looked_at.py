"""Spaces from an agent.toml: they keep which rows were looked at, and what follows from reuse."""

from __future__ import annotations

import contextlib
import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from live.client.world import agent as plain_agent
from live.operators.journals import change, found, sync
from live.operators.world import free_port, refusal, run, serving

import guardband as gb
from guardband.agent import AgentFile, LookedAt, write_agent_file
from guardband.live.protocol.messages import Refused
from guardband.live.protocol.sums import Sums
from guardband.live.store.sqlite import SqliteStore

FEATURES = gb.Features(numbers={"price": (0, 10)}, categories={"item": ["1", "2", "3"]})
MENU = pd.DataFrame({"price": [1.0, 1.0, 1.0], "item": ["1", "2", "3"]})
ROWS, SEEN = 3000, 1000


def log(seed: int = 0, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    item = rng.choice(["1", "2", "3"], rows)
    rate = pd.Series(item).map({"1": 0.3, "2": 0.6, "3": 0.4})
    return pd.DataFrame(
        {
            "price": rng.uniform(0, 10, rows),
            "item": item,
            "clicked": (rng.random(rows) < rate).astype(int),
            "request": [f"{seed}-{i}" for i in range(rows)],
        }
    )


@pytest.fixture
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A log in a file, of which a study has looked at the first rows, and an agent.toml."""
    monkeypatch.chdir(tmp_path)
    made = log()
    made.to_csv("log.csv", index=False)
    seen = np.arange(ROWS) < SEEN
    looked_at = LookedAt.of(FEATURES.table(made), made["clicked"].to_numpy(), seen)
    settings = {"alpha": 0.2, "context_noise": 0.0, "seed": 4, "bias_bound": 0.0}
    write_agent_file("agent.toml", AgentFile(settings, FEATURES, {}, looked_at))
    plain_agent(tmp_path).close()  # a data folder with another space
    return made


def made_space(*more: str, data: tuple[str, ...] = ("--data", "gb")) -> str:
    given = ("--agents", "2", "--order", "prompt")
    return run("space", "create", "home", "--from", "agent.toml", *given, *more, *data)


def live(task: str = "web", **given: Any) -> gb.LiveAgent:
    address = given.pop("address", "local:gb")
    return gb.connect(address, space="home", task=task, background=False, seed=0, **given)


def learn(*words: str) -> tuple[str, ...]:
    where = ("--space", "home", "--task", "web", "--coordinator", "local:gb")
    return ("learn", "log.csv", "--reward", "clicked", *where, *words)


def play(one: gb.LiveAgent, rounds: int, seed: int = 0) -> list[gb.Decision]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = one.decide(MENU, baseline=0)
        one.observe(decision, float(rng.random() < (0.3, 0.6, 0.4)[decision.action]))
        found.append(decision)
    return found


def test_a_space_has_what_the_file_states(frame: pd.DataFrame) -> None:
    said = made_space("delta=0.01")
    assert "5 features, 2 tasks, contexts per-request, alpha 0.2" in said
    assert "1,000 rows of logs were looked at" in said
    with live() as one:
        assert one.features == FEATURES
        stated = one.settings
        assert (stated.alpha, stated.context_noise, stated.delta) == (0.2, 0.0, 0.01)
        assert one.settings.looked_at is not None
        assert "rows looked at before" in one._repr_html_()
    assert "(closed)" in one._repr_html_()
    run("space", "revise", "home", "home-2", "noise=0.5", "--data", "gb")


def test_the_rest_is_learned_and_rows_that_were_looked_at_are_refused(
    frame: pd.DataFrame,
) -> None:
    made_space()
    for words in (learn(), learn("--id", "request")):
        assert "log.csv: row 1, or one that holds the same, was looked at" in refusal(*words)
    with live() as one:
        assert one.counted == 0
        with pytest.raises(gb.InvalidValueError, match=r"row 0, .*reuse=True"):
            one.learn(frame, frame["clicked"])
        assert one.counted == 0
    assert "2,000 rows learned, 0 known before." in run(*learn("--rest"))
    assert "0 rows learned, 2,000 known before." in run(*learn("--rest"))
    with live() as one:
        assert one.counted == ROWS - SEEN
        assert {d.promise for d in play(one, 5)} == {"play"}
        assert one.report().gauges["reused"] == 0
    assert "either" in refusal(*learn("--rest", "--reuse"))


def equal(ids: bool = False) -> pd.DataFrame:
    """A log with six different rows, of which a study has looked at the first, and its space."""
    made = log().assign(price=1.0)
    made.to_csv("log.csv", index=False)
    seen = np.arange(ROWS) < SEEN
    names = made["request"].tolist() if ids else None
    looked_at = LookedAt.of(FEATURES.table(made), made["clicked"].to_numpy(), seen, names)
    settings = {"alpha": 0.2, "context_noise": 0.0, "bias_bound": 0.0}
    write_agent_file("agent.toml", AgentFile(settings, FEATURES, {}, looked_at))
    made_space()
    return made


@pytest.mark.parametrize("size", [1, 12])
def test_equal_rows_are_refused_in_calls_of_any_size(frame: pd.DataFrame, size: int) -> None:
    made = equal()
    rest = made[SEEN:].reset_index(drop=True)
    with live() as one:
        for start in range(0, 60, size):
            part = made[start : start + size]
            with contextlib.suppress(gb.InvalidValueError):
                one.learn(part, part["clicked"])
        learned = one.counted
        assert learned < 60 / 3
        journal = one._store.journal
        kept = journal.query("SELECT x, reward FROM logged ORDER BY k")
    table, clicked = FEATURES.table(rest), rest["clicked"].to_numpy(float)
    assert kept == [(table[i].tobytes(), clicked[i]) for i in range(learned)]


def test_the_rest_of_equal_rows_may_grow(
    frame: pd.DataFrame,
) -> None:
    made = equal()
    rest = made[SEEN:]
    with live() as one:
        assert one.learn(rest[:500], rest["clicked"][:500]).rows == 500
    with live() as again:  # another process knows how far the rest is learned
        found = again.learn(rest, rest["clicked"])
        assert (found.rows, found.known) == (len(rest) - 500, 500)
        with pytest.raises(gb.InvalidValueError, match="was looked at"):
            again.learn(rest[1:], rest["clicked"][1:])
        assert again.decide(MENU, baseline=0).promise == "play"


@pytest.mark.parametrize("size", [7, 100, ROWS])
def test_the_rest_of_equal_rows_is_found_in_blocks_of_any_size(
    frame: pd.DataFrame, size: int
) -> None:
    made = equal()

    def blocks(rows: pd.DataFrame) -> Any:
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return lambda: [(part, part["clicked"].to_numpy(float), None, None) for part in parts]

    table = FEATURES.table(made)[SEEN:]
    with live() as one:
        for _ in range(2):
            found = one.learn_blocks(blocks(made), rest=True)
            assert one.counted == ROWS - SEEN
        assert found.known == ROWS - SEEN
        assert one.learn_blocks(blocks(made[SEEN:]), rest=True).known == ROWS - SEEN
        journal = one._store.journal
        kept = journal.query("SELECT x, reward, reused FROM logged ORDER BY k")
        with pytest.raises(gb.InvalidValueError, match=r"row .* was looked at"):
            one.learn_blocks(blocks(made.sample(frac=1.0, random_state=0)), rest=True)
    clicked = made["clicked"].to_numpy(float)[SEEN:]
    assert kept == [(x.tobytes(), y, 0) for x, y in zip(table, clicked, strict=True)]


def test_a_column_of_other_ids_does_not_hide_rows_that_were_looked_at(
    frame: pd.DataFrame,
) -> None:
    made = equal(ids=True)
    made.assign(id=np.arange(ROWS) + 10**6).to_csv("log.csv", index=False)
    said = refusal(*learn())
    assert "row 1, with another id than '1000000', was looked at" in said
    assert "2,000 rows learned" in run(*learn("--rest"))


def test_after_reuse_all_that_pool_say_so_and_audits_agree(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    made_space("sync.trigger=ratio", "sync.growth=0.02")
    run(*learn("--rest", "--id", "request"))
    web, app = live("web"), live("app")
    before = play(web, 10) + play(app, 3)
    sync(web, app, web, app)
    before += play(web, 3, seed=1) + play(app, 3, seed=1)
    assert app.epoch >= 1
    assert {d.promise for d in before} <= {"play", "baseline"}
    said = run(*learn("--reuse", "--id", "request"))
    assert "1,000 rows learned, 2,000 known before." in said
    assert "1,000 of them had been looked at" in said
    after = play(web, 10, seed=2)
    assert {d.promise for d in after} == {"reused"}
    assert {d.promise for d in play(app, 2, seed=2)} == {"play"}  # it has not heard of them
    sync(web, app, web, app)
    theirs = play(app, 5, seed=3)
    assert {d.promise for d in theirs} == {"reused"}
    assert {web.report().gauges["reused"], app.report().gauges["reused"]} == {float(SEEN)}
    web.close()
    again = live("web")
    after += play(again, 3, seed=4)
    assert after[-1].promise == "reused"
    for decision in before + after + theirs:
        finding = found(tmp_path, decision.id)
        assert (finding.result, finding.differences) == ("same", ())
    assert "reused" in run("audit", after[0].id, "--state", "gb")
    run("export", "--csv", "--out", "rows.csv")
    with Path("rows.csv").open() as file:
        promises = {row["id"]: row["promise"] for row in csv.DictReader(file)}
    assert promises[theirs[0].id] == promises[after[-1].id] == "reused"
    assert promises[before[0].id] != "reused"
    store = SqliteStore(tmp_path / "gb" / "coordinator.db")
    with store.reading() as t:
        kept = {row.task: Sums.from_bytes(row.total).reused for row in t.streams("home")}
    store.close()
    assert kept == {"web": SEEN, "app": 0}


def test_a_journal_that_hides_reuse_is_found(frame: pd.DataFrame, tmp_path: Path) -> None:
    made_space()
    run(*learn("--reuse"))
    one = live()
    decision = play(one, 1)[0]
    assert decision.promise == "reused"
    assert found(tmp_path, decision.id).result == "same"
    change(one, "UPDATE logged SET reused = 0")
    assert found(tmp_path, decision.id).result != "same"


def test_a_space_needs_the_record_that_it_names(frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is not here"):
        plain_agent(tmp_path, space="other", looked_at="0" * 64)
    assert "a space needs --features" in _without_names(tmp_path)
    assert "is not valid TOML" in _broken(tmp_path)


def _without_names(folder: Path) -> str:
    write_agent_file(folder / "dim.toml", AgentFile({"dim": 3}))
    return refusal("space", "create", "x", "--from", "dim.toml", "--data", "gb")


def _broken(folder: Path) -> str:
    (folder / "broken.toml").write_text("[settings")
    return refusal("space", "create", "x", "--from", "broken.toml", "--data", "gb")


def test_files_without_names_get_them_from_the_command(frame: pd.DataFrame) -> None:
    settings = {"dim": 2, "algorithm": "guard-ucb-policy", "shared_context": False}
    write_agent_file("dim.toml", AgentFile(settings))
    run("space", "create", "two", "--from", "dim.toml", "--features", "a,b", "--data", "gb")
    with gb.connect("local:gb", space="two", task="x", background=False) as one:
        assert (one.settings.mode, one.settings.contexts) == ("policy", "per-request")
        assert one.settings.agents == 1


def test_files_of_named_features_name_what_is_wrong(frame: pd.DataFrame) -> None:
    made_space()
    frame.drop(columns="price").to_csv("log.csv", index=False)
    assert "no column 'price'" in refusal(*learn())
    frame.assign(price=["dear"] + ["1"] * (ROWS - 1)).to_csv("log.csv", index=False)
    assert "log.csv: column 'price', row 1: 'dear' is not a number" in refusal(*learn())
    frame.rename(columns={"price": "cost"}).to_csv("log.csv", index=False)
    assert "2,000 rows learned" in run(*learn("--rest", "--feature", "price=cost"))


def test_a_server_keeps_the_record(frame: pd.DataFrame, tmp_path: Path) -> None:
    data = tmp_path / "served"
    with serving(data, free_port()) as server:
        token = (data / "admin.token").read_text().strip()
        made_space(data=("--url", server.url, "--token", token))
        made = run(
            *("token", "create", "--space", "home", "--task", "web"),
            *("--url", server.url, "--token", token),
        )
        own = next(word for word in made.split() if word.startswith("gb_"))
        one = live(address=server.url, token=own, state_dir=tmp_path / "state")
        with one:
            with pytest.raises(gb.InvalidValueError, match="was looked at"):
                one.learn(frame, frame["clicked"])
            rest = frame.iloc[SEEN:]
            assert one.learn(rest, rest["clicked"]).rows == ROWS - SEEN
            assert one.decide(MENU, baseline=0).promise == "play"
            assert one.learn(frame, frame["clicked"], reuse=True).reused == SEEN
            assert one.decide(MENU, baseline=0).promise == "reused"
            one.sync()
        answer = server.client.post("/v1/looked-at", json={"record": "x"})
        assert answer.status_code == 422
        seen = server.client.get("/v1/spaces/home/summary").json()
        assert seen["agents"][0]["gauges"]["reused"] == SEEN
        assert "guardband_reused_rows" in server.client.get("/metrics").text
