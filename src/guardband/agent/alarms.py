"""Between a group of agents and the kernels of monitors: which alarms there are, what follows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from guardband.agent.engine import Engine
from guardband.agent.health import Alarm
from guardband.errors import InvalidValueError
from guardband.kernels.alarms import misfit, readmit, respond, slide
from guardband.kernels.monitors import KINDS, AlarmCode, Note, wealth_of
from guardband.kernels.types import Response, Terms

if TYPE_CHECKING:
    from guardband.agent.group import AgentGroup

__all__ = ["heed", "kinds_watched", "let_back", "move_window", "raised", "resume"]

CERTIFICATES, FIT = int(AlarmCode.CERTIFICATES), int(AlarmCode.FIT)
PENDING = int(Note.PENDING)


def kinds_watched(engine: Engine) -> tuple[str, ...]:
    """Return the kinds of alarms that agents can raise."""
    if not engine.terms.alarm < math.inf:
        return ()
    if engine.terms.drift:
        return KINDS[1:2]  # the others take the world to stand still
    return KINDS if engine.terms.shares else KINDS[:2]


def raised(group: AgentGroup, agent: int) -> bool:
    """Tell whether an agent's monitors raised an alarm that was not heeded yet."""
    return bool(group.watched and group.states[agent].watch[PENDING])


def heed(group: AgentGroup, pooled: bool) -> None:
    """Heed the alarms of a round, between two rounds; after a pooling, look for who does not fit.

    `pooled`: agents have just done so.
    """
    for m in range(len(group.names)):
        if raised(group, m):
            notes = group.states[m].watch
            code = int(notes[PENDING])
            evidence = wealth_of(notes) if code == CERTIFICATES else notes[Note.EVIDENCE]
            pooled = _answer(group, m, code, float(evidence)) or pooled
    if not pooled or "fit" not in group.watched:
        return
    for _ in group.names:
        m, evidence = misfit(group.engine.group, _terms(group.engine), group.poolings + 1)
        if m < 0:
            return
        _answer(group, m, FIT, evidence)


def _answer(group: AgentGroup, m: int, code: int, evidence: float) -> bool:
    """Note an alarm, and do what is to be done about it; tell whether agents pooled anew."""
    group.alarms[m].alarms.append(Alarm(KINDS[code - 1], group.rounds[m], evidence))
    terms = _terms(group.engine)
    logdet = respond(group.engine.group, m, terms, code)
    group.starts += terms.on_alarm != Response.WARN
    return group.note_pooling(float(logdet))


def move_window(group: AgentGroup, agent: int) -> None:
    """Forget the older half of a window if it ends before the round in which an agent decides.

    Rewards of decisions before that do not count any more.
    """
    half, last, turn = int(group.engine.terms.half), max(group.rounds), group.rounds[agent] + 1
    if turn > last > 0 and last % half == 0:
        group.note_pooling(float(slide(group.engine.group, _terms(group.engine))))
        group.starts += 1
    if group.engine.terms.drift:
        group.engine.set_time(max(last, turn))


def resume(group: AgentGroup, agent: int) -> None:
    """Count an agent's alarms as looked at, and hold it to the baseline no longer."""
    log = group.alarms[agent]
    log.looked_at = len(log.alarms)
    group.states[agent].watch[Note.HOLD] = 0.0


def let_back(group: AgentGroup, agent: int) -> None:
    """Let an agent that is apart back into the pool."""
    if not group.states[agent].watch[Note.APART]:
        raise InvalidValueError(f"task {group.names[agent]!r} is in the pool already.")
    group.note_pooling(float(readmit(group.engine.group, agent, _terms(group.engine))))


def _terms(engine: Engine) -> Terms:
    return Terms(*map(float, engine.terms))
