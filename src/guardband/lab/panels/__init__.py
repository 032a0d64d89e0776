"""The panels, under the names of the command line: the paper's in its order, then our own."""

from __future__ import annotations

from guardband.lab.panel import Panel
from guardband.lab.panels import (
    better,
    bounds,
    communication,
    fig_1a,
    fig_1b,
    fig_1c,
    fig_1d,
    fig_2a,
    fig_2b,
    fig_2c,
    fig_2d,
    fig_2e,
    fig_2f,
    fig_2g,
    fig_2h,
    fig_2i,
    fig_3a,
    fig_3b,
    fig_3c,
    lastfm_unknown,
    lemmas,
    notices,
    separate,
    toy,
)

__all__ = ["PANELS"]

PANELS: dict[str, Panel] = {
    panel.name: panel
    for panel in (
        fig_1a.PANEL,
        fig_1b.PANEL,
        fig_1c.PANEL,
        fig_1d.PANEL,
        fig_2a.PANEL,
        fig_2b.PANEL,
        fig_2c.PANEL,
        fig_2d.PANEL,
        fig_2e.PANEL,
        fig_2f.PANEL,
        fig_2g.PANEL,
        fig_2h.PANEL,
        fig_2i.PANEL,
        fig_3a.PANEL,
        fig_3b.PANEL,
        fig_3c.PANEL,
        toy.PANEL,
        lastfm_unknown.PANEL,
        better.PANEL,
        lemmas.PANEL,
        bounds.PANEL,
        communication.PANEL,
        separate.PANEL,
        notices.PANEL,
    )
}
