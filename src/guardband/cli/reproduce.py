"""`guardband reproduce`: the paper's evaluation, run again and judged."""

from __future__ import annotations

import json
import shlex
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from guardband.algorithms import ALGORITHMS
from guardband.checks import check_choice, nearest
from guardband.cli.verdicts import cost_table, finished, list_table, speed, verdict_table
from guardband.engines import LocalEngine, RayEngine, Shelf
from guardband.lab.costs import seconds_of
from guardband.lab.gather import Gathering, shelf_folder
from guardband.lab.jobs import run_job
from guardband.lab.outcome import Outcome
from guardband.lab.panel import Order, Panel
from guardband.lab.progress import Bar

if TYPE_CHECKING:
    from guardband.engines import Engine

__all__ = ["InterruptedRun", "reproduce"]

ALL = "all"
ENGINES = ("local", "ray")
PLACE = "report"
STOPPED = 130
UNUSED_DAYS = 60  # kept trials that nobody asked for in so long are removed


class InterruptedRun(SystemExit):
    """Ctrl-C, after what is left was said."""

    def __init__(self) -> None:
        super().__init__(STOPPED)


def reproduce(
    panels: Annotated[
        list[str] | None,
        typer.Argument(metavar="PANEL", help="Panels by name, such as 1a 2c better; or: all"),
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
        Path | None, typer.Option(help="Where the report goes.", show_default=PLACE)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (or a list) and nothing else.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Show the panels with their question, size and time.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(help="How many trials run at a time.", show_default="one per core"),
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
    order = Order(scale=scale, settings=settings, extra=_extra(extra), seed=seed)
    check_choice("engine", engine, ENGINES)
    if address is not None and engine != "ray":
        raise ValueError(f"an address ({address}) is a Ray cluster's: add --engine ray.")
    known = _panels()
    if listed:
        _console().print(list_table(order, known.values(), LocalEngine(workers).workers))
        return
    chosen = {name: known[name] for name in _names(panels or [], list(known))}
    # --json is for programs: they get files only where they ask for them.
    place = out if as_json else out or Path(PLACE)
    if place is not None:
        _check_place(place)
    shelf = Shelf(shelf_folder()) if cache else None
    if shelf is not None:
        shelf.forget(days=UNUSED_DAYS)
    command = _command(chosen if panels != [ALL] else [ALL], order, engine, address)
    started = time.perf_counter()
    with _engine(engine, address, workers) as runner:
        work = Gathering({name: panel.runs(order) for name, panel in chosen.items()})
        if engine == "local":
            _compile_first(work, shelf)
        outcomes = _outcomes(work, chosen, order, runner, shelf, place)
    seconds = time.perf_counter() - started
    page = None if place is None else _write_report(outcomes, place, command)
    if as_json:
        told = [outcome.as_json() for outcome in outcomes]
        typer.echo(json.dumps(told[0] if len(told) == 1 else told, allow_nan=False))
        return
    console = _console()
    console.print(verdict_table(outcomes))
    console.print(cost_table(outcomes))
    console.print(speed(outcomes, seconds, work.ran, len(work.jobs), work.rounds), soft_wrap=True)
    console.print(f"\nThe report, with pictures and tables: [bold]{page}[/bold]", soft_wrap=True)


def _outcomes(
    work: Gathering,
    chosen: dict[str, Panel],
    order: Order,
    runner: Engine,
    shelf: Shelf | None,
    place: Path | None,
) -> list[Outcome]:
    """Gather and judge panel after panel; each is written as soon as it is complete."""
    outcomes: list[Outcome] = []
    notes = Console(stderr=True, soft_wrap=True)
    try:
        with Bar() as bar, closing(work.harvests(engine=runner, shelf=shelf, bar=bar)) as harvests:
            for name, harvest in harvests:
                began = time.thread_time()
                panel, found = chosen[name], harvest.found
                claims = tuple(panel.claims(order, found))
                outcome = Outcome(
                    panel=panel,
                    order=order,
                    found=found,
                    claims=claims,
                    seconds=harvest.seconds + time.thread_time() - began,
                    agent_rounds=harvest.agent_rounds,
                )
                outcomes.append(outcome)
                if place is not None:
                    _write_panel(outcome, place)
                bar.say(finished(outcome))
    except KeyboardInterrupt:
        notes.print(_how_to_go_on(work, shelf, outcomes, place))
        raise InterruptedRun from None
    for outcome in outcomes:
        if outcome.left_out:
            left = ", ".join(outcome.left_out)
            notes.print(f"[yellow]note:[/yellow] {outcome.panel.name} has no place for {left}.")
    if shelf is not None and shelf.spoilt:
        notes.print(
            f"[yellow]note:[/yellow] {shelf.spoilt} kept trials were damaged or foreign; they "
            "were run again."
        )
    if work.unkept:
        notes.print(f"[yellow]note:[/yellow] trials could not be kept: {work.unkept}")
    return outcomes


def _how_to_go_on(
    work: Gathering, shelf: Shelf | None, outcomes: Sequence[Outcome], place: Path | None
) -> str:
    if shelf is None:
        return "stopped: no trial is kept with --no-cache."
    text = (
        f"stopped: {work.kept(shelf)} of {len(work.jobs)} trials are kept; the same command goes "
        "on from there."
    )
    if outcomes and place is not None:
        text += f" Finished panels are in {place}."
    return text


def _compile_first(work: Gathering, shelf: Shelf | None) -> None:
    """Load the kernels under a notice of their own; the first time they are compiled."""
    cheapest: dict[str, tuple[float, Any]] = {}
    for key, job in work.jobs.items():
        if shelf is not None and key in shelf:
            continue
        cost = seconds_of(job.problem, job.algorithm, 2)
        if cost < cheapest.get(job.algorithm.name, (float("inf"),))[0]:
            cheapest[job.algorithm.name] = cost, replace(job, rounds=2)
    if not cheapest:
        return
    notice = "loading the kernels (compiling them the first time: about half a minute)"
    with Console(stderr=True).status(notice):
        for _, job in cheapest.values():
            run_job(job, lambda _: None)


@contextmanager
def _engine(name: str, address: str | None, workers: int | None) -> Iterator[Engine]:
    if name == "local":
        yield LocalEngine(workers)
        return
    try:
        with RayEngine(address, workers) as cluster:
            yield cluster
    except (ImportError, RuntimeError) as error:  # no Ray here, or other packages there
        raise ValueError(str(error)) from error


def _panels() -> dict[str, Panel]:
    from guardband.lab.panels import PANELS  # noqa: PLC0415 - matplotlib is slow to import

    return dict(PANELS)


def _write_panel(outcome: Outcome, place: Path) -> None:
    from guardband.lab.report import write_panel  # noqa: PLC0415

    write_panel(outcome, place)


def _write_report(outcomes: Sequence[Outcome], place: Path, command: str) -> Path:
    from guardband.lab.report import write_report  # noqa: PLC0415

    return Path(write_report(outcomes, place, command=command))


def _names(asked: list[str], known: list[str]) -> list[str]:
    """Return the panels that were asked for, each once."""
    if not asked:
        raise ValueError(
            "name a panel, or several, or all: guardband reproduce 1a; `guardband reproduce "
            "--list` shows them."
        )
    if ALL in asked:
        return known
    for name in asked:
        if name not in known:
            raise ValueError(
                f"there is no panel {name!r}; there are {', '.join(known)} and {ALL}."
                f"{nearest(name, [*known, ALL])}"
            )
    return list(dict.fromkeys(asked))


def _extra(text: str | None) -> tuple[str, ...]:
    names = [word.strip() for word in (text or "").split(",") if word.strip()]
    for name in names:
        check_choice("an algorithm after --with", name, tuple(ALGORITHMS))
    return tuple(dict.fromkeys(names))


def _check_place(place: Path) -> None:
    """Refuse a folder that cannot be written to before hours of work, not after."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise OSError(
            f"the report cannot be written to {place} ({error.strerror or error}): choose another "
            "folder with --out."
        ) from None


def _command(names: Sequence[str] | dict[str, Panel], order: Order, *where: str | None) -> str:
    """Return the command line that asks for the same numbers."""
    engine, address = where
    words = ["guardband", "reproduce", *names, "--scale", order.scale, "--settings", order.settings]
    words += ["--with", ",".join(order.extra)] if order.extra else []
    words += ["--seed", str(order.seed)] if order.seed else []
    words += ["--engine", engine] if engine and engine != "local" else []
    words += ["--address", address] if address else []
    return shlex.join(words)


def _console() -> Console:
    return Console()
