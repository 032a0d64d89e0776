"""Between a group of agents and the kernels of monitors: which alarms there are, what follows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from guardband.agent.engine import Engine
from guardband.agent.health import Alarm
from guardband.errors import InvalidValueError
from guardband.kernels.alarms import (
    doubt_of,
    is_look,
    misfit,
    readmit,
    respond,
    restart,
    slide,
    watch_anew,
)
from guardband.kernels.monitors import KINDS, AlarmCode, Note, wealth_of
from guardband.kernels.types import Response, Terms

if TYPE_CHECKING:
    from guardband.agent.group import AgentGroup

__all__ = ["heed", "kinds_watched", "let_back", "move_window", "note_raised", "resume"]
__all__ += ["to_be_seen_to"]

CERTIFICATES, FIT = int(AlarmCode.CERTIFICATES), int(AlarmCode.FIT)
PENDING, REWARDS = int(Note.PENDING), int(Note.REWARDS)


def kinds_watched(engine: Engine) -> tuple[str, ...]:
    """Return the kinds of alarms that agents can raise."""
    if not engine.terms.alarm < math.inf:
        return ()
    if engine.terms.drift:
        return KINDS[1:2]  # the others take the world to stand still
    return KINDS if engine.terms.shares else KINDS[:2]


def to_be_seen_to(group: AgentGroup, agent: int, rewards: int) -> bool:
    """Note what an agent's newest rewards, so many, raised; tell whether alarms are to be heeded.

    It may also be time to look whether the task fits.
    """
    if not group.watched:
        return False
    if "fit" in group.watched:
        n, d = int(group.states[agent].watch.item(REWARDS)), group.dim
        before = max(n - rewards, 0)
        if n // d > before // d:
            group.looks[agent] |= any(is_look.plain(k, d) for k in range(before + 1, n + 1))
    return note_raised(group, agent) or group.looks[agent]


def note_raised(group: AgentGroup, agent: int) -> bool:
    """Note an alarm that an agent's monitors raised, once; tell whether one is to be heeded."""
    notes = group.states[agent].watch
    code = int(notes.item(PENDING))
    if not code:
        return False
    log = group.alarms[agent]
    if not log.unheeded:
        evidence = notes[Note.EVIDENCE]
        if code == CERTIFICATES:
            evidence = group.engine.rebuild(wealth_of, notes)
        log.unheeded = True
        log.alarms.append(Alarm(KINDS[code - 1], group.rounds[agent], float(evidence)))
    return True


def heed(group: AgentGroup, pooled: bool) -> None:
    """Heed the alarms of a round, between two rounds; look for who does not fit where it is time.

    `pooled`: agents have just done so.
    """
    looks, group.looks = np.array(group.looks, float), [False] * len(group.names)
    for m, log in enumerate(group.alarms):
        log.unheeded, code = False, int(group.states[m].watch[PENDING])
        if code:  # and nobody before it has made all start anew
            pooled = _answer(group, m, code) or pooled
    looks += pooled
    if not looks.any() or "fit" not in group.watched:
        return
    for _ in group.names:
        given = (group.engine.group, _terms(group.engine), looks)
        m, evidence = group.engine.rebuild(misfit, *given)
        if m < 0:
            return
        group.alarms[m].alarms.append(Alarm(KINDS[FIT - 1], group.rounds[m], float(evidence)))
        looks += _answer(group, m, FIT)


def _answer(group: AgentGroup, m: int, code: int) -> bool:
    """Do what is to be done about an alarm; tell whether agents pooled anew."""
    group.before_change()
    terms, engine, notes = _terms(group.engine), group.engine, group.engine.group.watch
    before = notes[:, Note.STARTS].copy()
    logdet = engine.rebuild(respond, engine.group, engine.left_out, m, terms, code)
    group.starts += terms.on_alarm != Response.WARN
    for k, log in enumerate(group.alarms):
        if k != m and notes[k, Note.STARTS] > before[k]:
            log.followed.append(group.rounds[k])
    if not group.alarms[m].news:  # a person has looked at it since
        notes[m, Note.HOLD] = 0.0
        _watch_anew(group, m)
    return group.note_pooling(float(logdet))


def move_window(group: AgentGroup, agent: int) -> None:
    """Forget the older half of a window if it ends before the round in which an agent decides.

    Rewards of decisions before that do not count any more.
    """
    half, last, turn = int(group.engine.terms.half), max(group.rounds), group.rounds[agent] + 1
    if turn > last > 0 and last % half == 0:
        group.before_change()
        engine = group.engine
        group.note_pooling(float(engine.rebuild(slide, engine.group, _terms(engine))))
        group.starts += 1
    if group.engine.terms.drift:
        group.engine.set_time(max(last, turn))


def resume(group: AgentGroup, agent: int) -> None:
    """Count an agent's alarms as looked at, and hold it to the baseline no longer."""
    log = group.alarms[agent]
    news, log.looked_at = log.news, len(log.alarms)
    notes = group.states[agent].watch
    notes[Note.HOLD] = 0.0
    if news and not notes[PENDING]:  # else when it is heeded
        _watch_anew(group, agent)


def _watch_anew(group: AgentGroup, agent: int) -> None:
    """Let monitors that only warn begin again, now that a person has looked.

    Those with a window do so with its next half, and until then keep the data that it will need.
    """
    terms = _terms(group.engine)
    if terms.on_alarm == Response.WARN and not terms.half:
        group.engine.rebuild(watch_anew, group.engine.group, agent, terms)


def let_back(group: AgentGroup, agent: int, *, forget: bool) -> None:
    """Let an agent that is apart back into the pool, if its data do not contradict the others'."""
    name, engine = group.names[agent], group.engine
    if not group.states[agent].watch[Note.APART]:
        raise InvalidValueError(f"task {name!r} is in the pool already.")
    given = (engine.group, engine.left_out, agent, _terms(engine))
    if not forget:
        evidence, enough = engine.rebuild(doubt_of, engine.group, agent, _terms(engine))
        if evidence >= enough:
            raise InvalidValueError(
                f"task {name!r} still contradicts the others (evidence {evidence:.1f}; "
                f"{enough:.1f} is enough), and would leave again. If the cause is gone, let it "
                f"back without what it has learned: readmit({name!r}, forget=True)."
            )
    group.before_change()
    if forget:
        engine.rebuild(restart, *given)
        group.alarms[agent].unheeded = False
        group.starts += 1
    group.note_pooling(float(engine.rebuild(readmit, *given)))


def _terms(engine: Engine) -> Terms:
    return Terms(*map(float, engine.terms))
