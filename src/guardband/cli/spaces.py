"""`guardband space`: create, show, change and revise spaces; see `space_tasks` for the rest."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.numbers import count_option, number_argument, number_option
from guardband.cli.operator import WHO, Target, file_json, file_text, print_table, targeted
from guardband.errors import InvalidValueError

if TYPE_CHECKING:
    from guardband.agent import LookedAt
    from guardband.live.coordinator import Coordinator
    from guardband.live.protocol.space import SpaceSettings

__all__ = ["Name", "space_app"]

space_app = typer.Typer(
    help="Create, list and change spaces of the live system.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The space.")]
NamedFile = Annotated[
    Path | None, typer.Option(help="Instead of --features: JSON of gb.Features.to_json.")
]


@space_app.command("create")
@targeted
def create(
    target: Target,
    name: Annotated[str, typer.Argument(help="Its name.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(help="KEY=VALUE of other settings, such as algorithm=disc-ucb gate=none."),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Names of the features, with commas between them.")
    ] = None,
    named_features: NamedFile = None,
    agents: Annotated[int | None, count_option("How many tasks may join.")] = None,
    alpha: Annotated[
        float | None, number_option("Share of the baseline's reward that may be lost.")
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(help="per-request: every request has its own; or shared, by rounds."),
    ] = None,
    noise: Annotated[float | None, number_option("Bound on the reward noise.")] = None,
    context_noise: Annotated[
        float | None, number_option("Bound on what the hidden context adds to a reward.")
    ] = None,
    theta_bound: Annotated[float | None, number_option("Bound on theta's length.")] = None,
    mode: Annotated[str | None, typer.Option(help="strict or policy.")] = None,
    window_s: Annotated[float | None, number_option("How long to wait for rewards.")] = None,
    default: Annotated[float | None, number_option("The reward where none comes.")] = None,
    order: Annotated[str | None, typer.Option(help="window or prompt.")] = None,
    profile: Annotated[str | None, typer.Option(help="platform or hospital.")] = None,
    file: Annotated[Path | None, typer.Option(help="JSON with any of the settings.")] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="agent.toml, as `guardband study` writes it. Without --agents, for one task.",
        ),
    ] = None,
) -> None:
    """Create a space.

    For example: guardband space create home --features price,fresh,rating --agents 3

    Or from what a study recommends: guardband space create home --from agent.toml --agents 3
    The space keeps which rows of logs the study has looked at; its agents refuse to learn them.

    Every setting of gb.SpaceSettings can be given as KEY=VALUE: algorithm=disc-ucb gate=none
    reward_floor=0.2 sync.horizon=20000 alphas.tv=0.1
    """
    from guardband.live.protocol.space import SpaceSettings

    given, record = ({}, None) if from_ is None else _from_agent_file(from_)
    given |= {} if file is None else file_json(file, "--file")
    own = {
        "name": name,
        "agents": agents,
        "alpha": alpha,
        "contexts": contexts,
        "noise": noise,
        "context_noise": context_noise,
        "theta_bound": theta_bound,
        "mode": mode,
        "profile": profile,
    }
    rewards = {"window_s": window_s, "default": default, "order": order}
    given |= {key: value for key, value in own.items() if value is not None}
    given |= _chosen(features, named_features)
    rewards = {key: value for key, value in rewards.items() if value is not None}
    if rewards:
        given["rewards"] = {**given.get("rewards", {}), **rewards}
    for setting in settings or ():
        _put(given, setting)
    needs = ("agents",) if "named_features" in given else ("features", "agents")
    for needed in needs:
        if needed not in given:
            raise InvalidValueError(f"a space needs --{needed}.")
    if record is not None:
        given["looked_at"] = _keep(target, record.to_bytes())
    # Where tasks share contexts, agents must number rounds: who wants that says so.
    assumed = "contexts" not in given
    given.setdefault("contexts", "per-request")
    space = SpaceSettings(**given)
    _create(target, space)
    promise = "no constraint" if space.alpha is None else f"alpha {space.alpha:g}"
    tasks = f"{space.agents} task{'s' * (space.agents > 1)}"
    features = f"{space.dim} feature{'s' * (space.dim > 1)}"
    typer.echo(f"space {name}: {features}, {tasks}, contexts {space.contexts}, {promise}.")
    if assumed:
        typer.echo(
            "every request is taken to have a hidden context of its own: nothing is promised where "
            "tasks act under one, such as a day's weather; for that, say --contexts shared."
        )
    typer.echo(_awaited(space))
    if record is not None:
        typer.echo(f"{record.count:,} rows of logs were looked at: agents refuse to learn them.")
    typer.echo(f"next: guardband token create --space {name} --task TASK")


@space_app.command("list")
@targeted
def list_(target: Target) -> None:
    """List the spaces."""

    def here(coordinator: Coordinator) -> list[dict[str, Any]]:
        with coordinator.store.reading() as t:
            return [
                {**row._asdict(), "space": row.name, "tasks": len(t.tasks(row.name))}
                for row in t.spaces()
            ]

    found = target.do(here, "GET", "/v1/spaces", read=lambda lines: lines)
    print_table(("space", "tasks", "epoch", "config_version", "paused"), found)


@space_app.command("show")
@targeted
def show(target: Target, name: Name) -> None:
    """Print a space's settings as JSON."""
    space, version = _read(target, name)
    typer.echo(json.dumps({**space.as_json(), "config_version": version}, indent=2))


