"""The parts of the report's page: verdicts, and one section per panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from pathlib import Path
from typing import Any

from guardband.lab.panel import Claim, RunResult
from guardband.lab.panel_result import PanelResult
from guardband.report import inline_svg, number, percent, picture, tabulate
from guardband.sim import interval_half_width, versions

__all__ = ["STYLE", "earlier", "navigation", "panel_section", "speed", "verdict_table"]

KINDS_OF_FILES = ("png", "svg", "csv")

SYMBOLS = {"holds": "✓", "holds vacuously": "∅", "does not hold": "✗", "inconclusive": "?"}
KINDS = {
    "holds": "holds",
    "holds vacuously": "vacuous",
    "does not hold": "fails",
    "inconclusive": "open",
}
MANY = 12  # longer tables are folded away

STYLE = """
nav ol { display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; list-style: none;
  margin: 1.2rem 0 0; }
nav a { display: block; padding: .1rem .6rem; border: 1px solid var(--line); border-radius: .3rem;
  font-weight: 600; }
ul.settings { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; padding: 0; list-style: none;
  margin: 0; font-size: .92rem; }
ul.settings span { color: var(--soft); }
a { color: var(--mark); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
h2 .name { color: var(--soft); margin-right: .6rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .4rem; }
section.panel { border-top: 1px solid var(--line); margin-top: 3rem; }
section.panel figure { max-width: 72rem; }
section.panel figure.narrow { max-width: 46rem; }
p.question { color: var(--soft); margin: -.4rem 0 1rem; }
.claims { width: 100%; }
.claims td { min-width: 0; }
.claims td.claim { min-width: 14rem; }
.claims .verdict { white-space: nowrap; font-weight: 600; }
.verdict .symbol { display: inline-block; width: 1.2em; font-weight: 700; }
.fails { color: var(--alarm); }
.open, .vacuous { color: var(--soft); }
.detail { font-size: .88rem; color: var(--soft); }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--mark); font-size: .9rem; }
ul.remarks { padding-left: 1.2rem; font-size: .92rem; }
ul.remarks li { margin: .25rem 0; }
.counts { display: flex; gap: 2.5rem; flex-wrap: wrap; margin: 1.4rem 0 0; padding: 1rem 1.2rem;
  background: var(--card); border-left: .3rem solid var(--mark); }
