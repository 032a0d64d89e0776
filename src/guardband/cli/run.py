"""`guardband run`: a comparison of algorithms, set up by options or by a TOML file."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import guardband as gb
from guardband.cli.numbers import count_option, number_option
from guardband.cli.report_folder import check_folder, write_new
from guardband.errors import InvalidValueError

__all__ = ["run"]

FOLDER = "guardband-run"


def run(
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file with the settings; see --init.")
    ] = None,
    problem: Annotated[str | None, typer.Option(help="Its name; see: guardband problems")] = None,
    algorithms: Annotated[
        str | None, typer.Option(help="Names, separated by commas; see: guardband algorithms")
    ] = None,
    agents: Annotated[int | None, count_option("How many tasks learn together.")] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help="Share of the baseline's reward that may be lost; one, or one per agent."
        ),
    ] = None,
    noise: Annotated[
        float | None, number_option("The bound on the reward noise that algorithms are told.")
    ] = None,
    context_noise: Annotated[
        float | None, number_option("The same for what the hidden context adds to a reward.")
    ] = None,
    trial_budget: Annotated[
        float | None,
        number_option("What guard-ucb's trials may fall short of the floor by, in all."),
    ] = None,
    max_loss: Annotated[
        float | None,
        number_option("What guard-ucb-policy's exploration may cost against the baseline."),
    ] = None,
    budget: Annotated[
        float | None,
        number_option(
            "What an agent's plays may cost in all, on a problem with costs; guard-ucb keeps to it."
        ),
    ] = None,
    holdback: Annotated[
        float | None,
        number_option(
            "Guard-UCB plays the baseline with this probability, by a coin of its own, to "
            "measure what its choices earn: 0.05, say."
        ),
    ] = None,
    rounds: Annotated[int | None, count_option("The horizon; 20,000 if left out.")] = None,
    trials: Annotated[int | None, count_option("Independent repetitions.")] = None,
    history: Annotated[
        str | None,
        typer.Option(
            help="Agents first learn so many rounds of the baseline's own rule; or of uniform "
            "plays: 100000,uniform"
        ),
    ] = None,
    seed: Annotated[int | None, count_option("Same seed, same numbers.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the report goes.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    init: Annotated[
        Path | None, typer.Option(help="Write a commented settings file, and stop.")
    ] = None,
) -> None:
    """Compare algorithms on a problem: a table, plots, a report.

    Every algorithm meets the same contexts, noise and coins. Without options it runs the default
    comparison. For example:

        guardband run --problem synthetic-a --algorithms disc-ucb,dis-lin-ucb --alpha 0.2
    """
    from guardband.cli.config import RunConfig, make_algorithms, make_problem, read_config

    console = Console()
    told = {
        "noise": noise,
        "context_noise": context_noise,
        "trial_budget": trial_budget,
        "max_loss": max_loss,
        "holdback": holdback,
    }
    if init is not None:
        _write_template(init)
        console.print(f"wrote {init}; edit it, then: guardband run {init}")
        return
    chosen = (RunConfig() if config is None else read_config(config)).updated(
        told,
        problem=problem,
        algorithms=None if algorithms is None else tuple(_split(algorithms)),
        agents=agents,
        alpha=None if alpha is None else _as_alpha(alpha),
        rounds=rounds,
        trials=trials,
        history=None if history is None else _as_history(history),
        budget=budget,
        seed=seed,
        out=None if out is None else str(out),
    )
    folder = Path(chosen.out or FOLDER)
    if chosen.out is not None or not as_json:  # --json writes files only where it is asked to
        check_folder(folder)
    task = make_problem(chosen)
    assumed = dict(task.assumptions())
    assumed.pop("rounds")
    assumed["context_noise"] = task.context_noise
    entrants = make_algorithms(chosen, assumed)
    from guardband.sim import as_history

    as_history(chosen.history)  # mistakes are said before the kernels are compiled
    _compile_first(task, entrants, chosen.history)
    results = gb.simulate(
        task,
        entrants,
        rounds=chosen.rounds,
        trials=chosen.trials,
        history=chosen.history,
        budget=chosen.budget,
        seed=chosen.seed,
        alpha=assumed["alpha"] if chosen.floor_alpha is None else chosen.floor_alpha,
    )
    command = _command(
        config,
        problem=problem,
        algorithms=algorithms,
        agents=agents,
        alpha=alpha,
        **told,
        rounds=rounds,
        trials=trials,
        history=history,
        budget=budget,
        seed=seed,
    )
    if as_json:
        typer.echo(json.dumps(as_object(results)))
        if chosen.out is not None:
            _report(results, folder, command)
        return
    _show(console, results, folder, command)


def as_object(results: gb.Results) -> dict[str, Any]:
    """Return what --json prints."""
    rows = []
    for row in results.summary().to_dict("records"):
        keep = (
            "algorithm",
            "label",
            "agents",
            "alpha",
            "regret_per_agent",
            "regret_expected_per_agent",
            "regret_ci",
            "violations_expected",
            "violations_realised",
            "conservative_share",
            "sync_rounds",
            "numbers_sent",
            "uplift",
            "uplift_low",
            "uplift_high",
        )
        row["regret_ci"] = [_plain(row["regret_low"]), _plain(row["regret_high"])]
        rows.append({name: _plain(row[name]) for name in keep})
    settings = {k: v for k, v in results.settings.items() if k != "seconds"}
    settings["algorithms"] = {s.label: s.settings for s in results.series}
    plain = json.loads(json.dumps(settings, default=str))
    return {
        "problem": results.problem,
        "settings": plain,
        "series": rows,
        "seconds": results.settings["seconds"],
    }


def _show(console: Console, results: gb.Results, folder: Path, command: str) -> None:
    from guardband.report import table, verdict

    console.print(table(results))
    page = _report(results, folder, command)
    console.print()
    for sentence in verdict(results):
        bullet = Table.grid(padding=(0, 1))
        bullet.add_row("•", Text(sentence))
        console.print(bullet)
    console.print(f"\nThe report, with plots and tables: [bold]{page}[/bold]", soft_wrap=True)


def _report(results: gb.Results, folder: Path, command: str) -> Path:
    from guardband.report import write_report

    return write_report(results, folder, command=command)


def _command(config: Path | None, **options: object) -> str:
    """Return the command line that asks for the same run."""
    words = ["guardband", "run"] + ([] if config is None else [str(config)])
    for name, value in options.items():
        words += [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def _compile_first(task: Any, entrants: list[Any], history: Any) -> None:
    """Load the kernels under a notice of their own; the first time they are compiled."""
    notes = Console(stderr=True)
    with (
        warnings.catch_warnings(),
        notes.status("loading the kernels (compiling them the first time: minutes)"),
    ):
        warnings.simplefilter("ignore", gb.BoundWarning)  # the run itself will warn
        few = None if history is None else (2, "uniform")
        gb.simulate(task, entrants, rounds=2, alpha=0.5, history=few, progress=False)


def _write_template(path: Path) -> None:
    from guardband.cli.config import TEMPLATE, RunConfig

    config = RunConfig()
    names = ", ".join(f'"{name}"' for name in config.algorithms)
    write_new(
        path,
        TEMPLATE.format(
            algorithms=names,
            trials=config.trials,
            seed=config.seed,
            out=FOLDER,
        ),
    )


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _as_alpha(text: str) -> float | tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in _split(text))
    except ValueError:
        raise InvalidValueError(
            f"alpha must be a number, or numbers with commas, not {text!r}."
        ) from None
    if not numbers:
        raise InvalidValueError("alpha is empty: give a number in (0, 1].")
    return numbers[0] if len(numbers) == 1 else numbers


def _as_history(text: str) -> Any:
    """Return what `gb.simulate` takes: a number of rounds, or that and a rule."""
    words = _split(text)
    try:
        rounds: Any = float(words[0])
    except (IndexError, ValueError):
        raise InvalidValueError(
            f"history must be a number of rounds, or such as 100000,uniform, not {text!r}."
        ) from None
    return (rounds, *words[1:]) if len(words) > 1 else rounds


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
