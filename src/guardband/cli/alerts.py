"""`guardband space acknowledge`: say that an alert was seen."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from guardband.cli.operator import WHO, Target, targeted
from guardband.cli.space_tasks import Reason
from guardband.cli.spaces import Name

__all__ = ["acknowledge"]


@targeted
def acknowledge(
    target: Target,
    name: Name,
    alert: Annotated[str, typer.Argument(help="Its id, as the dashboard and the runbook have it.")],
    task: Annotated[str | None, typer.Argument(help="Its task, where it names one.")] = None,
    reason: Reason = "",
) -> None:
    """Say that somebody has seen an alert: it stops paging, and stays until its cause is gone."""
    target.do(
        lambda c: c.acknowledge(name, alert, task, reason, who=WHO, now=time.time()),
        "POST",
        f"/v1/spaces/{name}/alerts/{alert}/acknowledge",
        {"task": task, "reason": reason},
        read=lambda _: None,
    )
    typer.echo(f"alert {alert}{f' of task {task}' if task else ''} is acknowledged.")
