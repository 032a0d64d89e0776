"""The bar: on standard error, after a moment, and only where somebody looks."""

from __future__ import annotations

import pytest

from guardband.lab import progress
from guardband.lab.progress import Bar


def test_it_appears_after_a_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setattr(progress, "MOMENT", 0.0)
    with Bar(show=True) as bar:
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
    with Bar(show) as bar:
        bar.expect(1.0)
        bar.advance(1.0)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "")
