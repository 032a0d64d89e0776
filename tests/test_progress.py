"""The bar: on standard error, after a moment, and only where somebody looks."""

from __future__ import annotations

import pytest

from guardband import progress
from guardband.progress import ProgressBar


def test_it_appears_after_a_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setattr(progress, "MOMENT", 0.0)
    with ProgressBar(show=True) as bar:
        bar.expect(4.0)
        bar.advance(1.0)
        bar.say("1a: done")
        bar.advance(1.0)
    out, err = capsys.readouterr()
    assert out == ""
    assert "running trials" in err
    assert " 25 %" in err
    assert "left" in err
    assert "1a: done" in err


@pytest.mark.parametrize(("show", "moment"), [(True, 1_000.0), (False, 0.0), (None, 0.0)])
def test_short_work_and_files_see_no_bar(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    show: bool | None,
    moment: float,
) -> None:
    monkeypatch.setattr(progress, "MOMENT", moment)
    with ProgressBar(show) as bar:
        bar.expect(1.0)
        bar.advance(1.0)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "")


def test_a_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line a minute; the clock is set by hand: a quarter is done after two minutes."""
    clock = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with ProgressBar() as bar:
        bar.expect(4.0)
        for passed in (30.0, 59.0, 120.0, 121.0):
            clock[0] = 1000.0 + passed
            bar.advance(1 / 3)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["running trials: 25 % after 2 min, about 6 min left"]