.counts b { font-size: 1.7rem; display: block; line-height: 1.1; }
"""


def verdict_table(outcomes: Sequence[PanelResult], *, link: bool = True) -> str:
    """Return the verdicts on all claims; of one panel alone, without its name."""
    head = [*(["panel"] if link else []), "claim", "verdict", "numbers"]
    lines = [
        '<div class="wide"><table class="claims">',
        "<thead><tr>" + "".join(f"<th>{name}</th>" for name in head) + "</tr></thead><tbody>",
    ]
    for outcome in outcomes:
        for claim in outcome.claims:
            name = escape(outcome.panel.name)
            place = f'<td><a href="#panel-{name}">{name}</a></td>' if link else ""
            lines.append(
                f'<tr>{place}<td class="claim">{escape(claim.text)}</td>'
                f'<td class="verdict {KINDS[claim.verdict]}">{_verdict(claim)}</td>'
                f'<td class="detail">{escape(claim.detail)}</td></tr>'
            )
    return "\n".join([*lines, "</tbody></table></div>"])


def navigation(outcomes: Sequence[PanelResult]) -> str:
    """Return a list of links to the panels."""
    items = "\n".join(
        f'<li><a href="#panel-{name}" title="{escape(o.panel.title)}">{name}</a></li>'
        for o in outcomes
        for name in [escape(o.panel.name)]
    )
    return f'<nav aria-label="Panels"><ol>\n{items}\n</ol></nav>'


def panel_section(outcome: PanelResult) -> str:
    """Return one panel: picture, claims, numbers, settings, what differs from print."""
    panel, name = outcome.panel, escape(outcome.panel.name)
    figure = panel.draw(outcome.options, outcome.results)
    result = picture(inline_svg(figure, f"p{name}"), f"{panel.title} {_caption(outcome)}")
    if figure.get_figwidth() < 10:
        result = result.replace("<figure>", '<figure class="narrow">', 1)
    source = f" ({escape(panel.source)} in the paper's source)" if panel.source else ""
    parts = [
        f'<section class="panel" id="panel-{name}">',
        f'<h2><span class="name">{name}</span>{escape(panel.title)}</h2>',
        f'<p class="question">{escape(panel.question)}{source}</p>',
        result,
        "<h3>Claims</h3>",
        verdict_table([outcome], link=False)
        if outcome.claims
        else "<p>The paper makes no claim about this panel in words.</p>",
        *_numbers(outcome.results),
        *_settings(outcome),
        "<h3>Notes on the settings</h3>",
        '<ul class="remarks">',
        *(f"<li>{escape(line)}</li>" for line in panel.remarks(outcome.options)),
        *(f"<li>--with {name} does not fit this panel.</li>" for name in outcome.left_out),
        "</ul>",
        f'<p class="note">{escape(speed(outcome))} {escape(_made_by())} Files: {_files(name)}</p>',
        "</section>",
    ]
    return "\n".join(parts)


def earlier(folder: Path, outcomes: Sequence[PanelResult]) -> str:
    """Return links to the files of panels that are in the folder and not on this page; or ""."""
    there = {outcome.panel.name for outcome in outcomes}
    names = sorted(
        path.stem
        for path in folder.glob("*.csv")
        if path.stem not in there
        and all(path.with_suffix(f".{kind}").is_file() for kind in KINDS_OF_FILES)
    )
    if not names:
        return ""
    items = "".join(f"<li>{escape(name)}: {_files(escape(name))}</li>" for name in names)
    return (
        '<p class="note">They were written by commands before this one, perhaps with another '
        "scale, seed or version; their verdicts are not on this page.</p>"
        f'<ul class="remarks">{items}</ul>'
    )


def speed(outcome: PanelResult) -> str:
    """Return time and rate in words."""
    options = outcome.options
    text = f"Scale {options.scale}, settings {options.settings}, seed {options.seed}"
    if not outcome.agent_rounds:
        return f"{text}; nothing was simulated."
    rate = outcome.agent_rounds / max(outcome.seconds, 1e-9)
    return (
        f"{text}; {outcome.agent_rounds:,} agent-rounds in {outcome.seconds:,.1f} seconds of one "
        f"core, {rate:,.0f} per second."
    )


def _files(name: str) -> str:
    return ", ".join(f'<a href="{name}.{kind}">{name}.{kind}</a>' for kind in KINDS_OF_FILES)


def _made_by() -> str:
    """Return the versions in words; a kept trial has the same, its key says so."""
    told = ", ".join(f"{what} {name}" for what, name in versions().items() if what != "platform")
    return f"Made by {told}."


def _verdict(claim: Claim) -> str:
    return f'<span class="symbol">{SYMBOLS[claim.verdict]}</span>{claim.verdict}'


def _caption(outcome: PanelResult) -> str:
    curves = "Mean over agents and trials, with the 95 % interval of the mean."
    return curves if outcome.results else "Computed, not simulated."


def _numbers(results: Mapping[str, RunResult]) -> Iterator[str]:
    """Yield a table of the numbers behind the curves."""
    if not results:
        return
    head = (
        "curve",
        "regret per agent",
        "below the floor, realised",
        "by expectation",
        "conservative",
        "poolings",
        "reward per round",
    )
    rows = [(label, *_row(result)) for label, result in results.items()]
    yield "<h3>Numbers</h3>"
    yield _folded(tabulate(head, rows, numbers=True), len(rows), "The numbers of all curves")


def _row(result: RunResult) -> tuple[str, ...]:
    series, rounds = result.series, result.run.rounds
    regret = series.regret.mean(axis=1)
    half = f" ± {number(float(interval_half_width(regret)))}" if len(regret) > 1 else ""
    return (
        number(float(regret.mean())) + half,
        number(float(series.violations_realised.mean())),
        number(float(series.violations_expected.mean())),
        percent(float(series.conservative.mean()) / rounds),
        number(float(series.sync_rounds.mean())),
        f"{float(series.totals['reward'].mean()) / rounds:.4f}",
    )


def _settings(outcome: PanelResult) -> Iterator[str]:
    """Yield what all runs have in common, and a table of what sets them apart."""
    if not outcome.results:
        return
    told = {label: dict(_told(result)) for label, result in outcome.results.items()}
    keys = list(dict.fromkeys(key for settings in told.values() for key in settings))
    first = next(iter(told.values()))
    same = [key for key in keys if all(s.get(key) == first.get(key) for s in told.values())]
    items = (f"<li><span>{escape(key)}</span> {escape(first[key])}</li>" for key in same)
    yield "<h3>Settings</h3>"
    yield '<ul class="settings">' + "".join(items) + "</ul>"
    apart = [key for key in keys if key not in same]
    if apart and len(told) > 1:
        lines = [(label, *(s.get(key, "") for key in apart)) for label, s in told.items()]
        yield _folded(tabulate(["curve", *apart], lines), MANY + 1, "Where the curves differ")


def _told(result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield the settings of a run in words."""
    run = result.run
    yield "problem", run.problem.name
    yield from _fields(run.problem, "problem: ")
    yield "rounds", f"{run.rounds:,}"
    yield "trials", f"{run.trials:,}"
    yield "violations counted by alpha", _plain(run.alpha)
    yield "algorithm", result.series.algorithm
    yield from ((key, _plain(value)) for key, value in result.series.settings.items())


def _fields(thing: Any, prefix: str) -> Iterable[tuple[str, str]]:
    if not is_dataclass(thing) or isinstance(thing, type):
        return []
    return [(prefix + f.name, _plain(getattr(thing, f.name))) for f in fields(thing)]


def _plain(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _folded(table: str, rows: int, summary: str) -> str:
    if rows <= MANY:
        return table
    return f"<details><summary>{escape(summary)}</summary>\n{table}\n</details>"
