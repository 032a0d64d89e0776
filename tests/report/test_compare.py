"""`python -m bench.compare`: rows of two runs are matched, whatever else is in their tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import compare
from bench.tables import Section, about, as_json, markdown


def run(us: str, numpy_us: float, more: str = "old") -> dict[str, Any]:
    rounds = Section("Rounds", "", ["workload", "us", "limit"], [["a", us, "9"], [more, "1", "2"]])
    sizes = Section(
        "Sizes", "", ["K", "d", "us p50"], [["10", "2", f"{us} us"], ["5", "2", "-"]], 2
    )
    made: dict[str, Any] = json.loads(json.dumps(as_json(about(numpy_us), [rounds, sizes])))
    return made


def test_rows_are_matched_by_their_names() -> None:
    found = list(compare.changes(run("1,200.5", 20.0), run("600.25", 10.0, "new")))
    assert found == [
        compare.Change("Rounds", "a", "us", 1200.5, 600.25),
        compare.Change("Sizes", "10, 2", "us p50", 1200.5, 600.25),
    ]


def test_the_comparison_allows_for_slower_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, made in (("a", run("3", 10.0)), ("b", run("6", 20.0))):
        (tmp_path / name).write_text(json.dumps(made))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.argv", ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    compare.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    (line,) = [words for words in lines if words[:2] == ["Rounds", "a"]]
    assert line[-4:] == ["3", "6", "2.00", "1.00"]


def test_what_is_neither_a_file_nor_a_commit_is_named() -> None:
    with pytest.raises(SystemExit, match="no-such-commit is neither a file nor a commit"):
        compare.read("no-such-commit")


def test_a_page_has_the_same_cells() -> None:
    section = Section("Rounds", "Words.", ["workload", "us"], [["a", "1"]])
    assert markdown(section) == ["Words.", "", "| workload | us |", "|---|---|", "| a | 1 |", ""]


def test_what_was_measured_says_where() -> None:
    facts = about(20.0)
    assert {"commit", "date", "machine", "cores", "load", "versions", "settings"} <= set(facts)
    assert {"numpy", "numba", "python"} <= set(facts["versions"])
