"""`guardband status`: what the dashboard says, in the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardband.cli.operator import DATA, Target, print_table, targeted

if TYPE_CHECKING:
    from guardband.live.coordinator import Coordinator
    from guardband.live.server import SummaryReply

__all__ = ["status"]

MARKS = {"good": "✓", "wait": "…", "look": "!", "bad": "✕"}
COLUMNS = ("task", "decisions", "learned", "reward over floor", "pending", "last seen", "state")


@targeted
def status(
    target: Target,
    name: Annotated[str | None, typer.Argument(help="The space; all of them without it.")] = None,
) -> None:
    """Say how spaces are doing, in the words of the dashboard.

    Is it safe? Does it earn? Does it learn? Is the system running? And a line for every task.
    """
    names = [name] if name else target.do(_spaces, "GET", "/v1/spaces", read=_named)
    for number, each in enumerate(names):
        if number:
            typer.echo()
        _show(_summary(target, each), _whereabouts(target))
    if not names:
        typer.echo("no space yet: guardband space create home --features price,fresh --agents 2")
    if target.url is None:
        typer.echo(f"Read from {target.data}. Whether a server answers: --url http://...")


def _spaces(coordinator: Coordinator) -> list[str]:
    return [row.name for row in coordinator.spaces()]


def _named(lines: list[dict[str, Any]]) -> list[str]:
    return [line["space"] for line in lines]


def _summary(target: Target, name: str) -> SummaryReply:
    def here(coordinator: Coordinator) -> SummaryReply:
        from guardband.live.server import summary_now

        coordinator.space(name)  # refuses what does not exist
        return summary_now(coordinator.store, name, time.time())

    def read(answer: dict[str, Any]) -> SummaryReply:
        from guardband.live.server import SummaryReply

        return SummaryReply.model_validate(answer, strict=False)

    return target.do(here, "GET", f"/v1/spaces/{name}/summary", read=read)


def _whereabouts(target: Target) -> str:
    """Return the options with which a command that is shown reaches the same spaces."""
    if target.url is not None:
        return f" --url {target.url}"
    return "" if target.data == DATA else f" --data {target.data}"


def _show(summary: SummaryReply, where: str) -> None:
    from guardband.live.server import as_sentence, count, named, percent, signed, span

    paused = "running" if summary.paused is None else f"PAUSED: {summary.paused}"
    age = span(summary.epoch_age_s)
    epoch = f"epoch {summary.epoch}, {age} ago" if summary.epoch else "no epoch yet"
    typer.echo(f"{summary.space} · {paused} · {epoch} · settings v{summary.config_version}")
    for alert in summary.alerts:
        seen = "seen" if alert.acknowledged else alert.severity
        remedy = as_sentence(alert.remedy)
        typer.echo(f"{MARKS['bad' if seen == 'page' else 'look']} {seen}: {named(alert)} {remedy}")
    for answer in summary.answers:
        word = ", ".join(filter(None, (answer.word, answer.figure)))
        change = f"guardband space set {summary.space}"  # as the dashboard shows it
        text = answer.text.replace(change, change + where)
        typer.echo(f"{MARKS[answer.level]} {answer.question} {word}. {text}")
    rows = []
    for agent in summary.agents:
        decisions = agent.counters.get("decisions", 0)
        others = decisions - agent.counters.get("baseline", 0)
        lead = f"{signed(agent.lead_mean, 2)} ± {agent.lead_halfwidth or 0.0:.2f}"
        values = (
            agent.task,
            count(decisions),
            percent(others / decisions if decisions else None),
            agent.unjudged or lead,
            count(agent.gauges.get("pending")),
            span(agent.last_seen_s),
            agent.state,
        )
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    if rows:
        print_table(COLUMNS, rows)
        for agent in summary.agents:
            for note in agent.notes:
                typer.echo(f"{agent.task}: {note}")
    else:
        typer.echo(f"next: guardband token create --space {summary.space} --task TASK{where}")
