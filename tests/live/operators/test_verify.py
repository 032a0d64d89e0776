"""`guardband audit --verify` and `--repair`: journals and stores are checked, and mended."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from live.client.world import agent, live_on
from typer.testing import CliRunner, Result

from guardband.cli.app import app

RUN = CliRunner()


def pooled(folder: Path) -> tuple[Path, Path]:
    """Two agents that have pooled; return the first one's journal, and the store."""
    one, two = agent(folder), agent(folder, task="tv")
    for each in (one, two):
        live_on(each, 30)
    for each in (one, two, one, two):
        each.sync()
    one.close()
    two.close()
    return folder / "gb/agents/default/movies/journal.db", folder / "gb/coordinator.db"


def change(path: Path, sql: str) -> None:
    """Change a file by SQLite of the system, which knows neither checksums of pages nor seals."""
    with sqlite3.connect(path) as db:
        db.create_function("seal_of", -1, lambda *_: 0, deterministic=True)
        db.execute(sql)
    db.close()


def audit(folder: Path, *words: str) -> Result:
    where = ["--state", str(folder / "gb/agents"), "--data", str(folder / "gb")]
    return RUN.invoke(app, ["audit", *where, *words])


def test_what_is_sound_is_called_sound(tmp_path: Path) -> None:
    pooled(tmp_path)
    result = audit(tmp_path, "--verify")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["sound"] * 3
    assert {line.partition(" ")[0] for line in lines} == {"journal", "store"}


def test_damage_is_named_and_mended(tmp_path: Path) -> None:
    journal, store = pooled(tmp_path)
    change(journal, "UPDATE decision SET weight = 2 * weight WHERE seq = 3")
    change(store, "UPDATE stream SET entry_n = entry_n + 1")
    before = journal.read_bytes(), store.read_bytes()
    result = audit(tmp_path, "--verify", "--json")
    assert result.exit_code == 1
    assert (journal.read_bytes(), store.read_bytes()) == before, "looking changes nothing"
    found = {each["path"]: each for each in json.loads(result.stdout)}
    assert [each["sound"] for each in found.values()].count(True) == 1
    assert found[str(journal)]["wrong"] == ["rows of decision cannot be read"]
    assert found[str(store)]["wrong"] == ["rows of stream cannot be read"]
    assert "--repair does it now" in audit(tmp_path, "--verify").output

    result = audit(tmp_path, "--verify", "--repair")
    assert result.exit_code == 0, result.output
    assert "mended: rows of stream are lost" in result.output
    assert "old decisions can no longer be explained" in result.output
    assert audit(tmp_path, "--verify").exit_code == 0
    one, two = agent(tmp_path), agent(tmp_path, task="tv")
    assert one.counted == 30
    live_on(one, 3)
    for each in (one, two, one, two):
        each.sync()
    one.close()
    two.close()


def test_what_cannot_be_mended_has_a_remedy(tmp_path: Path) -> None:
    _, store = pooled(tmp_path)
    change(store, "UPDATE space SET epoch = 7")
    result = RUN.invoke(app, ["audit", "--repair", "--data", str(tmp_path / "gb")])
    assert result.exit_code == 1
    assert "restore a backup" in " ".join(result.output.split())


def test_a_journal_that_is_none_keeps_no_other_from_being_mended(tmp_path: Path) -> None:
    journal, store = pooled(tmp_path)
    other = tmp_path / "gb/agents/default/tv/journal.db"
    for path in (journal, other):
        change(path, "UPDATE decision SET weight = 2 * weight WHERE seq = 3")
    change(store, "UPDATE stream SET entry_n = entry_n + 1")
    journal.write_bytes(b"no database, but a text" * 1_000)
    result = audit(tmp_path, "--verify", "--repair")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    states = {line.split()[1].rstrip(":"): line.split()[-1] for line in lines if line[0] != "-"}
    assert states == {str(journal): "DAMAGED", str(other): "MENDED", str(store): "MENDED"}
    assert "cannot be opened as a journal" in " ".join(result.output.split())


def test_a_store_that_is_none_is_no_failure_of_the_command(tmp_path: Path) -> None:
    _, store = pooled(tmp_path)
    store.write_bytes(b"no database, but a text" * 1_000)
    result = audit(tmp_path, "--verify", "--repair")
    assert result.exit_code == 1
    assert "is no store" in " ".join(result.output.split())


def test_a_store_that_was_emptied_is_not_mended(tmp_path: Path) -> None:
    _, store = pooled(tmp_path)
    store.write_bytes(b"")
    for words in (["--verify"], ["--verify", "--repair"]):
        result = audit(tmp_path, *words)
        said = " ".join(result.output.split())
        assert result.exit_code == 1
        assert "it is empty, and nothing is left to mend" in said
        assert "restore a backup" in said
        assert "no checksums yet" not in said
        assert "MENDED" not in said
    assert store.read_bytes() == b"", "looking makes no store"


def test_it_needs_something_to_check(tmp_path: Path) -> None:
    result = RUN.invoke(app, ["audit"])
    assert "name a decision by its id, or say --verify" in str(result.exception)
    result = RUN.invoke(app, ["audit", "--verify", "--state", str(tmp_path)])
    assert result.exit_code == 1
    assert "no journal" in str(result.exception) + result.output
