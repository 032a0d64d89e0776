"""`guardband space`: pause and resume spaces, and manage their tasks."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from guardband.cli.operator import WHO, Target, targeted
from guardband.cli.spaces import Name, space_app

__all__ = ["Reason", "space_app"]

Task = Annotated[str, typer.Argument(help="The task.")]
ResumedTask = Annotated[str | None, typer.Argument(help="A task whose alarms you have looked at.")]
Reason = Annotated[str, typer.Option(help="The reason, kept with the event.")]


@space_app.command("pause")
@targeted
def pause(target: Target, name: Name, reason: Reason = "") -> None:
    """Make every agent play the baseline, from the next time it contacts the coordinator."""
    target.do(
        lambda c: c.pause(name, reason, who=WHO, now=time.time()),
        "POST",
        f"/v1/spaces/{name}/pause",
        {"reason": reason},
        read=_nothing,
    )
    typer.echo(f"space {name} is paused: its agents play the baseline.")


@space_app.command("resume")
@targeted
def resume(target: Target, name: Name, task: ResumedTask = None) -> None:
    """End a pause; or, with a task, say that you have looked at its alarms.

    Its agents then play more than the baseline again, where an alarm had held them to it.
    """
    if task is not None:
        looked = target.do(
            lambda c: c.resume_task(name, task, who=WHO, now=time.time()),
            "POST",
            f"/v1/spaces/{name}/agents/{task}/resume",
            read=lambda answer: int(answer["alarms"]),
        )
        typer.echo(f"task {task}: {looked} alarm(s) looked at.")
        return
    target.do(
        lambda c: c.resume(name, who=WHO, now=time.time()),
        "POST",
        f"/v1/spaces/{name}/resume",
        read=_nothing,
    )
    typer.echo(f"space {name} learns again.")


@space_app.command("quarantine")
@targeted
def quarantine(target: Target, name: Name, task: Task, reason: Reason = "") -> None:
    """Leave a task's data out from the next epoch on; it still uploads."""
    _set_status(target, "quarantine", name, task, reason)
    typer.echo(f"task {task} is in quarantine: its data are left out from the next epoch on.")


@space_app.command("retract")
@targeted
def retract(target: Target, name: Name, task: Task, reason: Reason = "") -> None:
    """Leave a task's data out from the next epoch on, and refuse its uploads."""
    _set_status(target, "retract", name, task, reason)
    typer.echo(
        f"task {task} is retracted: its data are left out from the next epoch on, and its uploads "
        "are refused."
    )


@space_app.command("restore-task")
@targeted
def restore_task(target: Target, name: Name, task: Task, reason: Reason = "") -> None:
    """Take a task in again after quarantine or retraction, from the next epoch on."""
    _set_status(target, "restore", name, task, reason)
    typer.echo(f"task {task} takes part again, from the next epoch on.")


@space_app.command("readmit")
@targeted
def readmit(target: Target, name: Name, task: Task, reason: Reason = "") -> None:
    """Let a task back that has left the pool after an alarm, from the next epoch on."""
    _set_status(target, "readmit", name, task, reason)
    typer.echo(f"task {task} is in the pool again, from the next epoch on.")


@space_app.command("remove")
@targeted
def remove(target: Target, name: Name, task: Task) -> None:
    """End a task whose agents have stopped: epochs no longer wait for it, its data stay.

    To take its data out of the sum as well, retract it.
    """
    ended = target.do(
        lambda c: c.end_task(name, task, who=WHO, now=time.time()),
        "POST",
        f"/v1/spaces/{name}/agents/{task}/end",
        read=lambda answer: int(answer["streams"]),
    )
    typer.echo(f"task {task}: {ended} stream(s) ended; what they counted stays in the sum.")


def _set_status(target: Target, verb: str, name: str, task: str, reason: str) -> None:
    target.do(
        lambda c: getattr(c, verb)(name, task, reason, who=WHO, now=time.time()),
        "POST",
        f"/v1/spaces/{name}/agents/{task}/{verb}",
        {"reason": reason},
        read=_nothing,
    )


def _nothing(_: Any) -> None:
    """Ignore an answer that has no content."""