@space_app.command("set-alpha")
@targeted
def set_alpha(
    target: Target,
    name: Name,
    alpha: Annotated[float, number_argument("Share of the baseline's reward to be lost.")],
    task: Annotated[str | None, typer.Option(help="For one task only.")] = None,
) -> None:
    """Change alpha while agents run; each uses it as soon as it hears of it."""
    space, read = _read(target, name)
    new = {"alpha": alpha} if task is None else {"alphas": {**space.alphas, task: alpha}}
    version = _configure(target, space.changed(**new), read)
    whom = "every task without an alpha of its own" if task is None else f"task {task}"
    typer.echo(f"space {name}: alpha {alpha:g} for {whom}, config_version {version}.")


@space_app.command("set")
@targeted
def set_(
    target: Target,
    name: Name,
    settings: Annotated[
        list[str], typer.Argument(help="KEY=VALUE, such as agents=5 or sync.deadline_s=3.")
    ],
) -> None:
    """Change settings while agents run; features and bounds cannot change."""
    from guardband.live.protocol.space import SpaceSettings

    old, read = _read(target, name)
    given = old.as_json()
    for setting in settings:
        _put(given, setting)
    version = _configure(target, SpaceSettings(**given), read)
    typer.echo(f"space {name}: {', '.join(settings)}, config_version {version}.")


