"""`guardband space ...`: what an operator does on the second day, while agents run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.live import HERE, WHO, Data, Token, Url, ask, existing, plainly, space_app

if TYPE_CHECKING:
    from guardband.live.coordinator.coordinator import Coordinator
    from guardband.live.space import Space

__all__ = ["space_app"]

Name = Annotated[str, typer.Argument(help="The space.")]
Task = Annotated[str, typer.Argument(help="The task.")]
Reason = Annotated[str, typer.Option(help="Why; it is written down.")]


@space_app.command("show")
def show(name: Name, data: Data = HERE, url: Url = None, token: Token = None) -> None:
    """Print a space's settings as JSON."""
    with plainly():
        space, version = _read(name, data, url, token)
    typer.echo(json.dumps({**space.as_json(), "config_version": version}, indent=2))


@space_app.command("set-alpha")
def set_alpha(
    name: Name,
    alpha: Annotated[float, typer.Argument(help="Share of the baseline's reward to be lost.")],
    task: Annotated[str | None, typer.Option(help="For one task only.")] = None,
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Change alpha while agents run: each uses it from its next decision after it heard."""
    with plainly():
        space, _ = _read(name, data, url, token)
        new = {"alpha": alpha} if task is None else {"alphas": {**space.alphas, task: alpha}}
        version = _configure(space.changed(**new), data, url, token)
    whom = "every task without an alpha of its own" if task is None else f"task {task}"
    typer.echo(f"space {name}: alpha {alpha:g} for {whom}, config_version {version}.")


@space_app.command("set")
def set_(
    name: Name,
    settings: Annotated[
        list[str], typer.Argument(help="KEY=VALUE, such as agents=5 or sync.deadline_s=3.")
    ],
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Change settings while agents run; what data mean (features, bounds) cannot change."""
    from guardband.live.space import Space  # noqa: PLC0415

    with plainly():
        old, _ = _read(name, data, url, token)
        given = old.as_json()
        for setting in settings:
            _put(given, setting)
        version = _configure(Space.from_json(given), data, url, token)
    typer.echo(f"space {name}: {', '.join(settings)}, config_version {version}.")


@space_app.command("revise")
def revise(
    name: Name,
    new_name: Annotated[str, typer.Argument(help="The new space, such as home-2.")],
    features: Annotated[str, typer.Option(help="Names of its features, with commas between.")],
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make a space with another set of features and the same rules; it starts with no data.

    Sums over other features mean something else, so nothing is taken over. The old space stays
    as it is, for its agents and for people, until they have moved.
    """
    with plainly():
        old, _ = _read(name, data, url, token)
        space = old.changed(name=new_name, features=tuple(f.strip() for f in features.split(",")))
        _do(
            lambda c: c.create_space(space, who=WHO, now=time.time()),
            ("POST", "/v1/spaces", space.as_json()),
            data,
            url,
            token,
        )
    typer.echo(f"space {new_name}: {space.dim} features, no data yet; {name} stays as it is.")
    typer.echo(f"next: guardband token create --space {new_name} --task TASK, for every task")


@space_app.command("pause")
def pause(
    name: Name, reason: Reason = "", data: Data = HERE, url: Url = None, token: Token = None
) -> None:
    """Let every agent play the baseline, from its next sign of life on."""
    with plainly():
        _do(
            lambda c: c.pause(name, reason, who=WHO, now=time.time()),
            ("POST", f"/v1/spaces/{name}/pause", {"reason": reason}),
            data,
            url,
            token,
        )
    typer.echo(f"space {name} is paused: its agents play the baseline.")


@space_app.command("resume")
def resume(name: Name, data: Data = HERE, url: Url = None, token: Token = None) -> None:
    """End a pause."""
    with plainly():
        _do(
            lambda c: c.resume(name, who=WHO, now=time.time()),
            ("POST", f"/v1/spaces/{name}/resume", None),
            data,
            url,
            token,
        )
    typer.echo(f"space {name} learns again.")


@space_app.command("quarantine")
def quarantine(
    name: Name,
    task: Task,
    reason: Reason = "",
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Leave a task's data out from the next epoch on; they are still collected."""
    _set_status("quarantine", name, task, reason, data, url, token)
    typer.echo(f"task {task} is in quarantine: its data leave the sum with the next epoch.")


@space_app.command("retract")
def retract(
    name: Name,
    task: Task,
    reason: Reason = "",
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Leave a task's data out from the next epoch on, and take no more of them."""
    _set_status("retract", name, task, reason, data, url, token)
    typer.echo(f"task {task} is retracted: its data leave the sum, and nothing more is taken.")


@space_app.command("restore-task")
def restore_task(
    name: Name,
    task: Task,
    reason: Reason = "",
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Take a task in again after quarantine or retraction, from the next epoch on."""
    _set_status("restore", name, task, reason, data, url, token)
    typer.echo(f"task {task} takes part again, from the next epoch on.")


@space_app.command("remove")
def remove(name: Name, task: Task, data: Data = HERE) -> None:
    """End a task whose agents have stopped: nobody waits for it, what it counted stays.

    To take its data out of the sum as well, retract it.
    """
    from guardband.live.coordinator.coordinator import Coordinator  # noqa: PLC0415

    with plainly(), closing(existing(data)) as store:
        coordinator = Coordinator(store)
        overview = coordinator.look(name)
        if task not in {row.task for row in overview.tasks}:
            known = ", ".join(row.task for row in overview.tasks) or "none"
            raise ValueError(f"space {name!r} has no task {task!r}, only {known}.")
        open_ = [row for row in overview.streams if (row.task, row.state) == (task, "open")]
        for row in open_:
            coordinator.seal(row.stream, row.mark, now=time.time())
    typer.echo(f"task {task}: {len(open_)} stream(s) ended; what they counted stays in the sum.")


def _set_status(
    verb: str,
    name: str,
    task: str,
    reason: str,
    data: Any,
    url: str | None,
    token: str | None,
) -> None:
    with plainly():
        _do(
            lambda c: getattr(c, verb)(name, task, reason, who=WHO, now=time.time()),
            ("POST", f"/v1/spaces/{name}/agents/{task}/{verb}", {"reason": reason}),
            data,
            url,
            token,
        )


def _read(name: str, data: Any, url: str | None, token: str | None) -> tuple[Space, int]:
    from guardband.live.space import Space  # noqa: PLC0415

    found = _do(lambda c: c.space(name), ("GET", f"/v1/spaces/{name}", None), data, url, token)
    if url is None:
        return found[0], found[1]
    return Space.from_json(found["config"]), found["config_version"]


def _configure(space: Space, data: Any, url: str | None, token: str | None) -> int:
    answer = _do(
        lambda c: c.configure(space.name, space, who=WHO, now=time.time()),
        ("PUT", f"/v1/spaces/{space.name}", space.as_json()),
        data,
        url,
        token,
    )
    return int(answer if url is None else answer["config_version"])


def _do(
    here: Callable[[Coordinator], Any],
    there: tuple[str, str, Any],
    data: Any,
    url: str | None,
    token: str | None,
) -> Any:
    """Do something in the store of a data folder, or ask a running server for it."""
    if url is not None:
        method, path, body = there
        return ask(method, url, path, token, data, body)
    from guardband.live.coordinator.coordinator import Coordinator  # noqa: PLC0415

    with closing(existing(data)) as store:
        return here(Coordinator(store))


def _put(given: dict[str, Any], setting: str) -> None:
    """Change one setting in a space's JSON."""
    path, equals, text = setting.partition("=")
    if not equals:
        raise ValueError(f"{setting!r} is not KEY=VALUE.")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text  # a word
    *parents, key = path.split(".")
    place: Any = given
    for parent in parents:
        place = place.get(parent) if isinstance(place, dict) else None
    if not isinstance(place, dict) or (key not in place and parents != ["alphas"]):
        raise ValueError(f"a space has no setting {path!r}; see: guardband space show NAME")
    place[key] = value
