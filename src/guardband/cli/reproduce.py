"""`guardband reproduce`: the paper's evaluation, run again and judged."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import guardband as gb
from guardband import engines, lab
from guardband.cli.numbers import count_option
from guardband.cli.report_folder import check_folder
from guardband.cli.verdicts import (
    cost_table,
    finished,
    list_table,
    listed_panels,
    speed,
    verdict_table,
)
from guardband.errors import InvalidValueError
from guardband.progress import ProgressBar

__all__ = ["InterruptedRun", "reproduce"]

ALL = "all"
USUAL = ("1a", "2e")  # what is run if no panel is named
FOLDER = "report"
STOPPED = 130
UNUSED_DAYS = 60  # cached trials that were not used for so long are removed


class InterruptedRun(SystemExit):
    """Ctrl-C, after the notice on what is left was printed."""

    def __init__(self) -> None:
        super().__init__(STOPPED)


def reproduce(
    panels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PANEL",
            help=f"Panels by name, such as better; or: all; left out: {' '.join(USUAL)}",
        ),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="smoke: seconds; quick: a tenth of the paper; paper: all of it")
    ] = "quick",
    settings: Annotated[
        str, typer.Option(help="printed: the paper's text; notebook: its authors' simulations")
    ] = "printed",
    extra: Annotated[
        str | None,
        typer.Option(
            "--with", help="Algorithms to draw beside the panel's own, with commas between them."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help=r"local: all cores; ray: a Ray cluster (the extra guardband\[ray])")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            help="A running Ray cluster, auto or HOST:PORT; left out: one on this machine"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the report goes.", show_default=FOLDER)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (or a list) and nothing else.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Show the panels with their question, size and time.")
    ] = False,
    seed: Annotated[int, count_option("Same seed, same numbers.")] = 0,
    workers: Annotated[
        int | None,
        count_option("How many trials run at a time.", show_default="one per core"),
    ] = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Use and keep finished trials, or neither.")
    ] = True,
) -> None:
    """Run the paper's evaluation again: every panel, each claim with a verdict.

    Finished trials are kept in the folder GUARDBAND_TRIALS, or in the user's
    cache: a command that was stopped goes on where it was, and panels share
    what they have in common. For example:

        guardband reproduce --list

        guardband reproduce 1a 1b --with guard-ucb

        guardband reproduce all --scale paper

        guardband reproduce 2h --settings notebook --engine ray --address auto
    """
    options = lab.RunOptions(scale=scale, settings=settings, extra=_extra(extra), seed=seed)
    from guardband.checks import check_choice

    check_choice("engine", engine, engines.ENGINES)
    if address is not None and engine != "ray":
        raise InvalidValueError(f"an address ({address}) is a Ray cluster's: add --engine ray.")
    known = dict(lab.PANELS)
    if listed:
        chosen = {name: known[name] for name in _names(panels or [ALL], list(known))}
        _list(chosen, options, engines.LocalEngine(workers).workers, as_json=as_json)
        return
    chosen = {name: known[name] for name in _names(panels or USUAL, list(known))}
    # --json is for programs: they get files only where they ask for them.
    folder = out if as_json else out or Path(FOLDER)
    if folder is not None:
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
    trials = engines.ResultCache(lab.cache_folder()) if cache else None
    if trials is not None:
        trials.prune(days=UNUSED_DAYS)
    names = [ALL] if ALL in (panels or []) else list(chosen)
    command = _command(names, options, engine=engine, address=address)
    session = _Session(chosen, options, trials, folder, command)
    with _stoppable(session):
        with _engine(engine, address, workers) as opened:
            session.run(opened, warm=engine == "local")
        session.write()
        _answer(session, as_json=as_json)


class _Session:
    """One command: what was asked for, and its results so far."""

    def __init__(
        self,
        chosen: Mapping[str, lab.Panel],
        options: lab.RunOptions,
        cache: engines.ResultCache | None,
        folder: Path | None,
        command: str,
    ) -> None:
        self.chosen, self.options, self.cache = chosen, options, cache
        self.folder, self.command = folder, command
        self.outcomes: list[lab.PanelResult] = []
        self.work: lab.TrialScheduler | None = None
        self.runs: dict[str, Sequence[lab.Run]] = {}
        self.page: Path | None = None
        self.started = time.perf_counter()
        self.seconds = 0.0

    def run(self, engine: engines.ComputeEngine, *, warm: bool) -> None:
        """Run and judge panel after panel; each is written as soon as it is complete."""
        self.runs = {name: panel.runs(self.options) for name, panel in self.chosen.items()}
        self.work = work = lab.schedule(self.runs)
        if warm:
            _compile_first(work, self.cache)
        with (
            ProgressBar() as bar,
            closing(work.results(engine=engine, cache=self.cache, bar=bar)) as complete,
        ):
            for name, trials in complete:
                outcome = lab.judge_panel(self.chosen[name], self.options, self.runs[name], trials)
                if self.folder is not None:
                    lab.write_panel(outcome, self.folder)
                self.outcomes.append(outcome)
                bar.say(finished(outcome))
        self.seconds = time.perf_counter() - self.started
        self._note()

    def write(self) -> None:
        """Write the page, if a folder was given."""
        if self.folder is not None and self.outcomes:
            there = {outcome.panel.name for outcome in self.outcomes}
            missing = [name for name in self.chosen if name not in there]
            self.page = lab.write_report(
                self.outcomes, self.folder, command=self.command, missing=missing
            )

    def _note(self) -> None:
        """Print notes on algorithms left out, damaged cache entries and a cache that failed."""
        notes = Console(stderr=True, soft_wrap=True)
        for outcome in self.outcomes:
            if outcome.left_out:
                left = ", ".join(outcome.left_out)
                notes.print(f"[yellow]note:[/yellow] {outcome.panel.name} has no place for {left}.")
        if self.cache is not None and self.cache.damaged:
            notes.print(
                f"[yellow]note:[/yellow] {self.cache.damaged} kept trials were damaged or foreign; "
                "they were run again."
            )
        if self.work is not None and self.work.not_cached:
            notes.print(f"[yellow]note:[/yellow] trials could not be kept: {self.work.not_cached}")


@contextmanager
def _stoppable(session: _Session) -> Iterator[None]:
    """On Ctrl-C say what is left, and write the page for the panels that are finished."""
    try:
        yield
    except KeyboardInterrupt:
        notes = Console(stderr=True, soft_wrap=True)
        notes.print(_how_to_go_on(session))
        complete = len(session.outcomes) == len(session.chosen)
        if not complete:  # else Ctrl-C came while the page was written
            with suppress(KeyboardInterrupt):
                session.write()
        if session.page is not None:
            notes.print(f"The report on the finished panels: {session.page}")
        raise InterruptedRun from None


def _answer(session: _Session, *, as_json: bool) -> None:
    outcomes, work = session.outcomes, session.work
    if as_json:
        told = [outcome.as_json() for outcome in outcomes]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told, allow_nan=False))
        return
    assert work is not None
    console = Console()
    console.print(verdict_table(outcomes))
    console.print(cost_table(outcomes))
    done = speed(outcomes, session.seconds, work.ran, len(work.trials), work.rounds)
    console.print(done, soft_wrap=True)
    page = f"\nThe report, with pictures and tables: [bold]{session.page}[/bold]"
    console.print(page, soft_wrap=True)


def _list(
    chosen: Mapping[str, lab.Panel], options: lab.RunOptions, workers: int, *, as_json: bool
) -> None:
    if as_json:
        typer.echo(json.dumps(listed_panels(options, chosen.values(), workers)))
    else:
        Console().print(list_table(options, chosen.values(), workers))


def _how_to_go_on(session: _Session) -> str:
    work, cache = session.work, session.cache
    if cache is None:
        return "stopped: no trial is kept with --no-cache."
    if work is None:
        return "stopped before any trial."
    text = (
        f"stopped: {work.count_cached(cache)} of {len(work.trials)} trials are kept; the same "
        "command goes on from there."
    )
    if session.outcomes and session.folder is not None:
        text += f" Finished panels are in {session.folder}."
    return text


def _compile_first(work: lab.TrialScheduler, cache: engines.ResultCache | None) -> None:
    """Load the kernels under a notice of their own; the first time they are compiled."""
    missing = [trial for key, trial in work.trials.items() if cache is None or key not in cache]
    missing.sort(key=lambda trial: trial.cost, reverse=True)
    cheapest = {trial.algorithms[0].name: replace(trial, rounds=2) for trial in missing}
    if not cheapest:
        return
    notice = "loading the kernels (compiling them the first time: minutes)"
    with Console(stderr=True).status(notice):
        for trial in cheapest.values():
            lab.run_trial(trial, lambda _: None)


@contextmanager
def _engine(name: str, address: str | None, workers: int | None) -> Iterator[engines.ComputeEngine]:
    try:
        with engines.open_engine(name, workers=workers, address=address) as engine:
            yield engine
    except (ImportError, RuntimeError) as error:  # no Ray here, or other packages there
        if name == "local":
            raise
        raise InvalidValueError(str(error)) from error


def _names(asked: Sequence[str], known: list[str]) -> list[str]:
    """Return the panels that were asked for, each once."""
    for name in asked:
        if name not in (*known, ALL):
            from guardband.checks import nearest

            raise InvalidValueError(
                f"there is no panel {name!r}; there are {', '.join(known)} and {ALL}."
                f"{nearest(name, [*known, ALL])}"
            )
    return known if ALL in asked else list(dict.fromkeys(asked))


def _extra(text: str | None) -> tuple[str, ...]:
    from guardband.checks import check_choice

    names = [word.strip() for word in (text or "").split(",") if word.strip()]
    for name in names:
        check_choice("an algorithm after --with", name, tuple(gb.algorithms.ALGORITHMS))
    return tuple(dict.fromkeys(names))


def _command(
    names: Sequence[str],
    options: lab.RunOptions,
    *,
    engine: str = "local",
    address: str | None = None,
) -> str:
    """Return the command line that asks for the same numbers."""
    words = [
        "guardband",
        "reproduce",
        *names,
        "--scale",
        options.scale,
        "--settings",
        options.settings,
    ]
    words += ["--with", ",".join(options.extra)] if options.extra else []
    words += ["--seed", str(options.seed)] if options.seed else []
    words += ["--engine", engine] if engine != "local" else []
    words += ["--address", address] if address else []
    return shlex.join(words)