@space_app.command("revise")
@targeted
def revise(
    target: Target,
    name: Name,
    new_name: Annotated[str, typer.Argument(help="The new space, such as home-2.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="KEY=VALUE of what differs, such as noise=0.2.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Names of its features, with commas between.")
    ] = None,
    named_features: NamedFile = None,
) -> None:
    """Create a space with other features, bounds or noise, otherwise the same rules, and no data.

    Sums over other features cannot be carried over. The old space goes on as it is until its
    agents have moved.

    For example: guardband space revise home home-2 noise=0.2
    """
    from guardband.live.protocol.space import SpaceSettings

    old, _ = _read(target, name)
    given = old.as_json() | {"name": new_name} | _chosen(features, named_features)
    for setting in settings or ():
        _put(given, setting)
    space = SpaceSettings(**given)
    _create(target, space)
    typer.echo(f"space {new_name}: {space.dim} features, no data yet; {name} stays as it is.")
    typer.echo(f"next: guardband token create --space {new_name} --task TASK, for every task")


def _awaited(space: SpaceSettings) -> str:
    """Say when the first reward of a space counts, and which option changes it."""
    if space.rewards.order == "window":
        first = f"the first reward counts {space.rewards.window_s:g} s after its decision "
        if space.contexts == "shared":
            return f"{first}(--window-s)."
        return (
            f"{first}(--window-s); with --order prompt when it comes, which is right where delays "
            "do not depend on rewards."
        )
    if space.timed:
        return "a reward counts as soon as all earlier decisions have theirs (--order prompt)."
    return "a reward counts when it comes (--order prompt)."


def _create(target: Target, space: SpaceSettings) -> None:
    target.do(
        lambda c: c.create_space(space, who=WHO, now=time.time()),
        "POST",
        "/v1/spaces",
        space.as_json(),
        read=lambda answer: int(answer["config_version"]),
    )


def _keep(target: Target, record: bytes) -> str:
    """Let the coordinator keep a record of rows that were looked at; return its SHA-256."""
    return target.do(
        lambda c: c.keep_looked_at(record),
        "POST",
        "/v1/looked-at",
        {"record": b64encode(record).decode()},
        read=lambda answer: str(answer["sha256"]),
    )


def _read(target: Target, name: str) -> tuple[SpaceSettings, int]:
    """Return a space and its config_version."""
    from guardband.live.protocol.space import SpaceSettings

    return target.do(
        lambda c: c.space(name),
        "GET",
        f"/v1/spaces/{name}",
        read=lambda answer: (
            SpaceSettings.from_json(answer["config"]),
            int(answer["config_version"]),
        ),
    )


def _configure(target: Target, space: SpaceSettings, version: int) -> int:
    """Give a space that was read at a version other settings; return the new config_version."""
    return target.do(
        lambda c: c.configure(space.name, space, version=version, who=WHO, now=time.time()),
        "PUT",
        f"/v1/spaces/{space.name}",
        {"config": space.as_json(), "config_version": version},
        read=lambda answer: int(answer["config_version"]),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(","))


def _chosen(features: str | None, named: Path | None) -> dict[str, Any]:
    """Return a space's features, by their names or from a file of named features."""
    from guardband.features import Features

    if named is not None:
        made = Features.from_json(file_text(named, "--named-features"))
        return {"features": list(made.names), "named_features": made.to_dict()}
    return {} if features is None else {"features": list(_names(features)), "named_features": None}


def _from_agent_file(path: Path) -> tuple[dict[str, Any], LookedAt | None]:
    """Return the settings of a space for one agent of an agent.toml, and the rows looked at."""
    from guardband.agent import read_agent_file
    from guardband.algorithms import ALGORITHMS, plain_name

    file = read_agent_file(path)
    entry = ALGORITHMS[file.settings.get("algorithm", "guard-ucb")]
    given = {"agents": 1, **entry.preset, **file.settings, "algorithm": plain_name(entry.kind)}
    for name in ("dim", "seed"):  # the first follows from --features, the second is an agent's
        given.pop(name, None)
    if "horizon" in given:
        given["sync"] = {"horizon": given.pop("horizon")}
    if given.pop("shared_context", False):
        given["contexts"] = "shared"
    if file.features is not None:
        given["named_features"] = file.features.to_dict()
    return given, file.looked_at


def _put(given: dict[str, Any], setting: str) -> None:
    """Change one setting among a space's."""
    path, equals, text = setting.partition("=")
    if not equals:
        raise InvalidValueError(f"{setting!r} is not KEY=VALUE.")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text  # a word
    *parents, key = path.split(".")
    table: Any = given
    for parent in parents:
        if table.get(parent) is None:
            table[parent] = {}
        table = table[parent]
        if not isinstance(table, dict):
            raise InvalidValueError(f"a space has no setting {path!r}: {parent} has no parts.")
    table[key] = value
